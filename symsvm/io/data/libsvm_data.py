"""LIBSVM data files: one point a line, `label index:value index:value ...`, without the zeros."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

import numpy as np
from scipy import sparse

from symsvm._lib.code_cache import njit
from symsvm.io.data.array_files import cast_floats
from symsvm.io.data.byte_streams import open_write
from symsvm.io.data.numeric_text import (
    is_nan_or_inf,
    iter_line_blocks,
    line_number,
    parse,
    parse_inexact,
    token_at,
)
from symsvm.io.file_errors import DataError, quote_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, Path, Points

__all__ = ["iter_libsvm", "read_libsvm", "write_libsvm"]

_MAX_INDEX = 2**31 - 1  # that SciPy and LIBSVM can hold

# The errors that `_scan` finds, by number.
_ERRORS = (
    "",
    "the label {} is not a number.",
    "{} is not an index:value pair.",
    "the index in {} is not a whole number from {first}; indices count from 1, or from 0 with zero_based=True.",
    "the index in {} is larger than {largest}.",
    "the index in {} does not increase; the indices of a line must.",
    "the value in {} is not a number.",
    "the value in {} is not finite.",
    "the query number in {} is not a whole number.",
    "the label {} is not finite.",
)


@njit(cache=True)
def _integer(text, at):
    """The digits at text[at:] as an integer, limited to avoid overflow: (number, end)."""
    n = np.int64(0)
    while 48 <= text[at] <= 57:
        n = min(n * 10 + (text[at] - 48), np.int64(2**58))
        at += 1
    return n, at


@njit(cache=True)
def _skip_blanks(text, at):
    """The position of the first byte that is not a blank."""
    while text[at] == 32 or text[at] == 9 or text[at] == 13:
        at += 1
    return at


@njit(cache=True)
def _ends_field(byte):
    """Whether a byte is a blank, the end of a line or the start of a comment."""
    return byte == 32 or byte == 9 or byte == 13 or byte == 10 or byte == 35


@njit(cache=True)
def _scan(text, first, y, query, indptr, indices, values, inexact):
    """Parse whole lines into the arrays: (points, inexact numbers, index in _ERRORS, position).

    `inexact` gets (slot, start, end) of the numbers that `parse_inexact` parses again: slots of labels are ~i, of
    values k.
    """
    at, row, k, n_inexact = 0, 0, 0, 0
    while at < len(text):
        at = _skip_blanks(text, at)
        if text[at] != 10 and text[at] != 35:
            value, end, exact = parse(text, at)
            if end == at or not _ends_field(text[end]):
                return row, n_inexact, 1, at
            y[row] = value
            if not exact:
                inexact[n_inexact, 0], inexact[n_inexact, 1], inexact[n_inexact, 2] = ~row, at, end
                n_inexact += 1
            at = _skip_blanks(text, end)
            if text[at] == 113 and text[at + 1] == 105 and text[at + 2] == 100 and text[at + 3] == 58:  # qid:
                n, end = _integer(text, at + 4)
                if end == at + 4 or not _ends_field(text[end]) or n > _MAX_INDEX:
                    return row, n_inexact, 8, at
                query[row] = n
                at = _skip_blanks(text, end)
            last = first - 1
            while text[at] != 10 and text[at] != 35:
                n, colon = _integer(text, at)
                if colon == at or text[colon] != 58:
                    signed = (text[at] == 45 or text[at] == 43) and 48 <= text[at + 1] <= 57
                    return row, n_inexact, 3 if signed else 2, at
                if n < first:
                    return row, n_inexact, 3, at
                if n > _MAX_INDEX:
                    return row, n_inexact, 4, at
                if n <= last:
                    return row, n_inexact, 5, at
                value, end, exact = parse(text, colon + 1)
                if end == colon + 1 or not _ends_field(text[end]):
                    return row, n_inexact, 6, at
                indices[k], values[k], last = n - first, value, n
                if not exact:
                    inexact[n_inexact, 0], inexact[n_inexact, 1], inexact[n_inexact, 2] = k, colon + 1, end
                    n_inexact += 1
                k += 1
                at = _skip_blanks(text, end)
            row += 1
            indptr[row] = k
        while text[at] != 10:  # a comment
            at += 1
        at += 1
    return row, n_inexact, 0, 0


def _iter_arrays(path: Path, zero_based: bool = False) -> Iterator[tuple[Array, Array, Array, Array, Array]]:
    """Yield (y, query, indptr, indices, values) for each block of a file; query is -1 where a line has none."""
    first = 0 if zero_based else 1
    for block, line in iter_line_blocks(path):
        text = np.frombuffer(block, dtype=np.uint8)
        lines, pairs = block.count(b"\n"), block.count(b":")
        y, query = np.empty(lines), np.full(lines, -1, dtype=np.int32)
        indptr, indices, values = np.zeros(lines + 1, dtype=np.int64), np.empty(pairs, dtype=np.int32), np.empty(pairs)
        inexact = np.empty((lines + pairs, 3), dtype=np.int64)
        rows, n_inexact, error, at = _scan(text, first, y, query, indptr, indices, values, inexact)
        if error:
            raise _scan_error(path, block, line, error, at, first)
        if infinite := parse_inexact(block, inexact[:n_inexact], values, y):
            raise _scan_error(path, block, line, 7 if infinite[0] >= 0 else 9, infinite[1], first)
        count = indptr[rows]
        yield y[:rows], query[:rows], indptr[: rows + 1], indices[:count], values[:count]


def _scan_error(path: Path, block: bytes, line: int, error: int, at: int, first: int) -> DataError:
    found = token_at(block, at)
    if error in (1, 6) and is_nan_or_inf(found.partition(b":")[2] or found):
        error = {1: 9, 6: 7}[error]
    what = _ERRORS[error].format(quote_bytes(found), first=first, largest=_MAX_INDEX)
    return DataError(path, what, line_number(block, at, line))


@overload
def read_libsvm(
    path: Path,
    *,
    dtype: str = ...,
    n_features: int | None = ...,
    zero_based: bool = ...,
    query_id: Literal[False] = ...,
) -> tuple[sparse.csr_matrix, Array]: ...


@overload
def read_libsvm(
    path: Path, *, dtype: str = ..., n_features: int | None = ..., zero_based: bool = ..., query_id: Literal[True]
) -> tuple[sparse.csr_matrix, Array, Array]: ...


def read_libsvm(
    path: Path,
    *,
    dtype: str = "float64",
    n_features: int | None = None,
    zero_based: bool = False,
    query_id: bool = False,
) -> tuple:
    """Read a LIBSVM data file.

    Indices increase within a line; entries that are left out are 0. Blank lines and text after a # are skipped.

    Parameters
    ----------
    path : str or path-like
        The name of the file, plain or gzip.
    dtype : {"float64", "float32"}
        The type of X.
    n_features : int, optional
        The number of columns of X, for a file whose last features are all 0.
    zero_based : bool
        Whether indices count from 0 instead of 1.
    query_id : bool
        Whether to return the numbers after ``qid:`` too.

    Returns
    -------
    X : csr_matrix of shape (m, d)
        The points.
    y : ndarray of shape (m,)
        The labels.
    query : ndarray of shape (m,)
        The query numbers, -1 where a line has none; only with `query_id`.
    """
    X, y, query = _concatenate(path, list(_iter_arrays(path, zero_based)), dtype, n_features)
    if not len(y):
        raise DataError(path, "the file has no points.")
    return (X, y, query) if query_id else (X, y)


def iter_libsvm(
    path: Path, *, dtype: str = "float64", n_features: int | None = None, zero_based: bool = False
) -> Iterator[tuple[sparse.csr_matrix, Array]]:
    """Yield (X, y) for each block; a first pass counts the features unless `n_features` is given."""
    if n_features is None:
        n_features = max((int(part[3].max(initial=-1)) + 1 for part in _iter_arrays(path, zero_based)), default=0)
    for part in _iter_arrays(path, zero_based):
        yield _concatenate(path, [part], dtype, n_features)[:2]


def _concatenate(path: Path, parts: list, dtype: str, n_features: int | None) -> tuple[sparse.csr_matrix, Array, Array]:
    """X, y and the query numbers of some blocks."""
    if not parts:
        return sparse.csr_matrix((0, n_features or 0), dtype=dtype), np.empty(0), np.empty(0, dtype=np.int32)
    y, query, _, indices, _ = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    values = cast_floats(path, np.concatenate([part[4] for part in parts]), dtype)
    widest = int(indices.max(initial=-1)) + 1
    if n_features is not None and widest > n_features:
        raise DataError(path, f"the file has {widest} features, more than n_features={n_features}.")
    kind = np.int32 if len(indices) <= _MAX_INDEX else np.int64
    indptr = np.zeros(len(y) + 1, dtype=kind)
    np.cumsum(np.concatenate([np.diff(part[2]) for part in parts]), out=indptr[1:])
    shape = (len(y), widest if n_features is None else n_features)
    return sparse.csr_matrix((values, indices.astype(kind, copy=False), indptr), shape=shape), y, query


def write_libsvm(
    path: Path,
    X: Points | ArrayLike,
    y: ArrayLike,
    *,
    query_id: ArrayLike | None = None,
    zero_based: bool = False,
) -> None:
    """Write a LIBSVM data file without the zeros, each number with the fewest digits that restore it."""
    X = sparse.csr_matrix(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    first = 0 if zero_based else 1
    labels = [_format_number(label) for label in np.asarray(y).tolist()]
    if query_id is not None:
        labels = [f"{label} qid:{query}" for label, query in zip(labels, np.asarray(query_id).tolist(), strict=True)]
    with open_write(path) as file:
        for i, label in enumerate(labels):
            row = slice(X.indptr[i], X.indptr[i + 1])
            pairs = zip((X.indices[row] + first).tolist(), X.data[row].tolist(), strict=True)
            line = " ".join([label, *(f"{j}:{_format_number(value)}" for j, value in pairs)])
            file.write(line.encode("ascii") + b"\n")


def _format_number(value: float) -> str:
    """A number as text; 3.0 as 3."""
    return repr(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
