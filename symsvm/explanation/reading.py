"""Reading: from a PyTensor graph, of either version, to the terms that a person would write."""

import math

import numpy as np
import pytensor.scalar as ps
from pytensor.gradient import DisconnectedGrad
from pytensor.graph.basic import Constant
from pytensor.scan.op import Scan
from pytensor.tensor.basic import Alloc, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor, IncSubtensor, Subtensor

from symsvm.compiler.ops import KernelGram, KernelMatvec
from symsvm.compiler.rewrites.quadratic import QuadraticForm
from symsvm.compiler.rewrites.reduce_to_sum import last_state
from symsvm.explanation.indexing import length, read_index, read_lookup, read_part
from symsvm.explanation.scans import read_loop
from symsvm.explanation.terms import Operand, Terms
from symsvm.graphs.structure import varies

__all__ = ["Reader"]


class Reader:
    """Reads variables as terms; `known` names leaves, which otherwise have their own names.

    >>> import pytensor.tensor as pt
    >>> x = pt.vector("x")
    >>> Reader().read(pt.exp(-x.sum()))
    <call ('exp', None) [<sum (-1,) [<call ('sum', None) [<leaf x []>]>]>]>
    """

    def __init__(self, known=None):
        self.terms, self.rows = Terms(), set()
        self._read, self._labels, self.depth = {}, set(), 0
        for variable, name in (known or {}).items():
            term = self.terms.number(name) if isinstance(name, float) else self._leaf(variable, name)
            self._read[variable] = term, tuple(sorted(varies(variable))) if term.kind == "leaf" else ()

    def read(self, variable):
        """Return the term of a variable."""
        return self.placed(variable).term

    def placed(self, variable):
        """Return the term of a variable, and which of the variable's axes are its own; the others have length 1."""
        if variable not in self._read:
            self._read[variable] = self._new(variable)
        return Operand(*self._read[variable])

    def _new(self, v):
        node = v.owner
        if isinstance(v, Constant) and np.size(v.data) == 1:
            return self.terms.number(np.asarray(v.data).item()), ()
        if node is None:
            axes = tuple(sorted(varies(v)))
            if isinstance(v, Constant) and v.data.size <= 4 and v.data.ndim == 1:
                text = f"[{', '.join(f'{x:g}' for x in v.data.tolist())}]"
                return self.terms.make("leaf", text, ndim=1), axes
            return self._leaf(v, v.name or ("array" if isinstance(v, Constant) else "input")), axes
        for kinds, method in _METHODS:
            if isinstance(node.op, kinds):
                found = method(self, v, node)
                if found is not None:
                    return found
        return self._call(v, node, type(node.op).__name__.lower())

    def _leaf(self, variable, name):
        """A leaf with a name of its own: another of the same name becomes name2."""
        label, n = name, 1
        while label in self._labels:
            n += 1
            label = f"{name}{n}"
        self._labels.add(label)
        return self.terms.make("leaf", label, ndim=len(varies(variable)))

    def _call(self, v, node, name):
        axes = tuple(sorted(varies(v)))
        args = [self.read(u) for u in node.inputs if hasattr(u.type, "ndim") or u.owner is not None]
        return self.terms.make("call", (name, None), args, len(axes)), axes

    def _same(self, v, node):
        return self.placed(node.inputs[0])

    def _elemwise(self, v, node):
        op = node.op.scalar_op
        if isinstance(op, (ps.Identity, ps.Cast)):
            source = node.inputs[0].dtype
            if isinstance(op, ps.Identity) or v.dtype.startswith("float") or source == "bool" or "int" in source:
                return self._same(v, node)
        args = [self.placed(u) for u in node.inputs]
        if isinstance(op, ps.Second):
            wide = tuple(sorted(varies(v)))
            return args[1] if args[1].place == wide else self._filled(args[1].term, wide)
        axes = tuple(sorted({a for _, own in args for a in own}))
        args = [Operand(term, tuple(axes.index(a) for a in own)) for term, own in args]
        return self._elementwise_term(op, args, len(axes), node), axes

    def _elementwise_term(self, op, args, ndim, node):
        terms = self.terms
        if isinstance(op, (ps.Add, ps.Sub, ps.Neg)):
            signs = {ps.Sub: (1, -1), ps.Neg: (-1,)}.get(type(op), (1,) * len(args))
            return terms.sum(list(zip(signs, args, strict=True)), ndim)
        if isinstance(op, (ps.TrueDiv, ps.Mul)):
            mean = self._mean(node, args)
            if mean is not None:
                return mean
            n = 1 if isinstance(op, ps.TrueDiv) else len(args)
            return terms.product(args[:n], args[n:], ndim)
        if isinstance(op, ps.Reciprocal):
            return terms.product([], args, ndim)
        if (
            isinstance(op, (ps.Pow, ps.Sqr))
            and (len(args) == 1 or args[1].term.ndim == 0)
            and args[0].term.ndim == ndim
        ):
            return terms.power(args[0].term, args[1].term if len(args) == 2 else terms.number(2))
        for kind, infix in _INFIX.items():
            if isinstance(op, kind):
                return terms.elementwise("compare", infix, args, ndim)
        name = _NAMES.get(type(op), type(op).__name__.lower())
        return terms.elementwise("call", (name, None), args, ndim)

    def _mean(self, node, args):
        """sum(x, axis) / length, or times 1 / length where that is known, -> mean(x, axis); else None."""
        sums = [(u, o.term) for u, o in zip(node.inputs, args, strict=True) if o.term.kind == "call"]
        others = [o.term for o in args if o.term.kind != "call"]
        if len(args) != 2 or len(sums) != 1 or sums[0][1].label[0] != "sum":
            return None
        (total, term), (length,) = sums[0], others
        (source,) = term.args
        axis = 0 if term.label[1] is None and source.ndim == 1 else term.label[1]
        found = length.kind == "length" and length.args == (source,) and length.label == axis
        if length.kind == "number" and isinstance(axis, int):
            while total.owner is not None and isinstance(total.owner.op, (DimShuffle, Elemwise)):
                (total, *_) = total.owner.inputs
            node_shape = total.owner.inputs[0].type.shape if total.owner is not None else ()
            shape = [n for n in node_shape if n != 1]
            n = length.label if isinstance(node.op.scalar_op, ps.TrueDiv) else 1 / (length.label or math.inf)
            found = len(shape) == source.ndim and math.isclose(shape[axis] or 0, n, rel_tol=1e-6)
        return self.terms.make("call", ("mean", term.label[1]), (source,), term.ndim) if found else None

    def _reduce(self, v, node):
        term, own = self.placed(node.inputs[0])
        every = range(node.inputs[0].ndim)
        gone = set(every) if node.op.axis is None else {a % len(every) for a in node.op.axis}
        left = [a for a in every if a not in gone]
        axes = tuple(left.index(a) for a in own if a not in gone)
        summed = [i for i, a in enumerate(own) if a in gone]
        if not summed:
            return term, axes
        where = None if len(summed) == len(own) else summed[0] if len(summed) == 1 else tuple(summed)
        return self.terms.make("call", (type(node.op).__name__.lower(), where), (term,), len(axes)), axes

    def _dimshuffle(self, v, node):
        term, own = self.placed(node.inputs[0])
        order = node.op.new_order
        axes = tuple(i for i, a in enumerate(order) if a in own)
        permuted = tuple(own.index(order[i]) for i in axes)
        if permuted == tuple(range(len(own))):
            return term, axes
        if term.kind == "transpose" and len(own) == 2:
            return term.args[0], axes
        return self.terms.make("transpose", permuted, (term,), len(axes)), axes

    def _dot(self, v, node):
        (left, a), (right, b) = (self.placed(u) for u in node.inputs)
        axes = tuple([0] * (0 in a) + [1] * (1 in b))
        if 1 in a and 0 in b:
            return self.terms.make("matmul", None, (left, right), len(axes)), axes
        places = [Operand(left, tuple(range(len(a)))), Operand(right, tuple(range(len(axes) - len(b), len(axes))))]
        return self.terms.product(places, [], len(axes)), axes

    def _blockwise(self, v, node):
        if isinstance(node.op.core_op, Subtensor):
            return read_lookup(self, v, node)
        if not isinstance(node.op.core_op, Dot):
            return self._call(v, node, type(node.op.core_op).__name__.lower())
        a, b = node.inputs
        if a.ndim == b.ndim == 2:
            return self._dot(v, node)
        axes = tuple(sorted(varies(v)))
        inner = a.type.shape[-2] == 1 and b.type.shape[-1] == 1
        args = (self.read(a), self.read(b))
        return self.terms.make("call", ("inner" if inner else "matmul", None), args, len(axes)), axes

    def _form(self, v, node):
        return self.terms.make("form", None, [self.read(u) for u in node.inputs]), ()

    def _matvec(self, v, node):
        args = (self.read(node.op.graph(node.inputs)), self.read(node.inputs[-1]))
        axes = tuple(sorted(varies(v)))
        return self.terms.make("tiled", None, args, len(axes)), axes

    def _gram(self, v, node):
        return self.read(node.op.graph(node.inputs)), tuple(sorted(varies(v)))

    def _filled(self, term, axes):
        return self.terms.make("call", ("fill", None), (term,), len(axes)), axes

    def _alloc(self, v, node):
        wide = tuple(sorted(varies(v)))
        term, own = self.placed(node.inputs[0])
        shift = v.ndim - node.inputs[0].ndim
        own = tuple(a + shift for a in own)
        return (term, own) if own == wide else self._filled(term, wide)

    def _shape_i(self, v, node):
        return length(self, *self.placed(node.inputs[0]), node.op.i)

    def _shape(self, v, node):
        if v.type.shape == (1,):
            return length(self, *self.placed(node.inputs[0]), 0)
        return self.terms.make("call", ("shape", None), (self.read(node.inputs[0]),), 1), (0,)

    def _subtensor(self, v, node):
        found = last_state(v)
        return read_index(self, node) if found is None else read_loop(self, v, *found, last=True)

    def _scan(self, v, node):
        return read_loop(self, v, node, node.outputs.index(v), last=False)

    def bind(self, variable, name):
        """Read a variable of a loop, a row or what is carried, as a leaf that stays inside the loop."""
        self.rows.add(name)
        axes = tuple(sorted(varies(variable)))
        self.define(variable, self.terms.make("leaf", name, ndim=len(axes)), axes)

    def define(self, variable, term, axes):
        """Read a variable as this term from now on."""
        self._read[variable] = term, axes


_METHODS = (
    (Elemwise, Reader._elemwise),
    (CAReduce, Reader._reduce),
    (DimShuffle, Reader._dimshuffle),
    (Dot, Reader._dot),
    ((DisconnectedGrad, ScalarFromTensor, TensorFromScalar, SpecifyShape), Reader._same),
    (QuadraticForm, Reader._form),
    (KernelMatvec, Reader._matvec),
    (KernelGram, Reader._gram),
    (Alloc, Reader._alloc),
    (Shape_i, Reader._shape_i),
    (Shape, Reader._shape),
    (Subtensor, Reader._subtensor),
    (IncSubtensor, read_part),
    (AdvancedSubtensor, read_lookup),
    (Scan, Reader._scan),
    (Blockwise, Reader._blockwise),
)
_INFIX = {ps.LT: "<", ps.GT: ">", ps.LE: "<=", ps.GE: ">=", ps.EQ: "==", ps.NEQ: "!=", ps.AND: "&", ps.OR: "|"}
_NAMES = {ps.ScalarMaximum: "max", ps.ScalarMinimum: "min", ps.Switch: "where", ps.Cast: "int", ps.Invert: "not"}
