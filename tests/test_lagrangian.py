"""The Lagrangian dual: its equations, the inner system, and how near the machine comes that it recovers."""

import numpy as np
import pytensor.tensor as pt
import pytest
from problems import MODES
from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan

from symsvm import (
    RBF,
    KernelDual,
    LagrangianDual,
    Linear,
    Polynomial,
    QuadraticProgram,
    Sigmoid,
    compile,
    relax,
    solve,
)
from symsvm.compiler.functions import function, grad
from symsvm.graphs.minres import minres
from symsvm.objectives.lagrangian_dual import lagrangian, right_hand_side

# Runs end early here, and say so.
pytestmark = pytest.mark.filterwarnings("ignore:.*stopped .* above tol=:sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
M = 40
SIGNS = np.where(np.arange(M) % 2 == 0, 1.0, -1.0)
X = RNG.normal(size=(M, 2)) + 0.7 * SIGNS[:, None]
TARGETS = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=M)
# kernel -> what is left, relative to P*, of classifier and regression after 1000 steps
KERNELS = {
    "linear": (Linear(), 0.01, 0.02),
    "rbf": (RBF(1.0), 0.01, 0.01),
    "polynomial": (Polynomial(degree=3, gamma=1.0, coef0=1.0), 0.02, 0.05),
}


def dual(kernel, machine, bias):
    program = (
        QuadraticProgram.c_svc(SIGNS, 1.0, intercept=bias == "free")
        if machine == "svc"
        else QuadraticProgram.svr(TARGETS, 1.0, 0.1, intercept=bias == "free")
    )
    return KernelDual(program, X, kernel if bias == "free" else kernel + 1.0)


@pytest.mark.parametrize(
    ("name", "machine", "bias"),
    [
        ("linear", "svc", "free"),
        pytest.param("linear", "svr", "embedded", marks=pytest.mark.slow),  # as the polynomial below
        ("rbf", "svc", "embedded"),
        ("rbf", "svr", "free"),
        pytest.param("polynomial", "svc", "free", marks=pytest.mark.slow),  # as the linear kernel above
        ("polynomial", "svr", "embedded"),
    ],
)
def test_it_comes_near_the_optimum_and_says_how_near(name, machine, bias):
    kernel, *short = KERNELS[name]
    problem = dual(kernel, machine, bias)
    certificate = solve(relax(problem), "adagrad", mode="JAX", max_iter=1000, tol=1e-3).certificate
    best = -solve(problem, tol=1e-8).W
    assert certificate.status in ("infeasible", "feasible")  # the ridge keeps it from more
    assert certificate.infeasibility < 0.1
    assert problem.program.infeasibility(certificate.z) < 1e-12
    assert certificate.dual <= best * (1 + 1e-6) <= certificate.primal * (1 + 2e-6)
    assert certificate.dual == pytest.approx(best, rel=short[machine == "svr"])


# Numba compiles the loop inside the step, and its gradient, for half a minute.
@pytest.mark.parametrize("mode", ["JAX", pytest.param("NUMBA", marks=pytest.mark.slow)])
def test_a_squared_loss_needs_no_ridge(mode):
    """Q + 1 / (2 C) is regular: what is relaxed is the problem itself, and the run ends optimal."""
    problem = KernelDual(QuadraticProgram.c_svc(SIGNS, 1.0, squared=True), X, RBF(1.0))
    solution = solve(relax(problem, ridge=0.0, inner=60), "adagrad", mode=mode, tol=1e-2, max_iter=3000)
    assert solution.stopped == "tol"
    assert solution.certificate.status == "optimal"
    assert solution.certificate.dual == pytest.approx(-solve(problem, tol=1e-8).W, rel=1e-2)


def test_in_float32():
    """Its loop over minres too; what is recovered is judged in float64."""
    problem = KernelDual(QuadraticProgram.c_svc(SIGNS[:20], 1.0, squared=True), X[:20], RBF(1.0))
    program = compile(relax(problem, ridge=0.0, inner=20), "adagrad", mode="JAX", dtype="float32")
    loops = [v.owner.op for v in ancestors(program.functions.step) if v.owner and isinstance(v.owner.op, Scan)]
    assert {v.dtype for loop in loops for v in loop.inner_inputs if v.dtype.startswith("float")} == {"float32"}
    solution = program.run(tol=1e-2, max_iter=3000)
    assert solution.lam.dtype == "float32"
    assert solution.certificate.status == "optimal"
    assert solution.certificate.dual == pytest.approx(-solve(problem, tol=1e-8).W, rel=1e-2)


def test_least_squares_restricts_alpha_to_the_range_of_q():
    """With a linear kernel and overlapping classes only alpha = 0 does: the relaxation of Meoli (2021) finds 0."""
    problem = dual(Linear(), "svc", "embedded")
    certificate = solve(relax(problem, ridge=0.0), "adagrad", mode="JAX", max_iter=300).certificate
    assert abs(certificate.W) < 1e-3
    assert np.abs(certificate.z).max() < 1e-3
    assert certificate.violation > 0.99


def test_nearly_all_points_are_selected():
    """As Meoli (2021) reports, the relaxation leaves nearly no alpha at 0, where the solution of the dual has many."""
    problem = dual(Linear(), "svc", "embedded")
    z = solve(relax(problem), "adagrad", mode="JAX", max_iter=1000).certificate.z
    exact = solve(problem, tol=1e-8).lam
    assert np.mean(np.abs(z) > 1e-6) > 0.85
    assert np.mean(exact != 0) < 0.65


