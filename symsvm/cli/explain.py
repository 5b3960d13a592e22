"""symsvm explain: what a model computes and how good its fit is; or what its decision on one point is made of."""

import click

from symsvm.cli.errors import DONE, Refused
from symsvm.cli.group import Command
from symsvm.cli.options import data_options, file_argument, model_argument, output_options, refuse_given, section
from symsvm.cli.types import Named

__all__ = ["command"]

_EXAMPLES = (
    ("symsvm explain model.symsvm", "The formula, what the compiler makes of it, and the certificate:"),
    ("symsvm explain model.symsvm --as html -o model.html", "The same as a page with a picture:"),
    ("symsvm explain model.symsvm new.csv --row 3", "What the decision on the third point is made of:"),
)
_out = section("Output")


@click.command(
    cls=Command, examples=_EXAMPLES, short_help="Show a model's formula, its compiled graph and its certificate."
)
@model_argument
@file_argument(required=False)
@data_options
@section("Data")("--row", type=click.IntRange(min=1), default=1, show_default=True, help="Which row of FILE, from 1.")
@_out("--top", type=click.IntRange(min=1), default=10, show_default=True, help="How many terms of a decision.")
@_out(
    "--as",
    "form",
    type=Named(("text", "svg", "html")),
    default="text",
    show_default=True,
    help="A text, a picture of the graphs or a page of both.",
)
@_out("-o", "--output", metavar="FILE", help="Write the explanation to this file.")
@output_options
@click.pass_context
def command(ctx, model, file, row, top, form, output, n_features, trust, as_json, quiet, **data):
    """Explain MODEL: its kernel's formula, the graph before and after the compiler's passes, and its certificate.

    With FILE, explain a decision instead: the terms, of features or of support vectors, that add up to it. Support
    vectors are named by their row in the training file, counted from 1.
    """
    from symsvm.cli.explaining import decision_explained, model_explained
    from symsvm.cli.keeping import check_path, opened
    from symsvm.cli.output import Output

    if file is None:
        refuse_given(ctx, ("row", "top", *data), "without FILE the model is explained, and no decision")
    if file is not None and (form != "text" or output is not None):
        raise Refused("the decision on a point is shown as text, or as --json.")
    if form != "text" and output is None and not as_json:
        raise Refused(f"a {form} goes to a file: name it with -o.")
    check_path(output)
    out, found = Output(as_json, quiet), opened(model, trust, n_features)
    if file is None:
        model_explained(found, form, output, out)
    else:
        decision_explained(found, file, data, row, top, out)
    ctx.exit(DONE)
