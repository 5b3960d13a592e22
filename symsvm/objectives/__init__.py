"""Objectives: the problems to minimise, each with its feasible set and its optimality certificate.

`Objective` takes any symbolic W. `CSVC`, `KernelDual`, `LagrangianDual`, `PrimalRisk`, `PerceptronRisk` and `Platt` are
particular ones, and `QuadraticProgram` is the dual of every support vector machine in numbers. A `SeparableTerm` added
to it gives kernel logistic regression and others. Nothing here compiles or solves. The package needs `_lib`, `graphs`
and `kernels`; every package from `compiler` on may import it.
"""

from symsvm.objectives.certificate import Certificate
from symsvm.objectives.dual import CSVC, KernelDual
from symsvm.objectives.lagrangian_dual import LagrangianDual
from symsvm.objectives.losses import Platt
from symsvm.objectives.objective import Objective
from symsvm.objectives.perceptron_risk import PerceptronRisk, Separation
from symsvm.objectives.primal_risk import PrimalRisk
from symsvm.objectives.quadratic_program import QuadraticProgram
from symsvm.objectives.separable import SeparableTerm
from symsvm.objectives.separable_program import SeparableProgram
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
    "SeparableProgram",
    "SeparableTerm",
    "Separation",
    "sum_over",
]
