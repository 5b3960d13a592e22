"""The rewrites that turn nested sums into products of matrices, and the order in which they run.

Each pass is a registered PyTensor rewrite under the tag `symsvm`. `mode.including("symsvm")` adds all of them to a
mode, and `mode.excluding("symsvm_quadratic_form")` removes one. A mode's rewrites run after differentiation, too late
to simplify a gradient. `lift` runs them before it; `symsvm.grad` and `compile` call `lift`.
"""

from __future__ import annotations

import math
from collections import Counter
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple, cast

from pytensor.compile.mode import optdb
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import GraphRewriter, MergeOptimizer, NodeRewriter
from pytensor.graph.rewriting.db import EquilibriumDB, RewriteDatabaseQuery
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.tensor.type import TensorType

from symsvm.compiler.rewrites.products import (
    local_batched_inner_to_sum,
    local_squared_distances,
    local_sum_of_products_to_dot,
    local_tile,
)
from symsvm.compiler.rewrites.quadratic import local_quadratic_form
from symsvm.compiler.rewrites.reduce_to_sum import local_map_to_batch, local_reduce_to_sum
from symsvm.graphs.dtypes import widen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytensor.graph.basic import Variable

    from symsvm._lib.types import Graph

__all__ = [
    "MEMORY",
    "PASSES",
    "TILE_MEMORY",
    "WRONG_REWRITES",
    "Stage",
    "canonicalize",
    "count_rewrites",
    "largest_array",
    "lift",
    "lift_loops",
    "lower",
    "stages",
    "tile",
]

# The default memory limit in bytes for an array that replaces a loop.
MEMORY = 2**30
# The least memory limit in bytes: the tiles of a few cores, whatever the data.
TILE_MEMORY = 2**22

# PyTensor's canonical form runs between the two groups, so that the second has fewer patterns to match.
_LOOPS = {"reduce_to_sum": local_reduce_to_sum, "map_to_batch": local_map_to_batch}
_PRODUCTS = {
    "batched_inner_to_sum": local_batched_inner_to_sum,
    "squared_distances": local_squared_distances,
    "sum_of_products_to_dot": local_sum_of_products_to_dot,
    "quadratic_form": local_quadratic_form,
}
_TILE = {"tile": local_tile}
PASSES = _LOOPS | _PRODUCTS | _TILE

# Rewrites of PyTensor 3.0.7 that are wrong: x + set(zeros[i], y) becomes inc(x[i], y) also where x has length 1 and is
# broadcast, as in the gradient of a W over parts of its variable, v[:m] and v[m:].
WRONG_REWRITES = ("local_add_of_sparse_write",)

# The passes that fired, by name, in the innermost `count_rewrites` block.
_FIRED: ContextVar[Counter[str] | None] = ContextVar("fired", default=None)


@contextmanager
def count_rewrites() -> Iterator[Counter[str]]:
    """Count the nodes that each pass replaces inside the block, by the name of the pass."""
    fired: Counter[str] = Counter()
    token = _FIRED.set(fired)
    try:
        yield fired
    finally:
        _FIRED.reset(token)


class _CountedRewrite(NodeRewriter):
    """A pass that counts the nodes it replaces.

    A pass may run others on the graph inside a loop. Their counts are added only if the outer pass succeeds, since
    otherwise their result is discarded.
    """

    def __init__(self, pass_name, rewrite):
        self.pass_name, self.rewrite = pass_name, rewrite  # PyTensor sets `name` when it registers a rewrite

    def __str__(self):
        return str(self.rewrite)

    def tracks(self):
        """Return the operations that the pass applies to."""
        return self.rewrite.tracks()

    def add_requirements(self, fgraph):
        """Attach the features that the pass needs to a graph."""
        self.rewrite.add_requirements(fgraph)

    def transform(self, fgraph, node, enforce_tracks=True):
        """Apply the pass to a node."""
        with count_rewrites() as inside:
            result = self.rewrite.transform(fgraph, node, enforce_tracks)
        total = _FIRED.get()
        if result and total is not None:
            total.update(inside)
            total[self.pass_name] += 1
        return result


def _register(database_name, passes, tag, position):
    database = EquilibriumDB(ignore_newtrees=False)
    for name, rewrite in passes.items():
        database.register(f"symsvm_{name}", _CountedRewrite(name, rewrite), tag)
    optdb.register(database_name, database, tag, position=position)  # without "fast_run": opt-in
    return database


