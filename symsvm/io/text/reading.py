"""Reading: a corpus from an archive, a folder of folders, CSV or JSON lines."""

import codecs
import os

from symsvm.io.data import DataError
from symsvm.io.text.corpus import corpora_of
from symsvm.io.text.tables import read_csv, read_jsonl
from symsvm.io.text.trees import folder_files, tar_files, zip_files

__all__ = ["read"]

_TREES = {tar_files: (".tar", ".tar.gz", ".tgz"), zip_files: (".zip",)}
_TABLES = {read_csv: (".csv", ".tsv", ".tab"), read_jsonl: (".jsonl", ".ndjson")}


def read(path, *, text="text", label="label", encoding=None):
    """Read texts and their labels; the name's end is the format.

    Parameters
    ----------
    path : a folder of folders, or an archive of one (.tar, .tar.gz, .tgz, .zip): each file is a text, the folder that
        it is in its label. Where the folders are two, whose names end in train and test, these are two corpora. Or a
        table with a text and a label in each record: .csv, .tsv, .jsonl, .ndjson, also with .gz behind it.
    text, label : the columns or keys of a table; for a CSV file without a header two numbers.
    encoding : of the bytes; None is UTF-8, and latin-1 for a text (or the line of a table) that is no valid UTF-8.

    Returns
    -------
    `Corpora` (train, test), test None where there is one corpus. The texts of a tree are in the order of their paths,
    those of a table in the file's. A file that is not what it should be raises `DataError`: the file, the line, what
    was found.
    """
    path = os.fspath(path)
    if encoding is not None:
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise ValueError(f"encoding must be one that Python knows, or None, got {encoding!r}.") from None
    if os.path.isdir(path):
        return corpora_of(path, folder_files(path), encoding)
    name = os.path.basename(path).lower()
    for files, ends in _TREES.items():
        if name.endswith(ends):
            return corpora_of(path, files(path), encoding)
    for table, ends in _TABLES.items():
        if name.removesuffix(".gz").endswith(ends):
            return table(path, text, label, encoding)
    known = ", ".join(end for ends in (*_TREES.values(), *_TABLES.values()) for end in ends)
    raise DataError(path, f"texts come from a folder of folders, or from a file whose name ends in {known}.")
