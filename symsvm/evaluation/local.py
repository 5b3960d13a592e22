"""The kernel matrix of points in memory: blocks and products by tiles, diagonal blocks cached where that pays."""

from __future__ import annotations

import functools
import itertools
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.compiler.lifting import MEMORY
from symsvm.evaluation.derived_matrices import SubMatrix
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.evaluation.thin_points import sparse_if_thin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from symsvm._lib.types import Array, Points
    from symsvm.kernels import Kernel

__all__ = ["SMALL_PROBLEM", "LocalKernelMatrix", "PairMatrix"]

# Points of a problem whose whole matrix takes no time in float64.
SMALL_PROBLEM = 640
# Points of many such problems together.
_SMALL_PROBLEMS = 2560
# Features from which on computing a value takes longer than reading one from memory.
_CACHE_FEATURES = 96
# Rows that are computed together, and those of which the diagonal is read from a block.
_ROWS, _DIAGONAL_ROWS = 1024, 16


def _ignore_overflow():
    """Let values beyond a type's range be infinite; the caller checks them."""
    return np.errstate(over="ignore", invalid="ignore")


class PairMatrix:
    """The matrix H(r_i, r_j) of rows in memory, a `KernelMatrix`: work in float32, confirmation in float64.

    Of few rows the whole matrix is computed at the first call, and all is float64 (`is_exact`).

    Parameters
    ----------
    evaluator : callable
        The function of a floating type that returns the `PairEvaluator` for it.
    rows : tuple of array
        The arrays of rows, one for each input of the expression.
    name : str
        What the matrix is of, for messages.
    """

    X: Any

    def __init__(self, evaluator: Callable[[str], Any], rows: Any, name: str):
        self._evaluator, self._rows, self.name = evaluator, rows, name
        arrays = rows if isinstance(rows, tuple) else (rows,)
        points = [array for array in arrays if np.ndim(array) == 2 or hasattr(array, "tocsr")]
        self.X = points[0] if len(arrays) == 1 and points else None
        self.m, self._counts = np.shape(arrays[0])[0], {}
        self.width = sum(_features(array) for array in arrays)
        self.is_exact = self.m <= SMALL_PROBLEM
        self._blocks, self._starts = [], np.zeros(0, dtype="int64")  # cached diagonal blocks, and where they begin

    @property
    def entries(self) -> int:
        """The values that the calling thread has had computed: others may solve problems over the same points."""
        return self._counts.get(threading.get_ident(), 0)

    def _count(self, n):
        thread = threading.get_ident()
        self._counts[thread] = self._counts.get(thread, 0) + n

    @functools.cached_property
    def _fast(self):
        with _ignore_overflow():
            return self._evaluator("float32").like(self._exact)

    @functools.cached_property
    def _exact(self):
        with _ignore_overflow():
            return self._evaluator("float64").between(self._rows, self._rows)

    @functools.cached_property
    def _matrix(self) -> Array:
        every, K = np.arange(self.m), np.empty((self.m, self.m))
        self._exact.block(every, every, K)
        self._count(K.size)
        return K

    def dense(self) -> tuple[Array | None, Array]:
        """Return the whole matrix in float64, None if a value is not finite, and the rows of it that are the points.

        Only for an exact matrix, which is stored.

        Returns
        -------
        tuple of (array or None, array of int)
            K and the rows.
        """
        return self._finite_matrix, np.arange(self.m)

    @functools.cached_property
    @_ignore_overflow()
    def _finite_matrix(self) -> Array | None:
        return self._matrix if np.isfinite(self._matrix.sum()) else None

    @_ignore_overflow()
    def diagonal(self, points: Array) -> Array:
        """Return H(r_i, r_i) in float64 for the chosen points.

        Parameters
        ----------
        points : array of int
            The indices of points.

        Returns
        -------
        array of shape (len(points),)
            The values.
        """
        found, points = np.empty(len(points)), np.asarray(points)
        for low in range(0, len(points), _DIAGONAL_ROWS):
            some = points[low : low + _DIAGONAL_ROWS]
            K = np.empty((len(some), len(some)))
            self.block(some, some, K)
            found[low : low + len(some)] = np.diagonal(K)
        return found

    def cache_blocks(self, starts: Sequence[int] | Array, memory: int = MEMORY) -> None:
        """Compute diagonal blocks of K once, in float32, or all of K in float64, and read them from memory afterwards.

        Nothing is cached where all points are one block, of which problems may need a few rows only, and features are
        so few that a value is computed as fast as it is read.

        Parameters
        ----------
        starts : sequence of int
            The indices at which the blocks begin, those of classes for example: each problem of two classes needs the
            blocks of both, and the block between them, which no other problem needs.
        memory : int
            Bytes that the blocks may take; nothing is cached if they take more.
        """
        some = 2 * self.m <= SMALL_PROBLEM * len(starts)
        self.is_exact = self.m <= SMALL_PROBLEM or (self.m <= _SMALL_PROBLEMS and some)
        sizes = np.diff([*starts, self.m])
        if self.is_exact or 4 * (sizes**2).sum() > memory or (len(starts) == 1 and self.width < _CACHE_FEATURES):
            return
        for low, high in zip(starts, [*starts[1:], self.m], strict=True):
            K = np.empty((high - low, high - low), "float32")
            for i in range(low, high, _ROWS):
                rows = np.arange(i, min(high, i + _ROWS))
                self._fast.block(rows, np.arange(low, rows[-1] + 1), K[i - low : rows[-1] + 1 - low])
            self._count((high - low) * (high - low + 1) // 2)
            self._blocks.append(K)
        self._starts = np.asarray(starts)

    def submatrix(self, points: Array) -> SubMatrix:
        """Restrict the matrix to some of the points; the cache is shared.

        Parameters
        ----------
        points : array of int
            The indices of the points.

        Returns
        -------
        SubMatrix
            Their kernel matrix.
        """
        return SubMatrix(self, np.asarray(points))

    @_ignore_overflow()
    def block(self, rows: Array, columns: Array, out: Array) -> None:
        """Write K between the chosen points to the first columns of an array, in its type.

        Parameters
        ----------
        rows, columns : array of int
            The indices of points.
        out : array of shape (len(rows), at least len(columns))
            Where to, float32 or float64.
        """
        if self.is_exact:
            out[:, : len(columns)] = self._matrix[rows[:, None], columns]
            return
        if not self._blocks or out.dtype != "float32":
            self._count(len(rows) * len(columns))
            (self._fast if out.dtype == "float32" else self._exact).block(rows, columns, out)
            return
        from symsvm.evaluation.symmetric_loops import gather

        for part, some, these in self._pieces(rows, columns):
            if part is not None:
                start = self._starts[part]
                gather(self._blocks[part], rows[some] - start, columns[these] - start, out[some, these])
                continue
            self._count(len(rows[some]) * len(columns[these]))
            if these.start == 0:
                self._fast.block(rows[some], columns[these], out[some])
            else:
                out[some, these] = self._fast.block(rows[some], columns[these])

    @_ignore_overflow()
    def product(self, q: Array, rows: Array | None, columns: Array, out: Array, *, exact: bool) -> None:
        """Add sum_j K(x_i, x_j) q_j over the chosen j to an array, for the chosen i.

        Parameters
        ----------
        q : array of shape (len(columns),)
            The factors.
        rows : array of int or None
            The indices i, None for all points.
        columns : array of int
            The indices j.
        out : array of float64
            One entry for each i.
        exact : bool
            Whether the values must be float64; else they may be float32.
        """
        if not len(columns):
            return
        if self.is_exact:
            out += (self._matrix[:, columns] if rows is None else self._matrix[rows[:, None], columns]) @ q
            return
        if not self._blocks or exact:
            self._count((self.m if rows is None else len(rows)) * len(columns))
            (self._exact if exact else self._fast).matvec(q, rows, columns, out)
            return
        from symsvm.evaluation.symmetric_loops import gathered_product

        rows = np.arange(self.m) if rows is None else rows
        for part, some, these in self._pieces(rows, columns):
            total = out[some]  # a view
            if part is None:
                self._count(len(total) * len(columns[these]))
                self._fast.matvec(q[these], rows[some], columns[these], total)
            else:
                start = self._starts[part]
                gathered_product(self._blocks[part], rows[some] - start, columns[these] - start, q[these], total)

    @_ignore_overflow()
    def expand(self, rows: Array, columns: Array, coef: Array) -> Array:
        """Return sum_j K(x_i, x_j) coef_j for the chosen i and j, in float64.

        Parameters
        ----------
        rows, columns : array of int
            The indices i and j.
        coef : array of shape (len(columns),) or (len(columns), p)
            The factors.

        Returns
        -------
        array of shape (len(rows),) or (len(rows), p)
            The sums.
        """
        return self._exact.matvec(coef, rows, columns)

    def _pieces(self, rows: Array, columns: Array) -> Iterator[tuple[int | None, slice, slice]]:
        """Slices of rows and columns in one block each: (the block if it is the same, the slices)."""
        runs = []
        for index in (rows, columns):
            parts = np.searchsorted(self._starts, index, side="right") - 1
            cuts = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(index)]
            runs.append([(parts[low], slice(low, high)) for low, high in itertools.pairwise(cuts) if low < high])
        for (a, some), (b, these) in itertools.product(*runs):
            yield a if a == b else None, some, these


class LocalKernelMatrix(PairMatrix):
    """The kernel matrix of points in memory, a `PairMatrix` of one kernel.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : array or CSR matrix of shape (m, d)
        The points.
    mode : str or None
        The backend, "NUMBA" by default.
    """

    def __init__(self, kernel: Kernel, X: Points, *, mode: str | None = None):
        points = sparse_if_thin(X)
        super().__init__(lambda dtype: KernelEvaluator(kernel, dtype=dtype, mode=mode), points, repr(kernel))
        self.kernel, self.X = kernel, X


def _features(array: Any) -> float:
    """The entries of a row, on average where it is sparse."""
    if hasattr(array, "tocsr"):
        return array.nnz / max(1, array.shape[0])
    return np.size(array) / max(1, np.shape(array)[0])
