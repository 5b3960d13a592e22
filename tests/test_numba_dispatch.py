"""Products, sums and argsort on Numba: correct for every memory layout, and only in graphs that symsvm compiles."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.scan import scan
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.sort import ArgSortOp

from symsvm._lib import compat
from symsvm.compiler.functions import function

RNG = np.random.default_rng(0)
DTYPES = ("float32", "float64")


def matrices(dtype, *names):
    """Symbolic matrices."""
    return [pt.matrix(name, dtype=dtype) for name in names]


def test_products_of_any_layout():
    """By rows, by columns, some columns, one row repeated."""
    (A, B), (S, T) = (matrices(dtype, "A", "B") for dtype in ("float64", "float32"))
    graphs = [A @ B, B.T @ A.T, A.T @ A, A @ B[:, 0], A[1] @ B, A[:, 1:] @ B[1:]]
    repeated = pt.broadcast_to(A[0][None, :], A.shape) @ B
    a, b = RNG.normal(size=(5, 4)), RNG.normal(size=(4, 3))
    *values, ones, single = function([A, B, S, T], [*graphs, repeated, S @ T])(a, b, np.float32(a), np.float32(b))
    right = [a @ b, b.T @ a.T, a.T @ a, a @ b[:, 0], a[1] @ b, a[:, 1:] @ b[1:]]
    for value, expected in zip([*values, ones], [*right, np.repeat(a[:1], 5, 0) @ b], strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-13, atol=1e-14)
    assert single.dtype == "float32"
    np.testing.assert_allclose(single, a @ b, rtol=1e-5, atol=1e-6)


def test_another_layout_does_not_recompile():
    A, x = pt.dmatrix("A"), pt.dvector("x")
    compiled = function([A, x], [A @ x, A.sum(axis=0)])
    a, v = RNG.normal(size=(6, 6)), RNG.normal(size=6)
    compiled(a, v)
    before = len(compiled.function.vm.jit_fn.signatures)
    for matrix in (np.asfortranarray(a), a[::-1, ::-1], np.broadcast_to(a[:1], a.shape), np.repeat(a, 2, 1)[:, ::2]):
        product, sums = compiled(matrix, v[::-1])
        np.testing.assert_allclose(product, matrix @ v[::-1], rtol=1e-13)
        np.testing.assert_allclose(sums, matrix.sum(axis=0), rtol=1e-13)
    assert len(compiled.function.vm.jit_fn.signatures) == before == 1


def test_products_without_entries():
    A, B = matrices("float64", "A", "B")
    compiled = function([A, B], [A @ B, A @ B[:, 0]])
    for m, k, n in ((0, 3, 2), (2, 0, 3), (1, 0, 1), (0, 0, 1)):
        product, vector = compiled(np.ones((m, k)), np.ones((k, n)))
        np.testing.assert_array_equal(product, np.zeros((m, n)))
        np.testing.assert_array_equal(vector, np.zeros(m))
    product = function([A, B], A @ B)(np.ones((2, 3)), np.ones((3, 0)))
    assert product.shape == (2, 0)


def test_products_that_do_not_fit_raise():
    A, B = matrices("float64", "A", "B")
    compiled = function([A, B], A @ B)
    with pytest.raises(ValueError, match="incompatible array sizes"):
        compiled(np.ones((2, 3)), np.ones((4, 2)))


def test_products_of_other_types():
    A, B = pt.matrix("A", dtype="float32"), pt.matrix("B", dtype="float64")
    C = pt.matrix("C", dtype="int64")
    a, b, c = np.float32(RNG.normal(size=(3, 2))), RNG.normal(size=(2, 3)), np.arange(6).reshape(3, 2)
    mixed, whole = function([A, B, C], [A @ B, C @ C.T])(a, b, c)
    np.testing.assert_allclose(mixed, a @ b)
    np.testing.assert_array_equal(whole, c @ c.T)


def test_batched_products():
    A, B = pt.tensor3("A"), pt.tensor3("B")
    a, b = RNG.normal(size=(4, 3, 2)), RNG.normal(size=(4, 2, 5))
    product, own = function([A, B], [A @ B, A.transpose(0, 2, 1) @ A])(a, b)
    np.testing.assert_allclose(product, a @ b)
    np.testing.assert_allclose(own, a.transpose(0, 2, 1) @ a)


def test_a_product_in_a_loop():
    A, x = pt.matrix("A"), pt.vector("x")
    states = scan(lambda v, K: K.T @ v, outputs_info=[x], non_sequences=[A], n_steps=3, return_updates=False)
    a, v = RNG.normal(size=(3, 3)), RNG.normal(size=3)
    np.testing.assert_allclose(function([A, x], states[-1])(a, v), a.T @ a.T @ a.T @ v)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_of_any_layout(dtype):
    (A,) = matrices(dtype, "A")
    parts = [A, A.T, A[:, ::-2]]
    compiled = function([A], [total for B in parts for total in (B.sum(axis=0), B.sum(axis=-1, dtype="float64"))])
    for shape in ((7, 4), (1, 3), (3, 1), (0, 2), (2, 0)):
        a = RNG.normal(size=shape).astype(dtype)
        expected = [total for b in (a, a.T, a[:, ::-2]) for total in (b.sum(axis=0), b.sum(axis=1, dtype="float64"))]
        for value, right in zip(compiled(a), expected, strict=True):
            assert value.dtype == right.dtype
            np.testing.assert_allclose(value, right, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-6)


def test_sums_of_float32_are_added_in_float64():
    a = np.full((1, 10**6), 0.1, "float32")
    (A,) = matrices("float32", "A")
    assert function([A], A.sum(axis=1))(a).item() == np.float32(a.sum(dtype="float64"))


def test_sums_of_other_types():
    N, n = pt.matrix("N", dtype="int64"), np.arange(6).reshape(2, 3)
    whole, flags = function([N], [N.sum(axis=0), (N > 2).sum(axis=1)])(n)
    np.testing.assert_array_equal(whole, n.sum(axis=0))
    np.testing.assert_array_equal(flags, (n > 2).sum(axis=1))


def test_argsort():
    x = pt.vector("x")
    compiled = function([x], [pt.argsort(x), pt.argsort(x[::-2])])
    for v in (RNG.normal(size=9), np.zeros(0), np.array([np.inf, -np.inf, 0.0])):
        vector, part = compiled(v)
        assert vector.dtype == "int64"
        np.testing.assert_array_equal(vector, np.argsort(v))
        np.testing.assert_array_equal(part, np.argsort(v[::-2]))
    ties = RNG.integers(0, 3, 50).astype(float)
    np.testing.assert_array_equal(function([x], pt.argsort(x, kind="mergesort"))(ties), np.argsort(ties, kind="stable"))


def test_other_graphs_keep_the_conversions_of_pytensor():
    function([], pt.constant(1.0) + 1)  # registers ours
    from pytensor.link.numba.dispatch.basic import numba_funcify, numba_funcify_and_cache_key

    A, B = matrices("float64", "A", "B")
    cases = ((Dot()(A, B), Dot, "product"), (A.sum(axis=0), Sum, "along"), (pt.argsort(A[0]), ArgSortOp, "order"))
    for variable, op_type, ours in cases:
        node = variable.owner
        assert isinstance(node.op, op_type)
        assert numba_funcify_and_cache_key(node.op, node=node)[0].__name__ != ours
        assert numba_funcify(node.op, node=node).__name__ != ours
        with compat.converting_own_graph():
            assert numba_funcify_and_cache_key(node.op, node=node)[0].__name__ == ours
            assert numba_funcify(node.op, node=node).__name__ == ours
