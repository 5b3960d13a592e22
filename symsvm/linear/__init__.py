"""Large linear models: solvers over the weights of the features, without a kernel matrix between the points.

`solve_linear` chooses among the algorithms of this package by loss, penalty and shape; `solve_crammer_singer` is for
several classes in one problem; `Stream` for points that are not stored. The package imports `solvers` for the reports
of a run; the estimators, model files and everything above may import it.
"""

from symsvm.linear.crammer_singer import solve_crammer_singer
from symsvm.linear.linear_problem import LinearProblem
from symsvm.linear.rows import Rows
from symsvm.linear.solve_linear import LinearSolution, solve_linear
from symsvm.linear.stochastic import Stream

__all__ = ["LinearProblem", "LinearSolution", "Rows", "Stream", "solve_crammer_singer", "solve_linear"]
