"""Programs with a separable smooth convex term: kernel logistic regression and other terms, against other solvers."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from symsvm import RBF, QuadraticProgram, Sigmoid
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.evaluation.local import LocalKernelMatrix
from symsvm.objectives import SeparableProgram, SeparableTerm
from symsvm.solvers.decomposition import Parameters, solve_dual, solve_separable

KERNEL = RBF(1.2)


def points(m, d=4, seed=0):
    """Points and labels that overlap."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, np.where(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.7 * rng.normal(size=m) > 0, 1.0, -1.0)


def entropy(y, C):
    """C (t log t + (1 - t) log(1 - t)) with t = y z / C, NaN or infinite at the bounds."""
    C = np.broadcast_to(C, len(y))

    def value(z):
        t = y * z / C
        return C * (t * np.log(t) + (1 - t) * np.log(1 - t))

    return SeparableTerm(value, lambda z: y * np.log(y * z / (C - y * z)), lambda z: C / (y * z * (C - y * z)))


def logistic(y, C, intercept=True):
    """The constraints of kernel logistic regression in z = y lam."""
    return dataclasses.replace(QuadraticProgram.c_svc(y, C, intercept=intercept), p=np.zeros(len(y)))


def quadratic(a):
    return SeparableTerm(lambda z: a * z**2 / 2, lambda z: a * z, lambda z: a + 0 * z)


def quartic(a):
    return SeparableTerm(lambda z: a * z**4 / 4, lambda z: a * z**3, lambda z: 3 * a * z**2)


def huber(a, k):
    return SeparableTerm(
        lambda z: np.where(np.abs(z) < k, a * z**2 / 2, a * k * (np.abs(z) - k / 2)),
        lambda z: a * np.clip(z, -k, k),
        lambda z: np.where(np.abs(z) < k, a, 0.0),
    )


NEGENTROPY = SeparableTerm(lambda z: z * np.log(z) - z, np.log, lambda z: 1 / z)


def solve(program, phi, X, *, kernel=KERNEL, **options):
    options = {"is_psd": True, **options}
    return solve_separable(program, phi, LocalKernelMatrix(kernel, X), **options)


def newton(K, y, C, intercept):
    """Kernel logistic regression by Newton's method on its primal in (alpha, b), with dense solves."""
    m, n = len(y), len(y) + intercept
    C, alpha, b = np.broadcast_to(C, len(y)), np.zeros(len(y)), 0.0

    def primal(alpha, b):
        return 0.5 * alpha @ K @ alpha + C @ np.logaddexp(0, -y * (K @ alpha + b))

    for _ in range(100):
        s = expit(-y * (K @ alpha + b))
        A, r = np.zeros((n, n)), np.zeros(n)
        w = C * s * (1 - s)
        A[:m, :m], r[:m] = np.eye(m) + w[:, None] * K, y * C * s - alpha
        if intercept:
            A[:m, m], A[m, :m], r[m] = w, 1, -alpha.sum()
        step, t = np.linalg.solve(A, r), 1.0
        change = step[m] if intercept else 0.0
        while t > 1e-6 and primal(alpha + t * step[:m], b + t * change) > primal(alpha, b) * (1 + 1e-13):
            t /= 2
        alpha, b = alpha + t * step[:m], b + t * change
        if np.abs(K @ step[:m] + change).max() < 1e-10:
            return alpha, b
    return alpha, b


