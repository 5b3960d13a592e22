"""The solvers of large linear models: every loss, penalty and intercept against an independent reference."""

import itertools
import warnings

import numpy as np
import oracles
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import estimator_checks

from symsvm import LinearSVC, LinearSVR
from symsvm.linear import Rows, solve_crammer_singer, solve_linear
from symsvm.linear.linear_problem import LOSSES, LinearProblem

EPSILON = 0.1
INTERCEPTS = {
    "penalised": {"intercept_scaling": 2.0},
    "free": {"penalize_intercept": False},
    "none": {"intercept": False},
}
MODELS = [
    (loss, penalty, kind)
    for loss, penalty, kind in itertools.product(LOSSES, ("l2", "l1"), INTERCEPTS)
    if penalty == "l2" or loss.startswith("squared")
]


def problem(n, d, seed=0):
    """Points with zeros, labels and targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    score = X[:, 0] - X[:, -1] + rng.normal(size=n)
    return X, np.where(score > 0.3, 1.0, -1.0), 2 * score + 1


def target(loss, y, t):
    return y if loss.endswith("hinge") else t


def losses(loss, y, f):
    """Each loss, as it is defined."""
    xi = np.maximum(0, 1 - y * f) if loss.endswith("hinge") else np.maximum(0, np.abs(y - f) - EPSILON)
    return xi**2 if loss.startswith("squared") else xi


def primal(X, y, C, loss, penalty, solution, kind):
    """P, as it is defined."""
    b = 0.0 if solution.b is None else solution.b
    size = (lambda v: 0.5 * np.sum(v**2)) if penalty == "l2" else (lambda v: np.sum(np.abs(v)))
    R = size(solution.w) + (0.0 if kind == "free" else size(np.asarray(b)))
    return R + np.sum(C * losses(loss, y, X @ solution.w + solution.intercept))


def reference(X, y, C, loss, penalty, kind):
    """The optimum of (P) as a quadratic program in (w, b, xi, slacks), w = w+ - w- for l1, by the general solver."""
    n, d = X.shape
    s = {"penalised": 2.0, "free": 1.0, "none": 0.0}[kind]
    A = np.c_[X, np.full(n, s)]
    weight = np.ones(d + 1)
    weight[d] = kind != "free"
    size = d + 1
    if penalty == "l1":
        A, weight, size = np.c_[A, -A], np.tile(weight, 2), 2 * (d + 1)
    sides = [(-y[:, None] * A, -np.ones(n))] if loss.endswith("hinge") else [(A, y + EPSILON), (-A, EPSILON - y)]
    k = len(sides)
    total = size + n + k * n  # each side: A_side u - xi + slack = c, slack >= 0
    Q, p = np.zeros((total, total)), np.zeros(total)
    if penalty == "l2":
        Q[:size, :size] = np.diag(weight)
    else:
        p[:size] = weight
    C = np.broadcast_to(C, n)
    if loss.startswith("squared"):
        Q[size : size + n, size : size + n] = np.diag(2 * C)
    else:
        p[size : size + n] = C
    rows = np.zeros((k * n, total))
    for i, (side, _) in enumerate(sides):
        part = slice(i * n, (i + 1) * n)
        rows[part, :size], rows[part, size : size + n] = side, -np.eye(n)
        rows[part, size + n + i * n : size + n + (i + 1) * n] = np.eye(n)
    lower = np.zeros(total)
    if penalty == "l2":
        lower[:size] = -np.inf
    v = oracles.qp(Q, p, lower, np.inf, rows, np.concatenate([c for _, c in sides]))
    return 0.5 * v @ Q @ v + p @ v


def assert_solved(X, y, C, loss, penalty, kind, best=None, tol=1e-7, **options):
    """Solve dense and sparse; the gap closes, P is what it says and the optimum of the reference."""
    best = reference(X, y, C, loss, penalty, kind) if best is None else best
    solutions = []
    for points in (X, sparse.csr_matrix(X)):
        settings = {"loss": loss, "penalty": penalty, "epsilon": EPSILON, "tol": tol, **INTERCEPTS[kind], **options}
        solution = solve_linear(points, y, C, **settings)
        c = solution.certificate
        assert solution.stopped == "tol", (solution.algorithm, str(c))
        assert c.status == "optimal"
        assert 0 <= c.gap <= 1e-6 * c.primal
        np.testing.assert_allclose(c.primal, primal(X, y, C, loss, penalty, solution, kind), rtol=1e-9)
        np.testing.assert_allclose(c.primal - c.dual, c.gap, atol=1e-9 * c.primal)
        # The reference is some 1e-5 from the optimum where C is large; the gap is the sharper bound.
        assert c.primal <= best * (1 + 2e-6) + 1e-9
        assert best <= c.primal * (1 + 1e-4) + 1e-9
        solutions.append(solution)
    return solutions


@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize(("loss", "penalty", "kind"), MODELS)
def test_optimum_of_every_model(loss, penalty, kind, C):
    for shape in ((40, 4), (12, 25)):  # n >> d, d > n
        X, y, t = problem(*shape)
        assert_solved(X, target(loss, y, t), C, loss, penalty, kind)


@pytest.mark.parametrize(("loss", "penalty", "kind"), MODELS)
def test_hard_points(loss, penalty, kind):
    """One feature; a constant and an empty column; points twice, of no features, and on both sides."""
    X, y, t = problem(30, 3, seed=1)
    X[:, 1], X[3], X[5:10], X[10:15] = 1.0, 0.0, X[:5], X[:5]
    X = np.c_[X, np.zeros(30)]
    y[10:15], t[10:15] = -y[:5], -t[:5]
    assert_solved(X, target(loss, y, t), 1.0, loss, penalty, kind)
    assert_solved(X[:, :1], target(loss, y, t), 3.0, loss, penalty, kind)


@pytest.mark.parametrize("shape", [(30, 4), (15, 25)])
@pytest.mark.parametrize(("loss", "penalty", "kind"), MODELS)
def test_a_weight_is_so_many_copies(loss, penalty, kind, shape):
    """Small problems end exactly, at any tolerance: weights are copies, and 0 is absence, to 1e-7."""
    X, y, t = problem(*shape, seed=2)
    weights = np.arange(len(y)) % 3  # 0, 1 and 2
    y, used = target(loss, y, t), weights > 0
    for C, epsilon in itertools.product((0.1, 1.0, 100.0), (EPSILON, 0.0)):
        options = {"loss": loss, "penalty": penalty, "epsilon": epsilon, **INTERCEPTS[kind]}
        weighted = solve_linear(X, y, C * weights, **options)
        copied = solve_linear(np.repeat(X, weights, axis=0), np.repeat(y, weights), C, **options)
        removed = solve_linear(sparse.csr_matrix(X[used]), y[used], C * weights[used], **options)
        f = X @ weighted.w + weighted.intercept
        for other in (copied, removed):
            np.testing.assert_allclose(X @ other.w + other.intercept, f, atol=1e-7 * max(1.0, np.abs(f).max()))
        assert (weighted.dual[~used] == 0).all()


ESTIMATORS = [
    *(LinearSVC(loss=loss, dual=dual) for loss in ("hinge", "squared_hinge") for dual in (True, False, "auto")),
    LinearSVC(penalty="l1"),
    *(LinearSVC(loss=loss, penalize_intercept=False) for loss in ("hinge", "squared_hinge")),
    LinearSVC(loss="hinge", fit_intercept=False, C=100.0),
    LinearSVC(multi_class="ovo", class_weight="balanced"),
    *(LinearSVC(multi_class="crammer_singer", fit_intercept=b, C=C) for b in (True, False) for C in (0.1, 1.0, 100.0)),
    *(LinearSVR(loss=loss, penalize_intercept=p) for loss in LOSSES[2:] for p in (True, False)),
    LinearSVR(loss="squared_epsilon_insensitive", penalty="l1", epsilon=0.1),
]


@pytest.mark.parametrize("check", ["dense", "sparse"])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_weights_of_every_estimator(estimator, check):
    """scikit-learn's own check, for every setting."""
    check = getattr(estimator_checks, f"check_sample_weight_equivalence_on_{check}_data")
    check(type(estimator).__name__, estimator)


