"""A scalar graph W of a vector v as a sum of products over indices, the normal form in which W is read.

    W(v) = sum over terms of    c  sum_{i, j, k, ...}  a_ij b_jk ...  v_i v_j ...  f(v_i) ...

A `Term` holds the constant factors, the entries of v and the elementwise functions of v in one such product, each with
the indices of its axes. Indices are numbers; all indices of a scalar are summed over. Sums, products of matrices,
differences and squares are multiplied out as far as they depend on v, and no further: K(x_i, x_j) stays one factor.
"""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false, reportReturnType=false
# PyTensor's types do not say that graphs are tensors, nor that a variable with an Op has an owner.

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedGrad
from pytensor.raise_op import CheckAndRaise
from pytensor.scan.op import Scan
from pytensor.tensor.basic import Alloc
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.shape import Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from symsvm.graphs.structure import scalar_constant, select_axes, varying_axes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from symsvm._lib.types import Graph

__all__ = ["Factor", "Term", "UnreadableError", "contract", "expand", "is_selection", "product"]

# More terms than a formula on paper has: what is multiplied out is no longer what was written.
_MOST_TERMS = 256
# Operations whose result is their first argument.
_TRANSPARENT = (SpecifyShape, CheckAndRaise, DisconnectedGrad)


class UnreadableError(TypeError):
    """W is no sum over pairs and points; the message says which part of it is not."""


@dataclass(frozen=True)
class Factor:
    """An array in a product, and the index of each of its axes."""

    graph: Graph
    indices: tuple[int, ...]


@dataclass(frozen=True)
class Term:
    """A product of factors, summed over all indices that are not axes of the result.

    Attributes
    ----------
    number : float
        The literal factor.
    constants : tuple of Factor
        Arrays and numbers that do not depend on v.
    entries : tuple of Factor
        Vectors of entries of v: v itself, v[:m], v[index].
    functions : tuple of Factor
        Vectors of nonlinear functions of entries of v, one index each.
    """

    number: float = 1.0
    constants: tuple[Factor, ...] = ()
    entries: tuple[Factor, ...] = ()
    functions: tuple[Factor, ...] = ()

    @property
    def factors(self) -> tuple[Factor, ...]:
        """All factors."""
        return (*self.constants, *self.entries, *self.functions)

    @property
    def degree(self) -> int:
        """The number of factors that depend on v."""
        return len(self.entries) + len(self.functions)

    def indices(self) -> set[int]:
        """The indices of all factors."""
        return {index for factor in self.factors for index in factor.indices}

    def __mul__(self, other: Term) -> Term:
        groups = ((getattr(self, name), getattr(other, name)) for name in ("constants", "entries", "functions"))
        return Term(self.number * other.number, *(a + b for a, b in groups))


@dataclass(frozen=True)
class _Expansion:
    """A graph as terms: the index of each axis, None for an axis of length 1."""

    axes: tuple[int | None, ...]
    terms: tuple[Term, ...]


def expand(W: Graph, v: Graph) -> list[Term]:
    """Return the terms of a scalar graph, or raise `UnreadableError`.

    Parameters
    ----------
    W : graph
        A scalar, after the passes over loops and PyTensor's canonical form.
    v : graph
        The vector, an input of the graph.

    Returns
    -------
    list of Term
        The terms, whose sum is W.

    Examples
    --------
    >>> v, K = pt.dvector("v"), pt.dmatrix("K")
    >>> terms = expand(3 * (v[:, None] * K * v).sum() - v.sum(), v)
    >>> [(term.number, [f.indices for f in term.factors]) for term in terms]
    [(3.0, [(0, 1), (0,), (1,)]), (-1.0, [(0,)])]
    """
    terms = _Expander(v).expand(W).terms
    return [_renumbered(term) for term in terms]


