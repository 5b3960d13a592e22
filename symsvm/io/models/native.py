"""The native file: everything that a fitted model is, without pickle: see `symsvm.files.archive`."""

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline

from symsvm import __version__
from symsvm._lib.atomic_write import atomic_write
from symsvm.io.models.archive import read_archive, write_archive
from symsvm.io.models.model_file_error import ModelFileError
from symsvm.io.models.steps import step_of, step_state
from symsvm.io.models.values import Decoder, Encoder

__all__ = ["read_native", "write_native"]

FORMAT, VERSION = "symsvm model", 1
_NAMED = ("params", "fitted")


def write_native(model, path):
    """Write an estimator, or a pipeline of a vectoriser, scalings and an estimator, to a .symsvm file."""
    steps = model.steps if isinstance(model, Pipeline) else [(None, model)]
    if getattr(model, "memory", None) is not None:
        raise ModelFileError(path, "a pipeline with memory= cannot be stored: set_params(memory=None) first.")
    encoder, states = Encoder(path), []
    for i, (_, step) in enumerate(steps):
        prefix = f"{i}." if len(steps) > 1 else ""
        states.append({key: _encoded(encoder, key, v, prefix) for key, v in step_state(path, step).items()})
    names = [name for name, _ in steps]
    head = {"format": FORMAT, "version": VERSION, "symsvm": __version__, "pipeline": names, "steps": states}
    with atomic_write(path) as file:
        write_archive(file, head, encoder.arrays)


def _encoded(encoder, key, value, prefix):
    """Parameters and attributes by their names, so that the JSON can be read by eye."""
    if key in _NAMED:
        return {name: encoder.encode(item, f"{prefix}{name}") for name, item in value.items()}
    return encoder.encode(value, f"{prefix}{key}")


def read_native(path, trusted=()):
    """Read what `write_native` wrote; names in `trusted` may be imported."""
    head, arrays = read_archive(path)
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise ModelFileError(path, f"model.json must say that its format is {FORMAT!r}.")
    if head.get("version") != VERSION:
        found, writer = (str(head.get(key))[:40] for key in ("version", "symsvm"))
        raise ModelFileError(
            path, f"this is version {found} of the format, by symsvm {writer}; symsvm {__version__} reads {VERSION}."
        )
    decoder = Decoder(path, arrays, trusted)
    names, states = head.get("pipeline"), head.get("steps")
    if not isinstance(names, list) or not isinstance(states, list) or len(names) != len(states) or not names:
        raise ModelFileError(path, "model.json must name every step, and hold it.")
    steps = [step_of(path, _decoded(path, decoder, state)) for state in states]
    if names == [None]:
        return steps[0]
    if not all(isinstance(name, str) for name in names) or not hasattr(steps[-1], "predict"):
        raise ModelFileError(path, "a pipeline must have names, and an estimator at its end.")
    if any(hasattr(step, "predict") for step in steps[:-1]):
        raise ModelFileError(path, "a pipeline must have one estimator, at its end.")
    if any(isinstance(step, TfidfVectorizer) for step in steps[1:]):
        raise ModelFileError(path, "a vectoriser must be the first step of a pipeline.")
    if len({_features(step) for step in steps}) > 1:
        raise ModelFileError(path, "the steps of a pipeline must have the same features.")
    return Pipeline(list(zip(names, steps, strict=True)))


def _features(step):
    """How many features the next step gets."""
    return len(step.vocabulary_) if isinstance(step, TfidfVectorizer) else step.n_features_in_


def _decoded(path, decoder, state):
    if not isinstance(state, dict) or not all(isinstance(state.get(key), dict) for key in _NAMED):
        raise ModelFileError(path, "a step must be a class, its parameters and its attributes.")
    return {
        key: {name: decoder.decode(v) for name, v in value.items()} if key in _NAMED else decoder.decode(value)
        for key, value in state.items()
    }
