"""Heads of networks: losses against loops, exact machines against their conditions, gradients against differences."""

import numpy as np
import oracles
import pytensor
import pytensor.tensor as pt
import pytest
from problems import MODES

import symsvm
from symsvm import RBF, SVC, Linear, LinearSVC, Objective, heads
from symsvm.compiler.functions import function
from symsvm.heads import machines
from symsvm.implicit import GradientWarning
from symsvm.objectives import losses

LOSSES = {
    "one_vs_rest": (heads.one_vs_rest, oracles.one_vs_rest),
    "crammer_singer": (heads.crammer_singer, oracles.crammer_singer),
    "weston_watkins": (heads.weston_watkins, oracles.weston_watkins),
}
RNG = np.random.default_rng(0)
F, Y = 1.5 * RNG.normal(size=(30, 4)), RNG.integers(0, 4, 30)
# Every entry is a multiple of 1/2: most rows have a margin of exactly 1, or two other classes with the greatest score.
KINKS = RNG.integers(-2, 3, (60, 4)) / 2.0
PLAIN = "FAST_COMPILE"


def differences(f, x, step=1e-6):
    """Central differences of a function of an array."""
    out = np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        values = []
        for sign in (1, -1):
            moved = x.copy()
            moved[at] += sign * step
            values.append(float(f(moved)))
        out[at] = (values[0] - values[1]) / (2 * step)
    return out


# Numba compiles these graphs for a quarter of a minute.
SLOW_NUMBA = pytest.param("NUMBA", marks=pytest.mark.slow)


# ---- losses of scores


@pytest.mark.parametrize("mode", [*(mode for mode in MODES if mode != "NUMBA"), SLOW_NUMBA])
def test_losses_equal_loops_in_the_type_of_the_scores(mode):
    y = pt.lvector("y")
    for dtype, rtol in (("float64", 1e-13), ("float32", 1e-5)):
        f = pt.matrix("f", dtype=dtype)
        graphs = [loss(y, f, squared=squared) for loss, _ in LOSSES.values() for squared in (False, True)]
        slopes = [pytensor.grad(graph.sum(), f) for graph in graphs]
        assert {graph.dtype for graph in graphs + slopes} == {dtype}
        *values, total = function([y, f], [*graphs, sum(slopes)], mode=mode)(Y, F.astype(dtype))
        expected = [
            [loop(c, row, p) for c, row in zip(Y, F, strict=True)] for _, loop in LOSSES.values() for p in (1, 2)
        ]
        np.testing.assert_allclose(values, expected, rtol=rtol, atol=rtol)
        assert {np.asarray(value).dtype.name for value in (*values, total)} == {dtype}
        if dtype == "float64":
            np.testing.assert_allclose(total, differences(sum_of_loops, F), rtol=1e-6, atol=1e-6)


def sum_of_loops(f):
    return sum(loop(c, row, p) for _, loop in LOSSES.values() for p in (1, 2) for c, row in zip(Y, f, strict=True))


@pytest.mark.parametrize("name", LOSSES)
def test_the_slope_at_a_kink_is_the_subgradient_that_the_docstring_names(name):
    """A subgradient g has L(v) >= L(f) + g.(v - f) for every v; that of the side with a loss is one of them."""
    loss, loop = LOSSES[name]
    y, f = RNG.integers(0, 4, len(KINKS)), pt.dmatrix("f")
    slopes = function([f], pytensor.grad(loss(y, f).sum(), f), mode=PLAIN)(KINKS)
    for c, row, g in zip(y, KINKS, slopes, strict=True):
        for v in row + RNG.normal(size=(20, 4)) * RNG.choice([0.1, 1.0], (20, 1)):
            assert loop(c, v) >= loop(c, row) + g @ (v - row) - 1e-12
    expected = np.zeros_like(slopes)
    for g, c, row in zip(expected, y, KINKS, strict=True):
        others = [r for r in range(4) if r != c]
        if name == "one_vs_rest":
            g[others] = [float(row[r] >= -1) for r in others]
            g[c] = -float(row[c] <= 1)
        else:
            best = max(others, key=lambda r: row[r])  # the first of them
            for r in [best] if name == "crammer_singer" else others:
                if row[c] - row[r] <= 1:
                    g[r], g[c] = g[r] + 1, g[c] - 1
    np.testing.assert_array_equal(slopes, expected)


