"""Parquet files, through pandas with pyarrow, or polars, whichever is installed."""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING

import numpy as np

from symsvm.io.data.byte_streams import open_write
from symsvm.io.file_errors import DataError, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, Path

__all__ = ["installed_library", "iter_parquet", "read_parquet", "write_parquet"]


def installed_library() -> str:
    """The library to use, "pandas" or "polars"; an ImportError where neither is installed.

    pyarrow comes first: it answers a damaged file with an exception, where the readers of polars panic, and end the
    process if such a file announces more than there is memory.
    """
    for name, needs in (("pandas", ("pandas", "pyarrow")), ("polars", ("polars",))):
        if all(importlib.util.find_spec(module) for module in needs):
            return name
    raise ImportError("Parquet needs pandas with pyarrow, or polars: pip install pandas pyarrow.")


def _column_names(path: Path) -> list[str]:
    if installed_library() == "polars":
        import polars

        return polars.scan_parquet(os.fspath(path), glob=False).collect_schema().names()
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        return file.schema_arrow.names


def _iter_columns(path: Path, rows: int) -> Iterator[dict[str, Array]]:
    """Yield columns by name, `rows` rows each."""
    if installed_library() == "polars":
        import polars

        lazy, start = polars.scan_parquet(os.fspath(path), glob=False), 0
        while len(frame := lazy.slice(start, rows).collect()):
            yield {column.name: column.to_numpy() for column in frame}
            start += rows
    else:
        from pyarrow import parquet

        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=rows):
                frame = batch.to_pandas()
                yield {name: frame[name].to_numpy() for name in frame}


def iter_parquet(
    path: Path, labels: int | str | None = None, rows: int = 65536, dtype: str = "float64"
) -> Iterator[tuple[Array, Array | None]]:
    """Yield (X, y), `rows` rows each; y is the column `labels` (a name or a number), or None."""
    try:
        with open(path, "rb") as file:
            if file.read(4) != b"PAR1":
                raise DataError(path, "it does not begin with PAR1, as Parquet does.")
        names = _column_names(path)
        if not names:
            raise DataError(path, "the file has no columns.")
        label = _label_name(path, labels, names)
        for columns in _iter_columns(path, rows):
            features = [_numbers(path, name, columns[name], dtype) for name in names if name != label]
            y = None if label is None else _labels(path, label, columns[label])
            yield np.stack(features, axis=1) if features else np.empty((len(columns[names[0]]), 0)), y
    except (DataError, ImportError, FileNotFoundError):
        raise
    except BaseException as error:  # the libraries have errors of their own; some of polars are not an Exception
        # pyarrow's own MemoryError names what a damaged file announces.
        is_announced = isinstance(error, MemoryError) and type(error).__module__.startswith("pyarrow")
        if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit | MemoryError) and not is_announced:
            raise
        raise DataError(path, f"it cannot be read as Parquet ({one_line(error)}).") from None


def _label_name(path: Path, labels: int | str | None, names: list[str]) -> str | None:
    if labels is None or (isinstance(labels, str) and labels in names):
        return labels
    if isinstance(labels, int) and -len(names) <= labels < len(names):
        return names[labels]
    raise DataError(
        path, f"there is no column {labels!r} for the labels; its columns are {one_line(', '.join(names))}."
    )


def _numbers(path: Path, name: str, column: Array, dtype: object) -> Array:
    try:
        column = np.asarray(column).astype(dtype)  # pyright: ignore[reportCallIssue, reportArgumentType]
    except (TypeError, ValueError):
        raise DataError(path, f"the column {name!r} does not hold numbers.") from None
    if not np.isfinite(column).all():
        row = int(np.flatnonzero(~np.isfinite(column))[0])
        raise DataError(path, f"the column {name!r} is not finite, or missing, in row {row + 1} of a block.")
    return column


def _labels(path: Path, name: str, column: Array) -> Array:
    column = np.asarray(column)
    if column.dtype == object:
        if not all(isinstance(value, str) for value in column):
            raise DataError(path, f"the column {name!r} of the labels has missing or mixed values.")
        return column.astype(np.str_)
    return column if column.dtype.kind in "bU" else _numbers(path, name, column, column.dtype)


def read_parquet(path: Path, *, labels: int | str | None = None, dtype: str = "float64") -> tuple[Array, Array | None]:
    """Read a Parquet file: X from its columns of numbers, and y from the column `labels`."""
    parts = list(iter_parquet(path, labels, dtype=dtype))
    if not parts:
        raise DataError(path, "the file has no points.")
    y = None if parts[0][1] is None else np.concatenate([y for _, y in parts if y is not None])
    return np.concatenate([X for X, _ in parts]), y


def write_parquet(
    path: Path,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    label: str = "label",
) -> None:
    """Write points as Parquet, one column for each feature (x1, x2, ... unless named), the labels last."""
    X = np.asarray(X)
    names = [f"x{j + 1}" for j in range(X.shape[1])] if names is None else list(names)
    columns = {name: np.ascontiguousarray(X[:, j]) for j, name in enumerate(names)}
    if y is not None:
        columns[label] = np.asarray(y)
    with open_write(path) as file:
        if installed_library() == "polars":
            import polars

            polars.DataFrame(columns).write_parquet(file)
        else:
            import pandas

            pandas.DataFrame(columns).to_parquet(file)