def large(n=1200, d=1100, seed=3):
    """Sparse points for the algorithms of large shapes."""
    rng = np.random.default_rng(seed)
    X = sparse.random(n, d, 0.02, format="csr", random_state=rng)
    X.data = rng.normal(size=X.nnz)
    score = X @ rng.normal(size=d) + 0.5
    return X, np.where(score > 0, 1.0, -1.0), score


LARGE = [
    ("hinge", "l2", "penalised", "coordinate descent"),
    ("hinge", "l2", "free", "multipliers"),
    ("epsilon_insensitive", "l2", "none", "coordinate descent"),
    ("epsilon_insensitive", "l2", "free", "multipliers"),
    ("squared_hinge", "l2", "free", "newton"),
    ("squared_epsilon_insensitive", "l2", "penalised", "newton"),
    ("squared_hinge", "l1", "penalised", "working sets"),
    ("squared_epsilon_insensitive", "l1", "free", "working sets"),
]


@pytest.mark.parametrize(("loss", "penalty", "kind", "algorithm"), LARGE)
def test_large_shapes(loss, penalty, kind, algorithm):
    X, y, t = large()
    y = target(loss, y, t)
    options = {"loss": loss, "penalty": penalty, "epsilon": EPSILON, "tol": 1e-6, **INTERCEPTS[kind]}
    solution = solve_linear(X, y, 0.1, **options)
    c = solution.certificate
    assert solution.algorithm == algorithm
    assert c.status == "optimal"
    assert 0 <= c.gap <= 1e-6 * c.primal
    np.testing.assert_allclose(c.primal, primal(X, y, 0.1, loss, penalty, solution, kind), rtol=1e-9)
    again = solve_linear(X, y, 0.1, **options)
    assert np.array_equal(solution.w, again.w)
    assert solution.b == again.b
    dense = solve_linear(X.toarray(), y, 0.1, **options)
    np.testing.assert_allclose(dense.certificate.primal, c.primal, rtol=2e-6)


