"""The command `symsvm predict`: labels, probabilities or decision values of the points in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from symsvm.cli.command_group import DONE, Command, InvalidUsage
from symsvm.cli.inputs import points_for, read_table_for
from symsvm.cli.model_building import final_estimator
from symsvm.cli.options import data_options, file_argument, model_argument, output_options, section
from symsvm.cli.output import Output, check_output_path, load_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from symsvm._lib.types import Array

__all__ = ["predict"]

_EXAMPLES = (
    ("symsvm predict model.symsvm new.csv", "One label per line:"),
    ("symsvm predict model.symsvm new.csv --proba -o new.out", "With the probability of each class, to a file:"),
    ("cut -d, -f2-5 new.csv | symsvm predict model.symsvm -", "The output of another program:"),
)
# Points predicted at a time, which bounds the memory for kernel values.
_BLOCK_SIZE = 4096
_data, _output = section("Data"), section("Output")


@click.command(cls=Command, examples=_EXAMPLES)
@model_argument
@file_argument()
@_data(
    "-o",
    "--output",
    metavar="OUT",
    help="Write to this file instead of stdout. An existing file is replaced when the new one is complete.",
)
@data_options
@_output("--proba", "columns", flag_value="probabilities", help="Also print the probability of each class.")
@_output("--decision", "columns", flag_value="decision", help="Also print the decision values.")
@output_options
@click.pass_context
def predict(
    ctx: click.Context,
    /,
    model: str,
    file: Any,
    output: str | None,
    columns: str | None,
    n_features: int | None,
    trust: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    **reader: Any,
) -> None:
    """Predict the points of FILE with MODEL, one line for each.

    With --proba or --decision the lines are CSV with a header. If the file has labels, in LIBSVM's format or in the
    column given by --labels, the accuracy is printed to stderr.
    """
    check_output_path(output)
    out, fitted = Output(as_json, quiet), load_model(model, trust, n_features)
    if columns == "probabilities" and not hasattr(fitted, "predict_proba"):
        raise InvalidUsage("the model has no probabilities: train it with -b 1.")
    if columns == "decision" and not hasattr(fitted, "decision_function"):
        raise InvalidUsage("a regression has no decision values: leave out --decision.")
    predictions = _predict_file(fitted, file, columns, reader)
    _write(predictions, output, out)
    _report_score(predictions, out)
    ctx.exit(DONE)


@dataclass(frozen=True)
class _Predictions:
    """The predictions of a model.

    Attributes
    ----------
    labels : the label or the value of each point.
    kind : what the columns are, "probabilities" or "decision"; None if there are none.
    names, columns : the heads, and the numbers (n, len(names)).
    truth, classes : the labels in the file and those that the model knows, or None.
    """

    labels: Array
    kind: str | None
    names: list[str]
    columns: Array
    truth: Any
    classes: Any


def _predict_file(model: Any, file: Any, kind: str | None, reader: Mapping[str, Any]) -> _Predictions:
    """Read a file, with the options of the command for the reader, and predict its points."""
    import numpy as np

    estimator = final_estimator(model)
    table = read_table_for(model, file, reader, supervised=False)
    X, n = points_for(model, table), table.n_rows
    blocks = [X[i : i + _BLOCK_SIZE] for i in range(0, n, _BLOCK_SIZE)]
    labels = np.concatenate([model.predict(block) for block in blocks])
    columns, names = np.empty((len(labels), 0)), []
    if kind is not None:
        method = model.predict_proba if kind == "probabilities" else model.decision_function
        columns = np.concatenate([np.asarray(method(block)) for block in blocks]).reshape(n, -1)
        names = _column_names(estimator, kind, columns.shape[1])
    return _Predictions(labels, kind, names, columns, table.y, getattr(estimator, "classes_", None))


def _column_names(estimator: Any, kind: str, width: int) -> list[str]:
    classes = [str(c) for c in getattr(estimator, "classes_", ())]
    if kind == "probabilities":
        return [f"p({c})" for c in classes]
    if width == 1:
        return ["decision"]
    return [f"f({c})" for c in classes] if width == len(classes) else [f"f{i + 1}" for i in range(width)]


def _lines(predictions: _Predictions) -> Iterator[str]:
    names = predictions.names
    if names:
        yield ",".join(["label", *map(_quote, names)])
    for label, row in zip(predictions.labels.tolist(), predictions.columns.tolist(), strict=True):
        yield ",".join([_quote(str(label)) if names else str(label), *map(repr, row)])


def _quote(text: str) -> str:
    """Quote a field of CSV if it needs to be."""
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n') else text


def _write(predictions: _Predictions, path: str | None, out: Output) -> None:
    """Write the predictions to a file or to stdout, and as JSON if that was asked for."""
    document = {"command": "predict", "predictions": predictions.labels, "output": path}
    if predictions.kind is not None:
        document |= {"columns": predictions.names, predictions.kind: predictions.columns}
    if path is not None:
        from symsvm._lib.atomic_write import atomic_write

        with atomic_write(Path(path)) as file:
            file.write("".join(f"{line}\n" for line in _lines(predictions)).encode())
    else:
        for line in _lines(predictions):
            out.print_result(line)
    out.print_json(document)


def _report_score(predictions: _Predictions, out: Output) -> None:
    """Print the accuracy or the error to stderr, as svm-predict does, if the file has labels."""
    import numpy as np

    y, labels, n = predictions.truth, predictions.labels, len(predictions.labels)
    if y is None or out.quiet:
        return
    if labels.dtype.kind == "f" and np.asarray(y).dtype.kind in "fiu":
        error = float(np.mean((labels - y) ** 2))
        out.stderr.print(f"Mean squared error = {error:.6g} (regression)")
    elif np.isin(y, labels if predictions.classes is None else predictions.classes).any():
        correct = int(np.sum(labels == y))
        out.stderr.print(f"Accuracy = {100 * correct / n:.6g}% ({correct}/{n}) (classification)")
