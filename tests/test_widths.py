"""Widths of features: RBF(sigma=s) on X is RBF(1) on X / s, in every estimator, backend, gradient and file."""

import itertools

import numpy as np
import oracles
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import symsvm
from symsvm import (
    RBF,
    SVC,
    SVR,
    Laplacian,
    Linear,
    NuSVC,
    NuSVR,
    Objective,
    OneClassSVM,
    kernel_matvec,
    mercer,
    sum_over,
)
from symsvm.compiler import functions
from symsvm.compiler.functions import function
from symsvm.compiler.ops import tile_loops
from symsvm.compiler.ops.squared_distances import FeatureMoments, feature_moments
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.files import ModelFileError
from symsvm.tuning import tune

RNG = np.random.default_rng(8)
S = np.array([0.5, 2.0, 1.1, 4.0])
X = RNG.normal(size=(60, 4)) * S
Z = RNG.normal(size=(17, 4)) * S
LABELS = np.arange(60) % 3
TARGETS = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=60)
MACHINES = {
    "SVC": lambda **options: SVC(C=5.0, tol=1e-8, **options).fit,
    "NuSVC": lambda **options: NuSVC(nu=0.3, tol=1e-8, **options).fit,
    "SVR": lambda **options: SVR(C=5.0, tol=1e-8, **options).fit,
    "NuSVR": lambda **options: NuSVR(C=5.0, tol=1e-8, **options).fit,
    "OneClassSVM": lambda **options: OneClassSVM(nu=0.3, tol=1e-8, **options).fit,
}
KINDS = {"rbf": (RBF, RBF(1.0)), "laplacian": (Laplacian.from_sigma, Laplacian(1.0))}


def values(model, points):
    return getattr(model, "decision_function", model.predict)(points)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MACHINES)
def test_estimators_equal_those_of_scaled_points(name, kind):
    """Dense and CSR; several classes one against one."""
    with_widths, plain = KINDS[kind]
    y = LABELS if name.endswith("SVC") else TARGETS
    scaled = MACHINES[name](kernel=plain)(X / S, y)
    for change in (np.asarray, sparse.csr_matrix):
        model = MACHINES[name](kernel=with_widths(S))(change(X), y)
        np.testing.assert_allclose(values(model, change(Z)), values(scaled, Z / S), atol=1e-6)
        for certificate in np.atleast_1d(model.certificate_):
            assert certificate.status == "optimal"


def test_backends_and_types():
    expected = values(MACHINES["SVC"](kernel=RBF(1.0))(X / S, LABELS), Z / S)
    for mode in ("JAX", "FAST_COMPILE"):
        model = MACHINES["SVC"](kernel=RBF(S), mode=mode)(X, LABELS)
        np.testing.assert_allclose(values(model, Z), expected, atol=1e-6)
    model = MACHINES["SVC"](kernel=RBF(S))(X.astype("float32"), LABELS)
    np.testing.assert_allclose(values(model, Z.astype("float32")), expected, atol=1e-4)


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.slow] * (kind != "rbf")) for kind in KINDS])
def test_loops_in_both_types(kind):
    """More points than NumPy computes: float64 keeps the digits of near points far away, float32 of centred ones."""
    with_widths, plain = KINDS[kind]
    points = RNG.normal(size=(1100, 4)) * S
    points[:30] += 1e7
    long = points.astype(np.longdouble) / S.astype(np.longdouble)
    differences = np.abs(long[:40, None] - long[None])
    K = np.exp(-(differences**2).sum(axis=2) / 2 if kind == "rbf" else -differences.sum(axis=2))
    for change in (np.asarray, sparse.csr_matrix):
        A = change(points)
        exact = KernelEvaluator(with_widths(S)).between(A, A)
        np.testing.assert_allclose(exact.block(np.arange(40)), K.astype("float64"), rtol=1e-10, atol=1e-13)
        fast = (
            KernelEvaluator(with_widths(S), dtype="float32").like(exact).block(np.arange(40, 80), np.arange(40, 1100))
        )
        expected = KernelEvaluator(plain).block(points[40:80] / S, points[40:] / S)
        np.testing.assert_allclose(fast, expected, atol=2e-5)


def test_rows_do_not_see_each_other():
    points = RNG.normal(size=(1500, 4)) * S
    for change, kernel in itertools.product((np.asarray, sparse.csr_matrix), (RBF(S), Laplacian.from_sigma(S))):
        model = SVC(kernel=kernel, C=100.0).fit(change(points), points[:, 0] * points[:, 1] > 0)
        whole = model.decision_function(change(Z))
        for rows in ([3], [5, 3, 1], np.arange(16, -1, -1)):
            np.testing.assert_array_equal(model.decision_function(change(Z)[rows]), whole[rows])


