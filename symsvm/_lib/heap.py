"""The heap: arrays that begin with a line of the cache, and the C library's heap, which keeps memory that was freed."""

from __future__ import annotations

import ctypes
import math
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = ["LINE", "aligned_copy", "aligned_empty", "aligned_full", "trim_memory"]

# Bytes of a line of the cache.
LINE = 64


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array that begins with a line of the cache: a vector in two lines takes twice as long to read."""
    import numpy as np  # the command line imports this module before it needs NumPy

    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + LINE, "uint8")
    first = -memory.__array_interface__["data"][0] % LINE
    return memory[first : first + size].view(dtype).reshape(shape)


def trim_memory() -> None:
    """Return freed memory to the system; glibc would keep what lies between blocks that are still in use."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
        if trim is not None:
            trim(0)


def aligned_full(shape: tuple[int, ...], value: float, dtype: Any) -> Array:
    """Return such an array with one value everywhere."""
    array = aligned_empty(shape, dtype)
    array[...] = value
    return array


def aligned_copy(array: Array, dtype: Any) -> Array:
    """Return such a copy of an array, in this type."""
    copy = aligned_empty(array.shape, dtype)
    copy[...] = array
    return copy
