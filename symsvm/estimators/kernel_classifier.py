"""The base class of the kernel classifiers: one-vs-one and one-vs-rest problems, their layout, and decisions."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from symsvm.estimators.base import changes_model
from symsvm.estimators.calibration import CalibratedClassifier
from symsvm.estimators.kernel_estimator import KernelEstimator
from symsvm.estimators.kernel_source import KernelSource
from symsvm.estimators.multiclass import votes
from symsvm.estimators.spread_source import fits_collections, maps_collections, score_collection
from symsvm.solvers.decomposition.one_vs_one import solve_pairs
from symsvm.solvers.decomposition.working_set import WorkingSetReuse

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, PointsLike

__all__ = ["KernelClassifier"]


class KernelClassifier(CalibratedClassifier, ClassifierMixin, KernelEstimator):
    """A classifier over a kernel: one problem for each pair of classes, or for each class against the rest."""

    multi_class: str
    decision_function_shape: str
    class_weight: Any
    problem_coef_: Array

    _choices: ClassVar[dict[str, tuple[str, ...]]] = {
        "decision_function_shape": ("ovo", "ovr"),
        "multi_class": ("ovo", "ovr", "dag"),
    }

    @changes_model
    @fits_collections
    def fit(self, X: PointsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to points and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            The training points; for a precomputed kernel the (m, m) matrix between them.
        y : array-like of shape (m,)
            Their labels.
        sample_weight : array-like of shape (m,), optional
            The weights of the points: C_i = C weight_i, or the bound weight_i of nu-SVC. A point of weight 0 is left
            out.

        Returns
        -------
        self
            The fitted estimator.
        """
        points, names = self.check_points(X, y)
        encoded = self._source.encode_classes(self, names, sample_weight)
        self.classes_, used, labels, self.class_weight_, weights = encoded
        if self.multi_class == "ovr" and self.decision_function_shape == "ovo" and len(self.classes_) > 2:
            raise ValueError(
                "decision_function_shape='ovo' needs multi_class='ovo' or 'dag': one-vs-rest has no pairs."
            )
        used_points = points if len(used) == len(names) else self._source.take(self, points, used)
        fit = self._fit_pairs if self._has_pairs else self._fit_rest
        coef, self.intercept_, solutions = fit(used_points, labels, weights)
        support = np.flatnonzero(np.any(coef != 0, axis=1))
        support = support[np.argsort(labels[support], kind="stable")]  # by class, as LIBSVM does
        self.problem_coef_ = coef[support]
        self._store(points, used[support], solutions)
        self.n_support_ = np.bincount(labels[support], minlength=len(self.classes_)).astype("int32")
        self.dual_coef_ = self._libsvm_layout(labels[support])
        if self.calibration is not None:
            self.calibrate(points, names, sample_weight=sample_weight)
        return self

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

    @property
    def _has_pairs(self):
        """Whether there is a problem for each pair of more than two classes."""
        return self.multi_class != "ovr" and len(self.classes_) > 2

    def _fit_pairs(self, X, labels, weights):
        """Solve a problem for each pair of classes; return coefficients (m, pairs), intercepts and solutions."""
        k = len(self.classes_)
        order = np.argsort(labels, kind="stable")  # the points of a class side by side
        matrix = self._bind(self._source.take(self, X, order), weights[order])
        coef, intercepts, solutions = np.zeros((len(labels), k * (k - 1) // 2)), [], []

        def program(signs, rows):
            return self._program(signs, weights[order[rows]])

        begin_threads = self._monitor.share if self._solves_at_once else None
        for _, _, rows, solution in solve_pairs(
            matrix, labels[order], program, self._solve, begin_threads=begin_threads
        ):
            z, intercept = self._decision_terms(solution)
            coef[order[rows], len(solutions)] = z
            intercepts.append(intercept)
            solutions.append(solution)
        return coef, np.array(intercepts), solutions

    @property
    def _solves_at_once(self):
        """Whether several pairs may be solved at a time: nobody watches, and compiled loops do the work."""
        is_watched = self._monitor.is_watched or self.verbose or self.time_limit is not None
        is_local = type(self._source) is KernelSource and self.mode is None and not callable(self.kernel)
        return not is_watched and is_local and isinstance(self.solver, str) and self.solver in ("auto", "decomposition")

    def _fit_rest(self, X, labels, weights):
        """Solve a problem for each class against the rest, over the same points; for two classes the second's only."""
        matrix, k = self._bind(X, weights), len(self.classes_)
        if k > 2:
            matrix.cache_blocks([0])
        reuse = WorkingSetReuse() if k > 2 else None  # rows of one problem's working set serve the next
        coef, intercepts, solutions = [], [], []
        for c in range(k) if k > 2 else (1,):
            solution = self._solve(self._program(np.where(labels == c, 1.0, -1.0), weights), matrix, reuse)
            z, b = self._decision_terms(solution)
            coef.append(z)
            intercepts.append(b)
            solutions.append(solution)
        return np.column_stack(coef), np.array(intercepts), solutions

    def _decision_terms(self, solution):
        """The coefficients and the intercept of a problem's decision function."""
        return solution.z, self._intercept_of(solution)

    # ---- layout: the positive class is the second of two classes, but the first of each pair of several classes

    def _libsvm_layout(self, labels):
        """The coefficients as `dual_coef_`: (k - 1, support vectors) for pairs, (k, support vectors) for the rest."""
        k = len(self.classes_)
        if not self._has_pairs:
            return np.ascontiguousarray(self.problem_coef_.T)
        self.intercept_ = -self.intercept_
        coef = np.zeros((k - 1, len(labels)))
        ends = np.searchsorted(labels, np.arange(k + 1)).tolist()  # labels are in order
        part = [slice(*each) for each in itertools.pairwise(ends)]
        for column, (a, b) in enumerate(itertools.combinations(range(k), 2)):
            coef[b - 1, part[a]] = -self.problem_coef_[part[a], column]
            coef[a, part[b]] = -self.problem_coef_[part[b], column]
        return coef

    @property
    def decision_coef_(self) -> Array:
        """The coefficients of the support vectors, one column for each problem, in the signs of `intercept_`."""
        return -self.problem_coef_ if self._has_pairs else self.problem_coef_

    # ---- decisions

    @maps_collections
    def decision_function(self, X: PointsLike) -> Array:
        """Evaluate the decision function at each point.

        For pairs of classes the (n, k) values are votes, plus a squashed sum of the decision values that breaks ties.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The points.

        Returns
        -------
        array of shape (n,), (n, k) or (n, k (k - 1) / 2)
            One value for two classes, else one for each class, or for each pair with `decision_function_shape="ovo"`.
        """
        check_is_fitted(self)
        Z = self.check_points(X, reset=False)
        return self.decision_values(Z, self.decision_function_shape).astype(Z.dtype, copy=False)

    def decision_values(self, X: Any, shape: str = "ovr") -> Array:
        """Return the decision values of checked points, a column for each class or for each pair of classes."""
        values = self.expansion(X, self.decision_coef_) + self.intercept_
        if len(self.classes_) == 2:
            return values[:, 0]
        if self.multi_class == "ovr" or shape == "ovo":
            return values
        return votes(values, len(self.classes_))

    @maps_collections
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
        if "classes_" not in vars(self):
            check_is_fitted(self)
        if self.calibration is not None:
            return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        Z = self.check_points(X, reset=False)
        if len(self.classes_) > 2 and self.multi_class == "dag":
            return self.classes_[self._walk(Z)]
        values = self.decision_values(Z)
        return self.classes_[(values > 0).astype("int64") if values.ndim == 1 else np.argmax(values, axis=1)]

    def _walk(self, X):
        """Walk the decision directed acyclic graph: each decision excludes a class, with k - 1 decisions a point."""
        k = len(self.classes_)
        first, last = np.zeros(X.shape[0], dtype="int64"), np.full(X.shape[0], k - 1)
        columns = {pair: column for column, pair in enumerate(itertools.combinations(range(k), 2))}
        coef = self.decision_coef_
        for _ in range(k - 1):
            for a, b in sorted(set(zip(first.tolist(), last.tolist(), strict=True))):
                here = np.flatnonzero((first == a) & (last == b))
                column = columns[a, b]
                values = self.expansion(X[here], coef[:, column]) + self.intercept_[column]
                last[here[values >= 0]] -= 1
                first[here[values < 0]] += 1
        return first
