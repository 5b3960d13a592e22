"""Pictures in the style of scikit-learn's displays (needs the extra symsvm[plot]).

Every function draws on `ax=`, or on a figure of its own, and returns a display: an object with `ax_`, `figure_`, the
data that it draws, and `plot`, which draws them again.
"""

from symsvm.inspection.plot.boundary import DecisionBoundaryDisplay, decision_boundary
from symsvm.inspection.plot.curves import PrecisionRecallDisplay, RocDisplay, precision_recall, roc
from symsvm.inspection.plot.matrix import GramDisplay, gram
from symsvm.inspection.plot.regression import TubeDisplay, tube
from symsvm.inspection.plot.traces import ConvergenceDisplay, convergence
from symsvm.inspection.plot.tuning import SurfaceDisplay, surface
from symsvm.inspection.plot.vectors import SupportVectorsDisplay, support_vectors

__all__ = [
    "ConvergenceDisplay",
    "DecisionBoundaryDisplay",
    "GramDisplay",
    "PrecisionRecallDisplay",
    "RocDisplay",
    "SupportVectorsDisplay",
    "SurfaceDisplay",
    "TubeDisplay",
    "convergence",
    "decision_boundary",
    "gram",
    "precision_recall",
    "roc",
    "support_vectors",
    "surface",
    "tube",
]
