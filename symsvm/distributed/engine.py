"""What distributed work asks of an engine: objects that live with workers, and calls of their methods.

    actor = engine.spawn(worker, factory, *args).result()     factory(*args) is made by the worker, and stays there
    reply = actor.call("method", *args)                       returns at once; calls of one actor run one after another
    reply.result()                                            waits, returns the result or raises what the method raised

A worker that has died, or that has been silent for too long, makes `result` raise `WorkerLostError`. `Team` keeps one
object for each part of the data, calls all at once, gathers the results, and makes lost objects again elsewhere:

    team = Team(engine, [Part(Rows, (block,)) for block in blocks])
    team.call("product", vector)                              a list, one result for each part
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Actor", "ClusterError", "Engine", "Reply", "StaleObjectError", "WorkerLostError"]


class WorkerLostError(RuntimeError):
    """A worker has died, has been silent for too long, or has lost an object; others may go on."""


class StaleObjectError(RuntimeError):
    """A call has met another object than it was meant for."""


class ClusterError(RuntimeError):
    """A run cannot go on: no worker is left, the scheduler does not answer, or workers do not fit together."""


class Reply(Protocol):
    """The result of a call that is under way."""

    def result(self) -> Any:
        """Wait for the result; raise what the call raised, or `WorkerLostError`."""
        ...


class Actor(Protocol):
    """An object that lives with a worker."""

    def call(self, method: str, *args: Any) -> Reply:
        """Begin a call of a method; the arguments are copied to the worker.

        Parameters
        ----------
        method : str
            The name of the method.
        *args : object
            Its arguments.

        Returns
        -------
        Reply
            Its result.
        """
        ...

    def discard(self) -> None:
        """Let the worker forget the object; it may be lost already."""
        ...


class Engine(Protocol):
    """Workers that hold objects: a Dask cluster (`DaskEngine`), Ray (`RayEngine`) or processes (`ProcessEngine`)."""

    def workers(self) -> dict[str, int]:
        """Return the workers that answer now, and the threads of each."""
        ...

    def spawn(self, worker: str, factory: Callable[..., Any], *args: Any) -> Reply:
        """Begin to make an object with a worker; the reply's result is its `Actor`.

        Parameters
        ----------
        worker : str
            The worker.
        factory : callable
            A function or class of an importable module.
        *args : object
            Its arguments. Those that the engine computes, such as Dask's futures and delayed objects, also inside a
            list, are values by then.

        Returns
        -------
        Reply
            The actor.
        """
        ...

    def close(self) -> None:
        """Discard all objects, and end what the engine itself has started."""
        ...
