"""The loops of `tiles`, compiled by Numba and run in parts, on all cores if there is enough work for them."""

from __future__ import annotations

import functools
import hashlib
import inspect
from typing import TYPE_CHECKING, Any, Literal

import numba
import numpy as np

from symsvm._lib.code_cache import njit
from symsvm._lib.compat import compile_source
from symsvm._lib.threads import core_count, in_parts
from symsvm.compiler.ops import sparse_distances, tiles, vector_math
from symsvm.compiler.ops.squared_distances import CANCELLATION
from symsvm.compiler.ops.tiles import LOOP_OPTIONS, SEPARATOR, TileSource, loop_globals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from symsvm._lib.types import Array
    from symsvm.compiler.ops.scalar_function import ScalarFunction

__all__ = ["TileLoops", "compile_tiles", "run_tiles"]

# Columns of a panel, rows of a chunk, and rows of a chunk with more features than `_WIDE`: a panel and the sums of such
# a chunk fit a cache of 512 kB.
_COLUMNS, _ROWS, _WIDE_ROWS, _WIDE = 512, 512, 128, 128
# The number of chunks that few rows are divided into, so that many cores have work.
_CHUNKS = 16
# Entries of a panel with all features of sparse points, and of all panels of a group together.
_SPARSE_PANEL, _GROUP = 2**17, 2**22
# Multiplications up to which one core is faster than several: others take longer to wake up.
_SHORT = 2**24


class TileLoops:
    """The loops of one Op, for any points.

    Parameters
    ----------
    source : TileSource
        The source of the loops.
    part : callable
        The compiled function `tiles` of it.
    key : str
        The key under which code that calls the loops is cached.
    """

    def __init__(self, source: TileSource, part: Callable[..., None], key: str):
        self.source, self.part, self.key = source, part, key
        self._position = {name: k for k, name in enumerate(source.names)}

    def __call__(self, rows: Array, ids: Array, *more: Any) -> None:
        """Evaluate K of the chosen rows and columns: `more` are the data, q and out. Shapes are not checked."""
        data, m, n = more[:-2], len(rows), len(ids)
        widths = [self._width(c, data) for c in range(len(self.source.storage))]
        is_wide = any(d > _WIDE and self._is_dense(c) for c, d in enumerate(widths))
        sparse = [d for c, d in enumerate(widths) if not self._is_dense(c)]
        step = min(_WIDE_ROWS if is_wide else _ROWS, max(4, 4 * -(-m // (4 * _CHUNKS))))
        # Where one side is sparse, a panel has all features; else only as many as fit the cache.
        columns = max(8, min(_COLUMNS, _SPARSE_PANEL // max(1, *sparse))) if sparse else _COLUMNS
        panels = max(1, min(-(-n // columns), _GROUP // max(1, columns * sum(widths))))
        packed = self._packed(widths, panels, columns)
        alone = core_count() == 1 or m * n * self._cost(widths, data) < _SHORT
        for first in range(0, n, panels * columns):
            last = min(n, first + panels * columns)
            shared = (step, first, last, columns, rows, ids, *more, *packed)
            self._run(-(-(last - first) // columns), -(-m // step), shared, alone)

    def _run(self, panels, chunks, shared, alone):
        """Pack the panels of a group, then run the chunks: in one call, or both in parts."""
        if alone:
            self.part(0, panels, 0, chunks, *shared)
        else:
            in_parts(lambda first, last: self.part(first, last, 0, 0, *shared), panels)
            in_parts(lambda first, last: self.part(0, 0, first, last, *shared), chunks)

    def _is_dense(self, c):
        return self.source.storage[c] == ("dense", "dense")

    def _width(self, c, data):
        """The number of features of a channel."""
        return data[self._position[f"A{c}"]].shape[1] if self._is_dense(c) else int(data[self._position[f"d{c}"]])

    def _packed(self, widths, panels, columns):
        """Empty panels for a group of columns, in the order of `TileSource.packed_names`."""
        dtype, arrays = self.source.epilogue.dtype, []
        for c, d in enumerate(widths):
            arrays.append(np.empty((panels, d, columns), dtype))
            if self.source.is_distance[c]:
                arrays.append(np.empty((panels, columns), dtype))
                arrays += [] if self.source.weights[c] else [np.ones(d, dtype)]
        return arrays

    def _cost(self, widths, data):
        """The approximate multiplications of an entry: its features, and ten for the rest."""
        cost = 10.0
        for c, d in enumerate(widths):
            if self.source.storage[c][0] == "csr":
                x, start = (data[self._position[f"A{c}_{name}"]] for name in ("x", "start"))
                cost += len(x) / max(1, len(start) - 1)
            else:
                cost += d
        return cost


def compile_tiles(
    epilogue: ScalarFunction,
    hs: Sequence[ScalarFunction],
    n_rows: int,
    n_columns: int,
    n_numbers: int,
    result: Literal["block", "matvec", "features"],
    storage: Sequence[tuple[str, str]] | None = None,
    f: tuple[int, ScalarFunction] | None = None,
) -> TileLoops:
    """Return the compiled loops, the same for the same arguments.

    Parameters
    ----------
    epilogue, hs : ScalarFunction, sequence of ScalarFunction
        The function e and those of the channels.
    n_rows, n_columns, n_numbers : int
        How many vectors u, vectors v and numbers theta the epilogue takes.
    result : {"block", "matvec", "features"}
        What is computed from K.
    storage : sequence of (str, str), optional
        For each channel how A and B are stored, "dense" (the default) or "csr".
    f : tuple of (int, ScalarFunction), optional
        For `features`, the index of a channel and the function of (a_ik, b_jk, w_k).

    Returns
    -------
    TileLoops
        The loops, which are compiled when they are first called.
    """
    storage = (("dense", "dense"),) * len(hs) if storage is None else storage
    return _compile(epilogue, tuple(hs), n_rows, n_columns, n_numbers, result, tuple(storage), f)


@functools.cache
def _compile(epilogue, hs, n_rows, n_columns, n_numbers, result, storage, f):
    source = TileSource(epilogue, hs, n_rows, n_columns, n_numbers, result, storage, f)
    text = source.text()
    key = hashlib.sha256((text + _HELPER_SOURCE).encode()).hexdigest()
    scope = loop_globals(epilogue.dtype)
    # Inner functions first: each is compiled into the loop that calls it.
    parts = text.split(SEPARATOR)
    for part in parts[:-1]:
        function = compile_source(part, _function_name(part), dict(scope))
        scope[_function_name(part)] = numba.njit(function, **LOOP_OPTIONS)
    function = compile_source(parts[-1], "tiles", scope, f"symsvm_{key}")
    _LOOPS[key] = TileLoops(source, njit(function, cache=True, nogil=True, **LOOP_OPTIONS), key)
    return _LOOPS[key]


def run_tiles(key: str, *args: Any) -> None:
    """Call loops by their key, from compiled code, which cannot hold the object."""
    _LOOPS[key](*args)


_LOOPS: dict[str, TileLoops] = {}


# The compiled code depends on the helpers in these modules too, so that their source is part of the key.
_HELPER_SOURCE = (
    "".join(inspect.getsource(module) for module in (tiles, vector_math, sparse_distances))
    + repr(CANCELLATION)
    + numba.__version__
)


def _function_name(source):
    return source.partition("def ")[2].partition("(")[0]
