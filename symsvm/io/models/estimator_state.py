"""The state of fitted estimators: attributes, solutions, calibrations and streams as plain values, and back.

Reading checks everything: the attributes must fit each other, and every number must be finite.
"""

from __future__ import annotations

import functools
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sparse
from sklearn.isotonic import IsotonicRegression

from symsvm import estimators
from symsvm._lib.dense import as_dense
from symsvm._lib.validation import choice, count, number
from symsvm.compiler.functions import resolve_mode
from symsvm.estimators.calibration import Calibration
from symsvm.estimators.parameter_checks import check_parameters
from symsvm.io.models.model_checks import check_answers, check_solution_state
from symsvm.kernels import Kernel
from symsvm.linear import LinearSolution, Stream
from symsvm.objectives.certificate import Certificate
from symsvm.solvers.solution import Solution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from symsvm._lib.types import Array

__all__ = [
    "ESTIMATORS",
    "calibration_arrays",
    "calibration_from_arrays",
    "check_fitted",
    "fitted_attributes",
    "read_estimator_state",
    "solutions_from_states",
    "write_estimator_state",
]

ESTIMATORS = {name: getattr(estimators, name) for name in estimators.__all__}

# Attributes whose key in a file is another name, that of the first version of the format.
_KEYS = {"kernel_": "_kernel", "X_fit_": "_fitted", "problem_coef_": "_coef", "n_samples_fit_": "_fit_points"}

_COMMON = ("n_features_in_", "intercept_", "n_iter_")
_OF_KERNEL_MACHINES = (
    "support_",
    "support_vectors_",
    "n_support_",
    "dual_coef_",
    "fit_status_",
    "shape_fit_",
    "kernel_",
    "X_fit_",
)
_OF_CLASS = {
    "SVC": ("classes_", "class_weight_", "problem_coef_"),
    "NuSVC": ("classes_", "class_weight_", "problem_coef_"),
    "NuSVR": ("epsilon_",),
    "OneClassSVM": ("offset_",),
    "LinearSVC": ("coef_", "classes_"),
    "LinearSVR": ("coef_",),
}
_OPTIONAL = ("feature_names_in_", "n_samples_fit_", "t_")  # of a fit to a data frame, and of partial_fit
_CERTIFICATE = tuple(field.name for field in fields(Certificate))


def write_estimator_state(model: Any) -> dict[str, Any]:
    """The fitted attributes, solutions, calibration and streams of an estimator, as a dict of values."""
    names = [name for name in fitted_attributes(model) if hasattr(model, name)]
    state: dict[str, Any] = {"fitted": {_KEYS.get(name, name): getattr(model, name) for name in names}}
    for name in {"dual_coef_", "coef_"} & state["fitted"].keys():
        state["fitted"][name] = as_dense(state["fitted"][name])
    with_dual = getattr(model, "warm_start", False)  # the next fit starts at the dual vectors
    state["solutions"] = [_solution_state(solution, with_dual) for solution in model.solutions_]
    if hasattr(model, "calibration_") and model.calibration_method is not None:
        state["calibration"] = calibration_arrays(model.calibration_)
    if hasattr(model, "streams_"):
        state["streams"] = [_stream_state(stream) for stream in model.streams_]
    return state


def read_estimator_state(model: Any, state: dict[str, Any]) -> None:
    """Set the fitted attributes of an estimator; a ValueError (or a lookup's error) says what is wrong with a state."""
    attributes = {_KEYS.get(attribute, attribute): attribute for attribute in fitted_attributes(model)}
    for key, value in state["fitted"].items():
        if key not in attributes:
            raise ValueError(f"{type(model).__name__} has no attribute {str(key)[:80]!r}")
        setattr(model, attributes[key], value)
    check_parameters(model)
    check_fitted(model)
    model.solutions_ = solutions_from_states(model, state["solutions"])
    if getattr(model, "calibration_method", None) is not None:
        model.calibration_ = calibration_from_arrays(
            model.calibration_method, state["calibration"], len(model.classes_)
        )
    if "streams" in state:
        if len(state["streams"]) != len(model.coef_):
            raise ValueError("there must be a stream for each row of coef_")
        model.streams_ = [_stream_from_state(stream, model.n_features_in_) for stream in state["streams"]]


# ---- attributes


def fitted_attributes(model: Any) -> tuple[str, ...]:
    """The names of the fitted attributes that a file holds; the last ones are optional."""
    name = type(model).__name__
    kernel = () if name.startswith("Linear") else _OF_KERNEL_MACHINES
    return (*_COMMON, *kernel, *_OF_CLASS.get(name, ()), *_OPTIONAL)


