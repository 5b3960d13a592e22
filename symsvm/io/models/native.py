"""The .symsvm file: a fitted model as JSON and arrays in an `archive`, without pickle.

`model.json` has the version of the format and, for each step of a pipeline, its class, its parameters and its fitted
state. A step is an estimator, or a scaling or a vectoriser before one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from symsvm import __version__
from symsvm._lib.atomic_write import atomic_write
from symsvm.io.data import Scaling
from symsvm.io.file_errors import ModelFileError
from symsvm.io.models.archive import read_archive, write_archive
from symsvm.io.models.estimator_state import ESTIMATORS, read_estimator_state, write_estimator_state
from symsvm.io.models.model_checks import check_scaler
from symsvm.io.models.values import Decoder, Encoder
from symsvm.io.models.vectoriser_state import VECTORISERS, vectoriser_from_state, vectoriser_state

if TYPE_CHECKING:
    from collections.abc import Collection

    from symsvm._lib.types import Path

__all__ = ["read_native", "write_native"]

_FORMAT, _VERSION = "symsvm model", 1
_BY_NAME = ("params", "fitted")  # dicts whose values are stored by name, so that the JSON is readable

# The fitted attributes of each scaling.
_SCALERS = {
    Scaling: ("shift_", "scale_", "offset_"),
    StandardScaler: ("mean_", "var_", "scale_", "n_samples_seen_"),
    MinMaxScaler: ("min_", "scale_", "data_min_", "data_max_", "data_range_", "n_samples_seen_"),
    MaxAbsScaler: ("max_abs_", "scale_", "n_samples_seen_"),
}
_SCALER_NAMES = {cls.__name__: cls for cls in _SCALERS}
_COLUMNS = ("n_features_in_", "feature_names_in_")


# ---- writing


def write_native(model: Any, path: Path) -> None:
    """Write an estimator, or a pipeline of a vectoriser, scalings and an estimator, to a .symsvm file."""
    steps = model.steps if isinstance(model, Pipeline) else [(None, model)]
    if getattr(model, "memory", None) is not None:
        raise ModelFileError(path, "a pipeline with memory= cannot be stored: call set_params(memory=None) first.")
    encoder, states = Encoder(path), []
    for i, (_, step) in enumerate(steps):
        prefix = f"{i}." if len(steps) > 1 else ""
        states.append({key: _encode(encoder, key, v, prefix) for key, v in _step_state(path, step).items()})
    names = [name for name, _ in steps]
    head = {"format": _FORMAT, "version": _VERSION, "symsvm": __version__, "pipeline": names, "steps": states}
    with atomic_write(path) as file:
        write_archive(file, head, encoder.arrays)


def _encode(encoder: Encoder, key: str, value: Any, prefix: str) -> Any:
    if key in _BY_NAME:
        return {name: encoder.encode(item, f"{prefix}{name}") for name, item in value.items()}
    return encoder.encode(value, f"{prefix}{key}")


def _step_state(path: Path, step: Any) -> dict[str, Any]:
    """The class, the parameters and the fitted state of a step, as a dict of values."""
    cls = type(step)
    if (_SCALER_NAMES | VECTORISERS | ESTIMATORS).get(cls.__name__) is not cls:
        known = ", ".join((*VECTORISERS, *_SCALER_NAMES))
        raise ModelFileError(
            path,
            f"{cls.__name__} cannot be stored: a .symsvm file holds {', '.join(ESTIMATORS)}, and pipelines of {known} "
            "that end in one of these.",
        )
    check_is_fitted(step)
    if cls.__name__ in VECTORISERS:
        try:
            return {"class": cls.__name__} | vectoriser_state(step)
        except (TypeError, ValueError) as error:
            raise ModelFileError(path, f"the {cls.__name__} cannot be stored: {str(error).rstrip('.')}.") from None
    state = {"class": cls.__name__, "params": step.get_params(deep=False)}
    if cls in _SCALERS:
        names = [name for name in (*_SCALERS[cls], *_COLUMNS) if hasattr(step, name)]
        return state | {"fitted": {name: getattr(step, name) for name in names}}
    return state | write_estimator_state(step)


# ---- reading


def read_native(path: Path, trusted: Collection[str] = ()) -> Any:
    """Read what `write_native` wrote; names in `trusted` may be imported."""
    head, arrays = read_archive(path)
    if not isinstance(head, dict) or head.get("format") != _FORMAT:
        raise ModelFileError(path, f"model.json must give {_FORMAT!r} as its format.")
    if head.get("version") != _VERSION:
        found, writer = (str(head.get(key))[:40] for key in ("version", "symsvm"))
        raise ModelFileError(
            path,
            f"the file has version {found} of the format, written by symsvm {writer}; symsvm {__version__} reads "
            f"version {_VERSION}.",
        )
    decoder = Decoder(path, arrays, trusted)
    names, states = head.get("pipeline"), head.get("steps")
    if not isinstance(names, list) or not isinstance(states, list) or len(names) != len(states) or not names:
        raise ModelFileError(path, "model.json must have a name and a state for every step.")
    steps = [_step_from_state(path, _decode(path, decoder, state)) for state in states]
    if names == [None]:
        return steps[0]
    if not all(isinstance(name, str) for name in names) or not hasattr(steps[-1], "predict"):
        raise ModelFileError(path, "the steps of a pipeline must have names, and the last one must be an estimator.")
    if any(hasattr(step, "predict") for step in steps[:-1]):
        raise ModelFileError(path, "a pipeline must have one estimator, as its last step.")
    if any(isinstance(step, TfidfVectorizer) for step in steps[1:]):
        raise ModelFileError(path, "a vectoriser must be the first step of a pipeline.")
    if len({_count_features(step) for step in steps}) > 1:
        raise ModelFileError(path, "the steps of a pipeline must have the same number of features.")
    return Pipeline(list(zip(names, steps, strict=True)))


def _count_features(step: Any) -> int:
    """The number of features that the next step gets."""
    return len(step.vocabulary_) if isinstance(step, TfidfVectorizer) else step.n_features_in_


def _decode(path: Path, decoder: Decoder, state: Any) -> dict[str, Any]:
    if not isinstance(state, dict) or not all(isinstance(state.get(key), dict) for key in _BY_NAME):
        raise ModelFileError(path, "a step must have a class, its parameters and its attributes.")
    return {
        key: {name: decoder.decode(v) for name, v in value.items()} if key in _BY_NAME else decoder.decode(value)
        for key, value in state.items()
    }


def _step_from_state(path: Path, state: dict[str, Any]) -> Any:
    """The estimator, the scaling or the vectoriser of a state, checked."""
    try:
        name = state["class"]
        if name in VECTORISERS:
            return vectoriser_from_state(name, state["params"], state["fitted"])
        if name in ESTIMATORS:
            model = ESTIMATORS[name](**state["params"])
            read_estimator_state(model, state)
            return model
        scaler = _SCALER_NAMES[name](**state["params"])
        for key, value in state["fitted"].items():
            if key not in (*_SCALERS[type(scaler)], *_COLUMNS):
                raise ValueError(f"{name} has no attribute {str(key)[:80]!r}")
            setattr(scaler, key, value)
        check_scaler(scaler, _SCALERS[type(scaler)])
        return scaler
    except ModelFileError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
        reason = str(error)[:200].rstrip(".")
        raise ModelFileError(path, f"its {str(state.get('class'))[:80]} is malformed: {reason}.") from None
