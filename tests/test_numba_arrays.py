"""Products, sums and orders on Numba: right for every layout, and only in graphs that symsvm compiles."""

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.scan import scan
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.sort import ArgSortOp

from symsvm import internals
from symsvm.compiler import function

RNG = np.random.default_rng(0)
LAYOUTS = {
    "rows": lambda a: np.ascontiguousarray(a),
    "columns": lambda a: np.asfortranarray(a),
    "strided": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    "reversed": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
    "repeated": lambda a: np.broadcast_to(a[:1], a.shape),
}
DTYPES = ("float32", "float64")


def matrices(dtype, *names):
    """Symbolic matrices."""
    return [pt.matrix(name, dtype=dtype) for name in names]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layouts", [("rows", "columns"), ("columns", "rows"), ("strided", "reversed")])
def test_products_of_any_layout(dtype, layouts):
    A, B = matrices(dtype, "A", "B")
    left, right = (LAYOUTS[name] for name in layouts)
    a, b = left(RNG.normal(size=(5, 4)).astype(dtype)), right(RNG.normal(size=(4, 3)).astype(dtype))
    values = function([A, B], [A @ B, B.T @ A.T, A @ B[:, 0], A[1] @ B])(a, b)
    for value, expected in zip(values, [a @ b, b.T @ a.T, a @ b[:, 0], a[1] @ b], strict=True):
        assert value.dtype == dtype
        np.testing.assert_allclose(value, expected, rtol=1e-5 if dtype == "float32" else 1e-13, atol=1e-6)


def test_products_of_parts_and_of_repeated_rows():
    A, B = matrices("float64", "A", "B")
    a, b = RNG.normal(size=(5, 4)), LAYOUTS["repeated"](RNG.normal(size=(4, 3)))
    values = function([A, B], [A[:, 1:] @ B[1:], A[::-1] @ B[:, ::2]])(a, b)
    for value, expected in zip(values, [a[:, 1:] @ b[1:], a[::-1] @ b[:, ::2]], strict=True):
        np.testing.assert_allclose(value, expected)


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


def test_stacks_of_products():
    A, B = pt.tensor3("A"), pt.tensor3("B")
    a, b = RNG.normal(size=(4, 3, 2)), RNG.normal(size=(4, 2, 5))
    np.testing.assert_allclose(function([A, B], A @ B)(a, b), a @ b)
    np.testing.assert_allclose(function([A, B], A.transpose(0, 2, 1) @ A)(a, b), a.transpose(0, 2, 1) @ a)


def test_a_product_in_a_loop():
    A, x = pt.matrix("A"), pt.vector("x")
    states = scan(lambda v, K: K.T @ v, outputs_info=[x], non_sequences=[A], n_steps=3, return_updates=False)
    a, v = RNG.normal(size=(3, 3)), RNG.normal(size=3)
    np.testing.assert_allclose(function([A, x], states[-1])(a, v), a.T @ a.T @ a.T @ v)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["rows", "columns", "strided"])
def test_sums_of_any_layout(dtype, layout):
    (A,) = matrices(dtype, "A")
    compiled = function([A], [A.sum(axis=0), A.sum(axis=1), A.sum(axis=-1, dtype="float64")])
    for shape in ((7, 4), (1, 3), (3, 1), (0, 2), (2, 0)):
        a = LAYOUTS[layout](RNG.normal(size=shape).astype(dtype))
        expected = [a.sum(axis=0), a.sum(axis=1), a.sum(axis=1, dtype="float64")]
        for value, right in zip(compiled(a), expected, strict=True):
            assert value.dtype == right.dtype
            np.testing.assert_allclose(value, right, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-6)


def test_sums_of_float32_are_added_in_float64():
    a = np.full((1, 10**6), 0.1, "float32")
    (A,) = matrices("float32", "A")
    assert function([A], A.sum(axis=1))(a).item() == np.float32(a.sum(dtype="float64"))


def test_sums_of_other_types():
    A, N = pt.tensor3("A"), pt.matrix("N", dtype="int64")
    a, n = RNG.normal(size=(2, 3, 4)), np.arange(6).reshape(2, 3)
    over, whole, flags = function([A, N], [A.sum(axis=1), N.sum(axis=0), (N > 2).sum(axis=1)])(a, n)
    np.testing.assert_allclose(over, a.sum(axis=1))
    np.testing.assert_array_equal(whole, n.sum(axis=0))
    np.testing.assert_array_equal(flags, (n > 2).sum(axis=1))


def test_orders():
    x, A = pt.vector("x"), pt.matrix("A")
    a = RNG.normal(size=(6, 4))
    compiled = function([x, A], [pt.argsort(x), pt.argsort(x[::-2]), pt.argsort(A, axis=0), pt.argsort(A)])
    for v in (RNG.normal(size=9), np.zeros(0), np.array([np.inf, -np.inf, 0.0])):
        vector, part, columns, rows = compiled(v, a)
        assert vector.dtype == "int64"
        np.testing.assert_array_equal(vector, np.argsort(v))
        np.testing.assert_array_equal(part, np.argsort(v[::-2]))
        np.testing.assert_array_equal(columns, np.argsort(a, axis=0))
        np.testing.assert_array_equal(rows, np.argsort(a))
    ties = RNG.integers(0, 3, 50).astype(float)
    np.testing.assert_array_equal(function([x], pt.argsort(x, kind="mergesort"))(ties), np.argsort(ties, kind="stable"))


def test_other_graphs_keep_the_conversions_of_pytensor():
    function([], pt.constant(1.0) + 1)  # ours are there
    from pytensor.link.numba.dispatch.basic import numba_funcify, numba_funcify_and_cache_key

    A, B = matrices("float64", "A", "B")
    cases = ((Dot()(A, B), Dot, "product"), (A.sum(axis=0), Sum, "along"), (pt.argsort(A[0]), ArgSortOp, "order"))
    for variable, op_type, ours in cases:
        node = variable.owner
        assert isinstance(node.op, op_type)
        assert numba_funcify_and_cache_key(node.op, node=node)[0].__name__ != ours
        assert numba_funcify(node.op, node=node).__name__ != ours
        with internals._ours():
            assert numba_funcify_and_cache_key(node.op, node=node)[0].__name__ == ours
            assert numba_funcify(node.op, node=node).__name__ == ours
