"""Calibrations: the maps from decision values to probabilities, as arrays, and back."""

import numpy as np
from sklearn.isotonic import IsotonicRegression

from symsvm.estimators.calibration import Calibration

__all__ = ["calibration_arrays", "calibration_of"]


def calibration_arrays(calibration):
    """(A, B) for each sigmoid, the thresholds (x, y) of each isotonic map: a list of arrays of two rows."""
    if calibration.method == "sigmoid":
        return [np.array([[A], [B]]) for A, B in calibration.maps]
    return [np.array([map_.X_thresholds_, map_.y_thresholds_], dtype="float64") for map_ in calibration.maps]


def calibration_of(method, arrays, k):
    """The calibration of k classes with these maps."""
    calibration = Calibration(method, None)
    for array in arrays:
        if array.ndim != 2 or array.dtype != "float64" or len(array) != 2 or not np.isfinite(array).all():
            raise ValueError("a map must have two rows of finite numbers")
    if len(arrays) != (1 if k == 2 else k):
        raise ValueError(f"{len(arrays)} maps do not calibrate {k} classes")
    make = _sigmoid if method == "sigmoid" else _isotonic
    calibration.maps = [make(*array) for array in arrays]
    return calibration


def _sigmoid(A, B):
    (A,), (B,) = A.tolist(), B.tolist()
    return A, B


def _isotonic(x, y):
    """Through its own thresholds the best monotone map is the map itself."""
    if len(x) == 0 or (np.diff(x) <= 0).any() or (np.diff(y) < 0).any() or y[0] < 0 or y[-1] > 1:
        raise ValueError("the thresholds of an isotonic map must increase")
    return IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(x, y)
