"""Indexing: rows, slices and lookups of arrays, and what is added to a part of one, as terms."""

import re

from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.shape import Shape

from symsvm._lib.compat import subscripts
from symsvm.explanation.terms import Operand
from symsvm.graphs.structure import varies

__all__ = ["length", "read_index", "read_lookup", "read_part"]


def length(reader, term, own, axis):
    """The length of an axis of a variable with this term and these axes of its own."""
    if axis not in own:
        return reader.terms.number(1), ()
    return reader.terms.make("length", own.index(axis), (term,)), ()


def read_index(reader, node):
    """x[i], x[i:j]; an entry of a shape is a length."""
    entries = subscripts(node)
    source = node.inputs[0]
    while source.owner is not None and isinstance(source.owner.op, Elemwise) and len(source.owner.inputs) == 1:
        source = source.owner.inputs[0]  # a cast of a shape
    first = entries[0]
    if source.owner is not None and isinstance(source.owner.op, Shape) and not isinstance(first, slice):
        return length(reader, *reader.placed(source.owner.inputs[0]), int(reader.read(first).label))
    term, own = reader.placed(node.inputs[0])
    texts, args, axes, dim = [], [term], [], 0
    for axis in range(node.inputs[0].ndim):
        entry = entries[axis] if axis < len(entries) else slice(None)
        if axis in own:
            texts.append(_entry(reader, entry, args))
        if isinstance(entry, slice):
            axes += [dim] if axis in own else []
            dim += 1
    while texts and texts[-1] == ":":
        texts.pop()
    if not texts:
        return term, tuple(axes)
    return reader.terms.make("index", tuple(texts), args, len(axes)), tuple(axes)


def read_part(reader, v, node):
    """x with u added to a part of it: x + place(u, [i:j]); None where the part is written over, or is of a matrix."""
    x, u, *_ = node.inputs
    if node.op.set_instead_of_inc or v.ndim != 1:
        return None
    args = [reader.read(u)]
    (entry,) = subscripts(node)
    part = reader.terms.make("place", (_entry(reader, entry, args),), args, 1)
    term, own = reader.placed(x)
    if term.kind == "call" and term.label[0] == "fill":
        (term,), own = term.args, ()  # a number, which the sum repeats
    return reader.terms.sum([(1, Operand(term, own)), (1, Operand(part, (0,)))], 1), (0,)


def read_lookup(reader, v, node):
    """x[i, j] with arrays i and j."""
    source, *indices = (u for u in node.inputs if getattr(u.type, "ndim", None) is not None)
    axes = tuple(sorted(varies(v)))
    args = [Operand(reader.read(source), ())]
    for term, own in map(reader.placed, indices):
        args.append(Operand(term, tuple(axes.index(a) for a in own)))
    return reader.terms.elementwise("lookup", None, args, len(axes)), axes


def _entry(reader, entry, args):
    """The text of an index or of a slice, with {} for a term that is added to the arguments."""
    if isinstance(entry, slice):
        parts = ["" if part is None else _entry(reader, part, args) for part in (entry.start, entry.stop, entry.step)]
        return re.sub("(:.*):$", r"\1", ":".join(parts))
    if not hasattr(entry, "type"):
        return str(entry)
    term = reader.read(entry)
    if term.kind == "number":
        return f"{term.label:g}"
    args.append(term)
    return "{}"
