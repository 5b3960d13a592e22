"""Parquet, through whichever of polars and pandas is installed."""

import importlib.util

import numpy as np

from symsvm.io.data.errors import DataError, brief
from symsvm.io.data.files import writing

__all__ = ["pieces", "read_parquet", "write_parquet"]


def _library():
    for name, needs in (("polars", ("polars",)), ("pandas", ("pandas", "pyarrow"))):
        if all(importlib.util.find_spec(module) for module in needs):
            return name
    raise ImportError("Parquet needs polars, or pandas with pyarrow: pip install polars.")


def _frames(path, rows):
    """The names of the columns, then dictionaries of columns, `rows` rows each."""
    if _library() == "polars":
        import polars

        lazy = polars.scan_parquet(path, glob=False)
        yield lazy.collect_schema().names()
        start = 0
        while len(frame := lazy.slice(start, rows).collect()):
            yield {column.name: column.to_numpy() for column in frame}
            start += rows
    else:
        from pyarrow import parquet

        with parquet.ParquetFile(path) as file:
            yield file.schema_arrow.names
            for batch in file.iter_batches(batch_size=rows):
                frame = batch.to_pandas()
                yield {name: frame[name].to_numpy() for name in frame}


def pieces(path, labels=None, rows=65536, dtype="float64"):
    """Yield (X, y), `rows` rows each; y is the column `labels` (a name or a number), or None."""
    try:
        with open(path, "rb") as file:
            if file.read(4) != b"PAR1":
                raise DataError(path, "it does not begin with PAR1, as Parquet does.")
        frames = _frames(path, rows)
        names = next(frames)
        label = _column(path, labels, names)
        for columns in frames:
            features = [_numbers(path, name, columns[name], dtype) for name in names if name != label]
            y = None if label is None else _labels(path, label, columns[label])
            yield np.stack(features, axis=1) if features else np.empty((len(y), 0)), y
    except (DataError, ImportError, FileNotFoundError):
        raise
    except BaseException as error:  # the libraries raise errors of their own, polars also such as are no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit | MemoryError):
            raise
        raise DataError(path, f"it cannot be read as Parquet ({brief(error)}).") from None


def _column(path, labels, names):
    if labels is None or labels in names:
        return labels
    if isinstance(labels, int) and -len(names) <= labels < len(names):
        return names[labels]
    raise DataError(path, f"there is no column {labels!r} for the labels; its columns are {brief(', '.join(names))}.")


def _numbers(path, name, column, dtype):
    try:
        column = np.asarray(column).astype(dtype)
    except (TypeError, ValueError):
        raise DataError(path, f"the column {name!r} does not hold numbers.") from None
    if not np.isfinite(column).all():
        row = int(np.flatnonzero(~np.isfinite(column))[0])
        raise DataError(path, f"the column {name!r} is not finite, or missing, in row {row + 1} of a piece.")
    return column


def _labels(path, name, column):
    column = np.asarray(column)
    if column.dtype == object:
        if not all(isinstance(value, str) for value in column):
            raise DataError(path, f"the column {name!r} of the labels has missing or mixed values.")
        return column.astype(np.str_)
    return column if column.dtype.kind in "bU" else _numbers(path, name, column, column.dtype)


def read_parquet(path, *, labels=None, dtype="float64"):
    """Read a Parquet file: X from its columns of numbers, and y from the column `labels`."""
    parts = list(pieces(path, labels, dtype=dtype))
    if not parts:
        raise DataError(path, "it holds no points.")
    y = None if parts[0][1] is None else np.concatenate([y for _, y in parts])
    return np.concatenate([X for X, _ in parts]), y


def write_parquet(path, X, y=None, *, names=None, label="label"):
    """Write points as Parquet, a column a feature (x1, x2, ... unless named), the labels last."""
    X = np.asarray(X)
    names = [f"x{j + 1}" for j in range(X.shape[1])] if names is None else list(names)
    columns = {name: np.ascontiguousarray(X[:, j]) for j, name in enumerate(names)}
    if y is not None:
        columns[label] = np.asarray(y)
    with writing(path) as file:
        if _library() == "polars":
            import polars

            polars.DataFrame(columns).write_parquet(file)
        else:
            import pandas

            pandas.DataFrame(columns).to_parquet(file)
