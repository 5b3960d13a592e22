"""The object that lives with a worker: holds what a factory has made, and runs its methods on the worker's cores."""

from __future__ import annotations

import contextlib
import functools
import platform
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import symsvm
from symsvm._lib.blas import SingleThreadedBlas
from symsvm._lib.threads import SharedCores
from symsvm.distributed.engine import StaleObjectError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Host", "Software", "software"]


class Software(NamedTuple):
    """What the bits of a result depend on.

    Attributes
    ----------
    symsvm, numpy, numba : str
        The versions.
    processor : str
        The processor's name, as the compiler sees it: it decides which instructions a loop has.
    """

    symsvm: str
    numpy: str
    numba: str
    processor: str


@functools.cache
def software() -> Software:
    """Return what this process computes with."""
    import llvmlite.binding
    import numba

    processor = f"{platform.machine()} {llvmlite.binding.get_host_cpu_name()}"
    return Software(symsvm.__version__, np.__version__, numba.__version__, processor)


class Host:
    """Holds the object that a factory makes; engines whose actors are plain objects hold this one.

    Parameters
    ----------
    token : str
        A number of its own: a call for another object, which the same worker had before, is refused.
    threads : int
        The threads that its loops may use.
    factory : callable
        Makes the object.
    args : sequence
        The arguments of the factory.
    """

    def __init__(self, token: str, threads: int, factory: Callable[..., Any], args: Sequence[Any]) -> None:
        self._token, self._threads = token, threads
        with self._cores():
            self._object = factory(*args)

    def call(self, token: str, method: str, args: tuple[Any, ...]) -> Any:
        """Call a method of the object.

        Parameters
        ----------
        token : str
            That of the object which is meant.
        method : str
            The name of the method.
        args : tuple
            Its arguments.

        Returns
        -------
        object
            Its result.
        """
        if token != self._token:
            raise StaleObjectError("the object is lost: this is another one with its name.")
        with self._cores():
            return getattr(self._object, method)(*map(_writable, args))

    def ready(self) -> Software:
        """Return what the worker computes with, once the object is made.

        Returns
        -------
        Software
            The versions and the processor.
        """
        return software()

    @contextlib.contextmanager
    def _cores(self):
        """Run loops on the worker's threads, and BLAS on one."""
        with SingleThreadedBlas(), SharedCores(self._threads).use():
            yield


def _writable(value: Any) -> Any:
    """The array itself, or a copy where it came in a message that may not be written to."""
    return value.copy() if isinstance(value, np.ndarray) and not value.flags.writeable else value