def _renumbered(term: Term) -> Term:
    """The term with the indices 0, 1, ... in the order in which they occur."""
    order = dict.fromkeys(index for factor in term.factors for index in factor.indices)
    names = {index: k for k, index in enumerate(order)}
    return _renamed(term, names.__getitem__)


def _renamed(term: Term, name: Callable[[int], int]) -> Term:
    groups = {}
    for group in ("constants", "entries", "functions"):
        groups[group] = tuple(Factor(f.graph, tuple(map(name, f.indices))) for f in getattr(term, group))
    return replace(term, **groups)


class _Expander:
    """The expansions of the variables of one graph."""

    def __init__(self, v: Graph):
        self.v, self._fresh, self._known = v, itertools.count(), {}
        self._depends: dict[Graph, bool] = {v: True}

    def depends(self, x: Graph) -> bool:
        """Whether values of x depend on values of v; shapes do not."""
        if x not in self._depends:
            node = x.owner
            if node is None or isinstance(node.op, (Shape, Shape_i)):
                self._depends[x] = False
            else:
                self._depends[x] = any(self.depends(below) for below in node.inputs)
        return self._depends[x]

    def expand(self, x: Graph) -> _Expansion:
        """The expansion of a variable, with indices of its own."""
        if x not in self._known:
            self._known[x] = self._expand(x)
            if len(self._known[x].terms) > _MOST_TERMS:
                raise UnreadableError(f"W has more than {_MOST_TERMS} terms when it is multiplied out")
        return self._known[x]

    def _axes(self, x: Graph) -> tuple[int | None, ...]:
        """A new index for each axis of x, None where its length is 1."""
        varying = varying_axes(x)
        return tuple(next(self._fresh) if axis in varying else None for axis in range(x.ndim))

    def _at(self, x: Graph, axes: Sequence[int | None]) -> tuple[Term, ...]:
        """The terms of x with these indices of its axes; indices that it sums over are new."""
        expansion = self.expand(x)
        names: dict[Any, Any] = {old: new for old, new in zip(expansion.axes, axes, strict=True) if old is not None}

        def name(index):
            if index not in names:
                names[index] = next(self._fresh)
            return names[index]

        found = []
        for term in expansion.terms:
            for bound in term.indices() - set(expansion.axes):
                names.pop(bound, None)
            found.append(_renamed(term, name))
        return tuple(found)

    def _expand(self, x: Graph) -> _Expansion:
        axes = self._axes(x)
        if not self.depends(x):
            return _Expansion(axes, (self._constant(x, axes),))
        if is_selection(x, self.v):
            return _Expansion(axes, (Term(entries=(Factor(x, cast("tuple[int, ...]", axes)),)),))
        op = x.owner.op
        if isinstance(op, _TRANSPARENT):
            return self.expand(x.owner.inputs[0])
        if isinstance(op, Elemwise):
            return _Expansion(axes, self._elementwise(x, axes))
        if isinstance(op, DimShuffle):
            (inside,) = x.owner.inputs
            below: list[int | None] = [None] * inside.ndim
            for axis, source in enumerate(op.new_order):
                if source != "x":
                    below[source] = axes[axis]
            return _Expansion(axes, self._at(inside, below))
        if isinstance(op, Alloc):
            value = x.owner.inputs[0]
            return _Expansion(axes, self._at(value, self._aligned(value, axes)))
        if isinstance(op, Sum):
            return _Expansion(axes, self._sum(x, axes))
        if isinstance(op, Dot) or (isinstance(op, Blockwise) and isinstance(op.core_op, Dot)):
            return _Expansion(axes, self._dot(x, axes))
        raise UnreadableError(_reason(x))

    def _constant(self, x, axes):
        value = scalar_constant(x)
        if value is not None and value.dtype.kind in "fiub":
            return Term(float(value))
        varying = tuple(axis for axis in range(x.ndim) if axes[axis] is not None)
        return Term(constants=(Factor(select_axes(x, varying), tuple(axes[a] for a in varying)),))

    def _aligned(self, x, axes):
        """The indices of the axes of x in a result with these indices, to which it is broadcast."""
        last = axes[len(axes) - x.ndim :]
        return [index if axis in varying_axes(x) else None for axis, index in enumerate(last)]

    def _elementwise(self, x, axes):
        kind, inputs = x.owner.op.scalar_op, x.owner.inputs
        parts = [lambda u=u: self._at(u, self._aligned(u, axes)) for u in inputs]
        if self._is_function(x):
            varying = tuple(sorted(varying_axes(x)))
            if len(varying) == 1:
                return (Term(functions=(Factor(select_axes(x, varying), (axes[varying[0]],)),)),)
        if isinstance(kind, ps.Add):
            return tuple(term for part in parts for term in part())
        if isinstance(kind, ps.Sub):
            return (*parts[0](), *(replace(term, number=-term.number) for term in parts[1]()))
        if isinstance(kind, ps.Neg):
            return tuple(replace(term, number=-term.number) for term in parts[0]())
        if isinstance(kind, ps.Mul):
            return _multiplied([part() for part in parts])
        if isinstance(kind, (ps.Cast, ps.Identity)):
            return parts[0]()
        if isinstance(kind, ps.Second):
            return parts[1]()
        if isinstance(kind, ps.TrueDiv) and not self.depends(inputs[1]):
            below: Any = pt.reciprocal(inputs[1].astype(x.dtype))
            return _multiplied([parts[0](), self._at(below, self._aligned(below, axes))])
        if isinstance(kind, ps.Sqr):
            return _multiplied([parts[0](), parts[0]()])
        if (power := _whole_power(x)) is not None:
            return _multiplied([parts[0]() for _ in range(power)])
        raise UnreadableError(_reason(x))

    def _is_function(self, x):
        """Whether x is an elementwise function of entries of v that is not a polynomial of degree two or less."""
        degree = self._local_degree(x)
        return degree is not None and degree > 2

    def _local_degree(self, x):
        """The degree of an elementwise function of entries of v, infinite if it is no polynomial; None for others."""
        if not self.depends(x):
            return 0
        if is_selection(x, self.v):
            return 1
        op = x.owner.op
        if isinstance(op, (DimShuffle, *_TRANSPARENT)):
            return self._local_degree(x.owner.inputs[0])
        if not isinstance(op, Elemwise):
            return None
        degrees = [self._local_degree(u) for u in x.owner.inputs]
        if any(degree is None for degree in degrees) or not self._has_one_axis(x):
            return None
        kind = op.scalar_op
        if isinstance(kind, (ps.Add, ps.Sub, ps.Neg, ps.Cast, ps.Identity, ps.Second)):
            return max(degrees)
        if isinstance(kind, ps.Mul):
            return sum(degrees)
        if isinstance(kind, ps.TrueDiv) and degrees[1] == 0:
            return degrees[0]
        if isinstance(kind, ps.Sqr):
            return 2 * degrees[0]
        power = _whole_power(x)
        return np.inf if power is None else power * degrees[0]

    def _has_one_axis(self, x):
        """Whether the arguments that depend on v, and all others, vary along one axis at most."""
        return len(set().union(*(varying_axes(u) for u in x.owner.inputs))) <= 1

    def _sum(self, x, axes):
        (inside,) = x.owner.inputs
        reduced = set(range(inside.ndim)) if x.owner.op.axis is None else set(x.owner.op.axis)
        kept = iter(axes)
        below = [next(self._fresh) if axis in reduced else next(kept) for axis in range(inside.ndim)]
        below = [index if axis in varying_axes(inside) else None for axis, index in enumerate(below)]
        terms = []
        for term in self._at(inside, below):
            for axis in sorted(reduced):
                if below[axis] is not None and below[axis] not in term.indices():
                    # It does not vary along the axis: the sum multiplies it by the length.
                    length = inside.shape[axis].astype(x.dtype)
                    term = term * Term(constants=(Factor(length, ()),))
            terms.append(term)
        return tuple(terms)

    def _dot(self, x, axes):
        """sum_k a_ik b_kj, for stacks of matrices too."""
        a, b = x.owner.inputs
        *batch, i, j = axes
        varies = x.owner.inputs[0].type.shape[-1] != 1 and x.owner.inputs[1].type.shape[-2] != 1
        k = next(self._fresh) if varies else None
        sides = []
        for side, last in ((a, (i, k)), (b, (k, j))):
            every = (*batch, *last)
            sides.append(self._at(side, [e if axis in varying_axes(side) else None for axis, e in enumerate(every)]))
        return _multiplied(sides)


