"""How a table in text is laid out: told from its first two lines."""

import contextlib
import csv
import itertools
from typing import NamedTuple

from symsvm.data.errors import DataError
from symsvm.data.text import blocks, is_number

__all__ = ["Layout", "holds", "layout"]

_DELIMITERS = b",;\t"


class Layout(NamedTuple):
    """How a file is laid out: its delimiter, the names of its columns (or none), and how many there are."""

    delimiter: int
    names: tuple
    columns: int
    label: int  # the column of the labels, -1 for none
    text: bool  # whether they are words


def layout(path, labels=None, header=None):
    """Look at the first two lines of a file: `labels` is a column's number or name, `header` says if it has one.

    The first line is a header where one of its fields is not a number and the field below it is.
    """
    with contextlib.closing(_lines(path)) as lines:
        rows = list(itertools.islice(lines, 2))
    if not rows:
        raise DataError(path, "it holds no points.")
    delimiter = max(_DELIMITERS, key=rows[0][1].count)
    if not rows[0][1].count(delimiter):
        delimiter = b" "[0] if len(rows[0][1].split()) > 1 else b","[0]
    fields = [_fields(path, number, row, delimiter) for number, row in rows]
    if header is None:
        below = fields[1] if len(fields) == 2 else [b"0"] * len(fields[0])
        # A lone line of words is a header without points; a lone line with a word for its label is a point.
        header = any(not is_number(a) and is_number(b) for a, b in zip(fields[0], below, strict=False))
        header &= len(fields) == 2 or not any(map(is_number, fields[0]))
    if header and len(fields) == 1:
        raise DataError(path, "it has a header and no points below it.", rows[0][0])
    names = tuple(field.strip().decode("utf-8", "replace") for field in fields[0]) if header else ()
    columns = len(fields[0])
    label = _column(path, labels, names, columns)
    first = fields[1 if header else 0]
    if len(first) != columns:
        raise DataError(path, f"it has {len(first)} columns, the header has {columns}.", rows[1][0])
    return Layout(delimiter, names, columns, label, label >= 0 and not is_number(first[label]))


def _lines(path):
    """Yield (number, line) for the lines that hold something."""
    for block, first in blocks(path):
        for number, row in enumerate(block.split(b"\n"), start=first):
            if holds(row):
                yield number, row.strip(b"\r")


def holds(row):
    """Say whether a line is neither blank nor a comment."""
    row = row.lstrip(b" \t\r\n")
    return bool(row) and not row.startswith(b"#")


def _fields(path, line, row, delimiter):
    """The fields of one line."""
    if delimiter == 32:
        return row.split()
    try:
        fields = next(csv.reader([row.decode("latin-1")], delimiter=chr(delimiter)))
    except csv.Error as error:
        raise DataError(path, f"it is no line of a table ({error}).", line) from None
    return [field.encode("latin-1") for field in fields]


def _column(path, labels, names, columns):
    if labels is None:
        return -1
    if isinstance(labels, str):
        if labels not in names:
            there = f"its columns are {', '.join(map(repr, names[:20]))}" if names else "it has no header"
            raise DataError(path, f"there is no column {labels!r} for the labels; {there}.")
        return names.index(labels)
    if not -columns <= labels < columns:
        raise DataError(path, f"there is no column {labels} for the labels; it has {columns} columns.")
    return labels % columns
