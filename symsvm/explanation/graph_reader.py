"""Reading PyTensor graphs, before or after the passes, as the terms that a person would write."""

# Ops, Apply nodes and constants carry attributes that PyTensor's annotations do not declare.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytensor.scalar as ps
from pytensor.gradient import DisconnectedGrad
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan
from pytensor.tensor.basic import Alloc, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor, IncSubtensor, Subtensor

from symsvm._lib.compat import subscripts
from symsvm.compiler.ops import KernelGram, KernelMatvec
from symsvm.compiler.ops.squared_distances import SquaredDistances
from symsvm.compiler.rewrites.quadratic import QuadraticForm
from symsvm.compiler.rewrites.reduce_to_sum import ScanBody, added_terms, final_state, initial_state
from symsvm.explanation.formula import Operand, Term, TermFactory
from symsvm.graphs.structure import varying_axes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytensor.graph.basic import Apply, Variable

__all__ = ["GraphReader", "Loop"]

# The longest constant vector that is written out as numbers.
_MAX_LITERAL = 4


class Loop(NamedTuple):
    """The label of a loop: its kind ("sum", "fold", "scan" or "map"), and the names of its rows and its states.

    A sum is a fold that only adds. A fold returns the last state, a scan returns all of them.
    """

    kind: str
    rows: tuple[str, ...]
    states: tuple[str, ...]


