"""Corpora: texts with labels from a tree of folders, an archive of one, CSV or JSON lines.

Archives are read in memory: nothing is unpacked to the disk, no link in an archive is followed, and the number of bytes
that an archive unpacks to is limited.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import itertools
import json
import os
import pathlib
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from symsvm._lib.forks import fork_safe_lock
from symsvm.io.data.byte_streams import ByteSource, check_expansion
from symsvm.io.data.csv_data import delimiter_for
from symsvm.io.file_errors import DataError, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from symsvm._lib.types import Array, Path

    # The parts of a file's path in a tree, and its bytes.
    TreeFile = tuple[tuple[str, ...], bytes]

__all__ = ["Corpora", "Corpus", "decode", "read"]

_MAX_TEXT_BYTES = 1 << 26  # of a text or a line
_MAX_TOTAL_BYTES = 1 << 32  # of all texts
_READ_BYTES = 1 << 20  # of a table, at once
_FIELD_SIZE_LOCK = fork_safe_lock()
_TRAIN_OR_TEST = re.compile(r"(?:.*[-_. ])?(train|test)", flags=re.IGNORECASE)


class Corpus(NamedTuple):
    """Texts and their labels; `model.fit(*corpus)` takes both.

    Parameters
    ----------
    texts : list of str
        The texts.
    labels : ndarray
        The label of each text.
    """

    texts: list[str]
    labels: Array


class Corpora(NamedTuple):
    """The corpora of a file or a folder.

    Parameters
    ----------
    train : Corpus
        The texts to train on.
    test : Corpus or None
        The texts to test on, None where there is one corpus only.
    """

    train: Corpus
    test: Corpus | None


def read(path: Path, *, text: str | int = "text", label: str | int = "label", encoding: str | None = None) -> Corpora:
    """Read texts and their labels; the end of the name is the format.

    Parameters
    ----------
    path : str or path-like
        A folder of folders, or an archive of one (.tar, .tar.gz, .tgz, .zip): each file is a text, and the folder that
        it is in is its label. Two folders whose names end in train and test are two corpora. Or a table with a text and
        a label in each record: .csv, .tsv, .jsonl, .ndjson, each also with .gz.
    text : str or int
        The column or key of the texts in a table; a number for a CSV file without a header.
    label : str or int
        The column or key of the labels in a table.
    encoding : str, optional
        The encoding of the texts. None is UTF-8, and latin-1 for a text (or the line of a table) that is not valid
        UTF-8.

    Returns
    -------
    Corpora
        The tuple (train, test); test is None where there is one corpus. The texts of a tree are in the order of their
        paths, those of a table in the order of the file.

    Raises
    ------
    DataError
        If the file does not follow its format; the message has the file, the line and what was found.
    """
    path = os.fspath(path)
    if encoding is not None:
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise ValueError(f"encoding must be one that Python knows, or None, got {encoding!r}.") from None
    if os.path.isdir(path):
        return _corpora_from_tree(path, _iter_folder(path), encoding)
    name = os.path.basename(path).lower()
    for iter_files, ends in _TREES.items():
        if name.endswith(ends):
            return _corpora_from_tree(path, iter_files(path), encoding)
    for read_table, ends in _TABLES.items():
        if name.removesuffix(".gz").endswith(ends):
            return read_table(path, text, label, encoding)
    known = ", ".join(end for ends in (*_TREES.values(), *_TABLES.values()) for end in ends)
    raise DataError(path, f"a corpus must be a folder of folders, or a file whose name ends in {known}.")


def decode(path: Path, data: bytes, encoding: str | None, line: int | None = None) -> str:
    """Bytes as text in `encoding`; for None in UTF-8 where they are valid UTF-8, else in latin-1.

    >>> decode("a.txt", "\u00e9".encode("latin-1"), None) == decode("a.txt", "\u00e9".encode("utf-8"), None)
    True
    """
    try:
        return data.decode(encoding or "utf-8-sig")
    except UnicodeDecodeError as error:
        if encoding is None:
            return data.decode("latin-1")
        raise DataError(
            path, f"byte {error.start + 1} is not valid {encoding}: pass another encoding, or None.", line
        ) from None


# ---- trees


def _corpora_from_tree(path: str, files: Iterable[TreeFile], encoding: str | None) -> Corpora:
    """The corpora of a tree with one folder for each class.

    A single folder around all others is skipped. Two folders whose names end in train and test are two corpora. Hidden
    files and files beside the folders of the classes are ignored.
    """
    files = sorted((parts, data) for parts, data in files if not any(map(_is_hidden, parts)))
    while files and len({parts[0] for parts, _ in files}) == 1 and max(len(parts) for parts, _ in files) > 2:
        files = [(parts[1:], data) for parts, data in files if len(parts) > 1]
    folders = {parts[0] for parts, _ in files if len(parts) > 1}
    sides = {match[1].lower(): name for name in folders if (match := _TRAIN_OR_TEST.fullmatch(name))}
    if len(folders) == 2 and set(sides) == {"train", "test"}:
        return Corpora(*(_corpus(path, files, encoding, (sides[side],)) for side in ("train", "test")))
    return Corpora(_corpus(path, files, encoding, ()), None)


def _is_hidden(part: str) -> bool:
    return part.startswith(".") or part == "__MACOSX"


def _corpus(path: str, files: list[TreeFile], encoding: str | None, above: tuple[str, ...]) -> Corpus:
    """The corpus of the files below the folders `above`."""
    at = len(above)
    found = [(parts, data) for parts, data in files if parts[:at] == above and len(parts) > at + 1]
    if not found:
        raise DataError(path, "there are no texts: use a folder for each class, with a file for each text.")
    texts = [decode(f"{path}: {one_line('/'.join(parts))}", data, encoding) for parts, data in found]
    return Corpus(texts, np.array([parts[at] for parts, _ in found], dtype=np.str_))


def _iter_folder(path: str) -> Iterator[TreeFile]:
    """Yield the parts of the path and the bytes of each regular file below a folder; links to folders are skipped."""
    root, total = pathlib.Path(path), 0
    for folder, _, names in os.walk(root):
        for name in names:
            file = pathlib.Path(folder, name)
            if file.is_file():
                size = file.stat().st_size
                total = _add_size(path, str(file.relative_to(root)), size, total)
                yield file.relative_to(root).parts, file.read_bytes()


def _iter_tar(path: str) -> Iterator[TreeFile]:
    """The same for a .tar, .tar.gz or .tgz file, read once from start to end."""
    total = 0
    try:
        with ByteSource(path) as source, tarfile.open(fileobj=cast("Any", source), mode="r|") as archive:
            for member in archive:
                if member.isdir():
                    continue
                parts = _path_parts(path, member.name)
                if not member.isreg():
                    raise DataError(path, f"{one_line(member.name)!r} is a link or a device, which is not followed.")
                total = _add_size(path, member.name, member.size, total)
                file: Any = archive.extractfile(member)
                yield parts, file.read()
    except DataError:
        raise
    except (tarfile.TarError, EOFError, ValueError, OverflowError, struct.error) as error:
        raise DataError(path, f"this is not a tar archive, or a damaged one ({one_line(error)}).") from None


def _iter_zip(path: str) -> Iterator[TreeFile]:
    """The same for a .zip file."""
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                yield from _iter_zip_members(path, archive)
        except DataError:
            raise
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, struct.error) as error:
            raise DataError(path, f"this is not a zip archive, or a damaged one ({one_line(error)}).") from None


def _iter_zip_members(path: str, archive: zipfile.ZipFile) -> Iterator[TreeFile]:
    check_expansion(path, os.path.getsize(path), sum(info.file_size for info in archive.infolist()))
    total = 0
    for info in archive.infolist():
        if info.is_dir():
            continue
        if stat.S_ISLNK(info.external_attr >> 16):
            raise DataError(path, f"{one_line(info.filename)!r} is a link, which is not followed.")
        if info.flag_bits & 1:
            raise DataError(path, f"{one_line(info.filename)!r} is encrypted: unpack the archive to a folder first.")
        total = _add_size(path, info.filename, info.file_size, total)
        yield _path_parts(path, info.filename), archive.read(info)


def _add_size(path: str, name: str, size: int, total: int) -> int:
    """The number of bytes so far, unless they are too many."""
    if size > _MAX_TEXT_BYTES:
        raise DataError(path, f"{one_line(name)!r} has {size} bytes; a text has at most {_MAX_TEXT_BYTES >> 20} MiB.")
    if total + size > _MAX_TOTAL_BYTES:
        raise DataError(path, f"its texts have more than {_MAX_TOTAL_BYTES >> 30} GiB, the limit of a corpus.")
    return total + size


def _path_parts(path: str, name: str) -> tuple[str, ...]:
    """The parts of a member's path; a path that leaves the archive is refused."""
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or ".." in parts or not parts:
        raise DataError(path, f"the member {one_line(name)!r} is not a path inside the archive.")
    return parts


