"""Reading: what a symbolic W is, as a sum over pairs of rows and a sum over points.

    W(v) = s/2 sum_ij q_i q_j H(r_i, r_j) + sum_i phi_i(v_i),    q_i = sum over parts of c_i v_i

r_i is the row i of every array that W sums over, H one pair expression, c_i the factors of the points (labels), s the
factor of the double sum. phi_i is quadratic, D_i v_i^2 / 2 + p_i v_i, or has further terms: eps_i |v_i|, and a smooth
function. v may consist of parts, such as alpha = v[:m] and alpha' = v[m:], whose entries i belong to the same row.
"""

# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false, reportArgumentType=false
# PyTensor's types do not say that graphs are tensors, nor that a variable with an Op has an owner.

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.basic import MergeOptimizer
from pytensor.graph.traversal import ancestors

from symsvm.compiler.functions import COMPILING
from symsvm.compiler.lifting import canonicalize, lift_loops
from symsvm.compiler.reading.pair_expression import row_arrays, separate
from symsvm.compiler.reading.terms import Factor, Term, UnreadableError, contract, expand, is_selection, product
from symsvm.graphs.dtypes import retype, widen
from symsvm.graphs.structure import is_elemwise, leaves, scalar_constant, signature

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from symsvm._lib.types import Array, Graph
    from symsvm.compiler.reading.pair_expression import Separated
    from symsvm.objectives import Objective

__all__ = ["Reading", "is_readable", "leaves_of", "read"]

# Elementwise functions that have no second derivative somewhere.
_KINKS = (ps.Abs, ps.ScalarMaximum, ps.ScalarMinimum, ps.Switch, ps.Sign, ps.Floor, ps.Ceil, ps.RoundHalfToEven)


