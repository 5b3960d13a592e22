"""A proof from the expression of two rows that every matrix of pairs is positive semi-definite.

Three properties are inferred, from the inside out (Berg, Christensen, Ressel, Harmonic Analysis on Semigroups, 1984):

    positive semi-definite (psd)      a_i.a_j;  u_i u_j;  sums, products and powers of psd;  exp of cpd;
                                      D^-p with p > 0 of a D > 0 that is cnd
    conditionally psd (cpd)           psd;  u_i + u_j;  constants;  sums of cpd;  -D of a D that is cnd
    conditionally negative (cnd)      sum_k w_k (a_ik - a_jk)^2 and sum_k w_k |a_ik - a_jk| with w_k >= 0;
                                      sum_k ((a_ik - a_jk) / s_k)^2;  sums of cnd;
                                      sqrt(D), D^p with 0 < p < 1 and log(1 + D) of a D >= 0 that is cnd

Where a proof needs the sign of a number, such as gamma > 0, the number is one of its conditions.
"""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false, reportArgumentType=false
# PyTensor's types do not say that graphs are tensors, nor that a variable with an Op has an owner.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot, Sum

from symsvm.graphs.structure import is_elemwise, scalar_constant, select_axes, signature, varying_axes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from symsvm._lib.types import Graph

    # The graphs of numbers that must be at least 0 for a proof to hold; None if there is no proof.
    Conditions = list[Graph] | None

__all__ = ["psd_conditions"]


def psd_conditions(matrix: Graph, rows: Sequence[Graph], columns: Sequence[Graph]) -> Conditions:
    """Return the numbers that must be at least 0 for a matrix of pairs to be positive semi-definite, None if unknown.

    Parameters
    ----------
    matrix : graph
        The matrix of all pairs of `rows` and `columns`, in PyTensor's canonical form.
    rows, columns : sequence of graphs
        The inputs of both sides, in the same order.

    Returns
    -------
    list of graphs or None
        The conditions.

    Examples
    --------
    >>> A, B, g = pt.dmatrix("A"), pt.dmatrix("B"), pt.dscalar("g")
    >>> psd_conditions(pt.dot(A, B.T) ** 2 + g, [A], [B]), psd_conditions(pt.tanh(pt.dot(A, B.T)), [A], [B])
    ([ExpandDims{axes=(0, 1)}.0], None)
    """
    return _Proof(rows, columns).psd(matrix)


