"""symsvm completion: the script that completes commands, options and names in a shell."""

import click

from symsvm.cli.group import Command
from symsvm.cli.types import Named

__all__ = ["command"]

_EXAMPLES = (
    ('eval "$(symsvm completion bash)"', "In ~/.bashrc:"),
    ('eval "$(symsvm completion zsh)"', "In ~/.zshrc:"),
    ("symsvm completion fish > ~/.config/fish/completions/symsvm.fish", "Once, for fish:"),
)


@click.command(cls=Command, examples=_EXAMPLES, short_help="Print the completion script of a shell.")
@click.argument("shell", type=Named(("bash", "zsh", "fish")))
@click.pass_context
def command(ctx, shell):
    """Print the completion script of a shell: bash, zsh or fish."""
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)(ctx.find_root().command, {}, "symsvm", "_SYMSVM_COMPLETE")
    click.echo(script.source_template % script.source_vars())
