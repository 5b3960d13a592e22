"""The product of a sparse row with the columns of a strip, in registers.

A strip has `STRIP` columns of a panel, (d, STRIP), so that a range of its rows fits the first cache. The sums of all
its columns stay in registers while the entries of a row are read:

    s_j = s_j + sum_e x_e b_{k_e, j}

A loop in Numba would read and write s at each entry. Written as instructions for vectors, which LLVM divides where a
processor has shorter ones.
"""

# pyright: reportCallIssue=false
# Numba calls the intrinsic without its first parameter.

import llvmlite.ir as ir
from numba import types
from numba.extending import intrinsic

__all__ = ["STRIP", "add_entries"]

STRIP = 64
# Bytes of a vector, and vectors whose sums are in registers at a time.
_BYTES, _VECTORS = 64, 4


@intrinsic
def add_entries(typingctx, x, k, e, end, limit, strip, s):
    """s_j += sum_e x_e b_{k_e, j} for the STRIP columns j of a strip, over the entries from e on.

    It stops before `end`, and before the first entry with k_e >= limit; returns where. A strip is aligned to 64 bytes.
    """
    index = k.dtype

    def generate(context, builder, signature, args):
        x, k, strip, s = (context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 1, 5, 6))
        start, end, limit = args[2:5]
        size = signature.args[0].dtype.bitwidth // 8
        lanes = _BYTES // size
        scalar, i32, i64 = x.type.pointee, ir.IntType(32), ir.IntType(64)
        vector = ir.VectorType(scalar, lanes)
        undefined, zeros = ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(i32, lanes), [0] * lanes)

        def at(base, offset):
            return builder.bitcast(builder.gep(base, [offset]), vector.as_pointer())

        for first in range(0, STRIP, _VECTORS * lanes):
            offsets = [i64(first + v * lanes) for v in range(_VECTORS)]
            before = [builder.load(at(s, offset), align=size) for offset in offsets]
            entry = builder.block
            head, look, body, done = (builder.append_basic_block(name) for name in ("head", "look", "body", "done"))
            builder.branch(head)
            builder.position_at_end(head)
            e = builder.phi(i64)
            e.add_incoming(start, entry)
            sums = [builder.phi(vector) for _ in offsets]
            for total, value in zip(sums, before, strict=True):
                total.add_incoming(value, entry)
            builder.cbranch(builder.icmp_signed("<", e, end), look, done)
            builder.position_at_end(look)
            column = builder.load(builder.gep(k, [e]))
            column = column if index.bitwidth == 64 else builder.sext(column, i64)
            builder.cbranch(builder.icmp_signed("<", column, limit), body, done)
            builder.position_at_end(body)
            one = builder.insert_element(undefined, builder.load(builder.gep(x, [e])), i32(0))
            factor, row = builder.shuffle_vector(one, undefined, zeros), builder.mul(column, i64(STRIP))
            for total, offset in zip(sums, offsets, strict=True):
                b = builder.load(at(strip, builder.add(row, offset)), align=_BYTES)
                product = builder.fmul(factor, b, flags=["contract"])
                total.add_incoming(builder.fadd(total, product, flags=["contract"]), body)
            e.add_incoming(builder.add(e, i64(1)), body)
            builder.branch(head)
            builder.position_at_end(done)
            for total, offset in zip(sums, offsets, strict=True):
                builder.store(total, at(s, offset), align=size)
        return e

    return types.int64(x, k, types.int64, types.int64, types.int64, strip, s), generate
