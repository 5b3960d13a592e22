"""symsvm compare: every algorithm on the same problems, judged by one yardstick, beside scikit-learn."""

import click

from symsvm.cli.errors import DONE
from symsvm.cli.group import Command
from symsvm.cli.options import POSITIVE, output_options, section
from symsvm.cli.types import Named, Number

__all__ = ["command"]

_EXAMPLES = (
    ("symsvm compare sine iris", "Two of the problems that are built in:"),
    ("symsvm compare --to out/compare", "All of them, with a report and pictures:"),
    ("symsvm compare heart_scale -c 1 -g 0.1 --algorithms decomposition,smo,libsvm", "On data of your own:"),
)
_how = section("Machine")


@click.command(cls=Command, examples=_EXAMPLES, short_help="Run every algorithm on the same problems.")
@click.argument("problems", nargs=-1)
@_how("-c", "-C", "--cost", "C", type=POSITIVE, default=1.0, show_default=True, help="C, for data of your own.")
@_how(
    "-g",
    "--gamma",
    type=Number(words=("linear",), positive=True),
    default="linear",
    show_default=True,
    help="gamma of an RBF kernel, or linear, for data of your own.",
)
@_how("-p", "--epsilon", type=Number(), help="Makes data of your own a regression.")
@_how("--algorithms", metavar="NAME,...", help="All that suit a problem, unless told.")
@_how("-e", "--tol", type=POSITIVE, default=1e-3, show_default=True, help="What every algorithm is asked for.")
@_how("--time-limit", type=POSITIVE, default=10.0, show_default=True, help="Seconds for each algorithm.")
@_how("--mode", type=Named(("NUMBA", "JAX")), help="The backend of algorithms that are graphs.")
@section("Output")("--to", metavar="DIR", help="Write report.md and pictures to DIR.")
@output_options
@click.pass_context
def command(ctx, problems, to, as_json, quiet, **options):
    """Run every algorithm on PROBLEMS: names of built-in ones (all unless told), data sets or files.

    P is the primal objective of what an algorithm returns, and how far it is above the optimum. A file is standardised,
    and a quarter of it is held out to score with.
    """
    from symsvm.cli.contests import compared
    from symsvm.cli.output import Output

    compared(problems, to, options, Output(as_json, quiet))
    ctx.exit(DONE)
