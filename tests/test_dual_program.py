"""The fast solver as users meet it: every dual, every stop, warm starts, paths, classes, sparse points, diagnoses."""

import io
import sys
import warnings

import numpy as np
import oracles
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info

import symsvm
from symsvm import (
    CSVC,
    RBF,
    AcceleratedGradient,
    Decomposition,
    KernelDual,
    Linear,
    Objective,
    Precomputed,
    QuadraticProgram,
    Sigmoid,
    pair_kernel,
    path,
    solve,
)
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.evaluation.local import LocalKernelMatrix
from symsvm.solvers.decomposition.one_vs_one import one_vs_one
from symsvm.solvers.decomposition.parameters import Parameters


def points(m=120, d=3, seed=0):
    """Points, labels that overlap, targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=m) > 0, 1.0, -1.0)
    return X, y, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=m)


X, Y, T = points()
PROGRAMS = {
    "svc": QuadraticProgram.c_svc(Y, 5.0),
    "svc squared": QuadraticProgram.c_svc(Y, 5.0, squared=True),
    "svc without an intercept": QuadraticProgram.c_svc(Y, 5.0, intercept=False),
    "svr": QuadraticProgram.svr(T, 5.0, 0.1),
    "nu-svc": QuadraticProgram.nu_svc(Y, 0.4),
    "nu-svr": QuadraticProgram.nu_svr(T, 2.0, 0.3),
    "one class": QuadraticProgram.one_class(np.ones(len(Y)), 0.2),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in ("nu-svc", "nu-svr") else ()) for n in PROGRAMS]
)
def test_both_solvers_reach_the_same_certificate(name):
    dual = KernelDual(PROGRAMS[name], X, RBF(1.0))
    exact = solve(dual, tol=1e-6)
    assert exact.stopped == "tol"
    assert exact.certificate.status == "optimal"
    assert exact.certificate.violation <= 1e-6
    assert exact.certificate.infeasibility <= 1e-12
    assert 0 <= exact.certificate.gap + 1e-9
    assert exact.certificate.relative_gap <= 1e-6
    other = solve(dual, AcceleratedGradient(), mode="JAX", tol=1e-4, max_iter=5000)
    assert other.certificate.status == "optimal"
    assert other.W == pytest.approx(exact.W, rel=1e-5, abs=1e-5)
    assert other.W >= exact.W - 1e-9
    np.testing.assert_allclose(other.b, exact.b, atol=1e-3) if exact.b is not None else None


def test_the_certificate_is_the_datas_and_not_the_solvers():
    dual = KernelDual(QuadraticProgram.c_svc(Y, 5.0), X, RBF(1.0))
    solution = solve(dual)
    K, z = KernelEvaluator(RBF(1.0)).block(X, X), solution.z
    xi = np.maximum(0, 1 - Y * (K @ z + solution.certificate.b))
    assert solution.certificate.dual == pytest.approx(np.abs(z).sum() - 0.5 * z @ K @ z, rel=1e-12)
    assert solution.certificate.primal == pytest.approx(0.5 * z @ K @ z + 5.0 * xi.sum(), rel=1e-10)
    assert solution.b == pytest.approx(solution.certificate.b, abs=1e-6)


def test_the_papers_objective_goes_to_the_fast_solver_with_its_free_inputs():
    m = len(Y)
    lam, y = pytensor.shared(np.zeros(m), name="lam"), pt.dvector("y")
    C, sigma = pt.dscalar("C"), pt.dscalar("sigma")
    objective = CSVC(lam, pytensor.shared(X, name="X"), y, C, RBF(sigma))
    program = symsvm.compile(objective, Decomposition())
    for value, width in ((1.0, 1.0), (10.0, 0.5)):
        solution = program.run(y=Y, C=value, sigma=width, tol=1e-8)
        reference = solve(KernelDual(QuadraticProgram.c_svc(Y, value), X, RBF(width)), tol=1e-8)
        np.testing.assert_allclose(solution.lam, Y * reference.z, atol=1e-6)
        assert solution.lam.min() >= 0
        assert solution.certificate.status == "optimal"
    with pytest.raises(TypeError, match="'sigma' is missing"):
        program.run(y=Y, C=1.0)
    with pytest.raises(ValueError, match="labels -1 and"):
        program.run(y=np.arange(m, dtype=float), C=1.0, sigma=1.0)


def test_any_quadratic_objective_reaches_the_fast_solver():
    m = 60
    lam, y = pytensor.shared(np.zeros(m), name="lam"), pytensor.shared(Y[:m], name="y")
    data, kernel, C = pytensor.shared(X[:m], name="X"), RBF(1.0), pt.dscalar("C")

    def inner(x_i):
        return symsvm.sum_over(lambda lam_j, y_j, x_j: lam_j * y_j * kernel.pair(x_i, x_j), lam, y, data)

    W = 0.5 * symsvm.sum_over(lambda lam_i, y_i, x_i: lam_i * y_i * inner(x_i), lam, y, data) - lam.sum()
    K = np.exp(-((X[:m, None] - X[None, :m]) ** 2).sum(axis=2) / 2)
    Q = np.outer(Y[:m], Y[:m]) * K + 0.2 * np.eye(m)
    for equality, rows in (((2.0 * y, 0.0), (2.0 * Y[:m], 0.0)), (None, ())):
        objective = Objective(W + 0.1 * (lam**2).sum() + 7.0, variable=lam, upper=C, equality=equality, is_convex=True)
        fast = symsvm.compile(objective, Decomposition()).run(C=3.0, tol=1e-8)
        reference = oracles.qp(Q, -np.ones(m), 0.0, 3.0, *rows)
        assert fast.certificate.status == "optimal"
        assert fast.W == pytest.approx(0.5 * reference @ Q @ reference - reference.sum() + 7.0, rel=1e-8)
        np.testing.assert_allclose(fast.lam, reference, atol=1e-4)
        again = symsvm.compile(objective, Decomposition()).run(C=3.0, tol=1e-8, start=fast.lam)
        assert again.n_iter == 0


def test_what_is_not_quadratic_says_so():
    lam = pytensor.shared(np.ones(3), name="lam")
    with pytest.raises(TypeError, match="no sum over pairs of points. Use .accelerated-gradient"):
        symsvm.compile(Objective((lam**4).sum(), variable=lam), Decomposition())
    K = pytensor.shared(np.eye(500), name="K")
    lam = pytensor.shared(np.ones(500), name="lam")
    with pytest.raises(ValueError, match="memory=4194304 does not hold the matrix of W for 500 points"):
        symsvm.compile(Objective(lam @ K @ lam, variable=lam), Decomposition(), memory=2**22).run()
    with pytest.raises(ValueError, match="chooses its precision"):
        symsvm.compile(KernelDual(QuadraticProgram.c_svc(Y, 1.0), X, RBF(1.0)), Decomposition(), dtype="float32")
    with pytest.raises(ValueError, match="one row for each of the 120 points"):
        KernelDual(QuadraticProgram.c_svc(Y, 1.0), X[:50], RBF(1.0))


def test_small_problems_end_exact():
    solution = solve(KernelDual(QuadraticProgram.c_svc(Y, 5.0), X, RBF(1.0)))
    assert solution.certificate.violation <= 1e-10
    weights = np.where(np.arange(len(Y)) % 4 == 0, 2.0, np.where(np.arange(len(Y)) % 4 == 1, 0.0, 1.0))
    copies = np.repeat(np.arange(len(Y)), weights.astype(int))
    weighted = solve(KernelDual(QuadraticProgram.c_svc(Y, 5.0 * weights), X, RBF(1.0)))
    repeated = solve(KernelDual(QuadraticProgram.c_svc(Y[copies], 5.0), X[copies], RBF(1.0)))
    summed = np.bincount(copies, repeated.z, len(Y))
    np.testing.assert_allclose(weighted.z, summed, atol=1e-7)
    assert weighted.b == pytest.approx(repeated.b, abs=1e-8)


def test_trace_and_callback():
    seen = []
    solution = solve(KernelDual(QuadraticProgram.c_svc(Y, 5.0), X, RBF(1.0)), callback=seen.append)
    names = {"iteration", "seconds", "W", "violation", "gap", "free", "bounded", "rows"}
    assert set(solution.trace) == names
    assert all(len(values) == len(seen) for values in solution.trace.values())
    np.testing.assert_array_equal(solution.trace["iteration"], np.arange(solution.n_iter + 1))
    assert (np.diff(solution.trace["W"]) <= 1e-6 * abs(solution.W)).all()
    assert solution.trace["W"][-1] == pytest.approx(solution.W, rel=1e-6)
    assert solution.trace["gap"][-1] == pytest.approx(solution.certificate.gap, abs=1e-3)
    assert solution.trace["free"][-1] + solution.trace["bounded"][-1] == np.count_nonzero(solution.lam)
    assert (np.diff(solution.trace["rows"]) >= 0).all()
    assert seen[-1].violation == solution.trace["violation"][-1]


def test_the_trace_counts_variables_that_are_shrunk():
    solver = Decomposition(parameters=Parameters(whole=0, join=16))
    Z, y, _ = points(600, seed=3)
    solution = solve(KernelDual(QuadraticProgram.c_svc(y, 2.0), Z, RBF(0.8)), solver)
    assert solution.trace["W"][-1] == pytest.approx(solution.W, rel=1e-6)
    assert solution.trace["free"][-1] + solution.trace["bounded"][-1] == np.count_nonzero(solution.lam)
    assert solution.certificate.status == "optimal"


def interrupt(info):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("why", "options"),
    {
        "max_iter": {"max_iter": 1},
        "time_limit": {"time_limit": 0.0},
        "callback": {"callback": lambda info: info.iteration == 1},
        "interrupt": {"callback": interrupt},
    }.items(),
)
def test_every_stop_warns_and_is_feasible(why, options):
    Z, y, _ = points(3000, seed=2)  # more than are solved for at once
    dual = KernelDual(QuadraticProgram.c_svc(y, 10.0), Z, RBF(0.5))
    with pytest.warns(ConvergenceWarning, match=r"above tol=1e-09; the point is feasible") as caught:
        solution = solve(dual, tol=1e-9, **options)
    assert caught[0].filename == __file__
    assert solution.stopped == why
    assert solution.certificate.status == "feasible"
    assert solution.certificate.infeasibility <= 1e-9
    assert solution.certificate.gap > 0


def diagnosis_of(X, y, C, kernel):
    with pytest.warns(ConvergenceWarning) as caught:
        solve(KernelDual(QuadraticProgram.c_svc(y, C), X, kernel), max_iter=0)
    return str(caught[0].message)


def test_a_stop_short_of_tol_says_what_makes_it_hard():
    plain = diagnosis_of(X, Y, 1.0, RBF(1.0))
    assert plain.endswith("the point is feasible.")
    assert "very different scales, 9.6e+05 in column 1" in diagnosis_of(X * [1.0, 1e6, 1.0], Y, 1.0, RBF(1.0))
    assert "C is large" in diagnosis_of(X, Y, 1e6, RBF(1.0))
    double, labels = np.concatenate([X, X[:5]]), np.concatenate([Y, -Y[:5]])
    assert "10 points are duplicates with opposite labels" in diagnosis_of(double, labels, 1.0, RBF(1.0))
    assert "10 points are duplicates" in diagnosis_of(sparse.csr_matrix(double), labels, 1.0, RBF(1.0))
    assert "is indefinite on these points" in diagnosis_of(X, Y, 1.0, Sigmoid(gamma=1.0, coef0=-1.0))
    assert "All points are the same" in diagnosis_of(np.ones((4, 2)), np.array([1.0, -1, 1, -1]), 1.0, RBF(1.0))


def test_an_indefinite_kernel_is_at_best_stationary():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solution = solve(KernelDual(QuadraticProgram.c_svc(Y, 1.0), X, Sigmoid(gamma=1.0, coef0=-1.0)), max_iter=50)
    assert solution.certificate.status in ("stationary", "feasible")
    assert solution.certificate.infeasibility <= 1e-10


def test_a_bar_is_drawn_on_a_terminal_and_elsewhere_one_line(monkeypatch, capsys):
    dual = KernelDual(QuadraticProgram.c_svc(Y, 5.0), X, RBF(1.0))
    solve(dual, verbose=1)
    line = capsys.readouterr().err
    assert line.startswith("symsvm: iteration")
    assert line.count("\n") == 1

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    solve(dual, verbose=1)
    text = screen.getvalue()
    for word in ("symsvm", "100%", "violation", "gap", "support vectors"):
        assert word in text


def test_a_solution_is_continued_from_with_other_bounds_or_more_points():
    dual = KernelDual(QuadraticProgram.c_svc(Y, 5.0), X, RBF(1.0))
    first = solve(dual)
    assert solve(dual, start=first).n_iter == 0
    assert solve(dual, start=first.z).n_iter == 0
    for C in (2.0, 50.0):
        again = solve(KernelDual(QuadraticProgram.c_svc(Y, C), X, RBF(1.0)), start=first, tol=1e-6)
        fresh = solve(KernelDual(QuadraticProgram.c_svc(Y, C), X, RBF(1.0)), tol=1e-6)
        assert again.certificate.status == "optimal"
        assert again.W == pytest.approx(fresh.W, rel=1e-9)
    for program, few in (
        (QuadraticProgram.c_svc(Y, 5.0), QuadraticProgram.c_svc(Y[:80], 5.0)),
        (QuadraticProgram.svr(T, 5.0, 0.1), QuadraticProgram.svr(T[:80], 5.0, 0.1)),
    ):
        part = solve(KernelDual(few, X[:80], RBF(1.0)))
        more = solve(KernelDual(program, X, RBF(1.0)), start=part, tol=1e-6)
        assert more.W == pytest.approx(solve(KernelDual(program, X, RBF(1.0)), tol=1e-6).W, rel=1e-9)
    with pytest.raises(ValueError, match="at most 120 numbers"):
        solve(dual, start=np.zeros(200))


def test_a_path_over_C_is_what_its_parts_are_and_computes_less():
    Cs = (0.5, 1.0, 2.0, 4.0)
    some = Parameters(whole=0, join=32)  # working sets that are a part of the points
    Z, y, _ = points(800, seed=5)
    for squared in (False, True):
        programs = [QuadraticProgram.c_svc(y, C, squared=squared) for C in Cs]
        rows = along = 0.0
        for solution, program in zip(path(Z, RBF(0.7), programs, parameters=some), programs, strict=True):
            alone = solve(KernelDual(program, Z, RBF(0.7)), Decomposition(parameters=some))
            assert solution.certificate.status == "optimal"
            assert solution.W == pytest.approx(alone.W, rel=1e-5)
            rows += alone.trace["rows"][-1]
            along += solution.trace["rows"][-1]
        assert squared or along < 0.9 * rows


def test_pairs_of_classes_share_what_is_inside_a_class():
    rng = np.random.default_rng(0)
    Z, labels = rng.normal(size=(300, 4)), rng.integers(0, 4, 300)
    Z[np.arange(300), labels] += 1.5
    found = list(one_vs_one(Z, labels, RBF(1.0), lambda y, rows: QuadraticProgram.c_svc(y, 2.0), tol=1e-6))
    assert [(a, b) for a, b, *_ in found] == [(a, b) for a in range(4) for b in range(a + 1, 4)]
    for memory in (2**30, 0):
        for a, b, rows, solution in one_vs_one(
            Z, labels, RBF(1.0), lambda y, rows: QuadraticProgram.c_svc(y, 2.0), memory=memory, tol=1e-6
        ):
            y = np.where(labels[rows] == b, 1.0, -1.0)
            assert set(labels[rows]) == {a, b}
            alone = solve(KernelDual(QuadraticProgram.c_svc(y, 2.0), Z[rows], RBF(1.0)), tol=1e-6)
            assert solution.W == pytest.approx(alone.W, rel=1e-9)
            np.testing.assert_allclose(solution.z, alone.z, atol=1e-5)


@pytest.mark.parametrize(("d", "starts"), [(5, [0, 480, 1320]), (100, [0])])
def test_a_matrix_with_cached_blocks_is_the_same(d, starts):
    Z = np.random.default_rng(0).normal(size=(2000, d)) / np.sqrt(d)
    plain, held = LocalKernelMatrix(RBF(1.0), Z), LocalKernelMatrix(RBF(1.0), Z)
    held.cache_blocks(starts)
    sizes = np.diff([*starts, 2000])
    assert held.entries == (sizes * (sizes + 1) // 2).sum()  # half of each part
    rows, columns = np.array([3, 485, 486, 1840, 1889]), np.array([1370, 1, 2, 490, 1319, 1320, 1980])
    q = np.random.default_rng(1).normal(size=len(columns))
    for some in (rows, np.sort(rows)):
        a, b = np.zeros((5, 7), "float32"), np.zeros((5, 9), "float32")
        plain.block(some, columns, a)
        held.block(some, columns, b)
        np.testing.assert_allclose(b[:, :7], a, atol=1e-6)
        u, v = np.zeros(5), np.zeros(5)
        plain.product(q, some, columns, u, exact=True)
        held.product(q, some, columns, v, exact=False)
        np.testing.assert_allclose(v, u, atol=1e-5)


def test_blocks_are_cached_where_that_pays():
    def held(m, d, starts, **options):
        gram = LocalKernelMatrix(RBF(1.0), np.random.default_rng(0).normal(size=(m, d)))
        gram.cache_blocks(starts, **options)
        return gram.is_exact, gram.entries > 0

    assert held(200, 5, [0, 100]) == (True, False)  # in float64, all of it, when it is asked for
    assert held(800, 5, [0, 160, 320, 480]) == (True, False)  # as problems are small
    assert held(800, 5, [0, 300]) == (False, True)
    assert held(800, 5, [0, 300], memory=1000) == (False, False)
    assert held(800, 5, [0]) == (False, False)  # a value is as soon computed
    assert held(800, 100, [0]) == (False, True)


def test_sparse_points_and_mostly_empty_ones_give_the_same():
    rng = np.random.default_rng(0)
    Z = rng.random((1500, 80)) * (rng.random((1500, 80)) < 0.1)
    y = np.where(Z[:, :40].sum(1) - Z[:, 40:].sum(1) + 0.3 * rng.normal(size=1500) > 0, 1.0, -1.0)
    full = Z + 1e-9 * rng.random(Z.shape)  # not empty, but nearly the same
    W = [
        solve(KernelDual(QuadraticProgram.c_svc(y, 1.0), points, RBF(1.0)), tol=1e-5).W
        for points in (sparse.csr_matrix(Z), Z, full)
    ]
    np.testing.assert_allclose(W, W[0], rtol=1e-6)
    with pytest.raises(TypeError, match="graphs over sparse points"):
        solve(KernelDual(QuadraticProgram.c_svc(y, 1.0), sparse.csr_matrix(Z), RBF(1.0)), AcceleratedGradient())


def test_an_embedded_bias_is_a_constant_in_the_kernel():
    solution = solve(KernelDual(QuadraticProgram.c_svc(Y, 5.0, intercept=False), X, RBF(1.0) + 1.0), tol=1e-8)
    K = KernelEvaluator(RBF(1.0)).block(X, X)
    z = solution.z
    decision = K @ z + z.sum()  # b = sum z
    assert solution.b is None
    free = (np.abs(z) > 1e-9) & (np.abs(z) < 5 - 1e-9)
    np.testing.assert_allclose(Y[free] * decision[free], 1.0, atol=1e-7)


def test_any_kernel_serves_and_a_matrix_too():
    cauchy = pair_kernel(lambda x, z, s: 1 / (1 + ((x - z) ** 2).sum() / s), s=2.0)
    K = KernelEvaluator(cauchy).block(X, X)
    by_pairs = solve(KernelDual(QuadraticProgram.c_svc(Y, 2.0), X, cauchy), tol=1e-6)
    by_matrix = solve(KernelDual(QuadraticProgram.c_svc(Y, 2.0), Precomputed.points(len(Y)), Precomputed(K)), tol=1e-6)
    np.testing.assert_allclose(by_pairs.z, by_matrix.z, atol=1e-6)
    assert by_matrix.certificate.status == "stationary"  # nobody said that it is positive semi-definite
    said = solve(
        KernelDual(QuadraticProgram.c_svc(Y, 2.0), Precomputed.points(len(Y)), Precomputed(K), is_convex=True), tol=1e-6
    )
    assert said.certificate.status == "optimal"
    on_jax = solve(KernelDual(QuadraticProgram.c_svc(Y, 2.0), X, cauchy), mode="JAX", tol=1e-6)
    np.testing.assert_allclose(on_jax.z, by_pairs.z, atol=1e-6)


def test_unscaled_points_and_a_large_C_are_right_or_say_that_they_are_not():
    rng = np.random.default_rng(0)
    Z = np.column_stack([1e6 * rng.normal(size=300), rng.normal(size=300)])
    y = np.where(Z[:, 0] / 1e6 + Z[:, 1] > 0, 1.0, -1.0)
    for kernel in (RBF(1e5), Linear()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solution = solve(KernelDual(QuadraticProgram.c_svc(y, 1e5), Z, kernel), time_limit=5.0)
        K, z = KernelEvaluator(kernel).block(Z, Z), solution.z
        F = K @ z - y
        violation = (
            F[z > QuadraticProgram.c_svc(y, 1e5).lower].max() - F[z < QuadraticProgram.c_svc(y, 1e5).upper].min()
        )
        assert solution.certificate.infeasibility <= 1e-8 * np.abs(z).sum()
        if solution.certificate.status == "optimal":
            assert violation <= 1e-3 * (1 + 1e-6) + 1e-12 * np.abs(K).max() * np.abs(z).sum()
        else:
            assert solution.stopped in ("time_limit", "stalled")


def test_the_same_bits_twice_and_the_callers_threads_as_they_were():
    Z, y, _ = points(3000, d=6, seed=9)
    before = {(t["filepath"], t["num_threads"]) for t in threadpool_info()}
    first, second = (solve(KernelDual(QuadraticProgram.c_svc(y, 10.0), Z, RBF(1.5))) for _ in range(2))
    after = {(t["filepath"], t["num_threads"]) for t in threadpool_info()}
    np.testing.assert_array_equal(first.z, second.z)
    np.testing.assert_array_equal(first.trace["W"], second.trace["W"])
    assert before <= after


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: QuadraticProgram.c_svc([0.0, 1.0], 1.0), "labels -1 and"),
        (lambda: QuadraticProgram.c_svc([-1.0, 1.0], -1.0), "C must be finite and positive"),
        (lambda: QuadraticProgram.c_svc([-1.0, 1.0], [1.0]), "one for each of the 2 points"),
        (lambda: QuadraticProgram.svr([0.0, np.nan], 1.0, 0.1), "y must be a finite vector"),
        (lambda: QuadraticProgram.svr([0.0, 1.0], 1.0, -0.1), "epsilon must be at least 0"),
        (lambda: QuadraticProgram.nu_svc([-1.0, 1.0, 1.0, 1.0], 0.9), "nu must be at most 0.5"),
        (lambda: QuadraticProgram.nu_svc([-1.0, 1.0], 1.5), "nu must be above 0 and at most 1"),
        (lambda: QuadraticProgram.one_class([-1.0, 1.0], 0.5), "weights must be 2 finite numbers"),
    ],
)
def test_bad_programs_say_what_is_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        *((name, "worst") for name in PROGRAMS if name not in ("svr", "nu-svr", "one class")),
        ("svc without an intercept", "random"),
    ],
)
def test_smo_is_a_special_case_of_the_fast_solver(name, pairs):
    dual = KernelDual(PROGRAMS[name], X, RBF(1.0))
    exact, by_pairs = solve(dual, tol=1e-2), solve(dual, Decomposition(pairs=pairs), tol=1e-2)
    assert by_pairs.certificate.status == "optimal"
    assert by_pairs.W == pytest.approx(exact.W, rel=1e-6, abs=1e-6)
    assert by_pairs.n_iter > exact.n_iter


def test_pairs_of_the_fast_solver_are_those_of_the_symbolic_steps():
    """The same points after the same steps: each step of SMO with the maximal violating pair has one solution."""
    dual = KernelDual(PROGRAMS["svc"], X, RBF(1.0))
    for n in (1, 2, 7):
        with pytest.warns(ConvergenceWarning):
            found = [
                solve(dual, solver, mode=mode, max_iter=n).z
                for solver, mode in ((Decomposition(pairs="worst"), None), ("smo", "FAST_COMPILE"))
            ]
        assert found[0] == pytest.approx(found[1], abs=1e-12)
    with pytest.raises(ValueError, match="pairs must be"):
        Decomposition(pairs="best")
