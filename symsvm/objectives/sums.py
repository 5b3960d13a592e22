"""Sums over the rows of arrays, one term per row, as the paper writes them.

    sum_over(lambda lam_j, y_j, x_j: lam_j * y_j * kernel.pair(x_i, x_j), lam, y, X)

is sum_j lam_j y_j K(x_i, x_j) for one x_i. The term of an outer sum may contain it. Each sum is a `reduce` of PyTensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt
from pytensor.scalar import upcast
from pytensor.scan import map as scan_map
from pytensor.scan import reduce

from symsvm._lib.validation import as_float

if TYPE_CHECKING:
    from collections.abc import Callable

    from symsvm._lib.types import Graph

__all__ = ["map_rows", "sum_over"]

_FLOATS = ("float32", "float64")


def sum_over(term: Callable[..., Any], *arrays: Any) -> Graph:
    """Return the graph of sum_i term(a_i, b_i, ...) as a reduce, where a_i, b_i, ... are the rows of the arrays.

    Parameters
    ----------
    term : callable
        A function of one row of each array that returns a scalar graph or a number.
    *arrays : TensorVariable or array_like
        Vectors or matrices with the same number of rows. Integers stay integers: a term may use them as indices.

    Returns
    -------
    TensorVariable
        The sum, a scalar.

    Examples
    --------
    >>> import numpy as np
    >>> lam, X = pt.constant([1.0, 2.0]), pt.constant([[1.0, 0.0], [3.0, 1.0]])
    >>> float(sum_over(lambda lam_i, x_i: lam_i * x_i.sum(), lam, X).eval(mode="FAST_COMPILE"))
    9.0
    """
    sequences = [_sequence(array) for array in arrays]
    dtype = upcast(*(array.dtype for array in sequences if array.dtype in _FLOATS), "float32")
    dtype = dtype if any(array.dtype in _FLOATS for array in sequences) else "float64"
    # The cast keeps the accumulator's type: a number in the term (0.3 is a float64) would change it.
    total: Any = reduce(
        lambda *rows: rows[-1] + pt.as_tensor(term(*rows[:-1])).astype(dtype),
        sequences=sequences,
        outputs_info=[pt.zeros((), dtype=dtype)],
        return_updates=False,
    )
    return total


def _sequence(array: Any) -> Any:
    """An array to sum over, floating or of integers."""
    tensor = pt.as_tensor(array)
    return tensor if tensor.dtype.startswith(("int", "uint")) else as_float(tensor)


def map_rows(term: Callable[..., Any], *arrays: Any) -> Graph:
    """Return the graph of the vector of term(a_i, b_i, ...) over the rows of the arrays, as a map."""
    mapped: Any = scan_map(term, sequences=[as_float(array) for array in arrays], return_updates=False)
    return mapped
