"""Each numbered equation, as a compiled graph on each backend, against a literal loop."""

import numpy as np
import oracles
import pytensor.tensor as pt
import pytest
from problems import KERNELS, MODES, PROBLEMS, separable, symbols

from symsvm import CSVC, RBF, Linear, Polynomial, ProjectedGradient, grad, solve
from symsvm.compiler.functions import function
from symsvm.data import signs
from symsvm.objectives import dual, primal
from symsvm.objectives.certificate import certify_svc, infeasibility
from symsvm.objectives.projections import P, Pi, projector
from symsvm.paper.dictionary import EQUATIONS

SIGMA, ALPHA, C, B = 0.8, 0.07, 1.5, 0.3
PROBLEM = PROBLEMS["overlapping"]
RNG = np.random.default_rng(3)
THETA, XI, MU, V = RNG.normal(size=3), RNG.random(12), RNG.random(12), 2 * RNG.normal(size=12)
A = RNG.normal(size=(2, 12))


def k(x, z):
    return oracles.rbf(x, z, SIGMA)


def graphs(lam, X, y, Z):
    """Equation number -> list of graphs that say it."""
    kernel, linear = RBF(SIGMA), Linear()
    theta, b, xi, mu = map(pt.as_tensor, (THETA, B, XI, MU))
    hard = primal.lagrangian(theta, b, lam, X, y)
    soft = primal.lagrangian(theta, b, lam, X, y, xi, mu, C)
    at_theta = primal.lagrangian(primal.theta(lam, X, y), b, lam, X, y)
    objective = CSVC(lam, X, y, C, kernel)
    (step, *_), _, _ = ProjectedGradient(ALPHA, projection="paper").step(objective, lam, pt.as_tensor(ALPHA), 0.0)
    on_level = theta * (2.0 - b) / (theta**2).sum()
    return {
        1: [primal.affine(X, theta, b)],
        2: [primal.affine(on_level, theta, b)],
        3: [primal.distance(theta), primal.distance(theta, 0.0, 1.0)],
        5: [primal.margins(theta, b, X, y)],
        6: [primal.f0(theta)],
        7: [hard],
        8: [grad(hard, theta), grad(hard, b), primal.theta(lam, X, y)],
        12: [dual.f1(lam, X, y, linear), 0.5 * (primal.theta(lam, X, y) ** 2).sum()],
        13: [-dual.W(lam, X, y, linear), at_theta],
        15: [dual.W(lam, X, y, Polynomial(degree=2, gamma=1.0, coef0=1.0))],
        16: [primal.slack(theta, b, X, y)],
        17: [primal.f0(theta, xi, C)],
        18: [soft],
        20: [grad(soft, xi), primal.mu(lam, C)],
        21: [dual.W(lam, X, y, kernel), objective.value],
        22: [Pi(V, 0.9, -0.4)],
        23: [projector(A)],
        24: [P(V, y)],
        25: [step, grad(objective.value, lam)],
        26: [Pi(P(V, y), C)],
        28: [dual.decision(Z[0], lam, X, y, kernel, b)],
        29: [dual.intercept(lam, X, y, kernel)],
        30: [dual.decisions(Z, lam, X, y, kernel, b)],
        31: [dual.f1(lam, X, y, kernel)],
        32: [dual.f1i(X[2], lam, X, y, kernel)],
        33: [kernel(X, Z), kernel.diag(X)],
    }


def phi(x):
    """The feature map of (<x, z> + 1)^2: all monomials up to degree 2, weighted (Eq. 14)."""
    d = len(x)
    pairs = [2**0.5 * x[i] * x[j] for i in range(d) for j in range(i)]
    return [1.0, *(2**0.5 * a for a in x), *(a * a for a in x), *pairs]


