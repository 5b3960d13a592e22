"""Estimators: support vector machines after scikit-learn's rules, on the fast solver, with certificates."""

from symsvm.estimators.classifiers import SVC, NuSVC
from symsvm.estimators.linear_classifier import LinearSVC
from symsvm.estimators.linear_regressor import LinearSVR
from symsvm.estimators.one_class import OneClassSVM
from symsvm.estimators.regressors import SVR, NuSVR

__all__ = ["SVC", "SVR", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM"]
