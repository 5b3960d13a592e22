"""symsvm bench: a fit here beside the same fit by scikit-learn, timed in one run."""

import click

from symsvm.cli.dialects import MachineCommand, libsvm_gamma
from symsvm.cli.errors import DONE
from symsvm.cli.options import data_options, file_argument, machine_options, output_options, section

__all__ = ["command"]

_EXAMPLES = (
    ("symsvm bench svmguide1 --scale zscore -c 10", "A named set:"),
    ("symsvm bench train.csv --labels y -s linear-svc --turns 5", "Your own data and machine:"),
)


@click.command(cls=MachineCommand, examples=_EXAMPLES, short_help="Time a fit here against scikit-learn's.")
@file_argument()
@data_options
@machine_options
@section("Solver")(
    "--turns", type=click.IntRange(min=1), default=3, show_default=True, help="Fits of each; the best counts."
)
@output_options
@click.pass_context
def command(ctx, file, turns, as_json, quiet, **settings):
    """Time a fit to FILE here and by scikit-learn: the same points, machine and tolerance, in turns, in one run.

    Times of different runs or machines say little; the ratio within one run is what to look at. The first fit here
    compiles, and is told apart.
    """
    from symsvm.cli.benchmark import benchmark, shown
    from symsvm.cli.output import Output

    if settings["gamma"] is None:
        settings["gamma"] = libsvm_gamma(settings, ctx.meta["libsvm"])
    out = Output(as_json, quiet)
    document = {"command": "bench", **benchmark(file, settings, turns, out)}
    shown(document, out)
    out.finish(document)
    ctx.exit(DONE)
