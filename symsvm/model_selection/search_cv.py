"""scikit-learn's searches with the engine of `tune`: `GridSearchCV`, `RandomizedSearchCV` and `HalvingGridSearchCV`.

They are subclasses of scikit-learn's, with the same parameters, methods and results. Where fits can share work they do,
as `docs/tuning.md` describes; otherwise scikit-learn's own `fit` runs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import sklearn.model_selection
from sklearn.base import is_classifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - it defines HalvingGridSearchCV
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import resample

from symsvm._lib.validation import choice, count, number
from symsvm.compiler.lifting import MEMORY
from symsvm.model_selection.cv_results import last_of_halving
from symsvm.model_selection.shared_search import SearchRun, SharedSearch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["GridSearchCV", "HalvingGridSearchCV", "RandomizedSearchCV"]


class GridSearchCV(SharedSearch, sklearn.model_selection.GridSearchCV):
    """The `GridSearchCV` of scikit-learn, with fits that share kernel matrices and solutions.

    For `SVC`, `NuSVC`, `SVR`, `NuSVR`, `OneClassSVM`, pipelines that end with one of them, `LinearSVC` and `LinearSVR`
    the fits run as those of `tune`. Scores agree with independent fits up to `tol`. Where fits can share nothing, those
    of scikit-learn run: estimators of other libraries, a `scoring` that is a function of the points, arguments of `fit`
    for steps of a pipeline, callbacks, and estimators with a calibration, another solver or a kernel that is a
    function. `engine_` says which.

    Parameters
    ----------
    estimator : estimator
        The estimator, or a pipeline that ends with one.
    param_grid : dict or list of dict
        Lists of values by names of parameters.
    scoring : str, callable, list, tuple, dict or None
        The scorer, or several; by default the estimator's own score.
    n_jobs : int, optional
        The number of threads; None is 1, -1 all cores. It does not change the results.
    refit : bool, str or callable, default=True
        Whether to fit the best candidate to all points; the name of the scorer that decides, or a function of
        `cv_results_` that returns the index of the best candidate.
    cv : int, splitter or iterable, optional
        The folds, 5 by default.
    verbose : int, default=0
        1 prints the number of fits, 2 a line for each.
    pre_dispatch : int or str, default="2*n_jobs"
        Accepted as in scikit-learn, whose fits it is for.
    error_score : float or "raise", default=nan
        The score of a fit that fails.
    return_train_score : bool, default=False
        Whether to score on the points of each fit too.
    memory : float, default=2**30
        The bytes that Gram matrices and working sets may take.

    Attributes
    ----------
    cv_results_ : dict
        The results, as scikit-learn's; `pandas.DataFrame(search.cv_results_)` shows them.
    best_estimator_, best_params_, best_score_, best_index_ : estimator, dict, float and int
        The best candidate.
    engine_ : str
        "shared", or "scikit-learn, since ..." with the reason.

    Examples
    --------
    >>> from symsvm import SVC
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> search = GridSearchCV(SVC(), {"C": [1.0, 10.0], "gamma": [0.01, 1.0]}).fit(X, np.abs(X[:, 0]) > 0.5)
    >>> search.best_params_, search.engine_, search.predict([[0.9]]).tolist()
    ({'C': 1.0, 'gamma': 1.0}, 'shared', [True])
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: float | Literal["raise"] = np.nan,
        return_train_score: bool = False,
        memory: float = MEMORY,
    ) -> None:
        options: dict[str, Any] = {
            "scoring": scoring,
            "n_jobs": n_jobs,
            "refit": refit,
            "cv": cv,
            "verbose": verbose,
            "pre_dispatch": pre_dispatch,
            "error_score": error_score,
            "return_train_score": return_train_score,
        }
        super().__init__(estimator, param_grid, **options)
        self.memory = memory

    def _candidate_params(self) -> Sequence[Mapping[str, Any]]:
        return list(ParameterGrid(self.param_grid))


