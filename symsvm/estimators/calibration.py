"""Probabilities from decision values, fitted by cross-validation.

"sigmoid" is Platt's p = 1 / (1 + exp(A f + B)), fitted by Newton's method with the targets and the safeguards of Lin,
Lin and Weng (A note on Platt's probabilistic outputs for support vector machines, 2007). "isotonic" is the best
monotone map.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from symsvm._lib.validation import choice, refuse_masked
from symsvm.estimators.base import changes_model, sample_weights
from symsvm.estimators.containers import answers_in_kind

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, Points, PointsLike

__all__ = ["CalibratedClassifier", "Calibration", "platt"]

# Folds of the cross-validation, or the size of the smallest class where that is less.
_FOLDS = 5
# Newton's method: the norm of the gradient, for each unit of weight, at which it stops; what is added to the diagonal
# of the Hessian; the decrease that a step must reach, as a share of the linear one; and the shortest step.
_GRADIENT_TOL, _RIDGE, _DECREASE, _SHORTEST = 1e-9, 1e-12, 1e-4, 1e-10


class Calibration:
    """One map for each class (one for two classes), fitted to decision values of points held out.

    Attributes
    ----------
    method : {"sigmoid", "isotonic"}
        The kind of map.
    random_state : int or RandomState, optional
        The seed of the folds.
    maps : list
        The (A, B) of each sigmoid, or each `IsotonicRegression`.
    """

    def __init__(self, method: Literal["sigmoid", "isotonic"], random_state: Any) -> None:
        self.method = choice(method, "calibration", ("sigmoid", "isotonic"))
        self.random_state = random_state

    maps: list[Any]

    def fit(self, model: Any, X: Any, y: Array, sample_weight: ArrayLike | None) -> Self:
        """Fit the maps to decision values of clones of `model`, each trained on the other folds."""
        from sklearn.model_selection import StratifiedKFold  # slow to import

        weights = sample_weights(sample_weight, len(y))
        used = np.flatnonzero(weights)
        _, of, counts = np.unique(y[used], return_inverse=True, return_counts=True)
        alone = counts[of] < 2
        if alone.any() and (model.calibration is not None or alone.all()):
            raise ValueError("calibration needs at least two points of each class.")
        held_out = np.flatnonzero(~alone)
        least = min(_FOLDS, int(counts[counts > 1].min()))
        folds = StratifiedKFold(least, shuffle=True, random_state=self.random_state)
        other: Any = clone(model)
        other.set_params(**_without_calibration(model))
        vars(other).pop("_skl_callbacks", None)  # those are of the fit to all points
        if hasattr(other, "decision_function_shape"):
            other.set_params(decision_function_shape="ovr")
        k = len(model.classes_)
        values = np.zeros((len(used), 1 if k == 2 else k))
        if alone.any():
            values[alone] = _values_of_lone_points(model, X, used[alone])
        for _, test in folds.split(held_out, y[used[held_out]]):
            test = used[held_out[test]]
            train = np.setdiff1d(used, test)
            rows = (
                (X[np.ix_(train, train)], X[np.ix_(test, train)])
                if getattr(model, "kernel", None) == "precomputed"
                else (X[train], X[test])
            )
            other.fit(rows[0], y[train], sample_weight=weights[train])
            values[np.searchsorted(used, test)] = other.decision_function(rows[1]).reshape(len(test), -1)
        classes = model.classes_[1:] if k == 2 else model.classes_
        self.maps = [
            self._fit_map(values[:, c], (y[used] == name).astype("float64"), weights[used])
            for c, name in enumerate(classes)
        ]
        return self

    def _fit_map(self, f, t, weights):
        if self.method == "sigmoid":
            return platt(f, t, weights)
        from sklearn.isotonic import IsotonicRegression

        return IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(f, t, weights)

    def probabilities(self, values: Array) -> Array:
        """Return the (n, k) probabilities of decision values: each class's map, divided by their sum."""
        values = values.reshape(len(values), -1)
        if self.method == "sigmoid":
            p = _sigmoid(values, *np.transpose(self.maps))
        else:
            p = np.column_stack([map_.predict(values[:, c]) for c, map_ in enumerate(self.maps)])
        if len(self.maps) == 1:
            return np.column_stack([1 - p[:, 0], p[:, 0]])
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])


