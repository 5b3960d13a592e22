"""Sums as the paper writes them: over the rows of some arrays, one term a row, and nothing else.

    sum_over(lambda lam_j, y_j, x_j: lam_j * y_j * kernel.pair(x_i, x_j), lam, y, X)

is sum_j lam_j y_j K(x_i, x_j), for one x_i; the term of an outer sum may hold it. Each is a `reduce` of PyTensor.
"""

import pytensor.tensor as pt
from pytensor.scalar import upcast
from pytensor.scan import map as scan_map
from pytensor.scan import reduce

from symsvm._lib.validation import as_float

__all__ = ["each", "sum_over"]


def sum_over(term, *arrays):
    """The sum over i of term(a_i, b_i, ...), where a_i, b_i, ... are the rows of the arrays, as a reduce.

    >>> import numpy as np
    >>> lam, X = pt.constant([1.0, 2.0]), pt.constant([[1.0, 0.0], [3.0, 1.0]])
    >>> float(sum_over(lambda lam_i, x_i: lam_i * x_i.sum(), lam, X).eval(mode="FAST_COMPILE"))
    9.0
    """
    arrays = [as_float(array) for array in arrays]
    dtype = upcast(*(array.dtype for array in arrays))
    # A number in the term (0.3 is a float64) must not change the type of the sum on the way.
    return reduce(
        lambda *rows: rows[-1] + pt.as_tensor(term(*rows[:-1])).astype(dtype),
        sequences=arrays,
        outputs_info=[pt.zeros((), dtype=dtype)],
        return_updates=False,
    )


def each(term, *arrays):
    """The vector of term(a_i, b_i, ...) over the rows of the arrays, as a map."""
    return scan_map(term, sequences=[as_float(array) for array in arrays], return_updates=False)
