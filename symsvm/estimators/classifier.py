"""Classifier: what SVC and NuSVC share: problems of pairs of classes or of one against the rest, and decisions."""

import itertools

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from symsvm._lib.validation import choice
from symsvm.estimators.base import votes
from symsvm.estimators.calibration import CalibratedClassifier
from symsvm.estimators.kernel_estimator import KernelEstimator
from symsvm.estimators.weights import weighted_classes
from symsvm.solvers.decomposition.one_vs_one import solve_pairs
from symsvm.solvers.decomposition.working_set import WorkingSetReuse

__all__ = ["Classifier"]


class Classifier(CalibratedClassifier, ClassifierMixin, KernelEstimator):
    """What both classifiers do: one problem for each pair of classes, or for each class against the rest."""

    def fit(self, X, y, sample_weight=None):
        """Fit the machine to points (m, d), dense or CSR, and their labels.

        Parameters
        ----------
        sample_weight : C_i = C weight_i, or the bound weight_i of nu-SVC; a weight of 0 takes a point out.
        """
        X, y = self.check_points(X, y)
        self.classes_, used, labels, self.class_weight_, weights = self._labelled(X, y, sample_weight)
        choice(self.multi_class, "multi_class", ("ovo", "ovr", "dag"))
        choice(self.decision_function_shape, "decision_function_shape", ("ovo", "ovr"))
        if self.multi_class == "ovr" and self.decision_function_shape == "ovo" and len(self.classes_) > 2:
            raise ValueError(
                "decision_function_shape='ovo' needs multi_class='ovo' or 'dag': one-vs-rest has no pairs."
            )
        if len(used) < len(y) and self.kernel == "precomputed":
            points = X[np.ix_(used, used)]
        else:
            points = X[used] if len(used) < len(y) else X
        solve = self._rest if self.multi_class == "ovr" or len(self.classes_) == 2 else self._pairs
        coef, self.intercept_, solutions = solve(points, labels, weights)
        support = np.flatnonzero(np.any(coef != 0, axis=1))
        support = support[np.argsort(labels[support], kind="stable")]  # by class, as LIBSVM does
        self.problem_coef_ = coef[support]
        self._keep(X, used[support], solutions)
        self.n_support_ = np.bincount(labels[support], minlength=len(self.classes_)).astype("int32")
        self.dual_coef_ = self._laid_out(labels[support])
        if self.calibration is not None:
            self.calibrate(X, y, sample_weight=sample_weight)
        return self

    def _labelled(self, X, y, sample_weight):
        """What the labels and the weights come to; see `weighted_classes`."""
        return weighted_classes(X, y, sample_weight, self.class_weight)

    def _pairs(self, X, labels, weights):
        """A problem for each pair of classes: coefficients (m, pairs), intercepts, solutions."""
        k = len(self.classes_)
        order = np.argsort(labels, kind="stable")  # the points of a class side by side
        gram = self.bind(X[np.ix_(order, order)] if self.kernel == "precomputed" else X[order], weights[order])
        coef, intercepts, solutions = np.zeros((len(labels), k * (k - 1) // 2)), [], []

        def program(signs, rows):
            return self._program(signs, weights[order[rows]])

        for _, _, rows, solution in solve_pairs(gram, labels[order], program, self._solve):
            z, intercept = self._scaled(solution)
            coef[order[rows], len(solutions)] = z
            intercepts.append(intercept)
            solutions.append(solution)
        return coef, np.array(intercepts), solutions

    def _rest(self, X, labels, weights):
        """A problem for each class against the rest, over the same points; for two classes the second's is enough."""
        gram, k = self.bind(X, weights), len(self.classes_)
        if k > 2:
            gram.cache_blocks([0])
        coef, intercepts, solutions = [], [], []
        reuse = WorkingSetReuse()
        for c in range(k) if k > 2 else (1,):
            solution = self._solve(self._program(np.where(labels == c, 1.0, -1.0), weights), gram, reuse)
            z, b = self._scaled(solution)
            coef.append(z)
            intercepts.append(b)
            solutions.append(solution)
        return np.column_stack(coef), np.array(intercepts), solutions

    def _scaled(self, solution):
        """The coefficients and the intercept of a decision function."""
        return solution.lam, self._intercept_of(solution)

    # ---- layout: in pairs the first class is +1 for more than two classes, the second for two, as in scikit-learn

    def _laid_out(self, labels):
        """The coefficients as `dual_coef_`: (k - 1, support vectors) for pairs, (k, support vectors) for the rest."""
        k = len(self.classes_)
        if self.multi_class == "ovr" or k == 2:
            return np.ascontiguousarray(self.problem_coef_.T)
        self.intercept_ = -self.intercept_
        laid = np.zeros((k - 1, len(labels)))
        for column, (a, b) in enumerate(itertools.combinations(range(k), 2)):
            laid[b - 1, labels == a] = -self.problem_coef_[labels == a, column]
            laid[a, labels == b] = -self.problem_coef_[labels == b, column]
        return laid

    @property
    def decision_coef_(self):
        """One column for each problem, in the signs of `intercept_`."""
        pairs = self.multi_class != "ovr" and len(self.classes_) > 2
        return -self.problem_coef_ if pairs else self.problem_coef_

    # ---- decisions

    def decision_function(self, X):
        """f(x) for each point: (n,) for two classes, else (n, k), or (n, k (k - 1) / 2) with shape "ovo".

        For pairs of classes the (n, k) are votes, with the sum of the decision values, squashed, to break ties.
        """
        check_is_fitted(self)
        X = self.check_points(X, reset=False)
        return self.decide(X, self.decision_function_shape).astype(X.dtype, copy=False)

    def decide(self, X, shape="ovr"):
        """The decision values of checked points, a column for each class or for each pair of classes."""
        values = self.expansion(X, self.decision_coef_) + self.intercept_
        if len(self.classes_) == 2:
            return values[:, 0]
        if self.multi_class == "ovr" or shape == "ovo":
            return values
        return votes(values, len(self.classes_))

    def predict(self, X):
        """The class of each point; with a calibration, the one of the largest probability."""
        check_is_fitted(self)
        if self.calibration is not None:
            return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        X = self.check_points(X, reset=False)
        if len(self.classes_) == 2:
            return self.classes_[(self.decide(X) > 0).astype("int64")]
        if self.multi_class == "dag":
            return self.classes_[self._walk(X)]
        values = self.expansion(X, self.decision_coef_) + self.intercept_
        if self.multi_class == "ovr":
            return self.classes_[np.argmax(values, axis=1)]
        return self.classes_[np.argmax(votes(values, len(self.classes_)), axis=1)]

    def _walk(self, X):
        """The decision directed acyclic graph: each pair rules out a class, k - 1 of them a point."""
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

    @available_if(lambda self: self.calibration is not None or _say_how())
    def predict_proba(self, X):
        """The probability of each class, (n, k), from decision values calibrated by cross-validation."""
        check_is_fitted(self)
        X = self.check_points(X, reset=False)
        return self.calibration_.probabilities(self.decide(X)).astype(X.dtype, copy=False)

    @available_if(lambda self: self.calibration is not None or _say_how())
    def predict_log_proba(self, X):
        """The logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))


def _say_how():
    raise AttributeError("probabilities need calibration='sigmoid' or calibration='isotonic'.")
