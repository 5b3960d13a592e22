"""Checks of the arguments that objectives share: labels, targets, weights, penalties, kernels and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm._lib.validation import number
from symsvm.kernels import Kernel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array

__all__ = [
    "ATTAINABLE",
    "as_class_nu",
    "as_labels",
    "as_nu",
    "as_penalties",
    "as_targets",
    "as_tube",
    "as_weights",
    "check_kernel",
    "check_labels",
]

# How much a total may exceed what the bounds allow, relative: rounding of the sum of bounds.
ATTAINABLE = 1e-12


def check_labels(y: Any) -> None:
    """Raise ValueError unless all labels are -1 or +1."""
    if not (np.abs(y) == 1.0).all():
        raise ValueError("y must hold the labels -1 and +1; symsvm.data.signs turns any two labels into them.")


def check_kernel(kernel: Any) -> None:
    """Raise TypeError unless the argument is a kernel."""
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a symsvm kernel, such as RBF(sigma=1.0), got {kernel!r}.")


def as_targets(y: ArrayLike) -> Array:
    """Return targets as a finite vector (m,)."""
    y = np.asarray(y, dtype="float64")
    if y.ndim != 1 or not len(y) or not np.isfinite(y).all():
        raise ValueError(f"y must be a finite vector, one number per point, got the shape {y.shape}.")
    return y


def as_labels(y: ArrayLike) -> Array:
    """Return labels -1 and +1 as a vector (m,)."""
    y = as_targets(y)
    check_labels(y)
    return y


def as_penalties(C: ArrayLike, m: int) -> Array:
    """Return the penalty of slack of each point (m,), from one number or one per point."""
    C = np.asarray(C, dtype="float64")
    if C.ndim and len(C) != m:
        raise ValueError(f"C must be a number, or one for each of the {m} points, got {len(C)}.")
    if not (np.isfinite(C).all() and (C >= 0).all() and (C > 0).any()):
        raise ValueError("C must be finite and positive; C_i = 0 removes point i.")
    return C if C.shape == (m,) else np.broadcast_to(C, m)


def as_weights(weights: ArrayLike | None, m: int) -> Array:
    """Return the weights of the points (m,), ones by default."""
    weights = np.ones(m) if weights is None else np.asarray(weights, dtype="float64")
    if weights.shape != (m,) or not (np.isfinite(weights).all() and (weights >= 0).all() and (weights > 0).any()):
        raise ValueError(f"weights must be {m} finite numbers of at least 0, and not all 0.")
    return weights


def as_nu(nu: float) -> float:
    """Return nu if it is above 0 and at most 1."""
    if not 0 < number(nu, "nu") <= 1:
        raise ValueError(f"nu must be above 0 and at most 1, got {nu!r}.")
    return nu


def as_class_nu(nu: float, y: Array, weights: Array) -> float:
    """Return nu if both classes can sum to nu / 2 times all weights."""
    most = 2 * min(weights[y > 0].sum(), weights[y < 0].sum()) / weights.sum()
    if as_nu(nu) > most * (1 + ATTAINABLE):
        raise ValueError(f"nu must be at most {most:.6g} for these labels and weights, got {nu!r}.")
    return nu


def as_tube(epsilon: float) -> float:
    """Return half the width of the tube, at least 0."""
    value = number(epsilon, "epsilon")
    if value < 0:
        raise ValueError(f"epsilon must be at least 0, got {epsilon!r}.")
    return value
