"""symsvm predict: the label, the probabilities or the decision values of every point of a file."""

import click

from symsvm.cli.errors import DONE, Refused
from symsvm.cli.group import Command
from symsvm.cli.options import data_options, file_argument, model_argument, output_options, section

__all__ = ["command"]

_EXAMPLES = (
    ("symsvm predict model.symsvm new.csv", "A label a line:"),
    ("symsvm predict model.symsvm new.csv --proba -o new.out", "With the probability of each class, to a file:"),
    ("cut -d, -f2-5 new.csv | symsvm predict model.symsvm -", "What another program writes:"),
)


@click.command(cls=Command, examples=_EXAMPLES, short_help="Predict every point of a file.")
@model_argument
@file_argument()
@section("Data")(
    "-o",
    "--output",
    metavar="OUT",
    help="Write to this file instead of stdout; it is replaced once the new one is whole.",
)
@data_options
@section("Output")(
    "--proba", "what", flag_value="probabilities", help="The probability of each class beside the label."
)
@section("Output")("--decision", "what", flag_value="decision", help="The decision values beside the label.")
@output_options
@click.pass_context
def command(ctx, model, file, output, what, n_features, trust, as_json, quiet, **data):
    """Predict the points of FILE with MODEL, a line for each.

    With --proba or --decision the lines are CSV with a header. Labels in the file are left aside, or counted where
    LIBSVM's text has them: the accuracy goes to stderr.
    """
    from symsvm.cli.keeping import check_path, opened
    from symsvm.cli.output import Output
    from symsvm.cli.predicting import predictions, told, written

    check_path(output)
    out, model = Output(as_json, quiet), opened(model, trust, n_features)
    if what == "probabilities" and not hasattr(model, "predict_proba"):
        raise Refused("the model has no probabilities: train it with -b 1.")
    if what == "decision" and not hasattr(model, "decision_function"):
        raise Refused("a regression has no decision values: its predictions are all there is.")
    found = predictions(model, file, what, data)
    written(found, output, out)
    told(found, out)
    ctx.exit(DONE)
