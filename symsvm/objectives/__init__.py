"""Objectives: the problems, each with its feasible set and its certificate."""

from symsvm.objectives.certificate import Certificate
from symsvm.objectives.dual import CSVC
from symsvm.objectives.kernel_dual import KernelDual
from symsvm.objectives.lagrangian_dual import LagrangianDual
from symsvm.objectives.objective import Objective
from symsvm.objectives.perceptron_risk import PerceptronRisk, Separation
from symsvm.objectives.platt import Platt
from symsvm.objectives.primal_risk import PrimalRisk
from symsvm.objectives.quadratic_program import QuadraticProgram
from symsvm.objectives.sums import sum_over

__all__ = [
    "CSVC",
    "Certificate",
    "KernelDual",
    "LagrangianDual",
    "Objective",
    "PerceptronRisk",
    "Platt",
    "PrimalRisk",
    "QuadraticProgram",
    "Separation",
    "sum_over",
]
