"""symsvm: write the SVM objective the way the paper writes it, and compile it.

    data -> kernel -> objective -> compile -> solver

A kernel is one expression for a pair of points, an objective a sum inside a sum over them (`sum_over`); `compile` turns
both into a `Program` on Numba or JAX, and every `Solution` carries a certificate. `SVM_parallel` is the class of the
paper; `SVC`, `SVR` and the others are estimators for scikit-learn.
"""

import importlib
import importlib.util

from symsvm.version import __version__

# Where the public names live. They are imported when they are first asked for: `symsvm --help` needs none of them.
_NAMES = {
    "certificate": ("Certificate",),
    "compiler": ("grad",),
    "contribution": ("contributions",),
    "estimators": ("SVC", "SVR", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM"),
    "explanation": ("explain",),
    "files": ("load", "save"),
    "kernels": (
        "RBF",
        "Constant",
        "Kernel",
        "Laplacian",
        "Linear",
        "Polynomial",
        "Precomputed",
        "Sigmoid",
        "pair_kernel",
    ),
    "matvec": ("kernel_matvec",),
    "objectives": (
        "CSVC",
        "KernelDual",
        "LagrangianDual",
        "Objective",
        "PerceptronRisk",
        "PrimalRisk",
        "QuadraticProgram",
        "csvc",
        "nu_svc",
        "nu_svr",
        "one_class",
        "svr",
    ),
    "paper": ("SVM_parallel",),
    "perceptrons": ("kernel_perceptron", "perceptron"),
    "program": ("Program", "Solution"),
    "solvers": (
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
    ),
    "spectrum": ("mercer",),
    "sums": ("sum_over",),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = ["__version__", *_HOMES]


def __getattr__(name):
    if name in _HOMES:
        value = getattr(importlib.import_module(f"symsvm.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if not name.startswith("_") and importlib.util.find_spec(f"symsvm.{name}"):
        return importlib.import_module(f"symsvm.{name}")
    raise AttributeError(f"module 'symsvm' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
