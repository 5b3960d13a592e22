"""Conversions to Numba: of the Ops in `kernel_ops`, and of products, sums and argsort in the graphs symsvm compiles.

The Ops of `kernel_ops` call the generated loops. The others replace PyTensor's conversions to save compile time.
PyTensor 3.3 compiles every case of a product (strides, reversed axes, one row, one column) around each call of BLAS: 11
to 15 seconds for each layout of the operands. Its sum along an axis sorts the strides (4 seconds), and its argsort
loops over any number of axes (8 seconds). Numba's `np.dot` accepts matrices stored by rows or by columns and compiles
in half a second; a sum needs two loops, and the argsort of a vector one call.
"""

from __future__ import annotations

import hashlib
import inspect
import sys

import numba
import numpy as np
from numba.extending import overload
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.sort import ArgSortOp
from pytensor.tensor.subtensor import Subtensor

from symsvm._lib.compat import compile_source, numba_njit, override_numba, register_numba, subscripts
from symsvm.compiler.ops.kernel_ops import SHAPE_ERROR, KernelFeatures, KernelGram, KernelMatvec
from symsvm.compiler.ops.squared_distances import FeatureMoments, SquaredDistances
from symsvm.compiler.ops.tile_loops import TileLoops, compile_tiles, run_tiles
from symsvm.compiler.ops.tiles import parameter_names
from symsvm.objectives.polytope import PolytopeProjection, nearest_point

__all__ = [
    "compile_op",
    "numba_funcify_argsort",
    "numba_funcify_distances",
    "numba_funcify_moments",
    "numba_funcify_pairs",
    "numba_funcify_polytope",
    "numba_funcify_product",
    "numba_funcify_sum",
]

_OWN_SOURCE = inspect.getsource(sys.modules[__name__])

_ALLOCATE = {
    "block": ["out = np.empty((m, n), dtype)"],
    "matvec": ["out = np.zeros((m, {p}), np.float64)", "q = np.ascontiguousarray({q}.T)"],
    "features": ["out = np.zeros((m, A{c}.shape[1]), np.float64)"],
}


def compile_op(op: KernelGram | KernelMatvec | KernelFeatures) -> TileLoops:
    """Return the compiled loops of an Op."""
    return compile_tiles(op.epilogue, op.hs, op.n_rows, op.n_columns, op.n_numbers, op.storage, op.f)


def _shape_conditions(op, names):
    """Yield the conditions under which the loops would read beyond an array."""
    for c, (h, storage) in enumerate(zip(op.hs, op.storage, strict=True)):
        for name, length in ((f"A{c}", "m"), (f"B{c}", "n")):
            yield f"{name}.shape[0] != {length}" if name in names else f"{name}_start.shape[0] != {length} + 1"
        widths = [f"{name}.shape[1]" for name in (f"A{c}", f"B{c}") if name in names]
        widths += [f"w{c}_{i}.shape[0]" for i in range(len(h.inputs) - 2)] + [f"d{c}.item()"] * ("csr" in storage)
        yield from (f"{width} != {widths[-1]}" for width in widths[:-1])
    yield from (f"u{i}.shape[0] != m" for i in range(op.n_rows))
    yield from (f"v{i}.shape[0] != n" for i in range(op.n_columns))
    if op.result == "matvec":
        yield "given.shape[0] != n"


@register_numba(KernelFeatures, KernelGram, KernelMatvec)
def numba_funcify_pairs(op, node, **kwargs):
    """Convert an Op of `kernel_ops`: check the shapes, allocate, make arrays contiguous, and run the loops."""
    key = compile_op(op).key
    weights = [len(h.inputs) - 2 for h in op.hs]
    names = parameter_names(op.storage, weights, op.n_rows, op.n_columns, op.n_numbers)
    vector = op.result == "matvec" and node.inputs[-1].ndim == 1
    args = [name if v.ndim else f"{name}.item()" for name, v in zip(names, node.inputs, strict=False)]
    args = [f"np.ascontiguousarray({name})" if v.ndim else name for name, v in zip(args, node.inputs, strict=False)]
    left, right = op.storage[0]
    lines = [f"def pairs({', '.join([*names, *['given'] * (op.result == 'matvec')])}):"]
    lines += [f"m = {'A0.shape[0]' if left == 'dense' else 'A0_start.shape[0] - 1'}"]
    lines += [f"n = {'B0.shape[0]' if right == 'dense' else 'B0_start.shape[0] - 1'}"]
    lines += [f"if {' or '.join(_shape_conditions(op, names))}:", f"    raise ValueError({SHAPE_ERROR!r})"]
    # A vector is a matrix of one column.
    given, p = ("given.copy().reshape((n, 1))", "1") if vector else ("given", "given.shape[1]")
    c = op.f[0] if op.result == "features" else ""
    lines += [line.format(q=given, p=p, c=c) for line in _ALLOCATE[op.result]]
    lines += [f"rows, columns, data = np.arange(m), np.arange(n), ({', '.join(args)},)"]
    # In Python, which divides the work among the cores.
    q = "q, " * (op.result == "matvec")
    lines += ["with objmode():", f"    run_tiles({key!r}, {op.result!r}, rows, columns, data, {q}out)"]
    lines += [f"return out{'[:, 0].copy()' if vector else ''}.astype(dtype)"]
    dtype = numba.from_dtype(np.dtype(op.dtype))
    scope = {"np": np, "objmode": numba.objmode, "run_tiles": run_tiles, "dtype": dtype, "__name__": __name__}
    source = "\n    ".join(lines) + "\n"
    pairs = compile_source(source, "pairs", scope)
    return numba_njit(pairs), hashlib.sha256((source + key).encode()).hexdigest()


