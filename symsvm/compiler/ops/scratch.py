"""Arrays without values for compiled loops, each at the beginning of a line of the cache.

Vectors in two lines take twice as long to read. `np.empty` inside a compiled function does not begin there, and takes
40 ms to compile for each type and shape; these are a few instructions.
"""

from typing import Any

from numba import types
from numba.extending import intrinsic

from symsvm._lib.compat import new_array
from symsvm._lib.heap import LINE

__all__ = ["indices", "matrix", "vector"]

# Numba calls intrinsics without their first parameter, which type checkers do not know.
_intrinsic: Any = intrinsic


def _typed(result, *arguments):
    """The signature and the code of an intrinsic whose first arguments are a shape."""

    def generate(context, builder, signature, args):
        return new_array(context, builder, result, list(args[: result.ndim]), LINE)

    return result(*arguments), generate


@_intrinsic
def vector(typingctx, n, like):
    """Return a vector of n numbers of the type of those of an array."""
    return _typed(types.Array(like.dtype, 1, "C"), types.intp, like)


@_intrinsic
def matrix(typingctx, m, n, like):
    """Return a matrix (m, n) of numbers of the type of those of an array."""
    return _typed(types.Array(like.dtype, 2, "C"), types.intp, types.intp, like)


@_intrinsic
def indices(typingctx, n):
    """Return a vector of n integers."""
    return _typed(types.Array(types.int64, 1, "C"), types.intp)
