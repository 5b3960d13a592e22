"""symsvm serve: a model over HTTP."""

import click

from symsvm.cli.errors import DONE
from symsvm.cli.group import Command
from symsvm.cli.options import model_argument, section
from symsvm.cli.types import Number

__all__ = ["command"]

_EXAMPLES = (
    ("symsvm serve news.symsvm", "On this machine only, with a page to try it at http://127.0.0.1:8000/:"),
    ("SYMSVM_TOKEN=... symsvm serve news.symsvm --host 0.0.0.0 --port 80", "To others, who must know a token:"),
)
_where, _limits = section("Service"), section("Limits")


@click.command(cls=Command, examples=_EXAMPLES, short_help="Serve a model over HTTP.")
@model_argument
@_where("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@_where("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 is any free one.")
@_where("--token", envvar="SYMSVM_TOKEN", show_envvar=True, help="What 'Authorization: Bearer' must say.")
@_where(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A further name that it is reached by; without a token on loopback others are refused.",
)
@_where(
    "--reload", type=Number(), metavar="SECONDS", help="Between two looks at the file; 0 reads it once. Default: 1."
)
@_limits("--max-body", type=click.IntRange(min=1), metavar="BYTES", help="Of a request.")
@_limits("--max-rows", type=click.IntRange(min=1), metavar="N", help="Texts or rows of a request.")
@_limits("--max-batch", type=click.IntRange(min=1), metavar="N", help="Rows that are predicted together.")
@_limits("--max-connections", type=click.IntRange(min=1), metavar="N", help="Open at a time.")
@click.pass_context
def command(ctx, model, host, port, token, trust, **limits):
    """Serve MODEL over HTTP until SIGTERM or Ctrl-C; requests that have begun are answered first.

    The file is read again when it changes. Needs the extra symsvm[serve].
    """
    from symsvm.serve import run

    given = {name: value for name, value in limits.items() if value is not None}
    run(model, host=host, port=port, token=token, trusted=tuple(trust), **given)
    ctx.exit(DONE)
