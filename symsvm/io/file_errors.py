"""Exceptions for files that cannot be read, written or downloaded, each with a message of one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symsvm._lib.types import Path

__all__ = ["DataError", "DownloadError", "ModelFileError", "one_line", "quote_bytes"]


class DataError(ValueError):
    """A data file that does not follow its format.

    Parameters
    ----------
    path : str or path-like
        The name of the file.
    what : str
        What is wrong with it, as a sentence.
    line : int, optional
        The number of the line, in a text file.

    Attributes
    ----------
    path : str
        The name of the file.
    line : int or None
        The number of the line.

    Examples
    --------
    >>> print(DataError("points.csv", "column 2 is empty.", line=3))
    points.csv, line 3: column 2 is empty.
    """

    def __init__(self, path: Path, what: str, line: int | None = None) -> None:
        self.path, self.line = str(path), line
        super().__init__(f"{path}: {what}" if line is None else f"{path}, line {line}: {what}")


class DownloadError(OSError):
    """A file that could not be downloaded; the message has the address, the reason and what to do."""


class ModelFileError(ValueError):
    """A model file that cannot be read, or a model that a format cannot hold.

    Parameters
    ----------
    path : str or path-like
        The name of the file.
    what : str
        What is wrong with it, as a sentence.
    line : int, optional
        The number of the line, in a text file.

    Attributes
    ----------
    path : str or path-like
        The name of the file.
    line : int or None
        The number of the line.

    Examples
    --------
    >>> print(ModelFileError("m.libsvm", "gamma must be positive, got -1.0.", line=3))
    m.libsvm, line 3: gamma must be positive, got -1.0.
    """

    def __init__(self, path: Path, what: str, *, line: int | None = None) -> None:
        self.path, self.line = path, line
        what = " ".join(what.split())  # text quoted from a file may have line breaks
        super().__init__(f"{path}{'' if line is None else f', line {line}'}: {what}")


def quote_bytes(found: bytes, most: int = 24) -> str:
    """The bytes in quotes for a message: printable, and at most `most` of them.

    >>> print(quote_bytes(b"a" * 100), quote_bytes(bytes(2)))
    'aaaaaaaaaaaaaaaaaaaaaaaa...' '\\x00\\x00'
    """
    text = bytes(found[: most + 1]).decode("latin-1")
    return repr(text) if len(text) <= most else repr(text[:most])[:-1] + "...'"


def one_line(value: object, most: int = 120) -> str:
    """An error, a shape or a name as part of a sentence: on one line, at most `most` characters, no final period.

    >>> one_line("it  ends\\nhere.")
    'it ends here'
    """
    text = " ".join(str(value).split()).rstrip(".")
    return text if len(text) <= most else text[:most] + "..."
