"""Sequential minimal optimisation on a matrix in memory: two variables at a time, selected to second order.

For   minimise 1/2 z.Kz + p.z,   lower <= z <= upper,   sum of z over each group given,   the gradient is F = Kz + p. Of
a group, i is the variable with the least F that may rise, j the one that may fall with the largest gain,

    j = argmax (F_j - F_i)^2 / (K_ii + K_jj - 2 K_ij),

and z_i + d, z_j - d with d = (F_j - F_i) / (K_ii + K_jj - 2 K_ij), clipped to the bounds, is the best step along that
edge (Fan, Chen and Lin, Working set selection using second order information for training support vector machines,
2005).

A step costs two passes over rows of K, each vectorised: minima and maxima are kept for blocks of 128 variables, and an
index is looked up in the best block only. Variables that may not move have an infinite offset, so no branch is needed.
Rows that begin with a line of the cache are read faster: see `aligned_empty`.
"""

# An intrinsic of Numba is called without its typing context.
# pyright: reportCallIssue=false

import llvmlite.ir as ir
import numpy as np
from numba import types
from numba.extending import intrinsic

from symsvm._lib.code_cache import njit
from symsvm._lib.heap import LINE
from symsvm.compiler.ops.scratch import matrix, vector
from symsvm.compiler.ops.vector_math import where

__all__ = ["BLOCK", "candidates", "smo"]

BLOCK = 128
# Blocks of a row that are asked for ahead of the one that is read: a processor does so by itself within a page only.
_AHEAD = 4
# Steps between two counts of the candidates.
_COUNT_INTERVAL = 32
# The violation that makes a variable a candidate, as a part of the largest.
_CANDIDATE_PART = 0.25
_INNER = {"error_model": "numpy", "cache": True, "no_cpython_wrapper": True}
_LOOP = {"fastmath": {"contract", "nnan", "nsz"}, **_INNER}


def _of_two(name):
    """The lesser or the greater of two numbers, in a form that LLVM vectorises."""

    @intrinsic
    def choose(typingctx, a, b):
        def generate(context, builder, signature, args):
            kind = args[0].type
            function = builder.module.declare_intrinsic(name, [kind], ir.FunctionType(kind, [kind, kind]))
            return builder.call(function, args)

        return a(a, a), generate

    return choose