SLOW = [pytest.param(kind, "NUMBA", True, marks=pytest.mark.slow) for kind in KINDS]


# Numba does not cache a function with tiles for a gradient that it has just compiled, and says so.
@pytest.mark.filterwarnings("ignore:The cache of compiled code")
@pytest.mark.parametrize(
    ("kind", "mode", "tiled"),
    [*((kind, mode, True) for kind in KINDS for mode in ("FAST_COMPILE", "JAX")), ("rbf", "NUMBA", False), *SLOW],
)
def test_gradients_by_widths(kind, mode, tiled):
    """Of sums over K and over a product in tiles, beside a cluster that is far away: against central differences."""
    sigma, weights = pytensor.shared(S, name="sigma"), RNG.normal(size=(12, 9))
    points, others = X[:12].copy(), X[3:12].copy()
    points[:3] += 1e6
    others[:2] += 1e6
    kernel, (A, B) = KINDS[kind][0](sigma), pt.dmatrices("A", "B")
    q = weights.mean(axis=0)
    graphs = [(kernel(A, B) * weights).sum(), (kernel_matvec(kernel, A, B, q) * weights[:, 0]).sum()]
    graphs = graphs if tiled else graphs[:1]
    found = [function([A, B], graph, mode=mode)(points, others) for graph in graphs]
    gradients = [function([A, B], symsvm.grad(graph, sigma), mode=mode)(points, others) for graph in graphs]

    def by_loops(widths):
        pair = (lambda x, z: np.exp(-(((x - z) / widths) ** 2).sum() / 2)) if kind == "rbf" else None
        pair = pair or (lambda x, z: np.exp(-(np.abs(x - z) / widths).sum()))
        K = oracles.gram(points, others, pair)
        return np.array([(K * weights).sum(), weights[:, 0] @ (K @ q)])[: len(graphs)]

    np.testing.assert_allclose(found, by_loops(S), rtol=1e-8)
    numeric = np.array([(by_loops(S + h) - by_loops(S - h)) / 2e-5 for h in 1e-5 * np.eye(4)])
    np.testing.assert_allclose(np.transpose(gradients), numeric, rtol=1e-5, atol=1e-8)


def test_feature_moments_have_their_digits():
    A, B, G = X[:5] + 1e8, X[5:9] + 1e8, RNG.normal(size=(5, 4))
    exact = (G[:, :, None] * (A[:, None] - B[None]) ** 2).sum(axis=(0, 1))
    np.testing.assert_allclose(feature_moments(A, B, G), exact, rtol=1e-12)
    variables = pt.dmatrices("A", "B", "G")
    M, v = FeatureMoments()(*variables), np.arange(4.0)
    plain = (variables[2][:, :, None] * (variables[0][:, None] - variables[1][None]) ** 2).sum(axis=(0, 1))
    for ours, theirs in zip(*(pytensor.grad((m * v).sum(), variables) for m in (M, plain)), strict=True):
        f = function(variables, [ours, theirs], mode="FAST_COMPILE")
        np.testing.assert_allclose(*f(X[:5], X[5:9], G), rtol=1e-10)


def written(kernel, points, y):
    """The dual of `SVC`, as a user writes it."""
    lam, y = pytensor.shared(np.zeros(len(y)), name="lam"), pytensor.shared(y, name="y")
    points = pytensor.shared(points, name="X")
    double_sum = sum_over(
        lambda a, b, x: a * b * sum_over(lambda c, d, z: c * d * kernel.pair(x, z), lam, y, points), lam, y, points
    )
    return Objective(0.5 * double_sum - lam.sum(), variable=lam, lower=0, upper=5.0, equality=(y, 0))


@pytest.mark.parametrize("kernel", [RBF(S), Laplacian.from_sigma(S), 0.5 * RBF(S) + Linear() * Laplacian.from_sigma(S)])
def test_written_objectives_are_read_and_proved(kernel):
    y = np.where(LABELS == 0, 1.0, -1.0)
    program = symsvm.compile(written(kernel, X, y), "auto")
    assert program.reading.pairs is not None
    assert program.problem().is_proven
    solution = program.run(tol=1e-8)
    assert solution.certificate.status == "optimal"
    model = SVC(kernel=kernel, C=5.0, tol=1e-8).fit(X, y)
    assert solution.certificate.W == pytest.approx(model.certificate_.W, rel=1e-9)
    np.testing.assert_allclose(
        solution.decision_function(Z), model.decision_function(Z), atol=1e-6 * np.abs(model.dual_coef_).sum()
    )


