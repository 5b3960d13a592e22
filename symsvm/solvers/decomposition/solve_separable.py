"""The solution of a quadratic program with a separable smooth convex term, given as functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.solvers.decomposition.kernel_problem import KernelProblem, VariableChange
from symsvm.solvers.decomposition.solve_problem import solve_problem

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.evaluation.kernel_matrix import KernelMatrix
    from symsvm.objectives import QuadraticProgram
    from symsvm.objectives.separable import SeparableTerm
    from symsvm.solvers.solution import Solution

__all__ = ["solve_separable"]


def solve_separable(
    program: QuadraticProgram,
    phi: SeparableTerm,
    matrix: KernelMatrix,
    factor: float | Array = 1.0,
    *,
    is_psd: bool | None = None,
    **options: Any,
) -> Solution:
    """Solve a `QuadraticProgram` with a separable term over the kernel matrix of its points; lam = factor z.

    Parameters
    ----------
    program : QuadraticProgram
        The quadratic terms and the constraints.
    phi : SeparableTerm
        The separable term, a function of z.
    matrix : KernelMatrix
        The matrix between the points.
    factor : float or array
        lam divided by z.
    is_psd : bool, optional
        Whether K is positive semi-definite.
    **options : object
        Those of `solve_problem`.

    Returns
    -------
    Solution
        The last point, with its certificate.
    """
    change = VariableChange(np.broadcast_to(1.0 / np.asarray(factor), program.n))
    return solve_problem(KernelProblem(program, matrix, change, smooth=phi, is_convex=is_psd), **options)
