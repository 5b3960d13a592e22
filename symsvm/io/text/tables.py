"""Tables of texts: CSV and JSON lines, with a text and a label in each record."""

import contextlib
import csv
import itertools
import json
import threading

import numpy as np

from symsvm.io.data import DataError
from symsvm.io.data.errors import brief
from symsvm.io.data.files import Source
from symsvm.io.text.corpus import Corpora, Corpus, decoded

__all__ = ["read_csv", "read_jsonl"]

_LINE = 1 << 26
_PIECE = 1 << 20
_LIMIT = threading.Lock()


def _lines(path, encoding):
    """The lines of a file as text, with their ends."""
    number, rest = 0, b""
    with Source(path) as source:
        while piece := source.read(_PIECE):
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                number += 1
                yield decoded(path, line + b"\n", encoding, number)
            if len(rest) > _LINE:
                raise DataError(path, f"the line has more than {_LINE >> 20} MiB.", number + 1)
    if rest:
        yield decoded(path, rest, encoding, number + 1)


def read_csv(path, text, label, encoding):
    """Texts and labels from two columns, by the names of a header, or by numbers where there is none."""
    rows = _rows(path, encoding)
    if not rows:
        raise DataError(path, "it is empty.")
    width = len(rows[0][1])
    of_text, of_label = _columns(path, (text, label), *rows[0])
    texts, labels = [], []
    for line, row in rows[1:] if isinstance(text, str) else rows:
        if len(row) != width:
            raise DataError(path, f"it has {len(row)} columns, the first line has {width}.", line)
        texts.append(row[of_text])
        labels.append(_label(path, row[of_label].strip(), line))
    return _corpora(path, texts, labels)


def _rows(path, encoding):
    """Pairs of a line's number and its fields, for each record that has any."""
    lines = _lines(path, encoding)
    first = next(lines, "")
    between = "\t" if str(path).lower().removesuffix(".gz").endswith((".tsv", ".tab")) else max(",;\t", key=first.count)
    reader = csv.reader(itertools.chain([first], lines), delimiter=between, strict=True)
    rows, line = [], 1
    try:
        with _long_fields():
            for row in reader:
                if row:
                    rows.append((line, row))
                line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(path, f"it is no line of a table ({brief(error)}).", line) from None
    return rows


@contextlib.contextmanager
def _long_fields():
    """The csv module takes fields of 128 KiB unless told otherwise, for the whole process."""
    with _LIMIT:
        before = csv.field_size_limit(_LINE)
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _columns(path, wanted, line, row):
    """The numbers of the columns of the text and the label."""
    if {type(column) for column in wanted} not in ({int}, {str}):
        raise TypeError(f"text and label must be two names, or two numbers of columns, got {wanted!r}.")
    names = [name.strip() for name in row]
    for column in wanted:
        if not (column in names if isinstance(column, str) else -len(row) <= column < len(row)):
            there = f"its columns are {brief(', '.join(map(repr, names)))}"
            raise DataError(path, f"there is no column {column!r}; {there}: name them with text= and label=.", line)
    return [names.index(column) if isinstance(column, str) else column for column in wanted]


def read_jsonl(path, text, label, encoding):
    """Texts and labels from two keys of the object on each line."""
    texts, labels = [], []
    for number, line in enumerate(_lines(path, encoding), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(path, f"it is no JSON ({brief(error)}).", number) from None
        if not isinstance(record, dict):
            raise DataError(path, f"it must be an object, got a {type(record).__name__}.", number)
        for key in (text, label):
            if key not in record:
                raise DataError(path, f"there is no key {key!r}; its keys are {brief(list(record))}.", number)
        if not isinstance(record[text], str):
            raise DataError(path, f"{text!r} must be a string, got a {type(record[text]).__name__}.", number)
        texts.append(record[text])
        labels.append(_label(path, record[label], number))
        if type(labels[-1]) is not type(labels[0]):
            raise DataError(path, f"{label!r} must be all strings or all integers, got both.", number)
    return _corpora(path, texts, labels)


def _label(path, value, line):
    if type(value) not in (str, int) or value == "":
        raise DataError(path, f"the label must be a word or an integer, got {brief(repr(value))}.", line)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise DataError(path, f"the label {brief(value)} is no integer of 64 bits.", line)
    return value


def _corpora(path, texts, labels):
    if not texts:
        raise DataError(path, "it holds no texts.")
    return Corpora(Corpus(texts, np.array(labels)), None)
