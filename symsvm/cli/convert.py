"""symsvm convert: a model from one format to another."""

import click

from symsvm.cli.errors import DONE
from symsvm.cli.group import Command
from symsvm.cli.options import model_argument, output_options, section
from symsvm.cli.types import Named

__all__ = ["command"]

_EXAMPLES = (
    ("symsvm convert model.symsvm model.onnx", "To run elsewhere:"),
    ("symsvm convert heart.libsvm heart.symsvm --n-features 13", "A model of LIBSVM's:"),
)


@click.command(cls=Command, examples=_EXAMPLES, short_help="Write a model in another format.")
@model_argument
@click.argument("other")
@section("Output")("--precision", type=Named(("float64", "float32")), help="Of .onnx; float64 unless told.")
@output_options
@click.pass_context
def command(ctx, model, other, precision, n_features, trust, as_json, quiet):
    """Read MODEL and write it to OTHER; the endings are the formats: .symsvm, .libsvm, .onnx (to write only)."""
    from symsvm.cli.keeping import check_target, keep, opened, size_of
    from symsvm.cli.machine import parts_of
    from symsvm.cli.output import Output, styled
    from symsvm.cli.summary import model_line

    out = Output(as_json, quiet)
    check_target(other)
    with out.heeding():
        fitted = opened(model, trust, n_features)
        keep(fitted, other, precision=precision)
    document = {"command": "convert", "model": parts_of(fitted), "input": model, "output": other}
    out.show(model_line(document["model"]), styled("written to ", (other, "bold"), f", {size_of(other)}"))
    out.finish(document)
    ctx.exit(DONE)
