"""Dask: actors of a cluster that a client is connected to."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
import uuid
from typing import TYPE_CHECKING, Any

from symsvm._lib.extras import import_extra
from symsvm.distributed.engine import ClusterError, StaleObjectError, WorkerLostError
from symsvm.distributed.host import Host

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DaskEngine", "active_client"]

# Seconds between two looks at a worker that has not answered yet.
_POLL = 1.0
# Looks that find the same heartbeat before a worker is silent.
_LOOKS = 10
# Seconds for the scheduler to answer, and for a worker that is asked whether it can be reached directly.
_SCHEDULER, _REACH = 10.0, 3.0


def active_client() -> Any:
    """Return the Dask client that is active, None if there is none or Dask is not installed."""
    import sys

    if "distributed" not in sys.modules:  # nobody has made a client
        return None
    import distributed

    try:
        return distributed.default_client()
    except ValueError:
        return None


class DaskEngine:
    """The workers of a Dask cluster; objects are Dask actors, which answer over connections of their own.

    Tasks on the dashboard are named `symsvm-...` after what they make.

    Parameters
    ----------
    client : distributed.Client or str, optional
        The client, or the address of a scheduler; the active client by default.
    silence : float
        Seconds without a heartbeat after which a worker counts as lost.
    """

    def __init__(self, client: Any = None, *, silence: float = 30.0) -> None:
        distributed = import_extra("distributed", "DaskEngine")
        client = active_client() if client is None else client
        if client is None:
            raise ClusterError(
                "DaskEngine: there is no active Dask client; make one, distributed.Client(address) for example."
            )
        address, options = (client, {}) if isinstance(client, str) else (client.scheduler.address, _options(client))
        self.silence, self._number = silence, itertools.count()
        # The last heartbeat of each worker, when it was noticed here, and how often it was the last one since.
        self._heard: dict[str, tuple[float, float, int]] = {}
        self._actors: set[Any] = set()
        # A client of its own: calls go to the workers directly, and the user's client stays as it is.
        self.client = distributed.Client(
            address, name="symsvm", set_as_default=False, direct_to_workers=True, timeout=_SCHEDULER, **options
        )
        self._is_direct = all(self._can_reach(worker) for worker in list(self.workers())[:1])

    def workers(self) -> dict[str, int]:
        """Return the workers that answer now, and the threads of each.

        Returns
        -------
        dict
            Addresses and threads, in the order of the addresses.
        """
        now, found = time.monotonic(), {}
        for address, worker in sorted(self._identity()["workers"].items()):
            beat = worker["last_seen"]  # by the scheduler's clock
            last, noticed, looks = self._heard.get(address, (None, now, 0))
            self._heard[address] = (beat, now, 0) if last != beat else (beat, noticed, looks + 1)
            # This process, or the scheduler, may itself have been silent between two looks.
            if now - self._heard[address][1] <= self.silence or self._heard[address][2] < _LOOKS:
                found[address] = worker["nthreads"]
        return found

    def spawn(self, worker: str, factory: Callable[..., Any], *args: Any) -> Any:
        """Begin to make an object with a worker.

        Parameters
        ----------
        worker : str
            The worker's address.
        factory : callable
            Makes the object.
        *args : object
            Its arguments; futures and delayed objects, also in lists, are computed before.

        Returns
        -------
        Reply
            The actor.
        """
        threads = self.workers().get(worker)
        if threads is None:
            raise WorkerLostError(f"the worker {worker} does not answer.")
        token, name = uuid.uuid4().hex, getattr(factory, "__name__", "object").lower()
        future = self.client.submit(
            Host,
            token,
            threads,
            factory,
            self._begun(args, worker),
            key=f"symsvm-{name}-{next(self._number)}-{token[:8]}",
            workers=[worker],
            allow_other_workers=False,
            actor=True,
            pure=False,
        )
        return _Birth(self, future, worker, token)

    def _begun(self, value: Any, worker: str) -> Any:
        """Arguments whose delayed objects, also in lists, are being computed by this worker."""
        if type(value) in (list, tuple):
            return [self._begun(each, worker) for each in value]
        if hasattr(value, "__dask_graph__"):
            return self.client.compute(value, workers=[worker], allow_other_workers=True)
        return value

    def execute(self, worker: str, actor: str, function: str, args: tuple[Any, ...]) -> Any:
        """Begin a call of a method of a Dask actor.

        Parameters
        ----------
        worker : str
            The worker's address.
        actor : str
            The key of the actor.
        function : str
            The method.
        args : tuple
            Its arguments.

        Returns
        -------
        concurrent.futures.Future
            The answer of the worker, a dictionary.
        """
        from distributed.protocol import to_serialize

        message = {"function": function, "actor": actor, "args": [to_serialize(arg) for arg in args], "kwargs": {}}
        client = self.client

        async def execute():
            if self._is_direct:
                return await client.rpc(worker).actor_execute(**message)
            return await client.scheduler.proxy(worker=worker, msg={"op": "actor_execute", **message})

        return asyncio.run_coroutine_threadsafe(execute(), client.loop.asyncio_loop)

    def _can_reach(self, worker: str) -> bool:
        """Whether the worker's address can be reached from here; else messages go by way of the scheduler."""

        async def ask():
            return await asyncio.wait_for(self.client.rpc(worker).identity(), _REACH)

        try:
            self.client.sync(ask)
        except Exception:
            return False
        return True

    def is_alive(self, worker: str) -> bool:
        """Whether a worker has sent a heartbeat lately.

        Parameters
        ----------
        worker : str
            The worker's address.

        Returns
        -------
        bool
            True if it has.
        """
        return worker in self.workers()

    def register(self, actor: Any, is_there: bool) -> None:
        """Note that an actor is there, or that it is not any more.

        Parameters
        ----------
        actor : DaskActor
            The actor.
        is_there : bool
            Whether it is.
        """
        (self._actors.add if is_there else self._actors.discard)(actor)

    def close(self) -> None:
        """Discard all objects, and close the connections; the cluster stays."""
        for actor in list(self._actors):
            actor.discard()
        with contextlib.suppress(Exception):
            self.client.close(timeout=2)

    def __enter__(self) -> DaskEngine:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _identity(self) -> Any:
        """What the scheduler knows of its workers."""
        try:
            return self.client.sync(self.client.scheduler.identity, n_workers=-1, callback_timeout=_SCHEDULER)
        except Exception as error:
            raise ClusterError(
                "the Dask scheduler does not answer: start it again, and fit again, from a checkpoint if there is one."
            ) from error


