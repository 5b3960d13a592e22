"""Products with kernel matrices: values, gradients, shapes, sparse points, and the same bits for any tiles."""

from types import SimpleNamespace

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.sparse
from campaigns import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from problems import KERNELS, PAIRS, WEIGHTS
from pytensor import sparse
from pytensor.compile.mode import get_mode
from pytensor.gradient import verify_grad
from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan
from pytensor.tensor.math import Dot

from symsvm import RBF, Laplacian, Linear, Polynomial, Sigmoid, pair_kernel
from symsvm._lib import threads
from symsvm.compiler.functions import function, resolve_mode
from symsvm.compiler.lifting import lift, tile
from symsvm.compiler.matvec import kernel_matvec
from symsvm.compiler.ops import KernelMatvec, factor, tile_loops
from symsvm.evaluation import evaluator as oracles
from symsvm.evaluation.cross_matrix import TiledCrossMatrix
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.graphs.dtypes import widen

PLAIN = get_mode("FAST_COMPILE").excluding("symsvm")
FORMS = {name: kernel for name, (kernel, _) in KERNELS.items()} | PAIRS
X, Z, q, Q = pt.dmatrix("X"), pt.dmatrix("Z"), pt.dvector("q"), pt.dmatrix("Q")
RNG = np.random.default_rng(0)
POINTS, OTHERS = RNG.uniform(0.1, 1, (6, 3)), RNG.uniform(0.1, 1, (5, 3))
VECTOR, SIDES = RNG.normal(size=5), RNG.normal(size=(5, 2))
farthest = pair_kernel(lambda x, z: pt.exp(-abs(x - z).max()))


def plain(kernel, X, Z):
    """Return the kernel matrix without the passes of symsvm."""
    return pytensor.function([], kernel(pt.constant(X), pt.constant(Z)), mode=PLAIN)()


def has(graph, *ops):
    return any(v.owner is not None and isinstance(v.owner.op, ops) for v in ancestors([graph]))


def rbf(X, Z):
    """KERNELS["rbf"] in NumPy."""
    return np.exp(-((X[:, None] - Z[None]) ** 2).sum(-1) / (2 * 0.8**2))


def laplacian(X, Z):
    """KERNELS["laplacian"] in NumPy."""
    return np.exp(-0.4 * abs(X[:, None] - Z[None]).sum(-1))


def composed(X, Z):
    """KERNELS["composed"] in NumPy."""
    return 0.5 * rbf(X, Z) + (X @ Z.T) ** 2 * laplacian(X, Z)


SHAPES = [
    (1, 1, 1, 1),
    (1, 4, 3, 2),
    (2, 1, 3, 1),
    (3, 2, 1, 3),
    (513, 5, 2, 1),
    (5, 1025, 2, 1),
    (1025, 513, 1, 2),
    (9, 7, 128, 1),
    (9, 7, 129, 1),
    (130, 600, 300, 1),
    (0, 4, 2, 1),
    (4, 0, 2, 1),
    (4, 3, 0, 1),
    (4, 3, 2, 0),
]


# Shapes that do not fit, or only by broadcasting.
MISFITS = [
    (POINTS, OTHERS, SIDES[:4]),
    (POINTS, OTHERS, np.ones((6, 2))),
    (POINTS, OTHERS, SIDES[:1]),
    (POINTS[:, :2], OTHERS, SIDES),
    (POINTS[:, :1], OTHERS, SIDES),
]


@pytest.mark.parametrize(
    ("mode", "exact"), [("FAST_COMPILE", composed), ("JAX", composed), ("NUMBA", rbf), ("NUMBA", laplacian)]
)
def test_shapes(mode, exact):
    """Any lengths, one row repeated, arrays that are not contiguous; shapes that do not fit raise."""
    graph = kernel_matvec(KERNELS[exact.__name__][0], X, Z, Q)
    product = function([X, Z, Q], graph, mode=mode)
    for m, n, d, p in SHAPES:
        rng = np.random.default_rng(m + n + d)
        A, B, right = rng.normal(size=(m, d)) / (1 + d), rng.normal(size=(n, d)) / (1 + d), rng.normal(size=(n, p))
        value = np.asarray(product(A, B, right))
        assert value.shape == (m, p)
        np.testing.assert_allclose(value, exact(A, B) @ right, rtol=1e-11, atol=1e-12, err_msg=f"{m, n, d, p}")
    rows = np.repeat(POINTS[:1], 9, axis=0)
    value = np.asarray(product(rows, rows, np.ones((9, 1))))
    assert (value == value[0]).all()
    np.testing.assert_allclose(value, exact(rows, rows).sum(1)[:, None])
    A, B, right = RNG.normal(size=(3, 12)).T[::2], np.asfortranarray(OTHERS), SIDES[::-1]
    np.testing.assert_allclose(product(A, B, right), exact(A, B) @ right, rtol=1e-12)
    for wrong in MISFITS:
        with pytest.raises((ValueError, TypeError), match="fit|[Ss]hape|[Dd]imension|size|broadcast"):
            np.asarray(product(*wrong))


