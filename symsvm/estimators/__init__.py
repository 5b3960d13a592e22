"""Support vector machines with scikit-learn's interface, solved by the fast solvers, with certificates.

`SVC`, `NuSVC`, `SVR`, `NuSVR` and `OneClassSVM` work over a kernel: they write their dual as a `QuadraticProgram`, and
take kernel values and solutions from a `KernelSource`. `LinearSVC` and `LinearSVR` use `symsvm.linear`. Packages io,
model_selection, inspection, serve and cli import from here; this package imports from solvers, linear and those before.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symsvm.estimators.classifiers import SVC, NuSVC
    from symsvm.estimators.linear_classifier import LinearSVC
    from symsvm.estimators.linear_estimator import LinearSVR
    from symsvm.estimators.one_class import OneClassSVM
    from symsvm.estimators.regressors import SVR, NuSVR

__all__ = ["SVC", "SVR", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM"]

# Estimators are imported when they are first asked for: those over a kernel do without the linear solvers.
_HOMES = {
    "SVC": "classifiers",
    "SVR": "regressors",
    "LinearSVC": "linear_classifier",
    "LinearSVR": "linear_estimator",
    "NuSVC": "classifiers",
    "NuSVR": "regressors",
    "OneClassSVM": "one_class",
}


def __getattr__(name: str) -> type:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value
