"""Pictures in the style of scikit-learn's displays. (Public names of `symsvm.plot`.)"""

from symsvm.inspection.plot import *  # noqa: F403
from symsvm.inspection.plot import __all__ as __all__
