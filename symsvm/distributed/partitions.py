"""Partitions: blocks of points with their targets and weights, and the parts of a team that are made of them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.distributed.dask_collection import is_dask
from symsvm.distributed.team import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from symsvm.distributed.spread_data import Collection

__all__ = ["cells", "make_parts", "pieces"]

MOST_CELLS = 64  # sums of parts are added one after another: so many of them at most


def pieces(name: str, values: Any, X: Any, counts: Sequence[int] | None, n_blocks: int) -> list[Any]:
    """Return a vector in the blocks of the points.

    Parameters
    ----------
    name : str
        What errors call it.
    values : dask.array, dask.dataframe.Series, array_like or None
        The vector; a collection stays one.
    X : object
        The points that it belongs to.
    counts : sequence of int or None
        The rows of each block, None if they are not known.
    n_blocks : int
        The number of blocks.

    Returns
    -------
    list
        A delayed object, an array or None for each block.
    """
    if values is None:
        return [None] * n_blocks
    if is_dask(values):
        return _delayed_pieces(name, values, X, counts, n_blocks)
    values = np.asarray(values)
    if counts is None:
        raise TypeError(f"{name} must be in partitions as X is, whose lengths are not known, or come with a file's X.")
    if values.shape != (sum(counts),):
        raise ValueError(f"{name} must have one entry for each of the {sum(counts)} points, got shape {values.shape}.")
    return np.split(values, np.cumsum(counts)[:-1])


def _delayed_pieces(name: str, values: Any, X: Any, counts: Sequence[int] | None, n_blocks: int) -> list[Any]:
    if not is_dask(X):
        raise TypeError(f"{name} must be an array in memory, or None, for points that are no collection of Dask.")
    if getattr(values, "ndim", 1) != 1:
        raise ValueError(f"{name} must be a vector, got two axes: pass one column of it.")
    if counts is not None and hasattr(values, "rechunk") and not np.isnan(values.chunks[0]).any():
        if sum(values.chunks[0]) != sum(counts):
            raise ValueError(f"{name} has {sum(values.chunks[0])} entries, and X has {sum(counts)} rows.")
        values = values.rechunk((tuple(counts),))
    found = np.ravel(values.to_delayed()).tolist()
    if len(found) != n_blocks:
        raise ValueError(f"{name} has {len(found)} partitions, and X has {n_blocks}: give both the same ones.")
    return found


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
    ends = np.linspace(0, n_blocks, min(n_blocks, MOST_CELLS) + 1).astype(int).tolist()
    return [range(low, high) for low, high in itertools.pairwise(ends)]


def make_parts(
    engine: Any, collection: Collection, X: Any, y: Any, sample_weight: Any, factory: Callable[..., Any], *args: Any
) -> list[Part]:
    """Return the parts of a team, each where its first points are.

    Parameters
    ----------
    engine : Engine
        The workers.
    collection : Collection
        The points in blocks.
    X : object
        The points as the user gave them.
    y, sample_weight : collection, array_like or None
        The targets and weights.
    factory : callable
        Makes the object of a part from a list of (points, targets, weights), `args`, and a name for errors.
    *args : object
        Its other arguments.

    Returns
    -------
    list of Part
        The parts, in the order of the blocks.
    """
    blocks = list(collection.blocks(engine))
    counts: Any = None
    if is_dask(X):
        counts = X.chunks[0] if hasattr(X, "chunks") and not np.isnan(X.chunks[0]).any() else None
    elif not any(getattr(block.data, "is_open", False) for block in blocks):
        counts = [block.count for block in blocks]
    vectors = [pieces(*each, X, counts, len(blocks)) for each in (("y", y), ("sample_weight", sample_weight))]
    parts = []
    for cell in cells(len(blocks)):
        name = f"partition {cell[0]}" if len(cell) == 1 else f"partitions {cell[0]} to {cell[-1]}"
        rows = [(blocks[i].data, *(vector[i] for vector in vectors)) for i in cell]
        parts.append(Part(factory, (rows, *args, name), blocks[cell[0]].worker))
    return parts
