"""The proximal method: Newton's method for the hinge and epsilon-insensitive losses and any number of features.

A step of the proximal point method on the dual, from z_k with the weight D > 0, ::

    z_k+1 = argmax over the bounds of   sum_i h_i(z_i) - 1/2 |v|^2 - D/2 |z - z_k|^2,    v = [X s]'z,

has the primal: minimise R(u) + sum_i L'_i(r_i), where L'_i is the conjugate of h_i(z) - D/2 (z - z_ki)^2. Up to a
constant it is the loss with D in place of 0 and the target t_i + D z_ki: quadratic between the bounds of z, linear
beyond. Newton's method minimises it as it does squared losses, by conjugate gradients where there are many features.
The dual is piecewise quadratic: finitely many steps reach the optimum, the fewer the smaller D is (as in Li, Sun and
Toh, A highly efficient semismooth Newton augmented Lagrangian method for solving lasso problems, 2018).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.linear.newton_points import NewtonPoints
from symsvm.linear.primal_newton import primal_newton

if TYPE_CHECKING:
    from collections.abc import Iterator

    from symsvm._lib.types import Array
    from symsvm.linear.linear_problem import LinearProblem

__all__ = ["ProximalPoints", "proximal_newton_steps"]

FIRST_WEIGHT, WEIGHT_RATIO, LEAST_WEIGHT = 1.0, 0.25, 1e-5  # D, as a share of the mean |x_i|^2
FIRST_NORM, NORM_RATIO, LEAST_NORM = 1e-2, 0.3, 1e-10  # the share of the first gradient at which a step ends
MOST_NEWTON, MOST_STEPS = 50, 200


class ProximalPoints(NewtonPoints):
    """The points of a `LinearProblem` whose loss is not squared, for a step of the proximal method.

    Parameters
    ----------
    problem : LinearProblem
        The problem.
    """

    def __init__(self, problem: LinearProblem) -> None:
        super().__init__(problem)
        self._targets, self._bounds = problem.t, problem.loss_parameters[1:]
        self.z[:] = 0.0

    def begin_step(self, D: float) -> None:
        """Begin a step from the present z.

        Parameters
        ----------
        D : float
            The weight of the distance.
        """
        self._t = self._targets + D * self.z
        self._loss = np.full(len(self._t), D), *self._bounds


def proximal_newton_steps(problem: Any) -> Iterator[tuple[int, Array, Any]]:
    """Yield (Newton steps so far, u, z) after each proximal step.

    Parameters
    ----------
    problem : PartitionedProblem
        The problem.

    Yields
    ------
    tuple
        The point, u = [X s]'z but for a free intercept.
    """
    points, u, done = problem.proximal_points(), np.zeros(problem.d + 1), 0
    for step in range(MOST_STEPS):
        points.begin_step(problem.mean_square * max(FIRST_WEIGHT * WEIGHT_RATIO**step, LEAST_WEIGHT))
        share = max(FIRST_NORM * NORM_RATIO**step, LEAST_NORM)
        newton = primal_newton(problem, u, tol=share, points=points)
        iteration, u, z, _, converged = next(newton)
        while not converged and iteration < MOST_NEWTON:
            try:
                iteration, u, z, _, converged = next(newton)
            except StopIteration:  # rounding has stopped the progress
                break
        done += iteration + 1
        point = problem.combination(z)
        if problem.free:
            point[-1] = u[-1]
        yield done, point, z