class GraphReader:
    """Reads variables as terms.

    Parameters
    ----------
    known : mapping of variable to str or float, optional
        Names, or values, of leaves. Other leaves keep the names of their variables.

    Attributes
    ----------
    terms : TermFactory
        The terms that were made.
    loop_variables : set of str
        The names that loops bind.

    >>> import pytensor.tensor as pt
    >>> x = pt.vector("x")
    >>> GraphReader().read(pt.exp(-x.sum()))
    <call ('exp', None) [<sum (-1,) [<call ('sum', None) [<leaf x []>]>]>]>
    """

    def __init__(self, known: Mapping[Variable, str | float] | None = None) -> None:
        self.terms = TermFactory()
        self.loop_variables: set[str] = set()
        self._operands: dict[Variable, Operand] = {}
        self._labels: set[str] = set()
        self._depth = 0
        for variable, name in (known or {}).items():
            if isinstance(name, str):
                self._operands[variable] = Operand(self._make_leaf(variable, name), _axes(variable))
            else:
                self._operands[variable] = Operand(self.terms.number(name), ())

    def read(self, variable: Variable) -> Term:
        """Return the term of a variable."""
        return self.operand(variable).term

    def operand(self, variable: Variable) -> Operand:
        """Return the term of a variable and the axes of the variable that the term has; the others have length 1."""
        if variable not in self._operands:
            self._operands[variable] = Operand(*self._read(variable))
        return self._operands[variable]

    def _read(self, v: Any) -> tuple[Term, tuple[int, ...]]:
        node = v.owner
        if isinstance(v, Constant) and np.size(v.data) == 1:
            return self.terms.number(np.asarray(v.data).item()), ()
        if node is None:
            if isinstance(v, Constant) and v.data.size <= _MAX_LITERAL and v.data.ndim == 1:
                text = f"[{', '.join(f'{x:g}' for x in v.data.tolist())}]"
                return self.terms.make("leaf", text, ndim=1), _axes(v)
            return self._make_leaf(v, v.name or ("array" if isinstance(v, Constant) else "input")), _axes(v)
        for kinds, method in _METHODS:
            if isinstance(node.op, kinds):
                operand = method(self, v, node)
                if operand is not None:
                    return operand
        return self._make_call(v, node, type(node.op).__name__.lower())

    def _make_leaf(self, variable, name: str) -> Term:
        """Return a leaf with a unique label: a second variable of the same name becomes name2."""
        label, n = name, 1
        while label in self._labels:
            n += 1
            label = f"{name}{n}"
        self._labels.add(label)
        return self.terms.make("leaf", label, ndim=len(varying_axes(variable)))

    def _make_call(self, v, node: Apply, name: str):
        args = [self.read(u) for u in node.inputs if hasattr(u.type, "ndim") or u.owner is not None]
        return self.terms.make("call", (name, None), args, len(_axes(v))), _axes(v)

    def _make_fill(self, term: Term, axes: tuple[int, ...]):
        return self.terms.make("call", ("fill", None), (term,), len(axes)), axes

    # ---- elementwise operations and reductions

    def _read_input(self, v, node):
        return self.operand(node.inputs[0])

    def _read_elemwise(self, v, node):
        op = node.op.scalar_op
        if isinstance(op, (ps.Identity, ps.Cast)):
            source = node.inputs[0].dtype
            if isinstance(op, ps.Identity) or v.dtype.startswith("float") or source == "bool" or "int" in source:
                return self._read_input(v, node)
        args = [self.operand(u) for u in node.inputs]
        if isinstance(op, ps.Second):
            return args[1] if args[1].axes == _axes(v) else self._make_fill(args[1].term, _axes(v))
        axes = tuple(sorted({a for _, own in args for a in own}))
        args = [Operand(term, tuple(axes.index(a) for a in own)) for term, own in args]
        return self._make_elementwise(op, args, len(axes), node), axes

    def _make_elementwise(self, op, args: list[Operand], ndim: int, node) -> Term:
        terms = self.terms
        if isinstance(op, (ps.Add, ps.Sub, ps.Neg)):
            signs = {ps.Sub: (1, -1), ps.Neg: (-1,)}.get(type(op), (1,) * len(args))
            return terms.sum(list(zip(signs, args, strict=True)), ndim)
        if isinstance(op, (ps.TrueDiv, ps.Mul)):
            mean = self._make_mean(node, args)
            if mean is not None:
                return mean
            n = 1 if isinstance(op, ps.TrueDiv) else len(args)
            return terms.product(args[:n], args[n:], ndim)
        if isinstance(op, ps.Reciprocal):
            return terms.product([], args, ndim)
        scalar_exponent = len(args) == 1 or args[1].term.ndim == 0
        if isinstance(op, (ps.Pow, ps.Sqr)) and scalar_exponent and args[0].term.ndim == ndim:
            return terms.power(args[0].term, args[1].term if len(args) == 2 else terms.number(2))
        for kind, infix in _INFIX.items():
            if isinstance(op, kind):
                return terms.elementwise("compare", infix, args, ndim)
        name = _FUNCTIONS.get(type(op), type(op).__name__.lower())
        return terms.elementwise("call", (name, None), args, ndim)

    def _make_mean(self, node, args: list[Operand]) -> Term | None:
        """Return mean(x, axis) for sum(x, axis) / length, or times 1 / length where that is known; else None."""
        sums = [(u, o.term) for u, o in zip(node.inputs, args, strict=True) if o.term.kind == "call"]
        others = [o.term for o in args if o.term.kind != "call"]
        if len(args) != 2 or len(sums) != 1 or sums[0][1].label[0] != "sum":
            return None
        (total, term), (length,) = sums[0], others
        (source,) = term.args
        axis = 0 if term.label[1] is None and source.ndim == 1 else term.label[1]
        is_mean = length.kind == "length" and length.args == (source,) and length.label == axis
        if length.kind == "number" and isinstance(axis, int):
            while total.owner is not None and isinstance(total.owner.op, (DimShuffle, Elemwise)):
                (total, *_) = total.owner.inputs
            node_shape = total.owner.inputs[0].type.shape if total.owner is not None else ()
            shape = [n for n in node_shape if n != 1]
            n = length.label if isinstance(node.op.scalar_op, ps.TrueDiv) else 1 / (length.label or math.inf)
            is_mean = len(shape) == source.ndim and math.isclose(shape[axis] or 0, n, rel_tol=1e-6)
        return self.terms.make("call", ("mean", term.label[1]), (source,), term.ndim) if is_mean else None

    def _read_reduction(self, v, node):
        term, own = self.operand(node.inputs[0])
        every = range(node.inputs[0].ndim)
        reduced = set(every) if node.op.axis is None else {a % len(every) for a in node.op.axis}
        left = [a for a in every if a not in reduced]
        axes = tuple(left.index(a) for a in own if a not in reduced)
        summed = [i for i, a in enumerate(own) if a in reduced]
        if not summed:
            return term, axes
        where = None if len(summed) == len(own) else summed[0] if len(summed) == 1 else tuple(summed)
        return self.terms.make("call", (type(node.op).__name__.lower(), where), (term,), len(axes)), axes

    def _read_dimshuffle(self, v, node):
        term, own = self.operand(node.inputs[0])
        order = node.op.new_order
        axes = tuple(i for i, a in enumerate(order) if a in own)
        permuted = tuple(own.index(order[i]) for i in axes)
        if permuted == tuple(range(len(own))):
            return term, axes
        if term.kind == "transpose" and len(own) == 2:
            return term.args[0], axes
        return self.terms.make("transpose", permuted, (term,), len(axes)), axes

    # ---- products

    def _read_dot(self, v, node):
        (left, a), (right, b) = (self.operand(u) for u in node.inputs)
        axes = tuple([0] * (0 in a) + [1] * (1 in b))
        if 1 in a and 0 in b:
            return self.terms.make("matmul", None, (left, right), len(axes)), axes
        factors = [Operand(left, tuple(range(len(a)))), Operand(right, tuple(range(len(axes) - len(b), len(axes))))]
        return self.terms.product(factors, [], len(axes)), axes

    def _read_distances(self, v, node):
        return self._make_call(v, node, "squared_distances")

    def _read_blockwise(self, v, node):
        if isinstance(node.op.core_op, Subtensor):
            return self._read_lookup(v, node)
        if not isinstance(node.op.core_op, Dot):
            return self._make_call(v, node, type(node.op.core_op).__name__.lower())
        a, b = node.inputs
        if a.ndim == b.ndim == 2:
            return self._read_dot(v, node)
        inner = a.type.shape[-2] == 1 and b.type.shape[-1] == 1
        args = (self.read(a), self.read(b))
        return self.terms.make("call", ("inner" if inner else "matmul", None), args, len(_axes(v))), _axes(v)

    def _read_quadratic_form(self, v, node):
        return self.terms.make("form", None, [self.read(u) for u in node.inputs]), ()

    def _read_matvec(self, v, node):
        args = (self.read(node.op.graph(node.inputs)), self.read(node.inputs[-1]))
        return self.terms.make("tiled", None, args, len(_axes(v))), _axes(v)

    def _read_gram(self, v, node):
        return self.read(node.op.graph(node.inputs)), _axes(v)

    # ---- shapes, slices and lookups

    def _read_alloc(self, v, node):
        term, own = self.operand(node.inputs[0])
        shift = v.ndim - node.inputs[0].ndim
        own = tuple(a + shift for a in own)
        return (term, own) if own == _axes(v) else self._make_fill(term, _axes(v))

    def _make_length(self, operand: Operand, axis: int):
        """Return the length of an axis of a variable that was read as this operand."""
        if axis not in operand.axes:
            return self.terms.number(1), ()
        return self.terms.make("length", operand.axes.index(axis), (operand.term,)), ()

    def _read_shape_i(self, v, node):
        return self._make_length(self.operand(node.inputs[0]), node.op.i)

    def _read_shape(self, v, node):
        if v.type.shape == (1,):
            return self._make_length(self.operand(node.inputs[0]), 0)
        return self.terms.make("call", ("shape", None), (self.read(node.inputs[0]),), 1), (0,)

    def _read_subtensor(self, v, node):
        last = final_state(v)
        if last is not None:
            scan, index = last
            return self._read_loop(v, scan, index, last=True)
        entries = subscripts(node)
        source = node.inputs[0]
        while source.owner is not None and isinstance(source.owner.op, Elemwise) and len(source.owner.inputs) == 1:
            source = source.owner.inputs[0]  # a cast of a shape
        first = entries[0]
        if source.owner is not None and isinstance(source.owner.op, Shape) and not isinstance(first, slice):
            return self._make_length(self.operand(source.owner.inputs[0]), int(self.read(first).label))
        term, own = self.operand(node.inputs[0])
        texts, args, axes, dim = [], [term], [], 0
        for axis in range(node.inputs[0].ndim):
            entry = entries[axis] if axis < len(entries) else slice(None)
            if axis in own:
                texts.append(self._format_entry(entry, args))
            if isinstance(entry, slice):
                axes += [dim] if axis in own else []
                dim += 1
        while texts and texts[-1] == ":":
            texts.pop()
        if not texts:
            return term, tuple(axes)
        return self.terms.make("index", tuple(texts), args, len(axes)), tuple(axes)

    def _read_increment(self, v, node):
        """Read x with u added to a part of it as x + place(u, [i:j]); None for an assignment or for a matrix."""
        x, u, *_ = node.inputs
        if node.op.set_instead_of_inc or v.ndim != 1:
            return None
        args = [self.read(u)]
        (entry,) = subscripts(node)
        part = self.terms.make("place", (self._format_entry(entry, args),), args, 1)
        term, own = self.operand(x)
        if term.kind == "call" and term.label[0] == "fill":
            (term,), own = term.args, ()  # the sum repeats the number
        return self.terms.sum([(1, Operand(term, own)), (1, Operand(part, (0,)))], 1), (0,)

    def _read_lookup(self, v, node):
        """Read x[i, j] with arrays i and j."""
        source, *indices = (u for u in node.inputs if getattr(u.type, "ndim", None) is not None)
        axes = _axes(v)
        args = [Operand(self.read(source), ())]
        for term, own in map(self.operand, indices):
            args.append(Operand(term, tuple(axes.index(a) for a in own)))
        return self.terms.elementwise("lookup", None, args, len(axes)), axes

    def _format_entry(self, entry: Any, args: list[Term]) -> str:
        """Return the text of an index or slice, with {} for each term that is appended to the arguments."""
        if isinstance(entry, slice):
            ends = (entry.start, entry.stop, entry.step)
            parts = ["" if part is None else self._format_entry(part, args) for part in ends]
            return re.sub("(:.*):$", r"\1", ":".join(parts))
        if not hasattr(entry, "type"):
            return str(entry)
        term = self.read(entry)
        if term.kind == "number":
            return f"{term.label:g}"
        args.append(term)
        return "{}"

    # ---- loops

    def _read_scan(self, v, node):
        return self._read_loop(v, node, node.outputs.index(v), last=False)

    def _read_loop(self, v, scan, index: int, last: bool):
        """Read output `index` of a Scan, or the last value of that output, as a loop over rows."""
        info, axes = scan.op.info, _axes(v)
        is_state, is_map = index < info.n_sit_sot, index - info.n_sit_sot < info.n_nit_sot
        if info.as_while or info.n_mit_mot or info.n_mit_sot or not (is_state or is_map):
            leaves = {u for u in ancestors(scan.inputs) if u.owner is None and u.name}
            args = sorted(map(self.read, leaves), key=lambda term: str(term.label))
            return self.terms.make("call", ("loop", None), args, len(axes)), axes
        inner = ScanBody(scan)
        for own, outer in inner.constants.items():
            self._operands[own] = self.operand(outer)
        sequences = [self.read(sequence) for sequence in inner.sequences.values()]
        rows = tuple(_row_name(term, "ijklmnop"[self._depth % 8], k) for k, term in enumerate(sequences))
        states = tuple(f"acc{n or ''}" for n, _ in enumerate(inner.states))
        for own, name in zip([*inner.sequences, *inner.states], [*rows, *states], strict=True):
            self.loop_variables.add(name)
            self._operands[own] = Operand(self.terms.make("leaf", name, ndim=len(_axes(own))), _axes(own))
        self._depth += 1
        if is_state:
            term = self._read_state(inner, index, last, sequences, rows, states)
        else:
            body = self.read(inner.outputs[index - len(states)])
            term = self.terms.make("loop", Loop("map", rows, states), (*sequences, body), body.ndim + 1)
        self._depth -= 1
        return term, axes

    def _read_state(
        self,
        inner: ScanBody,
        index: int,
        last: bool,
        sequences: Sequence[Term],
        rows: tuple[str, ...],
        states: tuple[str, ...],
    ) -> Term:
        """Read a loop that carries a state: a sum where a step only adds, else a fold or a scan."""
        new = inner.next_states[index]
        start = self.read(initial_state(inner.buffers[index]))
        added = added_terms(new, inner.states[index]) if last and len(states) == 1 else None
        if added is None:
            body, label = self.read(new), Loop("fold" if last else "scan", rows, states)
            return self.terms.make("loop", label, (*sequences, start, body), body.ndim + (not last))
        terms = [self.read(part) for part in added]
        ndim = max(term.ndim for term in terms)
        body = self.terms.sum([(1, Operand(term, tuple(range(term.ndim)))) for term in terms], ndim)
        loop = self.terms.make("loop", Loop("sum", rows, states), (*sequences, body), ndim)
        return self.terms.sum([(1, Operand(start, ())), (1, Operand(loop, tuple(range(ndim))))], ndim)


