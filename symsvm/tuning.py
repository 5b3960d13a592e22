"""Search for parameters by cross-validation: the public name of `symsvm.model_selection`."""

from symsvm.model_selection import *  # noqa: F403
from symsvm.model_selection import __all__ as __all__
