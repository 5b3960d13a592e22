"""Solvers: one algorithm a file, each a pair of graph builders (init, step) or a decomposition over a kernel."""

from symsvm.objectives import CSVC, KernelDual
from symsvm.program import compile
from symsvm.solvers.accelerated_gradient import AcceleratedGradient
from symsvm.solvers.dual_program import Decomposition, path
from symsvm.solvers.projected_gradient import ProjectedGradient

__all__ = ["AcceleratedGradient", "Decomposition", "ProjectedGradient", "path", "solve"]


def solve(objective, solver=None, *, mode=None, **run):
    """Compile an objective with a solver and run it; see `Program.run` and `DualProgram.run`.

    Without a solver, quadratic duals over a kernel (`CSVC`, `KernelDual`) go to `Decomposition()`, other objectives to
    `ProjectedGradient()`.
    """
    if solver is None:
        solver = Decomposition() if isinstance(objective, CSVC | KernelDual) else ProjectedGradient()
    return compile(objective, solver, mode=mode).run(**run)
