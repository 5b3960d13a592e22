"""The numbered equations of documents 002 and 003 that the paper has as well, or that no algorithm has: against loops.

Those of 001, and of SMO in 002, are in test_simplified_smo_equations; losses and primals of 002 in test_primal, its
Lagrangian dual in test_lagrangian, those of heads of networks (005) in test_heads.
"""

import numpy as np
import oracles
import pytensor.tensor as pt
import pytest
from problems import PROBLEMS, symbols

from symsvm import (
    CSVC,
    RBF,
    SVR,
    KernelDual,
    Linear,
    Polynomial,
    PrimalRisk,
    QuadraticProgram,
    compile,
    grad,
    hard_margin,
    soft_margin,
    solve,
)
from symsvm.compiler.functions import function
from symsvm.data import signs
from symsvm.objectives import PerceptronRisk, dual, losses, primal, primal_risk
from symsvm.objectives.certificate import certify_svc, infeasibility
from symsvm.objectives.sums import map_rows
from symsvm.paper.dictionary import OTHERS
from symsvm.solvers.qp.quadratic_programming import interior_point, primal_quadratic_program
from symsvm.solvers.textbook.maximal_violating_pair import hessian_row

SIGMA, C, B, EPSILON = 0.8, 1.5, 0.3, 0.2
PROBLEM = PROBLEMS["overlapping"]
RNG = np.random.default_rng(4)
THETA, XI, MU = RNG.normal(size=3), RNG.random(12), RNG.random(12)
TARGETS = RNG.normal(size=12)
DATA = (PROBLEM.lam, PROBLEM.X, PROBLEM.y, PROBLEM.Z)


def k(x, z):
    return oracles.rbf(x, z, SIGMA)


def phi(x):
    return pt.stack([x[0], x[1] * x[2], x[0] ** 2])


def phi_loop(x):
    return [x[0], x[1] * x[2], x[0] ** 2]


def graphs(lam, X, y, Z):
    """Equation number -> list of graphs that say it."""
    kernel, linear = RBF(SIGMA), Linear()
    theta, b, xi, mu = map(pt.as_tensor, (THETA, B, XI, MU))
    f = primal.affine(X, theta, b)
    hard = primal.lagrangian(theta, b, lam, X, y)
    soft = primal.lagrangian(theta, b, lam, X, y, xi, mu, C)
    mean = primal_risk.risk(theta, b, X, y, pt.full(12, 1 / 12), losses.hinge) - primal_risk.norm(theta, b)
    intercept = dual.intercept(lam, X, y, linear, C)
    tube = losses.epsilon_insensitive(pt.as_tensor(TARGETS), f, EPSILON)
    return {
        "002:1.2": [primal.slack(theta, b, X, y)],
        "002:1.3": [primal.slack(theta, b, X, y)],
        "002:1.5": [primal.f0(theta, xi, C)],
        "002:1.11": [soft],
        "002:1.12": [grad(soft, theta), primal.theta(lam, X, y)],
        "002:1.14": [grad(soft, xi), primal.mu(lam, C)],
        "002:1.15": [-dual.W(lam, X, y, linear)],
        "002:1.20": [intercept],
        "002:1.21": [intercept],
        "002:1.22": [pt.sign(dual.decision(Z[0], lam, X, y, linear, b))],
        "002:2.4": [tube],
        "002:2.11": [primal.mu(lam, C)],
        "002:2.12": [primal.mu(lam, C)],
        "002:3.1": [hessian_row(CSVC(lam, X, y, C, kernel), pt.constant(2))],
        "002:3.2": [linear(X, Z)],
        "002:3.3": [Polynomial(degree=3, gamma=0.7, coef0=1.1)(X, Z)],
        "002:3.4": [kernel(X, Z), RBF.from_gamma(1 / (2 * SIGMA**2))(X, Z)],
        "003:2": [primal.affine(theta * -b / (theta**2).sum(), theta, b)],
        "003:3": [f],
        "003:5": [primal.margins(theta, b, X, y) >= 0],
        "003:7": [primal.distance(theta)],
        "003:8": [primal.margins(theta, b, X, y) + 1],
        "003:11": [primal.f0(theta)],
        "003:12": [primal.margins(theta, b, X, y)],
        "003:14": [hard],
        "003:15": [grad(hard, theta), grad(hard, b), primal.theta(lam, X, y)],
        "003:16": [primal.margins(theta, b, X, y)],
        "003:19": [-dual.W(lam, X, y, linear)],
        "003:20": [dual.decision(Z[0], lam, X, y, linear, b), primal.affine(Z[0], primal.theta(lam, X, y), b)],
        "003:21": [intercept],
        "003:25": [primal.theta(lam, map_rows(phi, X), y)],
        "003:26": [dual.decisions(Z, lam, X, y, kernel, b)],
        "003:28": [mean],
        "003:29": [losses.hinge(y, f), primal.slack(theta, b, X, y)],
    }


