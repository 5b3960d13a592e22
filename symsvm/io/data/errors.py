"""What is wrong with a file, in one sentence."""

__all__ = ["DataError", "brief", "shown"]


class DataError(ValueError):
    """A file that cannot be read as what it claims to be: its name, the line if it has lines, what was found.

    >>> print(DataError("points.csv", "column 2 is empty.", line=3))
    points.csv, line 3: column 2 is empty.
    """

    def __init__(self, path, what, line=None):
        self.path, self.line = str(path), line
        super().__init__(f"{path}: {what}" if line is None else f"{path}, line {line}: {what}")


def shown(found, most=24):
    """The bytes as a sentence may hold them: printable, and cut if they are many.

    >>> print(shown(b"a" * 100), shown(bytes(2)))
    'aaaaaaaaaaaaaaaaaaaaaaaa...' '\\x00\\x00'
    """
    text = bytes(found[: most + 1]).decode("latin-1")
    return repr(text) if len(text) <= most else repr(text[:most])[:-1] + "...'"


def brief(value, most=120):
    """What an error, a shape or a name says, on one line and cut if it is long, without the point at its end.

    >>> brief("it  ends\\nhere.")
    'it ends here'
    """
    text = " ".join(str(value).split()).rstrip(".")
    return text if len(text) <= most else text[:most] + "..."
