"""Table: points and their labels, and what there is to know about them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from symsvm.cli.errors import Refused

__all__ = ["Table", "described", "filled", "settled", "whole"]

# Where more than this share of the entries is not zero, an array is smaller and faster than CSR.
_DENSE = 0.2
_MEMORY = 1 << 30


@dataclass(frozen=True)
class Table:
    """Points (m, d), dense or CSR, or a list of texts; their labels or None; and the name that they go by."""

    name: str
    X: Any
    y: np.ndarray | None

    def first(self, n):
        """The first n rows, all of them for None."""
        return Table(self.name, self.X[:n], None if self.y is None else self.y[:n])


def whole(y):
    """Labels that are whole numbers as integers: LIBSVM's text has only numbers, and 1.0 is meant as 1.

    >>> whole(np.array([1.0, -1.0])).tolist(), whole(np.array([0.5])).tolist()
    ([1, -1], [0.5])
    """
    if y.dtype.kind == "f" and np.isfinite(y).all() and np.abs(y).max(initial=0.0) < 2**53 and (y == np.rint(y)).all():
        return y.astype("int64")
    return y


def settled(X):
    """CSR that is hardly sparse as an array."""
    if hasattr(X, "tocsr") and X.nnz > _DENSE * X.shape[0] * X.shape[1] and _bytes(X) <= _MEMORY:
        return X.toarray()
    return X


def _bytes(X):
    return 8 * X.shape[0] * X.shape[1]


def filled(X, why):
    """An array, for what would fill the zeros of CSR, if it fits."""
    if not hasattr(X, "tocsr"):
        return X
    if _bytes(X) > _MEMORY:
        raise Refused(f"{why} fills the zeros of sparse points, {_bytes(X) / 2**30:.1f} GiB here: use --scale maxabs.")
    return X.toarray()


def described(table):
    """What there is to know about a table, as a dict."""
    X, y = table.X, table.y
    if isinstance(X, list):
        return {"name": table.name, "rows": len(X), "storage": "texts", **_labels(y)}
    m, d = X.shape
    entries = X.nnz if hasattr(X, "tocsr") else int(np.count_nonzero(X))
    facts = {"name": table.name, "rows": m, "features": d, "filled": entries / max(m * d, 1)}
    facts["storage"] = "sparse" if hasattr(X, "tocsr") else str(X.dtype)
    return facts | _labels(y)


def _labels(y):
    """The classes and their sizes, or the range of targets."""
    if y is None:
        return {}
    if y.dtype.kind == "f":
        return {"targets": {"least": y.min(), "mean": y.mean(), "greatest": y.max(), "distinct": len(np.unique(y))}}
    names, counts = np.unique(y, return_counts=True)
    return {"classes": dict(zip(names.tolist(), counts.tolist(), strict=True))}