def loops(lam, X, y, Z):
    """Equation number -> the same values by loops."""
    m, zero = len(y), [0.0] * len(y)
    f = [oracles.affine(x, THETA, B) for x in X]
    slack = [max(0.0, 1 - f_i) if y_i > 0 else max(0.0, 1 + f_i) for f_i, y_i in zip(f, y, strict=True)]
    theta, minus_W = oracles.theta(lam, X, y), -oracles.W(lam, X, y, oracles.inner)
    soft, hard = (
        oracles.lagrangian(THETA, B, lam, X, y, XI, MU, C),
        oracles.lagrangian(THETA, B, lam, X, y, zero, zero, C),
    )
    along = [t - s for t, s in zip(THETA, theta, strict=True)]
    free = [i for i in range(m) if 0 < lam[i] < C]
    b = sum(y[s] - oracles.decision(X[s], lam, X, y, oracles.inner, 0.0) for s in free) / len(free)
    margins = [y_i * f_i for y_i, f_i in zip(y, f, strict=True)]
    decision = oracles.decision(Z[0], lam, X, y, oracles.inner, B)
    tube = [max(0.0, t - f_i - EPSILON) + max(0.0, f_i - t - EPSILON) for t, f_i in zip(TARGETS, f, strict=True)]
    polynomial = [[(0.7 * oracles.inner(x, z) + 1.1) ** 3 for z in Z] for x in X]
    return {
        "002:1.2": [slack],
        "002:1.3": [slack],
        "002:1.5": [oracles.f0(THETA, XI, C)],
        "002:1.11": [soft],
        "002:1.12": [along, theta],
        "002:1.14": [[C - lam[i] - MU[i] for i in range(m)], [C - a for a in lam]],
        "002:1.15": [minus_W],
        "002:1.20": [b],
        "002:1.21": [b],
        "002:1.22": [1.0 if decision > 0 else -1.0],
        "002:2.4": [tube],
        "002:2.11": [[C - a for a in lam]],
        "002:2.12": [[C - a for a in lam]],
        "002:3.1": [[y[2] * y[j] * k(X[2], X[j]) for j in range(m)]],
        "002:3.2": [oracles.gram(X, Z, oracles.inner)],
        "002:3.3": [polynomial],
        "002:3.4": [oracles.gram(X, Z, k)] * 2,
        "003:2": [0.0],
        "003:3": [f],
        "003:5": [[f_i >= 1 if y_i > 0 else f_i <= -1 for f_i, y_i in zip(f, y, strict=True)]],
        "003:7": [2 / oracles.inner(THETA, THETA) ** 0.5],
        "003:8": [margins],
        "003:11": [0.5 * oracles.inner(THETA, THETA)],
        "003:12": [[a - 1 for a in margins]],
        "003:14": [hard],
        "003:15": [along, -sum(lam * y), theta],
        "003:16": [[a - 1 for a in margins]],
        "003:19": [minus_W],
        "003:20": [decision, decision],
        "003:21": [b],
        "003:25": [oracles.theta(lam, [phi_loop(x) for x in X], y)],
        "003:26": [[oracles.decision(z, lam, X, y, k, B) for z in Z]],
        "003:28": [sum(slack) / m],
        "003:29": [slack, slack],
    }


LOOPS = loops(*DATA)


@pytest.fixture(scope="module", params=["JAX", pytest.param("NUMBA", marks=pytest.mark.slow)])
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


def test_training_sets():
    """Eq. 002:1.1, 003:1."""
    np.testing.assert_array_equal(signs(["yes", "no", "yes"]), [1, -1, 1])


