"""The hard and the soft margin: primals over (theta, b) and the slacks, by a general solver for quadratic programs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm._lib.validation import points
from symsvm.objectives import PrimalRisk, QuadraticProgram
from symsvm.objectives.certificate import Certificate, certify_svc
from symsvm.solvers.qp.quadratic_programming import (
    QPResult,
    final_trace,
    interior_point,
    primal_quadratic_program,
    stop_reason,
)
from symsvm.solvers.solution import Solution

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array

__all__ = ["Margin", "hard_margin", "soft_margin"]


@dataclass(frozen=True)
class Margin(Solution):
    """A `Solution` of a primal; lam are the multipliers of its margins.

    Attributes
    ----------
    theta, xi : the weights (d,) and the slacks (m,); both None if no hyperplane separates the points.
    """

    theta: np.ndarray | None = field(default=None, repr=False)
    xi: np.ndarray | None = field(default=None, repr=False)


def soft_margin(X: ArrayLike, y: ArrayLike, C: float, *, tol: float = 1e-6) -> Margin:
    """Solve the primal with slack as a quadratic program over (theta, b, xi) (Eq. 16, 17; Eq. 002:1.5, 003:30).

    ::

        minimise 1/2 |theta|^2 + C sum_i xi_i    subject to    y_i (<theta, x_i> + b) >= 1 - xi_i,    xi_i >= 0

    Parameters
    ----------
    X : array_like
        The points (m, d).
    y : array_like
        Two labels, one per point.
    C : float
        The cost of a slack.
    tol : float
        The largest KKT violation that the certificate calls optimal.

    Returns
    -------
    Margin
        A `Solution` with theta and xi.
    """
    risk, began = PrimalRisk(X, y, C, "hinge", bias="free"), time.perf_counter()
    X, y, most, d = risk.X, risk.y, risk.C, risk.X.shape[1]
    qp = risk.dual
    result = interior_point(*primal_quadratic_program(risk))
    theta, xi, (lam, slack) = result.v[:d], np.maximum(result.v[d + 1 :], 0.0), np.split(result.mu, 2)
    margin = y * (X @ theta + result.v[d])
    # lam_i is at 0 if the margin exceeds 1 by more than lam_i, and at C if xi_i exceeds its multiplier.
    z = y * np.where(margin - 1 > lam, 0.0, np.where(xi > slack, most, np.clip(lam, 0, most)))
    certificate = qp.certificate(X @ (X.T @ qp.start(z)), qp.start(z), tol=tol, is_psd=True)
    return _margin(result, y * qp.start(z), certificate, began, qp, theta, xi, result.v[d])


def hard_margin(X: ArrayLike, y: ArrayLike, *, tol: float = 1e-6) -> Margin:
    """Solve the primal without slack as a quadratic program over (theta, b) (Eq. 5, 6; Eq. 003:13).

    It has the widest margin 2 / norm(theta) (Eq. 003:9), the shortest theta (Eq. 003:10)::

        minimise 1/2 |theta|^2    subject to    y_i (<theta, x_i> + b) >= 1

    Where no hyperplane separates the points the problem is infeasible: `stopped` and the certificate's status say so,
    theta is None, and lam is the proof. It has lam >= 0, y.lam = 0 and sum_i lam_i y_i x_i = 0 (up to the
    `infeasibility` of the certificate) with a sum of 1 over each class: a point in the convex hulls of both.

    Parameters
    ----------
    X : array_like
        The points (m, d).
    y : array_like
        Two labels, one per point.
    tol : float
        The largest KKT violation that the certificate calls optimal.

    Returns
    -------
    Margin
        A `Solution` with theta and xi.

    Examples
    --------
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
    result = interior_point(np.diag(np.r_[np.ones(d), 0.0]), np.zeros(d + 1), G, -np.ones(len(y)))
    lam = np.maximum(result.mu, 0.0)
    if result.stopped == "infeasible":
        lam = 2 * lam / lam.sum()
        outside = float(np.abs(lam @ -G).max())
        W = 0.5 * float(((lam * y) @ X) @ ((lam * y) @ X)) - lam.sum()
        proof = Certificate(W, outside, np.inf, None, None, None, None, "infeasible", tol)
        return _margin(result, lam, proof, began, qp, None, None, None)
    theta, b = result.v[:d], result.v[d]
    margin = y * (X @ theta + b)
    z = qp.start(y * np.where(margin - margin.min() > lam, 0.0, lam))
    certificate = certify_svc(y * z, X @ (X.T @ z), y, np.inf, tol=tol, is_psd=True)
    # Scaled until every margin is 1 or more, theta is feasible, and half its squared norm bounds the optimum.
    primal = 0.5 * float(theta @ theta) / margin.min() ** 2
    certificate = replace(certificate, b=float(b), primal=primal, gap=primal - certificate.dual)
    return _margin(result, y * z, certificate, began, qp, theta, np.zeros(len(y)), b)


def _margin(
    result: QPResult,
    lam: Array,
    certificate: Certificate,
    began: float,
    qp: QuadraticProgram,
    theta: Array | None,
    xi: Array | None,
    b: Any,
) -> Margin:
    stopped, trace = stop_reason(result, certificate), final_trace(result, certificate, began)
    b = None if b is None else float(b)
    more = {"program": qp, "theta": theta, "xi": xi}
    return Margin(lam, b, lam, stopped, result.n_iter, trace, lambda: certificate, **more)
