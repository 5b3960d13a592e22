"""Blocks of points: what they are, their sums, and how they become one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from symsvm._lib.types import Array

__all__ = ["BlockSummary", "as_points", "row_squares", "row_sums", "stack", "summary"]


class BlockSummary(NamedTuple):
    """What a block of points is.

    Attributes
    ----------
    shape : tuple of int
        Its rows and columns.
    dtype : str
        The type of its numbers, "float32" or "float64".
    is_sparse : bool
        Whether it is CSR.
    entries : int
        The numbers that are not 0.
    not_finite : int
        The first row with a number that is not finite, -1 if there is none.
    least, most : float
        The extremes.
    is_open : bool
        Whether further columns, of zeros, may follow: a LIBSVM file does not say how many there are.
    has_labels : bool
        Whether labels came with it.
    """

    shape: tuple[int, ...]
    dtype: str
    is_sparse: bool
    entries: int
    not_finite: int
    least: float
    most: float
    is_open: bool = False
    has_labels: bool = False


def row_sums(X: Any) -> Array:
    """Return the sum of each row, in float64; the bits of a row do not depend on the others.

    >>> row_sums(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [3.0, 7.0]
    """
    if hasattr(X, "row_sums"):  # they live elsewhere
        return X.row_sums()
    return np.asarray(X.sum(axis=1, dtype="float64")).ravel()


def row_squares(X: Any, mean: float) -> Array:
    """Return the sum of (x - mean)^2 over the numbers of each row.

    >>> row_squares(np.array([[1.0, 2.0], [3.0, 4.0]]), 1.0).tolist()
    [1.0, 13.0]
    """
    if hasattr(X, "row_squares"):
        return X.row_squares(mean)
    if not hasattr(X, "tocsr"):
        return ((X - mean) ** 2).sum(axis=1, dtype="float64")
    away, zeros = X.astype("float64"), X.shape[1] - np.diff(X.indptr)
    away.data = (away.data - mean) ** 2  # mean(x^2) - mean^2 would cancel
    return np.asarray(away.sum(axis=1)).ravel() + zeros * mean**2


def stack(blocks: Sequence[Any], dtype: str, is_sparse: bool, width: int) -> Any:
    """Return blocks one below another, in one type and form.

    >>> stack([np.ones((1, 2)), np.zeros((1, 2))], "float32", False, 2).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    if is_sparse:
        if not blocks:
            return sparse.csr_matrix((0, width), dtype=dtype)
        blocks = [sparse.csr_matrix(block) for block in blocks]
        blocks = [sparse.csr_matrix((b.data, b.indices, b.indptr), shape=(b.shape[0], width)) for b in blocks]
        X: Any = sparse.vstack(blocks, format="csr").astype(dtype)
        X.sort_indices()
        return X
    if len(blocks) == 1:
        block = blocks[0].toarray() if sparse.issparse(blocks[0]) else blocks[0]
        return np.require(block, dtype=dtype, requirements=["C"])
    X = np.empty((sum(block.shape[0] for block in blocks), width), dtype)
    low = 0
    for block in blocks:
        high = low + block.shape[0]
        X[low:high] = block.toarray() if sparse.issparse(block) else block
        low = high
    return X


def as_points(block: Any) -> Any:
    """A block as an array or a CSR matrix of float32 or float64."""
    if hasattr(block, "to_numpy"):
        block = block.to_numpy()
    if sparse.issparse(block):
        block = block.tocsr()
        if not block.has_canonical_format:
            block = block.copy()
            block.sum_duplicates()
    else:
        block = np.asarray(block)
        if block.dtype.kind not in "fiub":
            block = block.astype("float64")
    if block.ndim != 2:
        raise ValueError(f"X must have rows and columns, got a partition of the shape {block.shape}.")
    return block if block.dtype in (np.float32, np.float64) else block.astype("float64")


def summary(block: Any) -> BlockSummary:
    """What a block is."""
    values = block.data if sparse.issparse(block) else block
    bad, least, most = -1, 0.0, 0.0
    if values.size:
        least, most = float(values.min()), float(values.max())  # NaN if there is one
        if not (np.isfinite(least) and np.isfinite(most)):
            first = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))[0]
            bad = int(np.searchsorted(block.indptr, first, side="right") - 1 if sparse.issparse(block) else first)
    if sparse.issparse(block) and values.size < block.shape[0] * block.shape[1]:
        least, most = min(least, 0.0), max(most, 0.0)
    entries = int(np.count_nonzero(values))
    return BlockSummary(block.shape, str(block.dtype), sparse.issparse(block), entries, bad, least, most)