M = 300
X, Y = points(M)
RNG = np.random.default_rng(7)
CASES = {
    "C = 1": (X, Y, 1.0, True),
    "C = 0.001": (X, Y, 1e-3, True),
    "C = 10 000": (X, Y, 1e4, True),
    "no intercept": (X, Y, 10.0, False),
    "a C each": (X, Y, np.exp(2 * RNG.normal(size=M)), True),
    "imbalance": (X, np.where(np.arange(M) < 5, 1.0, -1.0), 5.0, True),
    "duplicates": (X[np.arange(M) // 5], Y, 20.0, True),
    "duplicates, C = 10 000": (X[np.arange(M) // 5], Y, 1e4, True),
}


@pytest.mark.parametrize("name", CASES)
def test_probabilities_are_those_of_newtons_method_on_the_primal(name):
    Z, y, C, intercept = CASES[name]
    solution = solve(logistic(y, C, intercept), entropy(y, C), Z, tol=1e-7)
    certificate = solution.certificate
    assert solution.stopped == "tol"
    assert certificate.status == "optimal"
    assert certificate.violation <= 1e-7
    assert 0 <= certificate.gap <= 1e-9 * max(1.0, certificate.primal)
    K = KernelEvaluator(KERNEL).block(Z, Z)
    alpha, b = newton(K, y, C, intercept)
    f = K @ solution.lam + (solution.b if intercept else 0.0)
    np.testing.assert_allclose(expit(f), expit(K @ alpha + b), atol=1e-6)
    primal = 0.5 * solution.lam @ K @ solution.lam + np.sum(C * np.logaddexp(0, -y * f))
    assert certificate.primal == pytest.approx(primal, rel=1e-9)
    assert (solution.b is None) == (not intercept)


def test_the_gap_is_primal_less_dual_at_any_feasible_point():
    K, rng = KernelEvaluator(KERNEL).block(X, X), np.random.default_rng(1)
    C, program = 3.0, SeparableProgram(logistic(Y, 3.0), entropy(Y, 3.0))
    for scale in (1e-9, 0.1, 1.0):
        z = program.quadratic.start(Y * C * rng.uniform(0, scale, M))
        z[np.argmax(np.abs(z))] = program.quadratic.lower[0] * 0  # a variable at a bound
        z = program.quadratic.start(z)
        b = rng.normal(size=1)
        gap = program.gap(K @ z, z, b)
        t = Y * z / C
        inner = t[(t > 0) & (t < 1)]
        W = 0.5 * z @ K @ z + C * np.sum(inner * np.log(inner) + (1 - inner) * np.log1p(-inner))
        primal = 0.5 * z @ K @ z + C * np.logaddexp(0, -Y * (K @ z + b)).sum()
        assert program.value(K @ z, z) == pytest.approx(W, rel=1e-12, abs=1e-12)
        assert gap >= 0
        assert gap == pytest.approx(primal + W, rel=1e-9)


def reference(program, phi, K):
    """The optimum by SLSQP."""
    H = K[np.ix_(program.point, program.point)] + np.diag(program.diagonal)
    lower, upper = program.lower, program.upper
    inset = 1e-13 * np.minimum(1.0, np.where(np.isfinite(upper - lower), upper - lower, 1.0))

    def inside(z):
        return np.clip(z, lower + inset, upper - inset)

    rows = (program.group == np.arange(len(program.total))[:, None]).astype(float)
    equality = {"type": "eq", "fun": lambda z: rows @ z - program.total, "jac": lambda z: rows}
    width = np.where(np.isfinite(upper - lower), upper - lower, 1.0)
    first = program.start(np.where(lower == 0, 0.01 * width, np.where(upper == 0, -0.01 * width, 0.0)))
    found = minimize(
        lambda z: 0.5 * z @ H @ z + program.p @ z + phi.value(inside(z)).sum(),
        first,
        jac=lambda z: H @ z + program.p + phi.gradient(inside(z)),
        bounds=list(zip(lower, upper, strict=True)),
        constraints=[equality] if len(rows) else [],
        method="SLSQP",
        options={"maxiter": 3000, "ftol": 1e-15},
    )
    return found.fun


N = 50
T = np.sin(2 * X[:N, 0])
HALF = np.arange(N) % 2 == 0


def mixed(part):
    """A function of an entropy for one half of the variables, and of a quartic for the other."""
    one, other = getattr(entropy(Y[:N], 3.0), part), getattr(quartic(1.0), part)
    return lambda z: np.where(HALF, one(z), other(z))


MIXED = SeparableTerm(mixed("value"), mixed("gradient"), mixed("curvature"))
TERMS = {
    "quartic": (QuadraticProgram.c_svc(Y[:N], 3.0), quartic(1.0)),
    "quartic, no intercept": (QuadraticProgram.c_svc(Y[:N], 3.0, intercept=False), quartic(1.0)),
    "quartic, two variables a point": (QuadraticProgram.svr(T, 3.0, 0.1), quartic(1.0)),
    "quartic, two equalities": (QuadraticProgram.nu_svc(Y[:N], 0.4), quartic(0.3)),
    "Huber": (QuadraticProgram.c_svc(Y[:N], 3.0), huber(1.0, 0.5)),
    "entropy of a distribution": (QuadraticProgram.one_class(np.ones(N), 0.3), NEGENTROPY),
    "two kinds": (logistic(Y[:N], 3.0), MIXED),
}


@pytest.mark.parametrize("name", TERMS)
def test_other_terms_reach_the_optimum_of_a_general_solver(name):
    program, phi = TERMS[name]
    with np.errstate(all="ignore"):
        best = reference(program, phi, KernelEvaluator(KERNEL).block(X[:N], X[:N]))
    solution = solve(program, phi, X[:N], tol=1e-8)
    certificate = solution.certificate
    assert certificate.status == "optimal"
    assert certificate.W == pytest.approx(best, rel=1e-7, abs=1e-7)
    assert 0 <= certificate.gap <= 1e-8
    assert certificate.infeasibility <= 1e-12


@pytest.mark.parametrize("m", [120, 3000])
@pytest.mark.parametrize("squared", [False, True])
def test_a_quadratic_term_is_the_diagonal_of_a_quadratic_program(m, squared):
    Z, y = points(m)
    program, matrix = QuadraticProgram.c_svc(y, 2.0, squared=squared), LocalKernelMatrix(KERNEL, Z)
    expected = dataclasses.replace(program, diagonal=program.diagonal + 0.7)
    solution = solve(program, quadratic(0.7), Z, tol=1e-9)
    other = solve_dual(expected, matrix, is_psd=True, tol=1e-9)
    np.testing.assert_allclose(solution.z, other.z, atol=1e-8)
    assert solution.W == pytest.approx(other.W, rel=1e-12)
    assert solution.b == pytest.approx(other.b, abs=1e-8)
    K = KernelEvaluator(KERNEL).block(Z, Z)
    both = SeparableProgram(program, quadratic(0.7))
    z = program.start(other.lam + 1e-3)
    F = expected.gradient(K @ z, z)
    np.testing.assert_allclose(both.gradient(K @ z, z), F, atol=1e-12)
    b, violation = both.multipliers(F, z)
    assert violation == expected.multipliers(F, z)[1]
    assert both.gap(K @ z, z, b) == pytest.approx(expected.gap(F, z, b), rel=1e-9)


def test_more_points_than_one_block_in_memory_or_by_tiles():
    Z, y = points(3000, seed=3)
    options = {"tol": 1e-6, "parameters": Parameters(landmarks=200)}
    solution = solve(logistic(y, 10.0), entropy(y, 10.0), Z, **options)
    assert solution.certificate.status == "optimal"
    assert solution.certificate.relative_gap <= 1e-9
    again = solve(logistic(y, 10.0), entropy(y, 10.0), Z, **options)
    np.testing.assert_array_equal(solution.lam, again.lam)
    tiled = solve(logistic(y, 10.0), entropy(y, 10.0), Z, memory=2**22, **options)
    assert tiled.certificate.status == "optimal"
    np.testing.assert_allclose(tiled.lam, solution.lam, atol=1e-5)
    large = solve(logistic(y, 1e4), entropy(y, 1e4), Z)
    assert large.certificate.status == "optimal"
    assert large.certificate.relative_gap <= 1e-6


def test_sequential_quadratic_programming_takes_over():
    expected = solve(logistic(Y, 5.0), entropy(Y, 5.0), X, tol=1e-8)
    solution = solve(logistic(Y, 5.0), entropy(Y, 5.0), X, tol=1e-8, parameters=Parameters(cg_steps=0))
    assert solution.certificate.status == "optimal"
    np.testing.assert_allclose(solution.lam, expected.lam, atol=1e-6)


def test_a_start_from_a_solution():
    program = logistic(Y, 5.0)
    solution = solve(program, entropy(Y, 5.0), X, tol=1e-6)
    again = solve(program, entropy(Y, 5.0), X, tol=1e-6, start=solution)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.lam, solution.lam)
    fewer = solve(logistic(Y[:280], 5.0), entropy(Y[:280], 5.0), X[:280], tol=1e-6)
    more = solve(program, entropy(Y, 5.0), X, tol=1e-6, start=fewer)
    np.testing.assert_allclose(more.lam, solution.lam, atol=1e-5)
    for C in (0.5, 50.0):
        other = solve(logistic(Y, C), entropy(Y, C), X, tol=1e-6, start=solution)
        assert other.certificate.status == "optimal"
    signed = solve(program, entropy(Y, 5.0), X, tol=1e-6, factor=Y)
    assert (signed.lam > 0).all()
    assert solve(program, entropy(Y, 5.0), X, tol=1e-6, factor=Y, start=signed).n_iter == 0


def interrupt(info):
    raise KeyboardInterrupt


@pytest.mark.parametrize("phi", ["entropy", "quartic"])
@pytest.mark.parametrize(
    ("why", "options"),
    {
        "max_iter": {"max_iter": 2},
        "time_limit": {"time_limit": 0.0},
        "callback": {"callback": lambda info: info.iteration == 1},
        "interrupt": {"callback": lambda info: info.iteration == 1 and interrupt(info)},
    }.items(),
)
def test_every_stop_warns_and_is_feasible(phi, why, options):
    Z, y = points(1200, seed=2)
    program, term = (logistic(y, 10.0), entropy(y, 10.0)) if phi == "entropy" else TERMS["quartic"]
    with pytest.warns(ConvergenceWarning, match=r"above tol=1e-09; the point is feasible") as caught:
        solution = solve(program, term, Z[: program.m], tol=1e-9, **options)
    assert caught[0].filename == __file__
    assert solution.stopped == why
    assert solution.certificate.status == "feasible"
    assert solution.certificate.infeasibility <= 1e-10
    assert solution.certificate.gap > 0
    assert len(solution.trace["W"]) == solution.n_iter + 1
    assert solution.W == pytest.approx(solution.trace["W"].min(), rel=1e-5, abs=1e-12)


def test_an_interrupt_before_the_first_measure_is_raised():
    def value(z):
        raise KeyboardInterrupt

    term = dataclasses.replace(entropy(Y, 1.0), value=value)
    with pytest.raises(KeyboardInterrupt):
        solve(logistic(Y, 1.0), term, X)


def test_the_trace_ends_at_the_certificate():
    seen = []
    solution = solve(logistic(Y, 5.0), entropy(Y, 5.0), X, callback=seen.append)
    names = {"iteration", "seconds", "W", "violation", "gap", "free", "bounded", "rows"}
    assert set(solution.trace) == names
    assert [info.iteration for info in seen] == list(range(solution.n_iter + 1))
    assert solution.trace["W"][-1] == pytest.approx(solution.certificate.W, rel=1e-12)
    assert solution.trace["violation"][-1] == pytest.approx(solution.certificate.violation, rel=1e-9)
    assert (solution.trace["gap"] >= 0).all()
    assert solution.trace["free"][-1] == M


def test_an_indefinite_kernel_gives_a_stationary_point():
    kernel = Sigmoid(gamma=0.3, coef0=-0.5)
    solution = solve(logistic(Y, 0.5), entropy(Y, 0.5), X, kernel=kernel, is_psd=False, tol=1e-6)
    assert solution.certificate.status == "stationary"
    assert solution.certificate.infeasibility <= 1e-12


def test_points_without_weight_stay_at_0():
    C = np.where(np.arange(M) % 7 == 0, 0.0, 2.0)
    solution = solve(logistic(Y, C), entropy(Y, C), X, tol=1e-7)
    used = C > 0
    expected = solve(logistic(Y[used], 2.0), entropy(Y[used], 2.0), X[used], tol=1e-7)
    assert solution.certificate.status == "optimal"
    assert not solution.lam[~used].any()
    np.testing.assert_allclose(solution.lam[used], expected.lam, atol=1e-6)


def test_minimisers_of_one_variable_each():
    rng = np.random.default_rng(3)
    y, C, f = np.where(rng.normal(size=400) > 0, 1.0, -1.0), rng.uniform(0.1, 100, 400), 30 * rng.normal(size=400)
    term, lower, upper = entropy(y, C), np.minimum(0, y * C), np.maximum(0, y * C)
    z = term.minimiser(f, 0.0, lower, upper)
    np.testing.assert_allclose(z, y * C * expit(-y * f), rtol=1e-12, atol=1e-14)
    D = 1 / C
    z = term.minimiser(f, D, lower, upper, near=upper)
    inner = (z > lower) & (z < upper)
    with np.errstate(divide="ignore"):
        slope = term.gradient(z) + D * z + f
        rounding = np.spacing(np.abs(z)) * term.curvature(z) + 1e-12 * np.abs(f)
    assert (np.abs(slope) <= 4 * rounding)[inner].all()
    assert inner.mean() > 0.8
    np.testing.assert_allclose(quartic(1.0).minimiser(f, 0.0, -np.inf * C, np.inf * C), -np.cbrt(f), rtol=1e-9)
    linear = SeparableTerm(lambda z: 0 * z, lambda z: 0 * z, lambda z: 0 * z)
    ends = linear.minimiser(
        np.array([1.0, -1.0, 1.0]), 0.0, np.array([-np.inf, 0.0, 2.0]), np.array([1.0, np.inf, 3.0])
    )
    np.testing.assert_array_equal(ends, [-np.inf, np.inf, 2.0])


def test_limits_from_inside_at_the_bounds():
    y, C = np.array([1.0, -1.0, 1.0]), np.array([2.0, 3.0, 0.0])
    term, lower, upper = entropy(y, C), np.array([0.0, -3.0, 0.0]), np.array([2.0, 0.0, 0.0])
    for z in (lower, upper):
        np.testing.assert_allclose(term.evaluate("value", z, lower, upper), 0, atol=1e-12)
        assert np.isfinite(term.evaluate("gradient", z, lower, upper)).all()
        assert np.isfinite(term.evaluate("curvature", z, lower, upper)).all()
    low, high = term.end_gradients(lower, upper)
    assert (low[:2] < -30).all()
    assert (high[:2] > 30).all()
