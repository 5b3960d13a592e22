"""Plots in the style of scikit-learn's displays; needs matplotlib, `pip install 'symsvm[plot]'`.

Every function draws on `ax=`, or on a new figure, and returns a display: an object with `ax_`, `figure_`, the data that
it draws, and `plot`, which draws them again. matplotlib is imported when something is drawn. `symsvm.plot` has the
public names; the comparison and the command line use this package.
"""

from symsvm.inspection.plot.classification_curves import PrecisionRecallDisplay, RocDisplay, precision_recall, roc
from symsvm.inspection.plot.contribution_bars import ContributionsDisplay, contributions
from symsvm.inspection.plot.convergence_curves import ConvergenceDisplay, convergence
from symsvm.inspection.plot.decision_boundary import DecisionBoundaryDisplay, decision_boundary
from symsvm.inspection.plot.gradient_path import SearchPathDisplay, WidthsDisplay, search_path, widths
from symsvm.inspection.plot.gram_matrix import GramDisplay, gram
from symsvm.inspection.plot.regression_tube import TubeDisplay, tube
from symsvm.inspection.plot.search_surface import SurfaceDisplay, surface
from symsvm.inspection.plot.support_vectors import SupportVectorsDisplay, support_vectors

__all__ = [
    "ContributionsDisplay",
    "ConvergenceDisplay",
    "DecisionBoundaryDisplay",
    "GramDisplay",
    "PrecisionRecallDisplay",
    "RocDisplay",
    "SearchPathDisplay",
    "SupportVectorsDisplay",
    "SurfaceDisplay",
    "TubeDisplay",
    "WidthsDisplay",
    "contributions",
    "convergence",
    "decision_boundary",
    "gram",
    "precision_recall",
    "roc",
    "search_path",
    "support_vectors",
    "surface",
    "tube",
    "widths",
]