def _key(*parts):
    return hashlib.sha256(repr((_OWN_SOURCE, *parts)).encode()).hexdigest()


def _product(a, b):
    return np.dot(a, b)


@overload(_product)
def _product_of_layouts(a, b):
    """Tell Numba how an operand is stored, by rows or by columns: it copies operands of unknown layout."""
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


@override_numba(Dot)
def numba_funcify_product(op, node, stock):
    """Convert the product of two matrices of one floating type."""
    a, b = node.inputs
    if a.dtype not in ("float32", "float64") or not a.dtype == b.dtype == node.outputs[0].dtype:
        return stock()
    if _is_strided(a) or _is_strided(b):
        return stock()  # from PyTensor 3.3 on it needs no copy
    # Copying a vector, a matrix of one row or column, costs less than compiling for another layout.
    a_is_vector, b_is_vector = (1 in v.type.shape for v in (a, b))

    @numba_njit
    def product(a, b):
        left = np.ascontiguousarray(a) if a_is_vector else a
        right = np.ascontiguousarray(b) if b_is_vector else b
        return _product(left, right)

    return product, _key("product", a_is_vector, b_is_vector)


def _is_strided(matrix):
    """Whether a matrix is a slice of another that is contiguous neither by rows nor by columns."""
    while matrix.owner is not None and isinstance(matrix.owner.op, DimShuffle):
        (matrix,) = matrix.owner.inputs
    if matrix.owner is None or not isinstance(matrix.owner.op, Subtensor) or matrix.ndim != 2:
        return False
    first, *others = subscripts(matrix.owner)
    return any(s != slice(None) for s in others) or (isinstance(first, slice) and first.step is not None)


@override_numba(Sum)
def numba_funcify_sum(op, node, stock):
    """Convert sum_k a_ik or sum_i a_ik of a matrix of floating type, read in the order of its memory."""
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


@register_numba(SquaredDistances)
def numba_funcify_distances(op, node, **kwargs):
    """Convert the squared distances of few points, by differences; the tiles have loops of their own."""
    if op.is_weighted:

        @numba_njit(fastmath={"contract", "reassoc"})
        def distances(A, B, w):
            if w.shape[0] != A.shape[1] or B.shape[1] != A.shape[1]:
                raise ValueError(SHAPE_ERROR)
            D = np.empty((A.shape[0], B.shape[0]), A.dtype)
            for i in range(A.shape[0]):
                for j in range(B.shape[0]):
                    total = A.dtype.type(0)
                    for k in range(A.shape[1]):
                        difference = (A[i, k] - B[j, k]) * w[k]
                        total += difference * difference
                    D[i, j] = total
            return D

    else:

        @numba_njit(fastmath={"contract", "reassoc"})
        def distances(A, B):
            D = np.empty((A.shape[0], B.shape[0]), A.dtype)
            for i in range(A.shape[0]):
                for j in range(B.shape[0]):
                    total = A.dtype.type(0)
                    for k in range(A.shape[1]):
                        difference = A[i, k] - B[j, k]
                        total += difference * difference
                    D[i, j] = total
            return D

    return distances, _key("distances", op.is_weighted)


@register_numba(FeatureMoments)
def numba_funcify_moments(op, node, **kwargs):
    """Convert the sums of squared differences of each feature, in float64."""

    @numba_njit(fastmath={"contract", "reassoc"})
    def moments(A, B, G):
        found = np.zeros(A.shape[1])
        for i in range(A.shape[0]):
            for j in range(B.shape[0]):
                g = G[i, j]
                for k in range(A.shape[1]):
                    difference = A[i, k] - B[j, k]
                    found[k] += g * difference * difference
        return found.astype(A.dtype)

    return moments, _key("moments")


@override_numba(ArgSortOp)
def numba_funcify_argsort(op, node, stock):
    """Convert the argsort of a vector."""
    kind = op.kind
    if node.inputs[0].ndim != 1 or kind not in ("quicksort", "mergesort"):
        return stock()

    @numba_njit
    def order(x, *axis):  # PyTensor 3.0 passes the axis
        return np.argsort(x, kind=kind)

    return order, _key("order", kind)


@register_numba(PolytopeProjection)
def numba_funcify_polytope(op, node, **kwargs):
    """Convert the projection onto a polytope: a call of its function as it is.

    Its time is that of a few products in BLAS. Compiled by Numba it was no faster, after 10 seconds of compilation.
    """
    n_equal = op.n_equal

    @numba_njit
    def project(v, lower, upper, scale, M, r):
        with numba.objmode(p="float64[::1]", nu="float64[::1]"):
            p, nu = nearest_point(v, lower, upper, scale, M, r, n_equal, np.zeros(len(r)))
        return p, nu

    return project, _key("polytope", n_equal)
