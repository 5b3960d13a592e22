"""Every algorithm on the same problems, beside scikit-learn. (Public names of `symsvm.comparison`.)"""

from symsvm.inspection.comparison import *  # noqa: F403
from symsvm.inspection.comparison import __all__ as __all__