def _without_calibration(model):
    """The parameters of a clone without probabilities."""
    return {"calibration": None} | ({"probability": "deprecated"} if hasattr(model, "probability") else {})


def _values_of_lone_points(model, X, rows):
    """The decision values of the only points of their classes, which cannot be held out: from the fit to all points."""
    names = model.classes_
    warnings.warn(
        f"{len(rows)} of the {len(names)} classes have one point each, which cannot be held out: their probabilities "
        "rest on the fit that includes it.",
        stacklevel=2,
    )
    return model.decision_values(X[rows]).reshape(len(rows), -1)


def _has_probabilities(model):
    if model.calibration_method is None:
        raise AttributeError("probabilities need calibration='sigmoid' or calibration='isotonic'.")
    return True


class CalibratedClassifier:
    """A mixin of classifiers with the parameters `calibration` and `random_state`: probabilities in `calibration_`."""

    calibration: Any
    random_state: Any
    classes_: Array
    calibration_: Calibration

    @property
    def calibration_method(self) -> Literal["sigmoid", "isotonic"] | None:
        """The method of the probabilities: `calibration`, or "sigmoid" with scikit-learn's `probability=True`."""
        probability = getattr(self, "probability", None)
        if self.calibration is None and isinstance(probability, bool | np.bool_) and probability:
            return "sigmoid"
        return self.calibration

    if TYPE_CHECKING:  # methods of the classifiers

        def check_points(self, X: Any, *y: Any, **options: Any) -> Any: ...
        def decision_values(self, X: Any) -> Array: ...

    @changes_model
    def calibrate(
        self,
        X: Points,
        y: ArrayLike,
        method: Literal["sigmoid", "isotonic"] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the probabilities of a fitted classifier by cross-validation; its decision function stays as it is.

        `fit` does this when `calibration` is set. Called afterwards, it adds probabilities to a classifier that was
        fitted without them. If it is interrupted, the classifier is left as it was.

        Parameters
        ----------
        X : array or CSR matrix of shape (m, d)
            The training points.
        y : array-like of shape (m,)
            Their labels.
        method : {"sigmoid", "isotonic"}, optional
            The new value of the parameter `calibration`; its present value by default.
        sample_weight : array-like of shape (m,), optional
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
        refuse_masked(y, "y")
        kind: Any = self.calibration_method if method is None else method
        fitted = Calibration(kind, self.random_state).fit(self, X, np.asarray(y), sample_weight)
        self.calibration = self.calibration if method is None else method
        self.calibration_ = fitted
        return self

    @available_if(_has_probabilities)
    @answers_in_kind
    def predict_proba(self, X: PointsLike) -> Array:
        """Predict the probability of each class, from decision values calibrated by cross-validation.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The points.

        Returns
        -------
        array of shape (n, k)
            The probabilities, a column for each class.
        """
        check_is_fitted(self)
        if "calibration_" not in vars(self):
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False: call calibrate(X, y), or fit again."
            )
        Z = self.check_points(X, reset=False)
        return self.calibration_.probabilities(self.decision_values(Z)).astype(Z.dtype, copy=False)

    @available_if(_has_probabilities)
    @answers_in_kind
    def predict_log_proba(self, X: PointsLike) -> Array:
        """Predict the logarithm of the probability of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            The points.

        Returns
        -------
        array of shape (n, k)
            The logarithms, a column for each class.
        """
        return np.log(self.predict_proba(X))


def _sigmoid(f, A, B):
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(A * f + B))


def platt(f: Array, t: Array, weights: Array, *, max_iter: int = 100) -> tuple[float, float]:
    """Return the (A, B) that minimise the cross entropy of 1 / (1 + exp(A f + B)) and smoothed targets.

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
        if np.abs(gradient).max() < _GRADIENT_TOL * weights.sum():
            break
        h = weights * p * (1 - p)
        hessian = np.array([[h @ (f * f) + _RIDGE, h @ f], [h @ f, h.sum() + _RIDGE]])
        step = -np.linalg.solve(hessian, gradient)
        length, slope = 1.0, gradient @ step
        while loss(A + length * step[0], B + length * step[1]) > value + _DECREASE * length * slope:
            if length <= _SHORTEST:
                break
            length /= 2
        A, B = A + length * step[0], B + length * step[1]
        value = loss(A, B)
    return float(A), float(B)
