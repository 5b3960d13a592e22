"""A `KernelSource` that serves the fits of one fold from a shared Gram matrix, each started at the last solution."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from symsvm.estimators.kernel_estimator import KernelEstimator
from symsvm.estimators.kernel_source import KernelSource
from symsvm.kernels import Kernel
from symsvm.objectives import KernelDual
from symsvm.solvers import Decomposition
from symsvm.solvers.decomposition.parameters import DEFAULTS
from symsvm.solvers.decomposition.solve_problem import solve_dual
from symsvm.solvers.decomposition.working_set import WorkingSet, WorkingSetReuse, padded
from symsvm.solvers.registry import choose_solver

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from symsvm._lib.types import Array
    from symsvm.model_selection.shared_matrix import BufferPool, CachedGram, UncachedGram
    from symsvm.objectives import QuadraticProgram
    from symsvm.solvers import Solution

__all__ = ["CachedKernelSource", "FoldProblem", "RowPoints", "SearchStopped", "can_share"]


def can_share(estimator: Any) -> bool:
    """Whether fits of an estimator can share a Gram matrix; others are fitted independently.

    Excluded are estimators that fit others inside (calibration), that evaluate kernels themselves (functions, an
    intercept in the kernel, another backend), that draw a bar, that solve a problem several times (C = infinity), and
    that use another solver.
    """
    if not isinstance(estimator, KernelEstimator) or getattr(estimator, "calibration_method", None) is not None:
        return False
    if estimator.intercept_mode == "embedded" or estimator.mode is not None or estimator.verbose:
        return False
    if not isinstance(estimator.kernel, (str, Kernel)) or getattr(estimator, "C", 1.0) == np.inf:
        return False
    try:
        return isinstance(choose_solver(estimator.solver, KernelDual.problem), Decomposition)
    except (TypeError, ValueError):  # its fit will raise the error
        return False


class FoldProblem(NamedTuple):
    """A problem of a fit: its program, the rows of the Gram matrix that are its points, and its solution."""

    program: QuadraticProgram
    rows: Array
    solution: Solution


class SearchStopped(BaseException):
    """The search was stopped during a fit; not an error of the fit."""


class RowPoints:
    """Points of a search, given by their row numbers in its Gram matrix; estimators index them like an array."""

    dtype = np.dtype("float64")

    def __init__(self, rows: Array) -> None:
        self.rows = rows

    @property
    def shape(self) -> tuple[int, int]:
        """The number of points, and 1."""
        return len(self.rows), 1

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> RowPoints:
        return RowPoints(self.rows[index])


class CachedKernelSource(KernelSource):
    """Serves the fits of one fold from a Gram matrix; each problem of a fit starts at its solution in the last fit.

    The points that estimators see are `RowPoints`. The search has checked the points themselves.

    Parameters
    ----------
    gram : CachedGram or UncachedGram
        The kernel between all points of the search.
    rows : array of shape (m,)
        The training points of the fold.
    is_stopped : callable
        A function without arguments that returns whether to stop; a fit that it stops raises `SearchStopped`.
    buffers : BufferPool or None
        The pool that gives the memory of a working set of all variables, which `close` gives back.
    solutions : sequence of Solution
        Solutions of the same problems over another kernel, which the first fit starts at.

    Attributes
    ----------
    problems : list of FoldProblem
        The problems of the last fit, in their order.
    """

    def __init__(
        self,
        gram: CachedGram | UncachedGram,
        rows: Array,
        is_stopped: Callable[[], bool],
        buffers: BufferPool | None = None,
        solutions: Sequence[Solution] = (),
    ) -> None:
        self._gram, self._rows, self._is_stopped, self._buffers = gram, rows, is_stopped, buffers
        self._matrix = gram.submatrix(rows)
        self._reuse = WorkingSetReuse()
        self._buffer, self._solutions, self._next, self._classes = None, list(solutions), 0, None
        self.problems: list[FoldProblem] = []

    @property
    def solutions(self) -> list[Solution]:
        """The last solution of each problem, which the next fit starts at."""
        return self._solutions

    def close(self) -> None:
        """Give the memory of the working set back."""
        self._reuse.working = None
        if self._buffers is not None and self._buffer is not None:
            self._buffers.give_back(self._buffer)

    def check_points(self, estimator: Any, X: Any, *y: Any, **options: Any) -> Any:
        """Return the data as they are."""
        return (X, *y) if y else X

    def encode_classes(self, estimator: Any, y: Any, sample_weight: Any) -> Any:
        """Encode the labels of the fold, once for all fits with the same class weights."""
        if self._classes is None or self._classes[0] is not estimator.class_weight:
            self._classes = estimator.class_weight, super().encode_classes(estimator, y, sample_weight)
        return self._classes[1]

    def take(self, estimator: Any, X: RowPoints, rows: Array) -> RowPoints:
        """Return some of the points."""
        return X[rows]

    def bind(self, estimator: Any, X: RowPoints, weights: Array) -> tuple[Kernel, Any]:
        """Begin a fit: return the kernel, and the rows of the Gram matrix that it needs."""
        self._next = 0
        self.problems.clear()
        return self._gram.kernel, _BoundRows(self._gram.kernel, X.rows)

    def solve(self, estimator: Any, program: Any, matrix: Any, monitor: Any, reuse: Any = None) -> Solution:
        """Solve the next problem of a fit, from its solution in the last fit.

        The source has a working set for all fits of the fold; it does not use that of one fit, `reuse`.
        """
        k, self._next = self._next, self._next + 1
        is_fold = matrix.is_whole and np.array_equal(matrix.rows, self._rows)
        if is_fold:
            self._fill_working_set(program)
        last = self._solutions[k] if k < len(self._solutions) else None
        if last is not None and (last.stopped != "tol" or last.program.n != program.n):
            last = None
        solution = solve_dual(
            program,
            self._matrix if is_fold else self._gram.submatrix(matrix.rows),
            start=last,
            reuse=self._reuse if is_fold else None,
            is_psd=self._gram.kernel.is_psd,
            tol=estimator.tol,
            max_iter=None if estimator.max_iter == -1 else estimator.max_iter,
            time_limit=estimator.time_limit,
            callback=self._check_stopped,
            **choose_solver(estimator.solver, KernelDual.problem).options,
        )
        if solution.stopped == "interrupt":
            raise KeyboardInterrupt
        # A search reads no certificates: without `certify` the solution does not keep its data alive.
        solution = dataclasses.replace(solution, certify=None)
        self._solutions[k : k + 1] = [solution]
        self.problems.append(FoldProblem(program, matrix.rows, solution))
        return solution

    def expand(self, estimator: Any, X: RowPoints, coef: Array) -> Array:
        """Return sum_j K(x_i, v_j) coef_j over the support vectors, read from the Gram matrix."""
        if not len(coef):
            return np.zeros((len(X), *coef.shape[1:]))
        return self._gram.expand(X.rows, estimator.support_vectors_.rows, coef)

    def _fill_working_set(self, program):
        """Give the first problem a working set of all variables, in memory that other folds have used."""
        matrix: Any = self._matrix
        if self._buffers is None or self._buffer is not None or matrix.is_exact:
            return
        m, n = program.m, program.n
        if m != matrix.m or n > DEFAULTS.whole:
            return
        size = padded(n + 1)
        self._buffer = self._buffers.take(size, "float32")
        K = self._buffer[: size * size].reshape(size, size)
        matrix.whole(K)
        for low in range(m, n, m):  # a regression has two variables for each point
            K[:m, low : low + m] = K[:m, :m]
        for low in range(m, n, m):
            K[low : low + m, :n] = K[:m, :n]
        self._reuse.working = WorkingSet.of_all(program, matrix, K)

    def _check_stopped(self, info):
        if self._is_stopped():
            raise SearchStopped


class _BoundRows:
    """The rows of a Gram matrix that a fit needs, in its order; a pair of classes selects some of them."""

    def __init__(self, kernel, rows, *, is_whole=True):
        self.kernel, self.rows, self.is_whole = kernel, rows, is_whole

    def cache_blocks(self, starts, memory=None):
        """Do nothing: the matrix is cached already."""

    def submatrix(self, points):
        """Select some of these points."""
        return _BoundRows(self.kernel, self.rows[points], is_whole=False)
