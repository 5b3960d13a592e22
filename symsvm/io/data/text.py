"""Text as blocks of whole lines, and the numbers in it, to the last bit what Python's `float` makes of them."""

import math
import re

import numpy as np
from numba import njit

from symsvm.io.data.errors import DataError
from symsvm.io.data.files import Source

__all__ = ["BLOCK", "LINE", "blocks", "is_number", "is_special", "line_of", "parse", "settle", "word"]

BLOCK = 1 << 22  # bytes that are parsed at once
LINE = 1 << 23  # bytes; a longer line is no line of data
_EXACT = 2**53
# 10^k = high + low for k <= 44, exactly: 5^44 < 2^106.
_HIGH = np.array([float(10**k) for k in range(45)])
_LOW = np.array([float(10**k - int(float(10**k))) for k in range(45)])


def blocks(path):
    """Yield (bytes, line): blocks of whole lines, and the number of the first line of each."""
    with Source(path) as source:
        rest, line, first = b"", 1, True
        while piece := source.read(BLOCK):
            if first:
                piece, first = piece.removeprefix(b"\xef\xbb\xbf"), False
            cut = piece.rfind(b"\n") + 1
            if not cut:
                rest += piece
                if len(rest) > LINE:
                    raise _long(path, line)
                continue
            block, rest = rest + piece[:cut], piece[cut:]
            if block.find(b"\n") > LINE:
                raise _long(path, line)
            yield block, line
            line += block.count(b"\n")
        if len(rest) > LINE:
            raise _long(path, line)
        if rest:
            yield rest + b"\n", line


def _long(path, line):
    return DataError(path, f"the line has more than {LINE >> 20} MiB, so this is no text of numbers.", line)


@njit(cache=True)
def _product(a, b):
    """a * b as a sum of two floats, exactly (Dekker)."""
    split = 134217729.0  # 2^27 + 1
    c, d = split * a, split * b
    a1, b1 = c - (c - a), d - (d - b)
    a2, b2, high = a - a1, b - b1, a * b
    return high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2


@njit(cache=True)
def _scaled(n, e):
    """n * 10^e, and whether that is surely the nearest float64.

    It is at once where n < 2^53 and |e| <= 22, for then one operation on exact numbers rounds once. Else x + y is the
    number to 2^-100 of itself, and sure if the sum rounds to the same float a little lower and a little higher.
    """
    k = abs(e)
    if k > 44:
        return 0.0, n == 0
    a, p = np.float64(n), _HIGH[k]
    if n < _EXACT and k <= 22:
        return a * p if e >= 0 else a / p, True
    b = np.float64(n - np.int64(a))
    if e >= 0:
        x, y = _product(a, p)
        y += a * _LOW[k] + b * p
    else:
        x = a / p
        high, low = _product(x, p)
        y = ((a - high) - low + b - x * _LOW[k]) / p
    slack = abs(x) * 2.0**-95
    lower, upper = x + (y - slack), x + (y + slack)
    return lower, lower == upper


@njit(cache=True)
def parse(text, at):
    """The number at text[at:]: (value, end, sure), with end = at where there is none.

    What is not surely the nearest float64 (more than 18 digits, 1e-300, the middle of two floats) is left to `settle`.
    """
    start, negative = at, text[at] == 45
    if text[at] == 43 or text[at] == 45:
        at += 1
    first, n, e = at, np.int64(0), 0
    while text[at] == 48:
        at += 1
    mark = at
    while 48 <= text[at] <= 57:
        n = n * 10 + (text[at] - 48)
        at += 1
    digits, significant = at - first, at - mark
    if text[at] == 46:
        at += 1
        point = at
        while significant == 0 and text[at] == 48:
            at += 1
        mark = at
        while 48 <= text[at] <= 57:
            n = n * 10 + (text[at] - 48)
            at += 1
        digits, significant, e = digits + at - point, significant + at - mark, point - at
    if digits == 0:
        return 0.0, start, True
    if text[at] == 101 or text[at] == 69:
        at += 1
        down = text[at] == 45
        if text[at] == 43 or text[at] == 45:
            at += 1
        power, digits = 0, 0
        while 48 <= text[at] <= 57:
            power = min(power * 10 + (text[at] - 48), 100000)
            at += 1
            digits += 1
        if digits == 0:
            return 0.0, start, True
        e += -power if down else power
    if significant > 18:  # n has overflown
        return 0.0, at, False
    value, sure = _scaled(n, e)
    return -value if negative else value, at, sure


def settle(text, late, values, labels):
    """Finish the numbers (slot, start, end) that `parse` was not sure of, by Python's `float`.

    They go to values[slot], or to labels[~slot] where the slot is negative. Returns (slot, start) of the first one that
    is not finite, or None.
    """
    for slot, start, end in late.tolist():
        value = float(text[start:end])
        if not math.isfinite(value):
            return slot, start
        if slot < 0:
            labels[~slot] = value
        else:
            values[slot] = value
    return None


def is_number(field):
    """Say whether a field is a finite number as `parse` reads it.

    >>> [is_number(field) for field in (b"-1.5e3", b" 2 ", b"nan", b"1_0", b"")]
    [True, True, False, False, False]
    """
    field = field.strip()
    text = np.frombuffer(field + b"\n", dtype=np.uint8)
    end = parse(text, 0)[1]
    return 0 < end == len(field) and math.isfinite(float(field))


def word(text, at):
    """What stands at text[at:], up to a blank, a comma or the end of its line, or its first 64 bytes."""
    return re.match(rb"[^ \t\r\n,;]*", text[at : at + 64])[0]


def is_special(field):
    """Say whether a field is a way to write nan or an infinity."""
    return re.fullmatch(rb"[+-]?(nan|inf|infinity)", field.strip(), flags=re.IGNORECASE) is not None


def line_of(text, at, first):
    """The number of the line that text[at] is on, if the text begins with line `first`."""
    return first + text.count(b"\n", 0, at)
