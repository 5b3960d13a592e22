"""fetch: ask for a row before it is needed.

Points in random order are read from all over the memory, and a pass waits for them more than it computes. The order is
known, so that the processor can be told which row comes soon; it changes nothing but the time.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

__all__ = ["fetch", "fetch_start"]


@intrinsic
def _fetch(typingctx, array, index):
    """Begin to load the number `index` of the contiguous array, and what is beside it."""

    def code(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(data, [args[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        builder.call(function, [address, number(0), number(3), number(1)])  # to read, to keep, data
        return context.get_dummy_value()

    return types.void(array, types.int64), code


def fetch(parts, i):
    """Begin to load the row i of a matrix as `symsvm.linear.rows` has it; in compiled loops only."""
    raise NotImplementedError


def fetch_start(parts, i):
    """Begin to load where the row i begins, which `fetch` needs; in compiled loops only."""
    raise NotImplementedError


@overload(fetch)
def _row(parts, i):
    if isinstance(parts, types.Array):  # the rest of a dense row comes by itself
        return lambda parts, i: _fetch(parts, i * parts.shape[1])

    def sparse(parts, i):
        data, indices, indptr = parts
        begin = indptr[i]
        _fetch(data, begin)
        _fetch(data, begin + 8)
        _fetch(indices, begin)

    return sparse


@overload(fetch_start)
def _start(parts, i):
    if isinstance(parts, types.Array):
        return lambda parts, i: None
    return lambda parts, i: _fetch(parts[2], i)
