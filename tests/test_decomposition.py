"""The fast solver against an independent one, on every form of the quadratic program."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import oracles
import pytest
from campaigns import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from symsvm import RBF, Laplacian, Linear, Polynomial, Sigmoid
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.evaluation.local import LocalKernelMatrix
from symsvm.objectives import QuadraticProgram
from symsvm.solvers.decomposition.algorithm import decompose
from symsvm.solvers.decomposition.parameters import DEFAULTS, Parameters

KERNELS = {"rbf": RBF(1.0), "linear": Linear(), "polynomial": Polynomial(2, coef0=1.0), "laplacian": Laplacian(0.5)}
FORMS = {
    "svc": lambda y, t, C: QuadraticProgram.c_svc(y, C),
    "svc, one bound a point": lambda y, t, C: QuadraticProgram.c_svc(y, C * (np.arange(len(y)) % 3)),
    "svc, squared": lambda y, t, C: QuadraticProgram.c_svc(y, C, squared=True),
    "svc, no intercept": lambda y, t, C: QuadraticProgram.c_svc(y, C, intercept=False),
    "svr": lambda y, t, C: QuadraticProgram.svr(t, C, 0.1),
    "svr, squared": lambda y, t, C: QuadraticProgram.svr(t, C, 0.1, squared=True),
    "svr, no intercept": lambda y, t, C: QuadraticProgram.svr(t, C, 0.1, intercept=False),
    "one class": lambda y, t, C: QuadraticProgram.one_class(np.ones(len(y)), 0.3),
    "nu-svc": lambda y, t, C: QuadraticProgram.nu_svc(y, 0.9 * min((y > 0).mean(), (y < 0).mean())),
    "nu-svr": lambda y, t, C: QuadraticProgram.nu_svr(t, C, 0.4),
}


def data(m, seed, *, duplicates=False, constant=False, tiny_class=False):
    """Points, labels and targets, with the troubles asked for."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3))
    if constant:
        X[:, 1] = 2.0
    if duplicates:
        X[m // 2 :] = X[: m - m // 2]
    y = np.where(rng.random(m) < (0.05 if tiny_class else 0.5), 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    return X, y, np.sin(X[:, 0]) + 0.1 * rng.normal(size=m)


def minimise(qp, kernel, X, **run):
    """Solve by decomposition; return the result and the full matrix of the program."""
    return decompose(qp, LocalKernelMatrix(kernel, X), **run), KernelEvaluator(kernel).block(X, X)


def reference(qp, K, scale=1.0):
    """The optimum by the independent solver, in variables of the size of C: interior points need that.

    Its point is feasible but for its tolerance, and counts as it is made feasible. W is summed point by point: both
    variables of a point may be large, and cancel.
    """
    Q = K[np.ix_(qp.point, qp.point)] + np.diag(qp.diagonal)
    rows = np.array([qp.group == g for g in range(len(qp.total))], dtype=float)
    equalities = (rows, qp.total / scale) if len(qp.total) else ()
    z = qp.start(scale * oracles.qp(scale * Q, qp.p, qp.lower / scale, qp.upper / scale, *equalities))
    return qp.value(K @ qp.weights(z), z)


@settings(max_examples=examples(40))
@given(
    form=st.sampled_from(sorted(FORMS)),
    kernel=st.sampled_from(sorted(KERNELS)),
    m=st.integers(3, 60),
    seed=st.integers(0, 10**6),
    log_C=st.floats(-6, 3),
    troubles=st.fixed_dictionaries({name: st.booleans() for name in ("duplicates", "constant", "tiny_class")}),
)
def test_it_meets_an_independent_solver_on_every_form(form, kernel, m, seed, log_C, troubles):
    X, y, t = data(m, seed, **troubles)
    qp = FORMS[form](y, t, 10.0**log_C)
    result, K = minimise(qp, KERNELS[kernel], X, tol=1e-6, time_limit=2.0)
    C = 1.0 if form in ("one class", "nu-svc") else 10.0**log_C
    best = min(reference(qp, K, scale) for scale in (1.0, C**0.5, C))
    Kz = K @ qp.weights(result.z)  # not the solver's own
    W, F = qp.value(Kz, result.z), qp.gradient(Kz, result.z)
    assert qp.infeasibility(result.z) <= 1e-9 * max(1.0, np.abs(result.z).sum())
    b, violation = qp.multipliers(F, result.z)
    gap = qp.gap(F, result.z, b)
    scale, rounding = max(abs(best), 1e-3 * C), 1e-12 * (1 + np.abs(result.z).sum() * max(1.0, np.abs(Kz).max()))
    # Interior points lose digits where bounds are far from the solution; the gap bounds what is lost here.
    assert W - best <= max(1e-6 * scale, gap) + rounding
    assert gap >= -rounding
    if result.stopped == "tol":
        assert violation <= 1e-6
        assert gap <= 1e-6 * (np.abs(result.z).sum() + C * len(y) * (not np.isinf(qp.upper).any())) + rounding


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_solved_to_its_optimum(form):
    X, y, t = data(50, 3)
    qp = FORMS[form](y, t, 2.0)
    result, K = minimise(qp, RBF(1.0), X, tol=1e-8)
    assert result.stopped == "tol"
    assert qp.value(result.Kz, result.z) == pytest.approx(reference(qp, K), rel=1e-9, abs=1e-9)
    b, _ = qp.multipliers(qp.gradient(result.Kz, result.z), result.z)
    assert 0 <= qp.gap(qp.gradient(result.Kz, result.z), result.z, b) + 1e-12 <= 1e-5
    assert result.trace[-1].violation <= 1e-8


def test_working_sets_shrinking_and_float32_change_nothing():
    X, y, _ = data(400, 5)
    qp = QuadraticProgram.c_svc(y, 5.0)
    whole, _ = minimise(qp, RBF(0.7), X, tol=1e-5)
    some = Parameters(whole=0, join=16)
    parts, _ = minimise(qp, RBF(0.7), X, tol=1e-5, parameters=some)
    again, _ = minimise(qp, RBF(0.7), X, tol=1e-5, parameters=some)
    assert parts.n_iter > 3
    assert parts.stopped == whole.stopped == "tol"
    assert qp.value(parts.Kz, parts.z) == pytest.approx(qp.value(whole.Kz, whole.z), rel=1e-7)
    np.testing.assert_array_equal(parts.z, again.z)  # the same bits twice


def test_every_way_to_stop_returns_a_feasible_point():
    X, y, _ = data(300, 7)
    qp = QuadraticProgram.c_svc(y, 100.0)
    stops = {
        "max_iter": {"max_iter": 0},
        "time_limit": {"time_limit": 0.0},
        "callback": {"callback": lambda row: True},
    }
    for why, run in stops.items():
        result, _ = minimise(qp, RBF(1.0), X, tol=1e-9, **run)
        assert result.stopped == why
        assert qp.infeasibility(result.z) <= 1e-10

    def interrupt(row):
        raise KeyboardInterrupt

    result, _ = minimise(qp, RBF(1.0), X, callback=interrupt)
    assert result.stopped == "interrupt"


def test_a_start_is_continued_from():
    X, y, _ = data(200, 9)
    first, _ = minimise(QuadraticProgram.c_svc(y, 1.0), RBF(1.0), X, tol=1e-4)
    second, _ = minimise(QuadraticProgram.c_svc(y, 1.0), RBF(1.0), X, tol=1e-4, start=first.z)
    assert second.n_iter == 0
    np.testing.assert_allclose(second.z, first.z, rtol=1e-12, atol=1e-12)


def test_totals_that_the_bounds_do_not_allow_say_so():
    program = dataclasses.replace(QuadraticProgram.c_svc(np.array([1.0, -1.0]), 1.0), total=np.array([5.0]))
    with pytest.raises(ValueError, match="no point is feasible"):
        program.start()


@pytest.mark.parametrize(
    ("form", "kernel", "m", "seed", "C", "troubles"),
    [  # as good as singular, and C far above the solution: SMO alone is not done after millions of steps
        ("svr", "polynomial", 44, 596987, 1e5, {"duplicates": True, "constant": True}),
        ("svr, no intercept", "linear", 25, 974357, 1.5e5, {"duplicates": True, "constant": True}),
        ("nu-svr", "polynomial", 12, 108985, 2e5, {"constant": True}),
        ("one class", "linear", 31, 58422, 1.0, {}),
        ("nu-svc", "polynomial", 46, 178571, 1.0, {"duplicates": True, "tiny_class": True}),
        # D is below what float32 does to K, and nothing else holds the variables back
        ("svr, squared", "linear", 32, 786489, 1e6, {"duplicates": True}),
        ("svc, squared", "polynomial", 30, 887413, 5e5, {"duplicates": True, "constant": True}),
    ],
)
@pytest.mark.parametrize("whole", [True, False])
def test_singular_matrices_and_a_large_C_take_few_steps(form, kernel, m, seed, C, troubles, whole):
    parameters = DEFAULTS if whole else Parameters(whole=0, join=8)
    X, y, t = data(m, seed, **troubles)
    qp = FORMS[form](y, t, C)
    result, K = minimise(qp, KERNELS[kernel], X, tol=1e-6, time_limit=30.0, parameters=parameters)
    assert result.stopped == "tol"
    assert result.steps < 10**6
    Kz = K @ qp.weights(result.z)
    assert (
        qp.multipliers(qp.gradient(Kz, result.z), result.z)[1]
        <= 1e-6 + 1e-15 * np.abs(K).max() * np.abs(result.z).sum()
    )


def test_what_rounding_does_not_allow_ends_as_stalled():
    X, _, t = data(45, 537756, duplicates=True, constant=True)
    result, _ = minimise(QuadraticProgram.svr(t, 1e6, 0.1), KERNELS["polynomial"], X, tol=1e-12, time_limit=60.0)
    assert result.stopped == "stalled"
    assert result.trace[-1].violation <= 1e-5


def test_the_time_limit_holds_inside_a_working_set():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    y = np.where(rng.random(1000) < 0.5, 1.0, -1.0)
    minimise(QuadraticProgram.c_svc(y, 1.0), Linear(), X, tol=1e-2)  # compiled now
    result = decompose(QuadraticProgram.c_svc(y, 1e6), LocalKernelMatrix(Linear(), X), tol=1e-9, time_limit=0.5)
    assert result.stopped in ("time_limit", "tol")
    assert result.stopped == "tol" or result.steps < DEFAULTS.max_steps  # it ended inside the working set


def test_what_float32_says_is_not_the_end():
    """Float32 sees no step to take where float64 does; totals that drifted are put right."""
    some = Parameters(whole=0, join=8)
    for kernel, m, seed, scale, C in ((KERNELS["polynomial"], 53, 2929, 84.0, 7e3), (Linear(), 24, 24, 6e4, 6e4)):
        X, y, _ = data(m, seed)
        minimise(QuadraticProgram.c_svc(y, 1.0), kernel, X, tol=1e-2)  # compiled now
        X[:, 1] *= scale
        qp = QuadraticProgram.c_svc(y, C)
        result, K = minimise(qp, kernel, X, tol=1e-6, time_limit=1.0, parameters=some)
        assert qp.value(K @ result.z, result.z) < -1e5
        assert qp.infeasibility(result.z) <= qp.rounding_error(result.z)


def test_a_kernel_beyond_float32_is_solved_and_one_beyond_float64_says_so():
    X, y, _ = data(40, 1)
    qp, cubic = QuadraticProgram.c_svc(y, 1.0), Polynomial(3, gamma=1.0, coef0=1.0)
    assert minimise(qp, RBF(1e30), 1e30 * X, tol=1e-6)[0].stopped == "tol"
    minimise(qp, cubic, X, tol=1e-2)  # compiled now
    assert minimise(qp, cubic, 1e15 * X, tol=1e-6, time_limit=1.0)[0].z.any()
    for kernel in (RBF(1e200), cubic, Linear()):
        with pytest.raises(ValueError, match="is not finite on these points"):
            decompose(qp, LocalKernelMatrix(kernel, 1e200 * X))


def test_variables_that_nothing_holds_back_end_before_they_are_infinite():
    X, y, _ = data(40, 1)
    result, _ = minimise(QuadraticProgram.c_svc(y, 100.0, squared=True), Sigmoid(gamma=1.0, coef0=-1.0), X)
    assert result.stopped == "diverged"
    assert np.isfinite(result.z).all()


@pytest.mark.parametrize("whole", [True, False])
def test_a_violation_that_is_infinite_in_float32_ends_a_working_set(whole):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=300) > 0, 1.0, -1.0)
    qp, matrix = QuadraticProgram.c_svc(y, 5.0, squared=True), LocalKernelMatrix(Sigmoid(gamma=2.0, coef0=-3.0), X)
    result = decompose(qp, matrix, tol=1e-6, parameters=DEFAULTS if whole else Parameters(whole=0, join=16))
    assert result.stopped == "diverged"
    assert np.isfinite(result.z).all()
    assert qp.infeasibility(result.z) <= qp.rounding_error(result.z)


