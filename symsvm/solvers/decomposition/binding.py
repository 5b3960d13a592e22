"""Binding: a W that was read, on data, becomes a `KernelProblem`.

    W(v) = s/2 sum_ij c_i v_i c_j v_j H_ij + sum_i phi_i(v_i),    a.v = total    becomes
    1/2 sum_ij z_i z_j K_ij + sum_i phi_i(z_i / f_i),    sum of z = total'         in z_i = f_i v_i

f is a times a constant, so that the equality is a plain sum, or c where there is none. Where c / a is the same number
for all points, as for labels y, both vanish and K = H. Else K_ij = t_i t_j H_ij with t = c / a.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pytensor.gradient import grad
from pytensor.graph.traversal import ancestors

from symsvm.compiler.functions import COMPILING, function, shape_error
from symsvm.compiler.lifting import MEMORY
from symsvm.compiler.reading import UnreadableError
from symsvm.compiler.reading.pair_expression import PLAIN
from symsvm.evaluation.derived_matrices import ScaledMatrix
from symsvm.evaluation.evaluator import PairEvaluator
from symsvm.evaluation.local import LocalKernelMatrix, PairMatrix
from symsvm.evaluation.thin_points import sparse_if_thin
from symsvm.kernels import Precomputed
from symsvm.objectives import QuadraticProgram
from symsvm.objectives.separable import SeparableTerm
from symsvm.solvers.decomposition.kernel_problem import KernelProblem, VariableChange

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from symsvm._lib.types import Array
    from symsvm.compiler.reading import Reading

__all__ = ["bind", "program_of"]

# Numbers that differ by no more than this, relative, are the same: c / a, whose quotients round.
_SAME = 1e-14


def bind(
    reading: Reading,
    values: Sequence[Any],
    length: int | None,
    bounds: Sequence[Array],
    *,
    is_convex: bool | None = None,
    memory: int = MEMORY,
    mode: Any = None,
) -> KernelProblem:
    """Return the problem of a reading on data.

    Parameters
    ----------
    reading : Reading
        What W is.
    values : sequence of array
        The values of `reading.inputs`; points may be CSR.
    length : int or None
        The length of v; None where it follows from the rows.
    bounds : sequence of array
        lower, upper and, with an equality, a and c.
    is_convex : bool, optional
        Whether W is known to be convex; by default, whether the expression of two rows proves it.
    memory : int
        Bytes that a matrix may take which is given as a whole.
    mode : str or Mode, optional
        The backend.

    Returns
    -------
    KernelProblem
        The problem.
    """
    matrix, expand, is_psd = _matrix(reading, dict(zip(reading.inputs, values, strict=True)), memory, mode)
    program, change, t = program_of(reading, values, matrix.m, length, bounds)
    if t is not None:
        matrix, expand = ScaledMatrix(matrix, t), _scaled(expand, t)
    smooth = _smooth(reading, values, change)
    is_proven = bool(is_psd) and smooth is None and bool((program.diagonal >= 0).all())
    is_convex = is_convex if is_convex is not None else is_proven or None
    return KernelProblem(program, matrix, change, smooth, is_convex, is_proven, expand, memory)


def program_of(
    reading: Reading, values: Sequence[Any], m: int, length: int | None, bounds: Sequence[Array]
) -> tuple[QuadraticProgram, VariableChange, Array | None]:
    """Return the program of a reading on data, the change of its variables, and t; None where t is 1.

    Parameters
    ----------
    reading, values, length, bounds
        Those of `bind`; values that only the matrix of pairs needs may be None.
    m : int
        The number of rows.

    Returns
    -------
    tuple of (QuadraticProgram, VariableChange, array or None)
        The program in z = f v, the change of variables, and the factors t_i of the matrix.
    """
    n = m * len(reading.parts) if length is None else length
    found = _evaluate(reading, values, n)
    places = _parts(reading, found.parts, m, n)
    if not found.scale > 0:
        raise ValueError(f"the factor of the double sum in W must be positive, got {found.scale:g}.")
    c = np.empty(n)
    for part, sign, factors in zip(places, reading.signs, found.factors, strict=True):
        c[part] = sign if factors is None else sign * factors
    equality = _Equality.of(bounds[2:], n)
    root = float(np.sqrt(found.scale))
    f, unit, t = _scaling(c, equality)
    f, unit = f * root, unit * root
    if t is not None:
        if (t[places] != t[places[0]]).any():
            raise UnreadableError(f"the parts of {reading.name} have different factors at the same point")
        t = t[places[0]]
    order = places.ravel()
    is_ordered = np.array_equal(order, np.arange(n))
    largest = float(np.abs(f if equality.a is None else unit).max())
    # A W that is multiplied by a number has the same classifier: margins are in units of a common p, 1 in Eq. 21.
    p = np.abs(found.p)
    margin = float(p[0]) if p[0] > 0 and np.ptp(p) <= _SAME * p[0] and not reading.width else 1.0
    change = VariableChange(f, None if is_ordered else order, largest, unit, root / margin, bool(reading.width))
    return _program(reading, found, bounds, f, order, equality, unit, m), change, t


def _scaling(c: Array, equality: _Equality) -> tuple[Array, Array, Array | None]:
    """f, the factor unit of each equality, and t with c = t f; None where t is 1.

    An equality may be multiplied by any number: by c / a where that is the same for all its variables.
    """
    if equality.a is None:
        f = np.where(c == 0, 1.0, c)
        return f, np.ones(0), None if c.all() else c / f
    ratio, unit = c / equality.a, np.ones(len(equality.total))
    for g in range(len(unit)):
        here = ratio[equality.group == g]
        if not len(here):
            continue
        if here[0] == 0 or np.ptp(here) > _SAME * abs(here[0]):
            return equality.a.copy(), np.ones(len(unit)), ratio
        unit[g] = here[0]
    return equality.a * unit[equality.group], unit, None


def _program(
    reading: Reading,
    found: _Numbers,
    bounds: Sequence[Array],
    f: Array,
    order: Array,
    equality: _Equality,
    unit: Array,
    m: int,
) -> QuadraticProgram:
    """The program in z = f v; with |v| in W it has two variables for each point, f v where it is positive or not."""
    n = len(f)
    ends = [np.broadcast_to(np.asarray(bound, dtype="float64"), n) * f for bound in bounds[:2]]
    low, high = (end[order] + 0.0 for end in (np.minimum(*ends), np.maximum(*ends)))  # + 0: no bound of -0
    p, diagonal, group = (found.p / f)[order], (found.diagonal / f**2)[order], equality.group[order]
    if reading.width:
        width = (found.width / np.abs(f))[order]
        if n != m or (width < 0).any():
            raise UnreadableError(f"|{reading.name}| must have factors of at least 0, and {reading.name} no parts")
        p, diagonal, group = np.concatenate([p + width, p - width]), np.tile(diagonal, 2), np.tile(group, 2)
        low, high = (np.concatenate([np.maximum(end, 0.0), np.minimum(end, 0.0)]) for end in (low, high))
    return QuadraticProgram(p, low, high, m, group, equality.total * unit, diagonal, found.constant)


class _Equality(NamedTuple):
    """The index of each variable's equality, the totals, and the factors a of all; None without an equality."""

    group: Array
    total: Array
    a: Array | None

    @classmethod
    def of(cls, given: Sequence[Array], n: int) -> _Equality:
        """The equalities a.v = c, of which each variable is in one, or none in any."""
        if not len(given):
            return cls(np.full(n, -1), np.zeros(0), None)
        rows, total = np.atleast_2d(np.asarray(given[0], dtype="float64")), np.atleast_1d(given[1])
        if rows.shape[1] != n:
            raise ValueError(f"a constraint has {rows.shape[1]} entries, but the variable has {n}.")
        if ((rows != 0).sum(axis=0) != 1).any():
            raise UnreadableError("not every variable is in one equality, or none of them in any")
        return cls(np.argmax(rows != 0, axis=0), np.asarray(total, dtype="float64"), rows.sum(axis=0))