def _multiplied(parts: Iterable[Sequence[Term]]) -> tuple[Term, ...]:
    """The product of sums of terms."""
    product = (Term(),)
    for part in parts:
        product = tuple(a * b for a in product for b in part)
        if len(product) > _MOST_TERMS:
            raise UnreadableError(f"W has more than {_MOST_TERMS} terms when it is multiplied out")
    return product


def _whole_power(x):
    """n of u ** n with a whole n from 1 to 4, else None."""
    if not isinstance(x.owner.op.scalar_op, ps.Pow):
        return None
    exponent = scalar_constant(x.owner.inputs[1])
    return int(exponent) if exponent is not None and exponent in (1, 2, 3, 4) else None


def is_selection(x: Graph, v: Graph) -> bool:
    """Whether x is v, or a vector of some of its entries."""
    if x is v:
        return True
    node = x.owner
    if node is None or x.ndim != 1:
        return False
    return isinstance(node.op, (Subtensor, AdvancedSubtensor)) and node.inputs[0] is v


def _reason(x: Graph) -> str:
    """Why a variable cannot be multiplied out."""
    op = x.owner.op
    if isinstance(op, Scan):
        return "a loop in W is no sum over rows"
    name = str(op.scalar_op if isinstance(op, Elemwise) else op).partition("{")[0]
    return f"{name} of an expression in the variable is no sum over pairs and points"