class _Proof:
    """The rules, over the inputs of both sides."""

    def __init__(self, rows: Sequence[Graph], columns: Sequence[Graph]):
        self.rows, self.columns = list(rows), list(columns)

    # ---- sides

    def sides(self, x: Graph) -> tuple[bool, bool]:
        """Whether x depends on rows and on columns."""
        below = set(ancestors([x]))
        return not below.isdisjoint(self.rows), not below.isdisjoint(self.columns)

    def is_mirrored(self, a: Graph, b: Graph) -> bool:
        """Whether b, along the axis of columns, is the same expression as a along that of rows."""
        if a.ndim != b.ndim:
            return False
        first, second = (tuple(sorted(varying_axes(v))) for v in (a, b))
        if 1 in first or 0 in second or first[1:] != second[1:]:
            return False
        (mirrored,) = clone_replace([select_axes(a, first)], dict(zip(self.rows, self.columns, strict=True)))
        return signature(self.columns, [mirrored]) == signature(self.columns, [select_axes(b, second)])

    def split(self, factors: Sequence[Graph]) -> tuple[list, list, list, list]:
        """Factors or terms of numbers, of rows, of columns and of both."""
        groups: tuple[list, list, list, list] = [], [], [], []
        for f in factors:
            of_rows, of_columns = self.sides(f)
            groups[of_rows + 2 * of_columns].append(f)
        return groups

    # ---- rules

    def psd(self, x: Graph) -> Conditions:
        """The conditions under which x is positive semi-definite."""
        if self.sides(x) == (False, False):
            return [x]
        if is_elemwise(x, ps.Add):
            return _all(self.psd(term) for term in x.owner.inputs)
        if is_elemwise(x, ps.Exp):
            return self.cpd(x.owner.inputs[0])
        if is_elemwise(x, ps.Reciprocal) or _power(x, lambda p: p < 0):  # mixtures of exp(-t D)
            return self._distance(x.owner.inputs[0])
        if is_elemwise(x, ps.Sqr) or _power(x, lambda p: p >= 1 and p == int(p)):
            return self.psd(x.owner.inputs[0])
        if _has_op(x, Dot):
            a, bt = x.owner.inputs
            is_inner = self.is_mirrored(a[:, None, :], select_axes(bt, (1, 0))[None, :, :])
            return [] if is_inner else None
        if _has_op(x, Sum) and x.ndim == 2:
            return self._inner_product(x)
        if is_elemwise(x, ps.Mul, ps.TrueDiv, ps.Neg):
            numbers, of_rows, of_columns, both = self.split(_factors(x))
            if not self._are_mirrored(of_rows, of_columns):
                return None
            return _all([[_product(numbers)] if numbers else [], *(self.psd(f) for f in both)])
        return None

    def cpd(self, x: Graph) -> Conditions:
        """The conditions under which x is conditionally positive semi-definite."""
        return self._conditionally(x, 1)

    def cnd(self, x: Graph) -> Conditions:
        """The conditions under which -x is conditionally positive semi-definite."""
        return self._conditionally(x, -1)

    def _conditionally(self, x, sign):
        if self.sides(x) == (False, False):
            return []
        if is_elemwise(x, ps.Add, ps.Sub):
            plus, minus = _terms(x)
            parts = []
            for terms, direction in ((plus, sign), (minus, -sign)):
                _, of_rows, of_columns, both = self.split(terms)
                if len(of_rows) != len(of_columns) or not self._are_mirrored(of_rows, of_columns, pt.add):
                    return None
                parts += [self._conditionally(term, direction) for term in both]
            return _all(parts)
        if is_elemwise(x, ps.Mul, ps.TrueDiv, ps.Neg):
            numbers, of_rows, of_columns, both = self.split(_factors(x))
            if len(both) == 1 and not of_rows and not of_columns:
                c = _product(numbers)
                for direction, condition in ((sign, c), (-sign, -c)):
                    inside = self._conditionally(both[0], direction)
                    if inside is not None and not _is_negative(condition):
                        return [condition, *inside]
        if sign > 0:
            return self.psd(x)
        return self._distance(x)

    def _distance(self, x):
        """The conditions under which x is at least 0 and conditionally negative."""
        if self.sides(x) == (False, False):
            return [x]
        if is_elemwise(x, ps.Add):
            return _all(self._distance(term) for term in x.owner.inputs)
        if is_elemwise(x, ps.Sqrt, ps.Log1p) or _power(x, lambda p: 0 < p <= 1):
            return self._distance(x.owner.inputs[0])
        if is_elemwise(x, ps.Mul, ps.TrueDiv):
            numbers, of_rows, of_columns, both = self.split(_factors(x))
            if len(both) == 1 and not of_rows and not of_columns:
                return _all([[_product(numbers)], self._distance(both[0])])
            return None
        if not (_has_op(x, Sum) and x.ndim == 2):
            return None
        weights, *_, both = self.split(_factors(x.owner.inputs[0]))
        if len(both) != 1 or not (is_elemwise(both[0], ps.Sqr, ps.Abs) or _power(both[0], lambda p: 0 < p <= 2)):
            return None
        size = both[0] if not _power(both[0], lambda p: p not in (1, 2)) else both[0].owner.inputs[0]
        inside = size.owner.inputs[0]
        if size is not both[0] and not is_elemwise(size, ps.Abs):
            return None  # a power of a difference that may be negative
        # |t w|^p = |w|^p |t|^p: a factor w of the difference itself may have any sign.
        _, of_rows, of_columns, differences = self.split(_factors(inside))
        if of_rows or of_columns or len(differences) != 1 or not is_elemwise(differences[0], ps.Sub):
            return None
        a, b = differences[0].owner.inputs
        return weights if self.is_mirrored(a, b) or self.is_mirrored(b, a) else None

    def _inner_product(self, x):
        """sum_k w_k a_ik a_jk."""
        weights, of_rows, of_columns, both = self.split(_factors(x.owner.inputs[0]))
        return weights if not both and of_rows and self._are_mirrored(of_rows, of_columns) else None

    def _are_mirrored(self, of_rows, of_columns, join: Callable = pt.mul):
        """Whether the product, or the sum, of factors of rows is that of factors of columns."""
        if not of_rows and not of_columns:
            return True
        if not of_rows or not of_columns:
            return False
        left, right = (side[0] if len(side) == 1 else join(*side) for side in (of_rows, of_columns))
        return self.is_mirrored(left, right)


def _all(parts) -> Conditions:
    """All conditions of several proofs, None if one of them is missing."""
    found = []
    for part in parts:
        if part is None:
            return None
        found += part
    return found


def _factors(x: Graph) -> list:
    """The factors of a product or quotient."""
    if is_elemwise(x, ps.Neg):
        return [pt.constant(np.full((1,) * x.ndim, -1.0)), *_factors(x.owner.inputs[0])]
    if is_elemwise(x, ps.Mul):
        return [f for part in x.owner.inputs for f in _factors(part)]
    if is_elemwise(x, ps.TrueDiv):
        above, below = x.owner.inputs
        return [*_factors(above), *(pt.reciprocal(f) for f in _factors(below))]
    return [x]


def _terms(x: Graph) -> tuple[list, list]:
    """The terms of a sum or difference, with a plus and with a minus."""
    if is_elemwise(x, ps.Add):
        parts = [_terms(part) for part in x.owner.inputs]
        return [t for plus, _ in parts for t in plus], [t for _, minus in parts for t in minus]
    if is_elemwise(x, ps.Sub):
        (plus, minus), (below, above) = (_terms(part) for part in x.owner.inputs)
        return [*plus, *above], [*minus, *below]
    return [x], []


def _product(factors: Sequence[Graph]) -> Any:
    return pt.ones(()) if not factors else factors[0] if len(factors) == 1 else pt.mul(*factors)


def _is_negative(x: Graph) -> bool:
    """Whether a number is negative whatever the inputs are."""
    total = 1.0
    for f in _factors(x):
        value = scalar_constant(f)
        if value is None:
            return False
        total *= float(value)
    return total < 0


def _power(x: Graph, accepts: Callable[[float], bool]) -> bool:
    """Whether x is a constant power that is accepted."""
    if not is_elemwise(x, ps.Pow):
        return False
    exponent = scalar_constant(x.owner.inputs[1])
    return exponent is not None and bool(accepts(float(exponent)))


def _has_op(x: Graph, kind: type) -> bool:
    while x.owner is not None and isinstance(x.owner.op, DimShuffle) and x.owner.op.new_order == tuple(range(x.ndim)):
        (x,) = x.owner.inputs
    return x.owner is not None and isinstance(x.owner.op, kind)
