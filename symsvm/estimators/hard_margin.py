"""C = infinity: a hard margin, by finite bounds that no variable reaches.

An optimum with no variable at its bound C satisfies the conditions of optimality without bounds too, so it is that of
every larger C. Problems are solved with growing C until this holds. Where the largest C is reached, the points do not
have a margin that float64 could tell from none.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from symsvm.objectives import QuadraticProgram
    from symsvm.solvers import Solution

__all__ = ["FIRST_PENALTY", "solve_hard_margin"]

# The first C, the factors by which it grows, and the share of a bound that counts as reached.
FIRST_PENALTY = 1e4
_GROWTH, _AT_BOUND = (1.0, 1e2, 1e4), 0.999


def solve_hard_margin(program: QuadraticProgram, solve: Callable[[QuadraticProgram], Solution]) -> Solution:
    """Return the solution of a program whose bounds are those of `FIRST_PENALTY`, as if there were none."""
    for factor in _GROWTH:
        bounds = {"lower": program.lower * factor, "upper": program.upper * factor}
        grown = dataclasses.replace(program, **bounds)
        solution: Any = solve(grown)
        reached = np.abs(solution.z) >= (grown.upper - grown.lower) * _AT_BOUND
        if not reached.any() or solution.stopped != "tol":
            return solution
    raise ValueError(
        "C=inf asks for a fit without errors, which these points and this kernel do not allow: give a finite C."
    )
