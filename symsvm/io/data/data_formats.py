"""`read`, `write` and `chunks` for all data formats, chosen by the file's name or its first bytes."""

from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from symsvm._lib.validation import choice, count
from symsvm._lib.validation import dtype as floating
from symsvm.io.data import array_files, csv_data, libsvm_data, parquet
from symsvm.io.data.byte_streams import ByteSource
from symsvm.io.file_errors import DataError, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import ArrayLike, DTypeLike

    from symsvm._lib import types
    from symsvm._lib.types import Array, Path

    Format = Literal["libsvm", "csv", "idx", "npy", "npz", "parquet"]

__all__ = ["FORMATS", "Points", "chunks", "detect_format", "read", "write"]

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
_HEAD_BYTES = 4096  # read to detect a format


class Points(NamedTuple):
    """Points and their labels.

    Parameters
    ----------
    X : ndarray or csr_matrix of shape (m, d)
        The points, one a row.
    y : ndarray of shape (m,) or None
        The labels, None where the file has none.
    """

    X: Any
    y: Any


# ---- formats


def detect_format(path: Path) -> str:
    """The format of a file: by the end of its name without .gz, else by its first bytes.

    >>> detect_format("train.csv.gz"), detect_format("a9a.t")
    ('csv', 'libsvm')
    """
    if form := _format_from_name(path):
        return form
    with ByteSource(path) as source:
        head = source.read(_HEAD_BYTES)
    if array_files.is_idx(head):
        return "idx"
    magic = [name for start, name in _MAGIC.items() if head.startswith(start)]
    return magic[0] if magic else "csv" if head.strip() and b":" not in head else "libsvm"


def _format_from_name(path: Path) -> str | None:
    name = os.path.basename(path).lower().removesuffix(".gz")
    return next((form for form, ends in _ENDINGS.items() if name.endswith(ends)), None)


# ---- reading


def read(
    path: Path,
    labels: int | Path | None = None,
    *,
    format: Format | None = None,
    dtype: DTypeLike | None = None,
    n_features: int | None = None,
    header: bool | None = None,
    zero_based: bool = False,
) -> Points:
    """Read points and labels from a LIBSVM, CSV, IDX, .npy, .npz or Parquet file.

    Text and IDX files may be gzip.

    Parameters
    ----------
    path : str or path-like
        The name of the file.
    labels : int, str or path-like, optional
        The column of the labels (a number, also from the end, or a name), the name of the array in a .npz file (``y``
        unless given), or another file with a label for each point.
    format : {"libsvm", "csv", "idx", "npy", "npz", "parquet"}, optional
        The format; detected from the name of the file or its first bytes unless given.
    dtype : {"float64", "float32"}, optional
        The type of X: float64 unless given for text and Parquet, as stored for arrays.
    n_features : int, optional
        The number of features of a LIBSVM file whose last features are all 0.
    header : bool, optional
        Whether a CSV file has a header; detected from its first two lines unless given.
    zero_based : bool
        Whether the indices of a LIBSVM file count from 0 instead of 1.

    Returns
    -------
    Points
        The tuple (X, y). X is CSR from a LIBSVM file and dense otherwise; arrays of more axes, such as images, are
        flattened to one row a point.

    Raises
    ------
    DataError
        If the file does not follow its format; the message has the file, the line and what was found.
    """
    form = detect_format(path) if format is None else choice(format, "format", FORMATS)
    dtype = None if dtype is None else floating(dtype)
    column, labels_path = _label_source(path, form, labels, header)
    points: tuple[Any, Any]
    if form == "libsvm":
        points = libsvm_data.read_libsvm(path, dtype=dtype or "float64", n_features=n_features, zero_based=zero_based)
    elif form == "csv":
        points = csv_data.read_csv(path, labels=column, header=header, dtype=dtype or "float64")
    elif form == "parquet":
        points = parquet.read_parquet(path, labels=column, dtype=dtype or "float64")
    elif form == "npz":
        points = _points_from_npz(path, column, dtype)
    else:
        array = array_files.read_idx(path) if form == "idx" else array_files.read_npy(path)
        points = _points_from_array(path, array, column, dtype)
    X, y = points
    if labels_path is not None:
        y = _read_labels(labels_path)
        if len(y) != X.shape[0]:
            raise DataError(labels_path, f"the file has {len(y)} labels, but {path} has {X.shape[0]} points.")
    return Points(X, y)