def _axes(variable) -> tuple[int, ...]:
    """Return the axes of a variable that may be longer than 1."""
    return tuple(sorted(varying_axes(variable)))


def _row_name(term: Term, letter: str, k: int) -> str:
    """Return the name of a row: lam_i for lam, x_i for X."""
    name = term.label if term.kind == "leaf" and term.label.isidentifier() else "abcdefgh"[k % 8]
    return f"{name.lower() if len(name) == 1 and term.ndim > 1 else name}_{letter}"


_METHODS = (
    (Elemwise, GraphReader._read_elemwise),
    (CAReduce, GraphReader._read_reduction),
    (DimShuffle, GraphReader._read_dimshuffle),
    (Dot, GraphReader._read_dot),
    (SquaredDistances, GraphReader._read_distances),
    ((DisconnectedGrad, ScalarFromTensor, TensorFromScalar, SpecifyShape), GraphReader._read_input),
    (QuadraticForm, GraphReader._read_quadratic_form),
    (KernelMatvec, GraphReader._read_matvec),
    (KernelGram, GraphReader._read_gram),
    (Alloc, GraphReader._read_alloc),
    (Shape_i, GraphReader._read_shape_i),
    (Shape, GraphReader._read_shape),
    (Subtensor, GraphReader._read_subtensor),
    (IncSubtensor, GraphReader._read_increment),
    (AdvancedSubtensor, GraphReader._read_lookup),
    (Scan, GraphReader._read_scan),
    (Blockwise, GraphReader._read_blockwise),
)
_INFIX = {ps.LT: "<", ps.GT: ">", ps.LE: "<=", ps.GE: ">=", ps.EQ: "==", ps.NEQ: "!=", ps.AND: "&", ps.OR: "|"}
_FUNCTIONS = {ps.ScalarMaximum: "max", ps.ScalarMinimum: "min", ps.Switch: "where", ps.Cast: "int", ps.Invert: "not"}
