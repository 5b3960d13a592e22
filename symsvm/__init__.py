"""symsvm: write the SVM objective the way the paper writes it, and compile it.

    data -> kernel -> objective -> compile -> solver

A kernel is one expression for a pair of points, an objective a sum inside a sum over them (`sum_over`); `compile` turns
both into a `Program` on Numba or JAX, and every `Solution` carries a certificate. `SVM_parallel` is the class of the
paper; `SVC`, `SVR` and the others are estimators for scikit-learn.
"""

import importlib

from symsvm.certificate import Certificate
from symsvm.compiler import grad
from symsvm.explain import explain
from symsvm.kernels import RBF, Constant, Kernel, Laplacian, Linear, Polynomial, Precomputed, Sigmoid, pair_kernel
from symsvm.matvec import kernel_matvec
from symsvm.objectives import (
    CSVC,
    KernelDual,
    LagrangianDual,
    Objective,
    PrimalRisk,
    QuadraticProgram,
    csvc,
    nu_svc,
    nu_svr,
    one_class,
    svr,
)
from symsvm.paper import SVM_parallel
from symsvm.perceptrons import kernel_perceptron, perceptron
from symsvm.program import Program, Solution
from symsvm.solvers import (
    AcceleratedGradient,
    AdaGrad,
    Decomposition,
    GradientDescent,
    MaximalViolatingPair,
    ProjectedGradient,
    QuadraticProgramming,
    SimplifiedSMO,
    compile,
    hard_margin,
    list_solvers,
    path,
    relax,
    soft_margin,
    solve,
)
from symsvm.spectrum import mercer
from symsvm.sums import sum_over
from symsvm.version import __version__

__all__ = [
    "CSVC",
    "RBF",
    "SVC",
    "SVR",
    "AcceleratedGradient",
    "AdaGrad",
    "Certificate",
    "Constant",
    "Decomposition",
    "GradientDescent",
    "Kernel",
    "KernelDual",
    "LagrangianDual",
    "Laplacian",
    "Linear",
    "LinearSVC",
    "LinearSVR",
    "MaximalViolatingPair",
    "NuSVC",
    "NuSVR",
    "Objective",
    "OneClassSVM",
    "Polynomial",
    "Precomputed",
    "PrimalRisk",
    "Program",
    "ProjectedGradient",
    "QuadraticProgram",
    "QuadraticProgramming",
    "SVM_parallel",
    "Sigmoid",
    "SimplifiedSMO",
    "Solution",
    "__version__",
    "compile",
    "csvc",
    "explain",
    "grad",
    "hard_margin",
    "kernel_matvec",
    "kernel_perceptron",
    "list_solvers",
    "load",
    "mercer",
    "nu_svc",
    "nu_svr",
    "one_class",
    "pair_kernel",
    "path",
    "perceptron",
    "relax",
    "save",
    "soft_margin",
    "solve",
    "sum_over",
    "svr",
]

# What needs more than the core is imported when it is first asked for.
_LATER = {
    **dict.fromkeys(("SVC", "SVR", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM"), "estimators"),
    **dict.fromkeys(("load", "save"), "files"),
}
_PACKAGES = ("comparison", "data", "estimators", "files", "linear", "plot")


def __getattr__(name):
    if name in _PACKAGES:
        return importlib.import_module(f"symsvm.{name}")
    if name in _LATER:
        return getattr(importlib.import_module(f"symsvm.{_LATER[name]}"), name)
    raise AttributeError(f"module 'symsvm' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_LATER, *_PACKAGES})
