"""Points in the form that loops read fastest: CSR where most features are 0, and float32 around a centre.

Both are made chunk by chunk, side by side on the cores there are: temporary arrays as large as the points would take
longer than what is computed from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm._lib.threads import in_parts

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = ["centred", "is_thin", "sparse_if_thin"]

# Features from which on sparse loops may pay, and the part of them that may be other than 0.
_SPARSE_FEATURES, _SPARSE_DENSITY = 64, 0.25
# Numbers of a chunk.
_CHUNK = 2**15


def is_thin(shape: tuple[int, ...], entries: int) -> bool:
    """Return whether points of a shape, with so many numbers other than 0, are faster as CSR.

    Parameters
    ----------
    shape : tuple of int
        The rows and features.
    entries : int
        The numbers other than 0.

    Returns
    -------
    bool
        Whether they are.

    Examples
    --------
    >>> is_thin((10, 100), 200), is_thin((10, 100), 300), is_thin((10, 10), 1)
    (True, False, False)
    """
    m, d = shape
    return d >= _SPARSE_FEATURES and entries <= _SPARSE_DENSITY * m * d


def sparse_if_thin(X: Any) -> Any:
    """Return points as CSR where most features of dense ones are 0: sums then run over the others.

    Parameters
    ----------
    X : array or CSR matrix of shape (m, d)
        The points.

    Returns
    -------
    array or CSR matrix
        The same points; X itself if it stays as it is.

    Examples
    --------
    >>> sparse_if_thin(np.eye(64)).nnz
    64
    """
    if hasattr(X, "tocsr") or X.shape[1] < _SPARSE_FEATURES or not is_thin(X.shape, int(np.count_nonzero(X))):
        return X
    from scipy.sparse import csr_matrix

    m, d = X.shape
    step = max(1, _CHUNK // d)
    chunks: list[Any] = [None] * -(-m // step)

    def part(first: int, last: int) -> None:
        for t in range(first, last):
            rows = X[t * step : (t + 1) * step]
            at = np.flatnonzero(rows)
            chunks[t] = rows.ravel()[at], (at % d).astype("int32"), np.searchsorted(at, np.arange(1, len(rows) + 1) * d)

    in_parts(part, len(chunks))
    entries, columns = (np.concatenate([chunk[k] for chunk in chunks]) for k in (0, 1))
    before = np.cumsum([0, *(len(chunk[0]) for chunk in chunks[:-1])])
    ends = np.concatenate([[0], *(at + chunk[2] for at, chunk in zip(before, chunks, strict=True))])
    return csr_matrix((entries, columns, ends.astype("int32" if len(entries) < 2**31 else "int64")), shape=X.shape)


def centred(A: Array, c: Array, w: Array | None, dtype: str) -> Array:
    """Return (a_ik - c_k) w_k in another type, computed in that of A.

    Parameters
    ----------
    A : array of shape (m, d)
        The points.
    c, w : array of shape (d,)
        The centre, and the weights of features; without weights they are 1.
    dtype : str
        The type of the result.

    Returns
    -------
    array of shape (m, d)
        The points.

    Examples
    --------
    >>> centred(np.array([[1.0, 2.0]]), np.array([1.0, 1.0]), None, "float32").tolist()
    [[0.0, 1.0]]
    """
    out, step = np.empty(A.shape, dtype), max(1, _CHUNK // max(1, A.shape[1]))

    def part(first: int, last: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # settings of NumPy are those of a thread
            for low in range(first, last, step):
                some = A[low : min(low + step, last)] - c
                out[low : min(low + step, last)] = some if w is None else some * w

    if out.size < 8 * _CHUNK:
        part(0, len(A))
    else:
        in_parts(part, len(A))
    return out