def test_separation_over_features():
    """Eq. 003:4, 003:22, 003:24: a perceptron ends where f(x_i) has the sign of y_i, f over features it is given."""
    X, y = PROBLEMS["separable"].X, PROBLEMS["separable"].y
    lift = PerceptronRisk(X, y, features=lambda x: pt.stack([x[0], x[0] + x[1]]))
    theta = solve(lift, "perceptron", mode="FAST_COMPILE").w
    for x, label in zip(X, y, strict=True):
        f = theta[0] * x[0] + theta[1] * (x[0] + x[1]) + theta[2]
        assert f > 0 if label > 0 else f < 0


def test_the_widest_margin_and_its_kkt_conditions():
    """Eq. 003:6, 003:9, 003:10, 003:17, 003:18, 003:23."""
    X, y = PROBLEMS["separable"].X, PROBLEMS["separable"].y
    found = hard_margin(X, y)
    f = X @ found.theta + found.b
    assert f[y > 0].min() == pytest.approx(1.0, abs=1e-6)  # 6a
    assert f[y < 0].max() == pytest.approx(-1.0, abs=1e-6)  # 6b
    assert found.lam.min() >= 0  # 17
    np.testing.assert_allclose(found.lam * (y * f - 1), 0, atol=1e-5)  # 18
    width = 2 / np.linalg.norm(found.theta)
    for _ in range(200):  # 9: no other direction is wider, 10: none is feasible with a shorter normal
        u = found.theta / np.linalg.norm(found.theta) + 0.1 * RNG.normal(size=2)
        u /= np.linalg.norm(u)
        assert (X @ u)[y > 0].min() - (X @ u)[y < 0].max() <= width + 1e-6
    K = function([], Linear()(X), mode="FAST_COMPILE")()
    np.testing.assert_allclose(K, [[oracles.inner(x, z) for z in X] for x in X])  # 23, with Phi the identity


def test_the_soft_margin_and_its_intercept():
    """Eq. 002:1.5, 002:1.13, 002:1.17, 002:1.18, 002:1.19, 003:30."""
    X, y = PROBLEM.X, PROBLEM.y
    found = soft_margin(X, y, C)
    assert infeasibility(found.lam, 0.0, C, (y, 0.0)) <= 1e-12  # 1.13
    P, q, G, h = primal_quadratic_program(PrimalRisk(X, y, C, "hinge", bias="free"))
    u = np.r_[found.theta, found.b, found.xi]
    assert (G @ u - h).max() < 1e-7
    assert 0.5 * u @ (P @ u) + q @ u == pytest.approx(oracles.f0(found.theta, found.xi, C))
    certificate = certify_svc(found.lam, X @ (X.T @ (found.lam * y)), y, C, tol=1e-6, is_psd=True)
    free = np.flatnonzero((found.lam > 0) & (found.lam < C))
    bound = np.flatnonzero(found.lam == C)
    assert len(free)
    for s in free:
        f = oracles.decision(X[s], found.lam, X, y, oracles.inner, certificate.b)
        assert y[s] * (X[s] @ found.theta + found.b) == pytest.approx(1.0, abs=1e-5)  # 1.17
        assert y[s] * f == pytest.approx(1.0, abs=1e-5)  # 1.18
        assert y[s] ** 2 * f == pytest.approx(y[s], abs=1e-5)  # 1.19
    assert min(y[s] * (X[s] @ found.theta + found.b) for s in bound) < 0.9  # not those at C


