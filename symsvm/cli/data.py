"""symsvm data: the named sets, what is in a file, and the same file in another format or scale."""

import click

from symsvm.cli.errors import DONE, Refused
from symsvm.cli.group import Command
from symsvm.cli.options import SCALINGS, data_options, file_argument, output_options, refuse_given, section
from symsvm.cli.types import DataFile, Named

__all__ = ["command"]

_EXAMPLES = (
    ("symsvm data", "The data sets that have a name:"),
    ("symsvm data train.csv", "What is in a file, and what to look out for:"),
    ("symsvm data train.csv -o train.svm --scale sym", "In LIBSVM's format, scaled to [-1, 1]:"),
    ("symsvm data test.csv -o test.svm --scale sym --like train.csv", "With the numbers of the training set:"),
)
_out = section("Output")


@click.command(cls=Command, examples=_EXAMPLES, short_help="List data sets; describe, convert or scale a file.")
@file_argument(required=False)
@data_options
@section("Data")("--unlabelled", is_flag=True, help="The file has no labels.")
@_out("-o", "--output", metavar="OTHER", help="Write the points to this file; its ending is the format.")
@_out("--labels-output", metavar="OTHER", help="Write the labels to a file of their own, as IDX and .npy need.")
@_out("--scale", type=Named(SCALINGS), default="none", help="Scale the features of what is written.")
@_out("--like", type=DataFile(), help="Take the numbers to scale with from this file.")
@output_options
@click.pass_context
def command(ctx, file, output, labels_output, scale, like, unlabelled, as_json, quiet, **options):
    """List the named data sets, describe FILE, or write it to OTHER in another format or scale."""
    from symsvm.cli.catalogue import listed, portrayed, rewritten
    from symsvm.cli.output import Output

    out = Output(as_json, quiet)
    if file is None:
        if output is not None:
            raise click.UsageError("there is no FILE to write.", ctx)
        refuse_given(ctx, set(ctx.params) - {"as_json", "quiet"}, "without FILE the data sets are listed")
        listed(out)
        ctx.exit(DONE)
    if (scale != "none" or labels_output) and output is None:
        raise Refused("--scale and --labels-output belong to what is written: name it with -o OTHER.")
    if like is not None and scale == "none":
        raise Refused("--like says what to scale with: name a --scale.")
    options["supervised"] = not unlabelled
    if output is None:
        portrayed(out, file, options)
    else:
        rewritten(out, file, options, output, labels_output, scale, like)
    ctx.exit(DONE)
