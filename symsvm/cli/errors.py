"""Errors of the command line: exit codes, and every failure as one sentence."""

import click

__all__ = [
    "BAD_DATA",
    "DONE",
    "NOT_CONVERGED",
    "USAGE",
    "BadData",
    "Interrupted",
    "Refused",
    "sentence_of",
    "translated",
]

DONE, NOT_CONVERGED, USAGE, BAD_DATA = range(4)


class Refused(click.ClickException):
    """Options that do not go together, or with the data: exit code 2."""

    exit_code = USAGE


class Interrupted(click.ClickException):
    """Ctrl-C before there was a result: exit code 1."""

    exit_code = NOT_CONVERGED


class BadData(click.ClickException):
    """A file that is not what it should be, or that cannot be read or written: exit code 3."""

    exit_code = BAD_DATA


def translated(error):
    """The failure of a command as a `ClickException`, None for what is a fault of the program itself."""
    from symsvm.io.data import DataError, DownloadError
    from symsvm.io.models import ModelFileError

    if isinstance(error, (DataError, DownloadError, ModelFileError)):
        return BadData(sentence_of(error))
    if isinstance(error, OSError):
        what = error.strerror or sentence_of(error)
        return BadData(f"{error.filename}: {what}." if error.filename else f"{what}.")
    if isinstance(error, MemoryError):
        return BadData(f"the data do not fit the memory: {sentence_of(error) or 'take fewer rows with --limit'}.")
    if isinstance(error, (ValueError, ImportError)):
        return Refused(sentence_of(error))
    return None


def sentence_of(error):
    """What an error says, on one line."""
    return " ".join(str(error).split())