@pytest.mark.parametrize("name", [*FORMS, "farthest"])
@pytest.mark.parametrize("m", [1, 6])
def test_known_lengths_of_one_are_not_broadcast(name, m):
    kernel = FORMS.get(name, farthest)
    for n in (1, 5):
        value = kernel_matvec(kernel, POINTS[:m], OTHERS[:n], VECTOR[:n]).eval(mode="FAST_COMPILE")
        np.testing.assert_allclose(value, plain(kernel, POINTS[:m], OTHERS[:n]) @ VECTOR[:n], rtol=1e-12)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "linear"])
def test_one_feature(name):
    value = kernel_matvec(FORMS[name], POINTS[:, :1], OTHERS[:, :1], SIDES).eval(mode="FAST_COMPILE")
    np.testing.assert_allclose(value, plain(FORMS[name], POINTS[:, :1], OTHERS[:, :1]) @ SIDES, rtol=1e-12)


# Gradients


def weighted(w):
    return pair_kernel(PAIRS["weighted laplacian"].fn, w=w)


FAMILIES = {  # kernels as functions of their hyper-parameters, and values for these
    "rbf": (RBF, [0.8]),
    "laplacian": (Laplacian, [0.4]),
    "composed": (lambda s, c, g: c * RBF(s) + Linear() ** 2 * Laplacian(g), [0.8, 0.5, 0.4]),
    "shared product": (lambda s, g, c: RBF(s) + Polynomial(2, g, 1.0) * Sigmoid(0.3, c), [0.8, 0.5, -0.1]),
    "rational quadratic": (lambda a: pair_kernel(PAIRS["rational quadratic"].fn, a=a), [1.3]),
    "farthest": (lambda s: s * farthest, [1.2]),
}


@pytest.mark.parametrize(("name", "p"), [*((name, 2) for name in FAMILIES), ("rbf", None), ("laplacian", None)])
def test_gradients_by_all_inputs(name, p):
    family, hyper = FAMILIES[name]
    right = VECTOR if p is None else SIDES
    with pytensor.config.change_flags(mode="FAST_COMPILE"):  # for all that verify_grad compiles
        verify_grad(
            lambda X, Z, q, *hyper: kernel_matvec(family(*hyper), X, Z, q),
            [POINTS, OTHERS, right, *map(np.float64, hyper)],
            rng=np.random.default_rng(0),
        )


def test_gradients_by_an_array_of_weights():
    w = pt.dvector("w")

    def total(K):
        return (pt.dot(K, q) ** 2).sum() if K.ndim == 2 else (K**2).sum()

    def pairs(x, z):
        return pt.exp(-(w * abs(x - z)).sum())

    ours = kernel_matvec(pair_kernel(pairs), X, Z, q)
    theirs = pair_kernel(pairs)(X, Z)
    assert has(ours, KernelMatvec)
    graphs = pytensor.grad(total(ours), [w, X, Z, q]) + pytensor.grad(total(theirs), [w, X, Z, q])
    values = pytensor.function([X, Z, q, w], graphs, mode=PLAIN)(POINTS, OTHERS, VECTOR, WEIGHTS)
    for mine, reference in zip(values[:4], values[4:], strict=True):
        np.testing.assert_allclose(mine, reference, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(
    ("mode", "kernel", "wrt"),
    [
        ("JAX", lambda gamma: RBF(0.8) * Laplacian(gamma), 3),
        ("NUMBA", Laplacian, 1),
    ],  # Numba takes long to compile each Op
)
def test_compiled_gradients(mode, kernel, wrt):
    gamma = pt.dscalar("gamma")
    graphs = pytensor.grad((kernel_matvec(kernel(gamma), X, Z, q) ** 2).sum(), [X, q, gamma][:wrt])
    values = POINTS, OTHERS, VECTOR, 0.4
    ours = function([X, Z, q, gamma], graphs, mode=mode)(*values)
    theirs = pytensor.function([X, Z, q, gamma], graphs, mode="FAST_COMPILE")(*values)
    for mine, reference in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, reference, rtol=1e-11, atol=1e-13)


