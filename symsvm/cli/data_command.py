"""The command `symsvm data`: list data sets; describe a file; convert or scale it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from symsvm.cli.command_group import DONE, Command, InvalidUsage
from symsvm.cli.inputs import densify, points_to_scale, read_table
from symsvm.cli.model_building import SCALES
from symsvm.cli.option_types import DataFile, Name
from symsvm.cli.options import SCALINGS, data_options, file_argument, output_options, refuse_given, section
from symsvm.cli.output import Output, check_output_path, column_table, key_value_table
from symsvm.cli.reports import data_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from symsvm._lib.types import Array

__all__ = ["data"]

_EXAMPLES = (
    ("symsvm data", "List the data sets that can be used by name:"),
    ("symsvm data train.csv", "Describe a file, with hints for training:"),
    ("symsvm data train.csv -o train.svm --scale sym", "Convert to LIBSVM's format, scaled to [-1, 1]:"),
    ("symsvm data test.csv -o test.svm --scale sym --like train.csv", "Scale by the ranges of the training set:"),
)
# Hints for training: ranges of features, largest to smallest; magnitudes; sizes of classes, largest to smallest.
_MAX_RANGE_RATIO = 20
_MAX_MAGNITUDE = 100
_MAX_CLASS_RATIO = 10
# With more labels than this, they are hardly classes.
_MAX_CLASSES = 100
_output = section("Output")


@click.command(cls=Command, examples=_EXAMPLES)
@file_argument(required=False)
@data_options
@section("Data")("--unlabelled", is_flag=True, help="FILE has no labels.")
@_output("-o", "--output", metavar="OTHER", help="Write the points to this file, in the format of its ending.")
@_output(
    "--labels-output", metavar="OTHER", help="Write the labels to a separate file, for formats that hold points only."
)
@_output("--scale", type=Name(SCALINGS), default="none", help="Scale the features of the points that are written.")
@_output("--like", type=DataFile(), help="Scale by the ranges of this file instead of FILE.")
@output_options
@click.pass_context
def data(
    ctx: click.Context,
    /,
    file: Any,
    output: str | None,
    labels_output: str | None,
    scale: str,
    like: Any,
    unlabelled: bool,
    as_json: bool,
    quiet: bool,
    **reader: Any,
) -> None:
    """List the data sets, describe FILE, or write it to OTHER in another format or scale."""
    out = Output(as_json, quiet)
    if file is None:
        if output is not None:
            raise click.UsageError("there is no FILE to write.", ctx)
        refuse_given(ctx, set(ctx.params) - {"as_json", "quiet"}, "without FILE the data sets are listed")
        _list_sets(out)
        ctx.exit(DONE)
    if (scale != "none" or labels_output) and output is None:
        raise InvalidUsage("--scale and --labels-output apply to the file that is written: name it with -o OTHER.")
    if like is not None and scale == "none":
        raise InvalidUsage("--like has no effect without --scale.")
    reader["supervised"] = not unlabelled
    if output is None:
        _describe_file(out, file, reader)
    else:
        _write_file(out, file, reader, output, labels_output, scale, like)
    ctx.exit(DONE)


def _list_sets(out: Output) -> None:
    """Print the data sets, and whether they are downloaded."""
    from symsvm.io.data import SETS, data_home

    home, rows, sets = data_home(), [], {}
    for name, entry in SETS.items():
        here = all((home / file).is_file() for file in (*entry.train, *entry.test))
        rows.append((name, entry.about, entry.n_features or "", "yes" if entry.test else "", "yes" if here else ""))
        sets[name] = {"about": entry.about, "features": entry.n_features, "test": bool(entry.test), "here": here}
    out.show(column_table(["name", "what", "features", "test part", "here"], rows, left=2, width=out.width))
    out.show(f"The others are downloaded to {home} when they are first used.")
    out.print_json({"command": "data", "home": str(home), "sets": sets})


# ---- describing


def _describe_file(out: Output, file: Any, reader: Mapping[str, Any]) -> None:
    """Print the size, the labels and the values of a file, and hints for training."""
    import numpy as np

    table = read_table(file, **reader)
    document, hints = table.describe(), []
    if isinstance(table.X, list):
        lengths = np.array([len(text) for text in table.X])
        rows = [("length", f"{lengths.min()} to {lengths.max()} characters, mean {lengths.mean():.0f}")]
    else:
        low, high = _ranges(table.X)
        n_constant = int(np.sum(low == high))
        document |= {"least": low.min(), "greatest": high.max(), "constant_features": n_constant}
        if os.path.exists(file):
            from symsvm.io.data.data_formats import detect_format

            document["format"] = reader.get("format") or detect_format(file)
        rows = [
            ("format", document.get("format")),
            ("stored as", document["storage"]),
            ("not zero", f"{100 * document['filled']:.4g} % of the entries"),
            ("values", f"from {low.min():g} to {high.max():g}"),
            ("constant features", str(n_constant) if n_constant else None),
        ]
        if "targets" in document:
            rows.append(("targets", f"{document['targets']['distinct']} distinct values"))
        hints = _hints(document, low, high)
    out.show(data_line(document), "", key_value_table(rows))
    for text in hints:
        out.note(text)
    out.print_json({"command": "data", **document, "warnings": hints})


def _ranges(X: Any) -> tuple[Array, Array]:
    """Return the least and the greatest entry of each column."""
    if hasattr(X, "tocsr"):
        return X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
    return X.min(axis=0), X.max(axis=0)


def _hints(document: Mapping[str, Any], low: Array, high: Array) -> list[str]:
    """Return sentences about what makes training slow or models bad: scales, constant features, rare classes."""
    hints, ranges = [], (high - low.astype("float64"))[low < high]
    if len(ranges) and ranges.max() > _MAX_RANGE_RATIO * ranges.min():
        hints.append(
            f"the widest feature has a range of {ranges.max():.3g}, the narrowest one of {ranges.min():.3g}: wide "
            "features dominate a kernel; train with --scale zscore or sym (maxabs for sparse points)."
        )
    elif len(ranges) and max(abs(low.min()), abs(high.max())) > _MAX_MAGNITUDE:
        hints.append("values are large, which makes training slow: train with --scale unit or zscore.")
    if document["constant_features"]:
        hints.append(f"{document['constant_features']} of {document['features']} features are the same in every row.")
    counts = list(document.get("classes", {}).values())
    if len(counts) == 1:
        hints.append("all rows have the same label: a classifier needs two.")
    elif 1 < len(counts) <= _MAX_CLASSES and max(counts) > _MAX_CLASS_RATIO * min(counts):
        hints.append("the sizes of the classes differ much: consider --class-weight balanced.")
    return hints


# ---- writing


def _write_file(
    out: Output,
    file: Any,
    reader: Mapping[str, Any],
    output: str,
    labels_output: str | None,
    scale: str,
    like: Any,
) -> None:
    """Write the points of a file to another one, scaled if that was asked for."""
    from symsvm.io.data import Scaling, write

    check_output_path(output)
    check_output_path(labels_output)
    if labels_output is not None and os.path.realpath(labels_output) == os.path.realpath(output):
        raise InvalidUsage(f"{output} is given twice: --labels-output must be another file than --output.")
    table = read_table(file, **reader)
    X, y = table.X, table.y
    if scale != "none":
        source = table if like is None else read_table(like, **{**reader, "limit": None})
        scaling = Scaling(SCALES[scale]).fit(points_to_scale(source.X, scale))
        X = scaling.transform(points_to_scale(X, scale))
    if labels_output is not None:
        if y is None:
            raise InvalidUsage("there are no labels for --labels-output.")
        if y.dtype.kind not in "biuf":
            raise InvalidUsage(
                f"the labels are words such as {str(y[0])!r}, and --labels-output holds numbers: leave it out."
            )
        write(labels_output, y.reshape(-1, 1))
        y = None
    try:
        write(output, X, y)
    except ValueError:
        if not hasattr(X, "tocsr"):
            raise
        write(output, densify(X, "the format"), y)  # for formats without sparse points
    document = {"command": "data", **table.describe(), "output": output, "labels_output": labels_output, "scale": scale}
    labels = f", the labels to {labels_output}" if labels_output else ""
    out.show(data_line(document), f"written to {output}{labels}")
    out.print_json(document)