def _label_source(
    path: Path, form: str, labels: int | Path | None, header: bool | None
) -> tuple[int | str | None, pathlib.Path | None]:
    """`labels` as a column or as a file, one of them None."""
    if isinstance(labels, str | os.PathLike):
        names = csv_data.detect_layout(path, None, header).names if form == "csv" else ()
        if isinstance(labels, os.PathLike) or (labels not in names and os.path.isfile(labels)):
            return None, pathlib.Path(labels)
    elif labels is not None:
        labels = count(labels, "labels", least=-(2**31))
    if labels is not None and form in ("libsvm", "idx"):
        hint = "a label is the first word of a line" if form == "libsvm" else "pass the file of the labels"
        raise ValueError(f"labels={labels!r} is not a file, and {form} files have no such column: {hint}.")
    return labels, None


def _points_from_array(
    path: Path, array: Array, column: int | str | None, dtype: str | None
) -> tuple[Array, Array | None]:
    """An array as points, one a row, and the column of the labels."""
    if array.ndim == 0 or 0 in array.shape:
        raise DataError(path, f"the file has no points; its shape is {array.shape}.")
    if array.dtype.kind not in "biuf":
        raise DataError(path, f"its type {array.dtype} is not numeric.")
    X, y = array.reshape(len(array), -1), None
    if column is not None:
        if not (isinstance(column, int) and -X.shape[1] <= column < X.shape[1]):
            raise DataError(path, f"there is no column {column!r} for the labels; it has {X.shape[1]} columns.")
        X, y = np.delete(X, column, axis=1), X[:, column]
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        raise DataError(path, f"row {int(np.argwhere(~np.isfinite(X))[0, 0]) + 1} has a nan or an infinity.")
    return X if dtype is None else array_files.cast_floats(path, X, dtype), y


def _points_from_npz(path: Path, column: int | str | None, dtype: str | None) -> tuple[Array, Array | None]:
    """The arrays X and y of a .npz file; `column` is another name for y."""
    found = array_files.read_npz(path)
    name = "y" if column is None else column
    others = [key for key in found if key != name]
    key = "X" if "X" in found else others[0] if len(others) == 1 else None
    if key is None or (column is not None and name not in found):
        names = one_line(", ".join(map(repr, found))) or "no array"
        raise DataError(path, f"the file has {names}; name the points 'X' and the labels {name!r}.")
    X, y = _points_from_array(path, found[key], None, dtype)[0], found.get(str(name))
    if y is not None and y.shape != (len(X),):
        raise DataError(path, f"the labels have the shape {y.shape}, but there are {len(X)} points.")
    return X, y


def _read_labels(path: Path) -> Array:
    """The labels in a file of their own: one column of any format; strings only in CSV."""
    if detect_format(path) == "csv":
        rest, y = csv_data.read_csv(path, labels=0)
        columns = 1 + rest.shape[1]
    else:
        y = read(path).X
        y, columns = y[:, 0], y.shape[1]
    if columns != 1:
        raise DataError(path, f"a file of labels has one column, this one has {columns}.")
    return y  # pyright: ignore[reportReturnType] (read_csv has labels where it is asked for a column)


def chunks(
    path: Path,
    labels: int | Path | None = None,
    *,
    rows: int = 8192,
    format: Format | None = None,
    dtype: DTypeLike = "float32",
    n_features: int | None = None,
    header: bool | None = None,
    zero_based: bool = False,
) -> Iterator[Points]:
    """Read a file in chunks, for files that are larger than memory.

    Files of labels and .npz files are read at once. A LIBSVM file is read twice unless `n_features` is given, to count
    its features.

    Parameters
    ----------
    path : str or path-like
        The name of the file.
    labels : int, str or path-like, optional
        As in `read`.
    rows : int
        The number of points in a chunk; the last one may have fewer.
    format : {"libsvm", "csv", "idx", "npy", "npz", "parquet"}, optional
        As in `read`.
    dtype : {"float32", "float64"}
        The type of X.
    n_features : int, optional
        As in `read`.
    header : bool, optional
        As in `read`.
    zero_based : bool
        As in `read`.

    Yields
    ------
    Points
        The next points and labels.
    """
    rows, dtype = count(rows, "rows", least=1), floating(dtype)
    form = detect_format(path) if format is None else choice(format, "format", FORMATS)
    column, labels_path = _label_source(path, form, labels, header)
    parts = _iter_parts(path, form, column, rows, dtype, n_features, header, zero_based)
    file_labels = None if labels_path is None else _read_labels(labels_path)
    start = 0
    for X, y in _regroup(parts, rows):
        end = start + X.shape[0]
        if labels_path is not None and file_labels is not None:
            y = file_labels[start:end]
            if len(y) < X.shape[0]:
                raise DataError(labels_path, f"the file has {len(file_labels)} labels, but {path} has more points.")
        yield Points(array_files.cast_floats(path, X, dtype), y)
        start = end
    if not start:
        raise DataError(path, "the file has no points.")
    if labels_path is not None and file_labels is not None and start < len(file_labels):
        raise DataError(labels_path, f"the file has {len(file_labels)} labels, but {path} has {start} points.")


