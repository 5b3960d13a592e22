"""Text files of numbers: blocks of whole lines, and a parser whose results equal Python's `float` to the last bit."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

from symsvm._lib.code_cache import njit
from symsvm.io.data.byte_streams import ByteSource
from symsvm.io.file_errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from symsvm._lib.types import Array, Path

__all__ = [
    "BLOCK_BYTES",
    "is_nan_or_inf",
    "is_number",
    "iter_line_blocks",
    "line_number",
    "parse",
    "parse_inexact",
    "token_at",
]

BLOCK_BYTES = 1 << 22  # parsed at once
_MAX_LINE_BYTES = 1 << 23  # a longer line is not one of data
_EXACT_INTEGERS = 2**53  # below it every integer is a float64
# 10^k = high + low for k <= 44, exactly: 5^44 < 2^106.
_HIGH = np.array([float(10**k) for k in range(45)])
_LOW = np.array([float(10**k - int(float(10**k))) for k in range(45)])


def iter_line_blocks(path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield (bytes, line): blocks of whole lines, and the number of the first line of each."""
    with ByteSource(path) as source:
        rest, line, first = b"", 1, True
        while piece := source.read(BLOCK_BYTES):
            if first:
                piece, first = piece.removeprefix(b"\xef\xbb\xbf"), False
            cut = piece.rfind(b"\n") + 1
            if not cut:
                rest += piece
                if len(rest) > _MAX_LINE_BYTES:
                    raise _line_too_long(path, line)
                continue
            block, rest = rest + piece[:cut], piece[cut:]
            if block.find(b"\n") > _MAX_LINE_BYTES:
                raise _line_too_long(path, line)
            yield block, line
            line += block.count(b"\n")
        if len(rest) > _MAX_LINE_BYTES:
            raise _line_too_long(path, line)
        if rest:
            yield rest + b"\n", line


def _line_too_long(path: Path, line: int) -> DataError:
    most = _MAX_LINE_BYTES >> 20
    return DataError(path, f"the line has more than {most} MiB, so the file is not a text file of numbers.", line)


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
    """n * 10^e, and whether that is proved to be the nearest float64.

    For n < 2^53 and |e| <= 22 it is: one operation on exact numbers rounds once. Otherwise x + y is the number to a
    relative error of 2^-100, and the proof is that slightly less and slightly more round to the same float.
    """
    k = abs(e)
    if k > 44:
        return 0.0, n == 0
    a, p = np.float64(n), _HIGH[k]
    if n < _EXACT_INTEGERS and k <= 22:
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
    """The number at text[at:]: (value, end, exact), with end = at where there is none.

    Numbers that are not proved to be the nearest float64 (more than 18 digits, 1e-300, halfway between two floats) have
    exact = False; `parse_inexact` parses them again.
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
    if significant > 18:  # n has overflowed
        return 0.0, at, False
    value, exact = _scaled(n, e)
    return -value if negative else value, at, exact


def parse_inexact(text: bytes, spans: Array, values: Array, labels: Array) -> tuple[int, int] | None:
    """Parse the numbers that `parse` left inexact with Python's `float`; each span is (slot, start, end).

    A number goes to values[slot], or to labels[~slot] where the slot is negative. Returns (slot, start) of the first
    one that is not finite, or None.
    """
    for slot, start, end in spans.tolist():
        value = float(text[start:end])
        if not math.isfinite(value):
            return slot, start
        if slot < 0:
            labels[~slot] = value
        else:
            values[slot] = value
    return None


def is_number(field: bytes) -> bool:
    """Whether a field is a finite number as `parse` reads it.

    >>> [is_number(field) for field in (b"-1.5e3", b" 2 ", b"nan", b"1_0", b"")]
    [True, True, False, False, False]
    """
    field = field.strip()
    text = np.frombuffer(field + b"\n", dtype=np.uint8)
    end = parse(text, 0)[1]
    return 0 < end == len(field) and math.isfinite(float(field))


def token_at(text: bytes, at: int) -> bytes:
    """The bytes from text[at] to a blank, a comma, a semicolon or the end of the line, at most 64 of them."""
    return re.split(rb"[ \t\r\n,;]", text[at : at + 64], maxsplit=1)[0]


def is_nan_or_inf(field: bytes) -> bool:
    """Whether a field spells nan or an infinity."""
    return re.fullmatch(rb"[+-]?(nan|inf|infinity)", field.strip(), flags=re.IGNORECASE) is not None


def line_number(text: bytes, at: int, first: int) -> int:
    """The number of the line that text[at] is on, if the text begins with line `first`."""
    return first + text.count(b"\n", 0, at)
