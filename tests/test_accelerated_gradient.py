"""Accelerated gradient: the same optimum as an independent solver, in fewer steps, one evaluation each.

On JAX, which compiles its step in seconds; Numba takes a minute where nothing is cached, and has its cases in
test_program and test_solvers.
"""

import numpy as np
import oracles
import pytensor.tensor as pt
import pytest
from campaigns import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import KERNELS, PROBLEMS
from pytensor.graph.traversal import toposort
from pytensor.tensor.math import Dot

from symsvm import CSVC, RBF, AcceleratedGradient, Linear, Objective, ProjectedGradient, Sigmoid, compile
from symsvm.compiler.ops import KernelMatvec

# Runs end early here, and say so.
pytestmark = pytest.mark.filterwarnings("ignore:.*stopped .* above tol=:sklearn.exceptions.ConvergenceWarning")


def csvc(kernel, C=1.0):
    return CSVC(pt.vector("lam"), pt.matrix("X"), pt.vector("y"), C, kernel)


def points(m, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3))
    return {"start": np.zeros(m), "X": X, "y": np.sign(X[:, 0] + 0.3 * rng.normal(size=m))}


@pytest.fixture(scope="module")
def quadratics():
    """Programs of quadratic W, with an equality and without."""
    lam, Q, p = pt.vector("lam"), pt.matrix("Q"), pt.vector("p")
    lower, upper, a, c = pt.vector("lower"), pt.vector("upper"), pt.vector("a"), pt.scalar("c")
    W = 0.5 * lam @ (Q @ lam) + (p * lam).sum()
    return {
        equality is not None: compile(
            Objective(W, lam, lower, upper, equality, is_convex=True), AcceleratedGradient(), mode="FAST_COMPILE"
        )
        for equality in (None, (a, c))
    }


