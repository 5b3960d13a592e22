"""Arrays on Numba: products, sums and orders for the graphs that symsvm compiles, in code that compiles fast.

PyTensor 3.3 compiles every case of a product (strides, reversed axes, one row, one column) around each call of BLAS:
eleven to fifteen seconds for each layout of the operands. Its sum along an axis sorts the strides, which takes four;
its argsort swaps axes and loops over any number of them, which takes eight. Numba's own `np.dot` reads rows and columns
alike and takes half a second; a sum needs two loops, and the order of a vector one call.
"""

import hashlib
import inspect
import sys

import numpy as np
from numba.extending import overload
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.sort import ArgSortOp
from pytensor.tensor.subtensor import Subtensor

from symsvm._lib.compat import numba_njit, own_on_numba, subscripts

__all__ = ["numba_funcify_order", "numba_funcify_product", "numba_funcify_sum"]

_OWN_SOURCE = inspect.getsource(sys.modules[__name__])


def _key(*parts):
    return hashlib.sha256(repr((_OWN_SOURCE, *parts)).encode()).hexdigest()


def _product(a, b):
    return np.dot(a, b)


@overload(_product)
def _product_of_layouts(a, b):
    """Numba copies what it does not know to be contiguous: say which it is, rows or columns."""
    if a.layout == "A":

        def product(a, b):
            return _product(np.asfortranarray(a), b) if a.flags.f_contiguous else _product(np.ascontiguousarray(a), b)

    elif b.layout == "A":

        def product(a, b):
            return _product(a, np.asfortranarray(b)) if b.flags.f_contiguous else _product(a, np.ascontiguousarray(b))

    else:

        def product(a, b):
            return np.dot(a, b)

    return product


@own_on_numba(Dot)
def numba_funcify_product(op, node, stock):
    """AB of two matrices of one floating type."""
    a, b = node.inputs
    if a.dtype not in ("float32", "float64") or not a.dtype == b.dtype == node.outputs[0].dtype:
        return stock()
    if _is_part(a) or _is_part(b):
        return stock()  # which reads it where it lies, from PyTensor 3.3 on
    # A vector, as a matrix of one row or column, is sooner copied than compiled for once more.
    a_is_vector, b_is_vector = (1 in v.type.shape for v in (a, b))

    @numba_njit
    def product(a, b):
        left = np.ascontiguousarray(a) if a_is_vector else a
        right = np.ascontiguousarray(b) if b_is_vector else b
        return _product(left, right)

    return product, _key("product", a_is_vector, b_is_vector)


def _is_part(matrix):
    """Say whether a matrix is some columns of another, or every other row: it lies neither by rows nor by columns."""
    while matrix.owner is not None and isinstance(matrix.owner.op, DimShuffle):
        (matrix,) = matrix.owner.inputs
    if matrix.owner is None or not isinstance(matrix.owner.op, Subtensor) or matrix.ndim != 2:
        return False
    first, *others = subscripts(matrix.owner)
    return any(s != slice(None) for s in others) or (isinstance(first, slice) and first.step is not None)


@own_on_numba(Sum)
def numba_funcify_sum(op, node, stock):
    """sum_k a_ik or sum_i a_ik of a matrix of floating type, read in the order in which it lies."""
    (a,), (out,) = node.inputs, node.outputs
    axis = tuple(op.axis or ())
    if a.ndim != 2 or axis not in ((0,), (1,)) or any(v.dtype not in ("float32", "float64") for v in (a, out)):
        return stock()
    number, total = np.dtype(out.dtype).type, np.dtype(op.acc_dtype or out.dtype).type
    is_over_rows = axis == (0,)

    @numba_njit(boundscheck=False)
    def along(a):
        x = a.T if is_over_rows else a
        m, n = x.shape
        sums = np.empty(m, total)
        if abs(x.strides[1]) <= abs(x.strides[0]):
            for i in range(m):
                s = total(0)
                for k in range(n):
                    s += x[i, k]
                sums[i] = s
        else:
            for i in range(m):
                sums[i] = total(0)
            for k in range(n):
                for i in range(m):
                    sums[i] += x[i, k]
        return sums.astype(number)

    return along, _key("sum", axis, out.dtype, str(op.acc_dtype))


@own_on_numba(ArgSortOp)
def numba_funcify_order(op, node, stock):
    """The indices that sort a vector."""
    kind = op.kind
    if node.inputs[0].ndim != 1 or kind not in ("quicksort", "mergesort"):
        return stock()

    @numba_njit
    def order(x, *axis):  # given by PyTensor 3.0; a vector has one
        return np.argsort(x, kind=kind)

    return order, _key("order", kind)
