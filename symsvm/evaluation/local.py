"""Gram: the kernel between the points of a problem, for as many programs over them as one likes."""

import functools
import itertools

import numpy as np

from symsvm.compiler.lifting import MEMORY
from symsvm.evaluation.evaluator import KernelEvaluator

__all__ = ["LocalKernelMatrix"]


def _quiet():
    """Values beyond a type's range are infinite: who asked for them looks."""
    return np.errstate(over="ignore", invalid="ignore")


class LocalKernelMatrix:
    """K(x_i, x_j) of one set of points: blocks and products, in float32 to work with and in float64 to believe.

    Attributes
    ----------
    m : the number of points.
    width : the number of features that an entry costs.
    entries : how many values of the kernel were computed so far.
    is_exact : whether all is float64, for the points are so few that the whole matrix is computed at the first call.
    """

    def __init__(self, kernel, X, *, mode=None):
        self.kernel, self.X, self._mode = kernel, X, mode
        self.m, self.entries = X.shape[0], 0
        self._points = _thinned(X)
        self.width = self._points.nnz / self.m if hasattr(self._points, "tocsr") else X.shape[1]
        self.is_exact = self.m <= _FEW
        self._held, self._starts = [], None
        # A working set that a next program over the same points may go on with; see `path`.
        self.keeps, self.kept = False, None

    @functools.cached_property
    def _fast(self):
        with _quiet():
            return KernelEvaluator(self.kernel, dtype="float32", mode=self._mode).like(self._exact)

    @functools.cached_property
    def _exact(self):
        with _quiet():
            return KernelEvaluator(self.kernel, mode=self._mode).between(self._points, self._points)

    @functools.cached_property
    def _matrix(self):
        every, K = np.arange(self.m), np.empty((self.m, self.m))
        self._exact.block(every, every, K)
        self.entries += K.size
        return K

    def _pairs(self, dtype):
        return self._fast if dtype == "float32" else self._exact

    def hold(self, starts, memory=MEMORY):
        """Compute K inside parts of the points once, in float32, or all of it in float64; it is read off from then on.

        `starts` are the indices at which the parts begin, those of classes for example: a problem of two classes needs
        the matrix of each, as others with one of them do, and the block between them, which none of the others needs.
        Nothing is held where it would take more bytes than `memory`; nor where all points are one part, of which
        problems may need a few rows only, and features are so few that a value is as soon computed as read.
        """
        self.is_exact = self.m <= _FEW or (self.m <= _MANY and 2 * self.m <= _FEW * len(starts))
        sizes = np.diff([*starts, self.m])
        if self.is_exact or 4 * (sizes**2).sum() > memory or (len(starts) == 1 and self.width < _DEAR):
            return
        for low, high in zip(starts, [*starts[1:], self.m], strict=True):
            K = np.empty((high - low, high - low), "float32")
            for i in range(low, high, _ROWS):
                rows = np.arange(i, min(high, i + _ROWS))
                self._pairs("float32").block(rows, np.arange(low, rows[-1] + 1), K[i - low : rows[-1] + 1 - low])
            self.entries += (high - low) * (high - low + 1) // 2
            self._held.append(K)
        self._starts = np.asarray(starts)

    def among(self, points):
        """The Gram matrix of some of the points, which shares what this one holds."""
        return _Part(self, np.asarray(points))

    @_quiet()
    def block(self, rows, columns, out):
        """Write K of the chosen points to the first columns of `out`, in its type."""
        if self.is_exact:
            out[:, : len(columns)] = self._matrix[rows[:, None], columns]
            return
        if not self._held or out.dtype != "float32":
            self.entries += len(rows) * len(columns)
            self._pairs(out.dtype).block(rows, columns, out)
            return
        from symsvm.evaluation.loops import gather

        for part, some, these in self._pieces(rows, columns):
            if part is not None:
                start = self._starts[part]
                gather(self._held[part], rows[some] - start, columns[these] - start, out[some, these])
                continue
            self.entries += len(rows[some]) * len(columns[these])
            if these.start == 0:
                self._fast.block(rows[some], columns[these], out[some])
            else:
                out[some, these] = self._fast.block(rows[some], columns[these])

    @_quiet()
    def product(self, q, rows, columns, out, *, exact):
        """Add sum_j K(x_i, x_j) q_j over the chosen j to `out`, for the chosen i (all if `rows` is None)."""
        if self.is_exact:
            out += (self._matrix[:, columns] if rows is None else self._matrix[rows[:, None], columns]) @ q
            return
        if not self._held or exact:
            self.entries += (self.m if rows is None else len(rows)) * len(columns)
            (self._exact if exact else self._fast).matvec(q, rows, columns, out)
            return
        from symsvm.evaluation.loops import held_product

        rows = np.arange(self.m) if rows is None else rows
        for part, some, these in self._pieces(rows, columns):
            total = out[some]  # a view
            if part is None:
                self.entries += len(total) * len(columns[these])
                self._fast.matvec(q[these], rows[some], columns[these], total)
            else:
                start = self._starts[part]
                held_product(self._held[part], rows[some] - start, columns[these] - start, q[these], total)

    def _pieces(self, rows, columns):
        """Slices of rows and columns that are in one part each: (the part if it is the same, the slices)."""
        runs = []
        for index in (rows, columns):
            parts = np.searchsorted(self._starts, index, side="right") - 1
            cuts = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(index)]
            runs.append([(parts[low], slice(low, high)) for low, high in itertools.pairwise(cuts) if low < high])
        for (a, some), (b, these) in itertools.product(*runs):
            yield a if a == b else None, some, these


def _thinned(X):
    """The points as CSR where most features of dense ones are 0: sums then run over the others."""
    if hasattr(X, "tocsr") or X.shape[1] < _WIDE or np.count_nonzero(X) > _FULL * X.size:
        return X
    from scipy.sparse import csr_matrix

    return csr_matrix(X)


class _Part:
    """The Gram matrix of some of the points of another."""

    keeps, kept = False, None

    def __init__(self, whole, points):
        self._whole, self._points, self.m, self.width = whole, points, len(points), whole.width
        self.is_exact = whole.is_exact

    @property
    def entries(self):
        return self._whole.entries

    @property
    def kernel(self):
        return self._whole.kernel

    @property
    def X(self):
        return self._whole.X[self._points]

    def block(self, rows, columns, out):
        self._whole.block(self._points[rows], self._points[columns], out)

    def product(self, q, rows, columns, out, *, exact):
        rows = self._points if rows is None else self._points[rows]
        self._whole.product(q, rows, self._points[columns], out, exact=exact)


# Features from which on sparse loops may pay, and the part of them that may be other than 0.
_WIDE, _FULL = 64, 0.25
# Points of a problem whose whole matrix takes no time in float64, and points of many such problems together.
_FEW, _MANY = 256, 2048
# Features from which on a value is dearer than a look at one that is held.
_DEAR = 96
# Rows that are computed together.
_ROWS = 1024
