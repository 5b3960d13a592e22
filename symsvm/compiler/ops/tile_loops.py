"""The loops of `tiles`, compiled by Numba and run in parts, on all cores if there is enough work for them."""

from __future__ import annotations

import functools
import hashlib
import inspect
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numba
import numpy as np

from symsvm._lib.code_cache import njit
from symsvm._lib.compat import compile_source
from symsvm._lib.heap import LINE, aligned_empty
from symsvm._lib.threads import core_count, in_parts
from symsvm.compiler.ops import feature_sums, product_distances, scratch, sparse_sums, tiles, vector_math
from symsvm.compiler.ops.panels import dense_norms, pack, pack_csr, row_norms
from symsvm.compiler.ops.sparse_sums import STRIP
from symsvm.compiler.ops.squared_distances import CANCELLATION
from symsvm.compiler.ops.tiles import FEATURES, INNER, SEPARATOR, TileSource, loop_globals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from symsvm._lib.types import Array
    from symsvm.compiler.ops.scalar_function import ScalarFunction

__all__ = ["Kept", "TileLoops", "compile_tiles", "run_tiles"]

# What is kept from call to call over the same data: norms of sparse rows, and the panels of the last columns: those of
# strips, and others where "columns stay".
Kept: TypeAlias = dict[Any, Any]

# Columns of a panel, rows of a chunk, and rows of a chunk with more than `FEATURES`: a panel and the sums of such a
# chunk fit a cache of 512 kB.
_COLUMNS, _ROWS, _WIDE_ROWS = 512, 512, 256
# The number of chunks that few rows are divided into, so that many cores have work.
_CHUNKS = 8
# Entries of a panel with all features of sparse points, of one of strips, and of all panels of a group together.
_SPARSE_PANEL, _STRIPS, _GROUP = 2**17, 2**20, 2**22
# Entries of a row in the features of strips that are added up at a time, on average, and the most of these features:
# their strip fits the second cache.
_STRIP_ENTRIES, _STRIP_FEATURES = 12, 2048
# Groups of strips that are kept: problems of two classes come back to the points of both.
_KEPT = 3
# Features from which a panel has few columns.
_LONG = 192
# Multiplications up to which one core is faster than several: others take longer to wake up.
_SHORT = 2**23


class _Plan(NamedTuple):
    """How the loops run over given data: features of each channel, whether any has strips, whether chunks have many
    rows, columns of a panel, features of strips that are added up at a time, multiplications of an entry."""

    widths: list[int]
    has_strips: bool
    is_wide: bool
    columns: int
    features: int
    cost: float


