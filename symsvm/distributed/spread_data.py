"""Collections: data in blocks, and the engine whose workers load them."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from symsvm.distributed.spread_points import Block

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from symsvm._lib.types import Array
    from symsvm.distributed.engine import Engine

__all__ = ["ArrayBlock", "Collection", "FileLines", "MappedRows", "Spread", "spread"]


class Collection(Protocol):
    """Data in blocks, as estimators take them for X."""

    @property
    def shape(self) -> tuple[Any, ...]:
        """The rows and columns, NaN where they are not known."""
        ...

    def connect(self) -> AbstractContextManager[Engine]:
        """Return a context whose value is the engine."""
        ...

    def blocks(self, engine: Engine) -> Sequence[Block]:
        """Return the blocks, from top to bottom."""
        ...


@dataclass(frozen=True)
class ArrayBlock:
    """Some rows of an array in memory, which are sent to a worker.

    Attributes
    ----------
    X : array or CSR matrix
        The rows.
    """

    X: Any

    def load(self) -> Any:
        """Return the rows.

        Returns
        -------
        array or CSR matrix
            The rows.
        """
        return self.X


@dataclass(frozen=True)
class MappedRows:
    """Some rows of a memory-mapped array: a worker maps the file itself.

    Attributes
    ----------
    path : str
        The file.
    dtype : str
        The type of its numbers.
    shape : tuple of int
        The shape of the whole array.
    offset : int
        Where it begins in the file.
    order : {"C", "F"}
        Whether rows or columns are contiguous.
    start, stop : int
        The rows.
    """

    path: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    order: str
    start: int
    stop: int

    def load(self) -> Array:
        """Return the rows.

        Returns
        -------
        array
            A map of them, which takes no memory; what is written to it would not reach the file.
        """
        order: Any = self.order
        return np.memmap(self.path, self.dtype, "c", self.offset, self.shape, order)[self.start : self.stop]


@dataclass(frozen=True)
class FileLines:
    """Some lines of a LIBSVM file, those that begin between two places of it: points and labels.

    Attributes
    ----------
    path : str
        The file.
    start, stop : int
        The places.
    """

    path: str
    start: int
    stop: int

    is_open: ClassVar[bool] = True

    def load(self) -> Any:
        """Return the points and the labels.

        Returns
        -------
        tuple of (CSR matrix, array)
            Both.
        """
        from scipy.sparse import csr_matrix
        from sklearn.datasets import load_svmlight_file

        with open(self.path, "rb") as file:
            file.seek(max(0, self.start - 1))
            if self.start:
                file.readline()  # it belongs to the lines before, if it does not end just there
            begin = file.tell()
            if begin >= self.stop:
                return csr_matrix((0, 0)), np.zeros(0)
            file.seek(self.stop - 1)
            file.readline()
            end = file.tell()
            file.seek(begin)
            with tempfile.TemporaryFile() as lines:
                lines.write(file.read(end - begin))
                lines.seek(0)
                found: Any = load_svmlight_file(lines, zero_based=False)  # pyright: ignore[reportArgumentType]
                return found[0], found[1]


class Spread:
    """Data of this machine or of files, for the workers of an engine; `spread` makes one.

    Parameters
    ----------
    engine : Engine
        The workers.
    blocks : sequence of Block
        The blocks, from top to bottom.
    shape : tuple
        The rows and columns, NaN where they are not known.
    """

    ndim = 2

    def __init__(self, engine: Engine, blocks: Sequence[Block], shape: tuple[Any, ...]) -> None:
        self.engine, self._blocks, self.shape = engine, list(blocks), shape

    def connect(self) -> AbstractContextManager[Engine]:
        """Return a context whose value is the engine, which stays open.

        Returns
        -------
        context manager
            The context.
        """
        return contextlib.nullcontext(self.engine)

    def blocks(self, engine: Engine) -> Sequence[Block]:
        """Return the blocks, from top to bottom.

        Parameters
        ----------
        engine : Engine
            The engine.

        Returns
        -------
        list of Block
            The blocks.
        """
        return self._blocks


def spread(X: Any, engine: Engine, *, rows: int | None = None) -> Spread:
    """Spread points over the workers of an engine, for `fit` and `predict`.

    Parameters
    ----------
    X : array, memory-mapped array, CSR matrix, path of a file, or list of paths
        The points. Of an array that `np.load(path, mmap_mode="r")` returns, and of a file (.npy or LIBSVM), each worker
        reads its own rows: nothing is sent. Points of a LIBSVM file come with their labels, so that `fit` needs no y.
    engine : Engine
        The workers.
    rows : int, optional
        The rows of a block; by default there are a few blocks for each worker, one of a memory-mapped array.

    Returns
    -------
    Spread
        What estimators take for X.

    Examples
    --------
    >>> with ProcessEngine(2) as engine:  # doctest: +SKIP
    ...     model = SVC().fit(spread(np.load("X.npy", mmap_mode="r"), engine), y)
    """
    if not hasattr(engine, "spawn") or not hasattr(engine, "workers"):
        raise TypeError(f"engine must be a DaskEngine, ProcessEngine or RayEngine, got {engine!r}.")
    count = 4 * max(1, len(engine.workers()))
    if isinstance(X, (str, os.PathLike)) or (isinstance(X, (list, tuple)) and all(isinstance(x, str) for x in X)):
        paths: Any = [os.fspath(X)] if isinstance(X, (str, os.PathLike)) else list(X)
        return _of_files(paths, engine, rows, -(-count // len(paths)))
    X = X if isinstance(X, np.ndarray) or hasattr(X, "tocsr") else np.asarray(X)
    return _of_array(X, engine, rows, count)


def _of_array(X: Any, engine: Engine, rows: int | None, count: int) -> Spread:
    """The points of an array, in so many blocks, or in blocks of so many rows."""
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, got the shape {X.shape}.")
    m = X.shape[0]
    is_mapped = isinstance(X, np.memmap) and X.filename is not None and _is_whole(X)
    if is_mapped:  # one block for each worker, which is not copied
        count = max(1, len(engine.workers()))
    step = -(-m // count) if rows is None else rows
    cuts = range(0, m, max(1, step))
    if is_mapped:
        order = "C" if X.flags.c_contiguous else "F"
        mapped: Any = MappedRows
        given = os.path.abspath(str(X.filename)), X.dtype.str, X.shape, X.offset, order
        blocks = [Block(mapped(*given, i, min(m, i + step)), None, min(m, i + step) - i) for i in cuts]
    else:
        X = X if isinstance(X, np.ndarray) else X.tocsr()
        blocks = [Block(ArrayBlock(X[i : i + step]), None, min(m, i + step) - i) for i in cuts]
    return Spread(engine, blocks, X.shape)


def _is_whole(X: np.memmap) -> bool:
    """Whether a map is one of all of an array: a slice has the offset of the whole."""
    return (X.flags.c_contiguous or X.flags.f_contiguous) and not isinstance(X.base, np.memmap)


def _of_files(paths: list[str], engine: Engine, rows: int | None, count: int) -> Spread:
    """The points of files, each divided into so many blocks."""
    blocks: list[Block] = []
    for path in paths:
        if path.endswith(".npy"):
            blocks += spread(np.load(path, mmap_mode="r"), engine, rows=rows).blocks(engine)
            continue
        size = os.path.getsize(path)
        cuts = np.linspace(0, size, count + 1).astype("int64").tolist()
        blocks += [
            Block(FileLines(os.path.abspath(path), low, high), None, high - low)
            for low, high in itertools.pairwise(cuts)
            if high > low
        ]
    return Spread(engine, blocks, (np.nan, np.nan))
