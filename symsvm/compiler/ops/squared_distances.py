"""SquaredDistances: D_ij = |a_i - b_j|^2 for all pairs, with the digits of a sum of squared differences.

With weights of the features it is sum_k ((a_ik - b_jk) w_k)^2, the distance of a kernel with a width for each feature.
With any centre c, and points times w,

    D_ij = n_ij - 2 (a_i - c).(b_j - c),        n_ij = |a_i - c|^2 + |b_j - c|^2

is a product of matrices, with an error of at most (d + 4) eps n_ij. Where D_ij is far below n_ij, for points that are
close to each other and far from c, the subtraction cancels most digits: an outlier at 10^8 leaves none of the distance
1. So pairs with D_ij < `CANCELLATION` n_ij are computed again, by differences. The relative error of each distance is
then at most (d + 4) eps / CANCELLATION, whatever the points are. Differences are taken before they are multiplied by w:
a_ik w_k and b_jk w_k are rounded, and where points are close to each other and far from c little but that is left.
"""

# pyright: reportAttributeAccessIssue=false, reportOperatorIssue=false, reportIndexIssue=false
# PyTensor's types do not say that graphs are tensors.

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import disconnected_grad
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

from symsvm._lib.blas import row_products
from symsvm.compiler.ops.registration import register

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = [
    "CANCELLATION",
    "SAMPLE",
    "FeatureMoments",
    "SquaredDistances",
    "centre",
    "feature_moments",
    "squared_distances",
]

# The part of n_ij below which a distance is computed by differences.
CANCELLATION = {"float64": 2.0**-10, "float32": 2.0**-6}
# Rows of which the centre is computed, and entries of the largest array of differences.
SAMPLE, _ENTRIES = 255, 2**18


