"""SquaredDistances: D_ij = |a_i - b_j|^2 for all pairs, with the digits of a sum of squared differences.

With any centre c,

    D_ij = n_ij - 2 (a_i - c).(b_j - c),        n_ij = |a_i - c|^2 + |b_j - c|^2

is a product of matrices, with an error of at most (d + 4) eps n_ij. Where D_ij is far below n_ij, for points that are
close to each other and far from c, the subtraction cancels most digits: an outlier at 10^8 leaves none of the distance
1. So pairs with D_ij < `CANCELLATION` n_ij are computed again, by differences. The relative error of each distance is
then at most (d + 4) eps / CANCELLATION, whatever the points are.
"""

# pyright: reportAttributeAccessIssue=false, reportOperatorIssue=false
# PyTensor's types do not say that graphs are tensors.

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import disconnected_grad
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

from symsvm._lib.blas import row_products

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = ["CANCELLATION", "SAMPLE", "SquaredDistances", "centre", "squared_distances"]

# The part of n_ij below which a distance is computed by differences.
CANCELLATION = {"float64": 2.0**-10, "float32": 2.0**-6}
# Rows of which the centre is computed, and entries of the largest array of differences.
SAMPLE, _ENTRIES = 255, 2**18


def centre(B: Array) -> Array:
    """Return the median of each column, over at most 255 rows at equal steps: outliers do not move it."""
    rows = B[:: -(-len(B) // SAMPLE)] if len(B) else np.zeros((1, B.shape[1]), B.dtype)
    middle = np.median(rows, axis=0).astype(B.dtype)
    return np.where(np.isfinite(middle), middle, 0)


def squared_distances(A: Array, B: Array, *, by_rows: bool = False) -> Array:
    """Return |a_i - b_j|^2 for the rows of two matrices.

    Parameters
    ----------
    A, B : ndarray
        The points (m, d) and (n, d), of one floating type.
    by_rows : bool
        Whether to multiply one row of A at a time, so that the result of a row does not depend on the other rows.

    Returns
    -------
    ndarray
        The matrix (m, n).

    Examples
    --------
    >>> squared_distances(np.array([[1e8], [0.25]]), np.array([[1e8 + 1], [0.5]])).tolist()
    [[1.0, 9999999900000000.0], [1.000000015e+16, 0.0625]]
    """
    with np.errstate(all="ignore"):  # points beyond 1e154 are infinitely far from others
        c = centre(B)
        a = A - c
        b = a if A is B else B - c
        norms = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)
        D = norms - 2 * (row_products(a, b.T) if by_rows else a @ b.T)
        i, j = np.nonzero(~(D >= CANCELLATION[D.dtype.name] * norms))  # NaN too, of infinite norms
        step = max(1, _ENTRIES // max(1, A.shape[1]))
        for low in range(0, len(i), step):
            some = i[low : low + step], j[low : low + step]
            D[some] = ((A[some[0]] - B[some[1]]) ** 2).sum(axis=1)
    return D


class SquaredDistances(Op):
    """D_ij = |a_i - b_j|^2 for the rows of two matrices, (m, d) and (n, d)."""

    __props__ = ()
    gufunc_signature = "(m,d),(n,d)->(m,n)"

    def make_node(self, A, B):
        """Make the node; both matrices get the wider of their floating types."""
        importlib.import_module("symsvm.compiler.ops.numba_dispatch")  # here, so that Numba is loaded only when needed
        A, B = pt.as_tensor(A), pt.as_tensor(B)
        dtype = "float64" if "float64" in (A.dtype, B.dtype) else "float32"
        A, B = A.astype(dtype), B.astype(dtype)
        return Apply(self, [A, B], [pt.tensor(dtype=dtype, shape=(A.type.shape[0], B.type.shape[0]))])

    def perform(self, node, inputs, outputs):
        """Compute in NumPy."""
        outputs[0][0] = squared_distances(*(np.ascontiguousarray(x) for x in inputs))

    def pullback(self, inputs, outputs, cotangents):
        """Return 2 sum_j G_ij (a_i - b_j) and the same for B: products of matrices, of points around their mean."""
        (A, B), (G,) = inputs, cotangents
        c = disconnected_grad(B.mean(axis=0))
        a, b = A - c, B - c
        return [2 * (a * G.sum(axis=1)[:, None] - pt.dot(G, b)), 2 * (b * G.sum(axis=0)[:, None] - pt.dot(G.T, a))]
