"""Points that live with workers: a handle that knows who has which row, and keeps copies of rows that it asked for."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from symsvm.distributed.engine import ClusterError
from symsvm.distributed.point_blocks import stack
from symsvm.distributed.team import Part, Team
from symsvm.distributed.worker_rows import Rows
from symsvm.evaluation.thin_points import is_thin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from symsvm._lib.types import Array
    from symsvm.distributed.engine import Engine

__all__ = ["Block", "PointStore", "SpreadPoints"]


class Block(NamedTuple):
    """Some rows of a collection, one below another.

    Attributes
    ----------
    data : object
        What `Rows` takes: an array, or what becomes one where a worker is asked for it.
    worker : str or None
        The worker that has it already, None if any is as good.
    count : int
        Its rows, as far as they are known: blocks are shared out by these.
    """

    data: Any
    worker: str | None = None
    count: int = 1


class PointStore:
    """Copies of some rows, found by their indices; the copies of a row are made once.

    Parameters
    ----------
    m : int
        The number of rows that there are.

    Examples
    --------
    >>> store = PointStore(5)
    >>> store.add(np.array([4, 1]), np.array([[4.0], [1.0]]))
    >>> store.missing(np.array([1, 2])).tolist(), store.take(np.array([1, 4])).tolist()
    ([2], [[1.0], [4.0]])
    """

    def __init__(self, m: int) -> None:
        self._slot = np.full(m, -1, "int32")
        self._chunks: list[Any] = []
        self._count = 0

    def missing(self, indices: Array) -> Array:
        """Return those of the indices whose rows are not here, each once.

        Parameters
        ----------
        indices : array of int
            The indices.

        Returns
        -------
        array of int
            Those that are missing, in order.
        """
        return np.unique(indices[self._slot[indices] < 0])

    def add(self, indices: Array, X: Any) -> None:
        """Keep rows.

        Parameters
        ----------
        indices : array of int
            Their indices, none of which is here yet.
        X : array or CSR matrix
            The rows.
        """
        self._slot[indices] = np.arange(self._count, self._count + len(indices))
        self._count += len(indices)
        self._chunks.append(X)
        while len(self._chunks) > 1 and 2 * self._chunks[-1].shape[0] > self._chunks[-2].shape[0]:
            last = self._chunks.pop()
            self._chunks[-1] = _below(self._chunks[-1], last)

    def take(self, indices: Array) -> Any:
        """Return rows that are here.

        Parameters
        ----------
        indices : array of int
            Their indices.

        Returns
        -------
        array or CSR matrix
            The rows, in this order.
        """
        slots = self._slot[indices]
        if len(self._chunks) == 1:
            return self._chunks[0][slots]
        starts = np.cumsum([0] + [chunk.shape[0] for chunk in self._chunks])
        owner = np.searchsorted(starts, slots, side="right") - 1
        order, pieces = np.argsort(owner, kind="stable"), []
        for k in np.unique(owner):
            pieces.append(self._chunks[k][slots[owner == k] - starts[k]])
        back = np.empty(len(order), dtype="int64")
        back[order] = np.arange(len(order))
        X = pieces[0] if len(pieces) == 1 else _below(*pieces)
        return X[back]


class SpreadPoints:
    """The points of a collection, each with one of the workers.

    Parameters
    ----------
    connect : callable
        Returns a context whose value is the `Engine`, when points are loaded; the context ends with `close`.
    blocks : callable
        Returns the `Block` objects of the collection from top to bottom, for an engine.

    Attributes
    ----------
    shape, dtype : tuple of int, dtype
        Those of all points together.
    is_sparse : bool
        Whether they are CSR.
    """

    def __init__(
        self,
        connect: Callable[[], AbstractContextManager[Engine]],
        blocks: Callable[[Engine], Sequence[Block]],
    ) -> None:
        self._connect, self._blocks = connect, blocks
        self._upkeep: list[Callable[[int, Callable[..., Any]], None]] = []
        self._numbers = itertools.count()
        self._team: Team | None = None
        self._open()

    def _open(self) -> Team:
        """Load the points, anew after `close`."""
        self._context = self._connect()
        engine = self._context.__enter__()
        try:
            blocks = self._blocks(engine)
            groups = _groups(engine, blocks)
            parts = [Part(Rows, ([blocks[i].data for i in group],), worker) for worker, group in groups]
            self._is_described = False
            self._team = Team(engine, parts, self._restore)
            self._describe([group for _, group in groups])
            self._is_described = True
            for restore in self._upkeep:
                for k, actor in enumerate(self._team.calls()):
                    restore(k, actor)
        except BaseException:
            self.close()
            raise
        return self._team

    @property
    def team(self) -> Team:
        """The objects that hold the points; they are loaded again if they were closed."""
        return self._open() if self._team is None else self._team

    def close(self) -> None:
        """Let the workers forget the points."""
        team, self._team = self._team, None
        if team is not None:
            team.close()
        self._store = PointStore(0)
        self._context.__exit__(None, None, None)

    def _describe(self, groups: list[list[int]]) -> None:
        """Check the blocks, put them together, and note who holds which row."""
        found: dict[int, tuple[int, Any]] = {}
        assert self._team is not None
        for k, summaries in enumerate(self._team.call("summaries")):
            found |= {i: (k, summary) for i, summary in zip(groups[k], summaries, strict=True)}
        order = [found[i] for i in sorted(found)]
        summaries = [summary for _, summary in order]
        widths = sorted({summary.shape[1] for summary in summaries if not summary.is_open})
        widths = widths or [max((summary.shape[1] for summary in summaries), default=0)]
        if len(widths) > 1:
            raise ValueError(f"X must have the same columns in all partitions, got {widths[0]} and {widths[-1]}.")
        low = 0
        for i, summary in enumerate(summaries):
            if summary.not_finite >= 0:
                raise ValueError(
                    f"X must be finite, got NaN or infinity in row {low + summary.not_finite} (partition {i}): remove "
                    "such rows, or impute their values."
                )
            low += summary.shape[0]
        if not low or not widths[0]:
            raise ValueError(f"X must have at least one row and one column, got the shape {(low, widths[0])}.")
        self.shape = low, widths[0]
        self.dtype = np.dtype("float32" if all(s.dtype == "float32" for s in summaries) else "float64")
        self.is_sparse = any(summary.is_sparse for summary in summaries)
        self.entries = sum(summary.entries for summary in summaries)
        self.extremes = min(s.least for s in summaries if s.shape[0]), max(s.most for s in summaries if s.shape[0])
        part, row = np.empty(low, "int32"), np.empty(low, "int32")
        before, low = [0] * len(self._team), 0
        for k, summary in order:
            high = low + summary.shape[0]
            part[low:high], row[low:high] = k, np.arange(before[k], before[k] + high - low)
            before[k] += high - low
            low = high
        self.part, self.row = part, row
        self._store = PointStore(low)
        self.has_labels = all(summary.has_labels for summary in summaries)
        self._unite = str(self.dtype), self.is_sparse, self.shape[1]
        self._team.call("unite", *self._unite)

    @property
    def ndim(self) -> int:
        """2."""
        return 2

    def __len__(self) -> int:
        return self.shape[0]

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Have the points with the workers inside the block; they are loaded for it if need be."""
        is_closed = self._team is None
        try:
            yield
        finally:
            if is_closed and self._team is not None:
                self.close()

    def number(self) -> int:
        """Return a number for a kernel matrix or a run.

        Returns
        -------
        int
            A new one.
        """
        return next(self._numbers)

    @property
    def as_sparse(self) -> bool:
        """Whether kernels take the points as CSR: where most features of dense ones are 0, as in one process."""
        return self.is_sparse or is_thin(self.shape, self.entries)

    @property
    def width(self) -> float:
        """The features that a value of a kernel costs."""
        m, d = self.shape
        return self.entries / m if self.as_sparse else float(d)

    def take(self, rows: Array) -> Any:
        """Return copies of some of the points, which their workers send once.

        Parameters
        ----------
        rows : array of int
            Their indices.

        Returns
        -------
        array or CSR matrix
            The points.
        """
        team = self.team
        missing = self._store.missing(rows)
        if len(missing):
            owners = self.part[missing]
            wanted = [missing[owners == k] for k in range(len(team))]
            found = team.call_each("take", [(self.row[some],) if len(some) else None for some in wanted])
            pieces = [piece for piece in found if piece is not None]
            indices = np.concatenate([some for some in wanted if len(some)])
            self._store.add(indices, stack(pieces, str(self.dtype), self.is_sparse, self.shape[1]))
        return self._store.take(rows)

    def labels(self) -> Array:
        """Return the labels that were loaded with the points.

        Returns
        -------
        array of shape (m,)
            The labels.
        """
        if not self.has_labels:
            raise ValueError("y must be given: not all partitions have labels of their own.")
        parts = self.team.call("labels")
        total = np.empty(len(self), np.result_type(*parts))
        for k, values in enumerate(parts):
            total[self.part == k] = values
        return total

    def sums(self) -> Array:
        """Return the sum of each row.

        Returns
        -------
        array of shape (m,)
            The sums.
        """
        return self._gathered(self.team.call("sums"))

    def squares(self, mean: float) -> Array:
        """Return the sum of (x - mean)^2 of each row.

        Parameters
        ----------
        mean : float
            What is subtracted.

        Returns
        -------
        array of shape (m,)
            The sums.
        """
        return self._gathered(self.team.call("squares", mean))

    def apply(self, method: str, model: Any) -> Array:
        """Return what a method of a fitted model gives for each row.

        Parameters
        ----------
        method : str
            The name of the method.
        model : object
            The model.

        Returns
        -------
        array
            One value, or one row, for each row.
        """
        parts = self.team.call("call", method, model)
        total = np.empty((len(self), *parts[0].shape[1:]), parts[0].dtype)
        for k, values in enumerate(parts):
            total[self.part == k] = values
        return total

    def keep_up(self, restore: Callable[[int, Callable[..., Any]], None]) -> Callable[[], None]:
        """Call a function for a part that was lost and loaded again; return a function that ends this.

        Parameters
        ----------
        restore : callable
            A function of (part, call).

        Returns
        -------
        callable
            Ends it.
        """
        self._upkeep.append(restore)
        return lambda: self._upkeep.remove(restore) if restore in self._upkeep else None

    def _gathered(self, parts: list[Array]) -> Array:
        """Values of all rows, in their order, from those of the parts."""
        total = np.empty(len(self))
        for k, values in enumerate(parts):
            total[self.part == k] = values
        return total

    def _restore(self, k: int, call: Callable[..., Any]) -> None:
        if not self._is_described:
            return
        call("unite", *self._unite)
        for restore in list(self._upkeep):
            restore(k, call)


def _below(*pieces: Any) -> Any:
    """Pieces one below another."""
    return sparse.vstack(pieces, format="csr") if sparse.issparse(pieces[0]) else np.concatenate(pieces)


def _groups(engine: Engine, blocks: Sequence[Block]) -> list[tuple[str | None, list[int]]]:
    """Blocks that are one part: those of one worker; others go, neighbours together, to workers with fewer rows."""
    workers = list(engine.workers())
    if not workers:
        raise ClusterError("no worker answers: start workers before you fit.")
    load, groups = dict.fromkeys(workers, 0), {worker: list[int]() for worker in workers}
    share, rest = sum(block.count for block in blocks) / len(workers), []
    for i, block in enumerate(blocks):
        if block.worker in groups:
            groups[block.worker].append(i)
            load[block.worker] += block.count
        else:
            rest.append(i)
    for i in rest:
        count = blocks[i].count
        worker = next((w for w in workers if load[w] + count / 2 <= share), min(workers, key=load.__getitem__))
        groups[worker].append(i)
        load[worker] += count
    return [(worker, sorted(group)) for worker, group in groups.items() if group]
