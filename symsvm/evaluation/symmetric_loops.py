"""Compiled loops over a symmetric matrix in memory: mirror it, gather blocks, multiply.

Each has a compiled part, for a range of the result, and a function that runs the parts on all cores if there is enough
work for them.
"""

# pyright: reportCallIssue=false
# Numba calls intrinsics without their first parameter.

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from symsvm._lib.code_cache import njit
from symsvm._lib.heap import LINE
from symsvm._lib.threads import in_parts
from symsvm.compiler.ops.scratch import vector
from symsvm.compiler.ops.transposition import transpose_square
from symsvm.compiler.ops.vector_math import where

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = ["add_rows", "gather", "gathered_product", "is_finite", "mirror", "mirror_columns", "sum_rows"]

# Entries of a matrix that one core moves faster than several, and products that it adds faster.
_FEW_MOVED, _FEW_ADDED = 2**18, 2**21


@njit(cache=True, nogil=True)
def mirror_columns(K, low, high, first, last):
    """K_ji = K_ij for the rows i from low to high and the columns j from first to last, a square at a time."""
    n = LINE // K.itemsize
    rows, columns = high - (high - low) % n, last - (last - first) % n
    for c in range(first, columns, n):
        for i in range(low, rows, n):
            transpose_square(K, i, c)
    for c in range(first, last):
        for i in range(low if c >= columns else rows, high):
            K[c, i] = K[i, c]


@njit(cache=True, nogil=True)
def _find_infinite(K, columns, first, last, found):
    """found_0 = 1 if a row from first to last has an entry that is not finite: x - x is 0 for others."""
    zero, yes = K.dtype.type(0), np.int32(1)
    for i in range(first, last):
        row, is_infinite = K[i, :columns], np.int32(0)
        for j in range(columns):
            is_infinite = where(row[j] - row[j] == zero, is_infinite, yes)
        if is_infinite:
            found[0] = 1


def is_finite(K: Array, columns: int) -> bool:
    """Whether the first columns of a matrix are finite."""
    found = np.zeros(1)
    if len(K) * columns < 8 * _FEW_MOVED:
        _find_infinite(K, columns, 0, len(K), found)
    else:
        in_parts(lambda first, last: _find_infinite(K, columns, first, last, found), len(K))
    return not found[0]


def mirror(K: Array, low: int, high: int) -> None:
    """K_ji = K_ij for the rows i from low to high and the columns j before low."""
    if (high - low) * low < 4 * _FEW_MOVED:
        mirror_columns(K, low, high, 0, low)
    else:
        in_parts(lambda t, end: mirror_columns(K, low, high, t * 64, min(end * 64, low)), (low + 63) // 64)


@njit(cache=True, nogil=True)
def _gather(K, rows, columns, out, first, last):
    for i in range(first, last):
        source, r, target = K[rows[i]], rows[i], out[i]
        for j in range(len(columns)):
            c = columns[j]
            target[j] = source[c] if c <= r else K[c, r]


def gather(K: Array, rows: Array, columns: Array, out: Array) -> None:
    """out_ij = K of the chosen rows and columns, of a symmetric K of which only the lower triangle is there."""
    if len(rows) * len(columns) < _FEW_MOVED:
        _gather(K, rows, columns, out, 0, len(rows))
    else:
        in_parts(lambda first, last: _gather(K, rows, columns, out, first, last), len(rows))


@njit(cache=True, nogil=True)
def _gathered_product(K, rows, columns, q, out, first, last):
    for i in range(first, last):
        source, r, total = K[rows[i]], rows[i], 0.0
        for j in range(len(columns)):
            c = columns[j]
            total += (source[c] if c <= r else K[c, r]) * q[j]
        out[i] += total


def gathered_product(K: Array, rows: Array, columns: Array, q: Array, out: Array) -> None:
    """out_i += sum_j K_ij q_j over the chosen rows and columns, of such a K, summed in float64."""
    if len(rows) * len(columns) < _FEW_MOVED:
        _gathered_product(K, rows, columns, q, out, 0, len(rows))
    else:
        in_parts(lambda first, last: _gathered_product(K, rows, columns, q, out, first, last), len(rows))


@njit(cache=True, nogil=True)
def sum_rows(K, rows, q, out, low):
    """out += sum_k q_k K[rows_k, low : low + len(out)], summed in float64.

    The sum is in an array of its own: the compiler then knows that it is not a part of K.
    """
    width = len(out)
    total = vector(width, q)
    for j in range(width):
        total[j] = 0.0
    for k in range(len(rows)):
        row, weight = K[rows[k], low : low + width], q[k]
        for j in range(width):
            total[j] += weight * row[j]
    for j in range(width):
        out[j] += total[j]


def add_rows(K: Array, rows: Array, q: Array, out: Array) -> None:
    """out += sum_k q_k K[rows_k], the first entries of each row, summed in float64."""
    if len(rows) * len(out) < _FEW_ADDED:
        sum_rows(K, rows, q, out, 0)
    else:
        in_parts(
            lambda t, end: sum_rows(K, rows, q, out[t * 512 : end * 512], t * 512),
            (len(out) + 511) // 512,
        )
