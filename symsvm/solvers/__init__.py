"""Solvers: one algorithm a file, each a pair of graph builders (init, step)."""

from symsvm.program import compile
from symsvm.solvers.projected_gradient import ProjectedGradient

__all__ = ["ProjectedGradient", "solve"]


def solve(objective, solver=None, *, mode=None, **run):
    """Compile an objective with a solver (by default `ProjectedGradient()`) and run it; see `Program.run`."""
    return compile(objective, ProjectedGradient() if solver is None else solver, mode=mode).run(**run)
