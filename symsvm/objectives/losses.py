"""Losses of a decision value f at a point with the label or target y, and the fit of Platt's sigmoid.

Each loss is convex in f. Where it has a kink, `pytensor.grad` returns one of its subgradients. At the margin y f = 1
the slope of the hinge is -y, that of the side with a loss (Meoli (2021) prints 0, the slope of the other side; both are
subgradients). On the border of the tube it is -sign(y - f), or 0 if the tube has no width.
"""

# PyTensor declares its elementwise functions (pt.maximum, ...) without a return type.
# pyright: reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytensor.tensor as pt

from symsvm.objectives.objective import Objective

if TYPE_CHECKING:
    from collections.abc import Callable

    from symsvm._lib.types import Graph, Scalar

__all__ = [
    "LOSSES",
    "Loss",
    "Platt",
    "epsilon_insensitive",
    "hinge",
    "perceptron_loss",
    "probability",
    "squared_epsilon_insensitive",
    "squared_hinge",
]


def hinge(y: Scalar, f: Graph) -> Graph:
    """max(0, 1 - y f), the least slack of a margin (Eq. 002:1.7, 002:1.8, 003:29).

    Its slope in f is -y where y f < 1 and 0 where y f > 1.
    """
    return pt.maximum(1 - y * f, 0)


def squared_hinge(y: Scalar, f: Graph) -> Graph:
    """max(0, 1 - y f)^2, whose slope -2 y max(0, 1 - y f) is continuous (Eq. 002:1.10)."""
    return hinge(y, f) ** 2


def epsilon_insensitive(y: Scalar, f: Graph, epsilon: Scalar) -> Graph:
    """The distance of y - f from a tube of half width epsilon, 0 inside it (Eq. 002:2.2, 002:2.3).

    ::

        max(0, |y - f| - epsilon)

    It is the least slack above and below the tube, of which one is 0 (Eq. 002:2.4). Its slope in f is -sign(y - f)
    outside the tube and 0 inside; Eq. 002:2.3 prints y - f in place of its sign.
    """
    return pt.maximum(abs(y - f) - epsilon, 0)


def perceptron_loss(y: Scalar, f: Graph) -> Graph:
    """max(0, -y f), the loss of a point on the wrong side of the hyperplane (P. Schmidt, slides)."""
    return pt.maximum(-y * f, 0)


def squared_epsilon_insensitive(y: Scalar, f: Graph, epsilon: Scalar) -> Graph:
    """The square of the epsilon-insensitive loss, whose slope is continuous (Eq. 002:2.7).

    ::

        max(0, |y - f| - epsilon)^2
    """
    return epsilon_insensitive(y, f, epsilon) ** 2


class Loss(NamedTuple):
    """A loss function, whether it is for classification, and whether it is smooth."""

    function: Callable[..., Any]
    classifies: bool
    is_smooth: bool


LOSSES = {
    "hinge": Loss(hinge, True, False),
    "squared_hinge": Loss(squared_hinge, True, True),
    "epsilon_insensitive": Loss(epsilon_insensitive, False, False),
    "squared_epsilon_insensitive": Loss(squared_epsilon_insensitive, False, True),
}


def probability(yhat: Graph, AB: Graph) -> Graph:
    """P(y = 1 | yhat) = 1 / (1 + exp(A yhat + B)) with AB = (A, B); A is negative for a useful classifier."""
    return pt.sigmoid(-(AB[0] * yhat + AB[1]))


class Platt(Objective):
    """The mean cross-entropy of Platt's sigmoid, unconstrained and convex in (A, B).

    ::

        minimise -1/m sum_i [t_i log p_i + (1 - t_i) log(1 - p_i)],    p_i = 1 / (1 + exp(A yhat_i + B))

    Parameters
    ----------
    AB : TensorVariable
        The vector (A, B).
    yhat : TensorVariable
        Decision values (n,).
    t : TensorVariable
        Labels 0 and 1 (n,).

    References
    ----------
    J. Platt, Probabilistic outputs for support vector machines, 1999.
    """

    def __init__(self, AB: Graph, yhat: Graph, t: Graph) -> None:
        s = AB[0] * yhat + AB[1]
        # -log p = softplus(s) and -log(1 - p) = softplus(-s) = softplus(s) - s, which do not overflow.
        loss = (pt.softplus(s) - (1 - t) * s).mean()
        super().__init__(loss, AB, lower=-float("inf"), upper=float("inf"), is_convex=True)
