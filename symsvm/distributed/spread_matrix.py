"""The kernel matrix of points that live with workers: products where the rows are, blocks where the working set is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from symsvm.distributed.spread_vectors import SpreadVectors
from symsvm.evaluation.evaluator import KernelEvaluator

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from symsvm._lib.types import Array
    from symsvm.distributed.spread_points import SpreadPoints
    from symsvm.kernels import Kernel
    from symsvm.objectives import QuadraticProgram

__all__ = ["SpreadKernelMatrix"]

# Rows of the sample that float32's centre is the median of, and those of which a diagonal is read from a block.
_SAMPLE, _DIAGONAL_ROWS = 255, 16


class SpreadKernelMatrix:
    """The kernel matrix of points that live with workers, a `KernelMatrix` with the bits of `LocalKernelMatrix`.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    points : SpreadPoints
        The points.
    index : array of int, optional
        Some of them, in some order; all by default.
    mode : str or None
        The backend; loops that run elsewhere are those of Numba.

    Attributes
    ----------
    is_exact : bool
        False: work is in float32, confirmation in float64.
    """

    X = None
    is_exact = False

    def __init__(
        self, kernel: Kernel, points: SpreadPoints, index: Array | None = None, *, mode: str | None = None
    ) -> None:
        self.kernel, self.points, self.name = kernel, points, repr(kernel)
        self.index = np.arange(len(points)) if index is None else np.asarray(index)
        self.m, self.width, self.entries = len(self.index), points.width, 0
        self._evaluators = {dtype: KernelEvaluator(kernel, dtype=dtype, mode=mode) for dtype in ("float64", "float32")}
        step = -(-self.m // _SAMPLE)
        exact = self._evaluators["float64"]
        self.centres = exact.centres(exact.square(self._points(self.index[::step])))
        self.number = points.number()
        self._prepare = self.number, kernel, mode, points.as_sparse, self.centres
        points.team.call("prepare", *self._prepare)
        self._end = points.keep_up(lambda k, call: call("prepare", *self._prepare))
        self._held: Any = None

    def submatrix(self, rows: Array) -> Self:
        """Restrict the matrix to some of the points.

        Parameters
        ----------
        rows : array of int
            The indices of the points.

        Returns
        -------
        SpreadKernelMatrix
            Their kernel matrix.
        """
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        other.index, other.m, other._held = self.index[rows], len(rows), None
        return other

    def cache_blocks(self, starts: Any, memory: int = 0) -> None:
        """Do nothing: values are computed again by those who have the rows.

        Parameters
        ----------
        starts : sequence of int
            The indices at which blocks begin.
        memory : int
            Bytes that they might take.
        """

    def vectors(self, qp: QuadraticProgram, parameters: Any) -> SpreadVectors:
        """Return the vectors of a program over the matrix, which live with the rows.

        Parameters
        ----------
        qp : QuadraticProgram
            The program.
        parameters : Parameters
            The numbers that tune the run.

        Returns
        -------
        SpreadVectors
            The vectors.
        """
        return SpreadVectors(qp, self, parameters)

    def diagonal(self, points: Array) -> Array:
        """Return K(x_i, x_i) in float64 for the chosen points.

        Parameters
        ----------
        points : array of int
            The indices of points.

        Returns
        -------
        array of shape (len(points),)
            The values.
        """
        found = np.empty(len(points))
        for low in range(0, len(points), _DIAGONAL_ROWS):
            some = points[low : low + _DIAGONAL_ROWS]
            K = np.empty((len(some), len(some)))
            self.block(some, some, K)
            found[low : low + len(some)] = np.diagonal(K)
        return found

    def hold(self, points: Array) -> None:
        """Fetch points, and prepare blocks between them.

        Parameters
        ----------
        points : array of int
            The indices of points.
        """
        self._held = _Held(self, np.unique(points))

    def block(self, rows: Array, columns: Array, out: Array) -> None:
        """Write K between the chosen points to the first columns of an array, in its type.

        Parameters
        ----------
        rows, columns : array of int
            The indices of points.
        out : array of shape (len(rows), at least len(columns))
            Where to, float32 or float64.
        """
        held = self._held
        if held is None or not (held.has(rows) and held.has(columns)):
            held = _Held(self, np.union1d(rows, columns))
        self.entries += len(rows) * len(columns)
        with np.errstate(over="ignore", invalid="ignore"):
            held.matrix(str(out.dtype)).block(held.places(rows), held.places(columns), out)

    def product(self, q: Array, rows: Array | None, columns: Array, out: Array, *, exact: bool) -> None:
        """Add sum_j K(x_i, x_j) q_j over the chosen j to an array, for the chosen i, where these are.

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
        if not len(columns) or not len(out):
            return
        points, visitors = self.points, self._points(self.index[columns])
        wanted = self.index if rows is None else self.index[rows]
        owners = points.part[wanted]
        here = [np.flatnonzero(owners == k) for k in range(len(points.team))]
        arguments = [
            (self.number, points.row[wanted[some]].astype("int64"), q, visitors, exact, out[some])
            if len(some)
            else None
            for some in here
        ]
        for some, found in zip(here, points.team.call_each("product", arguments), strict=True):
            if found is not None:
                out[some] = found[0]
                self.entries += found[1]
                points.team.traffic.entries[int(exact)] += found[1]

    def visitors(self, columns: Array) -> Any:
        """Return the points with these indices, to be sent to all workers.

        Parameters
        ----------
        columns : array of int
            Their indices.

        Returns
        -------
        array or CSR matrix
            The points.
        """
        return self._points(self.index[columns])

    def close(self) -> None:
        """Let the workers forget the numbers of this kernel."""
        self._end()
        self.points.team.call("forget", self.number)

    def evaluate(self, points: Any) -> dict[str, Callable[[], Any]]:
        """Return functions that make the matrix between points and themselves, by its type.

        Parameters
        ----------
        points : array or CSR matrix
            The points.

        Returns
        -------
        dict
            A function for "float64" and one for "float32".
        """
        exact = self._evaluators["float64"].square(points)
        return {
            "float64": lambda: exact,
            "float32": lambda: self._evaluators["float32"].like(exact, self.centres),
        }

    def _points(self, indices: Array) -> Any:
        """Copies of points in float64, as the kernel takes them."""
        X = self.points.take(indices).astype("float64", copy=False)
        return sparse.csr_matrix(X) if self.points.as_sparse else np.require(X, requirements=["C", "W"])


class _Held:
    """Points that blocks are asked of."""

    def __init__(self, whole, points):
        self._points, self._made = points, {}
        with np.errstate(over="ignore", invalid="ignore"):
            self._make = whole.evaluate(whole.visitors(points))

    def has(self, points):
        """Whether all of these are among them."""
        places = np.searchsorted(self._points, points)
        return not len(points) or bool((self._points[np.minimum(places, len(self._points) - 1)] == points).all())

    def places(self, points):
        """Where these are among them."""
        return np.searchsorted(self._points, points)

    def matrix(self, dtype):
        """The matrix between them."""
        if dtype not in self._made:
            self._made[dtype] = self._make[dtype]()
        return self._made[dtype]
