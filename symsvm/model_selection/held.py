"""Held: the kernel between all points of a search, for every fold and every C."""

import threading

import numpy as np

from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.evaluation.local import LocalKernelMatrix
from symsvm.kernels import Precomputed

__all__ = ["HeldMatrix", "HeldPoints", "bytes_of"]

# Points of which everything is computed in float64, as `LocalKernelMatrix` does.
_FEW = 256
# Rows that are computed together.
_ROWS = 256
# Compiled functions of PyTensor are not made for two threads.
_BUILDING = threading.Lock()


def bytes_of(m):
    """The bytes that a search over m points takes for one matrix, with a working set of it in float32."""
    return 12 * m * m


class HeldMatrix:
    """K(x_i, x_j) of all points in float64, computed once: folds train and are judged on parts of it.

    Parameters
    ----------
    X : points (m, d), dense or CSR, float64.
    room : an array of at least m^2 numbers to write the matrix to; memory that was used before is cheaper.
    """

    def __init__(self, kernel, X, room):
        from symsvm.evaluation.symmetric_loops import mirror_columns  # Numba is loaded when it is first needed

        m = X.shape[0]
        self.kernel = kernel
        self.width = X.nnz / m if hasattr(X, "tocsr") else X.shape[1]
        self.K = room[: m * m].reshape(m, m)
        with _BUILDING:
            kernel.check_points(X)
            pairs = KernelEvaluator(kernel).between(X, X)
            for low in range(0, m, _ROWS):  # what is left of the diagonal is enough
                high = min(m, low + _ROWS)
                pairs.block(np.arange(low, high), np.arange(high), self.K[low:high])
                mirror_columns(self.K, low, high, 0, low)
        if not np.isfinite(np.diagonal(self.K)).all():
            raise ValueError(f"the kernel {kernel!r} is not finite on these points: scale X.")

    def part(self, rows):
        """The Gram matrix of some of the points."""
        return _Part(self, rows)

    def values(self, rows, columns, coef):
        """sum_j K(x_i, x_j) coef_j for the chosen i and j; coef may have several columns."""
        from symsvm.model_selection.matrix_loops import add_rows, gather

        if coef.size == len(columns):
            total = np.zeros(len(rows))
            add_rows(self.K, *_runs(rows), columns, np.ravel(coef), total)
            return total.reshape(len(rows), *coef.shape[1:])
        K = np.empty((len(rows), len(columns)))
        gather(self.K, rows, columns, K)
        return K @ coef


def _runs(rows):
    """The ends of runs of consecutive numbers."""
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    return rows[np.append(0, breaks)], rows[np.append(breaks, len(rows)) - 1] + 1


class _Part:
    """The Gram matrix of some of the points of a `HeldMatrix`, a `KernelMatrix`."""

    entries = 0  # none is computed any more

    def __init__(self, held, rows):
        self._held, self._rows, self._runs, self.m = held, rows, _runs(rows), len(rows)
        self.kernel, self.X, self.width = Precomputed(held.K), rows[:, None], held.width
        self.is_exact = self.m <= _FEW

    def block(self, rows, columns, out):
        """Write K of the chosen points to the first columns of `out`, in its type."""
        from symsvm.model_selection.matrix_loops import gather

        gather(self._held.K, self._rows[rows], self._rows[columns], out)

    def whole(self, out):
        """Write all of it to the first rows and columns of `out`, in its type."""
        from symsvm.model_selection.matrix_loops import copy

        copy(self._held.K, self._rows, *self._runs, out)

    def product(self, q, rows, columns, out, *, exact):
        """Add sum_j K(x_i, x_j) q_j over the chosen j to `out`, for the chosen i (all if `rows` is None)."""
        from symsvm.model_selection.matrix_loops import add_products, add_rows

        columns = self._rows[columns]
        if rows is None:
            add_rows(self._held.K, *self._runs, columns, q, out)
        else:
            add_products(self._held.K, self._rows[rows], columns, q, out)


class HeldPoints:
    """The same without a matrix, for more points than the memory is for: rows of working sets are kept at least."""

    def __init__(self, kernel, X):
        self.kernel, self.X = kernel, X
        kernel.check_points(X)

    def part(self, rows):
        """The Gram matrix of some of the points."""
        return LocalKernelMatrix(self.kernel, self.X[rows])

    def values(self, rows, columns, coef):
        """sum_j K(x_i, x_j) coef_j for the chosen i and j; coef may have several columns."""
        return KernelEvaluator(self.kernel).matvec(self.X[rows], self.X[columns], coef)
