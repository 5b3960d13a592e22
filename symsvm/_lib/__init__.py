"""Tools that every package may import: validation, threads, interrupts, atomic writes, types, compatibility.

Nothing here imports from another package of symsvm.
"""

__all__ = []
