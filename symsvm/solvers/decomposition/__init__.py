"""The fast exact solver: a decomposition over working sets, for every W that is a sum over pairs and points.

`dual_program` is the solver behind `compile`. `binding` makes a `kernel_problem` of a W that was read, `verification`
compares the two by numbers, and `solve_problem` solves it. `algorithm` is the loop, `state` its transitions,
`parameters` its numbers. `selection` chooses a working set, `working_set` stores its matrix, `subproblem` solves it by
`smo` and Newton's steps (`small_newton`, `newton`), and `refinement` ends small problems exactly. `small_problem` does
all of it in one compiled call where the whole matrix is stored in float64. A further separable
smooth term is minimised by `separable_descent`: `conjugate_newton` over `newton_equations`, or `sequential_quadratic`.
The registry of solvers, the estimators and the searches import it.
"""

from symsvm.solvers.decomposition.dual_program import Decomposition, DualProgram
from symsvm.solvers.decomposition.one_vs_one import one_vs_one
from symsvm.solvers.decomposition.parameters import Parameters
from symsvm.solvers.decomposition.solve_problem import path, solve_dual, solve_separable

__all__ = ["Decomposition", "DualProgram", "Parameters", "one_vs_one", "path", "solve_dual", "solve_separable"]
