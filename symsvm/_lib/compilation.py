"""Compilation: what Numba compiles for symsvm in this process, and the notice of it.

The first use of a function on a machine takes a second or two, and the first fit some of them: people should not wonder
what it does. One line on stderr says so, and on a terminal what is under way; `SYMSVM_QUIET=1` turns it off.
"""

from __future__ import annotations

import os
import sys
import time
import weakref
from typing import Any

from symsvm._lib.compat import is_compiling, listen_to_numba, shape_errors

__all__ = ["Compilation"]


class Compilation:
    """Counts the functions that Numba compiles for symsvm, and says so.

    Attributes
    ----------
    functions : int
        The functions compiled so far, without those that were compiled as a part of another one.
    seconds : float
        The time that it took.
    """

    def __init__(self) -> None:
        self.functions, self.seconds = 0, 0.0
        self._watched: weakref.WeakSet[Any] = weakref.WeakSet()
        self._directories: dict[str, None] = {}  # in order
        self._depth, self._outermost, self._began, self._is_said = 0, None, 0.0, False

    def install(self) -> None:
        """Listen to Numba."""
        listen_to_numba(self.begin, self.end)

    def watch(self, function: Any, directory: str) -> None:
        """Report when this Python function is compiled; its machine code is kept in a directory."""
        self._watched.add(function)
        self._directories[directory] = None

    @property
    def directories(self) -> list[str]:
        """The directories that have the code of this process."""
        return list(self._directories)

    def begin(self, dispatcher: Any) -> None:
        """Numba begins to compile; functions inside others come between begin and end of those."""
        if self._depth > 0 and not is_compiling(self._outermost):  # an interrupt came before its end
            self._depth, self._outermost = 0, None
            shape_errors(in_short=False)
        if self._depth == 0 and getattr(dispatcher, "py_func", None) not in self._watched:
            return
        if self._depth > 0:
            self._depth += 1
            return
        self._outermost, self._began = dispatcher, time.perf_counter()
        self._depth = 1
        shape_errors(in_short=True)
        if self._is_quiet():
            return
        if not self._is_said:
            self._is_said = True
            _write(
                "symsvm: compiling for the first use on this machine, which takes some seconds. The code is kept in "
                f"{' and '.join(self._directories)}; `symsvm warm` compiles all of it ahead.\n"
            )
        if _is_terminal():
            _write(f"\r\x1b[K  function {self.functions + 1}, {self.seconds:.0f} s ... ")

    def end(self) -> None:
        """Numba has compiled a function."""
        if self._depth == 0:
            return
        self._depth -= 1
        if self._depth == 0:
            self._outermost = None
            shape_errors(in_short=False)
            self.functions += 1
            self.seconds += time.perf_counter() - self._began
            if not self._is_quiet() and _is_terminal():
                _write("\r\x1b[K")

    @staticmethod
    def _is_quiet():
        return os.environ.get("SYMSVM_QUIET", "0") not in ("", "0")


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _write(text: str) -> None:
    """Write to stderr; a closed one is no reason for a fit to fail."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass
