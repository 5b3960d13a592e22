"""Plots in the style of scikit-learn's displays: the public names of `symsvm.inspection.plot`."""

from symsvm.inspection.plot import *  # noqa: F403
from symsvm.inspection.plot import __all__ as __all__
