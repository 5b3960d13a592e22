"""Gram: the kernel between the points of a problem, for as many programs over them as one likes."""

import functools

import numpy as np

from symsvm.oracle import Oracle

__all__ = ["Gram"]


class Gram:
    """K(x_i, x_j) of one set of points: blocks and products, in float32 to work with and in float64 to believe.

    Attributes
    ----------
    m : the number of points.
    entries : how many values of the kernel were computed so far.
    """

    def __init__(self, kernel, X, *, mode=None):
        self.kernel, self.X, self._mode = kernel, X, mode
        self.m, self.entries = X.shape[0], 0
        self._held = None

    @functools.cached_property
    def _fast(self):
        X = self.X.astype("float32")
        return Oracle(self.kernel, dtype="float32", mode=self._mode).pairs(X, X)

    @functools.cached_property
    def _exact(self):
        return Oracle(self.kernel, mode=self._mode).pairs(self.X, self.X)

    def _pairs(self, dtype):
        return self._fast if dtype == "float32" else self._exact

    def block(self, rows, columns, out):
        """Write K of the chosen points to the first columns of `out`, in its type."""
        if self._held is not None and out.dtype == "float32":
            out[:, : len(columns)] = self._held[np.ix_(rows, columns)]
            return
        self.entries += len(rows) * len(columns)
        self._pairs(out.dtype).block(rows, columns, out)

    def product(self, q, rows, columns, out, *, exact):
        """Add sum_j K(x_i, x_j) q_j over the chosen j to `out`, for the chosen i (all if `rows` is None)."""
        if self._held is not None and not exact:
            K = self._held[:, columns] if rows is None else self._held[np.ix_(rows, columns)]
            out += K @ q.astype("float32")
            return
        self.entries += (self.m if rows is None else len(rows)) * len(columns)
        (self._exact if exact else self._fast).matvec(q, rows, columns, out)
