"""Quadratic programming: duals and primals by a general interior-point method; the independent reference."""

import time

import numpy as np

from symsvm.evaluation.local import LocalKernelMatrix
from symsvm.solvers.decomposition.dual_program import DualProgram
from symsvm.solvers.program import Solution, checked_run, values_of
from symsvm.solvers.qp.clarabel import interior_point, only_look, reason
from symsvm.solvers.qp.primal_qp import PrimalQP, check_alone
from symsvm.solvers.solver_info import SolverInfo

__all__ = ["QuadraticProgramming"]


class QuadraticProgramming:
    """The whole problem at once, by a general solver for quadratic programs.

        minimise 1/2 z.(K + D) z + p.z    subject to    lower <= z <= upper,    sum of z over group g = total_g

    for a dual, and for a `PrimalRisk`, with a slack a point (Eq. 16, 17 for the hinge loss),

        minimise R(v) + sum_i C_i xi_i    subject to    y_i f(x_i) >= 1 - xi_i,    xi_i >= 0

    It knows nothing of support vector machines, so it is what the others are compared with. The matrix must fit the
    memory, a run costs some twenty factorisations of it, and K must be positive semi-definite. An interior point is
    never at a bound; variables whose multiplier outweighs their distance to it are put there, and the certificate is
    of the point that results. Needs `pip install symsvm[qp]`.

    References
    ----------
    P. Goulart, Y. Chen, Clarabel: an interior-point solver for conic programs with quadratic objectives,
    arXiv:2405.12762.
    """

    info = SolverInfo(
        name="qp",
        problems=("dual", "primal", "smooth"),
        backends=("numba",),
        equation="Newton's method on the KKT conditions, with z_i mu_i = t -> 0 for every bound",
        reference="seed 004, hard and soft margin as QP; Goulart and Chen (2024)",
        accuracy="a KKT violation near 1e-8 of the gradient's size; of a smooth W, only a quadratic one",
    )

    def program(self, objective, solver, **options):
        """What `compile` returns."""
        own = PrimalQP if objective.problem == "primal" else _WholeProgram
        return own(objective, solver, **options)

    def __repr__(self):
        return "QuadraticProgramming()"


class _WholeProgram(DualProgram):
    """A quadratic dual and its whole matrix; see `compile`."""

    def run(self, start=None, *, tol=1e-3, max_iter=None, time_limit=None, callback=None, **data):
        """Solve, and return a `Solution`; `max_iter` and `time_limit` are those of the interior-point method."""
        check_alone(start, callback)
        tol, max_iter, time_limit = checked_run(tol, max_iter, time_limit, callback)
        began = time.perf_counter()
        dual, factor = self._source.dual(*self._evaluate(*values_of(self.inputs, data)))
        qp, every, K = dual.program, np.arange(dual.program.m), np.empty((dual.program.m,) * 2)
        LocalKernelMatrix(dual.kernel, dual.X, mode=self.mode).block(every, every, K)
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
        found = interior_point(H * unit / slope, qp.p / slope, G, h / unit, A, qp.total / unit, **limits)
        mu = np.zeros((2, qp.n))  # the multipliers of the upper and the lower bounds
        mu[0, below], mu[1, above] = np.split(found.mu, [below.sum()])
        z = _settled(qp, unit * found.v, unit * mu)
        certificate = qp.certificate(K @ qp.weights(z), z, tol=tol, is_psd=dual.is_convex)
        lam = factor * z
        word = reason(found, certificate)
        trace = only_look(found, certificate, began)
        return Solution(lam, certificate.b, lam, word, found.n_iter, trace, lambda: certificate, qp)


def _settled(qp, z, mu):
    """z with the variables at their bounds whose multipliers, in the units of z, say so; and the totals met."""
    z = np.where(mu[0] > qp.upper - z, qp.upper, z)
    return qp.start(np.where(mu[1] > z - qp.lower, qp.lower, z))


def _check(H, is_convex):
    if is_convex is True:
        return
    values = np.linalg.eigvalsh(H)
    if values[0] < -1e-9 * max(1.0, values[-1]):
        raise ValueError(
            f"qp needs a positive semi-definite matrix, and this one has the eigenvalue {values[0]:.3g}: use "
            "'decomposition' or 'smo', which end at a stationary point."
        )
