"""Losses of a decision value f at a point with the label or target y: what a primal objective sums.

Each is convex in f. Where one has a kink, `pytensor.grad` answers with one of its subgradients: at a margin y f = 1 the
slope of the hinge is that of the side that pays, -y (the seed prints 0, the slope of the other side; both are right),
and on the border of the tube it is likewise -sign(y - f), or 0 where the tube has no width. Any of them will do.
"""

import pytensor.tensor as pt

__all__ = ["LOSSES", "epsilon_insensitive", "hinge", "perceptron_loss", "squared_epsilon_insensitive", "squared_hinge"]


def hinge(y, f):
    """max(0, 1 - y f), the least slack of a margin (Eq. 002:1.7, 002:1.8, 003:29).

    Its slope in f is -y where y f < 1 and 0 where y f > 1.
    """
    return pt.maximum(1 - y * f, 0)


def squared_hinge(y, f):
    """max(0, 1 - y f)^2, whose slope -2 y max(0, 1 - y f) has no jump (Eq. 002:1.10)."""
    return hinge(y, f) ** 2


def epsilon_insensitive(y, f, epsilon):
    """max(0, |y - f| - epsilon), nothing inside a tube of half width epsilon (Eq. 002:2.2, 002:2.3).

    It is the least slack above and below the tube, of which one is 0 (Eq. 002:2.4).

    Its slope in f is -sign(y - f) outside the tube and 0 inside; the seed's Eq. 002:2.3 has y - f for its sign.
    """
    return pt.maximum(abs(y - f) - epsilon, 0)


def perceptron_loss(y, f):
    """max(0, -y f), what a point on the wrong side costs a perceptron (seed 004)."""
    return pt.maximum(-y * f, 0)


def squared_epsilon_insensitive(y, f, epsilon):
    """max(0, |y - f| - epsilon)^2, whose slope has no jump (Eq. 002:2.7)."""
    return epsilon_insensitive(y, f, epsilon) ** 2


# name -> (loss, whether it is a classifier's, whether it is smooth)
LOSSES = {
    "hinge": (hinge, True, False),
    "squared_hinge": (squared_hinge, True, True),
    "epsilon_insensitive": (epsilon_insensitive, False, False),
    "squared_epsilon_insensitive": (squared_epsilon_insensitive, False, True),
}