# ---- numbers


class _Numbers(NamedTuple):
    """The values of the small graphs of a reading."""

    scale: float
    constant: float
    factors: list[Any]
    parts: list[Array]
    p: Array
    diagonal: Array
    width: Array


def _evaluate(reading: Reading, values: Sequence[Any], n: int) -> _Numbers:
    """The numbers of a reading, and the places of the entries of its parts in v."""
    points = [*reading.p, *reading.diagonal, *reading.width]
    factors = [c for c in reading.factors if c is not None]
    graphs = [reading.scale, reading.constant, *factors, *(graph for _, graph in points)]
    found = iter(_call(reading, "numbers", graphs, values, np.zeros(n)))
    scale, constant = float(next(found)), float(next(found))
    of_parts = [None if c is None else next(found) for c in reading.factors]
    places = _places(reading, "places", [*reading.parts, *(part for part, _ in points)], values, n)
    rest, vectors = iter(places[len(reading.parts) :]), np.zeros((3, n))
    for vector, terms in zip(vectors, (reading.p, reading.diagonal, reading.width), strict=True):
        for _ in terms:
            vector[next(rest)] += next(found)
    return _Numbers(scale, constant, of_parts, places[: len(reading.parts)], *vectors)


def _parts(reading: Reading, parts: list[Array], m: int, n: int) -> Array:
    """The places in v of the entries of each part, (parts, m): every entry of v once."""
    is_whole = all(len(part) == m for part in parts) and n == m * len(parts)
    is_all = reading.parts == [reading.v]  # every entry, in order: nothing to sort
    if not is_whole or not (is_all or np.array_equal(np.sort(np.concatenate(parts)), np.arange(n))):
        raise ValueError(
            f"the {m} rows of the double sum in W must have the {n} entries of {reading.name} once each: check the "
            "shapes of the arrays."
        )
    return np.stack(parts)


