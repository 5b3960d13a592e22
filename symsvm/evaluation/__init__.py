"""Numbers from kernels: blocks and products of a kernel matrix that is never held as a whole."""

__all__ = []