def _options(client: Any) -> dict[str, Any]:
    """The options of a client that another one for the same cluster needs."""
    return {"security": client.security}


class _Birth:
    """The reply to `spawn`."""

    def __init__(self, engine, future, worker, token):
        self._engine, self._future, self._worker, self._token = engine, future, worker, token

    def result(self):
        """Wait for the actor."""
        engine, future = self._engine, self._future
        while True:
            try:
                future.result(timeout=_POLL)
                return _DaskActor(engine, future, self._worker, self._token)
            except TimeoutError:
                if not engine.is_alive(self._worker):
                    future.cancel()
                    raise _lost(self._worker) from None
            except Exception as error:
                if _is_loss(error) or not engine.is_alive(self._worker):
                    future.cancel()
                    raise _lost(self._worker) from error
                raise


class _DaskActor:
    """An object with a Dask worker."""

    def __init__(self, engine, future, worker, token):
        self._engine, self._future, self.worker, self._token = engine, future, worker, token
        engine.register(self, True)

    def call(self, method, *args):
        """Begin a call of a method."""
        return self._execute("call", self._token, method, args)

    def ready(self):
        """Ask what the worker computes with."""
        return self._execute("ready")

    def _execute(self, function, *args):
        future = self._engine.execute(self.worker, self._future.key, function, args)
        return _DaskReply(self._engine, future, self.worker)

    def discard(self):
        """Let the worker forget the object."""
        self._engine.register(self, False)
        with contextlib.suppress(Exception):
            self._future.release()


class _DaskReply:
    """The reply to a call."""

    def __init__(self, engine, future, worker):
        self._engine, self._future, self._worker = engine, future, worker

    def result(self):
        """Wait for the result, as long as the worker has a heartbeat."""
        while True:
            try:
                answer = self._future.result(timeout=_POLL)
                break
            except TimeoutError as error:
                if self._future.done():  # since then, or by a time limit of a connection
                    if isinstance(self._future.exception(), TimeoutError):
                        raise _lost(self._worker) from error
                elif not self._engine.is_alive(self._worker):
                    self._future.cancel()
                    raise _lost(self._worker) from error
            except Exception as error:
                if _is_loss(error) or not self._engine.is_alive(self._worker):
                    raise _lost(self._worker) from error
                raise
        if answer["status"] == "OK":
            return answer["result"]
        error = answer["exception"]
        if isinstance(error, StaleObjectError):
            raise _lost(self._worker) from error
        raise error


def _lost(worker: str) -> WorkerLostError:
    return WorkerLostError(f"the worker {worker} was lost.")


def _is_loss(error: BaseException) -> bool:
    """Whether an error says that a worker, or an object of it, is not there."""
    from distributed import CancelledError, KilledWorker
    from distributed.comm import CommClosedError

    if isinstance(error, KeyError):  # the worker does not know the actor
        return "symsvm-" in str(error)
    lost = (ConnectionError, CommClosedError, KilledWorker, CancelledError, StaleObjectError)
    return type(error) is OSError or isinstance(error, lost)
