"""Rewrites: from the sums that a paper writes to the products that a machine is good at.

Each pass is a registered PyTensor rewrite under the tag `symsvm`: `mode.including("symsvm")` switches all of them on,
and `mode.excluding("symsvm_quadratic_form")` one of them off. A mode's rewrites run after differentiation, too late to
help a gradient; `lift` runs them before, and `symsvm.grad` and `compile` use it.
"""

import math
from collections import Counter
from typing import NamedTuple

from pytensor.compile.mode import optdb
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.basic import GraphRewriter, MergeOptimizer
from pytensor.graph.rewriting.db import EquilibriumDB, RewriteDatabaseQuery
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.tensor.type import TensorType

from symsvm.compiler.rewrites.counting import Counted, counting
from symsvm.compiler.rewrites.inner import local_batched_inner_to_sum
from symsvm.compiler.rewrites.products import local_squared_distance_to_gemm, local_sum_of_products_to_dot
from symsvm.compiler.rewrites.quadratic import local_quadratic_form
from symsvm.compiler.rewrites.reduce_to_sum import local_map_to_batch, local_reduce_to_sum
from symsvm.compiler.rewrites.tile import local_tile
from symsvm.graphs.dtypes import widen

__all__ = ["MEMORY", "PASSES", "TILE", "Stage", "largest", "lift", "lower", "stages", "tile"]

# Bytes that arrays may take which a loop is turned into, unless `memory` says otherwise.
MEMORY = 2**30
# Bytes that a tile needs on each of a few cores, whatever the data.
TILE = 2**22

# PyTensor's canonical form, between the two groups, leaves the second fewer patterns to know.
_LOOPS = {"reduce_to_sum": local_reduce_to_sum, "map_to_batch": local_map_to_batch}
_PRODUCTS = {
    "batched_inner_to_sum": local_batched_inner_to_sum,
    "squared_distance_to_gemm": local_squared_distance_to_gemm,
    "sum_of_products_to_dot": local_sum_of_products_to_dot,
    "quadratic_form": local_quadratic_form,
}
_TILE = {"tile": local_tile}
PASSES = _LOOPS | _PRODUCTS | _TILE


def _register(name, passes, tag, position):
    database = EquilibriumDB(ignore_newtrees=False)
    for own, rewrite in passes.items():
        database.register(f"symsvm_{own}", Counted(own, rewrite), tag)
    optdb.register(name, database, tag, position=position)  # without "fast_run": opt-in
    return database


class _Widen(GraphRewriter):
    """Pass 0, numbers in float64: see `widen`."""

    def apply(self, fgraph):
        """Replace the outputs that change."""
        for old, new in zip(list(fgraph.outputs), widen(fgraph.outputs), strict=True):
            if new is not old:
                fgraph.replace(old, new, reason="symsvm_widen")


optdb.register("symsvm_widen", _Widen(), "symsvm", position=-0.06)
# Before PyTensor's inlining (-0.01) and its passes over Scans (0.05); after its canonical form (1), before the rest.
_LOOPS_DB = _register("symsvm_loops", _LOOPS, "symsvm", -0.05)
_PRODUCTS_DB = _register("symsvm_products", _PRODUCTS, "symsvm", 1.1)
# A tag of its own: tiles save memory and cost time, where the matrix would fit.
_TILE_DB = _register("symsvm_tiles_db", _TILE, "symsvm_tiles", 1.2)


def lift(graphs, memory=MEMORY):
    """Return the graphs after the passes; inputs and shared variables stay the same, equal parts become one.

    A pattern that matches no pass stays as it was. Where an array would take more than `memory` bytes, as far as shapes
    are known, products with it are tiled; where that does not help, all graphs stay as they were: a loop is slow, but
    needs no room.
    """
    *_, last = stages(graphs, memory)
    return last.graphs


class Stage(NamedTuple):
    """The graphs after a group of passes, and on how many nodes each of them fired."""

    name: str
    graphs: list
    fired: Counter


def stages(graphs, memory=MEMORY):
    """Yield a `Stage` after each group of passes: loops, canonical form, products; tiles and as written where need be.

    The last one is what `lift` returns. As written are graphs that would not fit, even with tiles.
    """
    graphs = widen(graphs)
    lifted, limit = graphs, max(memory, largest(graphs))
    for name, group in (("loops", lift_loops), ("canonical form", _canonical), ("products", _products)):
        stage = _stage(name, group, lifted)
        lifted = stage.graphs
        yield stage
    if largest(lifted) > limit:
        stage = _stage("tiles", tile, lifted)
        lifted = stage.graphs
        yield stage
    if largest(lifted) > limit:
        yield Stage("as written", list(graphs), Counter())


def _stage(name, group, graphs):
    with counting() as fired:
        return Stage(name, group(graphs), fired)


def _canonical(graphs):
    return rewrite_graph(graphs, include=("canonicalize",), clone=False)


def _products(graphs):
    return _apply(_PRODUCTS_DB, graphs, "symsvm")


def lift_loops(graphs):
    """Return the graphs after the passes over loops only."""
    return _apply(_LOOPS_DB, graphs, "symsvm")


def lower(graphs):
    """Return graphs that are differentiated: a quadratic form and its gradient share the product K q."""
    fgraph = FunctionGraph(outputs=rewrite_graph(list(graphs), include=("canonicalize",), clone=True), clone=False)
    MergeOptimizer().rewrite(fgraph)
    return list(fgraph.outputs)


def tile(graphs):
    """Return the graphs with products by matrices of pairs computed a tile at a time."""
    return _apply(_TILE_DB, lower(graphs), "symsvm_tiles")


def _apply(database, graphs, tag):
    fgraph = FunctionGraph(outputs=list(graphs), clone=True, copy_inputs=False)
    database.query(RewriteDatabaseQuery(include=[tag])).rewrite(fgraph)
    MergeOptimizer().rewrite(fgraph)
    return list(fgraph.outputs)


def largest(graphs):
    """The size in bytes of the largest array that graphs compute, as far as shapes are known."""
    sizes = [0]
    for variable in ancestors(graphs):
        if variable.owner is not None and isinstance(variable.type, TensorType) and None not in variable.type.shape:
            sizes.append(math.prod(variable.type.shape) * variable.type.numpy_dtype.itemsize)
    return max(sizes)
