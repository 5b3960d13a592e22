"""Solvers: one algorithm a file, each a pair of graph builders (init, step) or a decomposition over a kernel."""

from symsvm.solvers.accelerated_gradient import AcceleratedGradient
from symsvm.solvers.dual_program import Decomposition, path
from symsvm.solvers.projected_gradient import ProjectedGradient
from symsvm.solvers.registry import compile, list_solvers, solve

__all__ = ["AcceleratedGradient", "Decomposition", "ProjectedGradient", "compile", "list_solvers", "path", "solve"]
