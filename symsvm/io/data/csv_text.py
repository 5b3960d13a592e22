"""Tables as text: a line a point, fields between commas, semicolons, tabs or blanks, with or without a header."""

import numpy as np
from numba import njit

from symsvm.io.data.arrays import converted
from symsvm.io.data.csv_layout import holds, layout
from symsvm.io.data.errors import DataError, shown
from symsvm.io.data.files import writing
from symsvm.io.data.text import blocks, is_special, line_of, parse, settle, word

__all__ = ["pieces", "read_csv", "write_csv"]

_WRONG = (
    "",
    "column {column} is empty; fill or drop missing values first.",
    "column {column} holds {found}, which is not a number.",
    "column {column} holds {found}, which is not finite.",
    "it has fewer than the {columns} columns of the lines above.",
    "it has more than the {columns} columns of the lines above.",
    "column {column} opens a quote that the line does not close.",
)


@njit(cache=True)
def _past(text, at, delimiter):
    """The first byte that is no blank; a tab may be the delimiter."""
    while text[at] == 32 or text[at] == 13 or (text[at] == 9 and delimiter != 9):
        at += 1
    return at


@njit(cache=True)
def _scan(text, delimiter, columns, label, words, X, y, spans, late):
    """Parse whole lines into X and y: (points, late numbers, what is wrong, where, in which column).

    Words for labels are left where they stand, in spans; `late` gets what `settle` must finish.
    """
    at, row, n_late = 0, 0, 0
    while at < len(text):
        at = _past(text, at, delimiter)
        if text[at] == 35 or text[at] == 10:  # a comment, or nothing
            while text[at] != 10:
                at += 1
            at += 1
            continue
        slot = 0
        for column in range(columns):
            at = _past(text, at, delimiter)
            start, quoted = at, text[at] == 34
            if quoted:
                at += 1
            if column == label and words:
                while text[at] != 10 and (text[at] != delimiter or quoted):
                    if quoted and text[at] == 34:
                        if text[at + 1] != 34:
                            break
                        at += 1
                    at += 1
                if quoted and text[at] != 34:
                    return row, n_late, 6, start, column
                end = at
                while not quoted and end > start and (text[end - 1] == 32 or text[end - 1] == 13 or text[end - 1] == 9):
                    end -= 1
                spans[row, 0], spans[row, 1] = start + quoted, end
                if end == start:
                    return row, n_late, 1, start, column
            else:
                value, end, exact = parse(text, at)
                if end == at:
                    gone = text[at] == delimiter or text[at] == 10 or (quoted and text[at] == 34)
                    return row, n_late, 1 if gone else 2, start, column
                k = row * X.shape[1] + slot if column != label else ~row
                if not exact:
                    late[n_late, 0], late[n_late, 1], late[n_late, 2] = k, at, end
                    n_late += 1
                if column != label:
                    X[row, slot] = value
                else:
                    y[row] = value
                at = end
            slot += column != label
            if quoted:
                if text[at] != 34:
                    return row, n_late, 2, start, column
                at += 1
            past = _past(text, at, delimiter)
            if column + 1 < columns:
                if text[past] == 10:
                    return row, n_late, 4, start, column
                if (delimiter != 32 and text[past] != delimiter) or (delimiter == 32 and past == at):
                    return row, n_late, 2, start, column
                at = past + (delimiter != 32)
            elif text[past] != 10:
                apart = text[past] == delimiter or past > at
                return row, n_late, 5 if apart else 2, start, column
            else:
                at = past + 1
        row += 1
    return row, n_late, 0, 0, 0


def pieces(path, shape):
    """Yield (X, y) for block after block of a file of the given `Layout`; y is None without labels."""
    features, head = shape.columns - (shape.label >= 0), bool(shape.names)
    for block, line in blocks(path):
        if head and (cut := _header(block)):
            line, block, head = line + block.count(b"\n", 0, cut), block[cut:], False
        text, lines = np.frombuffer(block, dtype=np.uint8), block.count(b"\n")
        lines = min(lines, len(block) // max(1, 2 * shape.columns - 1) + 1)  # a field has a byte, and one behind it
        X, y, spans = np.empty((lines, features)), np.empty(lines), np.empty((lines, 2), dtype=np.int64)
        late = np.empty((lines * shape.columns, 3), dtype=np.int64)
        rows, n_late, wrong, at, column = _scan(
            text, shape.delimiter, shape.columns, shape.label, shape.text, X, y, spans, late
        )
        if wrong:
            raise _error(path, block, line, wrong, at, column, shape)
        if infinite := settle(block, late[:n_late], X.reshape(-1), y):
            slot, at = infinite
            column = slot % features if slot >= 0 else shape.label
            raise _error(path, block, line, 3, at, column + (0 <= shape.label <= column and slot >= 0), shape)
        words = _words(block, spans[:rows]) if shape.text else y[:rows]
        yield X[:rows], None if shape.label < 0 else words


def _header(block):
    """Where the line after the header begins: 0 if the header is not in this block."""
    at = 0
    while at < len(block):
        end = block.index(b"\n", at) + 1
        if holds(block[at:end]):
            return end
        at = end
    return 0


def _words(block, spans):
    fields = [block[start:end].replace(b'""', b'"') for start, end in spans.tolist()]
    return np.array([field.decode("utf-8", "replace") for field in fields], dtype=np.str_)


def _error(path, block, line, wrong, at, column, shape):
    found = word(block, at)
    if wrong == 2 and is_special(found.strip(b'"')):
        wrong = 3
    what = _WRONG[wrong].format(found=shown(found), column=column + 1, columns=shape.columns)
    return DataError(path, what, line_of(block, at, line))


def read_csv(path, *, labels=None, header=None, dtype="float64"):
    """Read a table of numbers: X, and y from the column `labels` (a number, also from the end, or a header's name).

    Commas, semicolons, tabs or blanks between the fields, and whether there is a header, are told from the first two
    lines. Labels may be words. Lines that begin with # are skipped.
    """
    parts = list(pieces(path, layout(path, labels, header)))
    if not sum(len(X) for X, _ in parts):
        raise DataError(path, "it holds no points.")
    X = converted(path, np.concatenate([X for X, _ in parts]), dtype)
    return X, None if parts[0][1] is None else np.concatenate([y for _, y in parts])


def write_csv(path, X, y=None, *, header=None):
    """Write a table, the labels in its last column, each number with the fewest digits that give it back.

    Commas stand between the fields, tabs if the name ends in .tsv or .tab.
    """
    X, y = np.asarray(X), None if y is None else np.asarray(y).tolist()
    if header is not None and len(header) != X.shape[1] + (y is not None):
        raise ValueError(f"header must name the {X.shape[1] + (y is not None)} columns, got {len(header)} names.")
    if X.dtype == bool:
        X = X.astype("uint8")
    between = "\t" if str(path).lower().removesuffix(".gz").endswith((".tsv", ".tab")) else ","
    with writing(path) as file:
        if header is not None:
            file.write((between.join(map(_quoted, header)) + "\n").encode("utf-8"))
        for i, row in enumerate(X.tolist()):
            fields = [repr(value) for value in row]
            if y is not None:
                fields.append(_quoted(y[i]) if isinstance(y[i], str) else repr(y[i] + 0))  # True + 0 is 1
            file.write((between.join(fields) + "\n").encode("utf-8"))


def _quoted(word):
    if "\n" in word or "\r" in word:
        raise ValueError(f"the word {word!r} has a line break, which a line of a CSV file cannot hold.")
    return '"' + word.replace('"', '""') + '"'
