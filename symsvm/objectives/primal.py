"""The primal problem and its Lagrangian: hyperplanes, margins, slack and stationarity (Eq. 1 to 13, 16 to 20).

`pytensor.grad` of the Lagrangian with respect to theta, b and xi is Eq. 8 and Eq. 20; the tests check it.
"""

# PyTensor declares its elementwise functions (pt.abs, ...) without a return type.
# pyright: reportOperatorIssue=false, reportReturnType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import pytensor.tensor as pt

if TYPE_CHECKING:
    from symsvm._lib.types import Graph, Scalar

__all__ = ["affine", "distance", "f0", "lagrangian", "margins", "mu", "slack", "theta"]


def affine(x: Graph, theta: Graph, b: Scalar) -> Graph:
    """The linear function y(x) = <theta, x> + b of one point or of the rows of a matrix (Eq. 1, 2; Eq. 003:2, 003:3).

    Its level set H_c(theta, b) = {x : y(x) = c} is a hyperplane with normal theta.
    """
    return (pt.as_tensor(x) * theta).sum(axis=-1) + b


def distance(theta: Graph, c: Scalar = -1.0, c2: Scalar = 1.0) -> Graph:
    """The distance between two level sets; 2 / norm(theta) is the margin (Eq. 3; Eq. 003:7).

    ::

        |c - c2| / |theta|

    >>> float(distance(pt.constant([3.0, 4.0])).eval())
    0.4
    """
    theta = pt.as_tensor(theta)
    return pt.abs(pt.as_tensor(c) - c2) / pt.sqrt((theta**2).sum())


def margins(theta: Graph, b: Scalar, X: Graph, y: Graph) -> Graph:
    """The hard constraints y_i (<theta, x_i> + b) - 1, which must not be negative (Eq. 5; Eq. 003:12, 003:16).

    For one class at a time they are Eq. 003:5, for both Eq. 003:8.
    """
    return y * affine(X, theta, b) - 1


def slack(theta: Graph, b: Scalar, X: Graph, y: Graph) -> Graph:
    """The least slack that meets y_i (<theta, x_i> + b) >= 1 - xi_i with xi_i >= 0 (Eq. 16, 19; Eq. 002:1.2, 002:1.3).

    xi_i = max(0, 1 - y_i (<theta, x_i> + b)), the hinge loss (Eq. 003:29).
    """
    return pt.maximum(-margins(theta, b, X, y), 0)


def f0(theta: Graph, xi: Scalar = 0.0, C: Scalar = 1.0) -> Graph:
    """The primal objective (Eq. 6, Eq. 003:11 without slack, Eq. 17, Eq. 002:1.5 with it).

    ::

        1/2 |theta|^2 + C sum_i xi_i
    """
    return 0.5 * (pt.as_tensor(theta) ** 2).sum() + (C * pt.as_tensor(xi)).sum()


def lagrangian(
    theta: Graph,
    b: Scalar,
    lam: Graph,
    X: Graph,
    y: Graph,
    xi: Graph | None = None,
    mu: Graph | None = None,
    C: Scalar = 1.0,
) -> Graph:
    """L = f0 - sum_i lam_i (y_i (<theta, x_i> + b) - 1 + xi_i) - sum_i mu_i xi_i (Eq. 7, 18; Eq. 002:1.11).

    Without xi and mu it is the Lagrangian of the hard margin (Eq. 7; Eq. 003:14), with the -1 inside the product with
    lam_i but outside the product with y_i, as Eq. 5 requires.
    """
    if xi is None:
        return f0(theta) - (lam * margins(theta, b, X, y)).sum()
    return f0(theta, xi, C) - (lam * (margins(theta, b, X, y) + xi)).sum() - (mu * xi).sum()


def theta(lam: Graph, X: Graph, y: Graph) -> Graph:
    """The theta at which L is stationary, theta = sum_i lam_i y_i x_i (Eq. 8, 15; Eq. 002:1.12, 003:15, 003:25).

    x_i may be the features Phi(x_i).
    """
    return ((lam * y)[:, None] * pt.as_tensor(X)).sum(axis=0)


def mu(lam: Graph, C: Scalar) -> Graph:
    """The multipliers of xi >= 0 at which L is stationary in xi: mu_i = C - lam_i (Eq. 20; Eq. 002:1.14).

    mu_i >= 0 implies lam_i <= C. Regressions have two of each (Eq. 002:2.11, 002:2.12).
    """
    return C - lam