def _places(reading: Reading, name: str, parts: Sequence[Any], values: Sequence[Any], n: int) -> list[Array]:
    """The places in v of the entries of its parts; compiled once for each name."""
    different = [part for part in dict.fromkeys(parts) if part is not reading.v]
    found = {reading.v: np.arange(n)}
    if different:
        entries = _call(reading, name, different, values, np.arange(n, dtype="float64"))
        found |= {part: places.astype("int64") for part, places in zip(different, entries, strict=True)}
    return [found[part] for part in parts]


def _call(reading: Reading, name: str, graphs: Sequence[Any], values: Sequence[Any], v: Array) -> list[Array]:
    """The values of graphs of a reading at v, by NumPy; compiled once for each name."""
    if name not in reading.compiled:
        below = set(ancestors(graphs))
        used = [k for k, x in enumerate(reading.inputs) if x in below]
        inputs = [reading.v, *(reading.inputs[k] for k in used)]
        reading.compiled[name] = used, function(inputs, list(graphs), mode=PLAIN)
    used, compiled = reading.compiled[name]
    arrays = [_dense(values[k]) for k in used]
    try:
        return compiled(v, *arrays)
    except (ValueError, TypeError) as error:
        inputs = [reading.v, *(reading.inputs[k] for k in used)]
        raise shape_error(error, inputs, [np.shape(x) for x in (v, *arrays)]) from error


def _dense(value: Any) -> Any:
    return value.toarray() if hasattr(value, "tocsr") else value


