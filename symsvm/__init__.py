"""symsvm: write the SVM objective the way the paper writes it, and compile it.

    data -> kernel -> objective -> compile -> solver

A kernel is one expression for a pair of points, an objective a sum inside a sum over them (`sum_over`); `compile` turns
both into a `Program` on Numba or JAX, and every `Solution` carries a certificate. `SVM_parallel` is the class of the
paper; `SVC`, `SVR` and the others are estimators for scikit-learn.
"""

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

_ESTIMATORS = ("SVC", "SVR", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM")
_FILES = ("load", "save")


def __getattr__(name):
    """The estimators and their files, which need scikit-learn, are imported when they are first asked for."""
    if name in _ESTIMATORS:
        from symsvm import estimators as module
    elif name in _FILES:
        from symsvm import files as module
    else:
        raise AttributeError(f"module 'symsvm' has no attribute {name!r}")
    return getattr(module, name)


def __dir__():
    return sorted({*globals(), *_ESTIMATORS, *_FILES})
