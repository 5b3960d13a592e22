"""Data files and named data sets, scaling and labels: the public names of `symsvm.io.data`."""

from symsvm.io.data import *  # noqa: F403
from symsvm.io.data import __all__ as __all__
