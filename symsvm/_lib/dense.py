"""Dense arrays of values that may be sparse."""

from __future__ import annotations

from typing import Any

__all__ = ["as_dense"]


def as_dense(values: Any) -> Any:
    """Return a sparse array or matrix as a NumPy array; an array as it is.

    >>> import scipy.sparse
    >>> as_dense(scipy.sparse.csr_array([[0.0, 1.0]])).tolist()
    [[0.0, 1.0]]
    """
    return values.toarray() if hasattr(values, "tocsr") else values
