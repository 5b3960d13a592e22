"""Loops that stay: why no pass could lift a Scan, in plain words."""

from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot

from symsvm.compiler.ops import NotElementwise, factor
from symsvm.compiler.rewrites.reduce_to_sum import Inner, without
from symsvm.explanation.formula import Formula
from symsvm.graphs.structure import varies

__all__ = ["loops", "not_tiled", "why"]


def loops(graphs):
    """The Scans of graphs, those inside others not counted."""
    nodes = dict.fromkeys(v.owner for v in ancestors(graphs) if v.owner is not None and isinstance(v.owner.op, Scan))
    return list(nodes)


def why(scan, reader):
    """Say why a Scan is not lifted; the reader knows the names of what it runs over."""
    info = scan.op.info
    if scan.op.name == "rows":
        return "it is one on purpose, to hold one row at a time"
    if info.as_while:
        return "it may stop before the last row"
    if info.n_mit_mot or info.n_mit_sot:
        return "a step looks back at more than the step before"
    inner = Inner(scan)
    pairs = list(zip(inner.states, inner.next_states, strict=True))
    for (accumulator, new), output in zip(pairs, scan.outputs, strict=False):
        terms = without(new, accumulator)
        if terms is None:
            return f"a step does more with what it has accumulated than add to it: {_step(output, reader)}"
        if any(inner.vectorise(term) is None for term in terms):
            coupled = set(ancestors(terms)) & inner.carried
            return f"what it adds {'depends on another accumulated value' if coupled else 'holds a loop that stays'}"
    if pairs:
        return "all the values on its way are used, not the last alone"
    return "a row's result holds a loop that stays"


def _step(output, reader):
    """acc = what a step makes of it."""
    term = reader.read(output)
    (line, *_) = Formula({term.label.states[0]: term.args[-1]}, reader.rows).lines
    return " ".join(str(line).split())


def not_tiled(graphs):
    """Why products with a matrix of pairs have no tiles: the reason of the first that has none; else None."""
    for v in ancestors(graphs):
        if v.owner is None or not isinstance(v.owner.op, Dot):
            continue
        for K in v.owner.inputs:
            while K.owner is not None and isinstance(K.owner.op, DimShuffle) and K.owner.op.new_order == (1, 0):
                (K,) = K.owner.inputs
            try:
                if K.owner is not None and varies(K) == {0, 1}:
                    factor(K)
            except NotElementwise as reason:
                return str(reason)
    return None