# ---- tables


def _iter_lines(path: str, encoding: str | None) -> Iterator[str]:
    """The lines of a file as text, with their ends."""
    number, rest = 0, b""
    with ByteSource(path) as source:
        while block := source.read(_READ_BYTES):
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                number += 1
                yield decode(path, line + b"\n", encoding, number)
            if len(rest) > _MAX_TEXT_BYTES:
                raise DataError(path, f"the line has more than {_MAX_TEXT_BYTES >> 20} MiB.", number + 1)
    if rest:
        yield decode(path, rest, encoding, number + 1)


def _read_csv(path: str, text: str | int, label: str | int, encoding: str | None) -> Corpora:
    """Texts and labels from two columns, by the names of a header, or by numbers where there is none."""
    rows = _csv_rows(path, encoding)
    if not rows:
        raise DataError(path, "the file is empty.")
    width = len(rows[0][1])
    text_column, label_column = _columns(path, (text, label), *rows[0])
    texts, labels = [], []
    for line, row in rows[1:] if isinstance(text, str) else rows:
        if len(row) != width:
            raise DataError(path, f"the line has {len(row)} columns, the first line has {width}.", line)
        texts.append(row[text_column])
        labels.append(_check_label(path, row[label_column].strip(), line))
    return _corpora_from_table(path, texts, labels)


