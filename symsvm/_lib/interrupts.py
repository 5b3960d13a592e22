"""Interrupts: how to recognise a Ctrl-C inside compiled code."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["is_interrupt", "restored_interrupts"]


def is_interrupt(error: BaseException | None) -> bool:
    """Whether an error is, or was caused by, a Ctrl-C.

    The signal handler raises KeyboardInterrupt at any point of the program. Between the parts of a compiled function,
    Numba turns it into a SystemError, "returned a result with an exception set", with the interrupt as its cause.

    >>> error = SystemError("returned a result with an exception set")
    >>> error.__cause__ = KeyboardInterrupt()
    >>> is_interrupt(error), is_interrupt(SystemError())
    (True, False)
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


@contextlib.contextmanager
def restored_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt for a Ctrl-C inside compiled code."""
    try:
        yield
    except SystemError as error:
        if not is_interrupt(error):
            raise
        raise KeyboardInterrupt from error
