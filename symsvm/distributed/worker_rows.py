"""What a worker holds: some of the points, the kernel's numbers for them, and their part of a run's vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.distributed.blocks import BlockSummary, as_points, row_squares, row_sums, stack, summarise
from symsvm.distributed.worker_run import WorkerMatrix, WorkerRun
from symsvm.objectives import QuadraticProgram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from symsvm._lib.types import Array
    from symsvm.kernels import Kernel

__all__ = ["Rows"]

# Rows of which differences are in memory at a time.
_ROWS = 2**16


class Rows:
    """Some of the points of a collection, and what is computed for them.

    Parameters
    ----------
    blocks : sequence
        Arrays, CSR matrices or data frames, or objects whose method `load` returns one, or points and labels. They
        are put one below another.
    """

    def __init__(self, blocks: Sequence[Any]) -> None:
        loaded = [block.load() if hasattr(block, "load") else block for block in blocks]
        pairs = [block if isinstance(block, tuple) else (block, None) for block in loaded]
        self._blocks, self._labels = [as_points(X) for X, _ in pairs], [y for _, y in pairs]
        self._summaries = [
            summarise(X)._replace(is_open=getattr(block, "is_open", False), has_labels=y is not None)
            for block, X, y in zip(blocks, self._blocks, self._labels, strict=True)
        ]
        self._X: Any = None
        self._matrices: dict[int, WorkerMatrix] = {}
        self._runs: dict[int, WorkerRun] = {}

    def summaries(self) -> list[BlockSummary]:
        """Return what each block is.

        Returns
        -------
        list of BlockSummary
            One for each block.
        """
        return self._summaries

    def unite(self, dtype: str, is_sparse: bool, width: int) -> None:
        """Put the blocks together, all in one form, which is that of the whole collection.

        Parameters
        ----------
        dtype : str
            The type of the numbers.
        is_sparse : bool
            Whether they are CSR.
        width : int
            The number of columns.
        """
        blocks, self._blocks = self._blocks, []
        self._X = stack([block for block in blocks if block.shape[0]], dtype, is_sparse, width)

    def labels(self) -> Array:
        """Return the labels that came with the points.

        Returns
        -------
        array
            The labels.
        """
        return np.concatenate([np.asarray(y) for y in self._labels])

    def take(self, rows: Array) -> Any:
        """Return some of the points.

        Parameters
        ----------
        rows : array of int
            Which.

        Returns
        -------
        array or CSR matrix
            The points.
        """
        return self._X[rows]

    def sums(self) -> Array:
        """Return `row_sums` of the points.

        Returns
        -------
        array
            The sums.
        """
        return row_sums(self._X)

    def squares(self, mean: float) -> Array:
        """Return `row_squares` of the points.

        Parameters
        ----------
        mean : float
            What is subtracted.

        Returns
        -------
        array
            The sums.
        """
        cuts = range(0, max(1, self._X.shape[0]), _ROWS)
        return np.concatenate([row_squares(self._X[i : i + _ROWS], mean) for i in cuts])

    def call(self, method: str, estimator: Any) -> Any:
        """Call a method of a fitted estimator for the points.

        Parameters
        ----------
        method : str
            `predict`, `decision_function` and the like.
        estimator : object
            The estimator.

        Returns
        -------
        array
            Its result.
        """
        return getattr(estimator, method)(self._X)

    # ---- products

    def prepare(self, matrix: int, kernel: Kernel, mode: Any, as_sparse: bool, centres: dict[int, Array]) -> None:
        """Evaluate what a kernel needs of each point.

        Parameters
        ----------
        matrix : int
            The number of the kernel matrix.
        kernel : Kernel
            The kernel.
        mode : str or None
            The backend.
        as_sparse : bool
            Whether points are stored as CSR for it.
        centres : dict
            What float32 subtracts, from all points together.
        """
        self._matrices[matrix] = WorkerMatrix(kernel, self._X, mode, as_sparse, centres)

    def product(
        self, matrix: int, rows: Array, d: Array, points: Any, exact: bool, out: Array | None = None
    ) -> tuple[Array, int]:
        """Return sum_j K(x_i, z_j) d_j over the points z_j, for some rows i, added to `out`.

        Parameters
        ----------
        matrix : int
            The number of the kernel matrix.
        rows : array of int
            The rows.
        d, points : array
            The factors and the points.
        exact : bool
            Whether to compute in float64.
        out : array, optional
            What to add to.

        Returns
        -------
        tuple of (array, int)
            The sums, and the number of values.
        """
        total = np.zeros(len(rows)) if out is None else out
        self._matrices[matrix].columns(points, exact).matvec(d, rows, None, total)
        return total, len(rows) * len(d)

    # ---- the vectors of a run

    def begin(self, run: int, matrix: int, rows: Array, bounds: tuple[Array, ...], total: Array) -> None:
        """Begin a run over some of the points.

        Parameters
        ----------
        run : int
            Its number.
        matrix : int
            The number of the kernel matrix.
        rows : array of int
            The points, in the order that they have in the program.
        bounds : tuple of array
            p, lower, upper, group and diagonal of their variables.
        total : array
            The totals of the program.
        """
        p, lower, upper, group, diagonal = bounds
        program = QuadraticProgram(p, lower, upper, len(rows), group, total, diagonal)
        self._runs[run] = WorkerRun(program, self._matrices[matrix], rows)

    def apply(self, run: int, steps: Sequence[tuple[str, tuple[Any, ...]]]) -> tuple[list[Any], Array]:
        """Take steps of a run one after another.

        Parameters
        ----------
        run : int
            Its number.
        steps : sequence of (name, arguments)
            Methods of the run.

        Returns
        -------
        tuple of (list, array)
            Their results, and the number of kernel values that were computed in float32 and in float64.
        """
        own = self._runs[run]
        before = own.matrix.entries.copy()
        results = [getattr(own, name)(*args) for name, args in steps]
        return results, own.matrix.entries - before

    def end(self, run: int) -> None:
        """Forget a run.

        Parameters
        ----------
        run : int
            Its number.
        """
        self._runs.pop(run, None)

    def forget(self, matrix: int) -> None:
        """Forget a kernel matrix.

        Parameters
        ----------
        matrix : int
            Its number.
        """
        self._matrices.pop(matrix, None)