@intrinsic
def _prefetch(typingctx, row, start):
    """Ask for the lines of a block of a row; beyond its end nothing happens."""

    def generate(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        size = signature.args[0].dtype.bitwidth // 8
        i8, i32, i64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [i8.as_pointer(), i32, i32, i32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [i8.as_pointer()], kind)
        for low in range(0, BLOCK, LINE // size):
            place = builder.gep(array.data, [builder.add(args[1], i64(low))])
            builder.call(function, [builder.bitcast(place, i8.as_pointer()), i32(0), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(row, types.intp), generate


_least, _most = _of_two("llvm.minnum"), _of_two("llvm.maxnum")


@njit(**_LOOP)
def _extremes(F, up, low, least, most):
    """The least F that may rise and the greatest that may fall, for each block."""
    for b in range(len(least)):
        f, u, w = F[b * BLOCK : (b + 1) * BLOCK], up[b * BLOCK : (b + 1) * BLOCK], low[b * BLOCK : (b + 1) * BLOCK]
        small, large = F.dtype.type(np.inf), F.dtype.type(-np.inf)
        for j in range(BLOCK):
            small = _least(small, f[j] + u[j])
            large = _most(large, f[j] + w[j])
        least[b] = small
        most[b] = large


@njit(**_LOOP)
def _move(F, row_i, row_j, d, up, low, least, most):
    """F += d (K_i - K_j), with the extremes of each block on the way."""
    for b in range(len(least)):
        part = slice(b * BLOCK, (b + 1) * BLOCK)
        f, x, y, u, w = F[part], row_i[part], row_j[part], up[part], low[part]
        small, large = F.dtype.type(np.inf), F.dtype.type(-np.inf)
        _prefetch(row_j, (b + _AHEAD) * BLOCK)
        for j in range(BLOCK):
            value = f[j] + d * (x[j] - y[j])
            f[j] = value
            small = _least(small, value + u[j])
            large = _most(large, value + w[j])
        least[b] = small
        most[b] = large


@njit(**_LOOP)
def _gains(F, row, diagonal, K_ii, F_i, low, tiny, gains):
    """The greatest gain of each block."""
    zero, two = F.dtype.type(0), F.dtype.type(2)
    for b in range(len(gains)):
        part = slice(b * BLOCK, (b + 1) * BLOCK)
        f, x, d, w = F[part], row[part], diagonal[part], low[part]
        best = zero
        _prefetch(row, (b + _AHEAD) * BLOCK)
        for j in range(BLOCK):
            slope = _most(f[j] + w[j] - F_i, zero)
            best = _most(best, slope * slope / _most(K_ii + d[j] - two * x[j], tiny))
        gains[b] = best


@njit(**_LOOP)
def _position(f, offset, value):
    """The first k of a block with f_k + offset_k equal to a value."""
    found = np.int32(BLOCK)
    for k in range(BLOCK):
        found = min(found, where(f[k] + offset[k] == value, np.int32(k), np.int32(BLOCK)))
    return found


@njit(**_LOOP)
def _position_of_gain(f, row, diagonal, K_ii, F_i, low, tiny, gain):
    """The first j of a block with almost this gain, the greatest one: rounding may differ from that of `_gains`."""
    zero, two, found = f.dtype.type(0), f.dtype.type(2), np.int32(BLOCK)
    gain *= f.dtype.type(1 - 1e-5)
    for j in range(BLOCK):
        slope = _most(f[j] + low[j] - F_i, zero)
        this = slope * slope / _most(K_ii + diagonal[j] - two * row[j], tiny)
        found = min(found, where(this >= gain, np.int32(j), np.int32(BLOCK)))
    return found


@njit(**_INNER)
def _least_of(values):
    """The index of the least; NumPy's functions take a second to compile."""
    best = 0
    for b in range(1, len(values)):
        if values[b] < values[best]:
            best = b
    return best


@njit(**_INNER)
def _most_of(values):
    """The index of the greatest."""
    best = 0
    for b in range(1, len(values)):
        if values[b] > values[best]:
            best = b
    return best


@njit(**_LOOP)
def _count(F, up, low, high_end, low_end):
    """The number of variables that could rise from below one end, or fall from above the other."""
    size = np.int32(0)
    for i in range(len(F)):
        size += np.int32((F[i] + up[i] < high_end) | (F[i] + low[i] > low_end))
    return size


@njit(cache=True, nogil=True, error_model="numpy")
def candidates(F, up, low, found):
    """Find the candidates: the free variables, and those that violate optimality by more than a part of the most.

    Returns their number, and the violation of the worst group.
    """
    groups, n = up.shape
    least, most = vector(n // BLOCK, F), vector(n // BLOCK, F)
    size, violation = 0, F.dtype.type(-np.inf)
    for g in range(groups):
        ups, lows = up[g], low[g]
        _extremes(F, ups, lows, least, most)
        low_end, high_end = least[_least_of(least)], most[_most_of(most)]
        violation = max(violation, high_end - low_end)
        margin = F.dtype.type(_CANDIDATE_PART) * (high_end - low_end)
        low_end, high_end = low_end + margin, high_end - margin
        for i in range(n):
            found[size] = i
            size += (F[i] + ups[i] < high_end) | (F[i] + lows[i] > low_end)
    return size, violation


@njit(cache=True, nogil=True, error_model="numpy")
def smo(K, F, z, lower, upper, diagonal, up, low, floor, eps, most_steps, few):
    """Take steps until no group violates optimality by more than eps, or few candidates are left.

    Returns the number of steps.

    Parameters
    ----------
    K : the matrix, its first n rows and columns; n is a multiple of BLOCK, and padding has infinite offsets.
    F : the gradient (n,), in the type of K; it is kept up to date.
    z, lower, upper : the variables, float64, and their bounds.
    diagonal : K_ii.
    up, low : for each group (groups, n): 0 where z_i may rise (may fall), else inf (-inf).
    floor : what K_ii + K_jj - 2 K_ij is at least, positive; rounding may say less.
    few : the number of candidates at which to stop; 0 to go on.
    """
    groups, n = up.shape
    blocks = n // BLOCK
    least, most = matrix(groups, blocks, F), matrix(groups, blocks, F)
    gains, kind = vector(blocks, F), F.dtype.type
    tiny = kind(floor)
    for g in range(groups):
        _extremes(F, up[g], low[g], least[g], most[g])
    steps = 0
    while steps < most_steps:
        chosen, violation, count = 0, -np.inf, 0
        counts = few and steps % _COUNT_INTERVAL == _COUNT_INTERVAL - 1
        for g in range(groups):
            low_end, high_end = least[g, _least_of(least[g])], most[g, _most_of(most[g])]
            gap = high_end - low_end
            if gap > violation:
                chosen, violation = g, gap
            if counts:
                margin = kind(_CANDIDATE_PART) * gap
                count += _count(F, up[g], low[g], high_end - margin, low_end + margin)
        if violation <= eps or (counts and count <= few):
            break
        ups, lows = up[chosen], low[chosen]
        b = _least_of(least[chosen])
        part = slice(b * BLOCK, (b + 1) * BLOCK)
        place = _position(F[part], ups[part], least[chosen, b])
        if place == BLOCK:  # of NaN
            break
        i = b * BLOCK + place
        row_i = K[i]
        _gains(F, row_i, diagonal, diagonal[i], F[i], lows, tiny, gains)
        b = _most_of(gains)
        if not gains[b] > 0:
            break
        part = slice(b * BLOCK, (b + 1) * BLOCK)
        place = _position_of_gain(F[part], row_i[part], diagonal[part], diagonal[i], F[i], lows[part], tiny, gains[b])
        if place == BLOCK:
            break
        j = b * BLOCK + place
        d = float(F[j] - F[i]) / max(float(diagonal[i]) + float(diagonal[j]) - 2 * float(row_i[j]), floor)
        room_i, room_j = upper[i] - z[i], z[j] - lower[j]
        d = min(d, room_i, room_j)
        if not d > 0:
            break
        # Exactly at a bound: rounding must not leave the variable free.
        z[i] = upper[i] if d == room_i else z[i] + d
        z[j] = lower[j] if d == room_j else z[j] - d
        ups[i], lows[i] = (0 if z[i] < upper[i] else np.inf), (0 if z[i] > lower[i] else -np.inf)
        ups[j], lows[j] = (0 if z[j] < upper[j] else np.inf), (0 if z[j] > lower[j] else -np.inf)
        _move(F, row_i, K[j], kind(d), ups, lows, least[chosen], most[chosen])
        for g in range(groups):
            if g != chosen:
                _extremes(F, up[g], low[g], least[g], most[g])
        steps += 1
    return steps
