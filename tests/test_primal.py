"""Primal risks by AdaGrad and gradient descent: the optimum of an independent solver, and a gap that holds."""

import numpy as np
import oracles
import pytensor.tensor as pt
import pytest
import sklearn.svm
from datasets import missing, reason
from problems import MODES
from sklearn.datasets import load_diabetes, load_svmlight_file
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from symsvm import RBF, SVR, AdaGrad, GradientDescent, KernelDual, PrimalRisk, QuadraticProgram, compile, solve
from symsvm.compiler.functions import function, grad
from symsvm.data import data_home
from symsvm.objectives.losses import LOSSES
from symsvm.objectives.primal_risk import CuttingPlanes

RNG = np.random.default_rng(0)
M = 60
SIGNS = np.where(np.arange(M) % 2 == 0, 1.0, -1.0)
X = RNG.normal(size=(M, 3)) + 0.7 * SIGNS[:, None]
TARGETS = X @ [1.0, -0.5, 0.3] + 0.5 + 0.3 * RNG.normal(size=M)
C = np.where(np.arange(M) % 3 == 0, 0.2, 0.1)
EPSILON = 0.2
CASES = [(loss, bias) for loss in LOSSES for bias in ("embedded", "free", None)]


def risk(loss, bias, **options):
    y = SIGNS if loss.endswith("hinge") else TARGETS
    return PrimalRisk(X, y, C, loss, epsilon=EPSILON, bias=bias, **options)


def dual_optimum(loss, bias, C=C):
    """z* by the general QP solver on the dual, and P* = D*."""
    squared, intercept = loss.startswith("squared"), bias == "free"
    if loss.endswith("hinge"):
        qp = QuadraticProgram.c_svc(SIGNS, C, squared=squared, intercept=intercept)
    else:
        qp = QuadraticProgram.svr(TARGETS, C, EPSILON, squared=squared, intercept=intercept)
    K = X @ X.T + (bias == "embedded")
    H = K[np.ix_(qp.point, qp.point)] + np.diag(qp.diagonal)
    z = oracles.qp(H, qp.p, qp.lower, qp.upper, *((np.ones(qp.n),) if intercept else ()))
    return qp.weights(z), -(0.5 * z @ H @ z + qp.p @ z)


def optimum(loss, bias):
    return dual_optimum(loss, bias)[1]


@pytest.mark.parametrize(("loss", "bias"), CASES)
def test_adagrad_meets_the_optimum_and_its_gap_holds(loss, bias):
    solution = compile(risk(loss, bias), AdaGrad(), mode="FAST_COMPILE").run(tol=1e-2, max_iter=20000)
    certificate, best = solution.certificate, optimum(loss, bias)
    assert certificate.status == "optimal"
    assert certificate.relative_gap <= 1e-2
    assert certificate.dual <= best + 1e-7 <= certificate.primal + 2e-7  # weak duality, on both sides
    assert solution.W == pytest.approx(best, rel=1e-2)


@pytest.mark.parametrize(("loss", "bias"), [case for case in CASES if LOSSES[case[0]][2]])
def test_gradient_descent_meets_the_optimum(loss, bias):
    problem = risk(loss, bias)
    for solver in (GradientDescent(1 / problem.curvature), GradientDescent()):
        solution = compile(problem, solver, mode="FAST_COMPILE").run(tol=1e-8)
        assert solution.certificate.status == "optimal"
        assert solution.W == pytest.approx(optimum(loss, bias), rel=1e-7)
        assert solution.b == (None if bias is None else solution.w[-1])


@pytest.mark.parametrize("mode", MODES)
def test_on_each_backend(mode):
    solution = compile(risk("hinge", "free"), AdaGrad(), mode=mode).run(tol=1e-2)
    assert solution.W == pytest.approx(optimum("hinge", "free"), rel=1e-2)
    assert solution.certificate.status == "optimal"
    solution = compile(risk("squared_hinge", "embedded"), GradientDescent(), mode=mode).run(tol=1e-6)
    assert solution.W == pytest.approx(optimum("squared_hinge", "embedded"), rel=1e-6)


def test_a_step_with_the_lipschitz_constant_never_raises_a_smooth_risk():
    problem = risk("squared_epsilon_insensitive", "free")
    trace = compile(problem, GradientDescent(1 / problem.curvature), mode="FAST_COMPILE").run(tol=1e-9).trace
    assert (np.diff(trace["W"]) <= 1e-12).all()


