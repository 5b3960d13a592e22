"""Ray: actors of a cluster that `ray.init` has connected to."""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Any

from symsvm._lib.extras import import_extra
from symsvm.distributed.engine import StaleObjectError, WorkerLostError
from symsvm.distributed.host import Host

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["RayEngine"]

# Seconds between two looks at a worker that has not answered yet.
_POLL = 5.0


class RayEngine:
    """So many actors on a Ray cluster; Ray decides where they are.

    Parameters
    ----------
    count : int
        The number of workers.
    threads : int
        The cores of each.

    Attributes
    ----------
    actors : set
        The actors that are there.
    """

    def __init__(self, count: int, *, threads: int = 1) -> None:
        self.ray = import_extra("ray", "RayEngine")
        if not self.ray.is_initialized():
            raise RuntimeError("RayEngine: Ray is not connected; call ray.init() first.")
        self.count, self.threads = count, threads
        self._remote = self.ray.remote(Host)
        self.actors: set[Any] = set()

    def workers(self) -> dict[str, int]:
        """Return the workers and the threads of each; Ray starts a lost one again.

        Returns
        -------
        dict
            Names and threads.
        """
        return {f"ray-{k}": self.threads for k in range(self.count)}

    def spawn(self, worker: str, factory: Callable[..., Any], *args: Any) -> Any:
        """Begin to make an object.

        Parameters
        ----------
        worker : str
            The worker.
        factory : callable
            Makes the object.
        *args : object
            Its arguments.

        Returns
        -------
        Reply
            The actor.
        """
        token = uuid.uuid4().hex
        options = {"num_cpus": self.threads, "max_restarts": 0, "max_concurrency": 1}
        handle = self._remote.options(**options).remote(token, self.threads, factory, args)
        actor = _RayActor(self, handle, worker, token)
        self.actors.add(actor)
        return _RayReply(self.ray, handle.ready.remote(), actor)

    def forget(self, actor: Any) -> None:
        """End an actor.

        Parameters
        ----------
        actor : object
            The actor.
        """
        self.actors.discard(actor)
        with contextlib.suppress(Exception):
            self.ray.kill(actor.handle)

    def close(self) -> None:
        """End all actors; the cluster stays."""
        for actor in list(self.actors):
            actor.discard()

    def __enter__(self) -> RayEngine:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _RayActor:
    """An object with a Ray worker."""

    def __init__(self, engine, handle, worker, token):
        self._engine, self.handle, self.worker, self._token = engine, handle, worker, token

    def call(self, method, *args):
        """Begin a call of a method."""
        return _RayReply(self._engine.ray, self.handle.call.remote(self._token, method, args))

    def ready(self):
        """Ask what the worker computes with."""
        return _RayReply(self._engine.ray, self.handle.ready.remote())

    def discard(self):
        """End the actor."""
        self._engine.forget(self)


class _RayReply:
    """The reply to a call; of a birth, the actor."""

    def __init__(self, ray, reference, actor=None):
        self._ray, self._reference, self._actor = ray, reference, actor

    def result(self):
        """Wait for the result."""
        errors = self._ray.exceptions
        while True:
            try:
                value = self._ray.get(self._reference, timeout=_POLL)
                return value if self._actor is None else self._actor
            except errors.GetTimeoutError:
                continue  # Ray itself finds out whether a node is lost
            except (errors.RayActorError, StaleObjectError) as error:
                raise WorkerLostError("a Ray worker was lost.") from error
            except errors.RayTaskError as error:
                cause = error.cause if isinstance(getattr(error, "cause", None), BaseException) else error
                raise cause from error