def loops(lam, X, y, Z):
    """Equation number -> the same values by loops."""
    m, zero = len(y), [0.0] * len(y)
    norm = oracles.inner(THETA, THETA) ** 0.5
    hard = oracles.lagrangian(THETA, B, lam, X, y, zero, zero, C)
    theta = oracles.theta(lam, X, y)
    f1_linear = oracles.f1(lam, X, y, oracles.inner)
    minus_W = -oracles.W(lam, X, y, oracles.inner)
    AAt = [[oracles.inner(r, s) for s in A] for r in A]
    det = AAt[0][0] * AAt[1][1] - AAt[0][1] * AAt[1][0]
    inverse = [[AAt[1][1] / det, -AAt[0][1] / det], [-AAt[1][0] / det, AAt[0][0] / det]]
    Q = [
        [float(i == j) - sum(A[r][i] * inverse[r][s] * A[s][j] for r in range(2) for s in range(2)) for j in range(m)]
        for i in range(m)
    ]
    return {
        1: [[oracles.affine(x, THETA, B) for x in X]],
        2: [2.0],
        3: [2 / norm, 1 / norm],
        5: [oracles.margins(THETA, B, X, y)],
        6: [oracles.f0(THETA, [], C)],
        7: [hard],
        8: [[t - s for t, s in zip(THETA, theta, strict=True)], -sum(lam * y), theta],
        12: [f1_linear, f1_linear],
        13: [minus_W, minus_W],
        15: [oracles.W(lam, X, y, lambda x, z: oracles.inner(phi(x), phi(z)))],
        16: [oracles.slack(THETA, B, X, y)],
        17: [oracles.f0(THETA, XI, C)],
        18: [oracles.lagrangian(THETA, B, lam, X, y, XI, MU, C)],
        20: [[C - lam[i] - MU[i] for i in range(m)], [C - a for a in lam]],
        21: [oracles.W(lam, X, y, k)] * 2,
        22: [oracles.Pi(V, -0.4, 0.9)],
        23: [Q],
        24: [oracles.P(V, y)],
        25: [oracles.step(lam, X, y, k, C, ALPHA), oracles.grad_W(lam, X, y, k)],
        26: [oracles.Pi(oracles.P(V, y), 0.0, C)],
        28: [oracles.decision(Z[0], lam, X, y, k, B)],
        29: [oracles.intercept(lam, X, y, k)],
        30: [[oracles.decision(z, lam, X, y, k, B) for z in Z]],
        31: [oracles.f1(lam, X, y, k)],
        32: [oracles.f1i(2, lam, X, y, k)],
        33: [oracles.gram(X, Z, k), [1.0] * m],
    }


DATA = (PROBLEM.lam, PROBLEM.X, PROBLEM.y, PROBLEM.Z)
LOOPS = loops(*DATA)


@pytest.fixture(scope="module", params=MODES)
def values(request):
    """All graphs in one function on one backend: number -> values."""
    inputs = symbols(PROBLEM)
    built = graphs(*inputs)
    flat = iter(function(inputs, [g for group in built.values() for g in group], mode=request.param)(*DATA))
    return {number: [np.asarray(next(flat)) for _ in group] for number, group in built.items()}


@pytest.mark.parametrize("number", LOOPS)
def test_graph_equals_loop(values, number):
    for value, expected in zip(values[number], LOOPS[number], strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-10)


def test_eq_4_labels():
    np.testing.assert_array_equal(signs(["b", "a", "b"]), [1, -1, 1])
    np.testing.assert_array_equal(signs([0, 1]), signs([-1, 1]))


def test_eq_9_and_11_infeasibility_is_the_worst_violation():
    lam, y = np.array([-0.5, 1.0, 2.5]), np.array([1.0, -1.0, 1.0])
    worst = max([max(0 - v, v - 2.0, 0) for v in lam] + [abs(sum(a * b for a, b in zip(lam, y, strict=True)))])
    assert infeasibility(lam, 0.0, 2.0, (y, 0.0)) == worst == 1.0
    assert infeasibility(np.array([1.0, 1.0]), 0.0, 1.0, (np.array([1.0, -1.0]), 0.0)) == 0.0


