"""One reader and one writer for all formats, chosen by the file's name or its first bytes."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from symsvm._lib.validation import choice, count
from symsvm._lib.validation import dtype as floating
from symsvm.io.data import arrays, csv_layout, csv_text, idx, libsvm_text, tables
from symsvm.io.data.errors import DataError, brief
from symsvm.io.data.files import Source

__all__ = ["FORMATS", "Points", "flat", "format_of", "labels_in", "named", "read", "split_labels", "write"]

FORMATS = ("libsvm", "csv", "idx", "npy", "npz", "parquet")
_ENDINGS = {
    "libsvm": (".libsvm", ".svm", ".svmlight", ".t", ".tr", ".val"),
    "csv": (".csv", ".tsv", ".tab"),
    "idx": (".idx", "-ubyte", ".idx1", ".idx2", ".idx3", ".idx4"),
    "npy": (".npy",),
    "npz": (".npz",),
    "parquet": (".parquet", ".pq"),
}
_MAGIC = {b"\x93NUMPY": "npy", b"PK\x03\x04": "npz", b"PAR1": "parquet"}


class Points(NamedTuple):
    """Points, one a row, and their labels (None where the file has none)."""

    X: Any
    y: Any


def format_of(path):
    """The format of a file: by the end of its name, a .gz left aside, else by its first bytes.

    >>> format_of("train.csv.gz"), format_of("a9a.t")
    ('csv', 'libsvm')
    """
    if form := _by_name(path):
        return form
    with Source(path) as source:
        head = source.read(4096)
    if idx.is_idx(head):
        return "idx"
    magic = [name for start, name in _MAGIC.items() if head.startswith(start)]
    return magic[0] if magic else "csv" if head.strip() and b":" not in head else "libsvm"


def _by_name(path):
    name = os.path.basename(path).lower().removesuffix(".gz")
    return next((form for form, ends in _ENDINGS.items() if name.endswith(ends)), None)


def read(path, labels=None, *, format=None, dtype=None, n_features=None, header=None, zero_based=False):
    """Read points and labels from a file: LIBSVM's text, CSV, IDX, .npy, .npz or Parquet; gzip where it is text or IDX.

    `labels` is the column that holds them (a number, also from the end, or a name), the name of the array in a .npz
    file (`y` unless given), or another file with a label for each point. X is CSR from LIBSVM's text and dense else;
    what has more axes, as images have, is laid out flat. `dtype` is the type of X: float64 unless given for text, as
    stored for arrays. A file that is not what it should be raises `DataError`: the file, the line, what was found.
    """
    form = format_of(path) if format is None else choice(format, "format", FORMATS)
    dtype = None if dtype is None else floating(dtype)
    column, other = split_labels(path, form, labels, header)
    if form == "libsvm":
        points = libsvm_text.read_libsvm(path, dtype=dtype or "float64", n_features=n_features, zero_based=zero_based)
    elif form == "csv":
        points = csv_text.read_csv(path, labels=column, header=header, dtype=dtype or "float64")
    elif form == "parquet":
        points = tables.read_parquet(path, labels=column, dtype=dtype or "float64")
    elif form == "npz":
        points = named(path, column, dtype)
    else:
        array = idx.read_idx(path) if form == "idx" else arrays.read_npy(path)
        points = flat(path, array, column, dtype)
    X, y = points
    if other is not None:
        y = labels_in(other)
        if len(y) != X.shape[0]:
            raise DataError(other, f"it holds {len(y)} labels, and {path} has {X.shape[0]} points.")
    return Points(X, y)


def split_labels(path, form, labels, header):
    """`labels` as a column or as a file, one of them None."""
    if isinstance(labels, str | os.PathLike):
        names = csv_layout.layout(path, None, header).names if form == "csv" else ()
        if isinstance(labels, os.PathLike) or (labels not in names and os.path.isfile(labels)):
            return None, Path(labels)
    elif labels is not None:
        labels = count(labels, "labels", least=-(2**31))
    if labels is not None and form in ("libsvm", "idx"):
        kind = "they stand first in each line" if form == "libsvm" else "give their file"
        raise ValueError(f"labels={labels!r} is no file, and {form} files have no such column: {kind}.")
    return labels, None


def flat(path, array, column, dtype):
    """An array as points, without the column of the labels."""
    if array.ndim == 0 or 0 in array.shape:
        raise DataError(path, f"it holds no points; its shape is {array.shape}.")
    if array.dtype.kind not in "biuf":
        raise DataError(path, f"its type {array.dtype} is not one of numbers.")
    X, y = array.reshape(len(array), -1), None
    if column is not None:
        if not (isinstance(column, int) and -X.shape[1] <= column < X.shape[1]):
            raise DataError(path, f"there is no column {column!r} for the labels; it has {X.shape[1]} columns.")
        X, y = np.delete(X, column, axis=1), X[:, column]
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        raise DataError(path, f"row {int(np.argwhere(~np.isfinite(X))[0, 0]) + 1} holds nan or an infinity.")
    return X if dtype is None else arrays.converted(path, X, dtype), y


def named(path, column, dtype):
    """The points X and the labels y of a .npz file; another name for the labels may be given."""
    found = arrays.read_npz(path)
    name = "y" if column is None else column
    rest = [key for key in found if key != name]
    key = "X" if "X" in found else rest[0] if len(rest) == 1 else None
    if key is None or (column is not None and name not in found):
        raise DataError(path, f"it holds the arrays {brief(', '.join(map(repr, found)))}; points are X, labels {name}.")
    X, y = flat(path, found[key], None, dtype)[0], found.get(name)
    if y is not None and y.shape != (len(X),):
        raise DataError(path, f"the labels have the shape {y.shape}, and there are {len(X)} points.")
    return X, y


def labels_in(path):
    """The labels in a file of their own: one column of any format, in CSV words too."""
    if format_of(path) == "csv":
        rest, y = csv_text.read_csv(path, labels=0)
        columns = 1 + rest.shape[1]
    else:
        y = read(path).X
        y, columns = y[:, 0], y.shape[1]
    if columns != 1:
        raise DataError(path, f"it is no file of labels: it has {columns} columns.")
    return y


def write(path, X, y=None, *, format=None, **options):
    """Write points and labels in the format of the name's end; the file is replaced once the new one is whole.

    LIBSVM's text takes `query_id` and `zero_based`, CSV `header`, Parquet `names` and `label`. IDX and .npy hold one
    array: write the labels to a file of their own, or to .npz.
    """
    form = choice(format or _by_name(path) or "libsvm", "format", FORMATS)
    X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    _writable(X, y, form)
    if form == "libsvm":
        return libsvm_text.write_libsvm(path, X, np.zeros(X.shape[0]) if y is None else y, **options)
    if form in ("idx", "npy"):
        if y is not None:
            raise ValueError(f"a {form} file holds one array: write y to a file of its own.")
        return (idx.write_idx if form == "idx" else arrays.write_npy)(path, X, **options)
    if form == "npz":
        return arrays.write_npz(path, X=X, **({} if y is None else {"y": y}), **options)
    return (csv_text.write_csv if form == "csv" else tables.write_parquet)(path, X, y, **options)


def _writable(X, y, form):
    """Refuse what the readers would."""
    sparse = hasattr(X, "tocsr")
    if sparse and form != "libsvm":
        raise ValueError(f"X is sparse, which a {form} file is not: write LIBSVM's text, or X.toarray().")
    if X.ndim == 0 or (X.ndim != 2 and form not in ("idx", "npy", "npz")):
        raise ValueError(f"X must have two dimensions (points, features) in a {form} file, got the shape {X.shape}.")
    data = X.data if sparse else X
    if data.dtype.kind not in "biuf" or not np.isfinite(data).all():
        raise ValueError("X must hold finite numbers.")
    if y is None:
        return
    y = np.asarray(y)
    if y.shape != (X.shape[0],):
        raise ValueError(f"y must have a label for each of the {X.shape[0]} points, got the shape {y.shape}.")
    if y.dtype.kind not in ("biuf" if form == "libsvm" else "biufU"):
        raise ValueError(f"y must hold {'numbers' if form == 'libsvm' else 'numbers or words'} in a {form} file.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("y must be finite.")
