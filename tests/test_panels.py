"""Loops in registers beside plain ones: panels, strips, mirrored matrices, and memory that begins with a line."""

import threading

import numpy as np
import pytest
import scipy.sparse

from symsvm._lib.heap import LINE, aligned_copy, aligned_empty, aligned_full, recycle, recycled_empty
from symsvm.compiler.ops.panels import pack, pack_csr, row_norms
from symsvm.compiler.ops.sparse_sums import STRIP, add_entries
from symsvm.evaluation.symmetric_loops import is_finite, mirror


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "low"), [(1, 0), (17, 1), (40, 16), (133, 70), (640, 600)])
def test_a_mirrored_matrix_is_symmetric(dtype, n, low):
    K = np.random.default_rng(n).normal(size=(n, n + 5)).astype(dtype)
    expected = K.copy()
    expected[:low, low:n] = K[low:n, :low].T
    mirror(K, low, n)
    assert np.array_equal(K, expected)


def _csr(B):
    A = scipy.sparse.csr_matrix(B)
    return A.data, A.indices, A.indptr


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (16, 16), (37, 21), (100, 3)])
def test_panels_have_the_chosen_rows_as_columns(dtype, n, d):
    B = np.random.default_rng(d).normal(size=(50, d)).astype(dtype)
    ids, columns = np.random.default_rng(n).integers(0, 50, n), 32
    count = -(-n // columns)
    for rows, function in (((B,), pack), (_csr(B), pack_csr)):
        panels = aligned_full((count, d, columns), np.nan, dtype)
        function(*rows, ids, 0, 0, count, panels)
        found = panels.transpose(0, 2, 1).reshape(-1, d)[:n]
        assert np.array_equal(found, B[ids])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_entries_are_added_to_a_strip_in_any_order_and_part_by_part(dtype, index):
    from numba import njit

    @njit
    def sums(x, k, start, strip, step, out):
        for i in range(len(start) - 1):
            e = start[i]
            for low in range(0, len(strip), step):
                e = add_entries(x, k, e, start[i + 1], low + step, strip, out[i])

    rng = np.random.default_rng(0)
    dense = rng.normal(size=(9, 40)) * (rng.random((9, 40)) < 0.3)
    dense[4] = 0  # a row without entries
    A = scipy.sparse.csr_matrix(dense)
    for i in range(9):  # no order is asked of columns
        part = slice(A.indptr[i], A.indptr[i + 1])
        order = rng.permutation(A.indptr[i + 1] - A.indptr[i])
        A.indices[part], A.data[part] = A.indices[part][order], A.data[part][order]
    strip = aligned_copy(rng.normal(size=(40, STRIP)), dtype)
    out = aligned_full((9, STRIP), 1.0, dtype)
    sums(A.data.astype(dtype), A.indices.astype(index), A.indptr.astype(index), strip, 16, out)
    error = 1e-5 if dtype == "float32" else 1e-13
    assert out == pytest.approx(1 + A.toarray() @ strip, rel=error, abs=error)


def test_norms_of_rows_add_entries_of_one_feature_first():
    x, k, start = np.array([1.0, 2.0, 3.0]), np.array([1, 1, 0], "int32"), np.array([0, 2, 2, 3], "int32")
    norms, w = np.empty(3), np.array([2.0, 1.0])
    row_norms(x, k, start, 0, 3, w, norms)
    assert norms.tolist() == [9.0, 0.0, 36.0]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_value_that_is_not_finite_is_found(value, dtype):
    K = np.ones((70, 50), dtype)
    assert is_finite(K, 50)
    K[69, 30] = value
    assert not is_finite(K, 50)
    assert is_finite(K, 30)


@pytest.mark.parametrize("shape", [(0,), (3,), (5, 7), (2, 3, 16)])
def test_aligned_arrays_begin_with_a_line(shape):
    for dtype in ("float32", "float64", "int64"):
        array = aligned_full(shape, 3, dtype)
        assert array.shape == shape
        assert array.dtype == dtype
        assert not array.size or array.__array_interface__["data"][0] % LINE == 0
        assert (array == 3).all()
        assert np.array_equal(aligned_copy(array, "float64"), array)


def test_memory_is_used_again_by_the_thread_that_left_it():
    def address(array):
        return array.__array_interface__["data"][0]

    def leave_and_take():
        large = aligned_empty((2**19,), "float64")
        recycle(large)
        small, again, other = (recycled_empty((n,), "float64") for n in (10, 2**19, 2**19))
        found.extend(address(array) == address(large) for array in (small, again, other))

    found = []
    thread = threading.Thread(target=leave_and_take)  # of which nothing was kept yet
    thread.start()
    thread.join()
    assert found == [False, True, False]  # a small array leaves it, and the last one finds it taken