@pytest.mark.parametrize("mode", [pytest.param("NUMBA", marks=pytest.mark.slow), "JAX", "FAST_COMPILE"])
def test_gradient_solvers(mode):
    y = np.where(LABELS == 0, 1.0, -1.0)
    expected = SVC(kernel=RBF(S), C=5.0, tol=1e-8).fit(X, y).certificate_.W
    solution = symsvm.solve(written(RBF(S), X, y), "accelerated-gradient", mode=mode, tol=1e-6, max_iter=20000)
    assert solution.certificate.W == pytest.approx(expected, rel=1e-6)


def test_other_widths_compile_nothing():
    """Neither other numbers nor another number of features, in estimators, objectives, and on both storages."""

    def work(widths):
        d = len(widths)
        points = np.tile(X, 20)[:, :d] + RNG.normal(size=(60, d))
        many = np.tile(points, (20, 1)) + RNG.normal(size=(1200, d))
        for change in (np.asarray, sparse.csr_matrix):
            SVC(kernel=RBF(widths)).fit(change(many), np.tile(LABELS, 20)).predict(change(points))
        objective = written(RBF(widths), points, np.where(LABELS == 0, 1.0, -1.0))
        program = symsvm.compile(objective, "projected-gradient", mode="FAST_COMPILE")
        with pytest.warns(ConvergenceWarning):
            program.run(max_iter=3)

    def compiled():
        return len(functions._COMPILED), tile_loops._compile.cache_info().misses

    work(S)
    before = compiled()
    work(3 * S)
    work(np.linspace(1, 2, 7).tolist())
    assert compiled() == before


def test_names_copies_repr_and_comparison():
    kernel = RBF(S) * RBF(2.0) + 0.5 * Laplacian(gamma=[1.0, 2.0, 3.0, 4.0])
    assert kernel.get_params()["k1__k1__sigma"] is S
    kernel.set_params(k1__k1__sigma=[1, 2, 3, 4])
    assert repr(kernel) == "RBF(sigma=[1, 2, 3, 4]) * RBF(sigma=2.0) + 0.5 * Laplacian(gamma=[1.0, 2.0, 3.0, 4.0])"
    assert eval(repr(kernel)) == kernel == clone(kernel)
    assert RBF(S) == RBF(S.tolist()) != RBF(2 * S)
    assert RBF(S) != RBF(1.0)
    assert RBF(S) != "rbf"
    assert len({RBF(1.0), RBF(1.0), RBF(S)}) == 2
    sigma = pytensor.shared(S, name="sigma")
    assert RBF(sigma) == RBF(sigma) != RBF(S)
    assert repr(RBF(np.linspace(1, 3, 400))) == "RBF(sigma=[1, 1.005, 1.01, ..., 3] (400 numbers))"
    model = SVC(kernel=RBF(S))
    assert clone(model).set_params(kernel__sigma=2 * S).kernel == RBF(2 * S)
    np.testing.assert_allclose(RBF.from_gamma([0.5, 2.0]).sigma, [1.0, 0.5])
    assert mercer(RBF(S), X).is_psd


def test_a_search_over_widths():
    cells = [RBF(1.0), RBF(S), RBF((2 * S).tolist()), RBF(S[::-1])]
    result = tune(SVC(), X, LABELS, {"kernel": cells, "C": [1.0, 10.0]}, folds=3)
    expected = tune(SVC(kernel=RBF(1.0)), X / S, LABELS, {"C": [1.0, 10.0]}, folds=3)
    plain = result.table["mean_score"][[k == RBF(S) for k in result.table["kernel"]]]
    np.testing.assert_array_equal(plain, expected.table["mean_score"])
    assert len(set(map(repr, result.table["kernel"]))) == 4
    assert set(result.table["status"]) == {"done"}


def test_contributions():
    model = SVC(kernel=RBF(S)).fit(X, LABELS == 0)
    (found,) = symsvm.contributions(model, Z[:1])
    assert found.intercept + found.contributions.sum() == pytest.approx(model.decision_function(Z[:1])[0])
    i = found.names[0]
    assert found.values[0] == pytest.approx(np.exp(-(((X[i] - Z[0]) / S) ** 2).sum() / 2))


