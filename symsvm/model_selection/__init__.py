"""Search for parameters by cross-validation: fits share Gram matrices, compiled loops and solutions.

`grid_search` holds `tune`. A `search_plan` groups the fits into tasks, an `executor` runs them in threads, and a
`tuning_result` collects their scores. Fits over a kernel read the rows of a `shared_matrix` through a `cached_source`.
`search_cv` holds `GridSearchCV`, `RandomizedSearchCV` and `HalvingGridSearchCV`: those of scikit-learn, with these fits
(`shared_search`), their `search_scorers` and `cv_results`.
`gradient_search` holds `GradientSearchCV`: a `descent` over the coordinates of a `search_space` minimises a
`held_out_loss`, one of the `criteria`, whose gradient takes `kernel_slopes` and, without folds, `leave_one_out`. The
packages inspection, serve and cli import from here, and `symsvm.tuning` is its public name.
"""

from symsvm.model_selection.descent import SearchStep
from symsvm.model_selection.gradient_search import GradientSearchCV
from symsvm.model_selection.grid_search import tune
from symsvm.model_selection.search_cv import GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV
from symsvm.model_selection.tuning_result import Step, Tuning

__all__ = [
    "GradientSearchCV",
    "GridSearchCV",
    "HalvingGridSearchCV",
    "RandomizedSearchCV",
    "SearchStep",
    "Step",
    "Tuning",
    "tune",
]
