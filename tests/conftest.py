"""Settings of every test: the same random examples, a rewrite that raises is an error, no screen, nothing in C."""

import gc
import os
import random

os.environ.setdefault("MPLBACKEND", "Agg")

import campaigns  # noqa: F401 (registers the profiles)
import pytensor
from hypothesis import settings
from pytensor.compile.mode import predefined_linkers
from pytensor.link.vm import VMLinker

settings.load_profile("suite")  # `--hypothesis-profile=fuzz` has another
pytensor.config.on_opt_error = "raise"
# PyTensor's C backend is not under test: it looks for a BLAS and warns, and takes ten seconds for the first loop of all
# that stays one, also in the mode that compiles nothing.
pytensor.config.blas__ldflags = ""
predefined_linkers["cvm"] = VMLinker(use_cloop=False, c_thunks=False)
pytensor.config.traceback__limit = 0  # where each variable was made: a tenth of the time that a graph takes


def pytest_addoption(parser):
    """Offer another order of the test files: no test may depend on one that ran before it."""
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the test files in a random order")


def pytest_collection_modifyitems(config, items):
    """Put the files in the order that the seed gives; the tests of a file stay together."""
    if config.getoption("--shuffle") is not None:
        files = sorted({item.path for item in items})
        random.Random(config.getoption("--shuffle")).shuffle(files)
        items.sort(key=lambda item: files.index(item.path))


def pytest_collection_finish():
    """Spare the garbage collector what is there to stay: it would look at every graph that is kept again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
