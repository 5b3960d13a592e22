"""CSV files: one point a line, fields between commas, semicolons, tabs or blanks, with or without a header."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from symsvm._lib.code_cache import njit
from symsvm.io.data.array_files import cast_floats
from symsvm.io.data.byte_streams import open_write
from symsvm.io.data.numeric_text import (
    is_nan_or_inf,
    is_number,
    iter_line_blocks,
    line_number,
    parse,
    parse_inexact,
    token_at,
)
from symsvm.io.file_errors import DataError, one_line, quote_bytes

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, Path

__all__ = ["CsvLayout", "delimiter_for", "detect_layout", "iter_csv", "read_csv", "write_csv"]

_DELIMITERS = b",;\t"
_BLANK = ord(" ")
_MISSING = (b"", b"?", b"na", b"n/a", b"null", b"none")

# The errors that `_scan` finds, by number.
_ERRORS = (
    "",
    "column {column} is empty; fill or drop missing values first.",
    "column {column} holds {found}, which is not a number.",
    "column {column} holds {found}, which is not finite.",
    "the line has fewer than the {columns} columns of the lines above.",
    "the line has more than the {columns} columns of the lines above.",
    "column {column} opens a quote that the line does not close.",
)


# ---- layout


class CsvLayout(NamedTuple):
    """The layout of a file: its delimiter, the names of its columns (empty without a header), their number."""

    delimiter: int
    names: tuple[str, ...]
    columns: int
    label: int  # the column of the labels, -1 for none
    string_labels: bool


def detect_layout(path: Path, labels: int | str | None = None, header: bool | None = None) -> CsvLayout:
    """The layout of a file, from its first two lines; `labels` is a column's number or name.

    The first line is a header where one of its fields is a word and the field below it a number. If another field of it
    is a number, it may also be a damaged point, and `header` must be given.
    """
    with contextlib.closing(_iter_data_lines(path)) as lines:
        rows = list(itertools.islice(lines, 2))
    if not rows:
        raise DataError(path, "the file has no points.")
    delimiter = max(_DELIMITERS, key=rows[0][1].count)
    if not rows[0][1].count(delimiter):
        delimiter = _BLANK if len(rows[0][1].split()) > 1 else ord(",")
    fields = [_split_line(path, number, row, delimiter) for number, row in rows]
    header = _has_header(path, rows[0][0], fields) if header is None else header
    if header and len(fields) == 1:
        raise DataError(path, "there is a header and no points below it.", rows[0][0])
    names = tuple(field.strip().decode("utf-8", "replace") for field in fields[0]) if header else ()
    columns = len(fields[0])
    label = _label_column(path, labels, names, columns)
    first = fields[1 if header else 0]
    if len(first) != columns:
        raise DataError(path, f"the line has {len(first)} columns, the header has {columns}.", rows[1][0])
    return CsvLayout(delimiter, names, columns, label, label >= 0 and not is_number(first[label]))


def _has_header(path: Path, line: int, fields: list[list[bytes]]) -> bool:
    numbers = [is_number(field) for field in fields[0]]
    if len(fields) == 1:
        return not any(numbers) and any(map(_is_word, fields[0]))
    if not any(_is_word(above) and is_number(below) for above, below in zip(*fields, strict=False)):
        return False
    if any(numbers):
        raise DataError(path, "the line may be a header or a point; pass header=True or header=False.", line)
    return True


def _is_word(field: bytes) -> bool:
    """Whether a field is neither a number nor a missing value."""
    field = field.strip()
    return not (is_number(field) or is_nan_or_inf(field) or field.lower() in _MISSING)


def _iter_data_lines(path: Path) -> Generator[tuple[int, bytes], None, None]:
    """Yield (number, line) for the lines that are neither blank nor a comment."""
    for block, first in iter_line_blocks(path):
        for number, row in enumerate(io.BytesIO(block), start=first):
            if _is_data_line(row):
                yield number, row.strip(b"\r\n").replace(b"\r", b" ")


def _is_data_line(row: bytes) -> bool:
    """Whether a line is neither blank nor a comment."""
    row = row.lstrip(b" \t\r\n")
    return bool(row) and not row.startswith(b"#")


def _split_line(path: Path, line: int, row: bytes, delimiter: int) -> list[bytes]:
    """The fields of one line."""
    if delimiter == _BLANK:
        return row.split()
    try:
        fields = next(csv.reader([row.decode("latin-1")], delimiter=chr(delimiter)))
    except csv.Error as error:
        raise DataError(path, f"the line is not valid CSV ({error}).", line) from None
    return [field.encode("latin-1") for field in fields]


def _label_column(path: Path, labels: int | str | None, names: tuple[str, ...], columns: int) -> int:
    if labels is None:
        return -1
    if isinstance(labels, str):
        if labels not in names:
            found = f"its columns are {one_line(', '.join(map(repr, names)))}" if names else "it has no header"
            raise DataError(path, f"there is no column {labels!r} for the labels; {found}.")
        return names.index(labels)
    if not -columns <= labels < columns:
        raise DataError(path, f"there is no column {labels} for the labels; it has {columns} columns.")
    return labels % columns


# ---- reading


@njit(cache=True)
def _skip_blanks(text, at, delimiter):
    """The position of the first byte that is not a blank; a tab may be the delimiter."""
    while text[at] == 32 or text[at] == 13 or (text[at] == 9 and delimiter != 9):
        at += 1
    return at


@njit(cache=True)
def _scan(text, delimiter, columns, label, strings, X, y, spans, inexact):
    """Parse whole lines into X and y: (points, inexact numbers, index in _ERRORS, position, column).

    String labels are not copied: `spans` gets their start and end. `inexact` gets what `parse_inexact` parses again.
    """
    at, row, n_inexact = 0, 0, 0
    while at < len(text):
        at = _skip_blanks(text, at, delimiter)
        if text[at] == 35 or text[at] == 10:  # a comment or a blank line
            while text[at] != 10:
                at += 1
            at += 1
            continue
        slot = 0
        for column in range(columns):
            at = _skip_blanks(text, at, delimiter)
            start, quoted = at, text[at] == 34
            if quoted:
                at += 1
            if column == label and strings:
                while text[at] != 10 and (text[at] != delimiter or quoted):
                    if quoted and text[at] == 34:
                        if text[at + 1] != 34:
                            break
                        at += 1
                    at += 1
                if quoted and text[at] != 34:
                    return row, n_inexact, 6, start, column
                end = at
                while not quoted and end > start and (text[end - 1] == 32 or text[end - 1] == 13 or text[end - 1] == 9):
                    end -= 1
                spans[row, 0], spans[row, 1] = start + quoted, end
                if end == start:
                    return row, n_inexact, 1, start, column
            else:
                value, end, exact = parse(text, at)
                if end == at:
                    empty = text[at] == delimiter or text[at] == 10 or (quoted and text[at] == 34)
                    return row, n_inexact, 1 if empty else 2, start, column
                k = row * X.shape[1] + slot if column != label else ~row
                if not exact:
                    inexact[n_inexact, 0], inexact[n_inexact, 1], inexact[n_inexact, 2] = k, at, end
                    n_inexact += 1
                if column != label:
                    X[row, slot] = value
                else:
                    y[row] = value
                at = end
            slot += column != label
            if quoted:
                if text[at] != 34:
                    return row, n_inexact, 2, start, column
                at += 1
            next_ = _skip_blanks(text, at, delimiter)
            if column + 1 < columns:
                if text[next_] == 10:
                    return row, n_inexact, 4, start, column
                if (delimiter != 32 and text[next_] != delimiter) or (delimiter == 32 and next_ == at):
                    return row, n_inexact, 2, start, column
                at = next_ + (delimiter != 32)
            elif text[next_] != 10:
                separated = text[next_] == delimiter or next_ > at
                return row, n_inexact, 5 if separated else 2, start, column
            else:
                at = next_ + 1
        row += 1
    return row, n_inexact, 0, 0, 0


def iter_csv(path: Path, layout: CsvLayout) -> Iterator[tuple[Array, Array | None]]:
    """Yield (X, y) for each block of a file of the given layout; y is None without labels."""
    features, in_header = layout.columns - (layout.label >= 0), bool(layout.names)
    for block, line in iter_line_blocks(path):
        if in_header and (cut := _header_end(block)):
            line, block, in_header = line + block.count(b"\n", 0, cut), block[cut:], False
        text, lines = np.frombuffer(block, dtype=np.uint8), block.count(b"\n")
        lines = min(lines, len(block) // max(1, 2 * layout.columns - 1) + 1)  # a field has a byte and a delimiter
        X, y, spans = np.empty((lines, features)), np.empty(lines), np.empty((lines, 2), dtype=np.int64)
        inexact = np.empty((lines * layout.columns, 3), dtype=np.int64)
        rows, n_inexact, error, at, column = _scan(
            text, layout.delimiter, layout.columns, layout.label, layout.string_labels, X, y, spans, inexact
        )
        if error:
            raise _scan_error(path, block, line, error, at, column, layout)
        if infinite := parse_inexact(block, inexact[:n_inexact], X.reshape(-1), y):
            slot, at = infinite
            column = slot % features if slot >= 0 else layout.label
            raise _scan_error(path, block, line, 3, at, column + (0 <= layout.label <= column and slot >= 0), layout)
        labels = _strings(block, spans[:rows]) if layout.string_labels else y[:rows]
        yield X[:rows], None if layout.label < 0 else labels


def _header_end(block: bytes) -> int:
    """The start of the line after the header: 0 if the header is not in this block."""
    at = 0
    while at < len(block):
        end = block.index(b"\n", at) + 1
        if _is_data_line(block[at:end]):
            return end
        at = end
    return 0


def _strings(block: bytes, spans: Array) -> Array:
    fields = [block[start:end].replace(b'""', b'"') for start, end in spans.tolist()]
    return np.array([field.decode("utf-8", "replace") for field in fields], dtype=np.str_)


def _scan_error(path: Path, block: bytes, line: int, error: int, at: int, column: int, layout: CsvLayout) -> DataError:
    found = token_at(block, at)
    if error == 2 and is_nan_or_inf(found.strip(b'"')):
        error = 3
    what = _ERRORS[error].format(found=quote_bytes(found), column=column + 1, columns=layout.columns)
    return DataError(path, what, line_number(block, at, line))


def read_csv(
    path: Path, *, labels: int | str | None = None, header: bool | None = None, dtype: str = "float64"
) -> tuple[Array, Array | None]:
    """Read a table of numbers: X, and y from the column `labels` (a number, also from the end, or a header's name).

    `detect_layout` finds the delimiter and the header. Labels may be strings. Lines that begin with # are skipped.
    """
    parts = list(iter_csv(path, detect_layout(path, labels, header)))
    if not sum(len(X) for X, _ in parts):
        raise DataError(path, "the file has no points.")
    X = cast_floats(path, np.concatenate([X for X, _ in parts]), dtype)
    return X, None if parts[0][1] is None else np.concatenate([y for _, y in parts if y is not None])


# ---- writing


def delimiter_for(path: Path) -> str | None:
    """The delimiter that the name of a file implies: a tab for .tsv and .tab, else None."""
    return "\t" if str(path).lower().removesuffix(".gz").endswith((".tsv", ".tab")) else None


def write_csv(path: Path, X: ArrayLike, y: ArrayLike | None = None, *, header: Sequence[str] | None = None) -> None:
    """Write a table with the labels in its last column, each number with the fewest digits that restore it.

    The delimiter is a comma, or a tab if the name ends in .tsv or .tab.
    """
    X, labels = np.asarray(X), None if y is None else np.asarray(y).tolist()
    columns = X.shape[1] + (labels is not None)
    if header is not None and len(header) != columns:
        raise ValueError(f"header must name the {columns} columns, got {len(header)} names.")
    if X.dtype == bool:
        X = X.astype("uint8")
    delimiter = delimiter_for(path) or ","
    with open_write(path) as file:
        if header is not None:
            file.write((delimiter.join(map(_quoted, header)) + "\n").encode("utf-8"))
        for i, row in enumerate(X.tolist()):
            fields = [repr(value) for value in row]
            if labels is not None:
                label = labels[i]
                fields.append(_quoted(label) if isinstance(label, str) else repr(label + 0))  # True + 0 is 1
            file.write((delimiter.join(fields) + "\n").encode("utf-8"))


def _quoted(word: str) -> str:
    if "\n" in word or "\r" in word:
        raise ValueError(f"the string {word!r} has a line break, which a field of a CSV file cannot hold.")
    return '"' + word.replace('"', '""') + '"'
