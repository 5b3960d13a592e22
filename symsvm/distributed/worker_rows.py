"""What a worker holds: some of the points, the kernel's numbers for them, and their part of a run's vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from symsvm.distributed.point_blocks import BlockSummary, as_points, row_squares, row_sums, stack, summary
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.objectives import QuadraticProgram
from symsvm.solvers.decomposition.vectors import LocalVectors, largest

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
            summary(X)._replace(is_open=getattr(block, "is_open", False), has_labels=y is not None)
            for block, X, y in zip(blocks, self._blocks, self._labels, strict=True)
        ]
        self._X: Any = None
        self._matrices: dict[int, _Matrix] = {}
        self._runs: dict[int, _Run] = {}

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
        self._matrices[matrix] = _Matrix(kernel, self._X, mode, as_sparse, centres)

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
        self._runs[run] = _Run(program, self._matrices[matrix], rows)

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


class _Matrix:
    """The numbers of a kernel for the rows; columns come from elsewhere."""

    def __init__(self, kernel, X, mode, as_sparse, centres):
        self._as_sparse, self._centres, self._kernel, self._mode = as_sparse, centres, kernel, mode
        self._evaluators = {dtype: KernelEvaluator(kernel, dtype=dtype, mode=mode) for dtype in ("float64", "float32")}
        with np.errstate(over="ignore", invalid="ignore"):
            self._exact: Any = self._square(X)
            self._fast: Any = self._evaluators["float32"].like(self._exact, centres)

    def _square(self, X):
        X = X.astype("float64", copy=False)
        return self._evaluators["float64"].square(sparse.csr_matrix(X) if self._as_sparse else X)

    def columns(self, points, exact):
        """The matrix between the rows and these points."""
        with np.errstate(over="ignore", invalid="ignore"):
            columns: Any = self._square(points)
            if exact:
                return self._exact.across(columns)
            return self._fast.across(self._evaluators["float32"].like(columns, self._centres))


class _Columns:
    """The matrix of a run: its rows, and points that visit as columns 0, 1, ... of the next product."""

    def __init__(self, matrix, rows):
        self._matrix, self._rows, self._visitors, self._made = matrix, rows, None, {}
        self.m, self.entries = len(rows), np.zeros(2, "int64")  # in float32, and in float64

    def visit(self, points):
        """Let these points be the columns."""
        self._visitors, self._made = points, {}

    def product(self, q, rows, columns, out, *, exact):
        """Add sum_j K(x_i, z_j) q_j over the chosen j to an array."""
        if exact not in self._made:
            self._made[exact] = self._matrix.columns(self._visitors, exact)
        own = self._rows if rows is None else self._rows[rows]
        self.entries[int(exact)] += len(own) * len(columns)
        with np.errstate(over="ignore", invalid="ignore"):
            self._made[exact].matvec(q, own, columns, out)


class _Run:
    """A part of the vectors of a run; indices are those of this part. What the coordinator needs is returned."""

    def __init__(self, program, matrix, rows):
        self.qp, self.matrix = program, _Columns(matrix, rows)
        own: Any = self.matrix
        self._vectors: Any = LocalVectors(program, own)
        self._saved = {}

    def put(self, z):
        self._vectors.put(z)

    def move(self, variables, values):
        self._vectors.move(variables, values)

    def recompute(self, d, points, seconds):
        import time

        columns = self._columns(d, points)
        return self._vectors.recompute(d, columns, time.perf_counter() + seconds)

    def add(self, d, points, exact):
        self._vectors.add(d, self._columns(d, points), exact=exact)

    def add_outside(self, d, points, inside, change, exact):
        self._vectors.add_outside(d, self._columns(d, points), inside, change, exact=exact)
        return self._vectors.products(inside)

    def add_to_dropped(self, time, d, points, exact):
        self._vectors.add_to_dropped(time, d, self._columns(d, points), exact=exact)

    def write_products(self, points, values):
        self._vectors.write_products(points, values)

    def activate(self):
        self._vectors.activate()

    def shrink(self, least, most, margin):
        self._vectors.shrink(least, most, margin)
        active = self._vectors.active
        return active.n_variables, active.n_points, active.n_bounded

    def save(self, token):
        self._saved[token] = self._vectors.save()

    def restore(self, token):
        self._vectors.restore(self._saved[token])

    def forget(self, token):
        self._saved.pop(token, None)

    def survey(self):
        return tuple(self._vectors.survey()), self._vectors.is_finite()

    def gap(self, b):
        return self._vectors.gap(b)

    def violators(self, least, most, floor):
        """The free variables and the candidates of both sides, each with its F: scores are computed from these."""
        free, up, _, low, _ = self._vectors.violators(least, most, floor)
        found = []
        for variables in (free, up, low):
            found += [variables.astype("int32"), self._vectors.gradient(variables)]
        return found

    def worst(self, b, size):
        """The active variables with the largest |F + b|, and these numbers."""
        vectors, qp = self._vectors, self.qp
        active = vectors.active.variables
        F = np.abs(vectors.F[active] + (b[qp.group[active]] if len(b) else 0.0))
        some = largest(F, size)
        return active[some], F[some]

    def active(self):
        return self._vectors.active.variables.astype("int32"), self._vectors.active.points.astype("int32")

    def gradient(self, variables):
        return self._vectors.gradient(variables)

    def products(self, points):
        return self._vectors.products(points)

    def largest_product(self):
        return self._vectors.largest_product()

    def _columns(self, d, points):
        self.matrix.visit(points)
        return np.arange(len(d))  # none if there are no points