def centre(B: Array) -> Array:
    """Return the median of each column, over at most 255 rows at equal steps: outliers do not move it."""
    rows = B[:: -(-len(B) // SAMPLE)] if len(B) else np.zeros((1, B.shape[1]), B.dtype)
    order, half = np.sort(rows, axis=0), len(rows) // 2  # np.median takes longer than the distances of a few points
    middle = order[half] if len(rows) % 2 else (order[half - 1] + order[half]) / 2
    return np.where(np.isfinite(middle) & ~np.isnan(order[-1]), middle, 0)


def squared_distances(A: Array, B: Array, w: Array | None = None, *, by_rows: bool = False) -> Array:
    """Return |a_i - b_j|^2 for the rows of two matrices, or sum_k ((a_ik - b_jk) w_k)^2.

    Parameters
    ----------
    A, B : ndarray
        The points (m, d) and (n, d), of one floating type.
    w : ndarray or None
        The weights (d,) of the features, of the same type.
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
    weight = A.dtype.type(1) if w is None else w
    if np.ndim(weight) and len(weight) != A.shape[1]:
        raise ValueError(f"a vector of length {len(weight)} does not fit points of {A.shape[1]} features.")
    with np.errstate(all="ignore"):  # points beyond 1e154 are infinitely far from others
        c = centre(B)
        a = (A - c) * weight
        b = a if A is B else (B - c) * weight
        norms = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)
        D = norms - 2 * (row_products(a, b.T) if by_rows else a @ b.T)
        close = np.flatnonzero(~(D >= CANCELLATION[D.dtype.name] * norms))  # NaN too, of infinite norms
        i, j = divmod(close, max(1, len(B)))
        step = max(1, _ENTRIES // max(1, A.shape[1]))
        for low in range(0, len(i), step):
            some = i[low : low + step], j[low : low + step]
            D[some] = (((A[some[0]] - B[some[1]]) * weight) ** 2).sum(axis=1)
    return D


class _PairwiseOp(Op):
    """An Op of two matrices of points, (m, d) and (n, d), and of one more array or none, in one floating type."""

    def _node(self, inputs, shape):
        register()
        inputs = [pt.as_tensor(v) for v in inputs]
        dtype = "float64" if "float64" in {v.dtype for v in inputs} else "float32"
        inputs = [v.astype(dtype) for v in inputs]
        return Apply(self, inputs, [pt.tensor(dtype=dtype, shape=shape(*inputs))])


class SquaredDistances(_PairwiseOp):
    """D_ij = |a_i - b_j|^2 for the rows of two matrices; with weights (d,), sum_k ((a_ik - b_jk) w_k)^2."""

    __props__ = ("is_weighted",)

    def __init__(self, is_weighted: bool = False):
        self.is_weighted = is_weighted
        self.gufunc_signature = "(m,d),(n,d),(d)->(m,n)" if is_weighted else "(m,d),(n,d)->(m,n)"

    def make_node(self, *inputs):
        """Make the node of A, B and, with weights, w; all get the widest of their floating types."""
        return self._node(inputs, lambda A, B, *w: (A.type.shape[0], B.type.shape[0]))

    def perform(self, node, inputs, outputs):
        """Compute in NumPy."""
        outputs[0][0] = squared_distances(*(np.ascontiguousarray(x) for x in inputs))

    def pullback(self, inputs, outputs, cotangents):
        """Return 2 w_k^2 sum_j G_ij (a_ik - b_jk), the same for B, and 2 w_k sum_ij G_ij (a_ik - b_jk)^2.

        The first two are products of matrices, of points around their mean.
        """
        (A, B, *weights), (G,) = inputs, cotangents
        c = disconnected_grad(B.mean(axis=0))
        a, b = A - c, B - c
        by_A, by_B = a * G.sum(axis=1)[:, None] - pt.dot(G, b), b * G.sum(axis=0)[:, None] - pt.dot(G.T, a)
        if not weights:
            return [2 * by_A, 2 * by_B]
        (w,) = weights
        return [2 * w**2 * by_A, 2 * w**2 * by_B, 2 * w * FeatureMoments()(A, B, G)]


def feature_moments(A: Array, B: Array, G: Array) -> Array:
    """Return sum_ij G_ij (a_ik - b_jk)^2 for each feature k, by differences.

    Parameters
    ----------
    A, B : ndarray
        The points (m, d) and (n, d).
    G : ndarray
        The factors (m, n).

    Returns
    -------
    ndarray
        The vector (d,).

    Examples
    --------
    >>> feature_moments(np.array([[1.0, 0.0]]), np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([[1.0, 10.0]])).tolist()
    [4.0, 41.0]
    """
    step, found = max(1, _ENTRIES // max(1, len(B))), np.zeros(A.shape[1])
    for low in range(0, len(A), step):
        rows = slice(low, low + step)
        for k in range(A.shape[1]):
            found[k] += (G[rows] * (A[rows, None, k] - B[:, k]) ** 2).sum()
    return found.astype(A.dtype)


class FeatureMoments(_PairwiseOp):
    """M_k = sum_ij G_ij (a_ik - b_jk)^2 for the rows of two matrices: the derivatives of weighted squared distances.

    Products of matrices would cancel: |a_i|^2 + |b_j|^2 - 2 a_i.b_j has no digits of a sum over near points that are
    far from the centre.
    """

    __props__ = ()
    gufunc_signature = "(m,d),(n,d),(m,n)->(d)"

    def make_node(self, A, B, G):
        """Make the node; the inputs get the widest of their floating types."""
        return self._node([A, B, G], lambda A, B, G: A.type.shape[1:])

    def perform(self, node, inputs, outputs):
        """Compute in NumPy."""
        outputs[0][0] = feature_moments(*inputs)

    def pullback(self, inputs, outputs, cotangents):
        """Return the gradient of the sum over all triples (i, j, k)."""
        (A, B, G), (v,) = inputs, cotangents
        differences = A[:, None, :] - B[None, :, :]
        by_A = 2 * v * (G[:, :, None] * differences).sum(axis=1)
        by_B = -2 * v * (G[:, :, None] * differences).sum(axis=0)
        return [by_A, by_B, (v * differences**2).sum(axis=2)]
