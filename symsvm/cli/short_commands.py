"""The commands `symsvm convert`, `symsvm serve` and `symsvm completion`."""

from __future__ import annotations

from typing import Any, Literal

import click

from symsvm.cli.command_group import DONE, Command
from symsvm.cli.model_building import describe_model
from symsvm.cli.option_types import Name, Number
from symsvm.cli.options import model_argument, output_options, section
from symsvm.cli.output import Output, check_model_path, file_size, load_model, save_model, styled
from symsvm.cli.reports import model_line

__all__ = ["completion", "convert", "serve"]

# ---- convert

_CONVERT_EXAMPLES = (
    ("symsvm convert model.symsvm model.onnx", "For other runtimes:"),
    ("symsvm convert heart.libsvm heart.symsvm --n-features 13", "A model trained by LIBSVM:"),
)


@click.command(cls=Command, examples=_CONVERT_EXAMPLES)
@model_argument
@click.argument("other")
@section("Output")(
    "--precision", type=Name(("float64", "float32")), help="Precision of an .onnx model. Default: float64."
)
@output_options
@click.pass_context
def convert(
    ctx: click.Context,
    /,
    model: str,
    other: str,
    precision: Literal["float64", "float32"] | None,
    n_features: int | None,
    trust: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> None:
    """Read MODEL and write it to OTHER, in the format of its ending: .symsvm, .libsvm or .onnx.

    MODEL is .symsvm or .libsvm; .onnx can only be written.
    """
    out = Output(as_json, quiet)
    check_model_path(other)
    with out.warnings_as_notes():
        fitted = load_model(model, trust, n_features)
        save_model(fitted, other, precision=precision)
    document = {"command": "convert", "model": describe_model(fitted), "input": model, "output": other}
    out.show(model_line(document["model"]), styled("written to ", (other, "bold"), f", {file_size(other)}"))
    out.print_json(document)
    ctx.exit(DONE)


# ---- serve

_SERVE_EXAMPLES = (
    ("symsvm serve news.symsvm", "On this computer only, with a page to try the model at http://127.0.0.1:8000/:"),
    (
        "SYMSVM_TOKEN=... symsvm serve news.symsvm --host 0.0.0.0 --port 80",
        "To other computers, which must send the token:",
    ),
)
_service, _limits = section("Service"), section("Limits")


@click.command(cls=Command, examples=_SERVE_EXAMPLES)
@model_argument
@_service("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Address to listen on.")
@_service(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=8000,
    show_default=True,
    help="Port; 0 chooses any free one.",
)
@_service(
    "--token",
    metavar="TOKEN",
    envvar="SYMSVM_TOKEN",
    show_envvar=True,
    help="Require this token in the header 'Authorization: Bearer TOKEN'.",
)
@_service(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Accept requests to this host name, too; repeatable. Without a token on loopback, other names are refused.",
)
@_service(
    "--reload",
    type=Number(),
    metavar="SECONDS",
    help="Check for changes of the file at this interval; 0 never checks. Default: 1.",
)
@_limits("--max-body", type=click.IntRange(min=1), metavar="BYTES", help="Maximum size of a request. Default: 4194304.")
@_limits(
    "--max-rows",
    type=click.IntRange(min=1),
    metavar="N",
    help="Maximum number of rows or texts in a request. Default: 10000.",
)
@_limits(
    "--max-batch",
    type=click.IntRange(min=1),
    metavar="N",
    help="Maximum number of rows predicted together. Default: 256.",
)
@_limits(
    "--max-connections",
    type=click.IntRange(min=1),
    metavar="N",
    help="Maximum number of open connections. Default: 1000.",
)
@click.pass_context
def serve(
    ctx: click.Context, /, model: str, host: str, port: int, token: str | None, trust: tuple[str, ...], **limits: Any
) -> None:
    """Serve MODEL over HTTP until SIGTERM or Ctrl-C; requests that have begun are still answered.

    The model is loaded again when its file changes. Needs the extra symsvm[serve].
    """
    from symsvm.serve import run

    given = {name: value for name, value in limits.items() if value is not None}
    run(model, host=host, port=port, token=token, trusted=tuple(trust), **given)
    ctx.exit(DONE)


# ---- completion

_COMPLETION_EXAMPLES = (
    ('eval "$(symsvm completion bash)"', "In ~/.bashrc:"),
    ('eval "$(symsvm completion zsh)"', "In ~/.zshrc:"),
    ("symsvm completion fish > ~/.config/fish/completions/symsvm.fish", "For fish, once:"),
)


@click.command(cls=Command, examples=_COMPLETION_EXAMPLES)
@click.argument("shell", type=Name(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, /, shell: str) -> None:
    """Print the script that completes commands, options and values in a shell: bash, zsh or fish."""
    from click.shell_completion import get_completion_class

    completion_class = get_completion_class(shell)
    assert completion_class is not None, "click completes in these shells"
    script = completion_class(ctx.find_root().command, {}, "symsvm", "_SYMSVM_COMPLETE")
    click.echo(script.source_template % script.source_vars())
