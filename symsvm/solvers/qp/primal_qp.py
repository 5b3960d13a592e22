"""PrimalQP: the regularised risk of a linear machine as a quadratic program over its weights and slacks.

minimise R(v) + sum_i C_i xi_i    (C_i xi_i^2 for a squared loss)
subject to    y_i f(x_i) >= 1 - xi_i,    or    |y_i - f(x_i)| <= epsilon + xi_i,    and    xi_i >= 0
"""

import time

import numpy as np
from scipy import sparse

from symsvm.objectives.certificate import Certificate
from symsvm.solvers.program import Solution, checked_run
from symsvm.solvers.qp.clarabel import interior_point, only_look, reason

__all__ = ["PrimalQP", "check_alone", "quadratic_program"]


def quadratic_program(risk):
    """(P, q, G, h) of minimise 1/2 u.Pu + q.u subject to G u <= h over u = (v, xi), for a `PrimalRisk`.

    The first rows of G are the margins (Eq. 16, 17; Eq. 003:30); regressions have those above the tube and those below
    it (Eq. 002:2.5).
    """
    X, y, C = risk.features(risk.X), risk.y, risk.C
    m, n = X.shape
    sides = [(-y[:, None] * X, -np.ones(m))] if risk.classifies else [(-X, risk.epsilon - y), (X, risk.epsilon + y)]
    slack = -sparse.eye(m)
    G, h = [sparse.hstack([rows, slack]) for rows, _ in sides], [limits for _, limits in sides]
    if risk.is_smooth:  # C xi^2 keeps xi from growing and from falling below 0
        costs, q = np.r_[risk.convexity, 2 * C], np.zeros(n + m)
    else:
        costs, q = np.r_[risk.convexity, np.zeros(m)], np.r_[np.zeros(n), C]
        G, h = [*G, sparse.hstack([sparse.csc_matrix((m, n)), slack])], [*h, np.zeros(m)]
    return sparse.diags(costs), q, sparse.vstack(G), np.concatenate(h)


class PrimalQP:
    """A `PrimalRisk` and `QuadraticProgramming`; see `compile`.

    The certificate's gap is between P of the weights and the dual objective of the multipliers, moved into their
    bounds and onto their total.
    """

    def __init__(self, objective, solver, *, mode=None, memory=None, dtype=None):
        if dtype not in (None, "float64"):
            raise ValueError(f"{solver!r} computes in float64: leave dtype out, got {dtype!r}.")
        self.objective, self.solver = objective, solver

    def run(self, start=None, *, tol=1e-3, max_iter=None, time_limit=None, callback=None):
        """Solve, and return a `Solution`; `max_iter` and `time_limit` are those of the interior-point method."""
        check_alone(start, callback)
        tol, max_iter, time_limit = checked_run(tol, max_iter, time_limit, callback)
        began, risk = time.perf_counter(), self.objective
        found = interior_point(*quadratic_program(risk), max_iter=max_iter, time_limit=time_limit)
        v, m = found.v[: len(risk.convexity)], len(risk.y)
        certificate = self._certificate(v, found.mu[: m if risk.classifies else 2 * m], tol)
        trace = only_look(found, certificate, began)
        word = reason(found, certificate)
        return Solution(v, certificate.b, v, word, found.n_iter, trace, lambda: certificate, risk.dual)

    def _certificate(self, v, mu, tol):
        risk, qp = self.objective, self.objective.dual
        P = risk.at(v)
        z = qp.start(np.where(qp.upper > 0, mu, -mu) if not risk.classifies else risk.y * mu)
        X = risk.features(risk.X) if risk.bias == "embedded" else risk.X
        D = -qp.value(X @ (X.T @ qp.weights(z)), z)
        gap = max(P - D, 0.0)
        b = None if risk.bias is None else float(v[-1])
        violation = gap / P if gap else 0.0
        word = "diverged" if not np.isfinite(P) else "optimal" if violation <= tol else "feasible"
        return Certificate(P, 0.0, violation, b, P, D, gap, word, tol)


def check_alone(start, callback):
    """An interior-point method goes its own way."""
    if start is not None or callback is not None:
        raise TypeError("qp takes neither a start nor a callback: an interior-point method goes its own way.")
