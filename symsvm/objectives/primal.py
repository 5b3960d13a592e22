"""The primal problem in the words of the paper: hyperplanes, margins and slack (Eq. 1 to 6, 16, 17)."""

import pytensor.tensor as pt

__all__ = ["affine", "distance", "f0", "margins", "slack"]


def affine(x, theta, b):
    """The linear function y(x) = <theta, x> + b of one point or of the rows of a matrix (Eq. 1, 2; Eq. 003:2, 003:3).

    Its level set H_c(theta, b) = {x : y(x) = c} is a hyperplane with normal theta.
    """
    return (pt.as_tensor(x) * theta).sum(axis=-1) + b


def distance(theta, c=-1.0, c2=1.0):
    """The distance |c - c2| / |theta| between two level sets; 2 / |theta| is the margin (Eq. 3; Eq. 003:7).

    >>> float(distance(pt.constant([3.0, 4.0])).eval())
    0.4
    """
    theta = pt.as_tensor(theta)
    return pt.abs(pt.as_tensor(c) - c2) / pt.sqrt((theta**2).sum())


def margins(theta, b, X, y):
    """The hard constraints y_i (<theta, x_i> + b) - 1, which must not be negative (Eq. 5; Eq. 003:12, 003:16).

    For each class by itself they are Eq. 003:5, for both Eq. 003:8.
    """
    return y * affine(X, theta, b) - 1


def slack(theta, b, X, y):
    """The least slack that meets y_i (<theta, x_i> + b) >= 1 - xi_i with xi_i >= 0 (Eq. 16, 19; Eq. 002:1.2, 002:1.3).

    xi_i = max(0, 1 - y_i (<theta, x_i> + b)), the hinge loss (Eq. 003:29).
    """
    return pt.maximum(-margins(theta, b, X, y), 0)


def f0(theta, xi=0.0, C=1.0):
    """The primal objective 1/2 |theta|^2 + C sum xi (Eq. 6, Eq. 003:11 without slack, Eq. 17, Eq. 002:1.5 with it)."""
    return 0.5 * (pt.as_tensor(theta) ** 2).sum() + (C * pt.as_tensor(xi)).sum()
