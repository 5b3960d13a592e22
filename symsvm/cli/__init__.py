"""The command line: `symsvm COMMAND ...`. Nothing heavy is imported before a command needs it."""

from symsvm.cli.group import program

__all__ = ["main", "program"]


def main():
    """Run the program with the arguments of the process; the entry point `symsvm`."""
    program.main(prog_name="symsvm")