def test_second_derivatives_of_the_rbf_kernel():
    direction = pt.dmatrix("direction")

    def product_with_hessian(graph):
        (first,) = pytensor.grad((graph**2).sum(), [X])
        return pytensor.grad((first * direction).sum(), X)

    graphs = [
        product_with_hessian(kernel_matvec(RBF(0.8), X, Z, q)),
        product_with_hessian(pt.dot(RBF(0.8)(X, Z), q)),
    ]
    ours, theirs = pytensor.function([X, Z, q, direction], graphs, mode=PLAIN)(
        POINTS, OTHERS, VECTOR, RNG.normal(size=POINTS.shape)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)
    with pytest.raises(NotImplementedError, match="second derivatives by the points"):
        product_with_hessian(kernel_matvec(Laplacian(0.4), X, Z, q))


def test_a_kernel_without_a_form_stays_a_loop_over_rows():
    graph = kernel_matvec(farthest, X, Z, q)
    (lifted,) = lift([graph])
    assert has(lifted, Scan)
    value = function([X, Z, q], graph, mode="FAST_COMPILE")(POINTS, OTHERS, VECTOR)
    np.testing.assert_allclose(value, plain(farthest, POINTS, OTHERS) @ VECTOR)


# Sparse points

SPARSE = RNG.normal(size=(6, 7)) * (RNG.random((6, 7)) < 0.4)
SPARSE[2] = 0  # a row without any entry
OTHER = RNG.normal(size=(5, 7)) * (RNG.random((5, 7)) < 0.4)
SPARSE_KERNELS = {
    **{name: FORMS[name] for name in ("linear", "rbf", "laplacian", "shared product", "intersection")},
    "cosine": pair_kernel(lambda x, z: (x * z).sum() / pt.sqrt(1 + (x**2).sum() * (z**2).sum())),
    "weights": pair_kernel(lambda x, z, w: pt.exp(-(w * abs(x - z)).sum()), w=np.arange(7.0)),
}


def storages():
    """Return variables for A and B with their values: sparse on the left, on the right, on both sides."""
    S, T, A, B = sparse.csr_matrix("S"), sparse.csr_matrix("T"), pt.dmatrix("A"), pt.dmatrix("B")
    left, right = scipy.sparse.csr_matrix(SPARSE), scipy.sparse.csr_matrix(OTHER)
    return [((S, left), (B, OTHER)), ((A, SPARSE), (T, right)), ((S, left), (T, right))]


@pytest.mark.parametrize("name", SPARSE_KERNELS)
def test_sparse_points(name):
    kernel = SPARSE_KERNELS[name]
    right = plain(kernel, SPARSE, OTHER) @ SIDES
    for (left, A), (other, B) in storages():
        value = pytensor.function([left, other, Q], kernel_matvec(kernel, left, other, Q), mode="FAST_COMPILE")
        np.testing.assert_allclose(value(A, B, SIDES), right, rtol=1e-11, atol=1e-12)


# Each compiles for ten seconds; both sides are sparse in test_pairs as well.
@pytest.mark.parametrize(
    ("name", "which"), [("laplacian", 0), ("rbf", 1), pytest.param("rbf", 2, marks=pytest.mark.slow)]
)
def test_sparse_points_in_compiled_loops(name, which):
    kernel = SPARSE_KERNELS[name]
    (left, A), (other, B) = storages()[which]
    product = function([left, other, Q], kernel_matvec(kernel, left, other, Q), mode="NUMBA")
    np.testing.assert_allclose(product(A, B, SIDES), plain(kernel, SPARSE, OTHER) @ SIDES, rtol=1e-11, atol=1e-12)
    with pytest.raises((AssertionError, ValueError), match="features|fit"):
        product(A, B[:, :5], SIDES)
    with pytest.raises(ValueError, match="fit"):
        product(A, B, SIDES[:4])


