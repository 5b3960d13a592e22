"""symsvm train: fit a machine to a file and keep it."""

import click

from symsvm.cli.dialects import LOADED, MachineCommand, psvm_options, settled
from symsvm.cli.errors import DONE, NOT_CONVERGED, Refused
from symsvm.cli.options import data_options, file_argument, machine_options, output_options, refuse_given, section
from symsvm.cli.types import DataFile

__all__ = ["command"]

_EXAMPLES = (
    ("symsvm train heart_scale -o heart.symsvm", "Fit an RBF machine and keep it:"),
    ("symsvm train iris.csv --labels species --scale zscore --kernel linear -c 10", "A table with a column of words:"),
    ("symsvm train svmguide1 --scale sym -c 2 -g 2 --test svmguide1.t -b 1", "With a test file and probabilities:"),
    ("symsvm train -s 0 -t 2 -c 10 -w1 5 -w-1 2 -v 5 heart_scale", "As LIBSVM, cross-validated:"),
    (
        "symsvm train --train-attributes train-images --train-labels train-labels --rbf --1AA --n1",
        "As psvm, with its report:",
    ),
)
_data = section("Data")


@click.command(cls=MachineCommand, examples=_EXAMPLES, short_help="Train a machine on a file and keep it.")
@file_argument(required=False)
@click.argument("model", required=False)
@_data("-o", "--output", metavar="MODEL", help="Write the model: .symsvm, .libsvm or .onnx.")
@data_options
@_data("--test", type=DataFile(), help="Report on this file too.")
@_data("--test-labels", type=DataFile(), help="The labels of --test, if in a file of their own.")
@_data("--test-limit", type=click.IntRange(min=1), metavar="N", help="Take the first N rows of --test.")
@section("Output")(
    "--score/--no-score", default=True, help="Whether to predict the training points for their accuracy. Default: yes."
)
@machine_options
@section("Solver")(
    "-v", "--folds", type=click.IntRange(min=2), metavar="N", help="Cross-validate with N folds, and write no model."
)
@psvm_options
@output_options
@click.pass_context
def command(ctx, **settings):
    """Train a support vector machine on FILE and write it to MODEL.

    The first Ctrl-C ends the training and keeps the feasible model that there is, with exit code 1.
    """
    if settings["model_in"] is not None:
        refuse_given(ctx, set(settings) - set(LOADED), "--model-in loads a model and trains none")
    settings = settled(settings, ctx.meta["libsvm"])
    if settings["model"] is not None:
        if settings["output"] is not None:
            raise Refused("the model is named twice, as MODEL and by --output.")
        settings["output"] = settings["model"]
    if settings["file"] is None and settings["model_in"] is None:
        raise click.UsageError("there is no FILE to train on.", ctx)
    from symsvm.cli.output import Output
    from symsvm.cli.training import Training

    training = Training(settings, Output(settings["as_json"], settings["quiet"]))
    if settings["folds"]:
        training.cross_validate()
        ctx.exit(DONE)
    training.run()
    ctx.exit(DONE if training.converged else NOT_CONVERGED)
