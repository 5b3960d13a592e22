"""symsvm tune: the best parameters by cross-validation, over a grid or by successive halving."""

import click

from symsvm.cli.dialects import MachineCommand, libsvm_gamma
from symsvm.cli.errors import DONE, NOT_CONVERGED
from symsvm.cli.options import data_options, file_argument, machine_options, output_options, section
from symsvm.cli.types import Named

__all__ = ["command"]

_EXAMPLES = (
    (
        "symsvm tune svmguide1 --scale sym -c 0.1:1000:5 -g 0.01:100:5 -o best.symsvm",
        "A grid of 5 x 5, and the best model:",
    ),
    ("symsvm tune train.csv -c 1,10 -g 0.1,1 --search halving --plot surface.png", "By successive halving, drawn:"),
    ("symsvm tune heart_scale --log2c -5,15,2 --log2g 3,-15,-2", "The grid of LIBSVM's grid.py:"),
)
_search = section("Search")


@click.command(cls=MachineCommand, examples=_EXAMPLES, short_help="Search for the best parameters by cross-validation.")
@file_argument()
@_search("--folds", "-v", type=click.IntRange(min=2), default=5, show_default=True, help="Of the cross-validation.")
@_search(
    "--search",
    type=Named(("grid", "halving")),
    default="grid",
    show_default=True,
    help="All cells on all points, or the better ones on more and more points.",
)
@_search("--scoring", metavar="NAME", help="A score of scikit-learn's, such as f1_macro. Default: accuracy, or R2.")
@_search("--log2c", "-log2c", metavar="BEGIN,END,STEP", help="C as powers of 2, as LIBSVM's grid.py has it.")
@_search("--log2g", "-log2g", metavar="BEGIN,END,STEP", help="gamma as powers of 2.")
@_search("--jobs", type=click.IntRange(min=1), metavar="N", help="Threads; all cores unless told.")
@data_options
@section("Data")("-o", "--output", metavar="MODEL", help="Fit the best parameters to all points, and write the model.")
@machine_options(several=True)
@section("Output")("--plot", metavar="FILE", help="Draw the surface of the scores: .png, .svg or .pdf.")
@output_options
@click.pass_context
def command(ctx, as_json, quiet, **settings):
    """Search for the best parameters of a machine on FILE by cross-validation.

    Numbers of the machine take several values: 0.1,1,10 or 0.01:100:5, five from the first to the second. Without any,
    C and gamma are searched over five powers each. Matrices and solutions are shared between cells. Ctrl-C ends the
    search with what was found by then, and exit code 1.
    """
    from symsvm.cli.output import Output
    from symsvm.cli.search import Search

    settings["default_gamma"] = libsvm_gamma(settings, ctx.meta["libsvm"])
    complete = Search(settings, Output(as_json, quiet)).run()
    ctx.exit(DONE if complete else NOT_CONVERGED)
