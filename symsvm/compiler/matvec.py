"""kernel_matvec: the graph of sum_j K(x_i, z_j) q_j for any kernel, computed without the kernel matrix."""

# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportGeneralTypeIssues=false
# pyright: reportArgumentType=false, reportReturnType=false
# PyTensor's types do not say that graphs are tensors or sparse matrices.

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.raise_op import Assert
from pytensor.scan.views import map as scan_map
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Sum

from symsvm._lib.validation import as_float
from symsvm.compiler.lifting import lift
from symsvm.compiler.ops.kernel_form import KernelForm, factor
from symsvm.compiler.ops.kernel_ops import KernelMatvec
from symsvm.compiler.ops.scalar_function import NotElementwise, ScalarFunction
from symsvm.graphs.structure import varying_axes
from symsvm.kernels import Kernel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pytensor.graph.basic import Variable

    from symsvm._lib.types import Graph, Points

__all__ = ["kernel_form", "kernel_matvec"]


def kernel_matvec(
    kernel: Kernel, X: ArrayLike | Points | Variable, Z: ArrayLike | Points | Variable, q: ArrayLike | Variable
) -> Graph:
    """The product of a kernel matrix and a vector, as a graph.

    The product is sum_j K(x_i, z_j) q_j. Only a tile of K is in memory, also in the gradients with respect to q, X, Z
    and the hyper-parameters of the kernel. A kernel that is a function of sums over features (inner products,
    distances) becomes a `KernelMatvec`; any other is computed one row at a time, in a loop.

    Sparse points have three restrictions: they do not run on JAX, they have no gradients, and the kernel must be a
    function of sums over features of the points as they are.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X, Z : array-like, CSR matrix or graph
        Points, (m, d) and (n, d). A symbolic CSR matrix must not have duplicate entries.
    q : array-like or graph
        A vector (n,), or several right-hand sides (n, p).

    Returns
    -------
    graph
        The product, (m,) or (m, p).

    Examples
    --------
    >>> from symsvm.kernels import RBF
    >>> X = pt.constant([[0.0], [1.0]])
    >>> kernel_matvec(RBF(sigma=1.0), X, X, pt.constant([1.0, 0.0])).eval(mode="FAST_COMPILE").round(4).tolist()
    [1.0, 0.6065]
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a symsvm kernel, such as RBF(sigma=1.0), got {kernel!r}.")
    left, right, q = _points(X), _points(Z), as_float(q)
    if q.ndim not in (1, 2):
        raise ValueError(f"q must be a vector or a matrix of right-hand sides, got {q.ndim} dimensions.")
    d, other = left.type.shape[1], right.type.shape[1]
    if d is not None and other is not None and d != other:
        raise ValueError(f"X and Z must be points with the same features, got {d} and {other}.")
    kernel.check_features(other if d is None else d)
    if _is_sparse(left) or _is_sparse(right):
        return _sparse_matvec(kernel, left, right, q)
    try:
        return KernelMatvec.of(kernel_form(kernel, left, right), q)
    except NotElementwise:
        # The pass `map_to_batch` leaves a loop with this name as it is.
        return scan_map(
            lambda x, Z, q: pt.dot(kernel(x[None, :], Z)[0], q),
            sequences=[left],
            non_sequences=[right, q],
            return_updates=False,
            name="rows",
        )


def kernel_form(kernel: Kernel, X: Graph, Z: Graph) -> KernelForm:
    """Return the `KernelForm` of the matrix K(x_i, z_j), or raise `NotElementwise`."""
    # Points of unknown shape: an axis of known length 1 would look like a broadcast one.
    A, B = (pt.tensor(name, dtype=X.dtype, shape=(None, None)) for name in "AB")
    (K,) = lift([kernel(A, B)])
    form = factor(K)
    return _replace(form, {A: X, B: Z})


def _replace(form: KernelForm, swaps: dict) -> KernelForm:
    """Return the form with other inputs."""
    parts = [v for c in form.channels for v in (c.A, c.B, *c.weights)]
    parts += [*form.rows, *form.columns, *form.numbers]
    parts = iter(clone_replace(parts, swaps, rebuild_strict=False))
    channels = tuple(
        type(c)(c.h, next(parts), next(parts), tuple(next(parts) for _ in c.weights)) for c in form.channels
    )
    groups = [tuple(next(parts) for _ in group) for group in (form.rows, form.columns, form.numbers)]
    return KernelForm(form.epilogue, channels, *groups)


def _is_sparse(X):
    types = sys.modules.get("pytensor.sparse.type")  # no graph is sparse before it is imported, which takes time
    return types is not None and isinstance(getattr(X, "type", None), types.SparseTensorType)


def _points(X: Any) -> Any:
    if hasattr(X, "tocsr") and not _is_sparse(X):
        from pytensor import sparse
        from scipy.sparse import csr_matrix

        X = csr_matrix(X)
        if not X.has_canonical_format:  # add up duplicate entries, in a copy
            X = X.copy()
            X.sum_duplicates()
        X = sparse.as_sparse_variable(X)
    if _is_sparse(X):
        if X.type.format != "csr":
            raise TypeError(f"sparse points must be in CSR format, one point per row, got {X.type.format}.")
        from pytensor import sparse

        return X if X.dtype in ("float32", "float64") else sparse.cast(X, "float64")
    X = as_float(X)
    if X.ndim != 2:
        raise ValueError(f"points must form a matrix (m, d), got {X.ndim} dimension(s).")
    return X


def _sparse_matvec(kernel, X, Z, q):
    """Return a KernelMatvec with sparse points on one side or both."""
    from pytensor import sparse

    A, B = (pt.tensor(name, dtype=X.dtype, shape=(None, None)) for name in "AB")
    (K,) = lift([kernel(A, B)])
    hint = f"{kernel!r} cannot take sparse points"
    try:
        form = factor(K)
    except NotElementwise as error:
        raise TypeError(f"{hint}: {error}.") from None
    if any(channel.A is not A or channel.B is not B for channel in form.channels):
        raise TypeError(f"{hint}: it transforms them before it multiplies or subtracts them.")
    widths = (sparse.csm_properties(side)[3][1] if _is_sparse(side) else side.shape[1] for side in (X, Z))
    d, other = (width.astype("int64") for width in widths)
    d = Assert("points must have the same features.")(d, pt.eq(d, other))
    storage = tuple("csr" if _is_sparse(side) else "dense" for side in (X, Z))
    sides = [v for side in (X, Z) for v in (sparse.csm_properties(side)[:3] if _is_sparse(side) else [side])]
    like: dict = {v: pt.zeros((1, d), dtype=v.dtype) for v in (A, B)}  # for graphs of the number of features
    data = [v for c in form.channels for v in (*sides, d, *clone_replace(list(c.weights), like, rebuild_strict=False))]
    data += [_per_row(v, {A: X, B: Z}, hint) for v in (*form.rows, *form.columns)]
    data += clone_replace(list(form.numbers), like, rebuild_strict=False)
    hs = [channel.h for channel in form.channels]
    counts = len(form.rows), len(form.columns), len(form.numbers)
    return KernelMatvec(form.epilogue, hs, *counts, [storage] * len(hs))(*data, q)


def _per_row(vector, sides, hint):
    """Return a vector over points as a graph of sparse points: only sums over features of f(x_ik) with f(0) = 0."""
    swaps = {point: X for point, X in sides.items() if not _is_sparse(X)}
    for v in ancestors([vector]):
        if v.owner is not None and isinstance(v.owner.op, Sum) and v.owner.op.axis == (v.ndim,):
            total = _sparse_sum(v, {point: X for point, X in sides.items() if _is_sparse(X)})
            swaps |= {} if total is None else {v: total}
    (result,) = clone_replace([vector], swaps, rebuild_strict=False)
    if not set(sides).isdisjoint(ancestors([result])):
        raise TypeError(f"{hint}: it uses more of each point than sums over features that ignore zeros.")
    return result


def _sparse_sum(total, sides):
    """Return sum_k f(x_ik) over the entries of sparse points, from its graph over dense ones; None if f(0) != 0."""
    from pytensor import sparse

    (term,) = total.owner.inputs
    for leaf in ancestors([term]):
        point = leaf.owner.inputs[0] if leaf.owner is not None and isinstance(leaf.owner.op, DimShuffle) else leaf
        if point in sides and leaf.ndim == term.ndim:
            try:
                f = ScalarFunction.of(term, [leaf])
            except NotElementwise:
                return None
            if f(np.zeros((), f.dtype)) != 0:
                return None
            x, *structure = sparse.csm_properties(sides[point])
            sums = sparse.sp_sum(sparse.CSR(f.graph([x]), *structure), axis=1)
            return sums.dimshuffle([0 if i in varying_axes(total) else "x" for i in range(total.ndim)])
    return None