class RandomizedSearchCV(SharedSearch, sklearn.model_selection.RandomizedSearchCV):
    """The `RandomizedSearchCV` of scikit-learn, with fits that share kernel matrices and solutions; see `GridSearchCV`.

    Candidates with the same kernel share its matrix: with a distribution of C and a list of gamma most of them do.

    Parameters
    ----------
    estimator : estimator
        The estimator, or a pipeline that ends with one.
    param_distributions : dict or list of dict
        Lists of values, or distributions with a method `rvs`, by names of parameters.
    n_iter : int, default=10
        The number of candidates.
    scoring : str, callable, list, tuple, dict or None
        The scorer, or several; by default the estimator's own score.
    n_jobs : int, optional
        The number of threads; None is 1, -1 all cores. It does not change the results.
    refit : bool, str or callable, default=True
        Whether to fit the best candidate to all points, as in `GridSearchCV`.
    cv : int, splitter or iterable, optional
        The folds, 5 by default.
    verbose : int, default=0
        1 prints the number of fits, 2 a line for each.
    pre_dispatch : int or str, default="2*n_jobs"
        Accepted as in scikit-learn, whose fits it is for.
    random_state : int or RandomState, optional
        The seed of the candidates.
    error_score : float or "raise", default=nan
        The score of a fit that fails.
    return_train_score : bool, default=False
        Whether to score on the points of each fit too.
    memory : float, default=2**30
        The bytes that Gram matrices and working sets may take.

    Attributes
    ----------
    cv_results_ : dict
        The results, as scikit-learn's.
    best_estimator_, best_params_, best_score_, best_index_ : estimator, dict, float and int
        The best candidate.
    engine_ : str
        "shared", or "scikit-learn, since ..." with the reason.
    """

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        random_state: int | np.random.RandomState | None = None,
        error_score: float | Literal["raise"] = np.nan,
        return_train_score: bool = False,
        memory: float = MEMORY,
    ) -> None:
        options: dict[str, Any] = {
            "n_iter": n_iter,
            "scoring": scoring,
            "n_jobs": n_jobs,
            "refit": refit,
            "cv": cv,
            "verbose": verbose,
            "pre_dispatch": pre_dispatch,
            "random_state": random_state,
            "error_score": error_score,
            "return_train_score": return_train_score,
        }
        super().__init__(estimator, param_distributions, **options)
        self.memory = memory

    def _candidate_params(self) -> Sequence[Mapping[str, Any]]:
        return list(ParameterSampler(self.param_distributions, self.n_iter, random_state=self.random_state))


