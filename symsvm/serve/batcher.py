"""Micro-batches: rows that arrive while the model is busy are predicted together.

A batch is what is waiting when the previous batch is done. A single request therefore starts at once, and many requests
share the fixed cost of a prediction. One thread predicts, because compiled functions are not made for two.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from symsvm.serve.http_requests import RETRY, RequestError
from symsvm.serve.served_model import NonFiniteDecision, Predictions, ServedModel

if TYPE_CHECKING:
    from symsvm.serve.metrics import Metrics
    from symsvm.serve.model_slot import LoadedModel, ModelSlot
    from symsvm.serve.settings import Settings

__all__ = ["Batcher"]

# A text counts as one row more for each so many characters.
_CHARACTERS_PER_ROW = 1024


@dataclass(frozen=True)
class _Job:
    """Rows of a request from `start` on, for the model that the request began with."""

    loaded: LoadedModel
    inputs: list[Any]
    start: int
    weight: int
    future: asyncio.Future[Predictions]


class Batcher:
    """Predicts in batches, in one thread, from `start` to `stop`.

    Attributes
    ----------
    executor : ThreadPoolExecutor or None
        The thread that predicts; None before `start`.
    waiting : int
        The number of rows that wait for the model.
    """

    def __init__(self, slot: ModelSlot, settings: Settings, metrics: Metrics) -> None:
        assert settings.max_waiting is not None
        self.slot, self.metrics = slot, metrics
        self.max_batch, self.max_waiting = settings.max_batch, settings.max_waiting
        self.executor: ThreadPoolExecutor | None = None
        self.waiting = 0
        self._jobs: collections.deque[_Job] = collections.deque()
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> ThreadPoolExecutor:
        """Start the thread and the task that feeds it; return the thread's executor."""
        self.executor = ThreadPoolExecutor(1, thread_name_prefix="predictions")
        self._arrived = asyncio.Event()
        self._task = asyncio.create_task(self._feed(self.executor))
        return self.executor

    async def stop(self) -> None:
        """Stop both; requests that still wait get status 503."""
        assert self._task is not None
        assert self.executor is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        while self._jobs:
            job = self._jobs.popleft()
            if not job.future.done():
                job.future.set_exception(_stopping_error())
        await asyncio.to_thread(self.executor.shutdown)

    @property
    def running(self) -> bool:
        """Whether predictions are made."""
        return self._task is not None and not self._task.done()

    # ---- requests

    async def predict(
        self, inputs: list[Any], field: Callable[[int], str] = "rows[{}]".format
    ) -> tuple[LoadedModel, list[Predictions]]:
        """The model and its predictions for the rows of a request, in parts of at most `max_batch` rows.

        `field(i)` names row i in the error for a row without a finite decision value. Parts are queued one after the
        other, so that small requests are answered between the parts of a large one.
        """
        loaded, parts = self.slot.current, []
        with self._counted(len(inputs)):
            for start, end, weight in _split(inputs, self.max_batch):
                future = asyncio.get_running_loop().create_future()
                self._jobs.append(_Job(loaded, inputs[start:end], start, weight, future))
                self._arrived.set()
                try:
                    parts.append(await future)
                except NonFiniteDecision as error:
                    raise _non_finite_error(field(error.index)) from None
        return loaded, parts

    async def explain(self, entry: Any, terms: int) -> tuple[LoadedModel, dict[str, Any], list[dict[str, Any]]]:
        """The model, its prediction for one row and the terms of its decisions."""
        loaded = self.slot.current
        with self._counted(1):
            loop = asyncio.get_running_loop()
            return loaded, *await loop.run_in_executor(self.executor, _explain, loaded.served, entry, terms)

    @contextlib.contextmanager
    def _counted(self, rows: int) -> Iterator[None]:
        """Count rows as waiting, or refuse them if too many wait; a request beyond the limit passes if none waits."""
        if not self.running:
            raise _stopping_error()
        if self.waiting and self.waiting + rows > self.max_waiting:
            raise RequestError(503, "busy", "too many rows wait for the model: try again.", headers=RETRY)
        self.waiting += rows
        self.metrics.waiting.set(self.waiting)
        try:
            yield
        finally:
            self.waiting -= rows
            self.metrics.waiting.set(self.waiting)

    # ---- batches

    async def _feed(self, executor: ThreadPoolExecutor) -> None:
        while True:
            await self._arrived.wait()
            # No variable here refers to a batch: it would keep a replaced model alive until the next one.
            await self._run(executor, self._next_batch())
            if not self._jobs:
                self._arrived.clear()

    async def _run(self, executor: ThreadPoolExecutor, batch: list[_Job]) -> None:
        if not batch:
            return
        started = time.perf_counter()
        results = await asyncio.get_running_loop().run_in_executor(executor, _predict, batch)
        self.metrics.batch_seconds.observe(time.perf_counter() - started)
        rows = sum(len(job.inputs) for job in batch)
        self.metrics.batch_rows.observe(rows)
        self.metrics.rows.inc(rows)
        for job, result in zip(batch, results, strict=True):
            if job.future.done():  # the client may have disconnected
                continue
            if isinstance(result, Exception):
                job.future.set_exception(result)
            else:
                job.future.set_result(result)

    def _next_batch(self) -> list[_Job]:
        """Take the next jobs for one model, up to the size of a batch."""
        batch: list[_Job] = []
        weight = 0
        while self._jobs:
            job = self._jobs[0]
            weight += job.weight
            if batch and (weight > self.max_batch or job.loaded is not batch[0].loaded):
                break
            self._jobs.popleft()
            if not job.future.done():  # the client may have disconnected
                batch.append(job)
        return batch


def _split(inputs: list[Any], max_batch: int) -> Iterator[tuple[int, int, int]]:
    """(start, end, weight) of the parts of a request: a row weighs 1, a text more by its length.

    >>> list(_split(["a", "b", "c" * 3000, "d"], 2))
    [(0, 2, 2), (2, 3, 3), (3, 4, 1)]
    """
    start = weight = 0
    for i, entry in enumerate(inputs):
        more = 1 + len(entry) // _CHARACTERS_PER_ROW if isinstance(entry, str) else 1
        if i > start and weight + more > max_batch:
            yield start, i, weight
            start, weight = i, 0
        weight += more
    yield start, len(inputs), weight


def _predict(batch: list[_Job]) -> list[Predictions | Exception]:
    """The predictions for each job, or its exception."""
    try:
        predictions = batch[0].loaded.served.predict([row for job in batch for row in job.inputs])
    except Exception as error:
        if len(batch) > 1:  # predicted one by one, only the job at fault fails
            return [_predict([job])[0] for job in batch]
        return [NonFiniteDecision(batch[0].start + error.index) if isinstance(error, NonFiniteDecision) else error]
    results: list[Predictions | Exception] = []
    start = 0
    for job in batch:
        results.append(predictions[start : start + len(job.inputs)])
        start += len(job.inputs)
    return results


def _explain(served: ServedModel, entry: Any, terms: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    try:
        return served.explain(entry, terms)
    except NonFiniteDecision:
        raise _non_finite_error("row") from None


def _stopping_error() -> RequestError:
    return RequestError(503, "stopping", "the service is stopping.", headers=RETRY)


def _non_finite_error(field: str) -> RequestError:
    message = f"{field}: the model has no finite decision value for numbers of this size."
    return RequestError(422, "too_large", message, field=field)
