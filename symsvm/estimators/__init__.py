"""Support vector machines with scikit-learn's interface, solved by the fast solvers, with certificates.

`SVC`, `NuSVC`, `SVR`, `NuSVR` and `OneClassSVM` work over a kernel: they write their dual as a `QuadraticProgram`, and
take kernel values and solutions from a `KernelSource`. `LinearSVC` and `LinearSVR` use `symsvm.linear`. Packages io,
model_selection, inspection, serve and cli import from here; this package imports from solvers, linear and those before.
"""

from symsvm.estimators.classifiers import SVC, NuSVC
from symsvm.estimators.linear_classifier import LinearSVC
from symsvm.estimators.linear_estimator import LinearSVR
from symsvm.estimators.one_class import OneClassSVM
from symsvm.estimators.regressors import SVR, NuSVR

__all__ = ["SVC", "SVR", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM"]
