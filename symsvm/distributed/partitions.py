"""Collections of Dask as partitions: blocks of points, targets and weights, computed and kept by the cluster."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.distributed.team import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["cells", "is_collection", "load", "map_rows", "match"]

MOST_CELLS = 64  # sums of partitions are added one after another: so many of them at most


def is_collection(X: Any) -> bool:
    """Return whether X is a Dask array or data frame.

    Parameters
    ----------
    X : object
        Any points.

    Returns
    -------
    bool
        True for a collection.
    """
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def match(X: Any, others: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the blocks of points, each with the same rows of other collections.

    Parameters
    ----------
    X : dask.array or dask.dataframe
        The points; columns of an array are put into one chunk.
    others : dict of str to (collection, ndarray or None)
        Vectors of the same length, by their names for errors. Their chunks become those of X, where these are known.

    Returns
    -------
    list of tuple
        For each block of rows the delayed points, and the delayed part of each vector or None.
    """
    known = None
    if hasattr(X, "chunks"):
        if X.ndim != 2:
            raise ValueError(f"X must have two axes, got {X.ndim}.")
        X = X if len(X.chunks[1]) == 1 else X.rechunk({1: -1})
        known = X.chunks[0] if not np.isnan(X.chunks[0]).any() else None
    columns = [list(np.ravel(X.to_delayed()))]
    columns += [_pieces(name, values, known, len(columns[0])) for name, values in others.items()]
    return list(zip(*columns, strict=True))


def _pieces(name: str, values: Any, known: Sequence[int] | None, n_blocks: int) -> list[Any]:
    """A vector in the blocks of the points."""
    if values is None:
        return [None] * n_blocks
    if is_collection(values):
        if getattr(values, "ndim", 1) == 2 and values.shape[1] == 1:
            raise ValueError(f"{name} must be a vector, got one column: pass {name}[:, 0], or one column of the frame.")
        if known is not None and hasattr(values, "rechunk") and not np.isnan(values.chunks[0]).any():
            if sum(values.chunks[0]) != sum(known):
                raise ValueError(f"{name} has {sum(values.chunks[0])} entries, and X has {sum(known)} rows.")
            values = values.rechunk((known,))
        pieces = list(np.ravel(values.to_delayed()))
        if len(pieces) != n_blocks:
            raise ValueError(f"{name} has {len(pieces)} partitions, and X has {n_blocks}: give both the same ones.")
        return pieces
    values = np.asarray(values)
    if known is None:
        raise TypeError(f"{name} must be a collection as X is, since the lengths of X's partitions are not known.")
    if values.shape != (sum(known),):
        raise ValueError(f"{name} must have one entry for each of the {sum(known)} points, got shape {values.shape}.")
    return np.split(values, np.cumsum(known)[:-1])


def cells(n_blocks: int) -> list[range]:
    """Return groups of consecutive blocks, at most 64, whatever the number of workers is.

    Parameters
    ----------
    n_blocks : int
        The number of blocks.

    Returns
    -------
    list of range
        The blocks of each group.

    Examples
    --------
    >>> [list(cell) for cell in cells(3)], len(cells(1000)), cells(1000)[0]
    ([[0], [1], [2]], 64, range(0, 15))
    """
    ends = np.linspace(0, n_blocks, min(n_blocks, MOST_CELLS) + 1).astype(int)
    return [range(low, high) for low, high in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]


def load(engine: Any, blocks: Sequence[tuple[Any, ...]], factory: Callable[..., Any], *args: Any) -> list[Part]:
    """Let the cluster compute blocks, and return the parts of a team, each where its first points are.

    Parameters
    ----------
    engine : DaskEngine
        The cluster.
    blocks : sequence of tuple
        What `match` returns.
    factory : callable
        Makes the object of a part from a list of blocks, `args`, and a name for errors.
    *args : object
        Its other arguments.

    Returns
    -------
    list of Part
        The parts, in the order of the blocks.
    """
    from distributed import wait

    delayed = [piece for block in blocks for piece in block if hasattr(piece, "__dask_graph__")]
    found = dict(zip(map(id, delayed), engine.client.compute(delayed), strict=True))
    wait(list(found.values()))
    futures = [tuple(found.get(id(piece), piece) for piece in block) for block in blocks]
    places = engine.client.who_has([future for future, *_ in futures])
    parts = []
    for cell in cells(len(blocks)):
        workers = sorted(places.get(futures[cell[0]][0].key, ()))
        name = f"partition {cell[0]}" if len(cell) == 1 else f"partitions {cell[0]} to {cell[-1]}"
        parts.append(Part(factory, ([futures[i] for i in cell], *args, name), workers[0] if workers else None))
    return parts


def map_rows(X: Any, model: Any, method: str, dtype: Any, n_columns: int | None = None) -> Any:
    """Return a method of a fitted model, applied to each partition of a collection by the worker that computes it.

    Parameters
    ----------
    X : dask.array or dask.dataframe
        The points.
    model : estimator
        The model; its solutions are not sent.
    method : str
        The method: of points, returning one value for each, or a row.
    dtype : dtype
        The type of the values.
    n_columns : int, optional
        The length of a row; None for one value.

    Returns
    -------
    dask.array
        The values, in the chunks of X.
    """
    light = copy.copy(model)
    for name in ("solutions_", "_monitor"):
        vars(light).pop(name, None)
    shape = () if n_columns is None else (n_columns,)
    meta = np.empty((0, *shape), dtype=dtype)
    if hasattr(X, "chunks"):
        X = X if len(X.chunks[1]) == 1 else X.rechunk({1: -1})
        options: dict[str, Any] = {"drop_axis": 1} if n_columns is None else {"chunks": (X.chunks[0], shape)}
        return X.map_blocks(_apply, light, method, dtype=dtype, meta=meta, **options)
    import dask.array as da

    pieces: Iterable[Any] = (
        da.from_delayed(_delayed(part, light, method), (np.nan, *shape), meta=meta) for part in X.to_delayed()
    )
    return da.concatenate(list(pieces), allow_unknown_chunksizes=True)


def _delayed(part: Any, model: Any, method: str) -> Any:
    from dask import delayed

    return delayed(_apply)(part, model, method)


def _apply(block: Any, model: Any, method: str) -> Any:
    """Apply a method to a block, which may have no rows."""
    if block.shape[0]:
        return getattr(model, method)(block)
    one = getattr(model, method)(np.zeros((1, block.shape[1])))
    return one[:0]
