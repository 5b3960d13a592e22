"""exp, log, tanh, sigmoid and powers without branches or calls, which LLVM vectorises (4 to 16 numbers at once).

Numba's versions call a scalar library function for each element. These reduce the argument to a short interval by bit
arithmetic and evaluate a polynomial there (near minimax, from Chebyshev interpolation):

    e^x = 2^n (1 + p),    n = round(x / log 2),    p = e^r - 1 = r + r^2 q(r),    |r| <= log(2) / 2
    log x = n log 2 + 2 artanh(s),    s = f / (2 + f),    1 + f = x / 2^n in [sqrt(1/2), sqrt(2))

The error is at most 3 units in the last place, and 1 + |y log x| times that for a power (tests/test_ops.py measures
it). Results below the least normal number may become 0. NaN and infinities are those of C.
"""

# pyright: reportCallIssue=false, reportOptionalCall=false, reportOperatorIssue=false
# Numba calls the intrinsics below without their first parameter, and compiled functions with numbers.

from types import SimpleNamespace
from typing import Any

import llvmlite.ir as ir
import numpy as np
from numba import njit, types
from numba.extending import intrinsic

__all__ = ["FLOATS", "where"]

# Type checkers do not know that Numba calls intrinsics without their first parameter.
_intrinsic: Any = intrinsic

# Fused multiply-add is allowed, other reordering is not; no exception for a division by zero, since it is a branch.
_MATH_OPTIONS = {"fastmath": {"contract"}, "error_model": "numpy"}


@intrinsic
def _bits(typingctx, x):
    """Return the bits of a float as an integer of the same size."""
    size = x.bitwidth

    def generate(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(size))

    return (types.int64 if size == 64 else types.int32)(x), generate


@intrinsic
def _float(typingctx, i):
    """Return the float with these bits."""
    size = i.bitwidth

    def generate(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType() if size == 64 else ir.FloatType())

    return (types.float64 if size == 64 else types.float32)(i), generate


@_intrinsic
def where(typingctx, condition, a, b):
    """Return a where the condition holds, else b, by a select instruction instead of a branch."""

    def generate(context, builder, signature, args):
        return builder.select(*args)

    return a(types.boolean, a, a), generate


def _functions(dtype, q, R, low, high, tanh_end, ln2):
    """Return the functions of one floating type from its constants."""
    number, integer = np.dtype(dtype).type, {"float32": np.int32, "float64": np.int64}[dtype]
    info = np.finfo(dtype)
    mantissa = integer(info.nmant)
    magic = number(1.5 * 2.0**info.nmant)  # adding it rounds to an integer, which is then in the lowest bits
    per_ln2, ln2_high, ln2_low = number(1 / np.log(2)), number(ln2[0]), number(ln2[1])
    one, two, half, zero, inf, nan = (number(v) for v in (1, 2, 0.5, 0, np.inf, np.nan))
    one_bits = integer(np.array(one).view(integer))
    root_bits = integer(np.array(number(np.sqrt(0.5))).view(integer))
    low, high, tanh_end, tiny = number(low), number(high), number(tanh_end), number(info.tiny)
    shift = number(2.0 ** (info.nmant + 2))
    shifted = number(info.nmant + 2)
    polynomial = _horner(q, number)
    artanh = _horner(R, number)

    @njit(**_MATH_OPTIONS)
    def exp(x):
        t = x * per_ln2 + magic
        n = t - magic
        r = (x - n * ln2_high) - n * ln2_low
        y = (r * r * polynomial(r) + r) + one
        y = _float(integer(_bits(y) + (_bits(t) << mantissa)))
        return where(x < low, zero, where(x <= high, y, x * inf))  # x * inf: infinite, or NaN

    @njit(**_MATH_OPTIONS)
    def tanh(x):
        # em = e^2x - 1 without cancellation near 0; tanh = em / (em + 2).
        x = where(x > tanh_end, tanh_end, x)
        x = where(x < -tanh_end, -tanh_end, x)
        x = x + x
        t = x * per_ln2 + magic
        n = t - magic
        r = (x - n * ln2_high) - n * ln2_low
        p = r * r * polynomial(r) + r
        scale = _float(integer((_bits(t) << mantissa) + one_bits))
        em = scale * p + (scale - one)
        return em / (em + two)

    @njit(**_MATH_OPTIONS)
    def log(x):
        small = x < tiny
        scaled = where(small, x * shift, x)
        i = integer(_bits(scaled) - root_bits) >> mantissa
        f = _float(integer(_bits(scaled) - (i << mantissa))) - one
        n = number(i) - where(small, shifted, zero)
        s = f / (two + f)
        z = s * s
        y = n * ln2_high + (n * ln2_low + (s * z * artanh(z) + two * s))
        y = where(x == inf, inf, y)
        return where(x > zero, y, where(x == zero, -inf, nan))

    @njit(**_MATH_OPTIONS)
    def power(x, y):
        size = where(x < zero, -x, x)
        value = where(size == one, one, exp(y * log(size)))  # 1 to any power, infinite or NaN
        whole = np.floor(y) == y
        odd = np.floor(y * half) != y * half
        end = (size == zero) | (size == inf)
        signed = where(whole, where(odd, -value, value), where(end, value, nan))
        return where(y == zero, one, where(_bits(x) < 0, signed, value))

    @njit(**_MATH_OPTIONS)
    def sigmoid(x):
        return one / (one + exp(-x))

    return SimpleNamespace(exp=exp, tanh=tanh, log=log, power=power, sigmoid=sigmoid)


def _horner(coefficients, number):
    """Return a polynomial, lowest coefficient first, as a compiled function without a loop."""
    names = [f"c{i}" for i in range(len(coefficients))]
    text = names[-1]
    for name in reversed(names[:-1]):
        text = f"({text} * x + {name})"
    scope = {name: number(c) for name, c in zip(names, coefficients, strict=True)}
    return njit(**_MATH_OPTIONS)(eval(f"lambda x: {text}", scope))


FLOATS = {
    "float32": _functions(
        "float32",
        q=(0.5, 0.16666576989698775, 0.041666554617204574, 0.008363179052722578, 0.0013926183587713494),
        R=(0.6666666655404201, 0.4000012221181065, 0.28550778633191964, 0.23331614471843498),
        low=-87.33654,
        high=88.72283,
        tanh_end=9.02,
        ln2=(0.693359375, -2.1219444005469057e-4),
    ),
    "float64": _functions(
        "float64",
        q=(
            0.5000000000000001,
            0.16666666666666669,
            0.04166666666662413,
            0.008333333333330062,
            0.0013888888917213717,
            0.00019841269863053618,
            2.4801521295954376e-05,
            2.7557268459997064e-06,
            2.7620088445409746e-07,
            2.510038549551032e-08,
        ),
        R=(
            0.666666666666667,
            0.3999999999989889,
            0.28571428626253836,
            0.22222211089379496,
            0.1818289243253687,
            0.15331611722055008,
            0.14617807153417325,
        ),
        low=-708.3964185322641,
        high=709.782712893384,
        tanh_end=19.1,
        ln2=(0.6931471803691238, 1.9082149292705877e-10),
    ),
}
