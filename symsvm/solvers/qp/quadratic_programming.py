"""Quadratic programming: duals and primals by the interior-point method of Clarabel, the independent reference.

::

    minimise 1/2 v.Pv + q.v    subject to    G v <= h,    A v = b

The method is general: it uses nothing that is special to support vector machines.
"""

# pyright: reportAttributeAccessIssue=false
# (Clarabel is a compiled module without types; duals have attributes that `Objective` lacks.)

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from symsvm.compiler.reading import is_readable
from symsvm.objectives import KernelDual
from symsvm.objectives.certificate import Certificate
from symsvm.solvers.convergence import warn_not_converged
from symsvm.solvers.decomposition.dual_program import DualProgram
from symsvm.solvers.program import check_run_arguments
from symsvm.solvers.solution import Info, Solution, collect_trace
from symsvm.solvers.solver import SolverInfo

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.objectives import Objective, PrimalRisk, QuadraticProgram
    from symsvm.solvers.qp.dense_program import DenseProgram
    from symsvm.solvers.solution import Callback

__all__ = [
    "PrimalQP",
    "QPResult",
    "QuadraticProgramming",
    "check_definite",
    "check_unused",
    "final_trace",
    "interior_point",
    "primal_quadratic_program",
    "stop_reason",
]

_TOL = 1e-11  # Clarabel's tolerances: as small as its own scaling allows, for the certificate to decide
_MAX_ITER = 200
_NEGATIVE = 1e-9  # an eigenvalue below minus this share of the largest makes a matrix indefinite

# Clarabel's status -> `Solution.stopped`; any other is "stalled".
_STOPPED = {
    "Solved": "tol",
    "AlmostSolved": "tol",
    "PrimalInfeasible": "infeasible",
    "AlmostPrimalInfeasible": "infeasible",
    "MaxIterations": "max_iter",
    "MaxTime": "time_limit",
}


@dataclass(frozen=True)
class QPResult:
    """The result of the interior-point method.

    Attributes
    ----------
    v, mu : the point, and the multipliers of G v <= h.
    stopped : "tol", "infeasible", "max_iter", "time_limit" or "stalled".
    n_iter : the number of factorisations.
    """

    v: np.ndarray
    mu: np.ndarray
    stopped: str
    n_iter: int


def interior_point(
    P: Any,
    q: Array,
    G: Any,
    h: Array,
    A: Any = None,
    b: Any = (),
    *,
    max_iter: int | None = None,
    time_limit: float | None = None,
) -> QPResult:
    """Minimise 1/2 v.Pv + q.v subject to G v <= h and A v = b, by Clarabel. Matrices may be sparse."""
    try:
        import clarabel
    except ImportError:
        raise ImportError("the solver 'qp' needs Clarabel: pip install symsvm[qp].") from None

    A = np.zeros((0, len(q))) if A is None else A
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOL
    settings.max_iter = _MAX_ITER if max_iter is None else max(1, min(max_iter, 10_000))
    if time_limit is not None:
        settings.time_limit = time_limit
    equal, below = len(b), len(h)
    rows = sparse.vstack([sparse.csc_matrix(A), sparse.csc_matrix(G)], format="csc")
    cones = [clarabel.ZeroConeT(equal)] * bool(equal) + [clarabel.NonnegativeConeT(below)] * bool(below)
    upper, limits = sparse.triu(sparse.csc_matrix(P), format="csc"), np.concatenate([b, h])
    found = clarabel.DefaultSolver(upper, np.asarray(q, dtype="float64"), rows, limits, cones, settings).solve()
    stopped = _STOPPED.get(str(found.status), "stalled")
    if str(found.status).startswith("Almost"):  # Clarabel says so also where a limit ended the run
        late = time_limit is not None and found.solve_time >= time_limit
        stopped = "time_limit" if late else "max_iter" if found.iterations >= settings.max_iter else stopped
    return QPResult(np.array(found.x), np.array(found.z)[equal:], stopped, int(found.iterations))


def stop_reason(result: QPResult, certificate: Certificate) -> str:
    """Return why the run ended; a point that Clarabel calls solved and the certificate does not is "stalled"."""
    if certificate.status in ("optimal", "stationary"):
        return "tol"
    return "stalled" if result.stopped == "tol" else result.stopped


def final_trace(result: QPResult, certificate: Certificate, began: float) -> dict[str, Array]:
    """Return the trace of a run that is measured once, at its end."""
    seconds = time.perf_counter() - began
    return collect_trace([Info(result.n_iter, seconds, certificate.W, certificate.violation, certificate.gap)])


