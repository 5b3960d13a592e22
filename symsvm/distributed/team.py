"""A team: one object for each part of the data, spread over the workers of an engine, built again where one is lost."""

from __future__ import annotations

import contextlib
import functools
import logging
import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from symsvm.distributed.engine import ClusterError, WorkerLostError
from symsvm.distributed.host import software

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from symsvm.distributed.engine import Engine

__all__ = ["Part", "Team", "Traffic", "payload"]

_LOG = logging.getLogger(__name__)
# Seconds to wait for a worker to join where none is left, and between two looks.
_PATIENCE, _POLL = 30.0, 0.5


class Part(NamedTuple):
    """How to make the object of a part: `factory(*args)`.

    Parameters
    ----------
    factory : callable
        A function or class of an importable module.
    args : tuple
        Its arguments; they are kept, to make the object again.
    worker : str or None
        The worker that has its data already, None if any is as good.
    """

    factory: Callable[..., Any]
    args: tuple[Any, ...] = ()
    worker: str | None = None


class Traffic:
    """What a team has sent and received.

    Attributes
    ----------
    calls : int
        Rounds of calls: those of all parts at once are one.
    sent, received : int
        Bytes of arrays in arguments and results.
    lost : int
        Objects that were lost and made again.
    waited : float
        Seconds between the first request of a round and its last reply.
    entries : array of int
        Values of the kernel that the workers have computed, in float32 and in float64.
    """

    def __init__(self) -> None:
        self.calls = self.sent = self.received = self.lost = 0
        self.waited, self.entries = 0.0, np.zeros(2, "int64")

    def summary(self) -> dict[str, Any]:
        """Return the numbers by their names.

        Returns
        -------
        dict
            The numbers.
        """
        return {**vars(self), "entries": self.entries.tolist()}


