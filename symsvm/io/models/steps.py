"""Steps: what may stand in a file: an estimator, a scaling or a vectoriser before one, as plain values and back."""

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from symsvm.io.data import Scaling
from symsvm.io.models.calibrations import calibration_arrays, calibration_of
from symsvm.io.models.fitted import ESTIMATORS, KEYS, check_fitted, fitted_names
from symsvm.io.models.model_file_error import ModelFileError
from symsvm.io.models.solutions import kept, restored
from symsvm.io.models.streams import stream_of, stream_state
from symsvm.io.models.vectorisers import VECTORISERS, vectoriser_of, vectoriser_state

__all__ = ["step_of", "step_state"]

# The fitted attributes of each scaling.
_SCALERS = {
    Scaling: ("shift_", "scale_", "offset_"),
    StandardScaler: ("mean_", "var_", "scale_", "n_samples_seen_"),
    MinMaxScaler: ("min_", "scale_", "data_min_", "data_max_", "data_range_", "n_samples_seen_"),
    MaxAbsScaler: ("max_abs_", "scale_", "n_samples_seen_"),
}
_SCALER_NAMES = {cls.__name__: cls for cls in _SCALERS}
_COLUMNS = ("n_features_in_", "feature_names_in_")


def step_state(path, step):
    """The class, the parameters and the fitted attributes of a step, as a dict of values."""
    cls = type(step)
    if (_SCALER_NAMES | VECTORISERS | ESTIMATORS).get(cls.__name__) is not cls:
        known = ", ".join((*VECTORISERS, *_SCALER_NAMES, *ESTIMATORS))
        raise ModelFileError(
            path, f"{cls.__name__} cannot be stored: a file holds {known}, and pipelines that end in one of the last."
        )
    check_is_fitted(step)
    if cls.__name__ in VECTORISERS:
        try:
            return {"class": cls.__name__} | vectoriser_state(step)
        except (TypeError, ValueError) as error:
            raise ModelFileError(path, f"the {cls.__name__} cannot be stored: {str(error).rstrip('.')}.") from None
    names = (*_SCALERS[cls], *_COLUMNS) if cls in _SCALERS else fitted_names(step)
    state = {"class": cls.__name__, "params": step.get_params(deep=False)}
    state["fitted"] = {KEYS.get(name, name): getattr(step, name) for name in names if hasattr(step, name)}
    if cls not in _SCALERS:
        state["solutions"] = kept(step)
        if getattr(step, "calibration", None) is not None:
            state["calibration"] = calibration_arrays(step.calibration_)
        if hasattr(step, "streams_"):
            state["streams"] = [stream_state(stream) for stream in step.streams_]
    return state


def step_of(path, state):
    """The estimator, the scaling or the vectoriser of a state, checked."""
    try:
        name = state["class"]
        if name in VECTORISERS:
            return vectoriser_of(name, state["params"], state["fitted"])
        cls = ESTIMATORS.get(name) or _SCALER_NAMES[name]
        step = cls(**state["params"])
        allowed = (*_SCALERS[cls], *_COLUMNS) if cls in _SCALERS else fitted_names(step)
        attributes = {KEYS.get(attribute, attribute): attribute for attribute in allowed}
        for key, value in state["fitted"].items():
            if key not in attributes:
                raise ValueError(f"{name} has no attribute {str(key)[:80]!r}")
            setattr(step, attributes[key], value)
        if cls in _SCALERS:
            _check_scaler(step)
        else:
            _complete(step, state)
    except ModelFileError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
        sentence = str(error)[:200].rstrip(".")
        raise ModelFileError(path, f"the {str(state.get('class'))[:80]} in it is malformed: {sentence}.") from None
    return step


def _complete(model, state):
    check_fitted(model)
    model.solutions_ = restored(model, state["solutions"])
    if getattr(model, "calibration", None) is not None:
        model.calibration_ = calibration_of(model.calibration, state["calibration"], len(model.classes_))
    if "streams" in state:
        if len(state["streams"]) != len(model.coef_):
            raise ValueError("there must be a stream for each row of coef_")
        model.streams_ = [stream_of(stream, model.n_features_in_) for stream in state["streams"]]


def _check_scaler(scaler):
    d = scaler.n_features_in_
    if type(d) is not int or d < 1:
        raise ValueError("n_features_in_ must be a positive integer")
    low, high = getattr(scaler, "feature_range", (0, 1))
    if not low < high or not isinstance(getattr(scaler, "to", ""), str | tuple | list):
        raise ValueError("the range must be two numbers")
    left_out = {"mean_": "with_mean", "scale_": "with_std", "var_": "with_std"}
    for name in _SCALERS[type(scaler)]:
        value, switch = getattr(scaler, name), left_out.get(name)
        if name == "n_samples_seen_" or (value is None and not getattr(scaler, str(switch), True)):
            continue
        fine = isinstance(value, np.ndarray) and value.shape == (d,) and value.dtype.kind == "f"
        if not (fine and np.isfinite(value).all()):
            raise ValueError(f"{name} must be {d} finite numbers")