@pytest.mark.parametrize(("machine", "bias"), [("svc", "free"), ("svc", "embedded"), ("svr", "free")])
def test_the_problem_and_its_gradient_at_alpha_held_fixed(machine, bias):
    """The duals of Eq. 002:1.16, 002:1.23 and 002:2.15 with the Q, q and equality of Meoli (2021), relaxed."""
    problem = relax(dual(RBF(1.0), machine, bias), ridge=0.5)
    g = grad(problem.value, problem.variable)
    scans = {v.owner for v in ancestors([g]) if v.owner is not None and isinstance(v.owner.op, Scan)}
    assert len(scans) == 1  # no loop backwards through minres
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 2)
    if machine == "svc":
        n, Q, q, a = M, np.outer(SIGNS, SIGNS) * K, -np.ones(M), SIGNS
        Q = Q + np.outer(SIGNS, SIGNS) if bias == "embedded" else Q
    else:
        n, Q, a = 2 * M, np.block([[K, -K], [-K, K]]), np.repeat([1.0, -1.0], M)
        q = np.r_[-TARGETS, TARGETS] + 0.1
    free = int(bias == "free")
    v = np.abs(RNG.normal(size=free + 2 * n))
    problem.variable.set_value(v)
    value, slope = function([], [problem.value, g], mode="FAST_COMPILE")()
    mu, plus, minus = v[:free].sum(), v[free : free + n], v[free + n :]
    r = -(q - free * mu * a + plus - minus)
    alpha = np.linalg.solve(Q + problem.ridge * np.eye(n), r)
    np.testing.assert_allclose(value, 0.5 * r @ alpha + plus.sum(), rtol=1e-8)  # -L at its minimum, C = 1
    np.testing.assert_allclose(slope, [*[a @ alpha] * free, *(1 - alpha), *alpha], rtol=1e-5, atol=1e-6)


def test_equations_of_meoli():
    """Eq. 002:1.24 to 002:1.29 by loops, with gradients by differentiation; without rows of A it is Eq. 002:1.31."""
    n = 5
    B = RNG.normal(size=(n, n))
    Q, q, a, C = B @ B.T, -np.ones(n), np.sign(RNG.normal(size=(1, n))), 1.5
    values = RNG.normal(size=n), RNG.normal(size=1), RNG.random(n), RNG.random(n)
    alpha, mu, plus, minus = (pt.vector(name) for name in ("alpha", "mu", "plus", "minus"))
    L = lagrangian(alpha, mu, plus, minus, Q, q, a, C)
    r = right_hand_side(mu, plus, minus, q, a)
    graphs = [L, *grad(L, [alpha, mu, plus, minus]), r]
    found = function([alpha, mu, plus, minus], graphs, mode="FAST_COMPILE")(*values)
    x, m, p, s = values
    total = 0.0
    for i in range(n):
        total += q[i] * x[i] - m[0] * a[0, i] * x[i] - p[i] * (C - x[i]) - s[i] * x[i]
        for j in range(n):
            total += 0.5 * x[i] * Q[i, j] * x[j]
    right = [-(q[i] - m[0] * a[0, i] + p[i] - s[i]) for i in range(n)]
    expected = [total, Q @ x - right, -a @ x, x - C, -x, right]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    embedded = lagrangian(alpha, pt.zeros(0), plus, minus, Q, q, np.zeros((0, n)), C)
    (value,) = function([alpha, plus, minus], [embedded], mode="FAST_COMPILE")(x, p, s)
    np.testing.assert_allclose(value, total + m[0] * a[0] @ x)


@pytest.mark.parametrize("mode", [*MODES, "FAST_COMPILE"])
def test_minres_solves_and_rests(mode):
    A, b = pt.matrix("A"), pt.vector("b")
    run = function([A, b], minres(lambda v: A @ v, b, 30), mode=mode)
    B = RNG.normal(size=(20, 20))
    regular, right = B @ B.T / 20 + 0.5 * np.eye(20), RNG.normal(size=20)
    np.testing.assert_allclose(run(regular, right), np.linalg.solve(regular, right), rtol=1e-6, atol=1e-7)
    singular = B[:, :3] @ B[:, :3].T
    np.testing.assert_allclose(run(singular @ singular, singular @ right), np.linalg.pinv(singular) @ right, atol=1e-6)
    assert not run(regular, np.zeros(20)).any()


def test_two_equalities_and_bad_input():
    two = LagrangianDual(QuadraticProgram.nu_svc(SIGNS, 0.5), np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2)))
    assert len(two.variable.get_value()) == 2 + 2 * M
    assert compile(two, "adagrad", mode="FAST_COMPILE").run(max_iter=30).certificate.dual is not None
    with pytest.raises(ValueError, match="not known to be positive semi-definite"):
        relax(KernelDual(QuadraticProgram.c_svc(SIGNS, 1.0), X, Sigmoid()))
    with pytest.raises(TypeError, match="must be a KernelDual"):
        relax(two)
    with pytest.raises(ValueError, match="K must be a finite matrix of 40 rows"):
        LagrangianDual(QuadraticProgram.c_svc(SIGNS, 1.0), np.eye(3))
    with pytest.raises(ValueError, match="ridge must be at least 0"):
        LagrangianDual(QuadraticProgram.c_svc(SIGNS, 1.0), np.eye(M), ridge=-1.0)
    assert repr(two).startswith("LagrangianDual(40 variables")
