"""Solvers: one algorithm a file, each a pair of graph builders (init, step) or a decomposition over a kernel."""

from symsvm.solvers.decomposition.dual_program import Decomposition, path
from symsvm.solvers.first_order.accelerated_gradient import AcceleratedGradient
from symsvm.solvers.first_order.adagrad import AdaGrad
from symsvm.solvers.first_order.gradient_descent import GradientDescent
from symsvm.solvers.first_order.projected_gradient import ProjectedGradient
from symsvm.solvers.first_order.stochastic_subgradient import StochasticSubgradient
from symsvm.solvers.program import Program, Solution
from symsvm.solvers.qp.margins import hard_margin, soft_margin
from symsvm.solvers.qp.quadratic_programming import QuadraticProgramming
from symsvm.solvers.registry import compile, list_solvers, solve
from symsvm.solvers.textbook.maximal_violating_pair import MaximalViolatingPair
from symsvm.solvers.textbook.perceptron import KernelPerceptron, Perceptron
from symsvm.solvers.textbook.perceptrons import kernel_perceptron, perceptron
from symsvm.solvers.textbook.relaxation import relax
from symsvm.solvers.textbook.simplified_smo import SimplifiedSMO

__all__ = [
    "AcceleratedGradient",
    "AdaGrad",
    "Decomposition",
    "GradientDescent",
    "KernelPerceptron",
    "MaximalViolatingPair",
    "Perceptron",
    "Program",
    "ProjectedGradient",
    "QuadraticProgramming",
    "SimplifiedSMO",
    "Solution",
    "StochasticSubgradient",
    "compile",
    "hard_margin",
    "kernel_perceptron",
    "list_solvers",
    "path",
    "perceptron",
    "relax",
    "soft_margin",
    "solve",
]