class _Widen(GraphRewriter):
    """Compute in float64 what is float32 only because of a number; see `widen`."""

    def apply(self, fgraph):
        """Replace the outputs that change."""
        for old, new in zip(list(fgraph.outputs), widen(fgraph.outputs), strict=True):
            if new is not old:
                fgraph.replace(old, new, reason="symsvm_widen")


optdb.register("symsvm_widen", _Widen(), "symsvm", position=-0.06)
# Loops run before PyTensor's inlining (-0.01) and its passes over Scans (0.05), products after its canonical form (1).
_LOOPS_DB = _register("symsvm_loops", _LOOPS, "symsvm", -0.05)
_PRODUCTS_DB = _register("symsvm_products", _PRODUCTS, "symsvm", 1.1)
# Tiles have their own tag: they save memory, but cost time where the matrix would fit.
_TILE_DB = _register("symsvm_tiles_db", _TILE, "symsvm_tiles", 1.2)


def lift(graphs: Sequence[Variable], memory: float = MEMORY) -> list[Graph]:
    """Return the graphs after the passes; inputs and shared variables stay the same, equal parts are merged.

    A pattern that no pass matches stays as it is. Where an array of known shape would take more than `memory` bytes,
    products with it are tiled. If an array is still too large, the graphs are returned as written: a loop is slow, but
    needs little memory.
    """
    *_, last = stages(graphs, memory)
    return last.graphs


class Stage(NamedTuple):
    """The graphs after a group of passes, and how many nodes each pass replaced."""

    name: str
    graphs: list
    fired: Counter[str]


def stages(graphs: Sequence[Variable], memory: float = MEMORY) -> Iterator[Stage]:
    """Yield a `Stage` after each group of passes: loops, canonical form, products and, for large arrays, tiles.

    The last one holds what `lift` returns. Its name is "as written" if the graphs would not fit, even with tiles.
    """
    graphs = widen(graphs)
    lifted, limit = graphs, max(memory, largest_array(graphs))
    for name, group in (("loops", lift_loops), ("canonical form", canonicalize), ("products", _lift_products)):
        stage = _stage(name, group, lifted)
        lifted = stage.graphs
        yield stage
    if largest_array(lifted) > limit:
        stage = _stage("tiles", tile, lifted)
        lifted = stage.graphs
        yield stage
    if largest_array(lifted) > limit:
        yield Stage("as written", list(graphs), Counter())


def _stage(name: str, group: Callable[[list], list], graphs: list) -> Stage:
    with count_rewrites() as fired:
        return Stage(name, group(graphs), fired)


def canonicalize(graphs: Sequence[Variable], clone: bool = False) -> list[Graph]:
    """Return the graphs in PyTensor's canonical form."""
    # PyTensor returns a list for a list.
    return cast("list", rewrite_graph(graphs, include=("canonicalize",), exclude=WRONG_REWRITES, clone=clone))


def _lift_products(graphs):
    return _apply(_PRODUCTS_DB, graphs, "symsvm")


def lift_loops(graphs: Sequence[Variable]) -> list[Graph]:
    """Return the graphs after the passes over loops only."""
    return _apply(_LOOPS_DB, graphs, "symsvm")


def lower(graphs: Sequence[Variable]) -> list[Graph]:
    """Return differentiated graphs in which a quadratic form and its gradient share the product K q."""
    fgraph = FunctionGraph(outputs=canonicalize(list(graphs), clone=True), clone=False)
    MergeOptimizer().rewrite(fgraph)
    return cast("list[Graph]", list(fgraph.outputs))


def tile(graphs: Sequence[Variable]) -> list[Graph]:
    """Return the graphs with products by kernel matrices computed a tile at a time."""
    return _apply(_TILE_DB, lower(graphs), "symsvm_tiles")


def _apply(database: EquilibriumDB, graphs: Sequence[Variable], tag: str) -> list[Graph]:
    fgraph = FunctionGraph(outputs=list(graphs), clone=True, copy_inputs=False)
    database.query(RewriteDatabaseQuery(include=[tag])).rewrite(fgraph)
    MergeOptimizer().rewrite(fgraph)
    return cast("list[Graph]", list(fgraph.outputs))


def largest_array(graphs: Sequence[Variable]) -> int:
    """Return the size in bytes of the largest array of known shape that the graphs compute; 0 if there is none."""
    sizes = [0]
    for variable in ancestors(graphs):
        if variable.owner is not None and isinstance(variable.type, TensorType):
            shape = [length for length in variable.type.shape if length is not None]
            if len(shape) == len(variable.type.shape):
                sizes.append(math.prod(shape) * variable.type.numpy_dtype.itemsize)
    return max(sizes)