def _csv_rows(path: str, encoding: str | None) -> list[tuple[int, list[str]]]:
    """The line number and the fields of each record that is not empty."""
    lines = _iter_lines(path, encoding)
    first = next(lines, "")
    delimiter = delimiter_for(path) or max(",;\t", key=first.count)
    reader = csv.reader(itertools.chain([first], lines), delimiter=delimiter, strict=True)
    rows, line = [], 1
    try:
        with _long_fields():
            for row in reader:
                if row:
                    rows.append((line, row))
                line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(path, f"the line is not valid CSV ({one_line(error)}).", line) from None
    return rows


@contextlib.contextmanager
def _long_fields() -> Iterator[None]:
    """Raise the limit of the csv module, 128 KiB a field by default, which belongs to the whole process."""
    with _FIELD_SIZE_LOCK:
        before = csv.field_size_limit(_MAX_TEXT_BYTES)
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _columns(path: str, wanted: tuple[str | int, str | int], line: int, row: list[str]) -> list[int]:
    """The numbers of the columns of the text and the label."""
    if {type(column) for column in wanted} not in ({int}, {str}):
        raise TypeError(f"text and label must be two names, or two numbers of columns, got {wanted!r}.")
    names = [name.strip() for name in row]
    for column in wanted:
        if not (column in names if isinstance(column, str) else -len(row) <= column < len(row)):
            found = f"its columns are {one_line(', '.join(map(repr, names)))}"
            raise DataError(path, f"there is no column {column!r}; {found}: choose two with text= and label=.", line)
    return [names.index(column) if isinstance(column, str) else column for column in wanted]


def _read_jsonl(path: str, text: str | int, label: str | int, encoding: str | None) -> Corpora:
    """Texts and labels from two keys of the object on each line."""
    texts, labels = [], []
    for number, line in enumerate(_iter_lines(path, encoding), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(path, f"the line is not valid JSON ({one_line(error)}).", number) from None
        if not isinstance(record, dict):
            raise DataError(path, f"the line must be a JSON object, got a {type(record).__name__}.", number)
        for key in (text, label):
            if key not in record:
                raise DataError(path, f"there is no key {key!r}; its keys are {one_line(list(record))}.", number)
        if not isinstance(record[text], str):
            raise DataError(path, f"{text!r} must be a string, got a {type(record[text]).__name__}.", number)
        texts.append(record[text])
        labels.append(_check_label(path, record[label], number))
        if type(labels[-1]) is not type(labels[0]):
            raise DataError(path, f"{label!r} must be a string in all lines or an integer in all, got both.", number)
    return _corpora_from_table(path, texts, labels)


def _check_label(path: str, value: Any, line: int) -> str | int:
    if type(value) not in (str, int) or value == "":
        raise DataError(path, f"the label must be a string or an integer, got {one_line(repr(value))}.", line)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise DataError(path, f"the label {one_line(value)} is not a 64-bit integer.", line)
    return value


def _corpora_from_table(path: str, texts: list[str], labels: list[str | int]) -> Corpora:
    if not texts:
        raise DataError(path, "the file has no texts.")
    return Corpora(Corpus(texts, np.array(labels)), None)


_TREES = {_iter_tar: (".tar", ".tar.gz", ".tgz"), _iter_zip: (".zip",)}
_TABLES = {_read_csv: (".csv", ".tsv", ".tab"), _read_jsonl: (".jsonl", ".ndjson")}
