"""The command `symsvm evaluate`: the scores of a model on a file with labels, and plots of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from symsvm.cli.command_group import DONE, Command
from symsvm.cli.inputs import check_classes, check_labels, points_for, read_table_for
from symsvm.cli.model_building import describe_model, model_kind
from symsvm.cli.options import data_options, file_argument, model_argument, output_options, section
from symsvm.cli.output import Output, load_model, require_matplotlib
from symsvm.cli.reports import data_line, model_line, score, score_tables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

__all__ = ["evaluate"]

_EXAMPLES = (
    ("symsvm evaluate model.symsvm test.csv --labels species", "The report:"),
    ("symsvm evaluate model.symsvm test.csv --plots pictures --json", "With plots, as JSON:"),
)


@click.command(cls=Command, examples=_EXAMPLES)
@model_argument
@file_argument()
@data_options
@section("Output")(
    "--plots",
    metavar="DIR",
    help="Draw the ROC and precision-recall curves and the confusion matrix (of a regression, the predictions against "
    "the targets) into this directory.",
)
@output_options
@click.pass_context
def evaluate(
    ctx: click.Context,
    /,
    model: str,
    file: Any,
    plots: str | None,
    n_features: int | None,
    trust: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    **reader: Any,
) -> None:
    """Report the scores of MODEL on FILE.

    Classifiers: accuracy, precision and recall, confusion matrix, areas under the ROC and precision-recall curves.
    Regressions: errors and R2. One-class machines: the share of outliers, without labels; with the labels 1 (inlier)
    and another one, also the accuracy and the areas. In a table, give the column of these labels with --labels.
    """
    if plots is not None:
        require_matplotlib()
    out, fitted = Output(as_json, quiet), load_model(model, trust, n_features)
    kind = model_kind(fitted)
    table = read_table_for(fitted, file, reader, supervised=kind != "outlier")
    if kind == "regressor":
        check_labels(table, "svr")
    elif kind == "classifier":
        check_classes(table, fitted.classes_)
    X = points_for(fitted, table)
    document = {
        "command": "evaluate",
        "model": describe_model(fitted),
        "data": table.describe(),
        **score(fitted, X, table.y),
    }
    out.show(data_line(document["data"]), model_line(document["model"]), "", *score_tables(document, out.width))
    if plots is not None:
        with out.warnings_as_notes():
            document["plots"] = _draw(fitted, X, table.y, Path(plots), document)
        for path in document["plots"]:
            out.show(f"drawn: {path}")
    out.print_json(document)
    ctx.exit(DONE)


# ---- plots


def _draw(model: Any, X: Any, y: Any, directory: Path, scores: Mapping[str, Any]) -> list[str]:
    """Draw the plots of a model's scores into a directory, and return their paths."""
    import matplotlib as mpl

    directory.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"text.parse_math": False}):  # labels may contain a $
        if scores["kind"] == "regressor":
            return [_draw_predictions(model, X, y, directory / "predictions.png")]
        paths = []
        if scores.get("roc_auc") is not None:
            from symsvm.inspection import plot

            paths.append(_save(plot.roc(model, X, y).figure_, directory / "roc.png"))
            paths.append(_save(plot.precision_recall(model, X, y).figure_, directory / "precision_recall.png"))
        if "confusion" in scores:
            paths.append(_draw_confusion(scores, directory / "confusion.png"))
        return paths


def _save(figure: Figure, path: Path) -> str:
    import matplotlib.pyplot as plt

    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)
    return str(path)


def _draw_confusion(scores: Mapping[str, Any], path: Path) -> str:
    """Draw the confusion matrix, a row for each true class; colours are shares of the row."""
    import matplotlib.pyplot as plt
    import numpy as np

    matrix, names = np.asarray(scores["confusion"]), list(map(str, scores["classes"]))
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    size = max(3.2, 0.45 * len(names) + 1.5)
    figure, ax = plt.subplots(figsize=(size, size))
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for i, j in np.ndindex(*matrix.shape):
        if matrix[i, j]:
            color = "white" if shares[i, j] > 0.5 else "black"
            ax.text(j, i, str(matrix[i, j]), ha="center", va="center", fontsize=8, color=color)
    rotation = 90 if max(map(len, names)) > 4 else 0
    ax.set_xticks(range(len(names)), names, rotation=rotation)
    ax.set_yticks(range(len(names)), names)
    ax.set(xlabel="predicted", ylabel="true")
    return _save(figure, path)


def _draw_predictions(model: Any, X: Any, y: Any, path: Path) -> str:
    """Draw predictions against targets, and the line on which they are equal."""
    import matplotlib.pyplot as plt

    predicted = model.predict(X)
    figure, ax = plt.subplots(figsize=(4.8, 4.8))
    ends = [min(y.min(), predicted.min()), max(y.max(), predicted.max())]
    ax.plot(ends, ends, color="#888888", linewidth=1.0, linestyle=":")
    ax.plot(y, predicted, "o", markersize=3, alpha=0.5, color="#0072B2")
    ax.set(xlabel="target", ylabel="prediction")
    return _save(figure, path)