def test_sparse_values_of_every_kind():
    """Arrays and matrices, integers, float32, unsorted indices, duplicate entries."""
    S = scipy.sparse.csr_matrix(SPARSE)
    shuffled = scipy.sparse.csr_matrix(
        (S.data[::-1].copy(), S.indices[::-1].copy(), (S.nnz - S.indptr[::-1]).copy()), shape=S.shape
    )
    twice = scipy.sparse.csr_matrix(
        (np.array([1.0, 2.0, 3.0]), np.array([4, 4, 0]), np.array([0, 2, 2, 3])), shape=(3, 7)
    )
    assert not shuffled.has_sorted_indices
    for points in (shuffled, twice, scipy.sparse.csr_array(SPARSE), scipy.sparse.coo_matrix(SPARSE), S.astype("int64")):
        dense = points.toarray().astype("float64")
        value = kernel_matvec(RBF(0.8), points, OTHER, VECTOR).eval(mode="FAST_COMPILE")
        np.testing.assert_allclose(value, plain(RBF(0.8), dense, OTHER) @ VECTOR, rtol=1e-12, atol=1e-13)
    assert twice.nnz == 3  # the given matrix is not changed
    narrow = kernel_matvec(RBF(0.8), S.astype("float32"), OTHER, VECTOR)
    assert narrow.dtype == "float32"
    np.testing.assert_allclose(narrow.eval(mode="FAST_COMPILE"), plain(RBF(0.8), SPARSE, OTHER) @ VECTOR, rtol=1e-5)


def test_unsupported_sparse_points_raise():
    S, T = sparse.csr_matrix("S"), sparse.csr_matrix("T")
    with pytest.raises(TypeError, match="must be in CSR format, one point per row, got csc"):
        kernel_matvec(RBF(), sparse.csc_matrix("C"), T, q)
    with pytest.raises(TypeError, match="cannot take sparse points: Max.* is no sum over features"):
        kernel_matvec(farthest, S, T, q)
    with pytest.raises(TypeError, match="cannot take sparse points: it transforms them"):
        kernel_matvec(pair_kernel(lambda x, z: (pt.exp(x) * z).sum()), S, T, q)
    with pytest.raises(TypeError, match="cannot take sparse points: it uses more of each point"):
        kernel_matvec(pair_kernel(lambda x, z: (x * z).sum() * pt.exp(x).sum()), S, T, q)
    with pytest.raises(NotImplementedError, match="has no gradient: pass the points as dense arrays"):
        pytensor.grad(kernel_matvec(RBF(), S, T, q).sum(), q)
    for points in (S, scipy.sparse.csr_matrix(SPARSE)):
        graph = kernel_matvec(RBF(), points, T, q)
        with pytest.raises(NotImplementedError, match="sparse points do not run on JAX"):
            pytensor.function([S, T, q], graph, mode=resolve_mode("JAX"), on_unused_input="ignore")


def test_bad_input_raises():
    with pytest.raises(ValueError, match="q must be a vector or a matrix of right-hand sides, got 3 dimensions"):
        kernel_matvec(RBF(), X, Z, pt.dtensor3())
    with pytest.raises(TypeError, match="kernel must be a symsvm kernel, such as RBF"):
        kernel_matvec("rbf", X, Z, q)
    with pytest.raises(ValueError, match=r"points must form a matrix \(m, d\), got 1 dimension"):
        kernel_matvec(RBF(), q, Z, q)
    with pytest.raises(ValueError, match="X and Z must be points with the same features, got 1 and 3"):
        kernel_matvec(RBF(), POINTS[:, :1], OTHERS, q)
    with pytest.raises(ValueError, match="must return a scalar for a pair of points, got 1 dimension"):
        kernel_matvec(pair_kernel(lambda x, z: x - z), X, Z, q)


# Random graphs


