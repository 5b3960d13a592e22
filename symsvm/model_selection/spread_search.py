"""Searches over the workers of an engine: each keeps the points and the matrices that its fits share.

A task is what threads of one process run, a path of fits over one kernel matrix in one fold for example
(`SearchPlan`). Every worker has the same plan and is told which tasks to run. A worker that is free takes the next task
of the matrix that it has; without one, the first of a matrix that nobody has begun, else one of the matrix with the
most tasks left. Scores do not depend on who runs what. Tasks of a worker that is lost are run by others.
"""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from sklearn.exceptions import ConvergenceWarning

from symsvm.distributed import ClusterError, DaskEngine, WorkerLostError
from symsvm.model_selection.executor import run_tasks, stopping_on_ctrl_c
from symsvm.model_selection.search_plan import SearchPlan
from symsvm.model_selection.tuning_result import Scoreboard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from symsvm.distributed import Engine

__all__ = ["SearchRound", "SearchWorker", "engine_of", "run_spread"]

# Seconds between two looks for new workers, and to wait for one where none is left.
_POLL, _PATIENCE = 0.5, 30.0


class SearchRound(NamedTuple):
    """A round of a search, as workers receive it.

    Attributes
    ----------
    estimator : estimator
        The estimator or pipeline.
    X, y : object
        The points, and their targets or None.
    cells : list of dict
        The parameters of each cell.
    folds : list of tuple
        Pairs (train, test) of row numbers.
    scoring : str, callable or None
        The scoring.
    memory : float
        The bytes that matrices may take on a worker.
    """

    estimator: Any
    X: Any
    y: Any
    cells: list[dict[str, Any]]
    folds: list[tuple[Any, Any]]
    scoring: Any
    memory: float


class SearchWorker:
    """Runs tasks of a search, with a worker."""

    def begin(self, number: int, threads: int, *parts: Any) -> list[list[int]]:
        """Plan a round.

        Parameters
        ----------
        number : int
            The number of the round; one that was planned before is not planned again.
        threads : int
            The threads of the worker.
        *parts : object
            A `SearchRound`.

        Returns
        -------
        list of list of int
            The tasks, by the matrix that they share.
        """
        from symsvm.model_selection.grid_search import make_scorer

        part = SearchRound(*parts)
        score, is_plain = make_scorer(part.estimator, part.scoring)
        options = {"is_plain": is_plain, "workers": threads, "memory": part.memory}
        self._plan = SearchPlan(part.estimator, part.X, part.y, part.cells, part.folds, score, **options)
        self._shape, self._matrix = (part.cells, len(part.folds)), None
        groups: dict[int, list[int]] = {}
        for index, task in enumerate(self._plan.tasks):
            groups.setdefault(id(getattr(task, "matrix", task)), []).append(index)
        return list(groups.values())

    def run(self, indices: list[int]) -> list[tuple[Any, ...]]:
        """Run tasks that share a matrix, side by side as far as there are threads.

        Parameters
        ----------
        indices : list of int
            The tasks.

        Returns
        -------
        list of tuple
            The arguments of `Scoreboard.record`, for each fit.
        """
        tasks = [self._plan.tasks[index] for index in indices]
        matrix = getattr(tasks[0], "matrix", None)
        if self._matrix is not None and self._matrix is not matrix:
            self._matrix.drop()
        self._matrix = matrix
        board = _Records(*self._shape)
        if len(tasks) == 1:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                tasks[0].run(board)
        else:
            run_tasks(tasks, board, len(tasks), len(tasks))
        return board.records


class _Records(Scoreboard):
    """What the fits of some tasks have recorded."""

    def __init__(self, cells: list[dict[str, Any]], folds: int) -> None:
        super().__init__(cells, folds)
        self.records: list[tuple[Any, ...]] = []

    def record(self, cell, fold, score, status, seconds, error=None, measured=None):
        self.records.append((cell, fold, score, status, seconds, error, measured))
        super().record(*self.records[-1])


@contextlib.contextmanager
def engine_of(client: Any) -> Iterator[Engine]:
    """Give the engine of a client for the length of a block.

    Parameters
    ----------
    client : distributed.Client, str or Engine
        A Dask client, the address of a scheduler, or an engine, which stays open.

    Yields
    ------
    Engine
        The engine.
    """
    if hasattr(client, "spawn") and hasattr(client, "workers"):
        yield client
        return
    if not isinstance(client, str) and not hasattr(client, "scheduler"):
        raise TypeError(
            f"client must be a distributed.Client, the address of a scheduler or an engine, got {client!r}."
        )
    with DaskEngine(client) as engine:
        yield engine


