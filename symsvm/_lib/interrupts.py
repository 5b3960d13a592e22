"""Interrupts: Ctrl-C inside compiled code, told from faults."""

import contextlib

__all__ = ["is_interrupt", "restored_interrupts"]


def is_interrupt(error):
    """Whether an error comes of a Ctrl-C.

    The handler of the signal raises KeyboardInterrupt wherever the interpreter is. Where that is between the parts of a
    compiled function, Numba ends with a SystemError, "returned a result with an exception set", that it caused.

    >>> error = SystemError("returned a result with an exception set")
    >>> error.__cause__ = KeyboardInterrupt()
    >>> is_interrupt(error), is_interrupt(SystemError())
    (True, False)
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


@contextlib.contextmanager
def restored_interrupts():
    """Let a Ctrl-C inside compiled code be a KeyboardInterrupt outside of it."""
    try:
        yield
    except SystemError as error:
        if not is_interrupt(error):
            raise
        raise KeyboardInterrupt from error
