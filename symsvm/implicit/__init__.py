"""Derivatives of a solution: `argmin` makes the solution of an objective a node of a graph.

`adjoint` solves one symmetric system for a gradient, in numbers; `argmin` builds the graphs around it. The package imports
objectives, the compiler and solvers.
"""

from symsvm.implicit.adjoint import Adjoint, GradientWarning, solve_adjoint
from symsvm.implicit.argmin import argmin

__all__ = ["Adjoint", "GradientWarning", "argmin", "solve_adjoint"]