class QuadraticProgramming:
    """Solve the whole problem at once, by a general solver for quadratic programs.

    For a dual::

        minimise 1/2 z.(K + D) z + p.z    subject to    lower <= z <= upper,    sum of z over group g = total_g

    and for a `PrimalRisk`, with one slack per point (Eq. 16, 17 for the hinge loss)::

        minimise R(v) + sum_i C_i xi_i    subject to    y_i f(x_i) >= 1 - xi_i,    xi_i >= 0

    and any other `Objective` whose W is quadratic, also with inequalities and equalities that share variables: its
    matrix is read from the gradient (see `DenseProgram`).

    It uses nothing that is special to support vector machines, so the other solvers are compared with it. The matrix
    must fit into memory, a run costs about twenty factorisations of it, and K must be positive semi-definite. An
    interior point is never at a bound: variables whose multiplier exceeds their distance to a bound are set to it, and
    the certificate is of the point that results. It needs `pip install symsvm[qp]`.

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
        reference="Goulart and Chen (2024); P. Schmidt (slides) for both margins",
        accuracy="a KKT violation near 1e-8 of the gradient's size; of a smooth W, only a quadratic one",
    )

    def program(
        self, objective: Objective, solver: QuadraticProgramming, **options: Any
    ) -> DualProgram | PrimalQP | DenseProgram:
        """Return what `compile` returns.

        Parameters
        ----------
        objective : Objective
            The problem.
        solver : QuadraticProgramming
            The solver itself.
        **options : object
            See `compile`.

        Returns
        -------
        DualProgram, PrimalQP or DenseProgram
            The program.
        """
        make: Any = PrimalQP if objective.problem == "primal" else _WholeDual
        if objective.problem == "primal":
            return make(objective, solver, **options)
        is_dual = isinstance(objective, KernelDual) or (objective.is_grouped is not False and is_readable(objective))
        if is_dual and objective.rows_overlap is not None:
            return make(objective, solver, **options)
        from symsvm.solvers.qp.dense_program import DenseProgram  # it needs this module

        ordinary = make(objective, solver, **options) if is_dual else None
        return DenseProgram(objective, solver, ordinary=ordinary, **options)

    def __repr__(self) -> str:
        return "QuadraticProgramming()"


class _WholeDual(DualProgram):
    """A quadratic dual and its whole matrix; `compile` makes one."""

    def run(
        self,
        start: None = None,
        *,
        tol: float = 1e-3,
        max_iter: int | None = None,
        time_limit: float | None = None,
        callback: Callback | None = None,
        **data: Any,
    ) -> Solution:
        """Solve, and return a `Solution`; `max_iter` and `time_limit` limit the interior-point method."""
        check_unused(start, callback)
        tol, max_iter, time_limit = check_run_arguments(tol, max_iter, time_limit, callback)
        began = time.perf_counter()
        problem = self.problem(**data)
        qp, change, every = problem.program, problem.change, np.arange(problem.program.m)
        if problem.smooth is not None:
            raise TypeError(f"{self.solver!r} needs a quadratic W, and this one has another function of its variable.")
        K = np.empty((qp.m, qp.m))
        problem.matrix.block(every, every, K)
        H = K[np.ix_(qp.point, qp.point)] + np.diag(qp.diagonal)
        check_definite(H, problem.is_convex)
        eye = np.eye(qp.n)
        below, above = np.isfinite(qp.upper), np.isfinite(qp.lower)
        G, h = np.concatenate([eye[below], -eye[above]]), np.concatenate([qp.upper[below], -qp.lower[above]])
        A = (qp.group == np.arange(len(qp.total))[:, None]).astype("float64")
        # In units in which variables and gradient are of the size of 1.
        widest, size, slope = (float(np.abs(v).max(initial=0.0)) or 1.0 for v in (h, H, qp.p))
        unit = min(widest, slope / size) if qp.p.any() else widest
        limits = {"max_iter": max_iter, "time_limit": time_limit}
        result = interior_point(H * unit / slope, qp.p / slope, G, h / unit, A, qp.total / unit, **limits)
        mu = np.zeros((2, qp.n))  # the multipliers of the upper and the lower bounds
        mu[0, below], mu[1, above] = np.split(result.mu, [below.sum()])
        z = _snap_to_bounds(qp, unit * result.v, unit * mu)
        certificate = change.certificate(qp, K @ qp.weights(z), z, tol=tol, is_convex=problem.is_convex)
        v, kind = change.to_variable(z), self.kind
        stopped, trace = stop_reason(result, certificate), final_trace(result, certificate, began)
        if stopped in ("max_iter", "time_limit", "stalled"):
            goal = f"a violation of {certificate.violation:.2g}, above tol={tol:g}"
            advice = [] if stopped == "stalled" else [f"Raise {stopped} or tol, or use another solver."]
            is_feasible = certificate.status != "infeasible"
            warn_not_converged(stopped, result.n_iter, goal, advice, is_feasible=is_feasible)
        return Solution(v, certificate.b, v, stopped, result.n_iter, trace, lambda: certificate, kind, qp, z)


def _snap_to_bounds(qp: QuadraticProgram, z: Array, mu: Array) -> Array:
    """Set the variables whose multiplier, in the units of z, exceeds the distance to a bound; restore the totals."""
    z = np.where(mu[0] > qp.upper - z, qp.upper, z)
    return qp.start(np.where(mu[1] > z - qp.lower, qp.lower, z))


def check_definite(H: Array, is_convex: bool | None, others: str = "'decomposition' or 'smo', which end") -> None:
    """Raise if H has a negative eigenvalue, unless it is known to have none; `others` are the solvers to use then."""
    if is_convex is True:
        return
    values = np.linalg.eigvalsh(H)
    if values[0] < -_NEGATIVE * max(1.0, values[-1]):
        raise ValueError(
            f"qp needs a positive semi-definite matrix, and this one has the eigenvalue {values[0]:.3g}: use "
            f"{others} at a stationary point."
        )


def check_unused(start: Any, callback: Any) -> None:
    """Raise for the arguments of a run that the interior-point method does not take."""
    if start is not None or callback is not None:
        raise TypeError(
            "qp takes neither a start nor a callback: Clarabel chooses its first point and reports no iterations. "
            "Leave both out, or use another solver."
        )


def primal_quadratic_program(risk: PrimalRisk) -> tuple[Any, Array, Any, Array]:
    """Return (P, q, G, h) of minimise 1/2 u.Pu + q.u subject to G u <= h over u = (v, xi), for a `PrimalRisk`.

    ::

        minimise R(v) + sum_i C_i xi_i    (C_i xi_i^2 for a squared loss)
        subject to    y_i f(x_i) >= 1 - xi_i,    or    |y_i - f(x_i)| <= epsilon + xi_i,    and    xi_i >= 0

    The first rows of G are the margins (Eq. 16, 17; Eq. 003:30). Regressions have those above the tube, then those
    below it (Eq. 002:2.5).
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
    """A `PrimalRisk` and `QuadraticProgramming`; `compile` makes one.

    The certificate's gap is between P of the weights and the dual objective of the multipliers, which are moved into
    their bounds and onto their total.
    """

    def __init__(
        self,
        objective: PrimalRisk,
        solver: QuadraticProgramming,
        *,
        mode: Any = None,
        memory: int | None = None,
        dtype: str | None = None,
    ) -> None:
        if dtype not in (None, "float64"):
            raise ValueError(f"{solver!r} computes in float64: leave dtype out, got {dtype!r}.")
        self.objective, self.solver = objective, solver

    def run(
        self,
        start: None = None,
        *,
        tol: float = 1e-3,
        max_iter: int | None = None,
        time_limit: float | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Solve, and return a `Solution`; `max_iter` and `time_limit` limit the interior-point method."""
        check_unused(start, callback)
        tol, max_iter, time_limit = check_run_arguments(tol, max_iter, time_limit, callback)
        began, risk = time.perf_counter(), self.objective
        result = interior_point(*primal_quadratic_program(risk), max_iter=max_iter, time_limit=time_limit)
        v, m = result.v[: len(risk.convexity)], len(risk.y)
        certificate = self._certificate(v, result.mu[: m if risk.classifies else 2 * m], tol)
        stopped, trace = stop_reason(result, certificate), final_trace(result, certificate, began)
        return Solution(v, certificate.b, v, stopped, result.n_iter, trace, lambda: certificate, "w", risk.dual)

    def _certificate(self, v: Array, mu: Array, tol: float) -> Certificate:
        risk, qp = self.objective, self.objective.dual
        P = risk.evaluate(v)
        z = qp.start(np.where(qp.upper > 0, mu, -mu) if not risk.classifies else risk.y * mu)
        X = risk.features(risk.X) if risk.bias == "embedded" else risk.X
        D = -qp.value(X @ (X.T @ qp.weights(z)), z)
        gap = max(P - D, 0.0)
        b = None if risk.bias is None else float(v[-1])
        violation = gap / P if gap else 0.0
        status = "diverged" if not np.isfinite(P) else "optimal" if violation <= tol else "feasible"
        return Certificate(P, 0.0, violation, b, P, D, gap, status, tol)
