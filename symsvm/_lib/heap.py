"""The heap: arrays that begin with a line of the cache, and the C library's heap, which keeps memory that was freed."""

from __future__ import annotations

import ctypes
import math
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = ["LINE", "aligned_copy", "aligned_empty", "aligned_full", "recycle", "recycled_empty", "trim_memory"]

# Bytes of a line of the cache.
LINE = 64

_SPARE = threading.local()


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array that begins with a line of the cache: a vector in two lines takes twice as long to read."""
    import numpy as np  # the command line imports this module before it needs NumPy

    return _aligned(np.empty(_bytes(shape, dtype) + LINE, "uint8"), shape, dtype)


def recycled_empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return such an array in memory that `recycle` has kept, if it is of about this size."""
    memory, size = getattr(_SPARE, "memory", None), _bytes(shape, dtype)
    if memory is None or not size + LINE <= len(memory) <= 4 * size:
        return aligned_empty(shape, dtype)
    _SPARE.memory = None
    return _aligned(memory, shape, dtype)


def _bytes(shape, dtype):
    import numpy as np

    return math.prod(shape) * np.dtype(dtype).itemsize


def _aligned(memory, shape, dtype):
    """An array in the bytes of another, from the first line of the cache on."""
    first = -memory.__array_interface__["data"][0] % LINE
    return memory[first : first + _bytes(shape, dtype)].view(dtype).reshape(shape)


def recycle(array: Array) -> None:
    """Keep the memory of a large array that nobody uses any more for the next `recycled_empty` of this thread.

    The first use of fresh memory takes longer than what is computed there. At most 64 MB are kept.
    """
    memory = array
    while memory.base is not None:
        memory = memory.base
    spare = getattr(_SPARE, "memory", None)
    if 2**20 <= len(memory) <= 2**26 and (spare is None or len(spare) < len(memory)):
        _SPARE.memory = memory


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


def trim_memory() -> None:
    """Return freed memory to the system; glibc would keep what lies between blocks that are still in use."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
        if trim is not None:
            trim(0)