@pytest.mark.parametrize(("loss", "bias"), CASES)
def test_the_box_holds_the_minimiser(loss, bias):
    for price in (1e-3, 10.0):
        y = SIGNS if loss.endswith("hinge") else TARGETS
        R = PrimalRisk(X, y, price, loss, epsilon=EPSILON, bias=bias).upper.get_value()[0]
        z, best = dual_optimum(loss, bias, price)
        assert np.linalg.norm(X.T @ z) <= R
        assert best <= R**2  # P(0)


def test_gradient_descent_rejects_a_loss_with_kinks():
    with pytest.raises(ValueError, match="use 'adagrad' or 'qp', or a squared loss"):
        compile(risk("hinge", "free"), GradientDescent())
    with pytest.raises(ValueError, match="no Lipschitz constant"):
        risk("hinge", "free").curvature  # noqa: B018


def test_which_subgradient_is_taken_at_a_kink():
    y, f = pt.scalar("y"), pt.scalar("f")
    hinge, tube = LOSSES["hinge"][0](y, f), LOSSES["epsilon_insensitive"][0](y, f, 0.5)
    none = LOSSES["epsilon_insensitive"][0](y, f, 0.0)
    slopes = function([y, f], [grad(hinge, f), grad(tube, f), grad(none, f)], mode="FAST_COMPILE")
    assert slopes(1.0, 1.0)[0] == -1
    assert slopes(-1.0, -1.0)[0] == 1
    assert slopes(1.0, 0.5)[1] == -1
    assert slopes(0.0, 0.5)[1] == 1
    assert slopes(2.0, 2.0)[2] == 0


@pytest.mark.parametrize("mode", ["JAX", "FAST_COMPILE"])
def test_equations_of_meoli(mode):
    """Eq. 002:1.6 to 002:1.10, 002:2.2 to 002:2.7 and a step of 002:1 by loops."""
    v = RNG.normal(size=4)
    f = [sum(t * x for t, x in zip(v[:3], row, strict=True)) + v[3] for row in X]
    loops = {
        "hinge": [max(0.0, 1 - y * a) for y, a in zip(SIGNS, f, strict=True)],
        "epsilon_insensitive": [max(0.0, abs(y - a) - EPSILON) for y, a in zip(TARGETS, f, strict=True)],
    }
    slopes = {
        "hinge": [-y if y * a < 1 else 0.0 for y, a in zip(SIGNS, f, strict=True)],
        "epsilon_insensitive": [-np.sign(y - a) * (abs(y - a) > EPSILON) for y, a in zip(TARGETS, f, strict=True)],
    }
    cases = [case for case in CASES if case[1] is not None]
    problems = [risk(*case) for case in cases]
    for problem in problems:
        problem.variable.set_value(v)
    graphs = [graph for one in problems for graph in (one.value, grad(one.value, one.variable))]
    values = iter(function([], graphs, mode=mode)())  # one compilation for all
    for loss, bias in cases:
        plain = loss.removeprefix("squared_")
        power = 2 if loss.startswith("squared") else 1
        norm = sum(a * a for a in v[:3]) + (v[3] ** 2 if bias == "embedded" else 0.0)
        P = 0.5 * norm + sum(c * a**power for c, a in zip(C, loops[plain], strict=True))
        outer = [c * power * a ** (power - 1) * s for c, a, s in zip(C, loops[plain], slopes[plain], strict=True)]
        g = np.r_[v[:3], v[3] * (bias == "embedded")] + np.column_stack([X, np.ones(M)]).T @ outer
        np.testing.assert_allclose(next(values), P, rtol=1e-10)
        np.testing.assert_allclose(next(values), g, rtol=1e-8, atol=1e-10)
    steps = compile(risk("hinge", "free"), AdaGrad(0.1, average=False), mode="FAST_COMPILE")
    (_, _, g, new), (_, _, h, newer) = (
        step for step, _ in zip(steps.steps(steps.initial_state(v)), range(2), strict=False)
    )
    np.testing.assert_allclose(new, v - 0.1 * g / np.sqrt(g**2))
    np.testing.assert_allclose(newer, new - 0.1 * h / np.sqrt(g**2 + h**2))


