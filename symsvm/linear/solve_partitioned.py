"""The run of a linear machine over partitions: Newton's method, interior points, or proximal steps.

::

    loss       features     algorithm
    squared    any          Newton's method; a matrix up to 500 features, beyond conjugate gradients
    other      <= 1000      the interior-point method: exact, whatever C is
    other      more         Newton's method in proximal steps, see `symsvm.linear.proximal_points`

Newton's and the interior-point method are those of `solve_linear`, over sums of the partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.linear.interior_point import interior_point
from symsvm.linear.primal_newton import primal_newton
from symsvm.linear.proximal_points import proximal_newton_steps
from symsvm.linear.solve_linear import LinearSolution, run_stages
from symsvm.solvers.program import check_run_arguments

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from symsvm.linear.partitioned_problem import PartitionedProblem
    from symsvm.solvers.solution import Callback

__all__ = ["solve_partitioned"]


def solve_partitioned(
    problem: PartitionedProblem,
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    start: ArrayLike | None = None,
) -> LinearSolution:
    """Solve a linear machine over partitions.

    Parameters
    ----------
    problem : PartitionedProblem
        The problem.
    tol, max_iter, time_limit, callback
        Those of `solve_linear`.
    start : array_like, optional
        The first u, (d + 1,), for Newton's method.

    Returns
    -------
    LinearSolution
        The solution, with its certificate; the dual vector stays with the workers and is forgotten.
    """
    tol, max_iter, time_limit = check_run_arguments(tol, max_iter, time_limit, callback)
    first = np.zeros(problem.d + 1) if start is None else np.asarray(start, dtype="float64")

    def stage(best: Any, most: float) -> Any:
        if problem.method == "newton":
            return primal_newton(problem, first, tol=tol)
        return interior_point(problem) if problem.method == "interior point" else proximal_newton_steps(problem)

    (_, u, z), stopped, n_iter, trace, algorithm = run_stages(
        [(problem.method, stage)],
        problem.measure,
        zero=problem.zero,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        callback=callback,
    )
    certificate = problem.certificate(u, z, tol)  # now, while the points are with the workers
    b = float(u[-1]) if problem.s else None
    certify = _Found(certificate)
    return LinearSolution(u[:-1].copy(), b, None, stopped, n_iter, trace, algorithm, certify, problem.s)


class _Found:
    """A function that returns what was computed before."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value