def check_fitted(model: Any) -> None:
    """Raise a ValueError unless the attributes of a model fit each other, and its numbers are finite."""
    for name in fitted_attributes(model):
        if name not in _OPTIONAL and not hasattr(model, name):
            raise ValueError(f"{name} is missing")
    d = model.n_features_in_
    _require(type(d) is int and d > 0, "n_features_in_ must be a positive integer")
    if hasattr(model, "feature_names_in_"):
        _require(np.shape(model.feature_names_in_) == (d,), f"feature_names_in_ must have {d} names")
    _check_array(model, "intercept_")
    k = _count_classes(model) if hasattr(model, "classes_") else 1
    if hasattr(model, "support_"):
        _check_kernel_machine(model, d, k)
    else:
        _check_linear_machine(model, d, k)
    check_answers(model)


def _require(condition: object, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _check_array(model: Any, name: str, shape: tuple[int, ...] | None = None, kind: str = "f") -> None:
    """Check an attribute: a finite array of a kind of numbers, of this shape, or of one dimension if none is given."""
    value = as_dense(getattr(model, name))
    _require(isinstance(value, np.ndarray) and value.dtype.kind == kind, f"{name} must be an array of type {kind!r}")
    wanted = shape if shape is not None else (len(value) if value.ndim else 0,)
    _require(value.shape == wanted, f"{name} must have the shape {wanted}, got {value.shape}")
    _require(np.isfinite(value).all(), f"{name} must be finite")


def _count_classes(model: Any) -> int:
    classes = model.classes_
    _require(isinstance(classes, np.ndarray) and classes.ndim == 1, "classes_ must be a list of labels")
    k = len(classes)
    _require(k >= 2 and np.array_equal(np.unique(classes), classes), "classes_ must be two or more labels, in order")
    is_linear = hasattr(model, "penalty")
    choice(model.multi_class, "multi_class", ("ovr", "ovo", "crammer_singer") if is_linear else ("ovo", "ovr", "dag"))
    if model.calibration is not None:
        choice(model.calibration, "calibration", ("sigmoid", "isotonic"))
    return k


def _count_problems(model: Any, k: int) -> int:
    if k <= 2:
        return 1
    return k * (k - 1) // 2 if model.multi_class in ("ovo", "dag") else k


def _check_kernel_machine(model: Any, d: int, k: int) -> None:
    s = len(model.support_)
    p = _count_problems(model, k)
    rows = p if k <= 2 or model.multi_class == "ovr" else k - 1
    _check_array(model, "support_", (s,), "i")
    _require(
        np.shape(model.support_vectors_) in ((s, d), (0, 0)), f"support_vectors_ must be {s} points of {d} features"
    )
    _check_array(model, "dual_coef_", (rows, s))
    _check_array(model, "intercept_", (p,))
    _check_array(model, "n_support_", (k,), "i")
    counted = (model.n_support_ >= 0).all() and model.n_support_.sum() == s
    _require(counted, "n_support_ must count the support vectors")
    if k >= 2:
        choice(model.decision_function_shape, "decision_function_shape", ("ovo", "ovr"))
        _check_array(model, "problem_coef_", (s, p))
        _check_array(model, "class_weight_", (k,))
    if hasattr(model, "offset_"):
        _check_array(model, "offset_", (1,))
    resolve_mode(model.mode)
    m = model.shape_fit_[0]
    _require(s == 0 or 0 <= model.support_.min() <= model.support_.max() < m, f"support_ must be below {m}")
    if model.kernel_ is None:
        is_function = callable(model.kernel)
        _require(model.kernel == "precomputed" or is_function, "a model without kernel must be precomputed")
        _require(is_function or m == d, f"a precomputed kernel of {m} points must have as many columns")
        _require(not is_function or _is_points(model.X_fit_, m, d), "the training points are missing")
        return
    _require(isinstance(model.kernel_, Kernel), "kernel_ must be a kernel")
    _require(model.X_fit_ is None, "a model with a kernel keeps no training points")
    _require(_is_points(model.support_vectors_, s, d), f"support_vectors_ must be {s} finite points with {d} features")
    if s:
        model.kernel_.check_points(model.support_vectors_, "support_vectors_")


def _is_points(X: Any, m: int, d: int) -> bool:
    """Whether X are m finite points with d features, dense or CSR."""
    data = X.data if sparse.issparse(X) else X
    return (
        isinstance(data, np.ndarray)
        and data.dtype in ("float32", "float64")
        and X.shape == (m, d)
        and bool(np.isfinite(data).all())
    )


def _check_linear_machine(model: Any, d: int, k: int) -> None:
    p = _count_problems(model, k)
    _check_array(model, "coef_", (p, d) if hasattr(model, "classes_") else (d,))
    _check_array(model, "intercept_", (p,))


# ---- solutions


def _solution_state(solution: Any, with_dual: bool) -> dict[str, Any]:
    """The certificate, the trace and the stopping reason of a solved problem; the vectors of a linear one if asked."""
    certificate = {name: getattr(solution.certificate, name) for name in _CERTIFICATE}
    state = {"certificate": certificate, "trace": dict(solution.trace)}
    state |= {"stopped": solution.stopped, "n_iter": solution.n_iter}
    if isinstance(solution, LinearSolution):
        state |= {"algorithm": solution.algorithm, "s": float(solution.s)}
        state |= {name: getattr(solution, name) for name in ("w", "b", "dual", "C") if with_dual}
    return state


def solutions_from_states(model: Any, states: Sequence[dict[str, Any]]) -> list[Solution | LinearSolution]:
    """The solutions of a model; those of a kernel machine are without the dual vector lam."""
    one = getattr(model, "multi_class", None) == "crammer_singer"
    problems = (0, 1) if one else (0, len(model.intercept_))  # none after partial_fit
    _require(len(states) in problems, f"there must be a solution for each of the {problems[1]} problems")
    return [_solution_from_state(model, i, state) for i, state in enumerate(states)]


def _solution_from_state(model: Any, i: int, state: dict[str, Any]) -> Solution | LinearSolution:
    if set(state["certificate"]) != set(_CERTIFICATE) or not isinstance(state["trace"], dict):
        raise ValueError(f"the certificate of problem {i} is incomplete")
    check_solution_state(model, i, state)
    certificate = Certificate(**state["certificate"])
    common: dict[str, Any] = {name: state[name] for name in ("stopped", "n_iter", "trace")}
    common["certify"] = functools.partial(_identity, certificate)
    if hasattr(model, "support_"):
        return Solution(point=np.empty(0), b=certificate.b, feasible=np.empty(0), **common)
    weights = {name: state[name] for name in ("w", "b", "dual", "C") if name in state}
    if not weights:
        weights = {"w": np.atleast_2d(model.coef_)[i], "b": model.intercept_[i] / (state["s"] or 1.0), "dual": None}
    return LinearSolution(**weights, algorithm=state["algorithm"], s=state["s"], **common)


def _identity(value: Any) -> Any:
    """A function at the top of a module, so that a loaded model can be pickled."""
    return value


# ---- calibrations


def calibration_arrays(calibration: Calibration) -> list[Array]:
    """(A, B) of each sigmoid, the thresholds (x, y) of each isotonic map: a list of arrays of two rows."""
    maps: Any = calibration.maps
    if calibration.method == "sigmoid":
        return [np.array([[A], [B]]) for A, B in maps]
    return [np.array([map_.X_thresholds_, map_.y_thresholds_], dtype="float64") for map_ in maps]


def calibration_from_arrays(method: Literal["sigmoid", "isotonic"], arrays: Sequence[Array], k: int) -> Calibration:
    """The calibration of k classes with these maps."""
    calibration = Calibration(method, None)
    for array in arrays:
        if array.ndim != 2 or array.dtype != "float64" or len(array) != 2 or not np.isfinite(array).all():
            raise ValueError("a map must have two rows of finite numbers")
    if len(arrays) != (1 if k == 2 else k):
        raise ValueError(f"{len(arrays)} maps do not calibrate {k} classes")
    make_map = _sigmoid if method == "sigmoid" else _isotonic
    calibration.maps = [make_map(*array) for array in arrays]
    return calibration


def _sigmoid(A: Array, B: Array) -> tuple[float, float]:
    (slope,), (offset,) = A.tolist(), B.tolist()
    return slope, offset


def _isotonic(x: Array, y: Array) -> IsotonicRegression:
    """The isotonic map with these thresholds, fitted to them: its best monotone map is itself."""
    with np.errstate(over="ignore"):
        steps = np.diff(x)
    if len(x) == 0 or not (np.isfinite(steps) & (steps > 0)).all() or (np.diff(y) < 0).any() or y[0] < 0 or y[-1] > 1:
        raise ValueError("the thresholds of an isotonic map must increase")
    return IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(x, y)


# ---- streams of partial_fit


def _stream_state(stream: Stream) -> dict[str, Any]:
    """The numbers that a stream needs to continue."""
    return {"lam": stream.lam, "t": stream.t, "H": stream.H, "V": stream.V, "U": stream.U}


def _stream_from_state(state: dict[str, Any], d: int) -> Stream:
    """The stream of d features with these numbers."""
    stream = Stream(d, number(state["lam"], "lam", positive=True))
    stream.t, stream.H = count(state["t"], "t"), number(state["H"], "H")
    stream.V, stream.U = state["V"], state["U"]
    for array in (stream.V, stream.U):
        if array.shape != (d + 1,) or array.dtype != "float64" or not np.isfinite(array).all():
            raise ValueError(f"a stream must have {d + 1} finite numbers")
    return stream