def test_eq_14_kernel_is_an_inner_product_of_features():
    kernel = Polynomial(degree=2, gamma=1.0, coef0=1.0)
    K = function([], kernel(PROBLEM.X, PROBLEM.Z), mode="FAST_COMPILE")()
    np.testing.assert_allclose(K, [[oracles.inner(phi(x), phi(z)) for z in PROBLEM.Z] for x in PROBLEM.X])


def solved(problem, kernel_name, C):
    """The optimum by the QP solver, with its certificate: lam, K q, certificate."""
    K = oracles.gram(problem.X, problem.X, KERNELS[kernel_name][1])
    lam = oracles.qp(K * np.outer(problem.y, problem.y), -np.ones(len(K)), 0.0, C, problem.y)
    # An interior point is never exactly at a bound.
    lam = np.where(lam < 1e-7, 0.0, np.where(lam > C - 1e-7, C, lam))
    Kq = K @ (lam * problem.y)
    return lam, Kq, certify_svc(lam, Kq, problem.y, C, tol=1e-5, is_psd=True)


def test_eq_10_19_27_hold_at_the_optimum():
    problem = PROBLEM
    lam, Kq, certificate = solved(problem, "rbf", C)
    margin = problem.y * (Kq + certificate.b) - 1
    xi = np.maximum(0, -margin)
    free = (lam > 0) & (lam < C)
    assert free.any()
    np.testing.assert_allclose(margin[free], 0, atol=1e-5)  # Eq. 27
    np.testing.assert_allclose((C - lam) * xi, 0, atol=1e-5)  # Eq. 19 with mu = C - lam
    np.testing.assert_allclose(sum(lam * (margin + xi)), 0, atol=1e-4)  # Eq. 10, with slack
    assert certificate.violation < 1e-5


def test_eq_10_hard_margin():
    problem = separable()
    lam, Kq, certificate = solved(problem, "linear", problem.C)
    margin = problem.y * (Kq + certificate.b) - 1
    assert margin.min() > -1e-5  # Eq. 5
    np.testing.assert_allclose(sum(lam * margin), 0, atol=1e-4)
    theta = np.array(oracles.theta(lam, problem.X, problem.y))
    width = float(function([], primal.distance(theta), mode="FAST_COMPILE")())
    # Eq. 3: the margin is the distance between the nearest points of both classes along theta.
    along = problem.X @ theta / np.linalg.norm(theta)
    assert width == pytest.approx(along[problem.y > 0].min() - along[problem.y < 0].max(), rel=1e-4)


def test_every_equation_of_the_dictionary_is_compared():
    elsewhere = {4, 9, 10, 11, 14, 19, 27}
    assert set(EQUATIONS) == set(LOOPS) | elsewhere


# On Numba the paper's class meets LIBSVM's optimum in test_paper.
@pytest.mark.parametrize("mode", ["JAX", pytest.param("NUMBA", marks=pytest.mark.slow)])
def test_the_whole_paper_meets_the_optimum(mode):
    """Solve Eq. 21 with Eq. 25 and the exact projection, and compare W with the QP solver's."""
    lam, X, y, _ = symbols(PROBLEM)
    objective = CSVC(lam, X, y, C, RBF(SIGMA))
    solution = solve(
        objective,
        ProjectedGradient(0.2),
        mode=mode,
        start=PROBLEM.lam,
        tol=1e-8,
        max_iter=5000,
        X=PROBLEM.X,
        y=PROBLEM.y,
    )
    reference, _, _ = solved(PROBLEM, "rbf", C)
    assert solution.certificate.status == "optimal"
    assert solution.W == pytest.approx(oracles.W(reference, PROBLEM.X, PROBLEM.y, k), abs=1e-6)
    assert 0 <= solution.certificate.gap + 1e-12 < 1e-6
