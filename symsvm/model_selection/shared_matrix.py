"""Kernel matrices that the fits of a search share: cached or computed, their rows, and a pool of buffers."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm._lib.forks import fork_safe_lock
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.evaluation.local import SMALL_PROBLEM, LocalKernelMatrix
from symsvm.evaluation.symmetry import check_symmetric
from symsvm.kernels import Precomputed

if TYPE_CHECKING:
    from symsvm._lib.types import Array, Points
    from symsvm.kernels import Kernel

__all__ = ["BufferPool", "CachedGram", "SharedKernelMatrix", "UncachedGram", "gram_bytes", "is_computed_faster"]

# Rows that are computed together.
_ROWS = 256
# Features, entries of a sparse row, up to which a value is computed as fast as it is read from memory that other
# threads use too; for so many points at least, and so many of each class: small problems read some values many times.
_COMPUTED_FEATURES, _COMPUTED_POINTS, _COMPUTED_CLASS = 48, 2000, 500
# Two threads must not call one compiled function of PyTensor at the same time.
_COMPUTING = fork_safe_lock()


def gram_bytes(m: int, *, is_cached: bool = True) -> int:
    """Return the bytes that a search over m points needs for one matrix, and for a working set of it in float32."""
    return 12 * m * m if is_cached else 4 * m * m


def is_computed_faster(kernel: Kernel, X: Points, classes: int) -> bool:
    """Whether the fits of a search should compute the values of a kernel when they need them, and cache none.

    Parameters
    ----------
    kernel : Kernel
        The kernel, with its numbers.
    X : array or CSR of shape (m, d)
        The points.
    classes : int
        The number of classes, 1 if there are none.

    Returns
    -------
    bool
        True for many points of few features, and a kernel that has compiled loops.
    """
    if X.shape[0] < max(_COMPUTED_POINTS, classes * _COMPUTED_CLASS):  # pyright: ignore[reportOptionalSubscript]
        return False
    if _width(X) > _COMPUTED_FEATURES or isinstance(kernel, Precomputed):
        return False
    return KernelEvaluator(kernel).expression.form() is not None


def _width(X):
    """The features of a point, or the entries of a sparse row on average."""
    return X.shape[1] if isinstance(X, np.ndarray) else X.nnz / X.shape[0]


class BufferPool:
    """Arrays for matrices, used again and again: the first touch of fresh memory is slow."""

    def __init__(self) -> None:
        self._free, self._lock = [], threading.Lock()

    def take(self, n: int, dtype: str = "float64") -> Array:
        """Return an array of at least n^2 numbers."""
        with self._lock:
            for k, buffer in enumerate(self._free):
                if buffer.dtype == dtype and len(buffer) >= n * n:
                    return self._free.pop(k)
        return np.empty(n * n, dtype)

    def give_back(self, buffer: Array) -> None:
        """Give back an array that is no longer used."""
        with self._lock:
            self._free.append(buffer)


class CachedGram:
    """K(x_i, x_j) of all points of a search in float64, computed once: folds train and are scored on parts of it.

    Parameters
    ----------
    kernel : Kernel
        The kernel, with its numbers.
    X : array or CSR of shape (m, d)
        The points, in float64.
    buffer : array
        At least m^2 numbers, which the matrix is written to.
    """

    def __init__(self, kernel: Kernel, X: Points, buffer: Array) -> None:
        from symsvm.evaluation.symmetric_loops import mirror  # imports Numba, so only when it is used

        m = X.shape[0]  # pyright: ignore[reportOptionalSubscript] - SciPy's own types
        self.kernel = kernel
        self.width = _width(X)
        self.K = buffer[: m * m].reshape(m, m)
        with _COMPUTING:
            kernel.check_points(X)
            check_symmetric(kernel, X)
            evaluator = KernelEvaluator(kernel).between(X, X)
            for low in range(0, m, _ROWS):  # the lower triangle; the rest is mirrored
                high = min(m, low + _ROWS)
                evaluator.block(np.arange(low, high), np.arange(high), self.K[low:high])
                mirror(self.K, low, high)
        if not np.isfinite(np.diagonal(self.K)).all():
            raise ValueError(f"the kernel {kernel!r} is not finite on these points: scale X.")

    def submatrix(self, rows: Array) -> _CachedRows:
        """Return the kernel matrix of some of the points."""
        return _CachedRows(self, rows)

    def expand(self, rows: Array, columns: Array, coef: Array) -> Array:
        """Return sum_j K(x_i, x_j) coef_j for the chosen i and j; coef may have several columns."""
        from symsvm.model_selection.matrix_loops import add_run_products, gather

        if coef.size == len(columns):
            total = np.zeros(len(rows))
            add_run_products(self.K, *_runs(rows), columns, np.ravel(coef), total)
            return total.reshape(len(rows), *coef.shape[1:])
        K = np.empty((len(rows), len(columns)))
        gather(self.K, rows, columns, K)
        return K @ coef


def _runs(rows):
    """The starts and stops of runs of consecutive numbers."""
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    return rows[np.append(0, breaks)], rows[np.append(breaks, len(rows)) - 1] + 1


class _CachedRows:
    """The kernel matrix of some of the points of a `CachedGram`."""

    entries = 0  # the number of kernel values computed: they are cached

    def __init__(self, gram, rows):
        self._K, self._rows, self._runs, self.m = gram.K, rows, _runs(rows), len(rows)
        self.name, self.X, self.width = repr(gram.kernel), None, gram.width
        self.is_exact = self.m <= SMALL_PROBLEM

    def block(self, rows, columns, out):
        """Write K of the chosen points to the first columns of `out`, in its type."""
        from symsvm.model_selection.matrix_loops import gather

        gather(self._K, self._rows[rows], self._rows[columns], out)

    def diagonal(self, points):
        """Return K(x_i, x_i) for the chosen points."""
        here = self._rows[points]
        return self._K[here, here]

    def whole(self, out):
        """Write all of it to the first rows and columns of `out`, in its type."""
        from symsvm.model_selection.matrix_loops import copy_runs

        copy_runs(self._K, self._rows, *self._runs, out)

    def product(self, q, rows, columns, out, *, exact):
        """Add sum_j K(x_i, x_j) q_j over the chosen j to `out`, for the chosen i (all if `rows` is None)."""
        from symsvm.model_selection.matrix_loops import add_products, add_run_products

        columns = self._rows[columns]
        if rows is None:
            add_run_products(self._K, *self._runs, columns, q, out)
        else:
            add_products(self._K, self._rows[rows], columns, q, out)


class UncachedGram:
    """The same interface without a matrix: values are computed when they are needed, in the type that is asked for.

    This is faster where a value takes less time to compute than to read, and it takes no memory.
    """

    def __init__(self, kernel: Kernel, X: Points) -> None:
        self.kernel, self.X = kernel, X
        with _COMPUTING:
            kernel.check_points(X)
            check_symmetric(kernel, X)
            self._whole = LocalKernelMatrix(kernel, X)
            self._bind(self._whole)

    def submatrix(self, rows: Array) -> Any:
        """Return the kernel matrix of some of the points."""
        if len(rows) > SMALL_PROBLEM:
            return self._whole.submatrix(rows)
        with _COMPUTING:
            return self._bind(LocalKernelMatrix(self.kernel, self.X[rows]))

    def expand(self, rows: Array, columns: Array, coef: Array) -> Array:
        """Return sum_j K(x_i, x_j) coef_j for the chosen i and j; coef may have several columns."""
        return self._whole.expand(rows, columns, coef)

    @staticmethod
    def _bind(matrix):
        """Compute a value in both types: the only time that functions of PyTensor are called for a matrix."""
        first = np.zeros(1, dtype="int64")
        for dtype in ("float32", "float64"):
            matrix.block(first, first, np.empty((1, 1), dtype))
        return matrix


class SharedKernelMatrix:
    """The Gram matrix of one kernel, computed when the first fold needs it and released after the last one.

    Parameters
    ----------
    kernel : Kernel
        The kernel, with its numbers.
    X : array or CSR of shape (m, d)
        All points of the search, in float64.
    buffers : BufferPool or None
        The pool that gives the memory of the matrix; None if none is cached.
    is_computed : bool
        Whether no memory is needed, since values are computed as fast; see `is_computed_faster`.

    Attributes
    ----------
    folds : dict
        The cells that need the matrix, by fold.
    """

    def __init__(self, kernel: Kernel, X: Points, buffers: BufferPool | None, *, is_computed: bool = False) -> None:
        self.kernel, self.X, self.buffers, self.is_computed = kernel, X, buffers, is_computed
        self.folds, self._released = {}, 0
        self._gram, self._buffer, self._lock = None, None, threading.Lock()

    def gram(self) -> CachedGram | UncachedGram:
        """Return the matrix, computed in the first call."""
        from symsvm._lib.threads import waiting  # imports Numba, so only when it is used

        with contextlib.ExitStack() as stack:
            with waiting():
                stack.enter_context(self._lock)
            if self._gram is None and self.buffers is None:
                self._gram = UncachedGram(self.kernel, self.X)
            elif self._gram is None and self.buffers is not None:
                self._buffer = self.buffers.take(self.X.shape[0])  # pyright: ignore[reportOptionalSubscript]
                self._gram = CachedGram(self.kernel, self.X, self._buffer)
            assert self._gram is not None
            return self._gram

    def release(self) -> None:
        """Record that a fold is done with the matrix; after the last one its memory is given back."""
        with self._lock:
            self._released += 1
            if self._released == len(self.folds):
                self._drop()

    def drop(self) -> None:
        """Give the memory back although folds may need the matrix: it is then computed again."""
        with self._lock:
            self._drop()

    def _drop(self):
        self._gram, buffer, self._buffer = None, self._buffer, None
        if self.buffers is not None and buffer is not None:
            self.buffers.give_back(buffer)
