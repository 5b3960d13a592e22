"""Settings for every test: a rewrite that raises is an error, and pictures need no screen."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")

import pytensor

pytensor.config.on_opt_error = "raise"
pytensor.config.blas__ldflags = ""  # PyTensor's C backend, which looks for a BLAS and warns, is not under test
