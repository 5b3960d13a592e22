"""Solvers: one algorithm a file, each a pair of graph builders (init, step) or a decomposition over a kernel."""

from symsvm.solvers.accelerated_gradient import AcceleratedGradient
from symsvm.solvers.adagrad import AdaGrad
from symsvm.solvers.dual_program import Decomposition, path
from symsvm.solvers.gradient_descent import GradientDescent
from symsvm.solvers.margins import hard_margin, soft_margin
from symsvm.solvers.maximal_violating_pair import MaximalViolatingPair
from symsvm.solvers.perceptron import KernelPerceptron, Perceptron
from symsvm.solvers.projected_gradient import ProjectedGradient
from symsvm.solvers.quadratic_programming import QuadraticProgramming
from symsvm.solvers.registry import compile, list_solvers, solve
from symsvm.solvers.relaxation import relax
from symsvm.solvers.simplified_smo import SimplifiedSMO
from symsvm.solvers.stochastic_subgradient import StochasticSubgradient

__all__ = [
    "AcceleratedGradient",
    "AdaGrad",
    "Decomposition",
    "GradientDescent",
    "KernelPerceptron",
    "MaximalViolatingPair",
    "Perceptron",
    "ProjectedGradient",
    "QuadraticProgramming",
    "SimplifiedSMO",
    "StochasticSubgradient",
    "compile",
    "hard_margin",
    "list_solvers",
    "path",
    "relax",
    "soft_margin",
    "solve",
]
