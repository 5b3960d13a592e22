"""The command line: `symsvm COMMAND ...`. Nothing heavy is imported before a command needs it."""

from symsvm.cli.group import program

__all__ = ["main", "program"]


def main(name="symsvm"):
    """Run the program with the arguments of the process; the entry point `symsvm`. Usage lines begin with `name`."""
    program.main(prog_name=name)
