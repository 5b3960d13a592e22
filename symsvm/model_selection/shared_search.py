"""The engine of `tune` behind the interface of scikit-learn's searches.

`SharedSearch` is a mixin before one of scikit-learn's search classes. Its `fit` runs the fits by a `SearchPlan`, which
shares kernel matrices and solutions; where `unshared_reason` finds a reason not to, it is scikit-learn's own.
Everything else, `predict` and so on, is inherited.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from sklearn import get_config
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import column_or_1d, indexable
from sklearn.utils.multiclass import check_classification_targets

from symsvm._lib.validation import number
from symsvm.estimators.base import sample_weights
from symsvm.estimators.linear_estimator import LinearEstimator
from symsvm.model_selection.cached_source import can_share
from symsvm.model_selection.cv_results import choose_best, cv_results, warn_of_failures
from symsvm.model_selection.executor import run_tasks
from symsvm.model_selection.search_plan import SearchPlan, last_step
from symsvm.model_selection.search_scorers import SearchScorers
from symsvm.model_selection.tuning_result import Scoreboard

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Self

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, PointsLike
    from symsvm.model_selection.tuning_result import Step

__all__ = ["SearchRun", "SharedSearch", "unshared_reason"]

_SHARED = "shared"


def unshared_reason(search: Any, y: Any, params: Mapping[str, Any]) -> str | None:
    """Return why the fits of a search can share nothing, in words; None if they can."""
    estimator = search.estimator
    machine = last_step(estimator)
    given = {name for name, value in params.items() if value is not None}
    if not can_share(machine) and (machine is not estimator or not isinstance(machine, LinearEstimator)):
        return "the estimator is none of symsvm's machines, or does not share matrices"
    if given - {"groups", "sample_weight"} or ("sample_weight" in given and machine is not estimator):
        return "fit has arguments for steps of a pipeline"
    if np.asarray(y).ndim > 1 and np.asarray(y).shape[1:] != (1,):
        return "there are several targets"
    if given and get_config().get("enable_metadata_routing"):
        return "metadata routing is enabled"
    if any("_skl_callbacks" in vars(one) for one in (search, estimator, machine)):
        return "there are callbacks"
    if getattr(search, "resource", "n_samples") != "n_samples":
        return "the resource of halving is a parameter"
    return _reason_of_scoring(search, "sample_weight" in given)


def _reason_of_scoring(search, is_weighted):
    scoring = search.scoring
    is_many = isinstance(scoring, (list, tuple, set, dict))
    is_one = scoring is None or isinstance(scoring, str) or hasattr(scoring, "get_metadata_routing")
    if not is_one and not is_many:
        return "scoring is a function of the points"
    if is_many and hasattr(search, "resource"):
        return "successive halving takes one scorer"  # scikit-learn raises the error
    names = {"score"} if not is_many else set(scoring)
    if is_many and not (search.refit is False or callable(search.refit) or search.refit in names):
        return "refit names none of the scorers"  # scikit-learn raises the error
    try:
        scorers = SearchScorers(search.estimator, scoring)
    except (TypeError, ValueError):
        return "scoring is not valid"  # scikit-learn raises the error
    if not scorers.is_plain:
        return "a scorer uses more of the points than their predictions"
    if is_weighted and not scorers.takes_weights:
        return "a scorer is not known to take weights"
    return None


class SearchRun:
    """The fits of one search: it evaluates candidates, again and again for successive halving, and keeps all results.

    Parameters
    ----------
    search : SharedSearch
        The search.
    X : array-like or sparse matrix
        The points.
    y : array-like or None
        Their targets.
    groups : array-like, optional
        The groups of a splitter.
    weights : array, optional
        The weights of the points.

    Attributes
    ----------
    folds : list of tuple
        Row numbers of the points of each fit, and of those held out.
    scorers : SearchScorers
        The scorers.
    results : dict
        The results so far.
    """

    def __init__(self, search: Any, X: Any, y: Any, groups: Any = None, weights: Array | None = None) -> None:
        self.search, self.X, self.y, self.weights = search, X, y, weights
        self.estimator: Any = clone(search.estimator)
        self.scorers = SearchScorers(search.estimator, search.scoring)
        splitter: Any = check_cv(search.cv, y, classifier=is_classifier(search.estimator))
        self.folds = [(_row_numbers(train), _row_numbers(test)) for train, test in splitter.split(X, y, groups)]
        if not self.folds:
            raise ValueError("No fits were performed: cv has no folds.")
        self.results: dict[str, Any] = {}
        self._candidates: list[dict[str, Any]] = []
        self._measured: list[Array] = []
        self._more: dict[str, list[Any]] = {}

    def evaluate(
        self,
        candidates: Iterable[Mapping[str, Any]],
        folds: list[tuple[Array, Array]] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Fit candidates in all folds, or in parts of them; return all results so far.

        Parameters
        ----------
        candidates : iterable of dict
            Parameters.
        folds : list of tuple, optional
            Row numbers, `folds` by default.
        more : dict, optional
            Values of further columns, the same for all these candidates.

        Returns
        -------
        dict
            As `cv_results_`.
        """
        search, cells, folds = self.search, [dict(one) for one in candidates], folds or self.folds
        if not cells:
            raise ValueError("No fits were performed: there are no candidates.")
        if search.verbose > 0:
            fits = len(cells) * len(folds)
            print(f"Fitting {len(folds)} folds for each of {len(cells)} candidates, totalling {fits} fits")
        scores = Scoreboard(cells, len(folds), self._report if self._reports else None)
        workers = joblib.effective_n_jobs(search.n_jobs)
        plan = SearchPlan(
            self.estimator,
            self.X,
            self.y,
            cells,
            folds,
            self.scorers,
            is_plain=self.scorers.is_plain,
            workers=workers,
            memory=number(search.memory, "memory"),
            weights=self.weights,
            with_train=search.return_train_score,
        )
        run_tasks(plan.tasks, scores, plan.workers, workers)
        warn_of_failures(scores, search.error_score)
        if scores.is_stopped:
            raise KeyboardInterrupt
        self._candidates += cells
        self._measured.append(scores.measured)
        for name, value in (more or {}).items():
            self._more.setdefault(name, []).extend([value] * len(cells))
        self.results = cv_results(
            self._candidates,
            np.concatenate(self._measured),
            list(self.scorers.scorers),
            error_score=np.nan if search.error_score == "raise" else float(search.error_score),
            with_train=search.return_train_score,
            more=self._more,
        )
        return self.results

    @property
    def _reports(self):
        return self.search.verbose > 1 or self.search.error_score == "raise"

    def _report(self, step: Step) -> bool:
        """Print a fit; stop at the first error if it is to be raised."""
        if self.search.verbose > 1:
            params = ", ".join(f"{name}={value}" for name, value in step.params.items())
            print(f"[CV {step.fold + 1}] {params}: score={step.score:.3f}, {step.status}")
        return self.search.error_score == "raise" and step.status.startswith("failed")