class _Schedule:
    """Which tasks are left, and who has begun which matrix."""

    def __init__(self) -> None:
        self._groups: list[list[int]] | None = None
        self._owners: list[set[str]] = []
        self._lock = threading.Lock()
        self.running = 0

    def learn(self, groups: list[list[int]]) -> None:
        """Take the plan of the first worker; those of the others are the same."""
        with self._lock:
            if self._groups is None:
                self._groups, self._owners = [list(group) for group in groups], [set() for _ in groups]

    @property
    def is_done(self) -> bool:
        """Whether all tasks have ended."""
        with self._lock:
            return self._groups is not None and not any(self._groups) and not self.running

    def take(self, worker: str, count: int) -> list[int]:
        """Tasks for a worker: of its own matrix, of a new one, or of the one with the most left."""
        with self._lock:
            groups = self._groups or []
            left = [k for k, group in enumerate(groups) if group]
            if not left:
                return []
            own = [k for k in left if worker in self._owners[k]]
            fresh = [k for k in left if not self._owners[k]]
            k = own[-1] if own else fresh[0] if fresh else max(left, key=lambda k: len(groups[k]))
            self._owners[k].add(worker)
            taken, groups[k] = groups[k][:count], groups[k][count:]
            self.running += len(taken)
            return taken

    def end(self, tasks: list[int], worker: str, *, is_lost: bool) -> None:
        """Note that tasks have ended, or that their worker is lost."""
        with self._lock:
            self.running -= len(tasks)
            if is_lost:
                for owners in self._owners:
                    owners.discard(worker)
                if self._groups is not None and tasks:
                    self._groups.append(tasks)
                    self._owners.append(set())


def run_spread(engine: Engine, part: SearchRound, scores: Scoreboard) -> None:
    """Run a round of a search on the workers of an engine; workers that join later take part.

    Parameters
    ----------
    engine : Engine
        The workers.
    part : SearchRound
        The round.
    scores : Scoreboard
        Where scores are recorded. After `stop`, and after Ctrl-C, no task begins; those under way are waited for.
    """
    schedule, errors, threads, seen = _Schedule(), [], [], set()

    def serve(worker: str, n_threads: int) -> None:
        taken: list[int] = []
        actor: Any = None
        try:
            actor = engine.spawn(worker, SearchWorker).result()
            schedule.learn(actor.call("begin", 0, n_threads, *part).result())
            while not scores.is_stopped and not schedule.is_done:
                taken = schedule.take(worker, n_threads)
                if not taken:
                    time.sleep(_POLL / 10)  # a task of a worker that is lost may come back
                    continue
                for record in actor.call("run", taken).result():
                    scores.record(*record)
                done, taken = taken, []
                schedule.end(done, worker, is_lost=False)
        except WorkerLostError:
            schedule.end(taken, worker, is_lost=True)
            seen.discard(worker)
        except BaseException as error:  # the waiting thread raises it
            errors.append(error)
            scores.stop()
        finally:
            if actor is not None:
                actor.discard()

    with stopping_on_ctrl_c(scores):
        try:
            alone = time.monotonic()
            while not schedule.is_done and not scores.is_stopped:
                for worker, n_threads in engine.workers().items():
                    if worker not in seen:
                        seen.add(worker)
                        threads.append(threading.Thread(target=serve, args=(worker, n_threads), daemon=True))
                        threads[-1].start()
                alone = time.monotonic() if any(thread.is_alive() for thread in threads) else alone
                if time.monotonic() - alone > _PATIENCE:
                    raise ClusterError("no worker answers: start workers, and search again.")
                _wait(threads, _POLL)
        except KeyboardInterrupt:
            scores.stop()
        finally:
            while any(thread.is_alive() for thread in threads):
                _wait(threads, _POLL)
    if errors:
        raise errors[0]


def _wait(threads: list[threading.Thread], seconds: float) -> None:
    """Wait until all threads have ended, or some time has passed."""
    end = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    if not threads:
        time.sleep(seconds / 10)
