"""The registration of our Ops with PyTensor's Numba backend, when a graph that has one may be compiled.

A user may give any graph to `pytensor.function`, so that an Op is registered when its first node is made. It takes
0.1 s in each process. Graphs that are made to be read, and of which nothing is compiled that has such an Op, need none.
"""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["only_reading", "register"]

_IS_ONLY_READ = ContextVar("symsvm_is_only_read", default=False)


@contextmanager
def only_reading() -> Iterator[None]:
    """Make nodes inside the block that are compiled by `symsvm.compiler.function` or not at all."""
    token = _IS_ONLY_READ.set(True)
    try:
        yield
    finally:
        _IS_ONLY_READ.reset(token)


def register() -> None:
    """Register all Ops."""
    if not _IS_ONLY_READ.get():
        importlib.import_module("symsvm.compiler.ops.numba_dispatch")