class TileLoops:
    """The loops of one Op, for any points.

    `data` are the arrays and numbers of the points, in the order of `parameter_names`. Shapes are not checked. A
    dictionary `kept` belongs to one list of data: what depends on these alone is computed once.

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
        self._dtype, self._position = source.epilogue.dtype, {name: k for k, name in enumerate(source.names)}
        self._no_product, self._no_block = np.empty((0, 0), self._dtype), np.empty((0, 0), self._dtype)
        self._no_total, self._lanes = np.empty((0, 0)), LINE // np.dtype(self._dtype).itemsize

    def block(self, rows: Array, columns: Array, data: Sequence[Any], out: Array, kept: Kept | None = None) -> None:
        """out_ij = K_ij of the chosen rows and columns."""
        self._run(rows, columns, data, (self._no_product, out, self._no_total), kept)

    def matvec(
        self, rows: Array, columns: Array, data: Sequence[Any], q: Array, out: Array, kept: Kept | None = None
    ) -> None:
        """out_ir += sum_j K_ij q_rj over the chosen columns, in float64."""
        self._run(rows, columns, data, (q, self._no_block, out), kept)

    def features(self, rows: Array, columns: Array, data: Sequence[Any], out: Array) -> None:
        """out_ik += sum_j K_ij f(a_ik, b_jk) over the chosen columns, in float64, of loops that have an f."""
        self._run(rows, columns, data, (self._no_product, self._no_block, out), None)

    def _run(self, rows, ids, data, wanted, kept):
        kept = {} if kept is None else kept
        m, n, channels = len(rows), len(ids), range(len(self.source.storage))
        plan = kept.get("plan")
        if plan is None:
            plan = kept["plan"] = self._plan(data)
        widths, strips = plan.widths, plan.has_strips
        step = min(_WIDE_ROWS if plan.is_wide else _ROWS, max(4, 4 * -(-m // (4 * _CHUNKS))))
        columns = plan.columns if strips else min(plan.columns, -(-max(1, n) // self._lanes) * self._lanes)
        panels = max(1, min(-(-n // columns), _GROUP // max(1, columns * sum(widths))))
        packed = next((these for some, these in kept.get("panels", ()) if np.array_equal(some, ids)), None)
        is_packed = packed is not None
        if packed is None:
            packed = [self._packed(c, data, d, panels, columns, kept) for c, d in enumerate(widths)]
        features = plan.features
        shared = [array for arrays in packed for array in arrays]
        alone = m * n * plan.cost < _SHORT or core_count() == 1
        in_turn = (lambda work, count: work(0, count)) if alone else in_parts
        for first in range(0, n, panels * columns):
            last = min(n, first + panels * columns)
            sizes = step, first, last, columns, features

            def pack(low, high, first=first):
                for c in channels:
                    self._pack(c, data, ids, first, low, high, packed[c], kept)

            def run(low, high, sizes=sizes):
                self.part(low, high, *sizes, rows, ids, *data, *wanted, *shared)

            if not is_packed:
                in_turn(pack, -(-(last - first) // columns))
            in_turn(run, -(-m // step))
        size = sum(arrays[0].size for arrays in packed)
        if (strips or kept.get("columns stay")) and not is_packed and n <= panels * columns and size <= _GROUP:
            kept["panels"] = (ids.copy(), packed), *kept.get("panels", ())[: _KEPT - 1]

    def _plan(self, data):
        """What depends on the data alone."""
        widths = [self._width(c, data) for c in range(len(self.source.storage))]
        strips = [c for c in range(len(widths)) if self.source.has_strips(c)]
        is_wide = any(d > FEATURES and self.source.is_dense(c) for c, d in enumerate(widths))
        features = min([self._features(c, data, widths[c]) for c in strips], default=0)
        cost = self._cost(widths, data)
        columns = self._columns(widths)
        if not strips and max(widths, default=0) >= _LONG:  # what is in registers at a time is read from end to end
            columns = min(columns, 4 * self._lanes)
        return _Plan(widths, bool(strips), bool(strips) or is_wide, columns, features, cost)

    def _columns(self, widths):
        """The columns of a panel; one with all features, where a side is sparse, has only as many as fit the cache."""
        columns, strips = _COLUMNS, False
        for c, d in enumerate(widths):
            if self.source.has_strips(c):
                columns, strips = min(columns, _STRIPS // max(1, d)), True
            elif not self.source.is_dense(c):
                columns = min(columns, _SPARSE_PANEL // max(1, d))
        step = STRIP if strips else self._lanes
        return max(step, columns // step * step)

    def _features(self, c, data, d):
        """The features of strips that are added up at a time: few, in the first cache, if rows have entries there."""
        x, _, start = self._data(data, "A", c)
        density = len(x) / max(1, (len(start) - 1) * d)
        return int(min(max(_STRIP_ENTRIES / max(density, 1e-9), FEATURES), _STRIP_FEATURES))

    def _data(self, data, side, c):
        """The arrays of one side of a channel."""
        names = [side + str(c)] if f"{side}{c}" in self._position else [f"{side}{c}_{part}" for part in _CSR]
        return [data[self._position[name]] for name in names]

    def _width(self, c, data):
        """The number of features of a channel."""
        return self._data(data, "A", c)[0].shape[1] if self.source.is_dense(c) else int(data[self._position[f"d{c}"]])

    def _packed(self, c, data, d, panels, columns, kept):
        """Empty panels for a group of columns of a channel, or strips, and the other arrays of `packed_names`."""
        source = self.source
        if source.has_strips(c):
            x, k, _ = self._data(data, "A", c)
            w = data[self._position[f"w{c}_0"]] if source.weights[c] else None
            arrays = [aligned_empty((panels, columns // STRIP, d, STRIP), self._dtype)]
            arrays += [x if w is None else x * w[k] ** 2]
        else:
            arrays = [aligned_empty((panels, d, columns), self._dtype)]
        if source.is_distance[c]:
            ones = [] if source.weights[c] else [np.ones(d, self._dtype)]
            arrays += [aligned_empty((panels, columns), self._dtype), self._norms(c, "A", data, d, kept), *ones]
            self._norms(c, "B", data, d, kept)
        if c in source.multiplied:
            arrays += [aligned_empty((panels, columns), self._dtype), self._norms(c, "A", data, d, kept)]
            self._norms(c, "B", data, d, kept)
        return arrays

    def _norms(self, c, side, data, d, kept):
        """sum_k (a_ik w_k)^2 of all rows of one side, computed once."""
        arrays = self._data(data, side, c)
        key = "norms", c, id(arrays[0])
        if key not in kept and len(arrays) == 1:
            kept[key] = norms = np.empty(len(arrays[0]), self._dtype)
            in_parts(lambda low, high: dense_norms(*arrays, low, high, norms), len(norms))
        if key not in kept:
            w = data[self._position[f"w{c}_0"]] if self.source.weights[c] else np.ones(d, self._dtype)
            norms = np.empty(len(arrays[2]) - 1, self._dtype)
            in_parts(lambda low, high: row_norms(*arrays, low, high, w, norms), len(norms))
            kept[key] = norms
        return kept[key]

    def _pack(self, c, data, ids, first, low, high, packed, kept):
        """Fill some of the panels."""
        B, right = self._data(data, "B", c), self.source.storage[c][1]
        panels, per_panel = packed[0], 1
        if self.source.has_strips(c):
            per_panel = panels.shape[1]
            panels = panels.reshape(len(panels) * per_panel, *panels.shape[2:])
        low, high = low * per_panel, high * per_panel
        (pack if right == "dense" else pack_csr)(*B, ids, first, low, high, panels)
        if c in self.source.multiplied:
            some = ids[first:][low * panels.shape[2] : high * panels.shape[2]]
            norms = packed[1].ravel()[low * panels.shape[2] :]
            norms[: len(some)] = self._norms(c, "B", data, 0, kept)[some]
        if self.source.is_distance[c]:
            some = ids[first:][low * STRIP : high * STRIP]
            packed[2].ravel()[low * STRIP : low * STRIP + len(some)] = self._norms(c, "B", data, 0, kept)[some]

    def _cost(self, widths, data):
        """The approximate multiplications of an entry: its features, and ten for the rest."""
        cost = 10.0
        for c, d in enumerate(widths):
            left = self._data(data, "A", c)
            cost += d if len(left) == 1 else len(left[0]) / max(1, len(left[2]) - 1)
        return cost


def compile_tiles(
    epilogue: ScalarFunction,
    hs: Sequence[ScalarFunction],
    n_rows: int,
    n_columns: int,
    n_numbers: int,
    storage: Sequence[tuple[str, str]] | None = None,
    f: tuple[int, ScalarFunction] | None = None,
    multiplied: tuple[int, ...] = (),
) -> TileLoops:
    """Return the compiled loops, the same for the same arguments.

    Parameters
    ----------
    epilogue, hs : ScalarFunction, sequence of ScalarFunction
        The function e and those of the channels.
    n_rows, n_columns, n_numbers : int
        How many vectors u, vectors v and numbers theta the epilogue takes.
    storage : sequence of (str, str), optional
        For each channel how A and B are stored, "dense" (the default) or "csr".
    f : tuple of (int, ScalarFunction), optional
        For `TileLoops.features`, the index of a channel and the function of (a_ik, b_jk, w_k).
    multiplied : tuple of int
        Channels of squared differences, dense and without weights, that are computed from products: with many features
        they take half of the operations.

    Returns
    -------
    TileLoops
        The loops, which are compiled when they are first called.
    """
    storage = (("dense", "dense"),) * len(hs) if storage is None else storage
    return _compile(epilogue, tuple(hs), n_rows, n_columns, n_numbers, tuple(storage), f, multiplied)


@functools.cache
def _compile(epilogue, hs, n_rows, n_columns, n_numbers, storage, f, multiplied):
    source = TileSource(epilogue, hs, n_rows, n_columns, n_numbers, storage, f, multiplied)
    text = source.text()
    key = hashlib.sha256((text + epilogue.dtype + _HELPER_SOURCE).encode()).hexdigest()  # of two types, too
    scope = loop_globals(epilogue.dtype)
    # Inner functions first: each is compiled into the loop that calls it.
    parts = text.split(SEPARATOR)
    for part in parts[:-1]:
        function = compile_source(part, _function_name(part), dict(scope))
        scope[_function_name(part)] = numba.njit(function, **INNER)
    options = {**INNER, "no_cpython_wrapper": False}
    function = compile_source(parts[-1], "tiles", scope, f"symsvm_{key}")
    _LOOPS[key] = TileLoops(source, njit(function, cache=True, nogil=True, **options), key)
    return _LOOPS[key]


def run_tiles(key: str, want: str, *args: Any) -> None:
    """Call a method of the loops with this key, from compiled code, which cannot hold the object."""
    getattr(_LOOPS[key], want)(*args)


_LOOPS: dict[str, TileLoops] = {}
# The arrays of a CSR matrix: entries, their columns, and where rows start.
_CSR = ("x", "k", "start")


# The compiled code depends on the helpers in these modules too, so that their source is part of the key.
_HELPER_SOURCE = (
    "".join(
        inspect.getsource(module)
        for module in (tiles, feature_sums, scratch, vector_math, product_distances, sparse_sums)
    )
    + repr(CANCELLATION)
    + numba.__version__
)


def _function_name(source):
    return source.partition("def ")[2].partition("(")[0]
