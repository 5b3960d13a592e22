"""Fitted: the attributes of each estimator that its predictions are made of, and what must be true of them."""

import numpy as np
import scipy.sparse as sparse

from symsvm import estimators
from symsvm._lib.validation import choice
from symsvm.compiler.functions import resolve_mode
from symsvm.kernels import Kernel

__all__ = ["ESTIMATORS", "KEYS", "check_fitted", "fitted_names"]

ESTIMATORS = {name: getattr(estimators, name) for name in estimators.__all__}

# The keys of attributes in a file, where they differ: those of its first version.
KEYS = {"kernel_": "_kernel", "X_fit_": "_fitted", "problem_coef_": "_coef"}

_ALWAYS = ("n_features_in_", "intercept_", "n_iter_")
_KERNEL = (
    "support_",
    "support_vectors_",
    "n_support_",
    "dual_coef_",
    "fit_status_",
    "shape_fit_",
    "kernel_",
    "X_fit_",
)
_MORE = {
    "SVC": ("classes_", "class_weight_", "problem_coef_"),
    "NuSVC": ("classes_", "class_weight_", "problem_coef_"),
    "NuSVR": ("epsilon_",),
    "OneClassSVM": ("offset_",),
    "LinearSVC": ("coef_", "classes_"),
    "LinearSVR": ("coef_",),
}
_PERHAPS = ("feature_names_in_", "_fit_points", "t_")  # of a table's columns, and of partial_fit


def fitted_names(model):
    """The names of the fitted attributes; the last ones need not be there."""
    name = type(model).__name__
    kernel = () if name.startswith("Linear") else _KERNEL
    return (*_ALWAYS, *kernel, *_MORE.get(name, ()), *_PERHAPS)


def check_fitted(model):
    """Raise a ValueError unless the attributes of a model fit each other, and its numbers are finite."""
    for name in fitted_names(model):
        if name not in _PERHAPS and not hasattr(model, name):
            raise ValueError(f"{name} is missing")
    d = model.n_features_in_
    _must(type(d) is int and d > 0, "n_features_in_ must be a positive integer")
    if hasattr(model, "feature_names_in_"):
        _must(np.shape(model.feature_names_in_) == (d,), f"feature_names_in_ must have {d} names")
    _vector(model, "intercept_")
    k = _classes(model) if hasattr(model, "classes_") else 1
    if hasattr(model, "support_"):
        _check_kernel_machine(model, d, k)
    else:
        _check_linear(model, d, k)


def _must(condition, sentence):
    if not condition:
        raise ValueError(sentence)


def _vector(model, name, shape=None, kind="f"):
    """Check an attribute: an array of floats (or of another kind), finite, of this shape if one is given."""
    value = getattr(model, name)
    _must(isinstance(value, np.ndarray) and value.dtype.kind == kind, f"{name} must be an array of type {kind!r}")
    wanted = shape if shape is not None else (len(value) if value.ndim else 0,)
    _must(value.shape == wanted, f"{name} must have the shape {wanted}, got {value.shape}")
    _must(np.isfinite(value).all(), f"{name} must be finite")


def _classes(model):
    classes = model.classes_
    _must(isinstance(classes, np.ndarray) and classes.ndim == 1, "classes_ must be a list of labels")
    k = len(classes)
    _must(k >= 2 and np.array_equal(np.unique(classes), classes), "classes_ must be two or more, in order")
    pairs = ("ovr", "ovo", "crammer_singer") if hasattr(model, "penalty") else ("ovo", "ovr", "dag")
    choice(model.multi_class, "multi_class", pairs)
    if model.calibration is not None:
        choice(model.calibration, "calibration", ("sigmoid", "isotonic"))
    return k


def _problems(model, k):
    if k <= 2:
        return 1
    return k * (k - 1) // 2 if model.multi_class in ("ovo", "dag") else k


def _check_kernel_machine(model, d, k):
    s = len(model.support_)
    p = _problems(model, k)
    rows = p if k <= 2 or model.multi_class == "ovr" else k - 1
    _vector(model, "support_", (s,), "i")
    _vector(model, "dual_coef_", (rows, s))
    _vector(model, "intercept_", (p,))
    _vector(model, "n_support_", (k,), "i")
    _must((model.n_support_ >= 0).all() and model.n_support_.sum() == s, "n_support_ must count the support vectors")
    if k >= 2:
        choice(model.decision_function_shape, "decision_function_shape", ("ovo", "ovr"))
        _vector(model, "problem_coef_", (s, p))
        _vector(model, "class_weight_", (k,))
    if hasattr(model, "offset_"):
        _vector(model, "offset_", (1,))
    resolve_mode(model.mode)
    m = model.shape_fit_[0]
    _must(s == 0 or 0 <= model.support_.min() <= model.support_.max() < m, f"support_ must be below {m}")
    if model.kernel_ is None:
        _must(model.kernel == "precomputed" or callable(model.kernel), "a model without kernel must be precomputed")
        _must(callable(model.kernel) or m == d, f"a precomputed kernel of {m} points must have as many columns")
        _must(not callable(model.kernel) or _is_points(model.X_fit_, m, d), "the training points are missing")
        return
    _must(isinstance(model.kernel_, Kernel), "_kernel must be a kernel")
    _must(_is_points(model.support_vectors_, s, d), f"support_vectors_ must be {s} finite points with {d} features")
    if s:
        model.kernel_.check_points(model.support_vectors_, "support_vectors_")


def _is_points(X, m, d):
    """Whether X are m finite points with d features, dense or CSR."""
    data = X.data if sparse.issparse(X) else X
    return (
        isinstance(data, np.ndarray)
        and data.dtype in ("float32", "float64")
        and X.shape == (m, d)
        and bool(np.isfinite(data).all())
    )


def _check_linear(model, d, k):
    p = _problems(model, k)
    _vector(model, "coef_", (p, d) if hasattr(model, "classes_") else (d,))
    _vector(model, "intercept_", (p,))
