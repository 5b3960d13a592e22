"""Sums over features in registers, distances from products, scratch arrays, and points as loops read them."""

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from symsvm import RBF, Laplacian, Linear
from symsvm._lib.code_cache import njit
from symsvm._lib.heap import LINE, aligned_full
from symsvm.compiler.ops.feature_sums import ROWS, add_products, add_squares, add_weighted_squares, column_step
from symsvm.compiler.ops.scratch import indices, matrix, vector
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.evaluation.thin_points import centred, sparse_if_thin

RNG = np.random.default_rng(0)
COLUMNS = 192


@njit(cache=True)
def products(A, ids, panel, k0, k1, s, low, first, last):
    add_products(A, ids[0], ids[1], ids[2], ids[3], panel, k0, k1, s, low, first, last)


@njit(cache=True)
def squares(A, ids, panel, k0, k1, s, low, first, last):
    add_squares(A, ids[0], ids[1], ids[2], ids[3], panel, k0, k1, s, low, first, last)


@njit(cache=True)
def weighted(A, ids, panel, k0, k1, s, low, first, last, w):
    add_weighted_squares(A, ids[0], ids[1], ids[2], ids[3], panel, k0, k1, s, low, first, last, w)


def sums(call, A, B, dtype, first, last, parts, *w):
    """The sums of rows 5, 2, 2 and 0 of A, feature by feature of `parts`, in rows 4 to 7 of a matrix of sevens."""
    s, d = aligned_full((2 * ROWS, COLUMNS), 7, dtype), A.shape[1]
    panel = aligned_full((d, COLUMNS), 0, dtype)
    panel[:, : len(B)] = B.T
    edges = [0, *parts, d]
    for k0, k1 in itertools.pairwise(edges):
        call(A, np.array([5, 2, 2, 0]), panel[k0:k1], k0, k1, s, ROWS, first, last, *w)
    return s


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [0, 1, 7, 65])
@pytest.mark.parametrize(("first", "last"), [(0, 5), (0, 16), (0, 77), (0, COLUMNS), (64, 150)])
def test_sums_are_those_of_the_formula(dtype, d, first, last):
    A, B = RNG.normal(size=(6, d)).astype(dtype), RNG.normal(size=(COLUMNS, d)).astype(dtype)
    w = RNG.uniform(0.5, 2, size=d).astype(dtype)
    a, b = A[[5, 2, 2, 0], None].astype("float64"), B.astype("float64")
    forms = [
        (sums(products, A, B, dtype, first, last, [d // 3] if d > 2 else []), (a * b).sum(axis=2)),
        (sums(squares, A, B, dtype, first, last, []), ((a - b) ** 2).sum(axis=2)),
        (sums(weighted, A, B, dtype, first, last, [], w), (((a - b) * w) ** 2).sum(axis=2)),
    ]
    for found, expected in forms:
        np.testing.assert_array_equal(found[:ROWS], 7)
        here = slice(first, last)
        tolerance = 8 * (d + 1) * np.finfo(dtype).eps
        np.testing.assert_allclose(found[ROWS:, here], expected[:, here], rtol=tolerance, atol=4 * tolerance)
        np.testing.assert_array_equal(found[:, :first], 7)  # whole vectors after the last column may be written


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_of_a_sum_do_not_depend_on_the_columns_beside_it(dtype):
    """A column is one of many vectors in registers, or of the last vector alone; features come in any parts."""
    A, B = RNG.normal(size=(6, 40)).astype(dtype), RNG.normal(size=(COLUMNS, 40)).astype(dtype)
    whole = sums(squares, A, B, dtype, 0, COLUMNS, [])
    step = column_step(np.dtype(dtype).itemsize)
    for first in range(0, COLUMNS, step):
        part = sums(squares, A, B, dtype, first, min(COLUMNS, first + 3), [9, 20])
        np.testing.assert_array_equal(part[ROWS:, first : first + 3], whole[ROWS:, first : first + 3])


@pytest.mark.parametrize("d", [191, 192, 500])
@pytest.mark.parametrize("kernel", [RBF(20.0), Linear(), Laplacian(0.01)], ids=["rbf", "linear", "laplacian"])
def test_long_rows_have_the_values_of_the_kernel(kernel, d):
    X = RNG.normal(size=(300, d))
    exact = KernelEvaluator(kernel, mode="FAST_COMPILE").block(X, X)
    K = KernelEvaluator(kernel, dtype="float32").like(KernelEvaluator(kernel).between(X, X)).block()
    np.testing.assert_allclose(K, exact, rtol=2e-5, atol=2e-4 if kernel == Linear() else 2e-6)


def test_long_rows_that_are_close_to_each_other_and_far_from_the_others_keep_their_distances():
    X = RNG.normal(size=(300, 200))
    X[100:] += 1e4
    X[200:] = X[100:200] + 1e-3 * RNG.normal(size=(100, 200))
    kernel = RBF(0.02)
    exact = KernelEvaluator(kernel).between(X, X)
    K = KernelEvaluator(kernel, dtype="float32").like(exact).block()
    far = np.abs(K - exact.block())
    assert far[100:, 100:].max() < 0.05  # points are rounded to float32: 1e-3 of their distances
    assert 0.1 < exact.block()[150, 250] < 0.9


def test_long_rows_do_not_depend_on_the_rows_beside_them():
    X = RNG.normal(size=(300, 250))
    pairs = KernelEvaluator(RBF(15.0), dtype="float32").like(KernelEvaluator(RBF(15.0)).between(X, X))
    whole = pairs.block()
    some = np.array([7, 250, 3])
    np.testing.assert_array_equal(pairs.block(some, np.arange(300)), whole[some])
    np.testing.assert_array_equal(pairs.block(np.arange(300), some), whole[:, some])


@njit(cache=True)
def addresses(n, like):
    a, b, c = vector(n, like), matrix(n, 16, like), indices(n)
    a[:], b[:], c[:] = 1, 2, 3
    return a, b, c


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scratch_begins_with_a_line_of_the_cache(dtype):
    arrays = [addresses(n, np.zeros(1, dtype)) for n in (0, 1, 5, 100)]
    for n, (a, b, c) in zip((0, 1, 5, 100), arrays, strict=True):
        assert (a.dtype, b.dtype, c.dtype) == (np.dtype(dtype), np.dtype(dtype), np.dtype("int64"))
        assert (a.shape, b.shape, c.shape) == ((n,), (n, 16), (n,))
        assert all(x.ctypes.data % LINE == 0 for x in (a, b, c))
        assert a.sum() == n
        assert b.sum() == 32 * n
        assert c.sum() == 3 * n


@pytest.mark.parametrize("shape", [(1, 64), (300, 64), (1000, 200)])
def test_thin_points_become_csr(shape):
    X = random_array(shape, density=0.1, rng=RNG).toarray()
    X[0] = 0
    found, expected = sparse_if_thin(X), csr_matrix(X)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        assert getattr(found, name).dtype == getattr(expected, name).dtype
    assert sparse_if_thin(X[:0]).shape == (0, shape[1])
    full = np.ones(shape)
    assert sparse_if_thin(full) is full
    assert sparse_if_thin(expected) is expected


def test_centred_points_are_rounded_once():
    A, c, w = RNG.normal(size=(5000, 60)), RNG.normal(size=60), RNG.uniform(1, 2, size=60)
    np.testing.assert_array_equal(centred(A, c, None, "float32"), (A - c).astype("float32"))
    np.testing.assert_array_equal(centred(A, c, w, "float32"), ((A - c) * w).astype("float32"))
    assert centred(A[:, :0], c[:0], None, "float32").shape == (5000, 0)
