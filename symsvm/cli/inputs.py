"""Inputs: points and labels from a file or a named set, as a machine takes them."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from symsvm.cli.errors import BadData, Refused

__all__ = ["Table", "described", "filled", "fitting", "read_table", "test_table", "whole"]

# Where more than this share of the entries is not zero, an array is smaller and faster than CSR.
_DENSE = 0.2
_MEMORY = 1 << 30


@dataclass(frozen=True)
class Table:
    """Points (m, d), dense or CSR, their labels or None, and the name that they go by."""

    name: str
    X: Any
    y: np.ndarray | None

    @property
    def shape(self):
        """(m, d)."""
        return self.X.shape


def read_table(
    file,
    *,
    labels=None,
    format=None,
    header=None,
    zero_based=False,
    limit=None,
    n_features=None,
    supervised=True,
    is_gram=False,
):
    """Read a file or a named data set.

    Parameters
    ----------
    n_features : what LIBSVM's text, which leaves zeros out, is widened to.
    supervised : whether there have to be labels.
    is_gram : whether the rows are a kernel's; LIBSVM's text has their numbers in front, as the feature 0.
    """
    from symsvm import data

    name = os.path.basename(file)
    if not os.path.exists(file):
        found = data.load(file)
        if data.SETS[file].kind == "posts":
            raise Refused(f"{file} holds texts: train on them with --text.")
        X, y = found.X, found.y
    else:
        form = format or data.formats.format_of(file)
        X, y = _read(
            file, form, labels, supervised, header=header, zero_based=zero_based or is_gram, n_features=n_features
        )
        X = X[:, 1:] if is_gram and form == "libsvm" else X
    if supervised and y is None:
        raise Refused(f"{file} holds no labels: name their file with --labels.")
    return Table(name, _settled(X[:limit]), None if y is None else whole(y[:limit]))


def _read(file, form, labels, supervised, *, n_features, **options):
    from symsvm import data

    labels = _column(labels)
    if labels is None and supervised and form in ("csv", "npy", "parquet"):
        labels = -1
    if form != "libsvm":
        return data.read(file, labels, format=form, header=options["header"])
    X, y = data.read(file, labels, format=form, zero_based=options["zero_based"])
    if n_features is not None and X.shape[1] < n_features:
        X.resize(X.shape[0], n_features)  # the file's last features are all 0
    return X, y


def _column(labels):
    """What --labels says: the number of a column, or a name, of a column or of a file."""
    if labels is None:
        return None
    try:
        return int(labels)
    except ValueError:
        return labels


def test_table(file, train, **options):
    """Read points to test with; for a named set, which has them, `file` may be None."""
    from symsvm import data

    if file is None:
        found = data.load(train)
        return (
            None
            if found.X_test is None
            else Table(f"{train}, its test part", _settled(found.X_test), whole(found.y_test))
        )
    return read_table(file, **options)


def whole(y):
    """Labels that are whole numbers as integers: LIBSVM's text has only numbers, and 1.0 is meant as 1.

    >>> whole(np.array([1.0, -1.0])).tolist(), whole(np.array([0.5])).tolist()
    ([1, -1], [0.5])
    """
    if y.dtype.kind == "f" and np.isfinite(y).all() and np.abs(y).max(initial=0.0) < 2**53 and (y == np.rint(y)).all():
        return y.astype("int64")
    return y


def _settled(X):
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


def fitting(model, table):
    """The points of a table as a fitted model takes them, which has to know their features."""
    from symsvm.data import Scaling

    d, found = model.n_features_in_, table.shape[1]
    if found > d or (found < d and not hasattr(table.X, "tocsr")):
        hint = "; name the column of the labels with --labels" if found == d + 1 else ""
        raise BadData(f"{table.name}: it has {found} features, and the model was trained on {d}{hint}.")
    first = model[0] if hasattr(model, "steps") else None
    keeps = first is None or (isinstance(first, Scaling) and first.to == "max-abs")
    return table.X if keeps else filled(table.X, "the model's scaling")


def described(table):
    """What there is to know about a table, as a dict."""
    X, y = table.X, table.y
    m, d = X.shape
    entries = X.nnz if hasattr(X, "tocsr") else int(np.count_nonzero(X))
    facts = {"name": table.name, "rows": m, "features": d, "filled": entries / max(m * d, 1)}
    facts["storage"] = "sparse" if hasattr(X, "tocsr") else str(X.dtype)
    if y is None:
        return facts
    if y.dtype.kind == "f":
        return facts | {
            "targets": {"least": y.min(), "mean": y.mean(), "greatest": y.max(), "distinct": len(np.unique(y))}
        }
    names, counts = np.unique(y, return_counts=True)
    return facts | {"classes": dict(zip(names.tolist(), counts.tolist(), strict=True))}
