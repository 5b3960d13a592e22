"""Losses of held-out decision values, with their gradients.

A criterion takes groups (y, f, w): labels -1 and +1 or targets, the decision values of points held out, pooled over the
folds, and weights. A classifier of two classes and a regression have one group; several classes have one for each pair
(its own points only), or for each class against the rest. With n the sum of all weights::

    loss = 1/n sum over groups, sum_i w_i l(y_i, f_i)

    "log_loss"        log(1 + exp(s)) - (1 - t) s,  s = A f + B: Platt's sigmoid, (A, B) minimise the sum of the group
    "smooth_hinge"    1/2 - t where t = y f <= 0,  1/2 (1 - t)^2 between 0 and 1,  0 from there on
    "squared_error"   (y - f)^2
    "absolute_error"  sqrt((y - f)^2 + delta^2) - delta,  delta = 1/100 of the standard deviation of y

A and B are at their minimum, so by the envelope theorem the derivative of the log loss by f is that at fixed A and B.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from symsvm.compiler.functions import function, grad
from symsvm.estimators.calibration import platt

if TYPE_CHECKING:
    from collections.abc import Callable

    from symsvm._lib.types import Array

    Group = tuple[Array, Array, Array]

__all__ = ["CLASSIFICATION", "REGRESSION", "Criterion"]

CLASSIFICATION = ("log_loss", "smooth_hinge")
REGRESSION = ("squared_error", "absolute_error")
# Half the width of the smooth part of the absolute error, in standard deviations of the targets.
_DELTA = 0.01


class Criterion:
    """The loss of held-out decision values, and its gradient.

    Parameters
    ----------
    scoring : str, callable or None
        One of the names above, None for the first of its kind; or a function of two graphs (y, f) that returns a scalar
        graph, the mean loss of a group. One of three graphs (y, f, w) has the weights as well.
    is_classifier : bool
        Whether labels are classes.
    is_weighted : bool
        Whether the points have different weights.
    """

    def __init__(self, scoring: Any, *, is_classifier: bool, is_weighted: bool = False) -> None:
        names = CLASSIFICATION if is_classifier else REGRESSION
        scoring = names[0] if scoring is None else scoring
        self._compiled: Any = None
        if callable(scoring):
            self.name = getattr(scoring, "__name__", "loss")
            self._compiled = _compile(scoring, is_weighted)
        elif scoring not in names:
            kind = "classifier" if is_classifier else "regression"
            raise ValueError(
                f"scoring of a {kind} must be {' or '.join(map(repr, names))}, or a function of graphs (y, f), "
                f"got {scoring!r}."
            )
        else:
            self.name = scoring
        self._loss: Callable[..., Any] = {
            "log_loss": _log_loss,
            "smooth_hinge": _smooth_hinge,
            "squared_error": _squared_error,
            "absolute_error": _absolute_error,
        }.get(self.name, _log_loss)

    def __call__(self, groups: list[Group]) -> tuple[float, list[Array]]:
        """Return the loss, and for each group its gradient by f."""
        n = sum(float(w.sum()) for _, _, w in groups)
        total, gradients = 0.0, []
        for y, f, w in groups:
            if self._compiled is not None:
                value, g = self._compiled(y, f, w)
                share = float(w.sum()) / n
                value, g = share * float(value), share * np.asarray(g)
            else:
                value, g = self._loss(y, f, w)
                value, g = value / n, g / n
            total += float(value)
            gradients.append(g)
        return total, gradients

    @property
    def has_unit(self) -> bool:
        """Whether the loss of a point is a negative logarithm of a probability, which a prior may be added to."""
        return self.name == "log_loss" and self._compiled is None


def _log_loss(y, f, w):
    t = (y > 0).astype("float64")
    A, B = platt(f, t, w)
    positive, negative = w @ t, w @ (1 - t)
    target = np.where(t > 0, (positive + 1) / (positive + 2), 1 / (negative + 2))
    s = A * f + B
    above = np.exp(-np.logaddexp(0, -s))  # 1 / (1 + exp(-s))
    return w @ (np.logaddexp(0, s) - (1 - target) * s), w * A * (above - (1 - target))


def _smooth_hinge(y, f, w):
    t = y * f
    inside = np.clip(1 - t, 0.0, 1.0)
    return w @ np.where(t <= 0, 0.5 - t, 0.5 * inside**2), -w * y * inside


def _squared_error(y, f, w):
    r = f - y
    return w @ r**2, 2 * w * r


def _absolute_error(y, f, w):
    mean = w @ y / w.sum()
    delta = _DELTA * (np.sqrt(w @ (y - mean) ** 2 / w.sum()) or 1.0)
    r = f - y
    root = np.hypot(r, delta)
    return w @ (root - delta), w * r / root


def _compile(loss: Callable[..., Any], is_weighted: bool) -> Callable[..., Any]:
    """The function of (y, f, w) that returns a user's loss and its gradient by f."""
    count = sum(
        p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
        for p in inspect.signature(loss).parameters.values()
    )
    if count not in (2, 3):
        raise TypeError(f"scoring must be a function of graphs (y, f) or (y, f, w), got one of {count} arguments.")
    if is_weighted and count == 2:
        raise ValueError("scoring(y, f) does not see the weights of the points: give a function of (y, f, w).")
    y, f, w = pt.dvectors("y", "f", "w")
    value: Any = loss(y, f, w) if count == 3 else loss(y, f)
    if not isinstance(value, Variable) or getattr(value, "ndim", None) != 0:
        raise TypeError(f"scoring must return a scalar graph, got {value!r}: reduce it, for example with .mean().")
    return function([y, f, w], [value, grad(value, f)])
