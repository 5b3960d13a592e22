"""Files larger than memory: points by the chunk."""

import numpy as np
from scipy import sparse

from symsvm._lib.validation import choice, count
from symsvm._lib.validation import dtype as floating
from symsvm.io.data import arrays, csv_layout, csv_text, formats, idx, libsvm_text, tables
from symsvm.io.data.errors import DataError

__all__ = ["chunks"]


def chunks(
    path, labels=None, *, rows=8192, format=None, dtype="float32", n_features=None, header=None, zero_based=False
):
    """Yield `Points` of `rows` points each, fewer in the last: for files that are larger than memory.

    The arguments are those of `read`. The file of the labels and .npz files are read whole. LIBSVM's text is read twice
    unless `n_features` is given, for only its end tells the number of features.
    """
    rows, dtype = count(rows, "rows", least=1), floating(dtype)
    form = formats.format_of(path) if format is None else choice(format, "format", formats.FORMATS)
    column, other = formats.split_labels(path, form, labels, header)
    parts = _parts(path, form, column, rows, dtype, n_features, header, zero_based)
    names = None if other is None else formats.labels_in(other)
    start = 0
    for X, y in _regrouped(parts, rows):
        end = start + X.shape[0]
        if names is not None:
            y = names[start:end]
            if len(y) < X.shape[0]:
                raise DataError(other, f"it holds {len(names)} labels, and {path} has more points.")
        yield formats.Points(arrays.converted(path, X, dtype), y)
        start = end
    if not start:
        raise DataError(path, "it holds no points.")
    if names is not None and start < len(names):
        raise DataError(other, f"it holds {len(names)} labels, and {path} has {start} points.")


def _parts(path, form, column, rows, dtype, n_features, header, zero_based):
    """Yield (X, y) in the parts that the format gives."""
    if form == "libsvm":
        return libsvm_text.pieces(path, dtype=dtype, n_features=n_features, zero_based=zero_based)
    if form == "csv":
        return csv_text.pieces(path, csv_layout.layout(path, column, header))
    if form == "parquet":
        return tables.pieces(path, column, rows, dtype)
    if form == "npz":
        return iter([formats.named(path, column, dtype)])
    read = idx.pieces if form == "idx" else arrays.pieces
    return (formats.flat(path, part, column, dtype) for part in read(path, rows))


def _regrouped(parts, rows):
    """The same points, `rows` at a time."""
    held, count = [], 0
    for X, y in parts:
        held.append((X, y))
        count += X.shape[0]
        if count >= rows:
            X, y = _stack(held)
            for start in range(0, count - rows + 1, rows):
                yield X[start : start + rows], None if y is None else y[start : start + rows]
            rest = count - count % rows
            held, count = [(X[rest:], None if y is None else y[rest:])], count % rows
    if count:
        yield _stack(held)


def _stack(parts):
    if len(parts) == 1:
        return parts[0]
    X = [X for X, _ in parts]
    X = sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X)
    return X, None if parts[0][1] is None else np.concatenate([y for _, y in parts])