BAD = {
    "sigma of RBF has length 3, but the points have 4 features": [1.0, 2.0, 3.0],
    "sigma of RBF has length 1, but the points have 4 features": [2.0],
    "sigma of RBF must be positive, got 0.0 at index 1": [1.0, 0.0, 1.0, 1.0],
    "sigma of RBF must be positive, got -2.0 at index 0": [-2.0, 1.0, 1.0, 1.0],
    "sigma of RBF must be finite, got nan at index 3": [1.0, 1.0, 1.0, np.nan],
    "sigma of RBF must be finite, got inf at index 2": [1.0, 1.0, np.inf, 1.0],
    "sigma of RBF must be a number or a vector of numbers, got the shape": np.ones((2, 2)),
}


@pytest.mark.parametrize("sentence", BAD)
def test_bad_widths_are_refused_in_a_sentence(sentence, tmp_path):
    kernel, y = 0.5 * RBF(BAD[sentence]) + Linear(), np.where(LABELS == 0, 1.0, -1.0)
    symbols = pytensor.shared(np.zeros(60), name="lam"), pytensor.shared(X, name="X"), pytensor.shared(y, name="y")
    for refused in (
        lambda: kernel(X, Z),
        lambda: kernel.diag(X),
        lambda: kernel_matvec(kernel, X, Z, Z[:, 0]),
        lambda: mercer(kernel, X),
        lambda: SVC(kernel=kernel).fit(X, y),
        lambda: SVR(kernel=kernel, mode="JAX").fit(sparse.csr_matrix(X), y),
        lambda: symsvm.CSVC(*symbols, 1.0, kernel),
        lambda: symsvm.SVM_parallel(X, y, 60, 1.0, None, 0.1, kernel=kernel),
    ):
        with pytest.raises(ValueError, match=sentence):
            refused()
    model = SVC(kernel=0.5 * RBF(S) + Linear()).fit(X, y)
    model.kernel_ = kernel

    def through_a_file():
        symsvm.save(model, tmp_path / "m.symsvm")
        return symsvm.load(tmp_path / "m.symsvm")

    with pytest.raises(ValueError, match=sentence):
        through_a_file()


def test_solve_names_the_widths_that_do_not_fit():
    y = np.where(LABELS == 0, 1.0, -1.0)
    with pytest.raises(ValueError, match=r"sigma of the kernel has length 3, but the points have 4 features"):
        symsvm.solve(written(RBF(S[:3]), X, y))
    for mode in ("FAST_COMPILE", "JAX"):
        with pytest.raises(ValueError, match=r"shapes of the data do not fit.*X \(60, 4\).*sigma \(3,\)"):
            symsvm.solve(written(RBF(S[:3]), X, y), "accelerated-gradient", mode=mode)


def test_files(tmp_path):
    for kernel in (RBF(S), RBF(S.tolist()), 0.5 * Laplacian(tuple(S)) + Linear()):
        model = SVC(kernel=kernel).fit(X, LABELS)
        symsvm.save(model, tmp_path / "m.symsvm")
        loaded = symsvm.load(tmp_path / "m.symsvm")
        assert loaded.kernel_ == kernel
        np.testing.assert_array_equal(loaded.decision_function(Z), model.decision_function(Z))
    model = SVC(kernel=RBF(np.full(4, 2.0))).fit(X, LABELS)
    symsvm.save(model, tmp_path / "m.libsvm")
    np.testing.assert_allclose(symsvm.load(tmp_path / "m.libsvm").decision_function(Z), model.decision_function(Z))
    with pytest.raises(ModelFileError, match=r"LIBSVM has no kernel RBF\(sigma=\[0.5, 2.0, 1.1, 4.0\]\)"):
        symsvm.save(SVC(kernel=RBF(S)).fit(X, LABELS), tmp_path / "other.libsvm")


def test_two_distances_over_the_same_sparse_points_have_widths_of_their_own():
    import scipy.sparse

    rng = np.random.default_rng(5)
    dense = rng.normal(size=(700, 9)) * (rng.random((700, 9)) < 0.4)
    X, Z = scipy.sparse.csr_matrix(dense), scipy.sparse.csr_matrix(dense[:650])
    kernel = RBF(sigma=np.linspace(0.3, 3.0, 9)) + RBF(sigma=np.linspace(4.0, 0.5, 9))
    evaluator = KernelEvaluator(kernel)
    assert evaluator.block(X, Z) == pytest.approx(evaluator.block(dense, dense[:650]), rel=1e-10)