def test_two_classes_are_the_binary_loss():
    f, y = RNG.normal(size=(20, 2)), RNG.integers(0, 2, 20)
    t, margin = 2.0 * y - 1, f[:, 1] - f[:, 0]
    opposite = np.column_stack([-margin, margin])
    for squared, binary in ((False, losses.hinge), (True, losses.squared_hinge)):
        pairs = [
            (heads.one_vs_rest(y, opposite, squared=squared), 2 * binary(t, margin)),
            (heads.crammer_singer(y, f, squared=squared), binary(t, margin)),
            (heads.weston_watkins(y, f, squared=squared), binary(t, margin)),
            (heads.weston_watkins(y, opposite, margin=2, squared=squared), 2 ** (1 + squared) * binary(t, margin)),
        ]
        for ours, expected in zip(
            *(function([], list(side), mode=PLAIN)() for side in zip(*pairs, strict=True)), strict=True
        ):
            np.testing.assert_allclose(ours, expected, rtol=1e-14)


def test_the_loss_of_crammer_and_singer_is_minimal_at_their_machine():
    X, y, C = RNG.normal(size=(60, 4)), RNG.integers(0, 3, 60), 0.7
    X += 2 * np.eye(3, 4)[y]
    machine = LinearSVC(multi_class="crammer_singer", C=C, tol=1e-10, fit_intercept=False).fit(X, y)
    V = pt.dmatrix("V")
    risk = function([V], 0.5 * (V**2).sum() + C * heads.crammer_singer(y, pt.dot(X, V.T)).sum(), mode=PLAIN)
    best = float(risk(machine.coef_))
    assert best == pytest.approx(machine.certificate_.primal, rel=1e-9)
    assert all(risk(machine.coef_ + 0.01 * RNG.normal(size=(3, 4))) > best for _ in range(20))


def test_other_shapes_and_infinite_scores():
    f = np.array([[0.5, -np.inf, 0.25]])
    assert heads.crammer_singer([0], f).eval(mode=PLAIN).tolist() == [0.75]
    assert heads.weston_watkins(0, f[0]).eval(mode=PLAIN).tolist() == 0.75
    assert heads.one_vs_rest([[0], [1]], np.zeros((2, 1, 3))).eval(mode=PLAIN).tolist() == [[3.0], [3.0]]


