"""How a table in text is laid out: told from its first two lines."""

import contextlib
import csv
import io
import itertools
from typing import NamedTuple

from symsvm.io.data.errors import DataError, brief
from symsvm.io.data.text import blocks, is_number, is_special

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

    The first line is a header where a field of it is a word and the field below it a number; if another field of it is
    a number, it may also be a damaged point, and `header` must be given.
    """
    with contextlib.closing(_lines(path)) as lines:
        rows = list(itertools.islice(lines, 2))
    if not rows:
        raise DataError(path, "it holds no points.")
    delimiter = max(_DELIMITERS, key=rows[0][1].count)
    if not rows[0][1].count(delimiter):
        delimiter = b" "[0] if len(rows[0][1].split()) > 1 else b","[0]
    fields = [_fields(path, number, row, delimiter) for number, row in rows]
    header = _has_header(path, rows[0][0], fields) if header is None else header
    if header and len(fields) == 1:
        raise DataError(path, "it has a header and no points below it.", rows[0][0])
    names = tuple(field.strip().decode("utf-8", "replace") for field in fields[0]) if header else ()
    columns = len(fields[0])
    label = _column(path, labels, names, columns)
    first = fields[1 if header else 0]
    if len(first) != columns:
        raise DataError(path, f"it has {len(first)} columns, the header has {columns}.", rows[1][0])
    return Layout(delimiter, names, columns, label, label >= 0 and not is_number(first[label]))


def _has_header(path, line, fields):
    numbers = [is_number(field) for field in fields[0]]
    if len(fields) == 1:
        return not any(numbers) and any(map(_is_word, fields[0]))
    if not any(_is_word(above) and is_number(below) for above, below in zip(*fields, strict=False)):
        return False
    if any(numbers):
        raise DataError(path, "it may be a header or a point; say which with header=True or header=False.", line)
    return True


def _is_word(field):
    """Neither a number nor one of the ways to say that there is none."""
    field = field.strip()
    return not (is_number(field) or is_special(field) or field.lower() in (b"", b"?", b"na", b"n/a", b"null", b"none"))


def _lines(path):
    """Yield (number, line) for the lines that hold something."""
    for block, first in blocks(path):
        for number, row in enumerate(io.BytesIO(block), start=first):
            if holds(row):
                yield number, row.strip(b"\r\n").replace(b"\r", b" ")


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
            there = f"its columns are {brief(', '.join(map(repr, names)))}" if names else "it has no header"
            raise DataError(path, f"there is no column {labels!r} for the labels; {there}.")
        return names.index(labels)
    if not -columns <= labels < columns:
        raise DataError(path, f"there is no column {labels} for the labels; it has {columns} columns.")
    return labels % columns
