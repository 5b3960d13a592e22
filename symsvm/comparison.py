"""All algorithms on the same problems, beside scikit-learn: the public names of `symsvm.inspection.comparison`."""

from symsvm.inspection.comparison import *  # noqa: F403
from symsvm.inspection.comparison import __all__ as __all__
