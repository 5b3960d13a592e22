"""Large linear models: solvers that keep weights of the features instead of a kernel matrix between the points."""

from symsvm.linear.crammer_singer import solve_crammer_singer
from symsvm.linear.linear_problem import LinearProblem
from symsvm.linear.linear_solution import LinearSolution
from symsvm.linear.rows import Rows
from symsvm.linear.solve_linear import solve_linear
from symsvm.linear.stochastic import Stream

__all__ = ["LinearProblem", "LinearSolution", "Rows", "Stream", "solve_crammer_singer", "solve_linear"]