class HalvingGridSearchCV(SharedSearch, sklearn.model_selection.HalvingGridSearchCV):
    """The `HalvingGridSearchCV` of scikit-learn, with fits that share kernel matrices; see `GridSearchCV`.

    All candidates are fitted to parts of the points of each fold, and the best 1 / `factor` of them to `factor` times
    as many, as in scikit-learn; with an integer as `random_state` the parts are the same.

    Parameters
    ----------
    estimator : estimator
        The estimator, or a pipeline that ends with one.
    param_grid : dict or list of dict
        Lists of values by names of parameters.
    factor : float, default=3
        The factor by which the number of points grows and that of candidates shrinks.
    resource : str, default="n_samples"
        What grows: the number of points, or a parameter, which is searched by scikit-learn's own fits.
    max_resources : int or "auto", default="auto"
        The most points.
    min_resources : int, "smallest" or "exhaust", default="exhaust"
        The points of the first iteration: a number; twice the folds (times the classes); or as many that the last
        iteration has all.
    aggressive_elimination : bool, default=False
        Whether to repeat the first iteration until the last one has less than `factor` candidates.
    cv : int, splitter or iterable, default=5
        The folds.
    scoring : str, callable or None
        The scorer; by default the estimator's own score.
    refit : bool, default=True
        Whether to fit the best candidate to all points.
    error_score : float or "raise", default=nan
        The score of a fit that fails.
    return_train_score : bool, default=True
        Whether to score on the points of each fit too.
    random_state : int or RandomState, optional
        The seed of the parts.
    n_jobs : int, optional
        The number of threads; None is 1, -1 all cores. It does not change the results.
    verbose : int, default=0
        1 prints the number of fits, 2 a line for each.
    memory : float, default=2**30
        The bytes that Gram matrices and working sets may take.

    Attributes
    ----------
    cv_results_ : dict
        The results, as scikit-learn's, with the columns `iter` and `n_resources`.
    best_estimator_, best_params_, best_score_, best_index_ : estimator, dict, float and int
        The best candidate of the last iteration.
    n_resources_, n_candidates_ : list of int
        The points and the candidates of each iteration.
    engine_ : str
        "shared", or "scikit-learn, since ..." with the reason.
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        factor: float = 3,
        resource: str = "n_samples",
        max_resources: int | Literal["auto"] = "auto",
        min_resources: int | Literal["smallest", "exhaust"] = "exhaust",
        aggressive_elimination: bool = False,
        cv: Any = 5,
        scoring: Any = None,
        refit: Any = True,
        error_score: float | Literal["raise"] = np.nan,
        return_train_score: bool = True,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        memory: float = MEMORY,
    ) -> None:
        options: dict[str, Any] = {
            "factor": factor,
            "resource": resource,
            "max_resources": max_resources,
            "min_resources": min_resources,
            "aggressive_elimination": aggressive_elimination,
            "cv": cv,
            "scoring": scoring,
            "refit": refit,
            "error_score": error_score,
            "return_train_score": return_train_score,
            "random_state": random_state,
            "n_jobs": n_jobs,
            "verbose": verbose,
        }
        super().__init__(estimator, param_grid, **options)
        self.memory = memory

    def _candidate_params(self) -> Sequence[Mapping[str, Any]]:
        return list(ParameterGrid(self.param_grid))

    def _search_candidates(self, run: SearchRun) -> None:
        candidates, factor = list(self._candidate_params()), number(self.factor, "factor", positive=True)
        if factor <= 1:
            raise ValueError(f"factor must be more than 1, got {self.factor!r}.")
        m = run.X.shape[0] if hasattr(run.X, "shape") else len(run.X)
        required = 1 + math.floor(math.log(len(candidates), factor))
        self._set_resources(run, m, int(factor ** (required - 1)))
        possible = 1 + math.floor(math.log(self.max_resources_ // self.min_resources_, factor))
        self.n_required_iterations_, self.n_possible_iterations_ = required, possible
        self.n_iterations_ = required if self.aggressive_elimination else min(possible, required)
        self.n_resources_, self.n_candidates_ = [], []
        for i in range(self.n_iterations_):
            power = max(0, i - required + possible) if self.aggressive_elimination else i
            points = min(int(factor**power * self.min_resources_), self.max_resources_)
            self.n_resources_.append(points)
            self.n_candidates_.append(len(candidates))
            parts = [(self._part(train, points / m), self._part(test, points / m)) for train, test in run.folds]
            results = run.evaluate(candidates, parts, {"iter": i, "n_resources": points})
            here = np.flatnonzero(results["iter"] == i)
            scores = results["mean_test_score"][here]
            order = np.roll(np.argsort(scores), np.count_nonzero(np.isnan(scores)))  # nan first
            candidates = [results["params"][here[k]] for k in order[-math.ceil(len(candidates) / factor) :]]
        self.n_remaining_candidates_ = len(candidates)

    def _set_resources(self, run, m, growth):
        """Set the least and the most points of an iteration; `growth` is the factor between the first and the last."""
        self.max_resources_ = m if self.max_resources == "auto" else count(self.max_resources, "max_resources", least=1)
        if isinstance(self.min_resources, str):
            choice(self.min_resources, "min_resources", ("smallest", "exhaust"))
            least = 2 * len(run.folds) * (len(np.unique(run.y)) if is_classifier(self.estimator) else 1)
            exhausts = self.min_resources == "exhaust"
            self.min_resources_ = max(least, self.max_resources_ // growth) if exhausts else least
        else:
            self.min_resources_ = count(self.min_resources, "min_resources", least=1)
        if self.min_resources_ > self.max_resources_:
            raise ValueError(
                f"min_resources_={self.min_resources_} is greater than max_resources_={self.max_resources_}: there are "
                "too few points for so many folds and classes."
            )

    def _part(self, rows, share):
        """A part of some rows, the same for the same seed."""
        part: Any = resample(rows, replace=False, random_state=self.random_state, n_samples=int(share * len(rows)))
        return part

    def _best_of(self, metric: str, results: Mapping[str, Any]) -> int:
        return last_of_halving(results)
