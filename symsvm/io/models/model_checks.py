"""Checks of what a model file holds, beyond types and shapes: numbers that no fit leaves behind are refused.

A fit ends with finite values at its own points and with a finite |w|^2. A file with other numbers is damaged, though
each of them may be finite: a coefficient of 1e308 has no decision value at an ordinary point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm._lib.dense import as_dense
from symsvm._lib.validation import number, switch

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = ["check_answers", "check_scaler", "check_solution_state"]

# Support vectors of the largest coefficients, and of the largest entries, at which a kernel machine is evaluated; and
# the most numbers that these points may have if they are dense.
_POINTS, _MOST = 8, 10**7
_STATUSES = ("optimal", "stationary", "feasible", "infeasible", "diverged", "unknown")
# The share by which two numbers may differ that a fit computed from each other.
_ROUNDING = 1e-6
# Of an intercept, or of a coefficient where K is not known: a sum with other terms is finite.
_LARGEST = 1e300


def _require(condition: object, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _has_finite_square(*arrays: Any) -> bool:
    """Whether the sum of squares is finite, and with it every product with numbers of ordinary size."""
    with np.errstate(over="ignore"):
        return all(bool(np.isfinite(np.sum(np.square(np.asarray(array, dtype="float64"))))) for array in arrays)


def check_answers(model: Any) -> None:
    """Raise a ValueError unless |w|^2 and the values at some of a machine's own support vectors are finite.

    Coefficients say nothing without the kernel: those of points of 1e-125 with a linear kernel may be 1e250.
    """
    _require((np.abs(model.intercept_) <= _LARGEST).all(), "intercept_ is too large for decision values")
    if not hasattr(model, "support_"):
        _require(_has_finite_square(model.coef_), "coef_ is too large for decision values")
        return
    coef = model.decision_coef_
    # `dual_coef_` has the same numbers in another layout.
    largest = float(np.abs(coef).max(initial=0.0))
    _require((np.abs(as_dense(model.dual_coef_)) <= largest).all(), "dual_coef_ is too large for decision values")
    V = model.support_vectors_
    if model.kernel_ is None or not len(model.support_) or 2 * _POINTS * V.shape[1] > _MOST:
        _require(largest <= _LARGEST, "dual_coef_ is too large for decision values")
        return
    sizes = np.abs(coef).max(axis=1), _largest_entries(V)
    some = np.unique(np.concatenate([np.argsort(-size, kind="stable")[:_POINTS] for size in sizes]))
    with np.errstate(all="ignore"):
        values = model.expansion(V[some], coef)
        products = coef[some] * values  # terms of |w|^2
    _require(np.isfinite(values).all(), "the decision values at its support vectors are not finite")
    _require(np.isfinite(products).all(), "dual_coef_ is too large for decision values")


def _largest_entries(V: Any) -> Array:
    """The largest absolute value in each row of a dense or sparse array."""
    largest = abs(V).max(axis=1)
    return largest.toarray().ravel() if hasattr(largest, "toarray") else np.asarray(largest)


def check_scaler(scaler: Any, names: tuple[str, ...]) -> None:
    """Raise a ValueError unless the arrays of a scaling are finite, and are what a fit computes from each other."""
    d = scaler.n_features_in_
    _require(type(d) is int and d > 0, "n_features_in_ must be a positive integer")
    for name, value in scaler.get_params(deep=False).items():
        if name in ("copy", "with_mean", "with_std", "clip"):
            switch(value, name)
    low, high = (number(end, "feature_range") for end in getattr(scaler, "feature_range", (0, 1)))
    _require(low < high and isinstance(getattr(scaler, "to", ""), str | tuple | list), "the range must be two numbers")
    left_out = {"mean_": "with_mean", "scale_": "with_std", "var_": "with_std"}
    for name in names:
        value, option = getattr(scaler, name), left_out.get(name)
        if name == "n_samples_seen_" or (value is None and not getattr(scaler, str(option), True)):
            continue
        valid = isinstance(value, np.ndarray) and value.shape == (d,) and value.dtype.kind == "f"
        _require(valid and np.isfinite(value).all(), f"{name} must be {d} finite numbers")
    kind = type(scaler).__name__
    with np.errstate(all="ignore"):
        if kind == "StandardScaler":
            scale, mean = scaler.scale_, scaler.mean_
            if scale is not None:
                _require((scale > 0).all(), "scale_ must be positive")
                _require(_agree(scale, np.sqrt(scaler.var_)), "scale_ must be the root of var_, or 1")
            ends = () if mean is None else (mean if scale is None else mean / scale,)
        elif kind == "MaxAbsScaler":
            _require((scaler.scale_ > 0).all(), "scale_ must be positive")
            _require(_agree(scaler.scale_, scaler.max_abs_), "scale_ must be max_abs_, or 1")
            ends = (scaler.max_abs_ / scaler.scale_,)
        elif kind == "MinMaxScaler":
            ends = tuple(end * scaler.scale_ + scaler.min_ for end in (scaler.data_min_, scaler.data_max_))
            slack = _ROUNDING * (1 + np.abs(scaler.min_) + abs(low) + abs(high))
            inside = all(((end >= low - slack) & (end <= high + slack)).all() for end in ends)
            _require(inside, "min_ and scale_ must map the data to the range")
        else:
            ends = (scaler.shift_ * scaler.scale_, scaler.offset_)
            _require((scaler.scale_ >= 0).all(), "scale_ must not be negative")
    _require(_has_finite_square(*ends), "its statistics are too large to scale a point")


def _agree(scale: Array, other: Array) -> bool:
    """Whether each scale is the other number, or 1, which stands for that of a constant column."""
    return bool((np.isclose(scale, other, rtol=_ROUNDING, atol=0.0) | (scale == 1)).all())


def check_solution_state(model: Any, i: int, state: dict[str, Any]) -> None:
    """Raise a ValueError unless the certificate, the trace and the vectors of a solution are what a run leaves."""
    certificate, trace = state["certificate"], state["trace"]
    _require(isinstance(trace, dict), f"the trace of problem {i} must be arrays by name")
    for name, values in trace.items():
        plain = isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "if"
        _require(isinstance(name, str) and plain, f"the trace of problem {i} must be arrays by name")
    _require(certificate["status"] in _STATUSES, f"the certificate of problem {i} has an unknown status")
    for name, value in certificate.items():
        numeric = value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        numeric |= name == "b" and isinstance(value, np.ndarray) and value.dtype.kind == "f"
        _require(name == "status" or numeric, f"{name} of the certificate of problem {i} must be a number")
    _require(isinstance(state["stopped"], str), f"problem {i} must say why it stopped")
    _require(type(state["n_iter"]) is int and state["n_iter"] >= 0, f"n_iter of problem {i} must count iterations")
    if "w" not in state:
        return
    w, dual, C = state["w"], state["dual"], state["C"]
    arrays = [array for array in (w, dual, C) if array is not None]
    plain = all(isinstance(array, np.ndarray) and array.dtype == "float64" for array in arrays)
    plain = plain and _has_finite_square(*arrays)
    _require(plain and w is not None and len(w) == model.n_features_in_, f"w of problem {i} must be finite weights")
    _require(
        dual is None or (C is not None and len(dual) == len(C)), f"dual of problem {i} must have a value for each C"
    )
