"""The heap: arrays that begin with a line of the cache, and the C library's heap, which keeps memory that was freed."""

from __future__ import annotations

import ctypes
import math
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = ["LINE", "aligned_empty", "trim_memory"]

# Bytes of a line of the cache.
LINE = 64


def aligned_empty(shape: tuple[int, ...], dtype: str) -> Array:
    """Return an array that begins with a line of the cache: a vector in two lines takes twice as long to read."""
    import numpy as np  # the command line imports this module before it needs NumPy

    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + LINE, "uint8")
    first = -memory.ctypes.data % LINE
    return memory[first : first + size].view(dtype).reshape(shape)


def trim_memory() -> None:
    """Return freed memory to the system; glibc would keep what lies between blocks that are still in use."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
        if trim is not None:
            trim(0)
