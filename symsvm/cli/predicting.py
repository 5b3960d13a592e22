"""Predictions: of a model, for the points of a file, by the block; and how they are written."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from symsvm.cli.inputs import fitting, table_for
from symsvm.cli.machine import machine_of

__all__ = ["Predictions", "predictions", "told", "written"]

_BLOCK = 4096


@dataclass(frozen=True)
class Predictions:
    """What a model says of some points.

    Attributes
    ----------
    labels : a label, or a value, for each point.
    what : what the columns beside them are: "probabilities", "decision" or None.
    names, columns : the heads and the numbers (n, len(names)) beside the labels.
    truth, classes : the labels that the file has, and those that the model knows; or None.
    """

    labels: np.ndarray
    what: str | None
    names: list
    columns: np.ndarray
    truth: Any
    classes: Any


def predictions(model, file, what, data):
    """Read a file and predict every point of it; `data` are the options of the reader."""
    machine = machine_of(model)
    table = table_for(model, file, data, supervised=False)
    X = fitting(model, table)
    n = len(X) if isinstance(X, list) else X.shape[0]
    blocks = [X[i : i + _BLOCK] for i in range(0, n, _BLOCK)]
    labels = np.concatenate([model.predict(block) for block in blocks])
    columns, names = np.empty((len(labels), 0)), []
    if what is not None:
        method = model.predict_proba if what == "probabilities" else model.decision_function
        columns = np.concatenate([np.asarray(method(block)) for block in blocks]).reshape(n, -1)
        names = _names(machine, what, columns.shape[1])
    return Predictions(labels, what, names, columns, table.y, getattr(machine, "classes_", None))


def _names(machine, what, width):
    """The heads of the columns."""
    classes = [str(c) for c in getattr(machine, "classes_", ())]
    if what == "probabilities":
        return [f"p({c})" for c in classes]
    if width == 1:
        return ["decision"]
    return [f"f({c})" for c in classes] if width == len(classes) else [f"f{i + 1}" for i in range(width)]


def _lines(found):
    if found.names:
        yield ",".join(["label", *map(_quoted, found.names)])
    for label, row in zip(found.labels.tolist(), found.columns.tolist(), strict=True):
        yield ",".join([_quoted(str(label)) if found.names else str(label), *map(repr, row)])


def _quoted(text):
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n') else text


def written(found, path, out):
    """Write the predictions to a file, as JSON or to stdout."""
    document = {"command": "predict", "predictions": found.labels, "output": path}
    if found.what is not None:
        document |= {"columns": found.names, found.what: found.columns}
    if path is not None:
        from symsvm._lib.atomic_write import atomic_write

        with atomic_write(Path(path)) as file:
            file.write("".join(f"{line}\n" for line in _lines(found)).encode())
    else:
        for line in _lines(found):
            out.answer(line)
    out.finish(document)


def told(found, out):
    """Say on stderr how many predictions agree with the labels of the file, where it has any."""
    if found.truth is None or out.quiet:
        return
    y, n = found.truth, len(found.labels)
    if found.labels.dtype.kind == "f" and np.asarray(y).dtype.kind in "fiu":
        error = float(np.mean((found.labels - y) ** 2))
        out.aside.print(f"Mean squared error = {error:.6g} (regression)")
    elif np.isin(y, found.labels if found.classes is None else found.classes).any():
        correct = int(np.sum(found.labels == y))
        out.aside.print(f"Accuracy = {100 * correct / n:.6g}% ({correct}/{n}) (classification)")
