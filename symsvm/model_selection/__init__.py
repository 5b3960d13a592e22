"""Search for parameters by cross-validation: `tune` shares Gram matrices, compiled loops and solutions between fits.

`grid_search` holds `tune`. A `search_plan` groups the fits into tasks, an `executor` runs them in threads, and a
`tuning_result` collects their scores. Fits over a kernel read the rows of a `shared_matrix` through a `cached_source`.
The packages inspection, serve and cli import from here, and `symsvm.tuning` is its public name.
"""

from symsvm.model_selection.grid_search import tune
from symsvm.model_selection.tuning_result import Step, Tuning

__all__ = ["Step", "Tuning", "tune"]
