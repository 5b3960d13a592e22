"""Pass 3: a quadratic form sum_i q_i (K q)_i with a symmetric K, whose gradient 2 K q needs one product, not two."""

# pyright: reportAttributeAccessIssue=false, reportOperatorIssue=false, reportIndexIssue=false
# PyTensor's types do not say that graphs are tensors.

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import node_rewriter
from pytensor.scalar.basic import Abs, Add, Cos, Cosh, Mul, Pow, ScalarMaximum, ScalarMinimum, Sqr, Sub
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.rewriting.basic import register_canonicalize

from symsvm.compiler.ops.squared_distances import SquaredDistances
from symsvm.compiler.rewrites.products import factors
from symsvm.graphs.structure import is_elemwise, select_axes, varying_axes

if TYPE_CHECKING:
    from symsvm._lib.types import Graph

__all__ = ["QuadraticForm", "is_symmetric", "local_quadratic_form", "quadratic_form"]


class QuadraticForm(Op):
    """q.Kq for a symmetric matrix K, with the gradients 2 K q and q q'.

    It is in a graph only during differentiation: PyTensor's canonical form replaces it by the sum of products.
    """

    __props__ = ()

    def make_node(self, K, q):
        """Make the node of a matrix and a vector."""
        K, q = pt.as_tensor(K), pt.as_tensor(q)
        return Apply(self, [K, q], [pt.scalar(dtype=pt.dot(K, q).dtype)])

    def perform(self, node, inputs, outputs):
        """Compute q.Kq."""
        K, q = inputs
        outputs[0][0] = np.asarray(q @ (K @ q), dtype=node.outputs[0].dtype)

    def pullback(self, inputs, outputs, cotangents):
        """Return g q q' and 2 g K q."""
        (K, q), (g,) = inputs, cotangents
        return [g * q[:, None] * q[None, :], 2 * g * pt.dot(K, q)]


quadratic_form = QuadraticForm()


@register_canonicalize
@node_rewriter([QuadraticForm])
def local_lower_quadratic_form(fgraph, node):
    """QuadraticForm(K, q) -> sum_i q_i (K q)_i, which shares K q with the gradient."""
    K, q = node.inputs
    return [(q * pt.dot(K, q)).sum().astype(node.outputs[0].dtype)]


@node_rewriter([Sum])
def local_quadratic_form(fgraph, node):
    """sum_i c q_i (K q)_i -> c QuadraticForm(K, q) where K is known to be symmetric."""
    (product,) = node.inputs
    if product.ndim != 1:
        return None
    every = factors(product)
    matvecs = [(f, found) for f in every if (found := _match_matvec(f)) is not None]
    if len(matvecs) != 1:
        return None
    ((matvec, (K, q)),) = matvecs
    rest = [f for f in every if f is not matvec]
    scalars = [f for f in rest if f.type.shape == (1,)]
    number = _ExpressionNumbers()
    vectors = sorted(number(f) for f in rest if f.type.shape != (1,))
    if vectors != sorted(number(f) for f in factors(q) if f.type.shape != (1,)) or not is_symmetric(K):
        return None
    inner = [f for f in factors(q) if f.type.shape == (1,)]
    value = quadratic_form(K, q)
    for f in scalars:
        value = value * f[0]
    for f in inner:  # a scalar factor of q that the rest does not have
        value = value / f[0]
    return [value.astype(node.outputs[0].dtype)]


def is_symmetric(K: Graph) -> bool:
    """Whether the expression of a matrix proves that it is symmetric.

    The expression is compared with its transpose, up to the order of terms and factors and the sign of a difference
    inside an even function.

    >>> X = pt.matrix("X")
    >>> is_symmetric(pt.exp(pt.dot(X, X.T) + X.sum(1)[:, None] + X.sum(1)[None, :])), is_symmetric(X + X.sum(0))
    (True, False)
    """
    number = _ExpressionNumbers()
    return K.ndim == 2 and number(K) == number(K, swap=True)


_COMMUTATIVE = (Add, Mul, ScalarMaximum, ScalarMinimum)
_EVEN = (Abs, Sqr, Cos, Cosh)


