"""Sums over features for four rows and the columns of a panel, in registers: the inner loops of tiles.

    s_rj = s_rj + sum_k h(a_rk, b_jk),    h(a, b) = a b,  (a - b)^2  or  ((a - b) w_k)^2

The sums of four rows and some vectors of columns stay in registers while all features of a range are added, one after
another: a number of b is read once for four rows, and one of a once for all these columns. A loop in Numba would read
and write s every few features, which halves its speed with hundreds of features. The order of the terms of a sum, and
so its bits, do not depend on the columns and rows beside it.
"""

# pyright: reportCallIssue=false
# Numba calls the intrinsics without their first parameter.

import functools

import llvmlite.binding
import llvmlite.ir as ir
import numba
from numba import types
from numba.extending import intrinsic

from symsvm._lib.heap import LINE

__all__ = ["ROWS", "add_products", "add_squares", "add_weighted_squares", "column_step"]

# Rows whose sums are in registers at a time.
ROWS = 4


@functools.cache
def _vectors():
    """Vectors of columns whose sums fit the registers: 32 registers of 64 bytes hold sixteen of them, and operands."""
    features = vars(numba.config)["CPU_FEATURES"]
    if features is None:
        features = ",".join(f"+{name}" for name, has in llvmlite.binding.get_host_cpu_features().items() if has)
    return 4 if "+avx512f" in features.split(",") else 1


def column_step(itemsize: int) -> int:
    """Return the columns whose sums are in registers at a time, for numbers of so many bytes."""
    return _vectors() * LINE // itemsize


def _product(builder, a, b, w, total):
    """total + a b."""
    return builder.fadd(total, builder.fmul(a, b, flags=["contract"]), flags=["contract"])


def _square(builder, a, b, w, total):
    """total + ((a - b) w)^2."""
    root = builder.fsub(a, b)
    root = root if w is None else builder.fmul(root, w)
    return _product(builder, root, root, None, total)


def _loop(builder, name, first, last, step, carried, body):
    """Write `for i in range(first, last, step)` with values that each turn changes; return (the last i, the values)."""
    entry = builder.block
    head, inside, done = (builder.append_basic_block(f"{name}.{part}") for part in ("head", "body", "done"))
    builder.branch(head)
    builder.position_at_end(head)
    i = builder.phi(first.type)
    i.add_incoming(first, entry)
    values = [builder.phi(value.type) for value in carried]
    for value, start in zip(values, carried, strict=True):
        value.add_incoming(start, entry)
    builder.cbranch(builder.icmp_signed("<", i, last), inside, done)
    builder.position_at_end(inside)
    changed, following = body(i, values), builder.add(i, ir.Constant(i.type, step))
    for value, new in zip(values, changed, strict=True):
        value.add_incoming(new, builder.block)
    i.add_incoming(following, builder.block)
    builder.branch(head)
    builder.position_at_end(done)
    return i, values


def _feature_sums(add, is_weighted):
    """Return the intrinsic for one function h."""

    def generate(context, builder, signature, args):
        kinds, i32, i64 = signature.args, ir.IntType(32), ir.IntType(64)
        A, panel, s = (context.make_array(kinds[i])(context, builder, args[i]) for i in (0, 5, 8))
        ids, (k0, k1), low, (j0, j1) = args[1:5], args[6:8], args[9], args[10:12]
        w = context.make_array(kinds[12])(context, builder, args[12]).data if is_weighted else None
        size = kinds[0].dtype.bitwidth // 8
        lanes, scalar = LINE // size, A.data.type.pointee
        vector = ir.VectorType(scalar, lanes)
        undefined, lane = ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(i32, lanes), [0] * lanes)
        zeros = ir.Constant(vector, [0.0] * lanes)

        def row(array, i):
            return builder.gep(array.data, [builder.mul(i, builder.extract_value(array.shape, 1))])

        def at(base, offset):
            return builder.bitcast(builder.gep(base, [offset]), vector.as_pointer())

        def spread(pointer):
            return builder.shuffle_vector(
                builder.insert_element(undefined, builder.load(pointer), i32(0)), undefined, lane
            )

        points = [row(A, i) for i in ids]
        sums = [row(s, builder.add(low, i64(r))) for r in range(ROWS)]
        is_first = builder.icmp_signed("==", k0, i64(0))

        def columns(first, last, vectors):
            def tile(j, _):
                places = [[at(total, builder.add(j, i64(v * lanes))) for v in range(vectors)] for total in sums]
                start = [
                    builder.select(is_first, zeros, builder.load(place, align=size)) for row in places for place in row
                ]

                def feature(k, totals):
                    line = row(panel, builder.sub(k, k0))
                    b = [builder.load(at(line, builder.add(j, i64(v * lanes))), align=LINE) for v in range(vectors)]
                    factor, new = None if w is None else spread(builder.gep(w, [k])), []
                    for r, point in enumerate(points):
                        a = spread(builder.gep(point, [k]))
                        new += [add(builder, a, b[v], factor, totals[r * vectors + v]) for v in range(vectors)]
                    return new

                _, totals = _loop(builder, "feature", k0, k1, 1, start, feature)
                for place, total in zip([place for row in places for place in row], totals, strict=True):
                    builder.store(total, place, align=size)
                return []

            return _loop(builder, "columns", first, last, vectors * lanes, [], tile)[0]

        step = _vectors() * lanes
        if step > lanes:
            whole = builder.sub(j1, builder.srem(builder.sub(j1, j0), i64(step)))
            j0 = columns(j0, whole, _vectors())
        columns(j0, j1, 1)
        return context.get_dummy_value()

    def typed(typingctx, A, i0, i1, i2, i3, panel, k0, k1, s, low, j0, j1, *w):
        return types.void(A, *[types.int64] * 4, panel, types.int64, types.int64, s, *[types.int64] * 3, *w), generate

    if is_weighted:

        @intrinsic
        def add_weighted(typingctx, A, i0, i1, i2, i3, panel, k0, k1, s, low, j0, j1, w):
            return typed(typingctx, A, i0, i1, i2, i3, panel, k0, k1, s, low, j0, j1, w)

        return add_weighted

    @intrinsic
    def add_plain(typingctx, A, i0, i1, i2, i3, panel, k0, k1, s, low, j0, j1):
        return typed(typingctx, A, i0, i1, i2, i3, panel, k0, k1, s, low, j0, j1)

    return add_plain


# add_products(A, i0, i1, i2, i3, panel, k0, k1, s, low, j0, j1): s[low + r, j] += sum_k a_{i_r, k} panel[k - k0, j] for
# the features k from k0 to k1 and the columns from j0 to j1, in whole vectors; where k0 is 0, s is written, not read.
add_products = _feature_sums(_product, is_weighted=False)
add_squares = _feature_sums(_square, is_weighted=False)
add_weighted_squares = _feature_sums(_square, is_weighted=True)
