"""One-vs-one: a problem for each pair of classes, over one kernel matrix."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm._lib.validation import points
from symsvm.compiler.lifting import MEMORY
from symsvm.evaluation.local import LocalKernelMatrix
from symsvm.evaluation.symmetry import check_symmetric
from symsvm.solvers.decomposition.solve_problem import solve_dual

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, Points
    from symsvm.kernels import Kernel
    from symsvm.objectives import QuadraticProgram
    from symsvm.solvers.solution import Solution

__all__ = ["one_vs_one", "solve_pairs"]


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
) -> Iterator[tuple[int, int, Array, Solution]]:
    """Solve the dual of each pair of classes 0, 1, ..., whose points come one class after another in the matrix."""
    ends = np.cumsum(np.bincount(labels))
    starts = np.append(0, ends[:-1])
    if len(ends) > 2:
        matrix.cache_blocks(starts, memory)
    for a, b in itertools.combinations(range(len(ends)), 2):
        rows = np.concatenate([np.arange(starts[a], ends[a]), np.arange(starts[b], ends[b])])
        signs = np.repeat([-1.0, 1.0], [ends[a] - starts[a], ends[b] - starts[b]])
        yield a, b, rows, solve(program(signs, rows), matrix.submatrix(rows) if len(ends) > 2 else matrix)
