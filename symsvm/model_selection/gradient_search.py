"""`GradientSearchCV`: hyper-parameters that minimise a held-out loss, by its gradient."""

from __future__ import annotations

import math
import time
import warnings
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from symsvm._lib.validation import count, number, switch
from symsvm.compiler.lifting import MEMORY
from symsvm.estimators.base import sample_weights
from symsvm.estimators.parameter_checks import check_parameters
from symsvm.model_selection.criteria import Criterion
from symsvm.model_selection.descent import Descent, Limits, coarse_grid
from symsvm.model_selection.fold_threads import FoldThreads
from symsvm.model_selection.held_out_loss import HeldOutLoss
from symsvm.model_selection.search_space import SearchSpace, machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Self

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, PointsLike
    from symsvm.model_selection.descent import SearchStep

__all__ = ["GradientSearchCV"]

# The fits of a descent are more exact than the estimator's own by this factor: the gradient needs the set of free
# variables, and a solution at hand makes it cheap.
_EXACTER = 1e-3
_ENDS = {
    "max_evaluations": "after max_evaluations={0} evaluations",
    "time_limit": "at time_limit={1:g} s",
    "callback": "by `progress`",
    "interrupted": "by Ctrl-C",
}


def _has(name: str) -> Callable[[Any], bool]:
    """Whether the estimator has a method, which the search then has too."""

    def check(search: Any) -> bool:
        model = getattr(search, "best_estimator_", search.estimator)
        getattr(model, name)
        return True

    return check


class GradientSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Search for hyper-parameters by the gradient of a held-out loss.

    The problem has two levels::

        minimise over theta    L(theta) = loss of the decision values f_i of points held out, over all folds,
        f of a fold from       (z, b)(theta) = the solution of the dual over its other points

    Its gradient is exact: one linear system for each fit (`symsvm.argmin`). From the best cells of a coarse grid,
    L-BFGS follows it over the logarithms of positive numbers: C, epsilon, numbers of the kernel, or a width for each
    feature, of which a grid is out of reach. All folds share kernel values, and each fit starts at its last solution.

    Parameters
    ----------
    estimator : SVC, SVR, NuSVC or NuSVR
        The estimator. Its values are those of parameters that the grid does not name.
    over : list of str, or dict
        The names of numbers: C, epsilon, nu, gamma and coef0 of kernels given by name, and `kernel__sigma`,
        `kernel__k1__c` ... of kernel objects. A vector such as `RBF(sigma=np.ones(d))` has a coordinate for each entry.
        A dict gives ranges (low, high), or None, by names.
    cv : int, splitter, iterable or "loo", default=5
        The number of folds, a splitter of scikit-learn, or pairs (train, test) of row numbers. A number means
        stratified folds for classifiers; they are shuffled if `random_state` is given. "loo" is leave-one-out by the
        span of the support vectors: one fit and no folds, for SVC and SVR; a weighted point is left out as a whole.
    scoring : str or callable, optional
        "log_loss" (after Platt's sigmoid, the default of classifiers) or "smooth_hinge"; "squared_error" (the default
        of regressions) or "absolute_error"; or a function of two graphs (y, f), labels -1 and +1 or targets and
        decision values, that returns a scalar graph, the mean loss. One of (y, f, w) has the weights too. For several
        classes it is taken over the pairs of classes, of each its own points, or over each class against the rest.
    prior : float or None, default=1.0
        The standard deviation of a Gaussian prior on the logarithms of the entries of a vector around their mean; None
        for no prior.
    grid : dict, optional
        Values by names for the starting points; by default 4 values of C and 4 of a scale of the kernel, or 3 of nu.
    starts : int, default=2
        The number of cells of the grid, the best ones, that L-BFGS starts from.
    max_iter : int, default=30
        The most iterations of L-BFGS from each start.
    max_evaluations : int, optional
        The most evaluations of the loss, those of the grid included.
    time_limit : float, optional
        The most seconds of the search; fits under way are stopped.
    tol : float, default=1e-4
        L-BFGS ends where an iteration decreases the loss by less than this part of it.
    refit : bool, default=True
        Whether to fit the estimator with the best parameters to all points.
    random_state : int or RandomState, optional
        The seed of shuffled folds.
    progress : callable, optional
        A function of a `SearchStep`, called after each evaluation; a true return value stops the search.
    n_jobs : int, optional
        The number of threads, all cores by default. It does not change the results.
    memory : float, default=2**30
        The bytes that the Gram matrix and working sets may take; for more points kernel values are recomputed.
    verbose : bool or int, default=0
        Whether to print a line for each evaluation.

    Attributes
    ----------
    best_params_ : dict
        The best parameters: floats and vectors.
    best_estimator_ : estimator
        The estimator with these, fitted to all points, if `refit`.
    best_loss_, best_score_ : float
        The held-out loss at the best parameters, and the same with the sign turned. They were minimised over the
        folds, so they are too good: judge the result by points that the search has not seen.
    best_index_ : int
        The evaluation of the best parameters.
    cv_results_ : dict
        Arrays with an entry for each evaluation: `param_...`, `params`, `mean_test_score` (the loss with the sign
        turned), `rank_test_score`, `stage` (0 for the grid, then the number of the start), `objective` (the loss with
        the prior), `seconds` and `status`.
    n_splits_ : int
        The number of folds; of leave-one-out the number of points.
    n_evaluations_ : int
        The number of evaluations.
    status_ : str
        "converged", or what ended the search: "max_iter", "max_evaluations", "time_limit", "callback" or
        "interrupted".
    search_time_, refit_time_ : float
        Seconds.

    Examples
    --------
    >>> from symsvm import RBF, SVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> search = GradientSearchCV(SVC(kernel=RBF(1.0)), ["C", "kernel__sigma"], n_jobs=1)
    >>> search.fit(X, X[:, 0] * X[:, 1] > 0).best_params_.keys()
    dict_keys(['C', 'kernel__sigma'])
    """

    best_estimator_: Any
    best_params_: dict[str, Any]
    cv_results_: dict[str, Any]

    def __init__(
        self,
        estimator: Any,
        over: Iterable[str] | Mapping[str, Any],
        *,
        cv: Any = 5,
        scoring: str | Callable[..., Any] | None = None,
        prior: float | None = 1.0,
        grid: Mapping[str, Sequence[Any]] | None = None,
        starts: int = 2,
        max_iter: int = 30,
        max_evaluations: int | None = None,
        time_limit: float | None = None,
        tol: float = 1e-4,
        refit: bool = True,
        random_state: int | np.random.RandomState | None = None,
        progress: Callable[[SearchStep], object] | None = None,
        n_jobs: int | None = None,
        memory: float = MEMORY,
        verbose: bool | int = 0,
    ) -> None:
        self.estimator = estimator
        self.over = over
        self.cv = cv
        self.scoring = scoring
        self.prior = prior
        self.grid = grid
        self.starts = starts
        self.max_iter = max_iter
        self.max_evaluations = max_evaluations
        self.time_limit = time_limit
        self.tol = tol
        self.refit = refit
        self.random_state = random_state
        self.progress = progress
        self.n_jobs = n_jobs
        self.memory = memory
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = get_tags(self.estimator)
        tags.estimator_type, tags.classifier_tags, tags.regressor_tags = (
            own.estimator_type,
            own.classifier_tags,
            own.regressor_tags,
        )
        tags.target_tags.required = True
        tags.input_tags.sparse = own.input_tags.sparse
        return tags

    def fit(self, X: PointsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Search, and fit the estimator with the best parameters to all points.

        Ctrl-C ends the search with the best parameters so far, and with a ConvergenceWarning that says so; before the
        first evaluation it is raised.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            The points; sparse ones for the RBF kernel.
        y : array-like of shape (m,)
            Their labels or targets.
        sample_weight : array-like of shape (m,), optional
            The weights of the points, in fits and in the held-out loss. That of a class counts in both as well.

        Returns
        -------
        self
            The search.
        """
        began = time.perf_counter()
        kind = machine(self.estimator)
        check_parameters(self.estimator)
        limits = self._limits(began)
        starts, workers = count(self.starts, "starts", least=1), joblib.cpu_count()
        workers = workers if self.n_jobs is None else count(self.n_jobs, "n_jobs", least=1)
        tau = None if self.prior is None else number(self.prior, "prior", positive=True)
        memory = number(self.memory, "memory")
        switch(self.refit, "refit")
        if self.progress is not None and not callable(self.progress):
            raise TypeError(f"progress must be a function of a SearchStep, got {self.progress!r}.")
        SearchSpace(self.estimator, self.over, gamma=1.0)  # names are checked before the points
        classifies = is_classifier(self.estimator)
        points, targets = self._check_points(X, y, is_numeric=not classifies)
        weights = None if sample_weight is None else sample_weights(sample_weight, points.shape[0])
        criterion = Criterion(self.scoring, is_classifier=classifies, is_weighted=weights is not None)
        folds = self._folds(points, targets, kind)
        space = SearchSpace(self.estimator, self.over, gamma=_gamma(self.estimator, points))
        cells = coarse_grid(space, points, targets, self.grid)
        exact = _EXACTER * self.estimator.tol
        with FoldThreads(min(workers, len(folds) if folds else 1)) as threads:
            loss = HeldOutLoss(space, points, targets, weights, folds, criterion, threads, memory=memory, tol=exact)
            descent = Descent(loss, limits, tau if space.has_vectors else None, self._report)
            try:
                descent.run(cells, starts, self.estimator.tol)
            finally:
                loss.close()
        self._record(descent, points.shape[0] if folds is None else len(folds))
        self.search_time_ = time.perf_counter() - began
        if descent.status in _ENDS:
            how = _ENDS[descent.status].format(self.max_evaluations, self.time_limit)
            warnings.warn(
                f"GradientSearchCV: stopped {how}; best_params_ are the best of {self.n_evaluations_} evaluations.",
                ConvergenceWarning,
                stacklevel=2,
            )
        if self.refit:
            again = time.perf_counter()
            model: Any = clone(self.estimator)
            model.set_params(**self.best_params_)
            self.best_estimator_ = model.fit(X, y, sample_weight=sample_weight)
            self.refit_time_ = time.perf_counter() - again
        return self

    # ---- the parts of a search

    def _limits(self, began: float) -> Limits:
        most = None if self.max_evaluations is None else count(self.max_evaluations, "max_evaluations", least=1)
        seconds = math.inf if self.time_limit is None else number(self.time_limit, "time_limit", positive=True)
        return Limits(count(self.max_iter, "max_iter"), most, began + seconds, number(self.tol, "tol", positive=True))

    def _check_points(self, X: Any, y: Any, *, is_numeric: bool) -> tuple[Any, Array]:
        """The points as the estimator checks them, in float64, and the targets."""
        fresh: Any = clone(self.estimator)
        points, targets = fresh.check_points(X, y, y_numeric=True) if is_numeric else fresh.check_points(X, y)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(fresh, name):
                setattr(self, name, getattr(fresh, name))
        if is_numeric:
            targets = np.asarray(targets, dtype="float64")
        else:
            self.classes_ = np.unique(targets)
        return points if points.dtype == np.float64 else points.astype("float64"), targets

    def _folds(self, points: Any, targets: Array, kind: type) -> list[tuple[Array, Array]] | None:
        if isinstance(self.cv, str):
            if self.cv != "loo":
                raise ValueError(f"cv must be a number of folds, a splitter, pairs or 'loo', got {self.cv!r}.")
            if "nu" in kind().get_params():
                raise ValueError(
                    f"cv='loo' is for SVC and SVR, got {kind.__name__}: without a point nu has another total."
                )
            return None
        is_stratified = is_classifier(self.estimator)
        if self.random_state is not None and isinstance(self.cv, int | np.integer):
            splitter: Any = (StratifiedKFold if is_stratified else KFold)(
                count(self.cv, "cv", least=2), shuffle=True, random_state=self.random_state
            )
        else:
            splitter = check_cv(self.cv, targets, classifier=is_stratified)
        pairs = [(_rows(train), _rows(test)) for train, test in splitter.split(points, targets)]
        if not pairs:
            raise ValueError("cv has no folds: give at least one pair (train, test).")
        return pairs

    def _report(self, step: SearchStep) -> object:
        if self.verbose:
            stage = "grid" if step.stage == 0 else f"start {step.stage}"
            values = ", ".join(f"{name} = {_short(value)}" for name, value in step.params.items())
            print(f"{step.done:4d}  {stage:8s} loss {step.loss:.6g}  best {step.best:.6g}  {values}")
        return None if self.progress is None else self.progress(step)

    def _record(self, descent: Descent, n_splits: int) -> None:
        """Set the attributes of the search."""
        found = descent.evaluations
        losses = np.array([e.loss for e in found])
        if not np.isfinite(losses).any():
            reason = found[0].status.removeprefix("failed: ").rstrip(".")
            raise ValueError(f"no evaluation of the search has a held-out loss; the first one: {reason}.")
        self.best_index_ = best = descent.best
        self.best_params_ = dict(found[best].params)
        self.best_loss_ = float(losses[best])
        self.best_score_ = -self.best_loss_
        self.n_splits_, self.n_evaluations_, self.status_ = n_splits, len(found), descent.status
        order = np.argsort(np.argsort(losses, kind="stable"), kind="stable")
        results: dict[str, Any] = {}
        for name in self.best_params_:
            results[f"param_{name}"] = np.array([e.params[name] for e in found])
        results |= {
            "params": [e.params for e in found],
            "mean_test_score": -losses,
            "rank_test_score": (order + 1).astype("int32"),
            "stage": np.array([stage for _, stage, _ in descent.records]),
            "objective": np.array([objective for _, _, objective in descent.records]),
            "seconds": np.array([e.seconds for e in found]),
            "status": np.array([e.status for e in found], dtype=object),
        }
        self.cv_results_ = results
        self.scoring_ = descent.loss.criterion.name

    # ---- the best estimator

    def _best(self) -> Any:
        check_is_fitted(self, "best_params_")
        if not self.refit:
            raise AttributeError("this search has refit=False and no model: fit the estimator with best_params_.")
        return self.best_estimator_

    @available_if(_has("predict"))
    def predict(self, X: PointsLike) -> Array:
        """Predict with the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The points.

        Returns
        -------
        array of shape (n,)
            Classes or targets.
        """
        return self._best().predict(X)

    @available_if(_has("decision_function"))
    def decision_function(self, X: PointsLike) -> Array:
        """Evaluate the decision function of the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The points.

        Returns
        -------
        array of shape (n,) or (n, k)
            The decision values.
        """
        return self._best().decision_function(X)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: PointsLike) -> Array:
        """Predict probabilities with the best estimator, if it has a calibration.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The points.

        Returns
        -------
        array of shape (n, k)
            The probabilities.
        """
        return self._best().predict_proba(X)

    def score(self, X: PointsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the score of the best estimator: the accuracy of a classifier, R2 of a regression.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The points.
        y : array-like of shape (n,)
            Labels or targets.
        sample_weight : array-like of shape (n,), optional
            The weights of the points.

        Returns
        -------
        float
            The score.
        """
        return self._best().score(X, y, sample_weight=sample_weight)


def _rows(rows: Any) -> Array:
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype == bool else rows.astype("int64", copy=False)


def _gamma(estimator: Any, points: Any) -> float | None:
    """The number of gamma="scale" or "auto" on all points, None where gamma is a number or has no effect."""
    if not isinstance(estimator.kernel, str) or estimator.kernel == "linear" or not isinstance(estimator.gamma, str):
        return None
    kernel: Any = estimator.kernel_for(points, np.ones(points.shape[0]))
    return 0.5 / kernel.sigma**2 if estimator.kernel == "rbf" else float(kernel.gamma)


def _short(value: Any) -> str:
    if np.ndim(value) == 0:
        return f"{value:.4g}"
    return f"{np.min(value):.3g} .. {np.max(value):.3g}"
