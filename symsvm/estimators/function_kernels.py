"""Kernels that are functions K(X, Z): their values, and points that are not numbers, such as strings and graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

# In spite of its underscore, `_safe_indexing` is in scikit-learn's API documentation.
from sklearn.utils import _safe_indexing, check_array, check_consistent_length, column_or_1d

from symsvm.kernels import Kernel

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from symsvm._lib.types import Array

__all__ = ["ObjectPoints", "check_objects", "function_values", "holds_objects"]


class ObjectPoints:
    """Points that a function kernel takes as they are given: strings, graphs or rows of a data frame.

    Parameters
    ----------
    values : sequence
        A list, an array of objects or a data frame.

    Attributes
    ----------
    shape : tuple
        The number of points, (m,).
    dtype : dtype
        The type of predictions, float64.
    """

    dtype = np.dtype("float64")

    def __init__(self, values: Any) -> None:
        self.values, self.shape = values, (len(values),)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Self:
        return type(self)(_safe_indexing(self.values, rows))

    def copy(self) -> Self:
        """Return the same points in a new sequence."""
        return type(self)(self.values.copy() if hasattr(self.values, "copy") else list(self.values))


def holds_objects(kernel: Any, X: Any) -> bool:
    """Whether a kernel is a function and some entries of X are no numbers.

    >>> holds_objects(lambda A, B: 0, ["a", "b"]), holds_objects(lambda A, B: 0, [[1.0], [2.0]])
    (True, False)
    """
    if not callable(kernel) or isinstance(kernel, Kernel) or hasattr(X, "tocsr"):
        return False
    try:
        array = np.asarray(X)
        if array.dtype.kind == "O":
            array = array.astype("float64")
    except (TypeError, ValueError):
        return True
    return array.dtype.kind not in "biuf"


def check_objects(X: Any, *y: Any, y_numeric: bool = False) -> Any:
    """Return the points, or the points and their labels or targets, as many as there are points."""
    points = ObjectPoints(X)
    if not y:
        return points
    check_consistent_length(X, y[0])
    options: Any = {"ensure_2d": False, "dtype": None, "input_name": "y"}
    labels = column_or_1d(check_array(y[0], **options), warn=True)
    return points, labels.astype("float64") if y_numeric and labels.dtype.kind not in "iuf" else labels


def function_values(kernel: Callable[..., Any], X: Any, Z: Any) -> Array:
    """Return the values of a function kernel between two sets of points, (n, m), in float64."""
    K: Any = kernel(*(points.values if isinstance(points, ObjectPoints) else points for points in (X, Z)))
    K = np.asarray(K.toarray() if hasattr(K, "tocsr") else K, dtype="float64")
    if K.shape != (X.shape[0], Z.shape[0]):
        raise ValueError(
            f"kernel(X, Z) must be a matrix between {X.shape[0]} and {Z.shape[0]} points, got the shape {K.shape}."
        )
    return K
