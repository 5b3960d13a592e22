"""Quadratic programming: duals and margins by a general interior-point method, Clarabel's; the independent reference.

minimise 1/2 v.Pv + q.v    subject to    A v = b,    G v <= h
"""

import time
from dataclasses import dataclass, field, replace

import numpy as np

from symsvm.certificate import Certificate, certify_svc
from symsvm.gram import Gram
from symsvm.objectives import csvc
from symsvm.program import Info, Solution, checked_run, traced, values_of
from symsvm.solvers.card import Card
from symsvm.solvers.dual_program import DualProgram
from symsvm.validation import points

__all__ = ["Margin", "QuadraticProgramming", "hard_margin", "interior_point", "soft_margin"]


class QuadraticProgramming:
    """The whole dual at once, by a general solver for quadratic programs.

        minimise 1/2 z.(K + D) z + p.z    subject to    lower <= z <= upper,    sum of z over group g = total_g

    It knows nothing of support vector machines, so it is what the others are compared with. The matrix must fit the
    memory, a run costs some twenty factorisations of it, and K must be positive semi-definite. An interior point is
    never at a bound; variables whose multiplier outweighs their distance to it are put there, and the certificate is
    of the point that results. Needs `pip install symsvm[qp]`.

    References
    ----------
    P. Goulart, Y. Chen, Clarabel: an interior-point solver for conic programs with quadratic objectives,
    arXiv:2405.12762.
    """

    card = Card(
        name="qp",
        problems=("dual", "smooth"),
        backends=("numba",),
        equation="Newton's method on the KKT conditions, with z_i mu_i = t -> 0 for every bound",
        reference="seed 004, hard and soft margin as QP; Goulart and Chen (2024)",
        accuracy="a KKT violation near 1e-8 of the gradient's size; of a smooth W, only a quadratic one",
    )

    def program(self, objective, solver, **options):
        """What `compile` returns."""
        return _WholeProgram(objective, solver, **options)

    def __repr__(self):
        return "QuadraticProgramming()"


class _WholeProgram(DualProgram):
    """A quadratic dual and its whole matrix; see `compile`."""

    def run(self, start=None, *, tol=1e-3, max_iter=None, time_limit=None, callback=None, **data):
        """Solve, and return a `Solution`; `max_iter` and `time_limit` are those of the interior-point method."""
        if start is not None or callback is not None:
            raise TypeError("qp takes neither a start nor a callback: an interior-point method goes its own way.")
        tol, max_iter, time_limit = checked_run(tol, max_iter, time_limit, callback)
        began = time.perf_counter()
        dual, factor = self._source.dual(*self._evaluate(*values_of(self.inputs, data)))
        qp, every, K = dual.program, np.arange(dual.program.m), np.empty((dual.program.m,) * 2)
        Gram(dual.kernel, dual.X, mode=self.mode).block(every, every, K)
        H = K[np.ix_(qp.point, qp.point)] + np.diag(qp.diagonal)
        _check(H, dual.is_convex)
        eye = np.eye(qp.n)
        below, above = np.isfinite(qp.upper), np.isfinite(qp.lower)
        G, h = np.concatenate([eye[below], -eye[above]]), np.concatenate([qp.upper[below], -qp.lower[above]])
        A = (qp.group == np.arange(len(qp.total))[:, None]).astype("float64")
        # In units in which variables and gradient are of the size of 1.
        widest, size, slope = (float(np.abs(v).max(initial=0.0)) or 1.0 for v in (h, H, qp.p))
        unit = min(widest, slope / size) if qp.p.any() else widest
        limits = {"max_iter": max_iter, "time_limit": time_limit}
        found = interior_point(H * unit / slope, qp.p / slope, A, qp.total / unit, G, h / unit, **limits)
        mu = np.zeros((2, qp.n))  # the multipliers of the upper and the lower bounds
        mu[0, below], mu[1, above] = np.split(found.mu, [below.sum()])
        z = _settled(qp, unit * found.v, unit * mu)
        certificate = qp.certificate(K @ qp.weights(z), z, tol=tol, is_psd=dual.is_convex)
        lam = factor * z
        word = _word(found, certificate)
        trace = _trace(found, certificate, began)
        return Solution(lam, certificate.b, lam, word, found.n_iter, trace, lambda: certificate, qp)


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
    """The primal with slack as a quadratic program over (theta, b, xi) (Eq. 16, 17), a `Margin`.

    minimise 1/2 |theta|^2 + C sum_i xi_i    subject to    y_i (<theta, x_i> + b) >= 1 - xi_i,    xi_i >= 0
    """
    X, qp, began = points(X), csvc(y, C), time.perf_counter()
    (m, d), y = X.shape, -qp.p
    most = qp.upper - qp.lower
    margins = np.hstack([-y[:, None] * X, -y[:, None], -np.eye(m)])
    G = np.concatenate([margins, np.hstack([np.zeros((m, d + 1)), -np.eye(m)])])
    P, q = np.diag(np.r_[np.ones(d), np.zeros(m + 1)]), np.r_[np.zeros(d + 1), most]
    found = interior_point(P, q, np.zeros((0, d + 1 + m)), [], G, np.r_[-np.ones(m), np.zeros(m)])
    theta, xi, (lam, slack) = found.v[:d], np.maximum(found.v[d + 1 :], 0.0), np.split(found.mu, 2)
    margin = y * (X @ theta + found.v[d])
    # lam_i is at 0 if the margin exceeds 1 by more than lam_i, and at C if xi_i exceeds its multiplier.
    z = y * np.where(margin - 1 > lam, 0.0, np.where(xi > slack, most, np.clip(lam, 0, most)))
    certificate = qp.certificate(X @ (X.T @ qp.start(z)), qp.start(z), tol=tol, is_psd=True)
    return _margin(found, y * qp.start(z), certificate, began, qp, theta, xi, found.v[d])


