"""Arrays without values for compiled loops, each at the beginning of a line of the cache.

Vectors in two lines take twice as long to read. `np.empty` inside a compiled function does not begin there, and takes
40 ms to compile for each type and shape; these are a few instructions.
"""

# pyright: reportCallIssue=false
# Numba calls the intrinsics without their first parameter.

from numba import types
from numba.extending import intrinsic
from numba.np import arrayobj

from symsvm._lib.heap import LINE

__all__ = ["indices", "matrix", "vector"]


def _allocate(context, builder, kind, shape):
    """An array of this type and shape."""
    array = arrayobj.make_array(kind)(context, builder)
    itemsize = context.get_constant(types.intp, kind.dtype.bitwidth // 8)
    strides = [itemsize]
    for n in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], n))
    memory = context.nrt.meminfo_alloc_aligned(builder, size=builder.mul(shape[0], strides[0]), align=LINE)
    data = builder.bitcast(context.nrt.meminfo_data(builder, memory), array.data.type)
    arrayobj.populate_array(array, data, shape, strides, itemsize, memory)
    return array._getvalue()


@intrinsic
def vector(typingctx, n, like):
    """Return a vector of n numbers of the type of those of an array."""
    kind = types.Array(like.dtype, 1, "C")
    return kind(types.intp, like), lambda context, builder, signature, args: _allocate(context, builder, kind, args[:1])


@intrinsic
def matrix(typingctx, m, n, like):
    """Return a matrix (m, n) of numbers of the type of those of an array."""
    kind = types.Array(like.dtype, 2, "C")

    def generate(context, builder, signature, args):
        return _allocate(context, builder, kind, list(args[:2]))

    return kind(types.intp, types.intp, like), generate


@intrinsic
def indices(typingctx, n):
    """Return a vector of n integers."""
    kind = types.Array(types.int64, 1, "C")
    return kind(types.intp), lambda context, builder, signature, args: _allocate(context, builder, kind, list(args))
