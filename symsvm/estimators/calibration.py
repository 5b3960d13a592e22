"""Calibration: probabilities from decision values, by cross-validation.

"sigmoid" is Platt's p = 1 / (1 + exp(A f + B)), fitted by Newton's method with the targets and the safeguards of Lin,
Lin and Weng (A note on Platt's probabilistic outputs for support vector machines, 2007); "isotonic" is the best
monotone map.
"""

import numpy as np
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import StratifiedKFold

from symsvm._lib.validation import choice

__all__ = ["CalibratedClassifier", "Calibration", "platt"]

_FOLDS = 5


class Calibration:
    """One map for each class (one for two classes), fitted to decision values of points that were held out."""

    def __init__(self, method, random_state):
        self.method = choice(method, "calibration", ("sigmoid", "isotonic"))
        self.random_state = random_state

    def fit(self, model, X, y, sample_weight):
        """Fit the maps to the decision values of `model`, trained on the other folds."""
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype="float64")
        used = np.flatnonzero(weights)
        counts = np.unique(y[used], return_counts=True)[1]
        if counts.min() < 2:
            raise ValueError("calibration needs at least two points of each class.")
        folds = StratifiedKFold(min(_FOLDS, int(counts.min())), shuffle=True, random_state=self.random_state)
        other = clone(model).set_params(calibration=None)
        if hasattr(other, "decision_function_shape"):
            other.set_params(decision_function_shape="ovr")
        k = len(model.classes_)
        values = np.zeros((len(used), 1 if k == 2 else k))
        for train, test in folds.split(np.zeros(len(used)), y[used]):
            train, test = used[train], used[test]
            rows = (
                (X[np.ix_(train, train)], X[np.ix_(test, train)])
                if getattr(model, "kernel", None) == "precomputed"
                else (X[train], X[test])
            )
            other.fit(rows[0], y[train], sample_weight=weights[train])
            values[np.searchsorted(used, test)] = other.decision_function(rows[1]).reshape(len(test), -1)
        classes = model.classes_[1:] if k == 2 else model.classes_
        self.maps = [
            self._map(values[:, c], (y[used] == name).astype("float64"), weights[used])
            for c, name in enumerate(classes)
        ]
        return self

    def _map(self, f, t, weights):
        if self.method == "sigmoid":
            return platt(f, t, weights)
        return IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(f, t, weights)

    def probabilities(self, values):
        """(n, k) from the decision values: each class's map, divided by their sum."""
        values = values.reshape(len(values), -1)
        if self.method == "sigmoid":
            p = _sigmoid(values, *np.transpose(self.maps))
        else:
            p = np.column_stack([map_.predict(values[:, c]) for c, map_ in enumerate(self.maps)])
        if len(self.maps) == 1:
            return np.column_stack([1 - p[:, 0], p[:, 0]])
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])


class CalibratedClassifier:
    """A classifier with the parameters `calibration` and `random_state`, whose probabilities are `calibration_`."""

    def calibrate(self, X, y, method=None, sample_weight=None):
        """Fit the probabilities of a fitted classifier by cross-validation; its decision function stays as it is.

        `fit` does this when `calibration` is set. Called afterwards, it adds probabilities to a classifier that was
        fitted without them. If it is interrupted, the classifier is left as it was.

        Parameters
        ----------
        X : array of shape (m, d), or CSR
            The training points.
        y : array of shape (m,)
            Their labels.
        method : {"sigmoid", "isotonic"}, optional
            The new value of the parameter `calibration`; its present value by default.
        sample_weight : array of shape (m,), optional
            The weights that the classifier was fitted with.

        Returns
        -------
        self
            The same classifier.

        Examples
        --------
        >>> from symsvm import SVC
        >>> X, y = np.array([[0.0], [0.1], [0.9], [1.0]]), np.array([0, 0, 1, 1])
        >>> SVC(random_state=0).fit(X, y).calibrate(X, y, "sigmoid").predict_proba(X).shape
        (4, 2)
        """
        method = self.calibration if method is None else method
        fitted = Calibration(method, self.random_state).fit(self, X, y, sample_weight)
        self.calibration, self.calibration_ = method, fitted
        return self


def _sigmoid(f, A, B):
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(A * f + B))


def platt(f, t, weights, *, max_iter=100):
    """The (A, B) that minimise the cross entropy of 1 / (1 + exp(A f + B)) and smoothed targets.

    >>> A, B = platt(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([0.0, 0.0, 1.0, 1.0]), np.ones(4))
    >>> A < 0, bool(abs(B) < 1e-9)
    (True, True)
    """
    positive, negative = weights @ t, weights @ (1 - t)
    target = np.where(t > 0, (positive + 1) / (positive + 2), 1 / (negative + 2))
    A, B = 0.0, float(np.log((negative + 1) / (positive + 1)))

    def loss(A, B):
        s = A * f + B
        return weights @ (np.logaddexp(0, s) - (1 - target) * s)

    value = loss(A, B)
    for _ in range(max_iter):
        p = _sigmoid(f, A, B)
        g = weights * (target - p)
        gradient = np.array([g @ f, g.sum()])
        if np.abs(gradient).max() < 1e-9 * weights.sum():
            break
        h = weights * p * (1 - p)
        hessian = np.array([[h @ (f * f) + 1e-12, h @ f], [h @ f, h.sum() + 1e-12]])
        step = -np.linalg.solve(hessian, gradient)
        t_step, slope = 1.0, gradient @ step
        while loss(A + t_step * step[0], B + t_step * step[1]) > value + 1e-4 * t_step * slope and t_step > 1e-10:
            t_step /= 2
        A, B = A + t_step * step[0], B + t_step * step[1]
        value = loss(A, B)
    return float(A), float(B)
