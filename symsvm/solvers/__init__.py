"""Solvers, and what they run on: `compile` and `solve`, `Program`, `Solution`, the registry.

The packages: `decomposition` (the default for kernel duals), `first_order` (gradient methods, one graph a step),
`textbook` (SMO and perceptrons as textbooks write them), `qp` (a general interior-point method). Each
algorithm has a file of its own. Solvers import objectives, the compiler and evaluation; `linear`, the paper's class,
the estimators and everything above may import solvers.
"""

from symsvm.solvers.decomposition.dual_program import Decomposition
from symsvm.solvers.decomposition.solve_problem import path
from symsvm.solvers.first_order.accelerated_gradient import AcceleratedGradient
from symsvm.solvers.first_order.adagrad import AdaGrad
from symsvm.solvers.first_order.gradient_descent import GradientDescent
from symsvm.solvers.first_order.projected_gradient import ProjectedGradient
from symsvm.solvers.first_order.stochastic_subgradient import StochasticSubgradient
from symsvm.solvers.program import Program
from symsvm.solvers.qp.margins import hard_margin, soft_margin
from symsvm.solvers.qp.quadratic_programming import QuadraticProgramming
from symsvm.solvers.registry import compile, list_solvers, solve
from symsvm.solvers.solution import Callback, Info, Solution
from symsvm.solvers.solver import Solver, SolverInfo
from symsvm.solvers.textbook.maximal_violating_pair import MaximalViolatingPair
from symsvm.solvers.textbook.perceptron import KernelPerceptron, Perceptron, fit_kernel_perceptron, fit_perceptron
from symsvm.solvers.textbook.relaxation import relax
from symsvm.solvers.textbook.simplified_smo import SimplifiedSMO

__all__ = [
    "AcceleratedGradient",
    "AdaGrad",
    "Callback",
    "Decomposition",
    "GradientDescent",
    "Info",
    "KernelPerceptron",
    "MaximalViolatingPair",
    "Perceptron",
    "Program",
    "ProjectedGradient",
    "QuadraticProgramming",
    "SimplifiedSMO",
    "Solution",
    "Solver",
    "SolverInfo",
    "StochasticSubgradient",
    "compile",
    "fit_kernel_perceptron",
    "fit_perceptron",
    "hard_margin",
    "list_solvers",
    "path",
    "relax",
    "soft_margin",
    "solve",
]