def _smooth(reading: Reading, values: Sequence[Any], change: VariableChange) -> Any:
    """The smooth functions of z, from those of v = z / f."""
    if not reading.smooth:
        return None
    n = len(change.factor)
    if change.is_split:
        raise UnreadableError(f"W has both |{reading.name}| and another function of {reading.name}")
    places = _places(reading, "places of functions", [part for part, _, _ in reading.smooth], values, n)
    order = slice(None) if change.order is None else change.order

    def of(name, derivatives):
        def values_at(z):
            v, total = change.to_variable(z), np.zeros(n)
            for k, here in enumerate(places):
                used, compiled = _derivative(reading, f"{name} {k}", k, derivatives)
                total[here] += compiled(v[here], *(_dense(values[i]) for i in used))
            return (total / change.factor**derivatives)[order]

        return values_at

    return SeparableTerm(of("value", 0), of("slope", 1), of("curvature", 2))


def _derivative(reading: Reading, name: str, k: int, derivatives: int) -> tuple[list[int], Callable[..., Array]]:
    """The inputs that a derivative of the smooth function k uses, and the compiled function of its vector and these."""
    if name not in reading.compiled:
        with COMPILING:
            _, u, graph = reading.smooth[k]
            for _ in range(derivatives):
                graph: Any = grad(graph.sum(), u)
            below = set(ancestors([graph]))
            used = [i for i, x in enumerate(reading.inputs) if x in below]
            reading.compiled[name] = used, function([u, *(reading.inputs[i] for i in used)], graph, mode=PLAIN)
    return reading.compiled[name]


# ---- the matrix


def _matrix(reading: Reading, given: dict[Any, Any], memory: int, mode: Any) -> tuple[Any, Any, bool | None]:
    """The matrix of pairs, the function that expands it at other rows, and whether it is positive semi-definite."""
    if reading.pairs is None:
        return _given_matrix(reading, given, memory), None, None
    expression, arrays, numbers = reading.pairs
    computed = [array for array in arrays if array not in given]
    if computed:
        found = _call(reading, "rows", computed, list(given.values()), np.zeros(0))
        given = given | dict(zip(computed, found, strict=True))
    rows = tuple(given[array] for array in arrays)
    counts = {np.shape(array)[0] for array in rows}
    if len(counts) != 1:
        raise ValueError(f"the arrays that W sums over must have the same number of rows, got {sorted(counts)}.")
    if len(rows) == 1 and np.ndim(rows[0]) == 2:
        rows = (sparse_if_thin(rows[0]),)
    values = [given[v] for v in numbers]
    expression.check_lengths(rows, values)

    def evaluator(dtype):
        return PairEvaluator(expression, values, dtype=dtype, mode=mode)

    def expand(others, beta):
        if len(others) != len(arrays):
            names = ", ".join(array.name or "rows" for array in arrays)
            raise TypeError(f"the decision function takes rows of {len(arrays)} array(s) ({names}), got {len(others)}.")
        support = np.flatnonzero(beta)
        return evaluator("float64").between(others, tuple(array[support] for array in rows)).matvec(beta[support])

    names = ", ".join(array.name or "rows" for array in arrays)
    return PairMatrix(evaluator, rows, f"H({names})"), expand, expression.is_psd(values)


def _given_matrix(reading: Reading, given: dict[Any, Any], memory: int) -> LocalKernelMatrix:
    """The matrix of pairs that W has as a whole."""
    sizes = [np.shape(value)[0] for value in given.values() if np.ndim(value) == 2]
    if sizes and 3 * 8 * max(sizes) ** 2 > memory:
        raise ValueError(f"memory={memory} does not hold the matrix of W for {max(sizes)} points.")
    (K,) = _call(reading, "matrix", [reading.matrix], list(given.values()), np.zeros(0))
    if K.shape[0] != K.shape[1] or not np.allclose(K, K.T, rtol=1e-10, atol=1e-12 * np.abs(K).max(initial=0.0)):
        raise UnreadableError("the matrix of the double sum in W is not symmetric: write (K + K.T) / 2")
    return LocalKernelMatrix(Precomputed(K), Precomputed.points(len(K)))


def _scaled(expand: Any, t: Array) -> Any:
    return None if expand is None else lambda rows, beta: expand(rows, t * beta)