# ---- back to graphs


def product(factors: Sequence[Factor], indices: Sequence[int], dtype: str) -> Graph:
    """The graph of a product of factors, one axis for each index."""
    total = None
    for factor in factors:
        order = [factor.indices.index(i) if i in factor.indices else "x" for i in indices]
        part = factor.graph.dimshuffle(order).astype(dtype)
        total = part if total is None else total * part
    return pt.ones((1,) * len(indices), dtype=dtype) if total is None else total


def contract(factors: Sequence[Factor], keep: Sequence[int], dtype: str) -> list[Factor]:
    """Sum a product over all indices but those in `keep`; return the factors that are left.

    One index after another is eliminated, each time the one whose factors have the fewest indices.
    """
    left = list(factors)
    while True:
        bound = dict.fromkeys(i for f in left for i in f.indices if i not in keep)
        if not bound:
            return left
        index = min(bound, key=lambda i: len({k for f in left if i in f.indices for k in f.indices}))
        inside = [f for f in left if index in f.indices]
        left = [f for f in left if index not in f.indices]
        others = tuple(dict.fromkeys(k for f in inside for k in f.indices if k != index))
        left.append(Factor(_sum_over(inside, index, others, dtype), others))


def _sum_over(inside, index, others, dtype):
    """The sum over one index of the product of factors, a product of matrices where it is one."""
    if len(others) == 2:
        sides = [[f for f in inside if set(f.indices) <= {index, other}] for other in others]
        if len(sides[0]) + len(sides[1]) >= len(inside) and all(any(len(f.indices) == 2 for f in s) for s in sides):
            left, right = sides[0], [f for f in inside if f not in sides[0]]
            if all(set(f.indices) <= {index, others[1]} for f in right):
                return pt.dot(product(left, (others[0], index), dtype), product(right, (index, others[1]), dtype))
    return product(inside, (*others, index), dtype).sum(axis=-1)
