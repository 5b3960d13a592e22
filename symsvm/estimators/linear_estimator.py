"""The base class of the linear estimators, and the regressor LinearSVR; for many points or features."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from symsvm._lib.blas import row_products
from symsvm._lib.validation import number, refuse_masked
from symsvm.estimators.base import BaseSVM, FitMonitor, changes_model, sample_weights
from symsvm.estimators.containers import answers_in_kind, from_dlpack
from symsvm.estimators.linear_collections import fit_targets
from symsvm.estimators.spread_source import collection_of, maps_collections, score_collection
from symsvm.linear import Rows, solve_linear

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, PointsLike

__all__ = ["LinearEstimator", "LinearSVR"]


class LinearEstimator(BaseSVM):
    """A linear model with scikit-learn's interface: options of its problems, and values x.w + b; see `LinearSVC`."""

    C: float
    tol: float
    dual: Any
    max_iter: int
    time_limit: float | None
    verbose: Any
    random_state: Any
    warm_start: bool
    fit_intercept: bool
    penalize_intercept: bool
    intercept_scaling: float
    coef_: Array
    intercept_: Array

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def check_points(self, X: Any, *y: Any, **options: Any) -> Any:
        """Check X, or X and y, by scikit-learn's rules; `reset=False` compares with the points of the fit."""
        X, y = from_dlpack(X), tuple(from_dlpack(value) for value in y)
        for name, value in zip(("X", "y"), (X, *y), strict=False):
            refuse_masked(value, name)
        options |= {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
        with np.errstate(over="ignore", invalid="ignore"):  # entries that are not finite are refused in a sentence
            return validate_data(self, X, *y, **options)

    def start_from(self, solutions: list) -> None:
        """Start the next fit at the solutions of another one, `solutions_`, whatever `warm_start` is."""
        self._start = solutions

    @property
    def monitor(self) -> FitMonitor:
        """The monitor of the fit that is under way."""
        return self._monitor

    def _take_start(self):
        """The solutions to start a fit at, or None."""
        own = getattr(self, "solutions_", None) if self.warm_start else None
        return vars(self).pop("_start", None) or own or None

    def _rows(self, X):
        """The points with the constant feature of the intercept, made once for all problems over them."""
        scaling = number(self.intercept_scaling, "intercept_scaling", positive=True)
        return Rows(X, scaling if self.fit_intercept else 0.0)

    def _seed(self):
        return 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))

    def _options(self):
        max_iter = None if self.max_iter == -1 else self.max_iter
        return {
            "tol": self.tol,
            "max_iter": max_iter,
            "time_limit": self.time_limit,
            "seed": self._seed(),
            "verbose": self.verbose,
        }

    def _intercept_options(self):
        return {
            "intercept": bool(self.fit_intercept),
            "penalize_intercept": bool(self.penalize_intercept),
            "intercept_scaling": self.intercept_scaling,
        }

    def _store(self, solutions):
        """End a fit: set the attributes that both estimators have."""
        self._end_fit()
        self.solutions_ = solutions
        self.n_iter_ = int(max(solution.n_iter for solution in solutions))

    def expansion(self, X: Any) -> Array:
        """Return x.w + b for each of the checked points, a column for each problem."""
        if hasattr(self.coef_, "tocsr"):  # after `sparsify`
            return np.asarray(safe_sparse_dot(X, self.coef_.T, dense_output=True)) + self.intercept_
        points, weights, b = self._in_one_type(X)
        return row_products(points, weights.T) + b

    def _in_one_type(self, X):
        """Return the points, w and b in the type of the points, or in float64 if w or b is out of the range of that."""
        limits, dtype = np.finfo(X.dtype), X.dtype
        for values in (self.coef_, self.intercept_):
            sizes = np.abs(values[values != 0])
            if not ((sizes >= limits.tiny) & (sizes <= limits.max)).all():
                dtype = np.dtype("float64")
        return tuple(values.astype(dtype, copy=False) for values in (X, self.coef_, self.intercept_))


