"""SOLVERS x PROBLEMS: a small problem of each kind with its optimum by the tests' own QP solver; who refuses which.

`PAIRS` has every solver of `list_solvers()` with every problem of a kind that its info names.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import oracles
import pytensor
from problems import KERNELS

from symsvm import (
    KernelDual,
    LagrangianDual,
    Objective,
    PrimalRisk,
    QuadraticProgram,
    list_solvers,
)
from symsvm.objectives import PerceptronRisk
from symsvm.objectives.losses import LOSSES

RNG = np.random.default_rng(5)
M = 24
Y = np.where(np.arange(M) % 2 == 0, 1.0, -1.0)
X = RNG.normal(size=(M, 3)) + 0.4 * Y[:, None]
TARGETS = X[:, 0] ** 2 + 0.1 * RNG.normal(size=M)
KERNEL, PAIR = KERNELS["rbf"]

# name -> the dual; the first three are of one structure, and share a compilation.
DUALS = {
    "C-SVC": QuadraticProgram.c_svc(Y, 1.0),
    "C-SVC, a C each": QuadraticProgram.c_svc(Y, np.linspace(0, 2, M)),
    "squared hinge": QuadraticProgram.c_svc(Y, 1.0, squared=True),
    "no intercept": QuadraticProgram.c_svc(Y, 1.0, intercept=False),
    "SVR": QuadraticProgram.svr(TARGETS, 1.0, 0.1),
    "nu-SVC": QuadraticProgram.nu_svc(Y, 0.4),
    "nu-SVR": QuadraticProgram.nu_svr(TARGETS, 1.0, 0.4),
    "one class": QuadraticProgram.one_class(np.ones(M), 0.3),
}


def optimum(qp, K):
    """W at the optimum of a `QuadraticProgram` over K."""
    H = K[np.ix_(qp.point, qp.point)] + np.diag(qp.diagonal)
    A = (qp.group == np.arange(len(qp.total))[:, None]).astype(float)
    z = oracles.qp(H, qp.p, qp.lower, qp.upper, *((A, qp.total) if len(A) else ()))
    return 0.5 * z @ H @ z + qp.p @ z


def dual_optimum(qp):
    """W at the optimum of a dual over the first points of X and the RBF kernel."""
    return optimum(qp, oracles.gram(X[: qp.m], X[: qp.m], PAIR))


class Case(NamedTuple):
    """A kind of problem, the objective, and a check of a solution and the tol that was asked for."""

    kind: str
    make: Callable
    check: Callable


def meets(solution, qp, tol):
    """The optimum to what a violation of tol allows: no variable moves further than its bounds, or than it has."""
    assert solution.certificate.status == "optimal", solution.certificate
    reach = np.minimum(qp.upper - qp.lower, 2 * np.abs(solution.lam).max()).sum()
    assert abs(solution.W - dual_optimum(qp)) <= tol * reach
    assert solution.certificate.gap <= tol * reach + 1e-9


def _dual(qp):
    return Case("dual", lambda: KernelDual(qp, X, KERNEL), lambda solution, tol: meets(solution, qp, tol))


def _primal(loss, bias):
    def make():
        return PrimalRisk(X, Y if loss.endswith("hinge") else TARGETS, 0.1, loss, bias=bias)

    def check(solution, tol):
        certificate, risk = solution.certificate, make()
        best = -optimum(risk.dual, X @ X.T + (bias == "embedded"))
        assert certificate.status == "optimal", certificate
        assert certificate.gap <= tol * certificate.primal
        assert certificate.dual <= best + 1e-7 <= certificate.primal + 2e-7  # weak duality, on both sides
        assert abs(risk.evaluate(solution.w) - best) <= tol * certificate.primal

    return Case("primal", make, check)


def _lagrangian(qp):
    K = oracles.gram(X, X, PAIR)

    def check(solution, tol):
        best = -optimum(qp, K)
        assert solution.certificate.status == "optimal", solution.certificate
        assert qp.infeasibility(solution.certificate.z) < 1e-12
        assert abs(solution.certificate.dual - best) <= tol * best

    return Case("lagrangian", lambda: LagrangianDual(qp, K, ridge=0.0, inner=M), check)


def _separation(kind, **options):
    points = X + 3 * Y[:, None] if not options else np.sin(3 * X)

    def check(solution, tol):
        lam = solution.certificate.lam
        K = points @ points.T if not options else oracles.gram(points, points, PAIR)
        assert solution.certificate.status == "optimal"
        assert (Y * ((K + 1) @ (lam * Y)) > 0).all()

    return Case(kind, lambda: PerceptronRisk(points, Y, **options), check)


def _smooth():
    """A quadratic W that a user writes, over a box with an equality."""
    B = RNG.normal(size=(6, 6))
    H, p, a = B @ B.T + np.eye(6), RNG.normal(size=6), np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])

    def make():
        v = pytensor.shared(np.zeros(6), name="v")
        return Objective(0.5 * v @ (H @ v) + (p * v).sum(), v, -0.3, 0.3, (a, 0.1), is_convex=True)

    def check(solution, tol):
        z = oracles.qp(H, p, -0.3, 0.3, a, 0.1)
        assert solution.certificate.status == "optimal", solution.certificate
        assert abs(solution.W - (0.5 * z @ H @ z + p @ z)) <= tol * 6 * 0.6

    return Case("smooth", make, check)


CASES = (
    {name: _dual(qp) for name, qp in DUALS.items()}
    | {f"{loss}, {bias} bias": _primal(loss, bias) for loss in LOSSES for bias in ("embedded", "free")}
    | {"squared hinge, relaxed": _lagrangian(DUALS["squared hinge"])}
    | {"squared regression, relaxed": _lagrangian(QuadraticProgram.svr(TARGETS, 1.0, 0.1, squared=True))}
    | {"two blobs": _separation("separation")}
    | {"two blobs, over a kernel": _separation("kernel-separation", kernel=KERNEL)}
    | {"a quadratic W": _smooth()}
)

KINKED = [loss for loss in LOSSES if not LOSSES[loss][2]]
# (solver, problem) -> what it is refused for, though the kind is right.
REFUSED = (
    {("smo-simplified", "no intercept"): "an equality"}
    | {("gradient-descent", f"{loss}, {bias} bias"): "jumps" for loss in KINKED for bias in ("embedded", "free")}
    | {("stochastic-subgradient", f"{loss}, free bias"): "strongly convex" for loss in LOSSES}
)

INFOS = {info.name: info for info in list_solvers()}
PAIRS = [(name, case) for name, info in INFOS.items() for case in CASES if CASES[case].kind in info.problems]


def stated(name, case):
    """The tol that a solver's info promises for the kind of a problem."""
    if name == "stochastic-subgradient":
        return 0.03
    return 1e-2 if name == "adagrad" and CASES[case].kind in ("primal", "lagrangian") else 1e-3
