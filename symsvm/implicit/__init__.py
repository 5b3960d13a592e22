"""Derivatives of a solution: `argmin` makes the solution of an objective a node of a graph.

`adjoint` solves one symmetric system for a gradient, in numbers, by `symmetric_system`; `argmin` builds the graphs
around it, with the sums over pairs of `support`. The package imports objectives, the compiler and solvers.
"""

from symsvm.implicit.adjoint import Adjoint, GradientWarning, solve_adjoint
from symsvm.implicit.argmin import argmin, last_adjoint

__all__ = ["Adjoint", "GradientWarning", "argmin", "last_adjoint", "solve_adjoint"]
