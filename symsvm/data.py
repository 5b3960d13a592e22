"""Data sets: files in and out, named sets, scaling, labels. (Public names of `symsvm.io.data`.)"""

from symsvm.io.data import *  # noqa: F403
from symsvm.io.data import __all__ as __all__
