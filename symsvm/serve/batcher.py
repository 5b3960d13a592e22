"""Batcher: what arrives while the model is busy is predicted together.

Nobody waits for company: a batch is what is there when the last one is done, so that a lone request goes at once and
a crowd shares the fixed cost of a prediction. One thread predicts; compiled functions are not made for two.
"""

import asyncio
import collections
import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from symsvm.serve.problem import Problem
from symsvm.serve.served import Unanswerable
from symsvm.serve.slot import Loaded

__all__ = ["Batcher"]

# Characters of a text that count as a row more.
_LONG = 1024


@dataclass(frozen=True)
class _Job:
    """Some rows of a request from `start` on, for the model that the request began with."""

    loaded: Loaded
    inputs: list
    start: int
    weight: int
    future: Any


class Batcher:
    """Predicts in batches, in a thread of its own, from `start` to `stop`."""

    def __init__(self, slot, settings, metrics):
        self.slot, self.settings, self.metrics = slot, settings, metrics
        self._jobs, self._waiting = collections.deque(), 0
        self.executor = self._task = self._arrived = None

    def start(self):
        """Start the thread and the loop that feeds it."""
        self.executor = ThreadPoolExecutor(1, thread_name_prefix="predictions")
        self._arrived = asyncio.Event()
        self._task = asyncio.create_task(self._feed())

    async def stop(self):
        """End both; whoever still waits is told that the service stops."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        while self._jobs:
            job = self._jobs.popleft()
            if not job.future.done():
                job.future.set_exception(_stopped())
        await asyncio.to_thread(self.executor.shutdown)

    @property
    def running(self):
        """Whether predictions are made."""
        return self._task is not None and not self._task.done()

    # ---- requests

    async def predict(self, inputs, field="rows[{}]".format):
        """The model and its answers for the rows of a request, a list of parts of at most `max_batch` rows.

        `field` is what the request calls row i, for the problem with one that has no answer.
        Parts come one after the other, so that a large request lets small ones pass.
        """
        loaded, parts = self.slot.current, []
        with self._waits(len(inputs)):
            for start, end, weight in _cuts(inputs, self.settings.max_batch):
                future = asyncio.get_running_loop().create_future()
                self._jobs.append(_Job(loaded, inputs[start:end], start, weight, future))
                self._arrived.set()
                try:
                    parts.append(await future)
                except Unanswerable as error:
                    raise _too_large(field(error.index)) from None
        return loaded, parts

    async def explain(self, entry, terms):
        """The model, its prediction for one row and the terms of its decisions."""
        loaded = self.slot.current
        with self._waits(1):
            loop = asyncio.get_running_loop()
            return loaded, *await loop.run_in_executor(self.executor, _explained, loaded.served, entry, terms)

    @contextlib.contextmanager
    def _waits(self, rows):
        """While rows wait, if not too many do; a request that is larger than the limit may come alone."""
        if not self.running:
            raise _stopped()
        if self._waiting and self._waiting + rows > self.settings.max_waiting:
            raise Problem(503, "busy", "too many rows wait for the model: try again.", headers={"retry-after": "1"})
        self._waiting += rows
        self.metrics.waiting.set(self._waiting)
        try:
            yield
        finally:
            self._waiting -= rows
            self.metrics.waiting.set(self._waiting)

    # ---- batches

    async def _feed(self):
        while True:
            await self._arrived.wait()
            await self._answer(self._take())  # nothing of a batch is held here: it would hold a replaced model, too
            if not self._jobs:
                self._arrived.clear()

    async def _answer(self, batch):
        if not batch:
            return
        started = time.perf_counter()
        results = await asyncio.get_running_loop().run_in_executor(self.executor, _predicted, batch)
        self.metrics.busy.observe(time.perf_counter() - started)
        rows = sum(len(job.inputs) for job in batch)
        self.metrics.batches.observe(rows)
        self.metrics.rows.inc(rows)
        for job, result in zip(batch, results, strict=True):
            if not job.future.done():  # the client may have gone
                (job.future.set_exception if isinstance(result, Exception) else job.future.set_result)(result)

    def _take(self):
        """The next jobs for one model, up to the size of a batch."""
        batch, weight = [], 0
        while self._jobs:
            job = self._jobs[0]
            weight += job.weight
            if batch and (weight > self.settings.max_batch or job.loaded is not batch[0].loaded):
                break
            self._jobs.popleft()
            if not job.future.done():  # the client may have gone
                batch.append(job)
        return batch


def _cuts(inputs, most):
    """(start, end, weight) of the parts of a request: a row weighs 1, a text more by its length.

    >>> list(_cuts(["a", "b", "c" * 3000, "d"], 2))
    [(0, 2, 2), (2, 3, 3), (3, 4, 1)]
    """
    start = weight = 0
    for i, entry in enumerate(inputs):
        more = 1 + len(entry) // _LONG if isinstance(entry, str) else 1
        if i > start and weight + more > most:
            yield start, i, weight
            start, weight = i, 0
        weight += more
    yield start, len(inputs), weight


def _stopped():
    return Problem(503, "stopping", "the service stops.", headers={"retry-after": "1"})


def _predicted(batch):
    """The answers of each job, or what went wrong with it."""
    served = batch[0].loaded.served
    try:
        answers, start, found = served.predict([row for job in batch for row in job.inputs]), 0, []
    except Exception as error:  # which job's fault it was is found out below
        if len(batch) > 1:
            return [_predicted([job])[0] for job in batch]
        return [Unanswerable(batch[0].start + error.index) if isinstance(error, Unanswerable) else error]
    for job in batch:
        found.append(answers[start : start + len(job.inputs)])
        start += len(job.inputs)
    return found


def _explained(served, entry, terms):
    try:
        return served.explain(entry, terms)
    except Unanswerable:
        raise _too_large("row") from None


def _too_large(field):
    return Problem(422, "too_large", f"{field}: the model has no finite answer for such numbers.", field=field)