def hard_margin(X, y, *, tol=1e-6):
    """The primal without slack as a quadratic program over (theta, b) (Eq. 5, 6; Eq. 003:13), a `Margin`.

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
    qp = csvc(y, 1.0)
    y = -qp.p
    qp = replace(qp, lower=np.where(y > 0, 0.0, -np.inf), upper=np.where(y > 0, np.inf, 0.0))
    d = X.shape[1]
    G = np.hstack([-y[:, None] * X, -y[:, None]])
    found = interior_point(
        np.diag(np.r_[np.ones(d), 0.0]), np.zeros(d + 1), np.zeros((0, d + 1)), [], G, -np.ones(len(y))
    )
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


@dataclass(frozen=True)
class _Found:
    """What the interior-point method returned: v, the multipliers of the inequalities, why and when it stopped."""

    v: np.ndarray
    mu: np.ndarray
    stopped: str
    n_iter: int


def interior_point(P, q, A, b, G, h, *, max_iter=None, time_limit=None):
    """minimise 1/2 v.Pv + q.v subject to A v = b and G v <= h, by Clarabel; returns v, the multipliers mu of G v <= h,
    `stopped` ("tol", "infeasible", "max_iter", "time_limit" or "stalled") and `n_iter`."""
    try:
        import clarabel
    except ImportError:
        raise ImportError("the solver 'qp' needs Clarabel: pip install symsvm[qp].") from None
    from scipy import sparse

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    settings.max_iter = 200 if max_iter is None else max(1, min(max_iter, 10_000))
    if time_limit is not None:
        settings.time_limit = time_limit
    rows, limits = sparse.csc_matrix(np.concatenate([A, G])), np.concatenate([b, h])
    cones = [clarabel.ZeroConeT(len(A))] * bool(len(A)) + [clarabel.NonnegativeConeT(len(G))] * bool(len(G))
    upper = sparse.csc_matrix(np.triu(P))
    found = clarabel.DefaultSolver(upper, np.asarray(q, dtype="float64"), rows, limits, cones, settings).solve()
    words = {"Solved": "tol", "AlmostSolved": "tol", "PrimalInfeasible": "infeasible", "MaxIterations": "max_iter"}
    words |= {"AlmostPrimalInfeasible": "infeasible", "MaxTime": "time_limit"}
    word = words.get(str(found.status), "stalled")
    return _Found(np.array(found.x), np.array(found.z)[len(A) :], word, int(found.iterations))


def _settled(qp, z, mu):
    """z with the variables at their bounds whose multipliers, in the units of z, say so; and the totals met."""
    z = np.where(mu[0] > qp.upper - z, qp.upper, z)
    return qp.start(np.where(mu[1] > z - qp.lower, qp.lower, z))


def _word(found, certificate):
    """Why it stopped; a point that the method calls solved and the certificate does not has stalled."""
    if certificate.status in ("optimal", "stationary"):
        return "tol"
    return "stalled" if found.stopped == "tol" else found.stopped


def _check(H, is_convex):
    if is_convex is True:
        return
    values = np.linalg.eigvalsh(H)
    if values[0] < -1e-9 * max(1.0, values[-1]):
        raise ValueError(f"qp needs a positive semi-definite matrix, and this one has the eigenvalue {values[0]:.3g}.")


def _trace(found, certificate, began):
    return traced(
        [Info(found.n_iter, time.perf_counter() - began, certificate.W, certificate.violation, certificate.gap)]
    )


def _margin(found, lam, certificate, began, qp, theta, xi, b):
    word = _word(found, certificate)
    b = None if b is None else float(b)
    trace = _trace(found, certificate, began)
    return Margin(lam, b, lam, word, found.n_iter, trace, lambda: certificate, qp, theta, xi)
