"""The heap of the C library, which keeps memory that was freed."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["trim_memory"]


def trim_memory() -> None:
    """Return freed memory to the system; glibc would keep what lies between blocks that are still in use."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
        if trim is not None:
            trim(0)