@settings(max_examples=examples(12))
@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 12),
    rank=st.integers(1, 12),
    scale=st.sampled_from([1e-4, 1.0, 1e4]),
    size=st.sampled_from([1e-3, 1.0, 1e3]),
    fixed=st.booleans(),
    equality=st.booleans(),
)
def test_it_meets_the_optimum_of_an_independent_solver(quadratics, seed, m, rank, scale, size, fixed, equality):
    """Singular Q, Q and bounds of any size, fixed variables: W agrees with an interior-point method."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, rank))
    Q = scale * (A @ A.T)
    p = scale * size * rng.normal(size=m)
    lower = size * rng.uniform(-1, 0, m)
    upper = size * rng.uniform(0.1, 1, m)
    if fixed:
        upper[0] = lower[0]
    a = rng.choice([-2.0, -1.0, 0.0, 1.0], m)
    inside = rng.uniform(lower, upper)
    tol = 1e-6 * scale * size
    data = {"Q": Q, "p": p, "lower": lower, "upper": upper} | ({"a": a, "c": a @ inside} if equality else {})
    solution = quadratics[equality].run(inside, tol=tol, max_iter=20000, **data)
    assert solution.certificate.status == "optimal"
    reference = oracles.qp(Q / scale, p / scale, lower, upper, *((a, a @ inside) if equality and a.any() else ()))
    optimum = 0.5 * reference @ Q @ reference + p @ reference
    assert solution.W == pytest.approx(optimum, abs=1e-5 * scale * size**2 * m)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("rbf", "JAX"),
        pytest.param("rbf", "NUMBA", marks=pytest.mark.slow),
        pytest.param("linear", "JAX", marks=pytest.mark.slow),
        pytest.param("composed", "JAX", marks=pytest.mark.slow),
        pytest.param("linear", "FAST_COMPILE", marks=pytest.mark.slow),
    ],
)
def test_kernels_reach_a_small_gap(name, mode):
    kernel, pair = KERNELS[name]
    problem = PROBLEMS["overlapping"]
    program = compile(csvc(kernel, problem.C), AcceleratedGradient(), mode=mode)
    solution = program.run(np.zeros(12), tol=1e-6, max_iter=20000, X=problem.X, y=problem.y)
    assert solution.certificate.status == "optimal"
    assert solution.certificate.relative_gap < 1e-5
    Q = np.outer(problem.y, problem.y) * oracles.gram(problem.X, problem.X, pair)
    reference = oracles.qp(Q, -np.ones(12), 0.0, problem.C, problem.y)
    assert solution.W == pytest.approx(0.5 * reference @ Q @ reference - reference.sum(), abs=1e-6)


def test_one_bound_a_point_and_points_without_room():
    data = points(40)
    C = np.linspace(0, 2, 40)  # the first point is fixed at 0
    objective = CSVC(pt.vector("lam"), pt.matrix("X"), pt.vector("y"), pt.vector("C"), RBF(1.0))
    solution = compile(objective, AcceleratedGradient(), mode="FAST_COMPILE").run(**data, C=C, tol=1e-6)
    assert solution.certificate.status == "optimal"
    assert solution.lam[0] == 0
    assert solution.certificate.gap < 1e-4


@pytest.mark.slow
def test_fewer_steps_than_without_momentum():
    for C, kernel in ((1.0, RBF(1.5)), (100.0, RBF(1.5)), (1.0, Linear())):
        steps = [
            compile(csvc(kernel, C), solver, mode="JAX").run(**points(300), tol=1e-3, max_iter=20000).n_iter
            for solver in (AcceleratedGradient(), ProjectedGradient())
        ]
        assert 2 * steps[0] < steps[1] < 20000


@pytest.mark.parametrize("mode", ["JAX", pytest.param("NUMBA", marks=pytest.mark.slow)])
def test_one_product_a_step_also_in_tiles(mode):
    data = points(1040)
    programs = {
        memory: compile(csvc(RBF(1.5)), AcceleratedGradient(), mode=mode, memory=memory) for memory in (None, 2**22)
    }
    first, second = (program.run(**data, tol=1e-3) for program in programs.values())
    for solution in (first, second):
        assert solution.certificate.status == "optimal"
    assert second.W == pytest.approx(first.W, rel=1e-6)
    machine = programs[2**22].functions
    assert not machine.fits(data["start"], [data["X"], data["y"], *programs[2**22]._values([])])
    products = {
        fits: [node for node in toposort(machine.plan(fits)[2]) if isinstance(node.op, Dot | KernelMatvec)]
        for fits in (True, False)
    }
    assert [[type(node.op) for node in products[fits]] for fits in (True, False)] == [[Dot], [KernelMatvec]]


@pytest.mark.parametrize("mode", ["JAX", pytest.param("NUMBA", marks=pytest.mark.slow)])
@pytest.mark.parametrize("C", [1.0, pytest.param(100.0, marks=pytest.mark.slow)])
def test_float32_needs_no_more_steps(mode, C):
    """Rounding in W hides what a step gains long before the optimum; the gradients still show it."""
    data = points(150)
    single, double = (
        compile(csvc(RBF(1.0), C), AcceleratedGradient(), mode=mode, dtype=dtype).run(**data, tol=1e-3, max_iter=5000)
        for dtype in ("float32", "float64")
    )
    assert single.lam.dtype == "float32"
    assert single.certificate.status == double.certificate.status == "optimal"
    assert single.W == pytest.approx(double.W, rel=1e-4)
    assert single.n_iter < 2 * double.n_iter


def test_high_accuracy():
    solution = compile(csvc(RBF(1.0)), AcceleratedGradient(), mode="JAX").run(**points(200), tol=1e-11, max_iter=20000)
    assert solution.certificate.status == "optimal"


def test_the_same_run_gives_the_same_bits():
    program = compile(csvc(RBF(1.5)), AcceleratedGradient(), mode="JAX")
    first, second = (program.run(**points(200), tol=1e-5) for _ in range(2))
    np.testing.assert_array_equal(first.lam, second.lam)
    np.testing.assert_array_equal(first.trace["W"], second.trace["W"])


@pytest.mark.parametrize("max_iter", [0, 1, 2, 7, 30])
def test_a_run_that_is_cut_short_ends_feasible(max_iter):
    solution = compile(csvc(RBF(1.5)), AcceleratedGradient(), mode="JAX").run(
        **points(200) | {"start": np.full(200, 0.7)}, tol=1e-9, max_iter=max_iter
    )
    assert (solution.stopped, solution.n_iter) == ("max_iter", max_iter)
    assert solution.certificate.status == "feasible"
    assert solution.certificate.infeasibility < 1e-12
    assert solution.lam.min() >= 0
    assert solution.lam.max() <= 1


@pytest.mark.slow
def test_a_w_whose_curvature_grows_by_orders_of_magnitude():
    """exp(20 (lam - 1)) is flat at the start and steep at the minimum: steps must be taken back on the way."""
    lam = pt.vector("lam")
    objective = Objective((pt.exp(20 * (lam - 1)) - lam).sum(), lam, lower=-np.inf, is_convex=True)
    program = compile(objective, AcceleratedGradient(), mode="FAST_COMPILE")
    for start in (0.0, -3.0, 3.0):
        solution = program.run([start, start - 1], tol=1e-8, max_iter=5000)
        assert solution.certificate.status == "optimal"
        np.testing.assert_allclose(solution.lam, 1 + np.log(1 / 20) / 20, rtol=1e-6)


def test_a_w_whose_curvature_falls_by_orders_of_magnitude():
    lam = pt.vector("lam")
    objective = Objective(((lam - 1) ** 4 + 1e-3 * (lam - 2) ** 2).sum(), lam, lower=-np.inf, is_convex=True)
    solution = compile(objective, AcceleratedGradient(), mode="FAST_COMPILE").run([100.0, -50.0], tol=1e-8)
    assert solution.certificate.status == "optimal"


@pytest.mark.parametrize("mode", ["JAX", pytest.param("FAST_COMPILE", marks=pytest.mark.slow)])
def test_steps_out_of_the_domain_are_taken_back(mode):
    """The dual of kernel logistic regression: lam log lam is no number at the bounds, and the optimum is inside."""
    data = points(60)
    X, y, C = data["X"], data["y"], 10.0
    lam = pt.vector("lam")
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 2)
    q = lam * y
    W = 0.5 * q @ (K @ q) + (lam * pt.log(lam) + (C - lam) * pt.log(C - lam)).sum()
    objective = Objective(W, lam, 0.0, C, (y, 0.0), is_convex=True)
    start = np.where(y > 0, 1.0, 1.0 * (y > 0).sum() / (y < 0).sum())
    solution = compile(objective, AcceleratedGradient(), mode=mode).run(start, tol=1e-6, max_iter=5000)
    assert solution.certificate.status == "optimal"
    assert solution.lam.min() > 0
    assert np.isfinite(solution.trace["W"]).all()


def test_a_linear_w_ends_in_a_corner():
    lam = pt.vector("lam")
    objective = Objective(
        (np.array([1.0, -2.0, 3.0]) * lam).sum(), lam, upper=np.array([1.0, 50.0, 1.0]), is_convex=True
    )
    solution = compile(objective, AcceleratedGradient(), mode="FAST_COMPILE").run(np.ones(3))
    assert solution.lam.tolist() == [0, 50, 0]


def test_a_start_at_the_optimum_takes_no_step():
    lam = pt.vector("lam")
    program = compile(Objective((lam**2).sum(), lam, is_convex=True), AcceleratedGradient(), mode="FAST_COMPILE")
    assert program.run(np.zeros(2)).n_iter == 0


def test_without_convexity_it_still_comes_to_rest():
    data = points(60)
    program = compile(csvc(Sigmoid(gamma=2.0, coef0=-1.0), 5.0), AcceleratedGradient(), mode="FAST_COMPILE")
    solution = program.run(**data, max_iter=5000)
    assert solution.certificate.status == "stationary"
    assert solution.W <= solution.trace["W"].min() + 1e-6


def test_the_state_is_in_the_type_that_is_computed_in():
    for dtype in ("float32", "float64"):
        machine = compile(csvc(Linear()), AcceleratedGradient(), mode="FAST_COMPILE", dtype=dtype).functions
        assert {v.dtype for v in machine.step} == {dtype}
        assert repr(AcceleratedGradient()) == "AcceleratedGradient()"