def test_regression():
    """Eq. 002:2.5, 002:2.9, 002:2.10, 002:2.13, 002:2.14, 002:2.16, 002:2.17, 002:2.18."""
    X, m = PROBLEM.X, 12
    qp = QuadraticProgram.svr(TARGETS, C, EPSILON)
    plus, minus = RNG.uniform(0, C, m), RNG.uniform(0, C, m)
    minus *= plus.sum() / minus.sum()
    objective = KernelDual(qp, X, Linear())
    objective.variable.set_value(np.r_[plus, -minus])
    value, z = float(function([], objective.value, mode="FAST_COMPILE")()), np.r_[plus, -minus]
    total = 0.0
    for i in range(m):
        total += EPSILON * (plus[i] + minus[i]) - TARGETS[i] * (plus[i] - minus[i])
        for j in range(m):
            total += 0.5 * (plus[i] - minus[i]) * oracles.inner(X[i], X[j]) * (plus[j] - minus[j])
    assert value == pytest.approx(total)  # 2.14; 2.13 is its negative
    np.testing.assert_allclose(qp.weights(z), plus - minus)  # 2.9
    assert abs(z.sum()) < 1e-12  # 2.10
    assert qp.total.tolist() == [0.0]

    risk = PrimalRisk(X, TARGETS, C, "epsilon_insensitive", epsilon=EPSILON, bias="free")
    found = interior_point(*primal_quadratic_program(risk))
    theta, b, xi = found.v[:3], found.v[3], found.v[4:]
    exact = solve(objective, tol=1e-9)
    beta = qp.weights(exact.z)
    np.testing.assert_allclose(theta, oracles.theta(beta, X, np.ones(m)), atol=1e-5)  # 2.5 has the theta of 2.9
    for i in range(m):
        above, below = TARGETS[i] - X[i] @ theta - b, X[i] @ theta + b - TARGETS[i]
        assert xi[i] == pytest.approx(max(0.0, above - EPSILON) + max(0.0, below - EPSILON), abs=1e-6)
    Kz = X @ (X.T @ beta)
    asked = [
        TARGETS[i % m] - np.sign(exact.z[i]) * EPSILON - Kz[i % m]
        for i in range(2 * m)
        if qp.lower[i] < exact.z[i] < qp.upper[i]
    ]
    found_b, _ = qp.multipliers(qp.gradient(Kz, exact.z), exact.z)
    np.testing.assert_allclose(asked, found_b[0], atol=1e-7)  # 2.17: every free one asks for the same
    assert found_b[0] == pytest.approx(np.mean(asked))  # 2.18
    model = SVR(kernel="linear", C=C, epsilon=EPSILON, tol=1e-8).fit(X, TARGETS)
    by_hand = [sum(beta[i] * oracles.inner(X[i], z) for i in range(m)) + found_b[0] for z in PROBLEM.Z]
    np.testing.assert_allclose(model.predict(PROBLEM.Z), by_hand, atol=1e-6)  # 2.16


def test_steps_of_smo_are_those_of_algorithm_1():
    """Document 003's Algorithm 1 by loops, with the curvature of Eq. 002:7.3 in its line 9."""
    X, y, m = PROBLEM.X, PROBLEM.y, 12
    K = oracles.gram(X, X, k)
    program = compile(KernelDual(QuadraticProgram.c_svc(y, C), X, RBF(SIGMA)), "smo", mode="FAST_COMPILE")
    alpha, g = np.zeros(m), np.ones(m)
    low, high = [min(0.0, y_i * C) for y_i in y], [max(0.0, y_i * C) for y_i in y]
    for (z, _, _, _), _ in zip(program.steps(program.initial_state()), range(15), strict=False):
        np.testing.assert_allclose(z, y * alpha, atol=1e-10)
        i = max((n for n in range(m) if y[n] * alpha[n] < high[n]), key=lambda n: y[n] * g[n])
        j = min((n for n in range(m) if low[n] < y[n] * alpha[n]), key=lambda n: y[n] * g[n])
        newton = (y[i] * g[i] - y[j] * g[j]) / (K[i, i] + K[j, j] - 2 * K[i, j])
        step = min(high[i] - y[i] * alpha[i], y[j] * alpha[j] - low[j], newton)
        for n in range(m):
            g[n] += step * y[n] * (K[j, n] - K[i, n])
        alpha[i] += step * y[i]
        alpha[j] -= step * y[j]


def test_every_equation_is_compared():
    """Here as a graph, here in another test, or in the file that the head of this one names."""
    in_tests = {"002:1.1", "002:1.13", "002:1.17", "002:1.18", "002:1.19", "002:2.5", "002:2.9", "002:2.10", "002:2.13"}
    in_tests |= {"002:2.14", "002:2.16", "002:2.17", "002:2.18", "002:7.3"}
    in_tests |= {f"003:{n}" for n in (1, 4, 6, 9, 10, 13, 17, 18, 22, 23, 24, 30)}
    simplified = {f"001:{n}" for n in range(1, 12)} | {f"002:7.{n}" for n in (1, 2, 4, 5, 6, 7)}
    primals = {"002:1", *(f"002:1.{n}" for n in range(6, 11)), *(f"002:2.{n}" for n in (2, 3, 6, 7))}
    relaxed = {"002:1.16", "002:2.15", *(f"002:1.{n}" for n in range(23, 32))}
    heads = {f"005:{n}" for n in range(1, 8)}
    assert set(OTHERS) == set(LOOPS) | in_tests | simplified | primals | relaxed | heads
