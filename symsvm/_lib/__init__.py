"""What every package may use: checks of arguments, interrupts, threads, atomic writes, other libraries' internals."""

__all__ = []
