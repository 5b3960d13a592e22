"""Sparse rows with many more features than entries: neither memory nor time may grow with the features.

Values of rows, such as |x_i|^2, are computed from the entries of the rows, not from dense ones.

The function of a row is a compiled graph over dense rows. Most such functions do not change if features are permuted or
if features that are 0 are dropped. For these the entries of a row are written side by side, which takes the memory of
the entries: a row of text has a hundred of them, and may have a million features. Rows of other functions are written
out a few at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from symsvm._lib.types import Array

    # One array for each row input of an expression: all have the same number of rows.
    Rows = tuple[Any, ...]

__all__ = ["drop_unused_features", "evaluate_sparse_rows"]

# Entries of dense rows that are in memory at a time, and the least number that a row is padded to.
_DENSE_ENTRIES, _LEAST = 2**22, 64
# Features from which on those that no row has are dropped, if all are so many times the entries. The loops treat all
# matrices with at least this many features alike, so that no sum depends on how many are left.
_WIDE, _UNUSED, _LEAST_WIDTH = 2**16, 2, 2**14


def evaluate_sparse_rows(
    compiled: Callable[..., list[Array]], A: Rows, B: Rows, values: Sequence[Array], sources: Sequence[int | None]
) -> list[Array]:
    """Return the results of a compiled function of (rows, columns, numbers), of which some rows are sparse.

    Parameters
    ----------
    compiled : callable
        The function of dense rows.
    A, B : tuple of array
        The rows and the columns; one object if both are the same.
    values : sequence of array
        The numbers.
    sources : sequence of int or None
        For each result whether it has one value for each row of A (0) or of B (1), or depends on neither.

    Returns
    -------
    list of array
        The results. The values of a row do not depend on the other rows, bit for bit.
    """
    results = list(compiled(*_no_rows(A), *_no_rows(B), *values))
    for source, side in enumerate((A,) if A is B else (A, B)):
        wanted = [i for i, own in enumerate(sources) if own == source]
        m = np.shape(side[0])[0]
        if not wanted or not m:
            continue

        other = _no_rows((B, A)[source])

        def evaluate(piece, other=other, source=source):
            both = (piece, piece) if A is B else (piece, other) if source == 0 else (other, piece)
            return compiled(*both[0], *both[1], *values)

        pieces = _packed if _depends_on_entries_alone(evaluate, side, wanted) else _dense
        for rows, piece in pieces(side):
            found = evaluate(piece)
            for i in wanted:
                if len(results[i]) != m:
                    results[i] = np.empty((m, *found[i].shape[1:]), found[i].dtype)
                results[i][rows] = found[i]
    return results


def _depends_on_entries_alone(evaluate: Callable, side: Rows, wanted: Sequence[int]) -> bool:
    """Whether the values of a row stay if its features are permuted and features that are 0 are added.

    It is tried on a random row: two functions of this kind that agree there agree everywhere, almost surely.
    """
    rng = np.random.default_rng(0)
    entries = rng.normal(size=7)
    other = np.zeros(19)
    other[rng.permutation(19)[:7]] = entries
    if sum(_is_sparse(array) for array in side) != 1 or any(
        np.ndim(array) > 1 for array in side if not _is_sparse(array)
    ):
        return False
    found = []
    for row in (entries, other):
        piece = tuple(row[None].astype(array.dtype) if _is_sparse(array) else array[:1] for array in side)
        try:
            found.append(evaluate(piece))
        except (ValueError, IndexError):  # the function needs as many features as it has numbers
            return False
    first, second = found
    return all(
        first[i].ndim == 1 and np.allclose(first[i], second[i], rtol=1e-9, atol=0, equal_nan=True) for i in wanted
    )


def _packed(side: Rows) -> Iterator[tuple[Array, Rows]]:
    """Rows with their entries side by side, padded with 0 to a width that depends on the row alone."""
    (X,) = (array for array in side if _is_sparse(array))
    counts = np.diff(X.indptr)
    widths = np.maximum(_LEAST, 2 ** np.ceil(np.log2(np.maximum(counts, 1))).astype("int64"))
    for width in np.unique(widths):
        same = np.flatnonzero(widths == width)
        step = max(1, _DENSE_ENTRIES // int(width))
        for low in range(0, len(same), step):
            rows = same[low : low + step]
            dense, some = np.zeros((len(rows), width), X.dtype), X[rows]
            places = np.arange(some.nnz) - np.repeat(some.indptr[:-1], np.diff(some.indptr))
            dense[np.repeat(np.arange(len(rows)), np.diff(some.indptr)), places] = some.data
            yield rows, tuple(dense if array is X else array[rows] for array in side)


def _dense(side: Rows) -> Iterator[tuple[Array, Rows]]:
    """Dense rows, as many at a time as there is memory for."""
    m, width = np.shape(side[0])[0], sum(array.shape[1] for array in side if _is_sparse(array))
    step = max(1, _DENSE_ENTRIES // max(1, width))
    for low in range(0, m, step):
        rows = np.arange(low, min(m, low + step))
        yield rows, tuple(array[rows].toarray() if _is_sparse(array) else array[rows] for array in side)


def _no_rows(side: Rows) -> Rows:
    return tuple(array[:0].toarray() if _is_sparse(array) else array[:0] for array in side)


def _is_sparse(array: Any) -> bool:
    return hasattr(array, "tocsr")


def drop_unused_features(
    h: Callable[..., Array], A: Any, B: Any, weights: list[Array]
) -> tuple[tuple[Any, Any], list[Array]]:
    """Number features anew, without those that are 0, in a sum over features, sum_k h(a_ik, b_jk, w_k), h(0, 0, w) = 0.

    The loops write columns of B out as dense panels, with all features. Those that B has come first. Where A has
    others, they follow, for each row from the same number on: B is 0 there. The result of a row depends on no other.

    Parameters
    ----------
    h : callable
        The function.
    A, B : array or CSR
        The rows and the columns.
    weights : list of array
        The vectors w, with one entry for each feature.

    Returns
    -------
    tuple of ((A, B), weights)
        The same with fewer features.
    """
    if not (_is_sparse(A) and _is_sparse(B)) or B.shape[1] < _WIDE or B.shape[1] < _UNUSED * (A.nnz + B.nnz):
        return (A, B), weights
    zero = np.zeros(B.shape[1], B.dtype)
    if (A is not B and weights) or np.any(h(zero, zero, *weights) != 0):
        return (A, B), weights
    used = np.zeros(B.shape[1], dtype=bool)
    used[B.indices] = True
    places = (np.cumsum(used) - 1).astype(B.indices.dtype)
    width = max(_LEAST_WIDTH, int(used.sum()))
    if A is B:
        narrow = _renumbered(B, places[B.indices], width)
        return (narrow, narrow), [np.concatenate([w[used], np.zeros(width - used.sum())]) for w in weights]
    is_other = ~used[A.indices]
    before = np.concatenate([[0], np.cumsum(is_other)])
    others = before[:-1] - np.repeat(before[A.indptr[:-1]], np.diff(A.indptr))  # how many the row has before each entry
    numbers = np.where(is_other, used.sum() + others, places[A.indices]).astype(A.indices.dtype)
    width = max(width, int(numbers.max(initial=0)) + 1)
    return (_renumbered(A, numbers, width), _renumbered(B, places[B.indices], width)), weights


def _renumbered(X: Any, indices: Array, width: int) -> Any:
    return type(X)((X.data, indices, X.indptr), shape=(X.shape[0], width))
