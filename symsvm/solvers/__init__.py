"""Solvers: one algorithm a file, each a pair of graph builders (init, step) or a decomposition over a kernel."""

from symsvm.solvers.accelerated_gradient import AcceleratedGradient
from symsvm.solvers.adagrad import AdaGrad
from symsvm.solvers.dual_program import Decomposition, path
from symsvm.solvers.gradient_descent import GradientDescent
from symsvm.solvers.projected_gradient import ProjectedGradient
from symsvm.solvers.registry import compile, list_solvers, solve

__all__ = [
    "AcceleratedGradient",
    "AdaGrad",
    "Decomposition",
    "GradientDescent",
    "ProjectedGradient",
    "compile",
    "list_solvers",
    "path",
    "solve",
]
