"""Contributions: what a decision is made of, term by term.

    f(x) = b + sum_j w_j x_j          features (words) of a linear machine
    f(x) = b + sum_j q_j K(x_j, x)    support vectors of a kernel machine (Eq. 28)

Nothing is estimated: the terms add up to the decision, to rounding.
"""

import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from symsvm._lib.validation import choice, count
from symsvm.estimators import LinearSVC, LinearSVR, OneClassSVM
from symsvm.estimators.kernel_estimator import KernelEstimator
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.io.text import is_text
from symsvm.kernels import Linear

__all__ = ["Contributions", "Term", "contributions"]

_BY = ("features", "support vectors")


class Term(NamedTuple):
    """One term: contribution = weight * value, of a feature by its name or of a support vector by its row number."""

    name: Any
    weight: float
    value: float
    contribution: float


@dataclass(frozen=True, eq=False)
class Contributions:
    """A decision and its terms, the largest first: decision = intercept + the sum of `contributions`.

    Attributes
    ----------
    label : what a positive decision speaks for: a class, or the first of the two classes of a pair; 1 (an inlier) of a
        one-class machine; None of a regression.
    against : the other class of two or of a pair; None where it is the rest.
    decision, intercept : f(x) and b.
    names, weights, values, contributions : of the terms: w_j, x_j and w_j x_j for feature j, or q_j, K(x_j, x) and
        q_j K(x_j, x) for the support vector that was row j of the training points. Terms that are 0 are left out.
    by : "features" or "support vectors".
    probability : the calibrated probability of `label`, None where there is none.
    """

    label: Any
    against: Any
    decision: float
    intercept: float
    names: np.ndarray
    weights: np.ndarray
    values: np.ndarray
    contributions: np.ndarray
    by: str
    probability: float | None = None

    def __len__(self):
        """The number of terms."""
        return len(self.contributions)

    def top(self, n=10):
        """The n largest terms, a list of `Term`."""
        n = count(n, "n")
        columns = (self.names[:n], self.weights[:n], self.values[:n], self.contributions[:n])
        return [Term(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]

    def remainder(self, n=10):
        """The sum of the terms that `top(n)` leaves out."""
        return float(self.contributions[count(n, "n") :].sum())


def contributions(model, x, *, label=None, by=None):
    """The exact contributions to the decisions of a fitted model at one point.

    Parameters
    ----------
    model : an estimator, or a pipeline that ends with one; terms are of what its other steps make of x.
    x : one point: a row of numbers, or a string for a model of texts.
    label : a class, where only its decisions are wanted.
    by : "features" (of a linear machine or kernel) or "support vectors" (of a kernel machine); None for the first of
        them that the model has.

    Returns
    -------
    a list with a `Contributions` for each decision: one for two classes (for the second), a regression or a one-class
    machine; one a class for each class against the rest; one a pair for pairs of classes. Everything in float64.

    >>> from symsvm import LinearSVC
    >>> model = LinearSVC(random_state=0).fit([[0.0, 1.0], [1.0, 1.0], [2.0, 3.0]], ["no", "no", "yes"])
    >>> (found,) = contributions(model, [2.0, 0.0])
    >>> found.label, [term.name for term in found.top(1)], len(found)
    ('yes', ['x0'], 1)
    >>> bool(abs(found.intercept + found.contributions.sum() - found.decision) < 1e-10)
    True
    """
    machine = model[-1] if isinstance(model, Pipeline) else model
    if not isinstance(machine, LinearSVC | LinearSVR | KernelEstimator):
        found = f"{type(machine).__name__} of {type(machine).__module__.partition('.')[0]}"
        raise TypeError(f"contributions need an estimator of symsvm, got {found}.")
    x, names = _seen(model, x)
    check_is_fitted(machine)
    x = machine.check_points(x, reset=False).astype("float64")
    by = _way(machine, by)
    names, weights, values, decisions = (_of_features if by == "features" else _of_vectors)(machine, x, names)
    rows = zip(_sides(machine), decisions, np.ravel(machine.intercept_), weights, strict=True)
    calibrated = getattr(machine, "calibration", None) is not None
    probabilities = machine.calibration_.probabilities(machine.decide(x))[0] if calibrated else None
    found = []
    for (plus, minus, c), decision, intercept, w in rows:
        if label is None or label in (plus, minus):
            p = None if probabilities is None or c is None else float(probabilities[c])
            terms = _largest_first(names, w, values)
            found.append(Contributions(plus, minus, float(decision), float(intercept), *terms, by, p))
    if not found:
        known = getattr(machine, "classes_", np.array([])).tolist()
        wanted = f"one of {', '.join(map(repr, known))}" if known else "left out, for the model has no classes"
        raise ValueError(f"label must be {wanted}, got {label!r}.")
    return found


def _seen(model, x):
    """The one row that the last step sees, and the names of its features (None for x0, x1, ...)."""
    if is_text(model):
        rows = [x] if isinstance(x, str) else x
        if not isinstance(rows, list | tuple) or len(rows) != 1 or not isinstance(rows[0], str):
            raise TypeError("x must be one string, for the model is one of texts.")
    elif isinstance(x, str):
        raise TypeError("x must be a row of numbers, got a string: the model is not one of texts.")
    else:
        x = x if hasattr(x, "ndim") else np.asarray(x)
        rows = x if x.ndim == 2 else np.reshape(x, (1, -1))
        if rows.shape[0] != 1:
            raise ValueError(f"x must be one point, got {rows.shape[0]}.")
    if not isinstance(model, Pipeline):
        return rows, getattr(model, "feature_names_in_", None)
    before = model[:-1]
    return before.transform(rows), _names(model, before)


def _names(model, before):
    """What the steps before the machine call its features; scalings leave the names as they are."""
    if is_text(model):
        return before[0].get_feature_names_out()
    return getattr(before[0] if len(before) else model[-1], "feature_names_in_", None)


def _way(machine, by):
    """What terms there are of."""
    is_kernel = isinstance(machine, KernelEstimator)
    linear = not is_kernel or machine.kernel == "linear" or isinstance(machine.kernel, Linear)
    by = choice(by, "by", _BY) if by is not None else _BY[0] if linear else _BY[1]
    if by == _BY[0] and not linear:
        raise ValueError("by='features' needs a linear machine or kernel: this one's terms are its support vectors.")
    if by == _BY[1] and not is_kernel:
        raise ValueError(f"by='support vectors' needs a kernel machine: {type(machine).__name__} keeps none.")
    return by


def _of_features(machine, x, names):
    """Names, w (decisions, terms), x_j, and the decisions as the machine makes them."""
    W = np.atleast_2d(machine.coef_)
    columns, values = (x.indices, x.data) if hasattr(x, "tocsr") else (np.flatnonzero(x[0]), x[0][x[0] != 0])
    names = np.array([f"x{j}" for j in columns]) if names is None else np.asarray(names)[columns]
    return names, W[:, columns], values, _decisions(machine, x)


def _of_vectors(machine, x, names):
    """Row numbers of the support vectors, q (decisions, terms), K(x_j, x), and the decisions."""
    if machine.kernel_ is None:
        K = x if machine.kernel == "precomputed" else np.asarray(machine.kernel(x, machine.X_fit_))
        values = K[0, machine.support_]
    elif len(machine.support_):
        values = KernelEvaluator(machine.kernel_, mode=machine.mode).block(x, machine._vectors())[0]
    else:
        values = np.empty(0)
    return machine.support_, machine.decision_coef_.T, values, _decisions(machine, x)


def _decisions(machine, x):
    """f(x) of each problem, by the way that predictions go."""
    if isinstance(machine, KernelEstimator):
        return machine.expansion(x, machine.decision_coef_)[0] + machine.intercept_
    return np.ravel(machine.expansion(x))


def _sides(machine):
    """For each decision what it speaks for, what against, and the class whose probability is its own."""
    if isinstance(machine, OneClassSVM):
        return [(1, -1, None)]
    if not hasattr(machine, "classes_"):
        return [(None, None, None)]
    classes = machine.classes_.tolist()
    if len(classes) == 2:
        return [(classes[1], classes[0], 1)]
    if machine.multi_class in ("ovo", "dag"):
        return [(a, b, None) for a, b in itertools.combinations(classes, 2)]
    return [(name, None, c) for c, name in enumerate(classes)]


def _largest_first(names, weights, values):
    """Names, weights, values and their products, by magnitude; without those that are 0."""
    products = weights * values
    order = np.argsort(-np.abs(products), kind="stable")
    order = order[products[order] != 0]
    return names[order], weights[order], values[order], products[order]
