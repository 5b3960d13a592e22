"""The command line `symsvm COMMAND ...`.

Each command has a module, which is imported when the command is asked for; `command_group` has the program and its exit
codes, `options` what the commands share. Modules import NumPy, rich, scikit-learn and the packages of symsvm inside
functions, so that `symsvm --help` is fast. Only `symsvm.__main__` imports this package.
"""

from symsvm.cli.command_group import program

__all__ = ["main", "program"]


def main(name: str = "symsvm") -> None:
    """Run the program with the arguments of the process; `name` is the program's name in usage lines."""
    program.main(prog_name=name)
