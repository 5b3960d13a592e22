"""symsvm: write the SVM objective the way the paper writes it, and compile it.

    data -> kernel -> objective -> compile -> solver

A kernel is one expression for a pair of points, an objective a sum inside a sum over them (`sum_over`); `compile` turns
both into a `Program` on Numba or JAX, and every `Solution` carries a certificate. `SVM_parallel` is the class of the
paper; `SVC`, `SVR` and the others are estimators for scikit-learn.
"""

import importlib
import importlib.util

__version__ = "0.1.0"

# Where the public names live. They are imported when they are first asked for: `symsvm --help` needs none of them.
_NAMES = {
    "compiler": ("grad", "kernel_matvec"),
    "estimators": ("SVC", "SVR", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM"),
    "evaluation.spectrum": ("mercer",),
    "explanation": ("explain",),
    "implicit": ("argmin",),
    "inspection.contributions": ("contributions",),
    "io.models": ("load", "save"),
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
    "objectives": (
        "CSVC",
        "Certificate",
        "KernelDual",
        "LagrangianDual",
        "Objective",
        "PerceptronRisk",
        "PrimalRisk",
        "QuadraticProgram",
        "sum_over",
    ),
    "paper": ("SVM_parallel",),
    "solvers": (
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
        "fit_kernel_perceptron",
        "fit_perceptron",
        "hard_margin",
        "list_solvers",
        "path",
        "relax",
        "soft_margin",
        "solve",
    ),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = ["__version__", *_HOMES]


def __getattr__(name):
    if name in _HOMES:
        from symsvm._lib.collection import paused_collection

        with paused_collection():
            value = getattr(importlib.import_module(f"symsvm.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if not name.startswith("_") and importlib.util.find_spec(f"symsvm.{name}"):
        return importlib.import_module(f"symsvm.{name}")
    raise AttributeError(f"module 'symsvm' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
