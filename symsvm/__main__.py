"""The command line as a module: `python -m symsvm COMMAND ...` is `symsvm COMMAND ...`."""

from symsvm.cli import main

__all__ = []

if __name__ == "__main__":
    main("python -m symsvm")
