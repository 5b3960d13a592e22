"""Scans: a Scan read as a loop over rows, as it was written: a sum, a fold, a scan or a map."""

from typing import NamedTuple

from pytensor.graph.traversal import ancestors

from symsvm.compiler.rewrites.reduce_to_sum import Inner, first_row, without
from symsvm.explanation.terms import Operand
from symsvm.graphs.structure import varies

__all__ = ["Loop", "read_loop"]


class Loop(NamedTuple):
    """What tells a loop from another: sum, fold, scan or map; the names of its rows and of what it carries.

    A sum is a fold that only adds. A fold gives the last value that it carries, a scan all of them.
    """

    kind: str
    rows: tuple
    states: tuple


def read_loop(reader, v, scan, index, last):
    """Return the term, and its axes, of the output `index` of a Scan, or of its last value."""
    info, axes = scan.op.info, tuple(sorted(varies(v)))
    state, output = index < info.n_sit_sot, index - info.n_sit_sot < info.n_nit_sot
    if info.as_while or info.n_mit_mot or info.n_mit_sot or not (state or output):
        leaves = {u for u in ancestors(scan.inputs) if u.owner is None and u.name}
        args = sorted(map(reader.read, leaves), key=lambda term: str(term.label))
        return reader.terms.make("call", ("loop", None), args, len(axes)), axes
    inner = Inner(scan)
    for own, outer in inner.constants.items():
        reader.define(own, *reader.placed(outer))
    sequences = [reader.read(sequence) for sequence in inner.sequences.values()]
    rows = tuple(_row(term, "ijklmnop"[reader.depth % 8], k) for k, term in enumerate(sequences))
    states = tuple(f"acc{n or ''}" for n, _ in enumerate(inner.states))
    for own, name in zip([*inner.sequences, *inner.states], [*rows, *states], strict=True):
        reader.bind(own, name)
    reader.depth += 1
    if state:
        term = _state(reader, inner, index, last, sequences, rows, states)
    else:
        body = reader.read(inner.outputs[index - len(states)])
        term = reader.terms.make("loop", Loop("map", rows, states), (*sequences, body), body.ndim + 1)
    reader.depth -= 1
    return term, axes


def _state(reader, inner, index, last, sequences, rows, states):
    """A loop that carries something."""
    new, start = inner.next_states[index], first_row(inner.buffers[index])
    start, make = reader.read(start), reader.terms.make
    parts = without(new, inner.states[index]) if last and len(states) == 1 else None
    if parts is None:
        body, kind = reader.read(new), Loop("fold" if last else "scan", rows, states)
        return make("loop", kind, (*sequences, start, body), body.ndim + (not last))
    terms = [reader.read(part) for part in parts]
    ndim = max(term.ndim for term in terms)
    body = reader.terms.sum([(1, Operand(term, tuple(range(term.ndim)))) for term in terms], ndim)
    loop = make("loop", Loop("sum", rows, states), (*sequences, body), ndim)
    return reader.terms.sum([(1, Operand(start, ())), (1, Operand(loop, tuple(range(ndim))))], ndim)


def _row(term, letter, k):
    """The name of a row: lam_i of lam, x_i of X."""
    name = term.label if term.kind == "leaf" and term.label.isidentifier() else "abcdefgh"[k % 8]
    return f"{name.lower() if len(name) == 1 and term.ndim > 1 else name}_{letter}"
