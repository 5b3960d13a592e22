"""Settings of every test: the same random examples, a rewrite that raises is an error, no screen, nothing in C."""

import gc
import os
import random
import signal
import sys

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["SYMSVM_QUIET"] = "1"  # whether something is compiled depends on what ran before

import campaigns
import pytensor
import pytest
from hypothesis import settings
from pytensor.compile.mode import predefined_linkers
from pytensor.link.vm import VMLinker

settings.load_profile("suite")  # `--hypothesis-profile=fuzz` has another
pytensor.config.on_opt_error = "raise"
# PyTensor's C backend is not under test: it looks for a BLAS and warns, and takes ten seconds for the first loop of all
# that stays one, also in the mode that compiles nothing.
pytensor.config.blas__ldflags = ""
# PyTensor looks for a C++ compiler when the setting is first read, and fuses fewer loops where it finds none: now, and
# not inside a test that changes the environment.
_ = pytensor.config.cxx
predefined_linkers["cvm"] = VMLinker(use_cloop=False, c_thunks=False)
# A shell starts background jobs with Ctrl-C ignored, and their children inherit that; tests send Ctrl-C to both.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
pytensor.config.traceback__limit = 0  # where each variable was made: a tenth of the time that a graph takes

# A script that sets up JAX when it is read, for processes of its own.
collect_ignore = ["mesh_runs.py"]


def pytest_configure(config):
    """Try the same examples every time, but not in `make fuzz`."""
    if settings.get_current_profile_name() == "suite":
        campaigns.fix_examples()


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


def _stay_on_this_machine(event, arguments):
    """Fail a test that asks for a name or an address other than a loopback one; no `except Exception` hides it."""
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        host = arguments[1][0] if isinstance(arguments[1], tuple) else None  # else a socket in the file system
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = arguments[0]
    else:
        return
    host = host.decode() if isinstance(host, bytes) else host
    if host not in (None, "", "localhost", "::1") and not host.startswith("127."):
        pytest.fail(f"A test asked the network for {host!r}: tests use no network but loopback.")


sys.addaudithook(_stay_on_this_machine)
for name in ("http_proxy", "https_proxy", "all_proxy"):  # one on this machine would be a way out
    os.environ.pop(name, None)
    os.environ.pop(name.upper(), None)