def _iter_parts(
    path: Path,
    form: str,
    column: int | str | None,
    rows: int,
    dtype: str,
    n_features: int | None,
    header: bool | None,
    zero_based: bool,
) -> Iterator[tuple[Any, Array | None]]:
    """Yield (X, y) in the parts that the reader of a format gives."""
    if form == "libsvm":
        return libsvm_data.iter_libsvm(path, dtype=dtype, n_features=n_features, zero_based=zero_based)
    if form == "csv":
        return csv_data.iter_csv(path, csv_data.detect_layout(path, column, header))
    if form == "parquet":
        return parquet.iter_parquet(path, column, rows, dtype)
    if form == "npz":
        return iter([_points_from_npz(path, column, dtype)])
    iter_arrays = array_files.iter_idx if form == "idx" else array_files.iter_npy
    return (_points_from_array(path, part, column, dtype) for part in iter_arrays(path, rows))


def _regroup(parts: Iterable[tuple[Any, Array | None]], rows: int) -> Iterator[tuple[Any, Array | None]]:
    """The same points, `rows` at a time."""
    pending, total = [], 0
    for part in parts:
        pending.append(part)
        total += part[0].shape[0]
        if total >= rows:
            X, y = _stack(pending)
            for start in range(0, total - rows + 1, rows):
                yield X[start : start + rows], None if y is None else y[start : start + rows]
            rest = total - total % rows
            pending, total = [(X[rest:], None if y is None else y[rest:])], total % rows
    if total:
        yield _stack(pending)


def _stack(parts: list[tuple[Any, Array | None]]) -> tuple[Any, Array | None]:
    if len(parts) == 1:
        return parts[0]
    X = [X for X, _ in parts]
    X = sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X)
    return X, None if parts[0][1] is None else np.concatenate([y for _, y in parts if y is not None])


# ---- writing


def write(
    path: Path,
    X: types.Points | ArrayLike,
    y: ArrayLike | None = None,
    *,
    format: Format | None = None,
    **options: Any,
) -> None:
    """Write points and labels; an existing file is replaced when the new one is complete.

    Parameters
    ----------
    path : str or path-like
        The name of the file.
    X : array-like or CSR of shape (m, d)
        The points; IDX, .npy and .npz files also hold arrays of more axes, and only LIBSVM files hold CSR.
    y : array-like of shape (m,), optional
        The labels. IDX and .npy files hold one array: write labels to a file of their own, or use .npz.
    format : {"libsvm", "csv", "idx", "npy", "npz", "parquet"}, optional
        The format; from the end of the name unless given, "libsvm" for other names.
    **options : dict
        LIBSVM files have `query_id` and `zero_based`, CSV files `header`, Parquet files `names` and `label`.
    """
    form = choice(format or _format_from_name(path) or "libsvm", "format", FORMATS)
    array: Any = X
    array = array.tocsr() if hasattr(array, "tocsr") else np.asarray(array)
    _check_writable(array, y, form)
    if form == "libsvm":
        libsvm_data.write_libsvm(path, array, np.zeros(array.shape[0]) if y is None else y, **options)
    elif form in ("idx", "npy"):
        if y is not None:
            raise ValueError(f"{form} files hold one array: write y to a file of its own.")
        (array_files.write_idx if form == "idx" else array_files.write_npy)(path, array, **options)
    elif form == "npz":
        array_files.write_npz(path, X=array, **({} if y is None else {"y": y}), **options)
    else:
        (csv_data.write_csv if form == "csv" else parquet.write_parquet)(path, array, y, **options)


def _check_writable(X: Any, y: ArrayLike | None, form: str) -> None:
    """Refuse what the readers would refuse."""
    is_sparse = hasattr(X, "tocsr")
    if is_sparse and form != "libsvm":
        raise ValueError(f"X is sparse, and {form} files are dense: write a LIBSVM file, or X.toarray().")
    if X.ndim == 0 or (X.ndim != 2 and form not in ("idx", "npy", "npz")):
        raise ValueError(f"X must have two dimensions (points, features) in {form} files, got the shape {X.shape}.")
    data = X.data if is_sparse else X
    if data.dtype.kind not in "biuf" or not np.isfinite(data).all():
        raise ValueError("X must hold finite numbers.")
    if y is None:
        return
    y = np.asarray(y)
    if y.shape != (X.shape[0],):
        raise ValueError(f"y must have a label for each of the {X.shape[0]} points, got the shape {y.shape}.")
    if y.dtype.kind not in ("biuf" if form == "libsvm" else "biufU"):
        raise ValueError(f"y must hold {'numbers' if form == 'libsvm' else 'numbers or strings'} in {form} files.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("y must be finite.")
