"""The transitions of the decomposition, one by one: what each changes, and what it leaves as it is."""

import numpy as np
import pytest

from symsvm import RBF, Linear, QuadraticProgram
from symsvm.evaluation import local
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.evaluation.local import LocalKernelMatrix
from symsvm.solvers.decomposition.algorithm import decompose
from symsvm.solvers.decomposition.parameters import DEFAULTS, Parameters
from symsvm.solvers.decomposition.refinement import refine
from symsvm.solvers.decomposition.state import FLOAT32, FLOAT64, FLOAT64_PRODUCTS, Check, Precision, State
from symsvm.solvers.decomposition.working_set import WorkingSet, WorkingSetReuse

SOME = Parameters(whole=0, join=64)


@pytest.fixture(autouse=True)
def float32_for_these_sizes(monkeypatch):
    """Let problems of 600 points be none of which the whole matrix is stored in float64."""
    monkeypatch.setattr(local, "SMALL_PROBLEM", 256)


def problem(m=600, C=2.0, seed=0, kernel=None, **options):
    """A program, its kernel matrix as an array, and a state at its start."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 4))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=m) > 0, 1.0, -1.0)
    kernel = RBF(1.5) if kernel is None else kernel
    qp = QuadraticProgram.c_svc(y, C)
    settings = {"start": None, "seed": 0, "pairs": None, "parameters": SOME, "reuse": None} | options
    return qp, KernelEvaluator(kernel).block(X, X), State(qp, LocalKernelMatrix(kernel, X), **settings)


def iterate(state, times, tol=1e-3):
    """Some iterations without checks."""
    for _ in range(times):
        state.measure()
        state.solve_working_set(tol)
    state.measure()


def violation(qp, K, z):
    """The largest KKT violation, independent of the state."""
    return qp.multipliers(qp.gradient(K @ z, z), z)[1]


def test_precision_is_raised_products_first():
    assert FLOAT32.raised() == FLOAT64_PRODUCTS
    assert FLOAT64_PRODUCTS.raised() == FLOAT64
    assert FLOAT64.raised() is None
    assert Precision("float32", "float64").raised() == FLOAT64  # with a working set that another program has left


def test_measure_finds_the_violation_of_the_whole_problem():
    qp, K, state = problem()
    iterate(state, 2)
    assert state.violation == pytest.approx(violation(qp, K, state.z), abs=1e-5)
    assert state.n_free == np.count_nonzero((state.z > qp.lower) & (state.z < qp.upper))
    assert state.least[0] < state.middle[0] < state.most[0]
    np.testing.assert_array_equal(state.b, -state.middle)


def test_a_working_set_lowers_the_objective_and_updates_the_products():
    qp, K, state = problem()
    state.measure()
    before = state.W
    assert state.solve_working_set(1e-3)
    assert state.n_iter == 1
    assert state.W < before
    assert state.W == pytest.approx(qp.value(K @ state.z, state.z), rel=1e-5)
    np.testing.assert_allclose(state.Kz, K @ state.z, atol=1e-4)
    assert not state.is_exact  # float32
    assert state.is_feasible()


def test_shrinking_drops_variables_that_are_safely_at_a_bound():
    qp, K, state = problem()
    iterate(state, 8)
    state.shrink()
    dropped = np.setdiff1d(np.arange(qp.n), state.active.variables)
    assert state.active.is_shrunk
    assert len(dropped) > 0
    assert np.isin(state.z[dropped], [qp.lower[dropped], qp.upper[dropped]]).all()
    F, b = qp.gradient(K @ state.z, state.z), state.b[0]
    at_lower = state.z[dropped] == qp.lower[dropped]
    assert (np.where(at_lower, 1, -1) * (F[dropped] + b) > 0).all()
    before = state.active.variables
    state.shrink()  # not again before the violation has halved
    assert state.active.variables is before


def test_the_gradient_is_reconstructed_for_shrunk_variables():
    _, K, state = problem()
    iterate(state, 8)
    state.shrink()
    iterate(state, 2)
    dropped = np.setdiff1d(np.arange(len(state.z)), state.active.points)
    stale = np.abs(state.Kz - K @ state.z)[dropped].max()
    state.reconstruct_gradient()
    assert not state.active.is_shrunk
    assert np.abs(state.Kz - K @ state.z).max() < 1e-3 * stale


def test_the_gradient_is_recomputed_in_float64():
    qp, K, state = problem()
    iterate(state, 3)
    state.z[0] += 1e-6  # a total that steps have moved
    assert not state.is_feasible()
    state.recompute_gradient()
    assert state.is_exact
    assert state.is_fresh
    assert state.is_feasible()
    np.testing.assert_allclose(state.Kz, K @ state.z, atol=1e-12)
    assert state.W == pytest.approx(qp.value(K @ state.z, state.z), rel=1e-14)


def test_a_check_sees_through_errors_of_the_products():
    _, _, state = problem()
    state.measure()
    assert state.check(1e-3) is Check.ABOVE
    iterate(state, 30)
    assert state.violation <= 1e-3
    assert state.check(1e-3) is Check.WITHIN
    state.vectors.Kz += 0.01 * np.random.default_rng(1).normal(
        size=len(state.Kz)
    )  # errors that the violation does not show
    state.is_exact, state.violation = False, 0.0
    assert state.check(1e-3) is Check.RECOMPUTED
    assert state.is_exact


def test_refinement_ends_at_rounding_and_is_taken_back_where_it_is_worse(monkeypatch):
    qp, K, state = problem(m=120, parameters=DEFAULTS)
    iterate(state, 2)
    refine(state, 1e-3)
    assert state.is_refined
    assert violation(qp, K, state.z) < 1e-12
    before = state.z.copy()
    bad = np.clip(before + 0.1, qp.lower, qp.upper)
    monkeypatch.setattr(
        "symsvm.solvers.decomposition.refinement.newton",
        lambda A, F, z, lower, upper, *_: np.clip(z + 0.1, lower, upper),
    )
    assert violation(qp, K, bad) > 1e-3
    state.z[0] = before[0]
    refine(state, 1e-3)
    np.testing.assert_array_equal(state.z, before)


def test_raising_the_precision_gives_the_working_set_a_new_matrix():
    _, _, state = problem()
    assert state.precision == FLOAT32
    iterate(state, 1)
    working = state.working
    assert state.raise_precision()
    assert state.precision == FLOAT64_PRODUCTS
    assert state.working is working
    assert state.raise_precision()
    assert state.precision == FLOAT64
    assert state.working.K.dtype == "float64"
    assert not state.raise_precision()
    state.recompute_gradient()
    iterate(state, 1)
    assert state.is_exact  # float64 throughout


def test_without_progress_a_run_returns_to_its_best_point():
    qp, _, state = problem()
    iterate(state, 4)
    state.recompute_gradient()
    state.measure()
    assert state.make_progress(1e-9)
    best, W = state.z.copy(), state.W
    state.z = qp.start(np.zeros(qp.n))
    state.recompute_gradient()
    state.measure()
    assert state.W > W
    assert state.make_progress(1e-9)  # W rose: back, in float64
    np.testing.assert_array_equal(state.z, best)
    assert state.precision == FLOAT64
    state.parameters = Parameters(whole=0, join=16, patience=1)
    assert not state.make_progress(1e-9)  # all is float64, and nothing falls


def test_a_point_that_is_not_finite_is_left_for_the_best_one():
    _, _, state = problem()
    state.W = np.inf
    assert not state.is_finite()
    assert state.restore_best()  # there is none yet: a new start, in a higher precision
    assert not state.z.any()
    state.recompute_gradient()
    state.measure()
    state.make_progress(1e-3)
    best = state.z.copy()
    state.z, state.W = state.z + 1.0, np.nan
    assert state.restore_best()
    np.testing.assert_array_equal(state.z, best)
    assert np.isfinite(state.violation)


def test_a_run_ends_at_the_best_point_that_float64_has_measured():
    _, _, state = problem()
    iterate(state, 5)
    state.recompute_gradient()
    state.measure()
    state.make_progress(1e-3)
    best, W = state.z.copy(), state.W
    state.z = state.qp.start(None)
    state.finish()
    np.testing.assert_array_equal(state.z, best)
    assert W == state.W


def test_a_working_set_computes_the_rows_of_new_members_only():
    qp, K, state = problem()
    matrix = state.matrix
    working = WorkingSet(qp, matrix, "float64")
    working.choose(np.arange(0, 200))
    before = matrix.entries
    working.choose(np.arange(100, 210))
    assert matrix.entries - before == 10 * 110  # with the ten, of which one triangle would do
    members = working.members
    assert sorted(members) == list(range(100, 210))
    np.testing.assert_allclose(working.K[:110, :110], K[np.ix_(members, members)], atol=1e-14)


def test_a_working_set_is_handed_to_the_next_program():
    qp, _, state = problem()
    matrix, reuse = state.matrix, WorkingSetReuse()
    decompose(qp, matrix, parameters=SOME, reuse=reuse)
    working = reuse.working
    y = np.where(qp.upper > 0, 1.0, -1.0)
    other = QuadraticProgram.c_svc(y, 3.0, squared=True)
    assert reuse.take(other, matrix) is working
    here = np.arange(len(working.members))
    np.testing.assert_allclose(working.K[here, here], working.diagonal + 1 / 6, rtol=1e-6)
    assert reuse.take(QuadraticProgram.c_svc(y[:-1], 3.0), matrix) is None  # other points


def test_a_working_set_is_not_handed_to_another_matrix_and_takes_the_parameters_of_its_run():
    qp, _, state = problem()
    matrix, reuse = state.matrix, WorkingSetReuse()
    decompose(qp, matrix, parameters=SOME, reuse=reuse)
    working, few = reuse.working, Parameters(whole=0, join=16, max_steps=7)
    decompose(qp, matrix, parameters=few, reuse=reuse, max_iter=1)
    assert reuse.working is working
    assert working.parameters is few
    other = LocalKernelMatrix(RBF(0.3), matrix.X)
    result = decompose(qp, other, parameters=SOME, reuse=reuse)
    alone = decompose(qp, LocalKernelMatrix(RBF(0.3), matrix.X), parameters=SOME)
    assert reuse.working is not working
    np.testing.assert_array_equal(result.z, alone.z)


def test_the_numbers_change_the_way_and_not_the_result():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(400, 3)), np.where(rng.random(400) < 0.5, 1.0, -1.0)
    qp = QuadraticProgram.c_svc(y, 1.0)
    values = []
    for parameters in (DEFAULTS, SOME, Parameters(whole=0, join=8, max_free=40, check_interval=2, aim=0.3)):
        result = decompose(qp, LocalKernelMatrix(Linear(), X), tol=1e-8, parameters=parameters)
        assert result.stopped == "tol"
        values.append(qp.value(result.Kz, result.z))
    assert np.ptp(values) < 1e-7 * abs(values[0])


def test_wide_points_stay_one_working_set():
    """The matrix between all variables is computed once; no product with it is asked for afterwards."""
    rng = np.random.default_rng(0)
    y = np.where(rng.normal(size=2700) > 0, 1.0, -1.0)
    X = rng.normal(size=(2700, 400)) + 2.0 * y[:, None] * (np.arange(400) == 0)
    matrix = LocalKernelMatrix(RBF(20.0), X)
    state = State(QuadraticProgram.c_svc(y, 1.0), matrix, None, 0, None, DEFAULTS, None)
    assert not state.is_whole
    state.measure()
    state.solve_working_set(1e-3)
    assert state.is_whole
    before = matrix.entries
    for _ in range(3):
        state.measure()
        state.solve_working_set(1e-3)
    assert matrix.entries == before
    state.measure()
    assert max(state.violation, state.gradient_error()) < 1e-3