@st.composite
def epilogues(draw, depth=3):
    """Draw a random elementwise function of a.b, |a|^2 and |b|^2, bounded so that no digits are lost."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(["s", "u", "v", "0.3", "2.0", "t"]))
    if draw(st.booleans()):
        name = draw(st.sampled_from(["pt.tanh", "pt.exp(-abs", "pt.sqrt(0.1 + abs", "pt.sqr(pt.tanh", "-(", "pt.sin"]))
        return f"{name}({draw(epilogues(depth=depth - 1))}){')' * name.count('(')}"
    infix = draw(st.sampled_from(["{} + {}", "{} * {}", "{} - {}", "{} / (2 + pt.sqr({}))", "pt.maximum({}, {})"]))
    return f"({infix.format(draw(epilogues(depth=depth - 1)), draw(epilogues(depth=depth - 1)))})"


def matrix_of(text, weight):
    """Return the graph of the matrix with this epilogue, in float64."""
    scope = {"pt": pt, "s": pt.dot(X * weight, Z.T), "u": (X**2).sum(1)[:, None], "v": (Z**2).sum(1)[None, :]}
    return widen([eval(f"{text} * s", scope | {"t": pt.constant(0.7)})])[0]


def value_of(text, weight):
    """Return the same matrix in NumPy, of POINTS and OTHERS."""
    names = SimpleNamespace(tanh=np.tanh, exp=np.exp, sqrt=np.sqrt, sqr=np.square, sin=np.sin, maximum=np.maximum)
    s, u, v = (POINTS * weight) @ OTHERS.T, (POINTS**2).sum(1)[:, None], (OTHERS**2).sum(1)[None, :]
    return eval(f"{text} * s", {"pt": names, "s": s, "u": u, "v": v, "t": 0.7})


@settings(max_examples=examples(15))
@given(text=epilogues(), weight=st.floats(0.1, 2))
@example(text="(2.0 / (2 + pt.sqr(2.0)))", weight=1.0)  # a float32 to PyTensor
def test_random_epilogues(text, weight):
    K = matrix_of(text, weight)
    ours = KernelMatvec.of(factor(K), Q)
    values = pytensor.function([X, Z, Q], [ours, pt.dot(K, Q)], mode=PLAIN)(POINTS, OTHERS, SIDES)
    for value in values:
        np.testing.assert_allclose(value, value_of(text, weight) @ SIDES, rtol=1e-11, atol=1e-11)


PRODUCTS = {
    "K q": lambda K, p, q: pt.dot(K, q),
    "p'K": lambda K, p, q: pt.dot(p, K),
    "K'p": lambda K, p, q: pt.dot(K.T, p),
    "K Q": lambda K, p, q: pt.dot(K, q[:, None] * np.array([1.0, 2.0])),
    "(q K')'": lambda K, p, q: pt.dot(q, K.T),
    "p'K q": lambda K, p, q: pt.dot(p, pt.dot(K, q)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_every_product_is_tiled(name):
    (tiled,) = tile([PRODUCTS[name](matrix_of("pt.exp(u)", 0.5), pt.dvector("p"), q)])
    assert has(tiled, KernelMatvec)
    products = [v for v in ancestors([tiled]) if v.owner is not None and isinstance(v.owner.op, Dot)]
    assert all(v.type.shape == (1, 1) for v in products)  # p'(K q) keeps one, of vectors


@settings(max_examples=examples(12))
@given(text=epilogues(), names=st.lists(st.sampled_from(list(PRODUCTS)), min_size=1, max_size=3), extra=st.booleans())
def test_tile_keeps_the_value(text, names, extra):
    p, K = pt.dvector("p"), matrix_of(text, 1.0)
    graphs = [PRODUCTS[name](K, p, q) for name in names]
    graphs = [pt.tanh(graph) + graph.sum() if extra else graph for graph in graphs]
    tiled = tile(graphs)
    values = POINTS, OTHERS, RNG.normal(size=6), VECTOR
    values = pytensor.function([X, Z, p, q], graphs + tiled, mode=PLAIN, on_unused_input="ignore")(*values)
    for before, after in zip(values[: len(graphs)], values[len(graphs) :], strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-11, atol=1e-11)


# Cross matrices


CHOICES = {
    "all": (None, None),
    "some": ([3, 1, 2], [599, 0, 512, 511]),
    "repeated": ([5, 5, 5, 5, 5, 9], [7, 7]),
    "no rows": ([], [1, 2]),
    "no columns": ([1, 2], []),
}


def chosen(K, rows, columns):
    K = K if rows is None else K[np.asarray(rows, dtype=int)]
    return K if columns is None else K[:, np.asarray(columns, dtype=int)]


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_pairs(storage, monkeypatch):
    """The compiled loops: selected rows and columns, reproducible bits, indices out of range."""
    monkeypatch.setattr(oracles, "SMALL_MATRIX", 0)
    rng = np.random.default_rng(1)
    A, B = (rng.normal(size=(n, 7)) * (rng.random((n, 7)) < 0.5) for n in (70, 600))
    sides = (A, B) if storage == "dense" else map(scipy.sparse.csr_matrix, (A, B))
    pairs = KernelEvaluator(RBF(0.8)).between(*sides)
    assert isinstance(pairs, TiledCrossMatrix)
    K = plain(RBF(0.8), A, B)
    for rows, columns in CHOICES.values():
        check_chosen(pairs, K, rows, columns)
    check_bits(pairs, monkeypatch)
    for rows, columns in [([70], None), ([-1], None), (None, [600])]:
        with pytest.raises(IndexError, match="indices must be from 0 to"):
            pairs.block(rows, columns)
    with pytest.raises(ValueError, match=r"shape \(2,\), got \(4,\)"):
        pairs.matvec(np.ones(4), columns=[0, 1])
    with pytest.raises(ValueError, match="expected room for"):
        pairs.block([0], [1], out=np.empty((2, 2)))


def check_chosen(pairs, K, rows, columns):
    """Check a block and products, with and without an output array."""
    right = chosen(K, rows, columns)
    np.testing.assert_allclose(pairs.block(rows, columns), right, rtol=1e-12)
    out = np.full(right.shape, np.nan)
    assert pairs.block(rows, columns, out=out) is out
    np.testing.assert_array_equal(out, pairs.block(rows, columns))
    for q in (RNG.normal(size=right.shape[1]), RNG.normal(size=(right.shape[1], 3))):
        value = pairs.matvec(q, rows, columns)
        np.testing.assert_allclose(value, right @ q, rtol=1e-10, atol=1e-11)
        out = np.ones(value.shape)
        pairs.matvec(q, rows, columns, out=out)
        np.testing.assert_allclose(out, 1 + value, rtol=1e-12, atol=1e-12)


def check_bits(pairs, monkeypatch):
    """A row has the same bits in every call, whatever the other rows and the number of threads."""
    q = RNG.normal(size=(600, 2))
    block, product = pairs.block(), pairs.matvec(q)
    monkeypatch.setattr(tile_loops, "_SHORT", 0)
    for cores, rows in [(1, np.arange(70)), (2, [4]), (1, [69, 4, 4, 68, 0]), (3, np.arange(69, -1, -1))]:
        monkeypatch.setattr(threads._LOCAL, "cores", cores, raising=False)
        for _ in range(2):
            np.testing.assert_array_equal(pairs.block(rows), block[rows])
            np.testing.assert_array_equal(pairs.matvec(q, rows), product[rows])


@pytest.mark.parametrize("kernel", [RBF(0.8), farthest, SPARSE_KERNELS["weights"]], ids=["rbf", "farthest", "weights"])
def test_cross_matrices_without_compiled_loops(kernel):
    made = KernelEvaluator(kernel, mode="FAST_COMPILE").between(scipy.sparse.csr_matrix(SPARSE), OTHER)
    K = plain(kernel, SPARSE, OTHER)
    for rows, columns in [(None, None), ([2, 2, 0], [4, 1]), ([], [1]), ([1], [])]:
        right = chosen(K, rows, columns)
        np.testing.assert_allclose(made.block(rows, columns), right, rtol=1e-12)
        q = RNG.normal(size=(right.shape[1], 2))
        np.testing.assert_allclose(made.matvec(q, rows, columns), right @ q, rtol=1e-11, atol=1e-12)


def test_pairs_in_another_type_have_the_form_that_they_were_bound_with():
    """CSR points that a kernel scales are stored densely."""
    points = scipy.sparse.random(1200, 6, density=0.5, random_state=0, format="csr")
    scale = np.linspace(0.5, 2.0, 6)
    kernel = pair_kernel(lambda x, z, scale: pt.exp(-((x / scale - z / scale) ** 2).sum()), scale=scale)
    double = KernelEvaluator(kernel).between(points, points)
    single = KernelEvaluator(kernel, dtype="float32").like(double)
    assert double.storage == (("dense", "dense"),)
    assert single.storage == (("dense", "dense"),)
    some = np.arange(20)
    Z = points[some].toarray() / scale
    expected = np.exp(-((Z[:, None] - Z) ** 2).sum(axis=-1))
    assert double.block(some, some) == pytest.approx(expected, abs=1e-14)
    assert single.block(some, some) == pytest.approx(expected, abs=1e-5)
