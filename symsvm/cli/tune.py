"""symsvm tune: to come."""

import click

from symsvm.cli.group import Command

__all__ = ["command"]


@click.command(cls=Command)
def command():
    """Search for parameters by cross-validation."""