class SharedSearch:
    """A mixin before a search class of scikit-learn: its `fit`, by the engine where that can share."""

    estimator: Any
    refit: Any
    multimetric_: bool
    best_estimator_: Any

    def fit(self, X: PointsLike, y: ArrayLike | None = None, **fit_params: Any) -> Self:
        """Run all fits, and fit the estimator with the best parameters to all points.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            The points; for a precomputed kernel the (m, m) matrix between them.
        y : array-like of shape (m,), optional
            Their labels or targets; None for `OneClassSVM`, which needs a `scoring`.
        **fit_params : dict
            `groups` for the splitter, `sample_weight` for fits and scores, and what the `fit` of an estimator of
            another library takes.

        Returns
        -------
        self
            The search.
        """
        reason = unshared_reason(self, y, fit_params)
        if reason is not None:
            self.engine_ = f"scikit-learn, since {reason}"
            return super().fit(X, y, **fit_params)  # type: ignore[misc]
        self.engine_ = _SHARED
        points: Any
        points, y = indexable(X, y)  # type: ignore[assignment]
        given = fit_params.get("sample_weight")
        m = points.shape[0] if hasattr(points, "shape") else len(points)
        weights = None if given is None else sample_weights(given, m)
        run = SearchRun(self, points, self._checked_targets(y), fit_params.get("groups"), weights)
        self.n_splits_ = len(run.folds)
        self._search_candidates(run)
        self._keep(run)
        if self.refit:
            began = time.perf_counter()
            model: Any = clone(run.estimator)
            params: Any = clone(self.best_params_, safe=False)
            model.set_params(**params)
            options: dict[str, Any] = {} if weights is None else {"sample_weight": given}
            self.best_estimator_ = model.fit(points, **options) if y is None else model.fit(points, y, **options)
            self.refit_time_ = time.perf_counter() - began
            if hasattr(model, "feature_names_in_"):
                self.feature_names_in_ = model.feature_names_in_
        return self

    def _checked_targets(self, y):
        """The targets as a vector, checked for classes."""
        if y is None:
            return None
        y = np.asarray(y)
        y = y if y.ndim == 1 else column_or_1d(y, warn=True)
        if is_classifier(self.estimator):
            check_classification_targets(y)
        return y

    def _candidate_params(self) -> Sequence[Mapping[str, Any]]:
        """The parameters of all candidates."""
        raise NotImplementedError

    def _search_candidates(self, run: SearchRun) -> None:
        """Evaluate the candidates."""
        run.evaluate(self._candidate_params())

    def _best_of(self, metric: str, results: Mapping[str, Any]) -> int:
        """The index of the best candidate by the scorer of this name."""
        return choose_best(self.refit, metric, results)

    def _keep(self, run):
        """Set the attributes of the results."""
        self.multimetric_, self.scorer_, self.cv_results_ = run.scorers.is_multiple, run.scorers.public, run.results
        metric = self.refit if run.scorers.is_multiple else "score"
        if not self.refit and run.scorers.is_multiple:
            return
        self.best_index_ = self._best_of(metric, run.results)
        if not callable(self.refit):
            self.best_score_ = run.results[f"mean_test_{metric}"][self.best_index_]
        self.best_params_ = run.results["params"][self.best_index_]


def _row_numbers(rows):
    """Row numbers, or those of a mask, as integers."""
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype == bool else rows.astype("int64", copy=False)