def test_adagrad_on_a_dual_projects_in_its_own_metric():
    """In the Euclidean one it would end at a wrong point; a smooth W needs no average, and bounds are met exactly."""
    dual = KernelDual(QuadraticProgram.c_svc(SIGNS, 1.0), X, RBF(1.0))
    solution = compile(dual, AdaGrad(), mode="FAST_COMPILE").run(tol=1e-4)
    assert solution.certificate.status == "optimal"
    assert solution.W == pytest.approx(solve(dual, tol=1e-8).W, abs=1e-6)


def test_cutting_planes_stay_below_a_convex_function():
    """Of f = |x_1| + 1/2 |x - a|^2 with random subgradients: below the minimum, and it closes in on it."""
    a = np.array([0.3, -2.0])

    def f(x):
        return abs(x[0]) + 0.5 * (x - a) @ (x - a)

    planes, least = CuttingPlanes(np.ones(2), -5.0, 5.0), f(np.array([0.0, -2.0]))
    bounds = []
    for _ in range(200):
        x = RNG.normal([0.0, -2.0], 0.01)
        bounds.append(planes.add(x, f(x), np.array([np.sign(x[0]), 0.0]) + x - a))
    assert max(bounds) <= least + 1e-12
    assert bounds[-1] > least - 0.1 > bounds[0]


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="labels -1 and \\+1"):
        PrimalRisk(X, TARGETS)
    with pytest.raises(ValueError, match="C must be positive"):
        PrimalRisk(X, SIGNS, C=0.0)
    with pytest.raises(ValueError, match="loss must be one of"):
        PrimalRisk(X, SIGNS, loss="logistic")
    with pytest.raises(ValueError, match="epsilon must be at least 0"):
        PrimalRisk(X, TARGETS, loss="epsilon_insensitive", epsilon=-1.0)
    with pytest.raises(ValueError, match="y must be finite, one number for each of the 60 points"):
        PrimalRisk(X, SIGNS[:3])


def test_a_weight_of_two_equals_a_copy():
    twice = np.r_[np.arange(M), :5]
    weights = np.where(np.arange(M) < 5, 2.0, 1.0)
    weighted, copied = (
        compile(PrimalRisk(points, y, price, "squared_hinge"), GradientDescent(), mode="FAST_COMPILE").run(tol=1e-12)
        for points, y, price in ((X, SIGNS, weights), (X[twice], SIGNS[twice], 1.0))
    )
    np.testing.assert_allclose(weighted.w, copied.w, atol=1e-5)


def explained(points, targets):
    """The share of the variance that a linear regression by AdaGrad explains, at a certified optimum."""
    problem = PrimalRisk(points, targets, 1.0, "epsilon_insensitive", bias="free")
    solution = compile(problem, AdaGrad(), mode="JAX").run(tol=1e-2)
    assert solution.certificate.status == "optimal"
    return r2_score(targets, problem.decision(points, solution.w))


def test_diabetes():
    """A linear regression explains what scikit-learn's does, and ours over a kernel too, on points not seen."""
    points, targets = (scale(part) for part in load_diabetes(return_X_y=True))
    theirs = sklearn.svm.LinearSVR(C=1.0, epsilon=0.1, tol=1e-6, max_iter=100_000, random_state=0).fit(points, targets)
    assert explained(points, targets) == pytest.approx(theirs.score(points, targets), abs=0.01)
    X, Z, y, t = train_test_split(points, targets, random_state=0)
    score = sklearn.svm.SVR(tol=1e-6).fit(X, y).score(Z, t)
    assert SVR(tol=1e-6).fit(X, y).score(Z, t) == pytest.approx(score, abs=1e-4)


@pytest.mark.skipif(bool(missing("housing_scale")), reason=reason(missing("housing_scale")))
def test_housing():
    """As in the tests of Meoli (2021): regression explains at least 0.67 of the prices of houses, here by AdaGrad."""
    points, prices = load_svmlight_file(str(data_home() / "housing_scale"))
    points = points.toarray()
    assert explained(points, prices) >= 0.67
    X, Z, y, t = train_test_split(points, prices, random_state=0)
    assert SVR(C=100.0).fit(X, y).score(Z, t) >= 0.67  # on points that it has not seen, with a Gaussian kernel
