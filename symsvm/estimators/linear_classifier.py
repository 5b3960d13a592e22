"""The linear classifier LinearSVC, for many points or features, with scikit-learn's interface."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from symsvm._lib.dense import as_dense
from symsvm._lib.validation import count, number
from symsvm.estimators.base import changes_model, sample_weights
from symsvm.estimators.calibration import CalibratedClassifier
from symsvm.estimators.containers import answers_in_kind
from symsvm.estimators.linear_collections import fit_classes
from symsvm.estimators.linear_estimator import LinearEstimator
from symsvm.estimators.multiclass import class_weights, encode_classes, votes
from symsvm.estimators.sparse_coef import SparseCoef
from symsvm.estimators.spread_source import collection_of, maps_collections, score_collection
from symsvm.linear import Stream, solve_crammer_singer, solve_linear

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, PointsLike

__all__ = ["LinearSVC"]


def _can_stream(model):
    """Whether there is a `partial_fit`: for the hinge loss, one-vs-rest, with a penalised intercept."""
    needed = {"loss": "hinge", "penalty": "l2", "multi_class": "ovr", "penalize_intercept": True, "calibration": None}
    for name, value in needed.items():
        if getattr(model, name) != value:
            raise AttributeError(f"partial_fit needs {name}={value!r}, got {getattr(model, name)!r}.")
    return True


class LinearSVC(SparseCoef, CalibratedClassifier, ClassifierMixin, LinearEstimator):
    """Linear support vector classification for large problems, with liblinear's problem and a certificate.

    The problem, for two classes y = -1 and 1, is::

        minimise R(w, b) + sum_i C_i loss(y_i (x_i.w + b)),    loss(t) = max(0, 1 - t)^2 or max(0, 1 - t)

    Parameters
    ----------
    penalty : {"l2", "l1"}, default="l2"
        R = 1/2 \\|w\\|^2, or R = \\|w\\|_1 (with the squared hinge only).
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        The loss.
    dual : bool or "auto", default="auto"
        Accepted as in scikit-learn, without effect: loss and shape determine the algorithm.
    tol : float, default=1e-4
        A bound on the violation and on the relative gap; see `symsvm.linear.solve_linear`.
    C : float, default=1.0
        The penalty; C_i = C times class weight times sample weight.
    multi_class : {"ovr", "ovo", "crammer_singer"}, default="ovr"
        One problem for each class against the rest, one for each pair of classes, or one for all classes.
    fit_intercept : bool, default=True
        Whether there is an intercept b.
    intercept_scaling : float, default=1.0
        The constant feature of a penalised intercept.
    penalize_intercept : bool, default=True
        Whether b is the weight of a constant feature, penalised like w, as in liblinear; otherwise it is free.
    class_weight : dict or "balanced", optional
        The weight of each class, 1 for classes that a dict does not name; "balanced" gives all classes the same total
        weight.
    verbose : bool or int, default=0
        Whether to draw a progress bar for each problem on a terminal, and to print a line for each elsewhere.
    random_state : int or RandomState, optional
        The seed of the order of the coordinates, of the points of a stream and of the calibration's folds.
    max_iter : int, default=1000
        The most passes for each problem; -1 for no limit.
    calibration : {"sigmoid", "isotonic"}, optional
        The method that fits probabilities to decision values by cross-validation; no probabilities by default.
    time_limit : float, optional
        The most seconds for each problem.
    warm_start : bool, default=False
        Whether to start at the weights of the last fit.
    stream_size : int, optional
        The number N of points that `partial_fit` will see in all; by default as many as in its first call.

    Attributes
    ----------
    coef_ : array of shape (problems, d)
        The weights w: (k, d), or (1, d) for two classes.
    intercept_ : array of shape (problems,)
        The intercepts b.
    classes_ : array of shape (k,)
        The classes, in order.
    n_iter_ : int
        The number of passes, the largest of all problems.
    n_samples_fit_ : int
        The number of points of the last fit with a positive weight; not set by `partial_fit`.
    certificate_ : Certificate or list
        The optimality of the fit in float64: primal, dual, gap, violation and status.
    trace_ : dict or list
        Arrays of the fields of `Info`, an entry for each iteration.
    """

    _choices: ClassVar[dict[str, tuple[str, ...]]] = {
        "loss": ("squared_hinge", "hinge"),
        "multi_class": ("ovr", "ovo", "crammer_singer"),
        "penalty": ("l2", "l1"),
    }

    def __init__(
        self,
        penalty: Literal["l2", "l1"] = "l2",
        loss: Literal["squared_hinge", "hinge"] = "squared_hinge",
        *,
        dual: bool | Literal["auto"] = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: Literal["ovr", "ovo", "crammer_singer"] = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        penalize_intercept: bool = True,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        max_iter: int = 1000,
        calibration: Literal["sigmoid", "isotonic"] | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        stream_size: int | None = None,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.penalize_intercept = penalize_intercept
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.calibration = calibration
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.stream_size = stream_size

    @changes_model
    def fit(self, X: PointsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to points and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            The training points.
        y : array-like of shape (m,)
            Their labels.
        sample_weight : array-like of shape (m,), optional
            The weights of the points, C_i = C weight_i. A point of weight 0 is left out.

        Returns
        -------
        self
            The fitted estimator.
        """
        if self.penalty == "l1" and self.loss == "hinge":
            raise ValueError(
                "Unsupported set of arguments: there is no algorithm for the hinge loss with the l1 penalty, "
                f"penalty='l1', loss='hinge', dual={self.dual!r}: use loss='squared_hinge'."
            )
        vars(self).pop("streams_", None)
        vars(self).pop("n_samples_fit_", None)
        vars(self).pop("calibration_", None)
        vars(self).pop("traffic_", None)
        if (collection := collection_of(X)) is not None:
            start = self._take_start()
            self._begin_fit()
            found = fit_classes(self, collection, (X, y, sample_weight), start)
            self.classes_, self.n_samples_fit_, solutions = found
            self.coef_ = np.stack([solution.w for solution in solutions])
            self.intercept_ = np.array([solution.intercept for solution in solutions], dtype="float64")
            self._store(solutions)
            return self
        points, names = self.check_points(X, y)
        self.classes_, used, labels, _, weights = encode_classes(names, sample_weight, self.class_weight)
        used_points = points[used] if len(used) < len(names) else points
        C = number(self.C, "C", positive=True) * weights
        start = self._take_start()
        fit = {"crammer_singer": self._fit_together, "ovo": self._fit_pairs}.get(self.multi_class, self._fit_rest)
        fit = self._fit_rest if len(self.classes_) == 2 and self.multi_class == "ovo" else fit
        self._begin_fit()
        solutions, coef, intercept = fit(used_points, labels, C, start)
        # Products with CSR points read the columns of coef_: each would copy it if it were stored by rows.
        order = "F" if hasattr(points, "tocsr") else "C"
        self.coef_ = np.asarray(np.atleast_2d(coef), order=order)
        self.intercept_ = np.atleast_1d(intercept).astype("float64")
        self.n_samples_fit_ = len(used)
        self._store(solutions)
        if self.calibration is not None:
            self.calibrate(points, names, sample_weight=sample_weight)
        return self

    @available_if(_can_stream)
    @changes_model
    def partial_fit(
        self,
        X: PointsLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Continue with more points of a stream; none of them is kept.

        Takes one averaged stochastic subgradient step for each point, in random order (see `symsvm.linear.stochastic`),
        towards the model that `fit` would find on N points like these, N = `stream_size`. The same points may come
        again. There is no certificate, which needs all points at once. A stream after `fit` continues from there, as if
        it had seen those points; `fit` after a stream discards the stream.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            The points.
        y : array-like of shape (m,)
            Their labels.
        classes : array-like of shape (k,), optional
            All classes of the stream; required in the first call, unless it comes after `fit`.
        sample_weight : array-like of shape (m,), optional
            The weights of the losses of these points.

        Returns
        -------
        self
            The estimator.
        """
        first, seen = not hasattr(self, "streams_"), getattr(self, "n_samples_fit_", 0)
        points, names = self.check_points(X, y, reset=first and not seen)
        self._check_stream_classes(names, classes, is_known=not first or bool(seen))
        labels = np.searchsorted(self.classes_, names)
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' needs all labels at once: give partial_fit a dict of weights.")
        weights = sample_weights(sample_weight, len(names))
        weights = weights * class_weights(self.class_weight, self.classes_, labels, weights)[labels]
        seed, rows, one = self._seed(), self._rows(points), len(self.classes_) == 2
        if first:
            self._begin_streams(rows, seen)
        self.streams_ = [stream.copy() for stream in self.streams_]  # a call that fails leaves them as they were
        order = np.random.default_rng((seed, self.streams_[0].t)).permutation(len(names))
        for c, stream in enumerate(self.streams_):
            stream.see(rows, np.where(labels == c + one, 1.0, -1.0), weights, order)
        u = np.stack([stream.u for stream in self.streams_])
        self.coef_, self.intercept_ = u[:, :-1], rows.s * u[:, -1]
        self.t_ = self.streams_[0].t
        return self

    def _check_stream_classes(self, y, classes, is_known):
        """Check labels and classes of a stream; the first call sets `classes_`."""
        check_classification_targets(y)
        if not is_known:
            if classes is None:
                raise ValueError("classes must be given in the first call of partial_fit: all that there will be.")
            self.classes_ = np.unique(classes)
            if len(self.classes_) < 2:
                raise ValueError(f"classes must hold at least two classes, got {len(self.classes_)} class.")
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes must be those of the first call, {self.classes_.tolist()}, got {classes!r}.")
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y must hold labels of the first call's classes, got {unknown[:3].tolist()} as well.")

    def _begin_streams(self, rows, seen):
        """Create one stream for each weight vector, from 0 or from a fit to `seen` points."""
        N = seen or rows.n if self.stream_size is None else count(self.stream_size, "stream_size", least=1)
        lam = 1 / (number(self.C, "C", positive=True) * N)
        starts = [None] * (1 if len(self.classes_) == 2 else len(self.classes_))
        if seen:
            starts = np.column_stack([as_dense(self.coef_), self.intercept_ / (rows.s or 1.0)])
        self.streams_ = [Stream(rows.d, lam, u, seen) for u in starts]
        self.solutions_, self.n_iter_ = [], 1

    # ---- the problems; each method returns solutions, weights and intercepts

    def _solve(self, rows, signs, C, start, k):
        """Solve the k-th problem of the fit, from the k-th solution of `start`."""
        options = self._options() | self._intercept_options() | {"loss": self.loss, "penalty": self.penalty}
        options["start"] = start[k] if start is not None and len(start) > k else None
        return self._monitor.solve(functools.partial(solve_linear, rows, signs, C, **options))

    def _fit_rest(self, X, labels, C, start):
        rows, solutions = self._rows(X), []
        for c in range(1, 2) if len(self.classes_) == 2 else range(len(self.classes_)):
            solutions.append(self._solve(rows, np.where(labels == c, 1.0, -1.0), C, start, len(solutions)))
        return solutions, [s.w for s in solutions], [s.intercept for s in solutions]

    def _fit_pairs(self, X, labels, C, start):
        solutions = []
        for a, b in itertools.combinations(range(len(self.classes_)), 2):
            here = np.flatnonzero((labels == a) | (labels == b))
            signs = np.where(labels[here] == a, 1.0, -1.0)
            solutions.append(self._solve(X[here], signs, C[here], start, len(solutions)))
        return solutions, [s.w for s in solutions], [s.intercept for s in solutions]

    def _fit_together(self, X, labels, C, start):
        if self.penalty != "l2" or not self.penalize_intercept:
            raise ValueError("multi_class='crammer_singer' needs penalty='l2' and penalize_intercept=True.")
        options = self._options() | {"intercept": bool(self.fit_intercept), "intercept_scaling": self.intercept_scaling}
        options["start"] = None if start is None else start[0]
        solution = self._monitor.solve(functools.partial(solve_crammer_singer, X, labels, C, **options))
        w, b = solution.w.T, np.broadcast_to(solution.intercept, len(self.classes_))
        if len(self.classes_) == 2:
            return [solution], w[1] - w[0], [b[1] - b[0]]
        return [solution], w, b

    # ---- decisions

    @maps_collections
    @answers_in_kind
    def decision_function(self, X: PointsLike) -> Array:
        """Evaluate the decision function x.w + b at each point.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The points.

        Returns
        -------
        array of shape (n,) or (n, k)
            One value for two classes, else one for each class; for pairs of classes, votes.
        """
        check_is_fitted(self)
        return self.decision_values(self.check_points(X, reset=False))

    def decision_values(self, X: Any) -> Array:
        """Return the decision values of checked points.

        Parameters
        ----------
        X : array or CSR of shape (n, d)
            The points, as `check_points` returns them.

        Returns
        -------
        array of shape (n,) or (n, k)
            The values, as those of `decision_function`.
        """
        values, k = self.expansion(X), len(self.classes_)
        if k == 2:
            return values[:, 0]
        return votes(values, k).astype(X.dtype, copy=False) if self.multi_class == "ovo" else values

    @maps_collections
    @answers_in_kind
    def predict(self, X: PointsLike) -> Array:
        """Predict the class of each point; with a calibration, the one of the largest probability.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The points.

        Returns
        -------
        array of shape (n,)
            The classes.
        """
        check_is_fitted(self)
        if self.calibration is not None:
            return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        values = self.decision_values(self.check_points(X, reset=False))
        return self.classes_[(values > 0).astype("int64") if values.ndim == 1 else np.argmax(values, axis=1)]

    def score(self, X: PointsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of the predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The points.
        y : array-like of shape (n,)
            Their labels.
        sample_weight : array-like of shape (n,), optional
            The weights of the points.

        Returns
        -------
        float
            The share of labels that are predicted.
        """
        return score_collection(self, X, y, sample_weight, super().score)