class LinearSVR(RegressorMixin, LinearEstimator):
    """Linear support vector regression for large problems, with liblinear's problem and a certificate.

    The problem is::

        minimise R(w, b) + sum_i C_i loss(|y_i - x_i.w - b| - epsilon),    loss(t) = max(0, t) or max(0, t)^2

    Parameters
    ----------
    epsilon : float, default=0.0
        Half the width of the tube inside which an error costs nothing.
    tol : float, default=1e-4
        A bound on the violation and on the relative gap; see `symsvm.linear.solve_linear`.
    C : float, default=1.0
        The penalty; C_i = C times sample weight.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The loss.
    penalty : {"l2", "l1"}, default="l2"
        R = 1/2 \\|w\\|^2, or R = \\|w\\|_1 (with the squared loss only).
    fit_intercept : bool, default=True
        Whether there is an intercept b.
    intercept_scaling : float, default=1.0
        The constant feature of a penalised intercept.
    penalize_intercept : bool, default=True
        Whether b is the weight of a constant feature, penalised like w, as in liblinear; otherwise it is free.
    dual : bool or "auto", default="auto"
        Accepted as in scikit-learn, without effect: loss and shape determine the algorithm.
    verbose : bool or int, default=0
        Whether to draw a progress bar on a terminal, and to print a line for the problem elsewhere.
    random_state : int or RandomState, optional
        The seed of the order of the coordinates.
    max_iter : int, default=1000
        The most passes; -1 for no limit.
    time_limit : float, optional
        The most seconds.
    warm_start : bool, default=False
        Whether to start at the weights of the last fit.

    Attributes
    ----------
    coef_ : array of shape (d,)
        The weights w.
    intercept_ : array of shape (1,)
        The intercept b.
    n_iter_ : int
        The number of passes.
    certificate_ : Certificate
        The optimality of the fit in float64: primal, dual, gap, violation and status.
    trace_ : dict
        Arrays of the fields of `Info`, an entry for each iteration.
    """

    _choices: ClassVar[dict[str, tuple[str, ...]]] = {
        "loss": ("epsilon_insensitive", "squared_epsilon_insensitive"),
        "penalty": ("l2", "l1"),
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: Literal["epsilon_insensitive", "squared_epsilon_insensitive"] = "epsilon_insensitive",
        penalty: Literal["l2", "l1"] = "l2",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        penalize_intercept: bool = True,
        dual: bool | Literal["auto"] = "auto",
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        max_iter: int = 1000,
        time_limit: float | None = None,
        warm_start: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.penalize_intercept = penalize_intercept
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.warm_start = warm_start

    @changes_model
    def fit(self, X: PointsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to points and their targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            The training points.
        y : array-like of shape (m,)
            Their targets.
        sample_weight : array-like of shape (m,), optional
            The weights of the points, C_i = C weight_i. A point of weight 0 is left out.

        Returns
        -------
        self
            The fitted estimator.
        """
        if (collection := collection_of(X)) is not None:
            start = self._take_start()
            self._begin_fit()
            solution = fit_targets(self, collection, (X, y, sample_weight), start)
            self.coef_, self.intercept_ = solution.w, np.array([solution.intercept], dtype="float64")
            self._store([solution])
            return self
        vars(self).pop("traffic_", None)
        points, targets = self.check_points(X, y, y_numeric=True)
        weights = sample_weights(sample_weight, len(targets))
        used = np.flatnonzero(weights)
        if len(used) < len(targets):
            points, targets = points[used], targets[used]
        C = number(self.C, "C", positive=True) * weights[used]
        self._begin_fit()
        options = self._options() | self._intercept_options() | {"epsilon": self.epsilon}
        options |= {"loss": self.loss, "penalty": self.penalty}
        start = self._take_start()
        options["start"] = None if start is None else start[0]
        rows, targets = self._rows(points), targets.astype("float64")
        solution = self._monitor.solve(functools.partial(solve_linear, rows, targets, C, **options))
        self.coef_, self.intercept_ = solution.w, np.array([solution.intercept], dtype="float64")
        self._store([solution])
        return self

    @maps_collections
    @answers_in_kind
    def predict(self, X: PointsLike) -> Array:
        """Predict the target of each point, x.w + b.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The points.

        Returns
        -------
        array of shape (n,)
            The predictions.
        """
        check_is_fitted(self)
        Z = self.check_points(X, reset=False)
        points, w, b = self._in_one_type(Z)
        return row_products(points, w) + b[0]

    def score(self, X: PointsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the coefficient of determination of the predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The points.
        y : array-like of shape (n,)
            Their targets.
        sample_weight : array-like of shape (n,), optional
            The weights of the points.

        Returns
        -------
        float
            1 for predictions without an error.
        """
        return score_collection(self, X, y, sample_weight, super().score)
