"""symsvm explain: what a model computes, how it was compiled, and how good its fit is."""

import click

from symsvm.cli.errors import DONE, Refused
from symsvm.cli.group import Command
from symsvm.cli.options import model_argument, output_options, section
from symsvm.cli.types import Named

__all__ = ["command"]

_EXAMPLES = (
    ("symsvm explain model.symsvm", "The formula, what the compiler makes of it, and the certificate:"),
    ("symsvm explain model.symsvm --as html -o model.html", "The same as a page with a picture:"),
)


@click.command(
    cls=Command, examples=_EXAMPLES, short_help="Show a model's formula, its compiled graph and its certificate."
)
@model_argument
@section("Output")(
    "--as",
    "form",
    type=Named(("text", "svg", "html")),
    default="text",
    show_default=True,
    help="A text, a picture of the graphs or a page of both.",
)
@section("Output")("-o", "--output", metavar="FILE", help="Write the explanation to this file.")
@output_options
@click.pass_context
def command(ctx, model, form, output, n_features, trust, as_json, quiet):
    """Explain MODEL: its kernel's formula, the graph before and after the compiler's passes, and its certificate."""
    from symsvm.cli.keeping import opened
    from symsvm.cli.machine import machine_of
    from symsvm.cli.output import Output
    from symsvm.cli.summary import fitted, fitted_lines, model_line, problem_table

    if form != "text" and output is None and not as_json:
        raise Refused(f"a {form} goes to a file: name it with -o.")
    out, found = Output(as_json, quiet), opened(model, trust, n_features)
    machine = machine_of(found)
    document = {"command": "explain", **fitted(found)}
    document["explanation"] = _explanation(machine, form)
    out.show(model_line(document["model"]), "", fitted_lines(document))
    if document["certificate"]["problems"] > 1:
        out.show(problem_table(machine, out.width))
    if output is not None:
        from symsvm.replacement import replacing

        with replacing(output) as file:
            file.write(document["explanation"].encode())
        document["output"] = output
        out.show(f"written to {output}")
    else:
        heading = "What the compiler makes of the kernel, in the dual problem of a classifier:"
        out.show("", *([heading, ""] if document["model"]["kernel"] else []), document["explanation"])
    out.finish(document)
    ctx.exit(DONE)


def _explanation(machine, form):
    if hasattr(machine, "explain") and getattr(machine, "_kernel", None) is not None:
        return machine.explain(format=form)
    if form != "text":
        raise Refused(f"a {form} needs a kernel with an expression, which this model has not.")
    if hasattr(machine, "kernel"):
        return "The kernel is a matrix that was given: there is no expression to compile."
    return "f(x) = x.w + b, solved over the points themselves, without a kernel: nothing is compiled."
