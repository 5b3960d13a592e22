"""symsvm evaluate: how good a model is on a file with labels."""

import click

from symsvm.cli.errors import DONE
from symsvm.cli.group import Command
from symsvm.cli.options import data_options, file_argument, model_argument, output_options, section

__all__ = ["command"]

_EXAMPLES = (
    ("symsvm evaluate model.symsvm test.csv --labels species", "The report:"),
    ("symsvm evaluate model.symsvm test.csv --plots pictures --json", "With pictures, for a machine to read:"),
)


@click.command(cls=Command, examples=_EXAMPLES, short_help="Report how good a model is on a file with labels.")
@model_argument
@file_argument()
@data_options
@section("Output")(
    "--plots", metavar="DIR", help="Draw the ROC and precision-recall curves and the confusion matrix into DIR."
)
@output_options
@click.pass_context
def command(ctx, model, file, plots, n_features, trust, as_json, quiet, **data):
    """Report how good MODEL is on FILE: accuracy, confusion matrix, ROC and precision-recall, or errors.

    Of a regression: errors and R2. Of a one-class machine, which needs no labels: the outliers and, where the labels
    are 1 and another one, how well they are told; of a table, --labels names them.
    """
    from symsvm.cli.inputs import fitting, table_for
    from symsvm.cli.keeping import opened
    from symsvm.cli.machine import check_classes, check_labels, parts_of
    from symsvm.cli.output import Output
    from symsvm.cli.pictures import drawn, prepare
    from symsvm.cli.scores import kind_of, score_lines, scored
    from symsvm.cli.summary import data_line, model_line
    from symsvm.cli.table import described

    if plots is not None:
        prepare()
    out, fitted = Output(as_json, quiet), opened(model, trust, n_features)
    table = table_for(fitted, file, data, supervised=kind_of(fitted) != "outlier")
    if kind_of(fitted) == "regressor":
        check_labels(table, "svr")
    elif kind_of(fitted) == "classifier":
        check_classes(table, fitted.classes_)
    X = fitting(fitted, table)
    document = {
        "command": "evaluate",
        "model": parts_of(fitted),
        "data": described(table),
        **scored(fitted, X, table.y),
    }
    out.show(data_line(document["data"]), model_line(document["model"]), "", *score_lines(document, out.width))
    if plots is not None:
        with out.heeding():
            document["plots"] = drawn(fitted, X, table.y, plots, document)
        for path in document["plots"]:
            out.show(f"drawn: {path}")
    out.finish(document)
    ctx.exit(DONE)