def test_without_an_equality_the_worst_free_variables_are_solved_for():
    some = Parameters(whole=0, join=4, max_free=26)
    X, y, _ = data(57, 677714, duplicates=True, constant=True)
    qp = QuadraticProgram.c_svc(y, 4500.0, squared=True, intercept=False)
    result, _ = minimise(qp, RBF(0.05), X, tol=1e-7, max_iter=500, parameters=some)
    assert result.stopped == "tol"


def test_runs_in_threads_are_what_they_are_alone_and_give_back_the_threads_of_blas():
    """Their functions are shared: of one structure there is one compilation."""
    sets = [data(m, seed) for seed, m in enumerate((60, 700, 61, 720))]

    def run(k):
        X, y, _ = sets[k % 4]
        return minimise(QuadraticProgram.c_svc(y, 1.0 + k), RBF(0.5 + 0.1 * k), X)[0].z

    before = sorted((t["filepath"], t["num_threads"]) for t in threadpool_info() if t["user_api"] == "blas")
    alone = [run(k) for k in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            for z, found in zip(alone, pool.map(run, range(8)), strict=True):
                np.testing.assert_allclose(found, z, atol=1e-12)  # where memory lies decides how BLAS sums
    after = sorted((t["filepath"], t["num_threads"]) for t in threadpool_info() if t["user_api"] == "blas")
    assert set(before) <= set(after)
