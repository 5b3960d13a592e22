"""The hard and the soft margin as quadratic programs over (theta, b) and the slacks: primals, by a general solver."""

import time
from dataclasses import dataclass, field, replace

import numpy as np

from symsvm._lib.validation import points
from symsvm.objectives import PrimalRisk, QuadraticProgram
from symsvm.objectives.certificate import Certificate, certify_svc
from symsvm.solvers.program import Solution
from symsvm.solvers.qp.clarabel import interior_point, only_look, reason
from symsvm.solvers.qp.primal_qp import quadratic_program

__all__ = ["Margin", "hard_margin", "soft_margin"]


@dataclass(frozen=True)
class Margin(Solution):
    """A `Solution` of a primal: lam are the multipliers of its margins.

    Attributes
    ----------
    theta, xi : the weights (d,) and the slacks (m,); both None if no hyperplane separates the points.
    """

    theta: np.ndarray | None = field(default=None, repr=False)
    xi: np.ndarray | None = field(default=None, repr=False)


def soft_margin(X, y, C, *, tol=1e-6):
    """The primal with slack as a quadratic program over (theta, b, xi) (Eq. 16, 17; Eq. 002:1.5, 003:30), a `Margin`.

    minimise 1/2 |theta|^2 + C sum_i xi_i    subject to    y_i (<theta, x_i> + b) >= 1 - xi_i,    xi_i >= 0
    """
    risk, began = PrimalRisk(X, y, C, "hinge", bias="free"), time.perf_counter()
    X, y, most, d = risk.X, risk.y, risk.C, risk.X.shape[1]
    qp = risk.dual
    found = interior_point(*quadratic_program(risk))
    theta, xi, (lam, slack) = found.v[:d], np.maximum(found.v[d + 1 :], 0.0), np.split(found.mu, 2)
    margin = y * (X @ theta + found.v[d])
    # lam_i is at 0 if the margin exceeds 1 by more than lam_i, and at C if xi_i exceeds its multiplier.
    z = y * np.where(margin - 1 > lam, 0.0, np.where(xi > slack, most, np.clip(lam, 0, most)))
    certificate = qp.certificate(X @ (X.T @ qp.start(z)), qp.start(z), tol=tol, is_psd=True)
    return _margin(found, y * qp.start(z), certificate, began, qp, theta, xi, found.v[d])


def hard_margin(X, y, *, tol=1e-6):
    """The primal without slack as a quadratic program over (theta, b) (Eq. 5, 6; Eq. 003:13), a `Margin`.

    It is the widest margin 2 / |theta| (Eq. 003:9), the shortest theta (Eq. 003:10):

        minimise 1/2 |theta|^2    subject to    y_i (<theta, x_i> + b) >= 1

    Where no hyperplane separates the points it is infeasible: `stopped` and the certificate's status say so, theta is
    None, and lam is the proof. It has lam >= 0, y.lam = 0 and sum_i lam_i y_i x_i = 0 (up to the `infeasibility` of
    the certificate) with a sum of 1 over each class: a point that is in the convex hull of both.

    >>> X, y = np.array([[-1.0], [0.5], [2.0]]), np.array([-1.0, 1.0, 1.0])
    >>> hard = hard_margin(X, y)
    >>> hard.theta.round(4).tolist(), round(hard.b, 4), hard.certificate.status
    ([1.3333], 0.3333, 'optimal')
    """
    X, began = points(X), time.perf_counter()
    qp = QuadraticProgram.c_svc(y, 1.0)
    y = -qp.p
    qp = replace(qp, lower=np.where(y > 0, 0.0, -np.inf), upper=np.where(y > 0, np.inf, 0.0))
    d = X.shape[1]
    G = np.hstack([-y[:, None] * X, -y[:, None]])
    found = interior_point(np.diag(np.r_[np.ones(d), 0.0]), np.zeros(d + 1), G, -np.ones(len(y)))
    lam = np.maximum(found.mu, 0.0)
    if found.stopped == "infeasible":
        lam = 2 * lam / lam.sum()
        outside = float(np.abs(lam @ -G).max())
        W = 0.5 * float(((lam * y) @ X) @ ((lam * y) @ X)) - lam.sum()
        proof = Certificate(W, outside, np.inf, None, None, None, None, "infeasible", tol)
        return _margin(found, lam, proof, began, qp, None, None, None)
    theta, b = found.v[:d], found.v[d]
    margin = y * (X @ theta + b)
    z = qp.start(y * np.where(margin - margin.min() > lam, 0.0, lam))
    certificate = certify_svc(y * z, X @ (X.T @ z), y, np.inf, tol=tol, is_psd=True)
    # Scaled until every margin is 1 or more, theta is feasible, and half its squared norm bounds the optimum.
    primal = 0.5 * float(theta @ theta) / margin.min() ** 2
    certificate = replace(certificate, b=float(b), primal=primal, gap=primal - certificate.dual)
    return _margin(found, y * z, certificate, began, qp, theta, np.zeros(len(y)), b)


def _margin(found, lam, certificate, began, qp, theta, xi, b):
    word = reason(found, certificate)
    b = None if b is None else float(b)
    trace = only_look(found, certificate, began)
    return Margin(lam, b, lam, word, found.n_iter, trace, lambda: certificate, qp, theta, xi)
