"""The Lagrangian between primal and dual, and what its stationarity says (Eq. 7 to 13, 18 to 20).

`pytensor.grad` of these graphs with respect to theta, b and xi *is* Eq. 8 and Eq. 20; the tests check it.
"""

import pytensor.tensor as pt

from symsvm.objectives.primal import f0, margins

__all__ = ["lagrangian", "mu", "theta"]


def lagrangian(theta, b, lam, X, y, xi=None, mu=None, C=1.0):
    """L = f0 - sum_i lam_i (y_i (<theta, x_i> + b) - 1 + xi_i) - sum_i mu_i xi_i (Eq. 7, 18; Eq. 002:1.11).

    Without xi and mu it is the Lagrangian of the hard margin (Eq. 7; Eq. 003:14), with the -1 inside the product with
    lam_i but outside the product with y_i, as Eq. 5 demands.
    """
    if xi is None:
        return f0(theta) - (lam * margins(theta, b, X, y)).sum()
    return f0(theta, xi, C) - (lam * (margins(theta, b, X, y) + xi)).sum() - (mu * xi).sum()


def theta(lam, X, y):
    """The theta at which L is stationary, theta = sum_i lam_i y_i x_i (Eq. 8, 15; Eq. 002:1.12, 003:15, 003:25).

    x_i may be the features Phi(x_i).
    """
    return ((lam * y)[:, None] * pt.as_tensor(X)).sum(axis=0)


def mu(lam, C):
    """The multipliers of xi >= 0 at which L is stationary in xi: mu_i = C - lam_i (Eq. 20; Eq. 002:1.14).

    mu_i >= 0 is what bounds lam_i by C. Regressions have two of each (Eq. 002:2.11, 002:2.12).
    """
    return C - lam
