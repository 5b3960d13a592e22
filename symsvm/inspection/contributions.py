"""Contributions: the exact terms of a decision value.

    f(x) = b + sum_j w_j x_j          features (words) of a linear estimator
    f(x) = b + sum_j q_j K(x_j, x)    support vectors of an estimator with a kernel (Eq. 28)
    f(x) = f(r) + sum_k phi_k         features of a kernel that is a product over them: Shapley values (`shapley`)

Nothing is estimated: the terms add up to the decision value, up to rounding.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from symsvm._lib.dense import as_dense
from symsvm._lib.validation import choice, count
from symsvm.estimators import LinearSVC, LinearSVR, OneClassSVM
from symsvm.estimators.kernel_estimator import KernelEstimator
from symsvm.inspection.shapley import shapley_values
from symsvm.io.text import is_text
from symsvm.kernels import Linear

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from symsvm._lib.types import Array, Points

__all__ = ["Contributions", "Term", "contributions"]

_FEATURES, _SUPPORT_VECTORS = "features", "support vectors"


class Term(NamedTuple):
    """One term, contribution = weight * value, of a feature (by name) or a support vector (by row number).

    Attributes
    ----------
    name : str or int
        The feature or the row number.
    weight, value, contribution : float
        The numbers.
    """

    name: Any
    weight: float
    value: float
    contribution: float


@dataclass(frozen=True, eq=False)
class Contributions:
    """A decision value and its terms, the largest first: decision = intercept + the sum of `contributions`.

    The terms are w_j, x_j and w_j x_j for feature j, or q_j, K(x_j, x) and q_j K(x_j, x) for the support vector that
    was row j of the training points. For the features of a kernel that is not linear, weights are the Shapley values
    phi_k, values are 1, and `intercept` is the mean decision value of the references. Terms that are 0 are left out.

    Attributes
    ----------
    label : object
        The class that a positive decision is for: of two classes the second, of a pair the first; 1 (an inlier) for
        `OneClassSVM`; None for a regression.
    against : object
        The other class of two or of a pair; None where it is the rest.
    decision, intercept : float
        The values f(x) and b; in the place of b for Shapley values the mean of f over the references.
    names, weights, values, contributions : ndarray
        The terms.
    by : {"features", "support vectors"}
        What the terms belong to.
    probability : float or None
        The calibrated probability of `label`; None without a calibration.
    """

    label: Any
    against: Any
    decision: float
    intercept: float
    names: Array
    weights: Array
    values: Array
    contributions: Array
    by: Literal["features", "support vectors"]
    probability: float | None = None

    def __len__(self) -> int:
        """Return the number of terms."""
        return len(self.contributions)

    def top(self, n: int = 10) -> list[Term]:
        """Return the n largest terms.

        Parameters
        ----------
        n : int, default 10
            The number of terms.

        Returns
        -------
        list of Term
            The terms.
        """
        n = count(n, "n")
        columns = (self.names[:n], self.weights[:n], self.values[:n], self.contributions[:n])
        return [Term(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]

    def remainder(self, n: int = 10) -> float:
        """Return the sum of the terms that `top(n)` leaves out.

        Parameters
        ----------
        n : int, default 10
            The number of terms that `top` returns.

        Returns
        -------
        float
            The sum.
        """
        return float(self.contributions[count(n, "n") :].sum())


def contributions(
    model: BaseEstimator,
    x: ArrayLike | Points,
    *,
    label: Any = None,
    by: Literal["features", "support vectors"] | None = None,
    background: ArrayLike | Points | None = None,
) -> list[Contributions]:
    """Return the exact contributions to the decision values of a fitted model at one point.

    Parameters
    ----------
    model : estimator
        A fitted estimator of symsvm, or a pipeline that ends with one; the terms are those of the transformed point.
    x : str or array-like of shape (d,) or (1, d)
        One point: a row of numbers, or a string for a text model.
    label : object, optional
        A class, to return its decisions only.
    by : {"features", "support vectors"}, optional
        The kind of terms: features or support vectors (of an estimator with a kernel). By default features of linear
        estimators and kernels, else support vectors. The features of other kernels have exact Shapley values if the
        kernel is a product over the features, such as the RBF, or a sum of such products.
    background : array-like of shape (n, d), optional
        The references of Shapley values: points whose features stand for absent ones; the time grows with n. By default
        one reference, the mean of the support vectors.

    Returns
    -------
    list of Contributions
        One for each decision: one for two classes (for the second), for a regression or `OneClassSVM`; one for each
        class against the rest; one for each pair of classes. Everything is in float64.

    Examples
    --------
    >>> from symsvm import LinearSVC
    >>> model = LinearSVC(random_state=0).fit([[0.0, 1.0], [1.0, 1.0], [2.0, 3.0]], ["no", "no", "yes"])
    >>> (found,) = contributions(model, [2.0, 0.0])
    >>> found.label, [term.name for term in found.top(1)], len(found)
    ('yes', ['x0'], 1)
    >>> bool(abs(found.intercept + found.contributions.sum() - found.decision) < 1e-10)
    True
    """
    estimator: Any = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(estimator, LinearSVC | LinearSVR | KernelEstimator):
        found = f"{type(estimator).__name__} of {type(estimator).__module__.partition('.')[0]}"
        raise TypeError(f"contributions need an estimator of symsvm, got {found}.")
    return _contributions(model, estimator, x, label, by, background)


def _contributions(model: Any, estimator: Any, x: Any, label: Any, by: Any, background: Any) -> list[Contributions]:
    x, names = _transform(model, x)
    check_is_fitted(estimator)
    x = estimator.check_points(x, reset=False).astype("float64")
    by = _choose_kind(estimator, by)
    base = np.ravel(estimator.intercept_)
    if by == _FEATURES and not _is_linear(estimator):
        references = _references(model, estimator, background)
        base = np.mean(estimator.expansion(references, estimator.decision_coef_), axis=0) + base
        names, weights, values = _shapley_terms(estimator, x, names, references)
    elif background is not None:
        raise ValueError("background is for the features of a kernel that is not linear: leave it out.")
    else:
        names, weights, values = (_feature_terms if by == _FEATURES else _support_vector_terms)(estimator, x, names)
    rows = zip(_decision_labels(estimator), _decide(estimator, x), base, weights, strict=True)
    calibrated = getattr(estimator, "calibration_method", None) is not None
    probabilities = estimator.calibration_.probabilities(estimator.decision_values(x))[0] if calibrated else None
    found = []
    for (plus, minus, c), decision, intercept, w in rows:
        if label is None or label in (plus, minus):
            p = None if probabilities is None or c is None else float(probabilities[c])
            terms = _sort_terms(names, w, values)
            found.append(Contributions(plus, minus, float(decision), float(intercept), *terms, by, p))
    if not found:
        known = getattr(estimator, "classes_", np.array([])).tolist()
        wanted = f"one of {', '.join(map(repr, known))}" if known else "left out, since the model has no classes"
        raise ValueError(f"label must be {wanted}, got {label!r}.")
    return found


def _transform(model: Any, x: Any) -> tuple[Any, Any]:
    """Return x as the row that the final estimator gets, and the names of its features (None for x0, x1, ...)."""
    if is_text(model):
        rows = [x] if isinstance(x, str) else x
        if not isinstance(rows, list | tuple) or len(rows) != 1 or not isinstance(rows[0], str):
            raise TypeError("x must be one string, since the model is a text model.")
    elif isinstance(x, str):
        raise TypeError("x must be a row of numbers, got a string: the model is not a text model.")
    else:
        x = x if hasattr(x, "ndim") else np.asarray(x)
        rows = x if x.ndim == 2 else np.reshape(x, (1, -1))
        if rows.shape[0] != 1:
            raise ValueError(f"x must be one point, got {rows.shape[0]}.")
    if not isinstance(model, Pipeline):
        return rows, getattr(model, "feature_names_in_", None)
    steps = model[:-1]
    return steps.transform(rows), _feature_names(model, steps)


def _feature_names(model: Any, steps: Any) -> Any:
    """Return the names of the features after the steps before the final estimator; scalings do not change them."""
    if is_text(model):
        return steps[0].get_feature_names_out()
    return getattr(steps[0] if len(steps) else model[-1], "feature_names_in_", None)


def _choose_kind(estimator: Any, by: str | None) -> str:
    """Return the kind of terms, checked against what the estimator has."""
    has_kernel, linear = isinstance(estimator, KernelEstimator), _is_linear(estimator)
    if by is None:
        return _FEATURES if linear else _SUPPORT_VECTORS
    choice(by, "by", (_FEATURES, _SUPPORT_VECTORS))
    if by == _FEATURES and not linear and estimator.kernel_ is None:
        raise ValueError(
            "by='features' needs a kernel with an expression; the terms of this model are its support vectors."
        )
    if by == _SUPPORT_VECTORS and not has_kernel:
        raise ValueError(
            f"by='support vectors' needs an estimator with a kernel; {type(estimator).__name__} stores none."
        )
    return by


def _is_linear(estimator: Any) -> bool:
    """Whether f(x) is x.w + b."""
    kernel = getattr(estimator, "kernel", "linear")
    return isinstance(kernel, Linear) or (isinstance(kernel, str) and kernel == "linear")


def _references(model: Any, estimator: Any, background: Any) -> Array:
    """Return the references of Shapley values, as the estimator gets points."""
    if background is None:
        vectors = np.asarray(as_dense(estimator.support_vectors_), dtype="float64")
        return vectors.mean(axis=0, keepdims=True) if len(vectors) else np.zeros((1, estimator.n_features_in_))
    points = model[:-1].transform(background) if isinstance(model, Pipeline) else background
    return np.asarray(as_dense(estimator.check_points(points, reset=False)), dtype="float64")


def _shapley_terms(estimator: Any, x: Any, names: Any, references: Array) -> tuple[Array, Array, Array]:
    """Return names, Shapley values (decisions, terms) and ones."""
    V, coef = np.asarray(as_dense(estimator.support_vectors_), dtype="float64"), estimator.decision_coef_
    values = shapley_values(estimator.kernel_, as_dense(x)[0], references, V, coef)
    d = values.shape[1]
    return np.array([f"x{j}" for j in range(d)]) if names is None else np.asarray(names), values, np.ones(d)


def _feature_terms(estimator: Any, x: Any, names: Any) -> tuple[Array, Array, Array]:
    """Return names, w (decisions, terms) and x_j of the nonzero features."""
    W = np.atleast_2d(as_dense(estimator.coef_))
    columns, values = (x.indices, x.data) if hasattr(x, "tocsr") else (np.flatnonzero(x[0]), x[0][x[0] != 0])
    names = np.array([f"x{j}" for j in columns]) if names is None else np.asarray(names)[columns]
    return names, W[:, columns], values


def _support_vector_terms(estimator: Any, x: Any, names: Any) -> tuple[Array, Array, Array]:
    """Return row numbers, q (decisions, terms) and K(x_j, x) of the support vectors."""
    return estimator.support_, estimator.decision_coef_.T, estimator.support_kernel(x)[0]


def _decide(estimator: Any, x: Any) -> Array:
    """Return f(x) of each binary problem, computed as a prediction computes it."""
    if isinstance(estimator, KernelEstimator):
        return estimator.expansion(x, estimator.decision_coef_)[0] + estimator.intercept_
    return np.ravel(estimator.expansion(x))


def _decision_labels(estimator: Any) -> list[tuple[Any, Any, int | None]]:
    """Return for each decision the class it is for, the class against, and the index of its probability."""
    if isinstance(estimator, OneClassSVM):
        return [(1, -1, None)]
    if not hasattr(estimator, "classes_"):
        return [(None, None, None)]
    classes = estimator.classes_.tolist()
    if len(classes) == 2:
        return [(classes[1], classes[0], 1)]
    if estimator.multi_class in ("ovo", "dag"):
        return [(a, b, None) for a, b in itertools.combinations(classes, 2)]
    return [(name, None, c) for c, name in enumerate(classes)]


def _sort_terms(names: Array, weights: Array, values: Array) -> tuple[Array, Array, Array, Array]:
    """Return names, weights, values and their products by magnitude, without those that are 0."""
    products = weights * values
    order = np.argsort(-np.abs(products), kind="stable")
    order = order[products[order] != 0]
    return names[order], weights[order], values[order], products[order]