@dataclass(frozen=True, eq=False)
class Reading:
    """What W is, as graphs over inputs of its own; `symsvm.solvers` evaluates them on data.

    Attributes
    ----------
    fixed : list of array
        The arrays and numbers that W has as constants.
    v : graph
        The variable, an input of the graphs below; the other inputs are `inputs`: for the leaves of W that a run
        knows (`leaves_of`), then for `fixed`.
    inputs : list of graphs
        See `v`.
    W : graph
        W, lifted to sums.
    matrix : graph
        H(r_i, r_j) for all pairs, (m, m).
    pairs : Separated or None
        H as an expression in rows; None for a matrix that is given as a whole.
    parts : list of graphs
        Vectors of entries of v, whose entries i belong to row i.
    signs : list of float
        For each part 1 or -1, its sign in q.
    factors : list of graph or None
        For each part the vector c without its sign; None where it is 1.
    scale : graph
        s, a scalar.
    constant : graph
        The constant of W, a scalar.
    p, diagonal, width : list of tuple
        The linear term, the diagonal D, and eps of eps_i |v_i|: for each term the part of v whose entries it is of, and
        the vector of its values.
    smooth : list of tuple
        The smooth functions: for each term the part, a vector that stands for its entries, and the vector of values.
    arrays : list of graphs or None
        The inputs whose rows are the points: a W of fewer points has fewer rows of these. None if a row is computed
        from many others.
    compiled : dict
        What was compiled from the graphs, by name.
    """

    fixed: list[Array]
    v: Graph
    inputs: list[Graph]
    W: Graph
    matrix: Graph
    pairs: Separated | None
    parts: list[Graph]
    signs: list[float]
    factors: list[Graph | None]
    scale: Graph
    constant: Graph
    p: list[tuple[Graph, Graph]]
    diagonal: list[tuple[Graph, Graph]]
    width: list[tuple[Graph, Graph]]
    smooth: list[tuple[Graph, Graph, Graph]]
    arrays: list[Graph] | None
    compiled: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The name of the variable."""
        return _name(self.v)


_READINGS: dict[Hashable, Reading | UnreadableError] = {}


def read(objective: Objective) -> Reading:
    """Read what the W of an objective is; objectives of the same structure, with the same names, share one reading.

    Parameters
    ----------
    objective : Objective
        The problem.

    Returns
    -------
    Reading
        What W is; its first inputs stand for `leaves_of(objective)`, in that order.

    Raises
    ------
    UnreadableError
        If W is no sum over pairs and points; the message says which part of it is not.
    """
    given = leaves_of(objective)
    inputs = [objective.variable, *given]
    key = signature(inputs, [objective.value]), tuple(v.name for v in inputs)
    with COMPILING:
        if key not in _READINGS:
            try:
                _READINGS[key] = _read(objective.value, objective.variable, given)
            except UnreadableError as error:
                _READINGS[key] = error
        found = _READINGS[key]
    if isinstance(found, UnreadableError):
        raise UnreadableError(*found.args)
    return found


def is_readable(objective: Objective) -> bool:
    """Whether the W of an objective is a sum over pairs and points; see `read`."""
    try:
        read(objective)
    except UnreadableError:
        return False
    return True


def leaves_of(objective: Objective) -> list[Graph]:
    """The leaves of W whose values a run knows, in an order that depends on the structure of W only."""
    variables, numbers = leaves([objective.value])
    return [v for v in (*variables, *numbers) if v is not objective.variable]


def _without_fills(graphs: list) -> list:
    """The graphs with an array of the shape of x in place of fill(x, number), which NumPy evaluates entry by entry."""
    swaps: dict[Any, Any] = {}
    for x in ancestors(graphs):
        if is_elemwise(x, ps.Second) and scalar_constant(x.owner.inputs[1]) is not None:
            shape, value = x.owner.inputs[0].shape, scalar_constant(x.owner.inputs[1])
            swaps[x] = pt.alloc(pt.constant(value), *(shape[axis] for axis in range(x.ndim)))
    return clone_replace(graphs, swaps, rebuild_strict=False) if swaps else graphs


def _input_shape(constant: Any) -> tuple[int | None, ...]:
    """The shape of the input for a constant: unknown lengths of an array, axes of length 1 of a number."""
    return (1,) * constant.ndim if constant.data.size == 1 else (None,) * constant.ndim


def _is_array(constant: Any) -> bool:
    data = constant.data if isinstance(constant, Constant) else None
    return isinstance(data, np.ndarray) and data.size > 1 and data.dtype.kind in "fiu"


def _read(W: Graph, variable: Graph, given: Sequence[Graph]) -> Reading:
    # Inputs of unknown shape: an axis of known length 1 would look like a broadcast one.
    fresh = [pt.tensor(v.name, dtype=v.dtype, shape=(None,) * v.ndim) for v in (variable, *given)]
    (graph,) = clone_replace([W], dict(zip((variable, *given), fresh, strict=True)), rebuild_strict=False)
    lifted = lift_loops(widen([graph]))
    lifted, inputs = retype(lifted, "float64")
    fresh = [inputs.get(v, v) for v in fresh]
    fgraph = FunctionGraph(outputs=_without_fills(canonicalize(lifted)), clone=False)
    MergeOptimizer().rewrite(fgraph)
    # Arrays and numbers that W has as constants are inputs too: loops had them inside.
    _, numbers = leaves(fgraph.outputs)
    arrays: list[Any] = list(dict.fromkeys([*(x for x in ancestors(fgraph.outputs) if _is_array(x)), *numbers]))
    (graph,) = fgraph.outputs
    if arrays:
        fixed = [pt.tensor(x.name, dtype=x.dtype, shape=_input_shape(x)) for x in arrays]
        (graph,) = clone_replace([graph], dict(zip(arrays, fixed, strict=True)), rebuild_strict=False)
        fresh += fixed
    v = fresh[0]
    if v not in set(ancestors([graph])):
        raise UnreadableError(f"W does not depend on {variable}")
    sorting = _Sorting(v)
    for term in expand(graph, v):
        sorting.add(term)
    return sorting.reading(fresh, graph, [x.data for x in arrays])


class _Sorting:
    """The terms of W, sorted into those over pairs and those over points."""

    def __init__(self, v: Graph):
        self.v, self.pairs = v, []
        self.polynomial: list[Term] = []  # of degree two in single entries, at most
        self.absolute: list[Term] = []
        self.smooth: list[Term] = []

    def add(self, term: Term) -> None:
        """Sort a term, or raise `UnreadableError` if it is neither over pairs nor over points."""
        indices = {f.indices[0] for f in (*term.entries, *term.functions)}
        if len(indices) == 2 and len(term.entries) == 2 and not term.functions:
            self.pairs.append(term)
        elif len(indices) > 1:
            raise UnreadableError(
                f"a term of W multiplies {term.degree} entries of {_name(self.v)} at different points"
            )
        elif not term.functions and len(term.entries) <= 2:
            self.polynomial.append(term)
        elif term.degree == 1 and _is_absolute(term.functions[0].graph, self.v):
            self.absolute.append(term)
        else:
            kinks = [k for f in term.functions if (k := _kink(f.graph, self.v)) is not None]
            if kinks:
                raise UnreadableError(f"{kinks[0]} of {_name(self.v)} is not smooth")
            self.smooth.append(term)

    def reading(self, inputs: list[Graph], W: Graph, fixed: list[Array]) -> Reading:
        """What the terms make."""
        if not self.pairs:
            raise UnreadableError("W has no sum over pairs of points")
        parts, signs, factors, scale, matrix = self._quadratic()
        degree = [[term for term in self.polynomial if len(term.entries) == k] for k in range(3)]
        points = (
            self._constant(degree[0]),
            [self._values(term, 1.0) for term in degree[1]],
            [self._values(term, 2.0) for term in degree[2]],
            [self._values(term, 1.0) for term in self.absolute],
            [self._function(term) for term in self.smooth],
        )
        pairs, arrays = separate(matrix), self._arrays(set(inputs))
        quadratic = matrix, pairs, parts, signs, factors, scale
        return Reading(fixed, self.v, inputs[1:], W, *quadratic, *points, arrays)

    def _arrays(self, inputs):
        """The inputs whose rows are the points, None if a row is computed from many others."""
        found: dict[Graph, None] = {}
        for term in (*self.pairs, *self.polynomial, *self.absolute, *self.smooth):
            points = {f.indices[0] for f in (*term.entries, *term.functions)}
            for f in (*term.constants, *term.functions):
                arrays = row_arrays(f.graph, [axis for axis, index in enumerate(f.indices) if index in points])
                if arrays is None or not inputs.issuperset(arrays):
                    return None
                found |= dict.fromkeys(arrays)
        return [array for array in found if array is not self.v]

    # ---- the sum over pairs

    def _quadratic(self):
        """The parts of v with their signs and factors, s, and the graph of H."""
        found = [_PairTerm(term, self.v.dtype) for term in self.pairs]
        for pair in found:
            pair.take_rows_of_matrix()
        parts = list(dict.fromkeys(part for pair in found for part in pair.parts))
        if len(parts) > 1 and self.v in parts:
            raise UnreadableError(f"a double sum of W is over all of {_name(self.v)}, another one over a part of it")
        keys = [pair.scalar_key for pair in found]
        shared_scalars = all(key == keys[0] for key in keys)
        rows = {part: pair.row_keys[k] for pair in found for k, part in enumerate(pair.parts)}
        common = all(pair.row_keys[k] == rows[part] for pair in found for k, part in enumerate(pair.parts))
        scalars = found[0].scalars if shared_scalars else []
        if len(parts) > 1:
            if not (common and shared_scalars):
                raise UnreadableError(f"the parts of {_name(self.v)} have different double sums")
            number, signs, matrix = self._joined(found, parts)
        else:
            number, signs = 2 * abs(found[0].number), [1.0]
            matrix = self._summed(found, abs(found[0].number), not shared_scalars, not common)
        factors: list[Any] = [None] * len(parts)
        if common:
            of_part = {part: pair.rows[k] for pair in found for k, part in enumerate(pair.parts)}
            factors = [_vector(of_part[part]) for part in parts]
        if common and not any(pair.matrices for pair in found):  # the square of a sum: H_ij = c_i c_j
            (c, *others) = factors
            if others or c is None:
                raise UnreadableError("the double sum in W has no expression of two points")
            matrix, factors = matrix * pt.dot(c[:, None], c[None, :]), [None]
        scale = product(scalars, (), "float64") * np.float64(number)
        return parts, signs, factors, scale, matrix

    def _summed(self, found, unit, with_scalars, with_rows):
        """The sum of the matrices of the terms of one part, each divided by `unit`."""
        total = None
        for pair in found:
            matrix = pair.matrix(with_scalars, with_rows)
            if pair.number != unit:
                matrix = matrix * np.float64(pair.number / unit)
            total = matrix if total is None else total + matrix
        return total

    def _joined(self, found, parts):
        """The factor of the double sum over several parts, their signs, and their common matrix."""
        matrices = {pair.matrix_key for pair in found}
        numbers = np.zeros((len(parts), len(parts)))
        for pair in found:
            a, b = (parts.index(part) for part in pair.parts)
            numbers[a, b] += pair.number / 2
            numbers[b, a] += pair.number / 2
        unit, signs = abs(numbers[0, 0]), np.sign(numbers[0])
        if len(matrices) > 1 or not np.array_equal(numbers, numbers[0, 0] * np.outer(signs, signs) * signs[0]):
            raise UnreadableError(f"the parts of {_name(self.v)} have different double sums")
        matrix = found[0].matrix(False, False)
        return 2 * unit, [float(s * signs[0]) for s in signs], matrix if numbers[0, 0] > 0 else -matrix

    # ---- the sum over points

    def _constant(self, terms):
        """The sum of terms that do not depend on v."""
        total = pt.zeros((), dtype="float64")
        for term in terms:
            total = total + np.float64(term.number) * product(contract(term.factors, (), "float64"), (), "float64")
        return total

    def _values(self, term, times):
        """The part of v that a term over points is of, and the vector of its constants, `times` their product."""
        index = (term.entries or term.functions)[0].indices[0]
        left = contract(term.constants, (index,), "float64")
        return self._part(term), np.float64(times * term.number) * product(left, (index,), "float64")

    def _function(self, term):
        """The part of v that a smooth function is of, a vector in its place, and the function of that vector."""
        part = self._part(term)
        index = (term.entries or term.functions)[0].indices[0]
        values = np.float64(term.number) * product(contract(term.factors, (index,), "float64"), (index,), "float64")
        u = pt.dvector("u")
        (values,) = clone_replace([values], {part: u}, rebuild_strict=False)
        if self.v in set(ancestors([values])):
            raise UnreadableError(f"a function of {_name(self.v)} is of entries at different places")
        return part, u, values

    def _part(self, term):
        """The vector of entries of v that a term over points is of."""
        selections = [f.graph for f in term.entries]
        for f in term.functions:
            selections += [x for x in ancestors([f.graph]) if is_selection(x, self.v) and x is not self.v]
            selections += [] if selections else [self.v]
        if len(set(selections)) != 1:
            raise UnreadableError(f"a function of {_name(self.v)} is of entries at different places")
        return selections[0]


class _PairTerm:
    """A term c sum_ij a_ij ... v_i v_j, its constants summed over all other indices and sorted by i and j."""

    def __init__(self, term: Term, dtype: str):
        self.dtype, self.number = dtype, term.number
        self.parts = [entry.graph for entry in term.entries]
        i, j = self.indices = tuple(entry.indices[0] for entry in term.entries)
        left = contract(term.constants, (i, j), dtype)
        self.scalars = [f for f in left if not f.indices]
        self.rows = [[f for f in left if f.indices == (index,)] for index in (i, j)]
        self.matrices = [f for f in left if len(f.indices) == 2]

    def take_rows_of_matrix(self) -> None:
        """Let factors of one index whose arrays the matrix has rows of be part of it, as s_i in s_i s_j K(s_i, s_j).

        At other points they have other values. Labels are of arrays of their own, and stay factors.
        """
        arrays = set()
        for f in self.matrices:
            arrays |= set(row_arrays(f.graph, (0, 1)) or ())
        sides = [[f for f in side if not arrays.isdisjoint(row_arrays(f.graph, (0,)) or ())] for side in self.rows]
        if sides[0] and sides[1]:
            self.matrices += [*sides[0], *sides[1]]
            self.rows = [[f for f in side if f not in own] for side, own in zip(self.rows, sides, strict=True)]

    @property
    def scalar_key(self) -> tuple:
        """What identifies the scalar factors."""
        return tuple(sorted(id(f.graph) for f in self.scalars))

    @property
    def row_keys(self) -> list[tuple]:
        """What identifies the factors of i and those of j."""
        return [tuple(sorted(id(f.graph) for f in side)) for side in self.rows]

    @property
    def matrix_key(self) -> tuple:
        """What identifies the factors of both, in either order of the indices."""
        return tuple(sorted(id(f.graph) for f in self.matrices))

    def matrix(self, with_scalars: bool, with_rows: bool) -> Graph:
        """The product of the factors of both indices, and of the others if they are asked for."""
        factors: list[Factor] = [*self.matrices]
        factors += self.scalars if with_scalars else []
        factors += [*self.rows[0], *self.rows[1]] if with_rows else []
        return product(factors, self.indices, self.dtype)


def _vector(factors: list[Factor]) -> Graph | None:
    """The product of factors with one index, None if there are none."""
    return product(factors, factors[0].indices, "float64") if factors else None


def _is_absolute(graph: Graph, v: Graph) -> bool:
    """Whether a function of v is |v_i|."""
    return is_elemwise(graph, ps.Abs) and is_selection(graph.owner.inputs[0], v)


def _kink(graph: Graph, v: Graph) -> str | None:
    """The name of a function in a graph of v that has no second derivative, None if there is none."""
    for x in ancestors([graph]):
        if is_elemwise(x, *_KINKS) and v in set(ancestors([x])):
            return str(x.owner.op.scalar_op).partition("{")[0].lower()
    return None


def _name(v: Graph) -> str:
    return v.name or "the variable"
