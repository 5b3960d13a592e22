"""The fast exact solver: a decomposition over working sets, for quadratic duals over a kernel.

`algorithm` is the loop, `state` its transitions, `parameters` its numbers. `selection` chooses a working set,
`working_set` holds its matrix, `subproblem` solves for it by `smo` and Newton's steps (`small_newton`, `newton`), and
`refinement` ends small problems exactly. `solve_separable` solves programs with a further separable term, by
`conjugate_newton` over `newton_equations` or by `sequential_quadratic`. `dual_program` is the solver behind `compile`.
The registry of solvers, the estimators and the searches import it.
"""

from symsvm.solvers.decomposition.dual_program import Decomposition, DualProgram, path, solve_dual
from symsvm.solvers.decomposition.one_vs_one import one_vs_one
from symsvm.solvers.decomposition.parameters import Parameters
from symsvm.solvers.decomposition.solve_separable import solve_separable

__all__ = ["Decomposition", "DualProgram", "Parameters", "one_vs_one", "path", "solve_dual", "solve_separable"]
