"""One-vs-one: a problem for each pair of classes, over one kernel matrix."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm._lib.validation import points
from symsvm.compiler.lifting import MEMORY
from symsvm.evaluation.local import LocalKernelMatrix
from symsvm.evaluation.symmetry import check_symmetric
from symsvm.solvers.convergence import held_warnings, warn_convergence
from symsvm.solvers.decomposition.solve_problem import solve_dual

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, Points
    from symsvm.kernels import Kernel
    from symsvm.objectives import QuadraticProgram
    from symsvm.solvers.solution import Solution

__all__ = ["one_vs_one", "solve_pairs"]

# Options with which pairs are solved in turn: who watches a run sees one at a time.
_IN_TURN = {"callback", "time_limit", "verbose", "reuse", "start"}


def one_vs_one(
    X: ArrayLike | Points,
    labels: ArrayLike,
    kernel: Kernel,
    program: Callable[[Array, Array], QuadraticProgram],
    *,
    memory: int = MEMORY,
    mode: str | None = None,
    **options: Any,
) -> Iterator[tuple[Any, Any, Array, Solution]]:
    """Solve the dual of each pair of classes (a, b), a before b; yield (a, b, rows of X, `Solution`).

    The matrices inside the classes are computed once, in float32, where they fit the memory; so each value of the
    kernel is computed once for all pairs together.

    Parameters
    ----------
    labels : the class of each point.
    program : the function of (signs, rows) that makes the `QuadraticProgram` of a pair; the sign of a is -1, of b +1.
    memory : bytes that these matrices may take.
    options : those of `solve_dual`.

    >>> from symsvm.kernels import Linear
    >>> from symsvm.objectives import QuadraticProgram
    >>> X, labels = np.array([[0.0], [1.0], [3.0]]), np.array(["a", "b", "c"])
    >>> [(a, b, solution.z.round(3).tolist()) for a, b, _, solution in
    ...  one_vs_one(X, labels, Linear(), lambda signs, rows: QuadraticProgram.c_svc(signs, C=9.0))]
    [('a', 'b', [-2.0, 2.0]), ('a', 'c', [-0.222, 0.222]), ('b', 'c', [-0.5, 0.5])]
    """
    X_: Any = X.tocsr() if hasattr(X, "tocsr") else points(X)  # pyright: ignore
    check_symmetric(kernel, X_, mode=mode)
    order = np.argsort(labels, kind="stable")  # the points of a class side by side
    names, places = np.unique(labels, return_inverse=True)

    def solve(program, matrix):
        return solve_dual(program, matrix, is_psd=kernel.is_psd, **options)

    pairs = solve_pairs(
        LocalKernelMatrix(kernel, X_[order], mode=mode),
        places[order],
        lambda s, rows: program(s, order[rows]),
        solve,
        memory=memory,
        begin_threads=_do_nothing if mode is None and not _IN_TURN & options.keys() else None,
    )
    for a, b, rows, solution in pairs:
        yield names[a].item(), names[b].item(), order[rows], solution


def solve_pairs(
    matrix: Any,
    labels: Array,
    program: Callable[[Array, Array], QuadraticProgram],
    solve: Callable[[QuadraticProgram, Any], Solution],
    *,
    memory: int = MEMORY,
    begin_threads: Callable[[], object] | None = None,
) -> Iterator[tuple[int, int, Array, Solution]]:
    """Solve the dual of each pair of classes 0, 1, ..., whose points come one class after another in the matrix.

    Parameters
    ----------
    matrix : KernelMatrix
        The matrix between all points.
    labels : array of int
        The class of each point.
    program : callable
        The function of (signs, rows) that makes the `QuadraticProgram` of a pair.
    solve : callable
        The function of a program and its matrix that solves it.
    memory : int
        Bytes that the matrices inside the classes may take.
    begin_threads : callable, optional
        What is called before several pairs are solved at a time, by threads; without it they are solved in turn. The
        result is the same, bit for bit.

    Yields
    ------
    tuple of (int, int, array, Solution)
        The classes, the rows of their points, and the solution; pairs come in order.
    """
    ends = np.cumsum(np.bincount(labels))
    starts = np.append(0, ends[:-1])
    if len(ends) > 2:
        matrix.cache_blocks(starts, memory)
    pairs = list(itertools.combinations(range(len(ends)), 2))
    rows = [np.concatenate([np.arange(starts[c], ends[c]) for c in pair]) for pair in pairs]

    def solution(k: int) -> Solution:
        a, b = pairs[k]
        signs = np.repeat([-1.0, 1.0], [ends[a] - starts[a], ends[b] - starts[b]])
        return solve(program(signs, rows[k]), matrix.submatrix(rows[k]) if len(ends) > 2 else matrix)

    solutions: Any = map(solution, range(len(pairs)))
    # Small problems end before a thread begins; where points live elsewhere, those who have them share the work.
    is_apart = hasattr(matrix, "vectors")
    if begin_threads is not None and len(pairs) > 1 and not (matrix.is_exact or is_apart):
        begin_threads()
        solutions = _at_once(solution, len(pairs))
    for (a, b), some, solved in zip(pairs, rows, solutions, strict=True):
        yield a, b, some, solved


def _do_nothing() -> None:
    """Nobody has to know of threads."""


def _at_once(solution: Callable[[int], Solution], n: int) -> Iterator[Solution]:
    """The solutions 0, 1, ..., found by several threads; warnings are issued in order, by the calling thread."""
    from symsvm._lib.threads import side_by_side  # imports Numba, so only when it is used

    found: list[Any] = [None] * n

    def run(k: int) -> None:
        with held_warnings() as texts:
            found[k] = solution(k), texts

    side_by_side(run, n)
    for solved, texts in found:
        for text in texts:
            warn_convergence(text)
        yield solved