@pytest.mark.parametrize("loss", [loss for loss, _ in LOSSES.values()])
def test_wrong_classes_and_scores_are_refused(loss):
    y, f = pt.lvector("y"), pt.dmatrix("f")
    for bad, message in (
        ((pt.dvector(), f), "integers from 0 to k - 1, got float64"),
        ((y, pt.lmatrix()), "must be float32 or float64, got int64"),
        ((f, f), "got 2 and 2 dimension"),
        (([0], np.zeros((1, 1))), "at least 2 classes"),
        (([0, 3], np.zeros((2, 3))), "from 0 to 2 for 3 scores, got 3"),
        (([-1, 1], np.zeros((2, 2))), "got -1"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            loss(*bad)
    values = function([y, f], loss(y, f), mode=PLAIN)(np.array([0, 4, -1]), np.zeros((3, 4)))
    assert np.isnan(values).tolist() == [False, True, True]


# ---- exact machines


def batch(m=36, k=3, d=3, seed=1):
    """Points of k overlapping classes, and points to decide."""
    rng = np.random.default_rng(seed)
    y = np.arange(m) % k
    X = rng.normal(size=(m, d)) + 1.2 * np.eye(k, d)[y]
    return X, y, rng.normal(size=(8, d)) + 0.5


def gram(X, sigma=1.5):
    return np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / (2 * sigma**2))


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_the_layer_is_the_machine_of_svc_at_its_solution(multi_class):
    X, y, Z = batch()
    f = heads.kernel_machines(X, y, Z, RBF(1.5), n_classes=3, C=2.0, multi_class=multi_class)
    machine = SVC(kernel=RBF(1.5), C=2.0, multi_class=multi_class, decision_function_shape=multi_class, tol=1e-8)
    expected = machine.fit(X, y).decision_function(Z)
    if multi_class == "ovo":
        a, b, c = expected.T  # 0 against 1, 0 against 2, 1 against 2
        expected = np.column_stack([a + b, c - a, -b - c]) / 2
    np.testing.assert_allclose(f.eval(mode=PLAIN), expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("squared", [False, True])
def test_machines_meet_the_conditions_of_their_dual_and_decide_by_loops(squared):
    """The KKT conditions of Eq. 005:4, which are sufficient; 0 in T leaves a point out."""
    X, y, Z = batch()
    T = np.where(y == np.arange(3)[:, None], 1.0, -1.0)
    part = T.copy()
    part[1, ::5] = 0
    C = RNG.uniform(0.5, 3.0, len(X))
    q, b = (x.eval(mode=PLAIN) for x in heads.solve_machines(gram(X), part, C, squared=squared, is_psd=True))
    assert not q[part == 0].any()
    for t, q_c, b_c in zip(part, q, b, strict=True):
        lam, most = t * q_c, np.inf if squared else C
        assert abs(q_c.sum()) < 1e-12
        assert ((lam >= 0) & (lam <= most)).all()
        margin = t * (gram(X) @ q_c + (q_c / (2 * C) if squared else 0) + b_c)
        assert (margin[(t != 0) & (lam < most)] > 1 - 1e-9).all()
        assert (margin[(t != 0) & (lam > 0)] < 1 + 1e-9).all()
    q, b = (x.eval(mode=PLAIN) for x in heads.solve_machines(gram(X), T, C, squared=squared))
    f = heads.kernel_machines(X, y, Z, RBF(1.5), n_classes=3, C=C, squared=squared).eval(mode=PLAIN)
    loops = oracles.machine_decisions(Z, q, X, lambda x, z: oracles.rbf(x, z, 1.5), b)
    np.testing.assert_allclose(f, loops, rtol=1e-10, atol=1e-10)


WEIGHTS = np.random.default_rng(3).normal(size=(3, 3))


def network(dtype="float64", kernel=RBF, **options):
    """The inputs of a network with an exact layer, their values, and a loss of its decisions."""
    X, y, Z = batch()
    values = {"weights": WEIGHTS, "X": X, "Z": Z, "log_sigma": np.array(0.3), "log_C": np.array(0.5)}
    values = {name: value.astype(dtype) for name, value in values.items()}
    V, P, R, log_sigma, log_C = (pt.tensor(name, dtype=dtype, shape=v.shape) for name, v in values.items())
    sigma = pt.exp(log_sigma)
    features = (pt.tanh(pt.dot(points, V)) for points in (P, R))
    f = heads.kernel_machines(next(features), y, next(features), kernel(sigma), n_classes=3, C=pt.exp(log_C), **options)
    loss = (f * np.random.default_rng(2).normal(size=(8, 3)).astype(dtype)).sum()
    return [V, P, R, log_sigma, log_C], list(values.values()), loss, sigma


@pytest.mark.parametrize(
    ("mode", "multi_class", "squared"),
    [("NUMBA", "ovr", False), ("JAX", "ovr", False), (PLAIN, "ovr", True), (PLAIN, "ovo", False)],
)
def test_gradients_through_a_network_equal_differences(mode, multi_class, squared):
    """By the weights before the kernel, both sets of points, sigma and C; the last two are graphs themselves."""
    kernel = RBF if mode in MODES else lambda sigma: RBF(sigma) + 0.1 * Linear()  # fewer loops to compile
    inputs, values, loss, sigma = network(kernel=kernel, multi_class=multi_class, squared=squared)
    graphs = pytensor.grad(loss, [*inputs, sigma])
    *gradients, by_sigma = function(inputs, graphs, mode=mode)(*values)
    assert float(by_sigma) == pytest.approx(float(gradients[3]) / np.exp(0.3), rel=1e-9)
    value = function(inputs, loss, mode=PLAIN)
    for k, g in enumerate(gradients):
        expected = differences(lambda v, k=k: value(*values[:k], v, *values[k + 1 :]), values[k])
        assert np.abs(g - expected).max() <= 2e-7 * np.abs(expected).max(), inputs[k]


def test_float32_features_give_float32():
    inputs, values, loss, _ = network("float32")
    graphs = [loss, *pytensor.grad(loss, inputs)]
    assert {graph.dtype for graph in graphs} == {"float32"}
    narrow = function(inputs, graphs, mode=PLAIN)(*values)
    inputs, values, loss, _ = network()
    wide = function(inputs, [loss, *pytensor.grad(loss, inputs)], mode=PLAIN)(*values)
    for a, b in zip(narrow, wide, strict=True):
        assert np.abs(a - b).max() <= 1e-4 * np.abs(b).max()


def test_the_gradient_by_a_matrix_is_that_of_argmin(monkeypatch):
    """Also where each adjoint system, or each machine, is left to the general code."""
    X, y, _ = batch()
    t, r, s = np.where(y == 0, 1.0, -1.0), RNG.normal(size=len(X)), RNG.normal()
    K, C, lam = pt.dmatrix("K"), pt.dscalar("C"), pt.dvector("lam")
    W = 0.5 * (lam * t) @ K @ (lam * t) - lam.sum()
    solution, b = symsvm.argmin(Objective(W, lam, upper=C, equality=(t, 0.0), is_convex=True))
    loss = (solution * t * r).sum() + s * b
    expected = function([K, C], [loss, *pytensor.grad(loss, [K, C])], mode=PLAIN)(gram(X), 2.0)
    q, b = heads.solve_machines(K, t[None], C, is_psd=True)
    loss = (q[0] * r).sum() + s * b[0]
    run = function([K, C], [loss, *pytensor.grad(loss, [K, C])], mode=PLAIN)

    def compare():
        for ours, theirs in zip(run(gram(X), 2.0), expected, strict=True):
            theirs = (theirs + theirs.T) / 2 if np.ndim(theirs) == 2 else theirs
            np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)

    compare()
    calls = []

    def unsolved(name, last):
        original = getattr(machines, name)

        def call(*args):
            calls.append(name)
            return (*original(*args)[:-1], last)

        monkeypatch.setattr(machines, name, call)

    unsolved("adjoint_batch", np.zeros(1, dtype=bool))
    unsolved("solve_batch", np.full(1, np.inf))
    compare()
    assert calls == ["solve_batch", "adjoint_batch"]


@pytest.mark.parametrize("case", ["a point six times", "all at C"])
def test_singular_systems_and_empty_free_sets(case):
    """Copies make K singular; without free variables b is the middle of an interval, half its gradient at each end."""
    copies = case == "a point six times"
    rows, C_value = np.r_[np.arange(36), np.full(5 * copies, 4)], 2.0 if copies else 0.02
    X, t = batch()[0][rows], np.where(rows % 2 == 0, 1.0, -1.0)
    sigma, C = pt.dscalar("sigma"), pt.dscalar("C")
    q, b = heads.solve_machines(RBF(sigma)(X), t[None], C, is_psd=True)
    f = pt.dot(RBF(sigma)(X[:9] + 0.1, X), q[0]) + b[0]
    loss = (f * np.arange(9.0)).sum()
    run = function([sigma, C], [q, loss, *pytensor.grad(loss, [sigma, C])], mode=PLAIN)
    q, _, *gradients = run(1.5, C_value)
    free = (q != 0) & (np.abs(q) != C_value)
    assert free.any() == copies
    for k, g in enumerate(gradients):
        expected = differences(
            lambda v, k=k: run(*np.where(np.arange(2) == k, v, (1.5, C_value)))[1], np.array((1.5, C_value)[k])
        )
        assert float(g) == pytest.approx(float(expected), rel=1e-6)


def test_random_machines_equal_those_of_the_general_solver():
    """Copies, labels of one class alone, linear kernels with fewer features than points, C from 1e-3 to 1e3."""
    compared = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        m, k = rng.integers(2, 60), rng.integers(1, 4)
        X = rng.normal(size=(m, rng.integers(1, 8)))[rng.integers(0, m, m) if seed % 4 == 0 else np.arange(m)]
        K = X @ X.T + 0.5 if seed % 3 == 0 else gram(X)
        T = rng.choice([-1.0, 1.0, 0.0], (k, m), p=[0.45, 0.45, 0.1])
        C = 10 ** rng.uniform(-3, 3) * rng.uniform(0.5, 2, (k, m))
        op = machines.Machines(squared=bool(seed % 2), is_psd=True, tol=1e-8)
        q, b = op.solve(K, T, C)
        lower, upper, _ = op.bounds(T, C)
        assert ((q >= lower) & (q <= upper)).all()
        for c in np.flatnonzero((upper > lower).any(axis=1)):
            rows, problem = op.problem(K, T[c], C[c])
            solution = machines.solve_problem(problem, kind="z", tol=1e-8)
            expected = K[:, rows] @ solution.point + solution.b
            np.testing.assert_allclose(K @ q[c] + b[c], expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())
            compared += 1
    assert compared > 60


@pytest.mark.parametrize("squared", [False, True])
def test_the_fast_adjoint_equals_the_general_one(squared):
    X, y, _ = batch()
    op = machines.Machines(squared=squared, is_psd=True, tol=1e-8)
    K, T, C = gram(X), np.where(y == np.arange(3)[:, None], 1.0, -1.0), np.full((3, 36), 0.7)
    T[0, ::4] = 0
    q, _ = op.solve(K, T, C)
    gq, gb, adjoint = RNG.normal(size=q.shape), RNG.normal(size=3), machines.AdjointMachines(op)
    u, by_C = adjoint.solve(K, T, C, q, gq, gb)
    for c in range(3):
        for ours, theirs in zip((u, by_C), adjoint.solve_one(K, T[c], C[c], q[c], gq[c], gb[c : c + 1]), strict=True):
            np.testing.assert_allclose(ours[c], theirs, rtol=1e-8, atol=1e-10)


def test_a_class_that_is_missing_has_the_score_of_its_absence():
    X, y, Z = batch()
    X = pt.as_tensor(X)
    f = heads.kernel_machines(X, 2 * (y % 2), Z, RBF(1.5), n_classes=4)
    f, by_X = function([], [f, pytensor.grad(f[:, 1].sum(), X)], mode=PLAIN)()
    assert (f[:, [1, 3]] == -1).all()
    assert not by_X.any()
    np.testing.assert_allclose(f[:, 0], -f[:, 2], rtol=1e-9)


def test_wrong_batches_are_refused():
    X, y, Z = batch()
    with pytest.raises(TypeError, match="kernel must be a symsvm Kernel"):
        heads.kernel_machines(X, y, Z, "rbf", n_classes=3)
    with pytest.raises(TypeError, match="integers from 0 to n_classes - 1"):
        heads.kernel_machines(X, y / 2, Z, RBF(1.0), n_classes=3)
    with pytest.raises(ValueError, match="got 2 and 1 dimension"):
        heads.kernel_machines(X, y, Z[0], RBF(1.0), n_classes=3)
    with pytest.raises(ValueError, match="C must be a number or one for each point"):
        heads.kernel_machines(X, y, Z, RBF(1.0), n_classes=3, C=np.ones((2, 2)))
    with pytest.raises(ValueError, match="K must be"):
        heads.solve_machines(X[0], y, 1.0)
    K, T, C = pt.dmatrix("K"), pt.dmatrix("T"), pt.dscalar("C")
    run = function([K, T, C], heads.solve_machines(K, T, C)[1], mode=PLAIN)
    good = {"K": gram(X), "T": np.sign(y - 0.5)[None], "C": 1.0}
    for change, message in (
        ({"K": gram(X) * np.nan}, "K must be finite"),
        ({"K": gram(X)[:4]}, "got the shapes"),
        ({"K": np.triu(gram(X))}, "K must be symmetric"),
        ({"T": good["T"] * 2}, "must be -1 or 1"),
        ({"C": 0.0}, "C must be finite and above 0, got 0.0"),
        ({"C": -1.0}, "got -1.0"),
    ):
        with pytest.raises(ValueError, match=message):
            run(*(good | change).values())
    f = heads.kernel_machines(X, y + 1, Z, RBF(1.5), n_classes=3)
    with pytest.raises(ValueError, match="a class outside 0 to n_classes - 1"):
        function([], f, mode=PLAIN)()


def test_a_loss_of_coefficients_that_are_not_unique_warns():
    """Two copies of a point may share their coefficient in any way: what depends on one of them has no derivative."""
    rows = np.r_[np.arange(36), 4]
    K, T, C = gram(batch()[0][rows]), np.where(rows % 2 == 0, 1.0, -1.0)[None], np.full((1, 37), 1e3)
    op = machines.Machines(squared=False, is_psd=True, tol=1e-8)
    q, _ = op.solve(K, T, C)
    q[0, [4, 36]] = q[0, [4, 36]].sum() / 2
    assert 0 < q[0, 4] < 1e3
    adjoint, zero = machines.AdjointMachines(op), np.zeros(1)
    u, _ = adjoint.solve(K, T, C, q, K[:1], zero)  # of f at a point: determined
    assert np.isfinite(u).all()
    with pytest.warns(GradientWarning, match="does not determine the derivative"):
        adjoint.solve(K, T, C, q, np.eye(1, 37, 4), zero)


def test_there_are_no_second_derivatives():
    K = pt.dmatrix("K")
    q, _ = heads.solve_machines(K, np.array([[1, -1]]))
    slope = pytensor.grad((q**2).sum(), K)
    with pytest.raises(NotImplementedError, match="no second derivatives"):
        pytensor.grad((slope**2).sum(), K)