class Team:
    """One object for each part, with workers of an engine; calls go to all of them at once.

    An object whose worker is lost is made again with another worker, `restore(k)` is called for it, and the call that
    was under way is repeated: callers see the results only.

    Parameters
    ----------
    engine : Engine
        The workers.
    parts : sequence of Part
        The parts; one for each worker is usual, more are possible.
    restore : callable, optional
        A function of (k, call), called when the object of part k was made again, to bring it to the state that it had;
        `call(method, *args)` calls this object.

    Attributes
    ----------
    traffic : Traffic
        What was sent and received.
    """

    def __init__(
        self, engine: Engine, parts: Sequence[Part], restore: Callable[[int, Callable[..., Any]], None] | None = None
    ) -> None:
        self.engine, self._parts, self.restore, self.traffic = engine, list(parts), restore, Traffic()
        self._actors: list[Any] = [None] * len(self._parts)
        self._is_warned = False
        places = self._places()
        replies: list[Any] = []
        for part, worker in zip(self._parts, places, strict=True):
            try:
                replies.append(engine.spawn(worker, part.factory, *part.args))
            except WorkerLostError:
                replies.append(None)
        lost = []
        for k, reply in enumerate(replies):
            with contextlib.suppress(WorkerLostError):
                self._actors[k] = None if reply is None else self._greeted(reply.result())
            if self._actors[k] is None:
                lost.append(k)
        for k in lost:
            self._persist(k, lambda: None)

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def places(self) -> list[str]:
        """The worker of each part."""
        return [actor.worker for actor in self._actors]

    def call(self, method: str, *args: Any) -> list[Any]:
        """Call a method of every object with the same arguments, and return the results in the order of the parts.

        Parameters
        ----------
        method : str
            The name of the method.
        *args : object
            Its arguments.

        Returns
        -------
        list
            The results.
        """
        return self.call_each(method, [args] * len(self))

    def call_each(self, method: str, arguments: Sequence[tuple[Any, ...] | None]) -> list[Any]:
        """Call a method of every object with arguments of its own.

        Parameters
        ----------
        method : str
            The name of the method.
        arguments : sequence of (tuple or None)
            The arguments for each part; None asks nothing of a part.

        Returns
        -------
        list
            The results, None for parts that were not asked.
        """
        began, traffic = time.perf_counter(), self.traffic
        asked = [k for k, args in enumerate(arguments) if args is not None]
        replies = {k: self._actors[k].call(method, *(arguments[k] or ())) for k in asked}
        results: list[Any] = [None] * len(self)
        for k in asked:
            try:
                results[k] = replies[k].result()
            except WorkerLostError as error:
                _LOG.warning("part %d of %d: %s %s", k, len(self), error, error.__cause__ or "")
                results[k] = self._persist(k, lambda k=k: self._ask(k, method, *(arguments[k] or ())))
            traffic.sent += payload(arguments[k])
            traffic.received += payload(results[k])
        traffic.calls += bool(asked)
        traffic.waited += time.perf_counter() - began
        return results

    def calls(self) -> list[Callable[..., Any]]:
        """Return for each part a function (method, *args) that calls its object alone.

        Returns
        -------
        list of callable
            The functions.
        """
        return [functools.partial(self._ask, k) for k in range(len(self))]

    def close(self) -> None:
        """Let the workers forget the objects."""
        for actor in self._actors:
            if actor is not None:
                with contextlib.suppress(Exception):
                    actor.discard()
        self._actors = [None] * len(self)

    def _ask(self, k: int, method: str, *args: Any) -> Any:
        return self._actors[k].call(method, *args).result()

    def _persist(self, k: int, then: Callable[[], Any]) -> Any:
        """Make the object of a part again, bring it to its state, and go on; with other workers as they are lost."""
        for worker in self._candidates(k):
            try:
                if self._actors[k] is not None:
                    self._actors[k].discard()
                self.traffic.lost += 1
                part = self._parts[k]
                _LOG.warning("part %d of %d is loaded again by %s.", k, len(self), worker)
                self._actors[k] = self._greeted(self.engine.spawn(worker, part.factory, *part.args).result())
                if self.restore is not None:
                    self.restore(k, lambda method, *args: self._ask(k, method, *args))
                return then()
            except WorkerLostError:
                continue
        raise ClusterError(
            f"no worker is left for part {k} of {len(self)}: start workers, and fit again, from a checkpoint if "
            "there is one."
        )

    def _candidates(self, k: int) -> Iterator[str]:
        """Workers for a lost part, those with the fewest parts first; wait for one to join where none is left."""
        for _ in range(3 + len(self)):
            end = time.monotonic() + _PATIENCE
            while not (workers := list(self.engine.workers())):
                if time.monotonic() > end:
                    return
                time.sleep(_POLL)
            load = [actor.worker for i, actor in enumerate(self._actors) if i != k and actor is not None]
            yield min(workers, key=load.count)

    def _places(self) -> list[str]:
        """A worker for each part: the one that has its data, else the one with the fewest parts."""
        workers = list(self.engine.workers())
        if not workers:
            raise ClusterError("no worker answers: start workers before you fit.")
        places: list[str] = [part.worker for part in self._parts if part.worker in workers]  # pyright: ignore
        found = []
        for part in self._parts:
            if part.worker in workers:
                found.append(part.worker)
                continue
            found.append(min(workers, key=places.count))
            places.append(found[-1])
        return found

    def _greeted(self, actor: Any) -> Any:
        """The actor, if its worker computes as this process does."""
        here, there = software(), actor.ready().result()
        if here[:3] != there[:3]:
            names = "symsvm, NumPy and Numba"
            raise ClusterError(
                f"the worker {actor.worker} has other versions of {names} ({', '.join(there[:3])}) than this process "
                f"({', '.join(here[:3])}): install the same everywhere."
            )
        if here != there and not self._is_warned:
            self._is_warned = True
            warnings.warn(
                f"the worker {actor.worker} has another processor ({there.processor}) than this process "
                f"({here.processor}): results may differ in their last bits from those of other machines.",
                RuntimeWarning,
                stacklevel=2,
            )
        return actor


def payload(value: Any) -> int:
    """Return the bytes of the arrays in a value.

    >>> payload((1, [np.zeros(3), np.zeros(2, "int8")]))
    26
    """
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, (list, tuple)):
        return sum(map(payload, value))
    if hasattr(value, "tocsr"):
        return value.data.nbytes + value.indices.nbytes + value.indptr.nbytes
    return 0