def test_coordinate_descent_for_fewer_points_than_features_and_newton_after_it():
    X, y, _ = large(300, 1100)
    cheap = solve_linear(X, y, 0.1, loss="squared_hinge", tol=1e-8)
    assert cheap.algorithm == "coordinate descent"
    dear = solve_linear(X.toarray() + 1, y, 100.0, loss="squared_hinge", tol=1e-6)  # nearly parallel rows
    assert dear.algorithm == "coordinate descent, newton"
    assert cheap.certificate.status == dear.certificate.status == "optimal"


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", INTERCEPTS)
def test_algorithms_agree(loss, kind):
    """What suits large shapes finds the same optimum as what suits small ones."""
    X, y, t = problem(60, 5, seed=4)
    s = INTERCEPTS[kind].get("intercept_scaling", float(kind != "none"))
    p = LinearProblem(Rows(X, s), target(loss, y, t), 0.5, loss=loss, epsilon=EPSILON, free=kind == "free")
    best = reference(X, p.t, 0.5, loss, "l2", kind)
    from symsvm.linear.coordinate_descent import coordinate_descent, multiplier_descent
    from symsvm.linear.primal_newton import primal_newton

    u, z = np.zeros(6), np.zeros(60)
    options = {"tol": 1e-8, "seed": 0, "most": 20000}
    runs = [multiplier_descent(p, z, 0.0, **options) if p.free else coordinate_descent(p, z, **options)]
    if p.squared:
        runs += [primal_newton(p, u, tol=1e-8, formed=False), primal_newton(p, u, tol=1e-8, formed=True)]
    for run in runs:
        measures = (p.measure(*point[1:3])[0] for point in run)
        measure = next(m for m in measures if m.reaches(1e-6) or not np.isfinite(m.gap))
        np.testing.assert_allclose(measure.primal, best, rtol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("points", ["dense", "sparse"])
def test_subspace_minimisation(loss, points):
    """Bounds and signs are kept, those at a bound stay, the dual rises; without bounds, to where its gradient is 0."""
    from symsvm.linear.subspace import minimize_free_variables

    X, y, t = problem(80, 30, seed=12)
    X = np.r_[X, X[:20]]  # twice: no curvature between them
    y, t = np.r_[y, -y[:20]], np.r_[t, t[:20] + 1]
    rng, A = np.random.default_rng(0), np.c_[X, np.ones(100)]
    for C, width in ((1.0, 1.0), (1e3, 1e-6)):
        rows = Rows(X if points == "dense" else sparse.csr_matrix(X), 1.0)
        p = LinearProblem(rows, target(loss, y, t), C, loss=loss, epsilon=EPSILON)
        low, high = np.maximum(p.lower, -C), np.minimum(p.upper, C)
        z = low + (high - low) * (0.5 + width * (rng.random(100) - 0.5))
        z[::7], z[3::7] = low[::7], high[3::7]
        if width < 1:  # few, far from their bounds
            z[15:] = 0.0

        def dual(z, p=p):
            v = A.T @ z
            return p.t @ z - p.epsilon * np.abs(z).sum() - 0.5 * p.D @ z**2 - 0.5 * v @ v

        H = rows.squares + p.D
        new, visits = minimize_free_variables(p, 1.0, p.t, z, A.T @ z, H, products=500, share=1e-10, least=0.0)
        free = (z > p.lower) & (z < p.upper) & ((z != 0) | (p.epsilon == 0))
        assert visits > 0
        assert ((new >= p.lower) & (new <= p.upper)).all()
        assert np.array_equal(new[~free], z[~free])
        assert (new * z >= 0).all() or p.epsilon == 0
        assert dual(new) > dual(z)
        inside = free & (new > p.lower) & (new < p.upper) & ((new != 0) | (p.epsilon == 0))
        g = A @ (A.T @ new) - p.t + p.D * new + p.epsilon * np.sign(new)
        before = A @ (A.T @ z) - p.t + p.D * z + p.epsilon * np.sign(z)
        if width < 1 and np.array_equal(inside, free):
            assert np.abs(g[inside]).max() <= 1e-8 * np.abs(before[free]).max()


@pytest.mark.parametrize(
    ("loss", "kind"), [*(("hinge", kind) for kind in INTERCEPTS), ("epsilon_insensitive", "penalised")]
)
def test_subspace_minimisation_speeds_up_slow_passes(loss, kind):
    """Points in pairs that are almost the same, C large: passes alone took 477 to 1397 looks to 1e-4."""
    X, y, t = large()
    X = sparse.vstack([X, X + 1e-2 * large(seed=4)[0]]).tocsr()
    y = np.r_[target(loss, y, t), target(loss, y, t)]
    solution = solve_linear(X, y, 10.0, loss=loss, epsilon=EPSILON, tol=1e-8, **INTERCEPTS[kind])
    c = solution.certificate
    assert solution.stopped == "tol"
    assert c.status == "optimal"
    assert 0 <= c.gap <= 1e-8 * c.primal
    assert len(solution.trace["gap"]) < 400
    np.testing.assert_allclose(c.primal, primal(X, y, 10.0, loss, "l2", solution, kind), rtol=1e-9)


def test_types_of_points():
    X, y, _ = problem(50, 6, seed=5)
    X = X.astype("float32")  # the same numbers for all
    S = sparse.csr_matrix(X)
    wide = S.copy()
    wide.indices, wide.indptr = wide.indices.astype("int64"), wide.indptr.astype("int64")
    unsorted = sparse.csr_matrix((S.data[::-1], S.indices[::-1], S.nnz - S.indptr[::-1]), S.shape)[::-1]
    assert not unsorted.has_sorted_indices
    twice = sparse.csr_matrix((np.repeat(S.data, 2) / 2, np.repeat(S.indices, 2), 2 * S.indptr), S.shape)
    kept = twice.data.copy()
    for loss, penalty in (("hinge", "l2"), ("squared_hinge", "l2"), ("squared_hinge", "l1")):
        best = None
        for points in (X.astype("float64"), X, S, wide, S.astype("float64"), S.tocsc(), unsorted, twice):
            c = solve_linear(points, y, 1.0, loss=loss, penalty=penalty, tol=1e-8).certificate
            assert c.status == "optimal"
            best = best or c.primal
            np.testing.assert_allclose(c.primal, best, rtol=1e-7)
    assert np.array_equal(twice.data, kept)  # the caller's own


@pytest.mark.parametrize(("loss", "penalty", "kind"), MODELS)
def test_same_bits_twice(loss, penalty, kind):
    X, y, t = problem(50, 5, seed=6)
    options = {"loss": loss, "penalty": penalty, "epsilon": EPSILON, **INTERCEPTS[kind]}
    first, second = (solve_linear(X, target(loss, y, t), 1.0, **options) for _ in range(2))
    assert np.array_equal(first.w, second.w)
    assert np.array_equal(first.dual, second.dual)
    assert first.b == second.b


STOPS = {
    "max_iter": {"max_iter": 1},
    "time_limit": {"time_limit": 0.0},
    "callback": {"callback": lambda info: True},
}


@pytest.mark.parametrize("stopped", STOPS)
@pytest.mark.parametrize(("loss", "penalty", "kind"), MODELS)
def test_early_stops_are_honest(loss, penalty, kind, stopped):
    X, y, t = problem(60, 5, seed=7)
    y = target(loss, y, t)
    options = {"loss": loss, "penalty": penalty, "epsilon": EPSILON, "tol": 1e-12, **INTERCEPTS[kind]}
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        solution = solve_linear(X, y, 100.0, **options, **STOPS[stopped])
    c = solution.certificate
    assert solution.stopped == stopped
    assert c.status == "feasible"
    assert c.gap > 1e-12 * c.primal or c.violation > 1e-12
    assert c.dual <= reference(X, y, 100.0, loss, penalty, kind) * (1 + 1e-5) <= c.primal * (1 + 2e-5)
    p = LinearProblem(Rows(X), y, 100.0, loss=loss)
    assert (solution.dual >= p.lower).all()
    assert (solution.dual <= p.upper).all()
    if kind == "free":
        np.testing.assert_allclose(solution.dual.sum(), 0, atol=1e-12 * np.abs(solution.dual).sum())
    assert len(solution.trace["gap"]) == len(solution.trace["seconds"]) >= 1


def test_an_interrupt_returns_the_best_point():
    X, y, _ = problem(60, 5, seed=7)

    def interrupt(info):
        if info.iteration >= 2:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupt"):
        solution = solve_linear(X, y, 100.0, loss="hinge", penalize_intercept=False, callback=interrupt)
    assert solution.stopped == "interrupt"
    assert solution.certificate.status == "feasible"


@pytest.mark.parametrize(("loss", "penalty", "kind"), MODELS)
def test_warm_starts(loss, penalty, kind):
    X, y, t = problem(60, 5, seed=8)
    y = target(loss, y, t)
    options = {"loss": loss, "penalty": penalty, "epsilon": EPSILON, "tol": 1e-7, **INTERCEPTS[kind]}
    first = solve_linear(X, y, 1.0, **options)
    same = solve_linear(X, y, 1.0, start=first, **options)
    assert same.n_iter <= first.n_iter
    for start in (first, first.w):
        other = solve_linear(X, y, 2.0, start=start, **options)
        np.testing.assert_allclose(other.certificate.primal, reference(X, y, 2.0, loss, penalty, kind), rtol=1e-5)


def test_tolerance_is_at_least_as_strict_as_that_of_scikit_learn():
    from sklearn.svm import LinearSVC, LinearSVR

    X, y, t = problem(400, 8, seed=9)
    for loss, penalty in (("hinge", "l2"), ("squared_hinge", "l2"), ("squared_hinge", "l1")):
        peer = LinearSVC(loss=loss, penalty=penalty, dual=loss == "hinge", max_iter=100000).fit(X, y)
        ours = solve_linear(X, y, 1.0, loss=loss, penalty=penalty)
        u = np.append(peer.coef_[0], peer.intercept_)
        size = 0.5 * u @ u if penalty == "l2" else np.abs(u).sum()
        theirs = size + losses(loss, y, X @ u[:-1] + u[-1]).sum()
        assert ours.certificate.primal <= theirs * (1 + 1e-6)
    for loss in ("epsilon_insensitive", "squared_epsilon_insensitive"):
        peer = LinearSVR(loss=loss, epsilon=EPSILON, dual=True, max_iter=100000).fit(X, t)
        ours = solve_linear(X, t, 1.0, loss=loss, epsilon=EPSILON)
        u = np.append(peer.coef_, peer.intercept_)
        theirs = 0.5 * u @ u + losses(loss, t, X @ u[:-1] + u[-1]).sum()
        assert ours.certificate.primal <= theirs * (1 + 1e-6)


def test_one_class_and_an_empty_tube():
    X, _, t = problem(20, 3)
    for kind, options in INTERCEPTS.items():
        one = solve_linear(X, np.ones(20), 1.0, loss="hinge", tol=1e-8, **options)
        np.testing.assert_allclose(
            one.certificate.primal, reference(X, np.ones(20), 1.0, "hinge", "l2", kind), atol=1e-7
        )
        wide = solve_linear(X, t, 1.0, loss="squared_epsilon_insensitive", epsilon=100.0, **options)
        assert wide.certificate.primal <= 1e-20
        assert wide.certificate.status == "optimal"


def crammer_singer(X, y, C, s):
    """The optimum of the primal by the general solver, in (u_1 .. u_k, xi, slacks)."""
    n, k = len(y), y.max() + 1
    A = np.c_[X, np.full(n, s)]
    d, pairs = A.shape[1], [(i, m) for i in range(n) for m in range(k) if m != y[i]]
    total = d * k + n + len(pairs)
    rows, Q, p = np.zeros((len(pairs), total)), np.zeros((total, total)), np.zeros(total)
    for j, (i, m) in enumerate(pairs):  # f_y - f_m + xi - slack = 1
        rows[j, y[i] * d : (y[i] + 1) * d], rows[j, m * d : (m + 1) * d] = A[i], -A[i]
        rows[j, d * k + i], rows[j, d * k + n + j] = 1, -1
    Q[: d * k, : d * k], p[d * k : d * k + n] = np.eye(d * k), C
    lower = np.where(np.arange(total) < d * k, -np.inf, 0.0)
    v = oracles.qp(Q, p, lower, np.inf, rows, np.ones(len(pairs)))
    return 0.5 * v @ Q @ v + p @ v


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_crammer_singer(C, intercept):
    for n, d, k in ((40, 4, 3), (15, 20, 4)):
        X, *_ = problem(n, d, seed=10)
        X[2] = 0.0
        y = (X[:, :k] + np.random.default_rng(0).normal(size=(n, k))).argmax(axis=1)
        y[:k] = np.arange(k)
        best = crammer_singer(X, y, C, 1.0 * intercept)
        first = solve_crammer_singer(X, y, C, intercept=intercept, tol=1e-6)
        for points in (X, sparse.csr_matrix(X)):
            solution = solve_crammer_singer(points, y, C, intercept=intercept, tol=1e-6)
            c = solution.certificate
            assert c.status == "optimal"
            assert 0 <= c.gap <= 1e-6 * c.primal
            np.testing.assert_allclose(c.primal, best, rtol=1e-5)
            F = X @ solution.w + solution.intercept
            E = F + 1
            E[np.arange(n), y] -= 1
            u = solution.w if solution.b is None else np.r_[solution.w, solution.b[None]]
            direct = 0.5 * np.sum(u**2) + C * np.sum(E.max(axis=1) - F[np.arange(n), y])
            np.testing.assert_allclose(c.primal, direct, rtol=1e-9)
        again = solve_crammer_singer(X, y, C, intercept=intercept, tol=1e-6)
        assert np.array_equal(first.w, again.w)
        warm = solve_crammer_singer(X, y, C, intercept=intercept, tol=1e-6, start=first)
        assert warm.n_iter <= first.n_iter


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_crammer_singer_weights(C, intercept):
    for shape in ((30, 4), (15, 25)):
        X, *_ = problem(*shape, seed=11)
        y, weights = np.arange(len(X)) % 3, np.arange(len(X)) % 4
        used = weights > 0
        weighted = solve_crammer_singer(X, y, C * weights, intercept=intercept)
        copied = solve_crammer_singer(np.repeat(X, weights, axis=0), np.repeat(y, weights), C, intercept=intercept)
        removed = solve_crammer_singer(sparse.csr_matrix(X[used]), y[used], C * weights[used], intercept=intercept)
        for other in (copied, removed):
            np.testing.assert_allclose(weighted.w, other.w, atol=1e-7 * max(1.0, np.abs(weighted.w).max()))
            np.testing.assert_allclose(weighted.intercept, other.intercept, atol=1e-7)
        assert (weighted.dual[~used] == 0).all()


def test_crammer_singer_stops():
    X, *_ = problem(30, 4, seed=11)
    y = np.arange(30) % 3
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        early = solve_crammer_singer(X, y, 100.0, max_iter=2)
    assert early.stopped == "max_iter"
    assert early.certificate.status == "feasible"
    assert early.certificate.dual <= crammer_singer(X, y, 100.0, 1.0) <= early.certificate.primal


def test_a_tolerance_that_rounding_forbids_ends_the_run():
    X, y, t = large()
    for loss, kind in (("hinge", "penalised"), ("epsilon_insensitive", "free"), ("squared_hinge", "free")):
        with pytest.warns(ConvergenceWarning, match="no further progress at float64 precision"):
            solution = solve_linear(X, target(loss, y, t), 0.1, loss=loss, tol=1e-18, **INTERCEPTS[kind])
        assert solution.stopped == "stalled"
        assert solution.certificate.gap <= 1e-10 * solution.certificate.primal
    with pytest.warns(ConvergenceWarning, match="no further progress at float64 precision"):
        solve_crammer_singer(X[:100], np.arange(100) % 3, 0.1, tol=1e-18)


def test_bad_input_gets_a_sentence():
    X, y, _ = problem(10, 2)
    bad = X.copy()
    bad[3, 1] = np.nan
    cases = [
        ((X, y[:5], 1.0), {}, "y must be 10 finite numbers"),
        ((X, y + 2, 1.0), {}, "labels -1 and \\+1"),
        ((bad, y, 1.0), {}, "X must be finite"),
        ((X[0], y, 1.0), {}, "X must be"),
        ((X, y, -1.0), {}, "C must be a positive number"),
        ((X, y, np.zeros(10)), {}, "C must be"),
        ((X, y, 1.0), {"loss": "logistic"}, "loss must be one of"),
        ((X, y, 1.0), {"penalty": "l1"}, "needs a squared loss"),
        ((X, y, 1.0), {"intercept_scaling": 0.0}, "intercept_scaling must be positive"),
        ((X, y, 1.0), {"start": np.zeros(7)}, "start must be"),
        ((X, y, 1.0), {"tol": 0.0}, "tol must be positive"),
    ]
    for args, options, sentence in cases:
        with pytest.raises(ValueError, match=sentence):
            solve_linear(*args, **{"loss": "hinge", **options})
    with pytest.raises(ValueError, match="integers 0"):
        solve_crammer_singer(X, y, 1.0)


def test_callbacks_see_the_gap_and_nothing_warns_on_success():
    X, y, _ = problem(60, 5)
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = solve_linear(X, y, 10.0, loss="hinge", callback=lambda info: seen.append(info))
    assert [info.gap for info in seen] == solution.trace["gap"].tolist()
