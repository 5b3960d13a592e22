"""Dask's arrays and data frames as collections: blocks stay with the workers that have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.distributed.dask_engine import DaskEngine, active_client
from symsvm.distributed.engine import ClusterError
from symsvm.distributed.spread_points import Block

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["DaskCollection", "apply_to_blocks", "is_dask", "is_frame", "local_array"]


def is_dask(X: Any) -> bool:
    """Return whether an object is a collection of Dask.

    >>> is_dask(np.zeros(3))
    False
    """
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def is_frame(X: Any) -> bool:
    """Return whether a collection of Dask is a data frame.

    >>> is_frame(np.zeros(3))
    False
    """
    return hasattr(X, "map_partitions") and hasattr(X, "columns")


class DaskCollection:
    """A `dask.array` or `dask.dataframe`, for the active client.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        The collection.
    """

    ndim = 2

    def __init__(self, X: Any) -> None:
        if not is_frame(X):
            if X.ndim != 2:
                raise ValueError(f"X must have rows and columns, got a dask.array of {X.ndim} dimensions.")
            if X.numblocks[1] > 1:
                X = X.rechunk({1: -1})
        self._X, self.shape = X, (np.nan, len(X.columns) if is_frame(X) else X.shape[1])

    def connect(self) -> DaskEngine:
        """Return an engine for the active client.

        Returns
        -------
        DaskEngine
            A context, which closes it.
        """
        if active_client() is None:
            raise ClusterError(
                "the points of this model are in a Dask collection: make the client active that has them, "
                "distributed.Client(address) for example."
            )
        return DaskEngine()

    def blocks(self, engine: Any) -> Sequence[Block]:
        """Return the blocks, from top to bottom, with the workers that have them.

        Parameters
        ----------
        engine : DaskEngine
            The engine.

        Returns
        -------
        list of Block
            The blocks; their data are delayed objects.
        """
        from distributed import futures_of

        delayed = np.ravel(self._X.to_delayed()).tolist()
        counts = [1] * len(delayed) if is_frame(self._X) else [1 if np.isnan(n) else int(n) for n in self._X.chunks[0]]
        holders: list[Any] = [None] * len(delayed)
        futures = futures_of(self._X)
        if futures:
            where = engine.client.sync(engine.client.scheduler.who_has, keys=[future.key for future in futures])
            where = {str(key): sorted(workers) for key, workers in where.items()}
            for i, block in enumerate(delayed):
                keys = {str(block.key), *(str(future.key) for future in futures_of(block))}
                found = [worker for key in sorted(keys) for worker in where.get(key, ())]
                holders[i] = max(found, key=found.count) if found else None
        return [Block(block, worker, count) for block, worker, count in zip(delayed, holders, counts, strict=True)]


def local_array(y: Any) -> Any:
    """Return labels or weights as an array in memory; a collection of Dask is computed.

    >>> local_array([1, 2])
    [1, 2]
    """
    if not is_dask(y):
        return y
    values = np.asarray(y.compute())
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def apply_to_blocks(X: Any, model: Any, method: str) -> Any:
    """Return a collection with what a method of a fitted model gives for each row of another.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        The points.
    model : object
        The model.
    method : str
        The name of the method.

    Returns
    -------
    dask.array.Array, dask.dataframe.Series or DataFrame
        One value, or one row, for each row of X; a frame keeps its index.
    """
    import dask

    sample = _apply(_one_row(X) if is_frame(X) else np.zeros((1, X.shape[1])), model, method)
    lazy = dask.delayed(model, pure=False, traverse=False)
    if is_frame(X):
        import pandas

        meta: Any = pandas.Series(sample[:0]) if sample.ndim == 1 else pandas.DataFrame(sample[:0])
        return X.map_partitions(_apply_to_frame, lazy, method, meta=meta)
    import dask.array

    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    blocks = np.ravel(X.to_delayed()).tolist()
    call = dask.delayed(_apply, name=f"symsvm-{method}", pure=False)
    pieces = [
        dask.array.from_delayed(call(block, lazy, method), (count, *sample.shape[1:]), dtype=sample.dtype)
        for block, count in zip(blocks, X.chunks[0], strict=True)
    ]
    return dask.array.concatenate(pieces, axis=0, allow_unknown_chunksizes=True)


def _one_row(frame: Any) -> Any:
    """A row of zeros with the columns of a frame."""
    import pandas

    return pandas.DataFrame(np.zeros((1, len(frame.columns))), columns=frame.columns)


def _apply(block: Any, model: Any, method: str) -> Any:
    return getattr(model, method)(block)


def _apply_to_frame(block: Any, model: Any, method: str) -> Any:
    import pandas

    values = _apply(block, model, method) if len(block) else _apply(_one_row(block), model, method)[:0]
    return (pandas.Series if values.ndim == 1 else pandas.DataFrame)(values, index=block.index)