class _ExpressionNumbers:
    """Numbers of expressions, the same for equal ones (value numbering); each expression is visited once."""

    def __init__(self):
        self._known, self._numbers = {}, {}

    def __call__(self, variable, swap=False):
        """Return the number of an expression, with its first two axes swapped if `swap`."""
        swap = swap and variable.ndim > 1
        if (variable, swap) not in self._known:
            self._known[variable, swap] = self._number(self._structure(variable, swap))
        return self._known[variable, swap]

    def _number(self, structure):
        return self._numbers.setdefault(structure, len(self._numbers))

    def _structure(self, variable, swap):
        node = variable.owner
        if isinstance(variable, Constant):
            data = np.asarray(variable.data)
            data = np.swapaxes(data, 0, 1) if swap else data
            return "constant", str(data.dtype), data.shape, data.tobytes()
        if node is None:
            return "input", variable, swap and bool(varying_axes(variable))
        op = node.op
        if isinstance(op, Elemwise):
            return op.scalar_op, *self._parts(node, swap)
        if isinstance(op, DimShuffle):
            order = list(op.new_order)
            if swap:
                order[0], order[1] = order[1], order[0]
            return self._shuffled(node.inputs[0], order)
        if isinstance(op, Dot):
            left, right = node.inputs
            if swap:
                return "dot", self._transposed(right), self._transposed(left)
            return "dot", self._plain(left), self._plain(right)
        if isinstance(op, SquaredDistances):
            A, B, *weights = node.inputs
            return "distances", *(self(v) for v in ((B, A, *weights) if swap else node.inputs))
        if isinstance(op, Sum) and op.axis == (2,):
            return "sum", self(node.inputs[0], swap)
        if swap:  # other operations are opaque
            return "transposed", variable
        return op, node.outputs.index(variable), *(self(v) for v in node.inputs)

    def _parts(self, node, swap):
        """Return the numbers of the arguments of an elementwise operation, sorted if it is commutative."""
        scalar_op = node.op.scalar_op
        if isinstance(scalar_op, _COMMUTATIVE):
            return sorted(self(v, swap) for v in _operands(node.outputs[0], type(scalar_op)))
        parts = [self(v, swap) for v in node.inputs]
        if isinstance(scalar_op, _EVEN) or _is_even_power(node):
            parts[0] = min(parts[0], self._negated(node.inputs[0], swap))
        return parts

    def _negated(self, variable, swap):
        """Return the number of v - u for u - v."""
        node = variable.owner
        if node is not None and isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Sub):
            return self._number((node.op.scalar_op, *(self(v, swap) for v in reversed(node.inputs))))
        return self(variable, swap)

    def _shuffled(self, source, order: list):
        while source.owner is not None and isinstance(source.owner.op, DimShuffle):
            inner = source.owner.op.new_order
            order = ["x" if i == "x" else inner[i] for i in order]
            source = source.owner.inputs[0]
        return "shuffled", tuple(order), self(source)

    def _plain(self, matrix):
        return self._number(self._shuffled(matrix, [0, 1]))

    def _transposed(self, matrix):
        return self._number(self._shuffled(matrix, [1, 0]))


def _operands(variable, kind):
    """Return the operands of a + (b + c), or of another operation of this kind, at all depths."""
    node = variable.owner
    if node is not None and isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, kind):
        return [leaf for v in node.inputs for leaf in _operands(v, kind)]
    return [variable]


def _is_even_power(node):
    if not isinstance(node.op.scalar_op, Pow):
        return False
    exponent = node.inputs[1]
    return isinstance(exponent, Constant) and bool((np.asarray(exponent.data) % 2 == 0).all())


def _match_matvec(variable):
    """Return (K, q) of K.q, which PyTensor writes as K.q[:, None] without its last axis; else None."""
    node = variable.owner
    if node is None or not isinstance(node.op, DimShuffle) or node.op.new_order != (0,):
        return None
    node = node.inputs[0].owner
    if node is None or not isinstance(node.op, Dot):
        return None
    K, column = node.inputs
    return (K, _column_to_vector(column)) if column.type.shape[1] == 1 else None


def _column_to_vector(column):
    """Return q of q[:, None]; PyTensor's canonical form may write the column as a product of columns."""
    if is_elemwise(column):
        return column.owner.op(*(_column_to_vector(v) for v in column.owner.inputs))
    return select_axes(column, (0,))
