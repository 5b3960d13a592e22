"""Squares of a matrix transposed in registers: as many rows and columns as a vector has numbers.

Read as n vectors, a square becomes its transpose by log2 n exchanges of the squares beside its diagonal:

    a b       a c
    c d  ->   b d       for squares of 1, 2, 4, ... numbers inside those of twice the size

Loops over single numbers take four times as long.
"""

# pyright: reportCallIssue=false
# Numba calls the intrinsics without their first parameter.

import llvmlite.ir as ir
from numba import types
from numba.extending import intrinsic

from symsvm._lib.heap import LINE

__all__ = ["transpose_rows", "transpose_square"]


def _transposed(builder, rows):
    """The vectors of the transposed square."""
    n, step = len(rows), 1
    rows, positions = list(rows), ir.VectorType(ir.IntType(32), n)
    while step < n:
        upper = ir.Constant(positions, [n + k - step if k & step else k for k in range(n)])
        lower = ir.Constant(positions, [n + k if k & step else k + step for k in range(n)])
        for t in range(n):
            if not t & step:
                a, b = rows[t], rows[t + step]
                rows[t], rows[t + step] = builder.shuffle_vector(a, b, upper), builder.shuffle_vector(a, b, lower)
        step *= 2
    return rows


class _Square:
    """The vectors of a C-contiguous matrix."""

    def __init__(self, context, builder, kind, value):
        array = context.make_array(kind)(context, builder, value)
        self.builder, self.data, self.width = builder, array.data, builder.extract_value(array.shape, 1)
        self.size = kind.dtype.bitwidth // 8
        self.n = LINE // self.size
        self.vector = ir.VectorType(self.data.type.pointee, self.n)

    def _at(self, row, column):
        offset = self.builder.add(self.builder.mul(row, self.width), column)
        return self.builder.bitcast(self.builder.gep(self.data, [offset]), self.vector.as_pointer())

    def load(self, row, column):
        return self.builder.load(self._at(row, column), align=self.size)

    def store(self, rows, row, column):
        for t, values in enumerate(rows):
            place = self.builder.add(row, ir.Constant(row.type, t))
            self.builder.store(values, self._at(place, column), align=self.size)


@intrinsic
def transpose_square(typingctx, K, i, j):
    """K_ji = K_ij for the square of a C-contiguous matrix that begins at (i, j)."""

    def generate(context, builder, signature, args):
        square, i, j = _Square(context, builder, signature.args[0], args[0]), args[1], args[2]
        rows = [square.load(builder.add(i, ir.Constant(i.type, t)), j) for t in range(square.n)]
        square.store(_transposed(builder, rows), j, i)
        return context.get_dummy_value()

    return types.none(K, types.int64, types.int64), generate


@intrinsic
def transpose_rows(typingctx, B, ids, k, panel, j):
    """panel_kj = b_ik for as many rows i = ids_0, ids_1, ... and features from k on, written from (k, j) on."""

    def generate(context, builder, signature, args):
        source = _Square(context, builder, signature.args[0], args[0])
        target = _Square(context, builder, signature.args[3], args[3])
        ids, k, j = context.make_array(signature.args[1])(context, builder, args[1]).data, args[2], args[4]
        chosen = [builder.load(builder.gep(ids, [ir.Constant(ir.IntType(64), t)])) for t in range(source.n)]
        rows = [source.load(row, k) for row in chosen]
        target.store(_transposed(builder, rows), k, j)
        return context.get_dummy_value()

    return types.none(B, ids, types.int64, panel, types.int64), generate
