"""The comparison of a reading with W as it is written, by numbers, before a run believes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm._lib.blas import SingleThreadedBlas
from symsvm.compiler.functions import function
from symsvm.compiler.reading import UnreadableError
from symsvm.compiler.reading.pair_expression import PLAIN
from symsvm.solvers.decomposition.binding import bind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from symsvm._lib.types import Array
    from symsvm.compiler.reading import Reading
    from symsvm.solvers.decomposition.kernel_problem import KernelProblem

__all__ = ["verify"]

# Rows of the sample on which W is evaluated, and the relative difference that rounding makes.
_SAMPLE, _ROUNDING = 24, 1e-9
# Rows of the block that is tested for symmetry and for negative curvature.
_BLOCK = 96
# The part of the largest eigenvalue that a negative one has from rounding.
_NEGATIVE = 1e-9


def verify(
    reading: Reading, values: Sequence[Any], bounds: Sequence[Array], problem: KernelProblem, **options: Any
) -> None:
    """Compare what was read with W as it is written; raise if they differ.

    W is evaluated at random points over a sample of the rows, once for each structure of W. That H is symmetric is
    tested on a block of the matrix where the expression does not prove it, and so is the convexity that a user states.

    Parameters
    ----------
    reading : Reading
        What W is.
    values, bounds
        Those of `bind`.
    problem : KernelProblem
        What `bind` made of them.
    **options : object
        The options of `bind`.
    """
    if "is verified" not in reading.compiled:
        _compare(reading, values, bounds, problem, options)
        reading.compiled["is verified"] = True
    is_symmetric = reading.pairs is None or reading.pairs.expression.is_symmetric
    if is_symmetric and (problem.is_proven or not problem.is_convex):
        return
    some = np.unique(np.linspace(0, problem.program.m - 1, _BLOCK).astype("int64"))
    K = np.empty((len(some), len(some)))
    problem.matrix.block(some, some, K)
    if not np.isfinite(K).all():
        return  # the solver says so
    if not is_symmetric and np.abs(K - K.T).max() > _ROUNDING * np.abs(K).max():
        raise UnreadableError("the expression of two points in W is not symmetric: write (K(x, z) + K(z, x)) / 2")
    if problem.is_convex and not problem.is_proven:
        _check_curvature(problem, some, K)


def _check_curvature(problem: KernelProblem, some: Array, K: Array) -> None:
    """Raise if W, which is stated to be convex, has a negative curvature along a feasible direction of these points."""
    program = problem.program
    A = (K + K.T) / 2
    A[np.diag_indices_from(A)] += program.diagonal[some]
    for g in range(len(program.total)):  # directions that keep the sum of each group
        here = program.group[some] == g
        if here.any():
            A[here] -= A[here].mean(axis=0)
            A[:, here] -= A[:, here].mean(axis=1, keepdims=True)
    with SingleThreadedBlas():
        values = np.linalg.eigvalsh(A)
    if problem.smooth is None and values[0] < -_NEGATIVE * max(np.abs(values).max(), np.abs(K).max()):
        raise ValueError(
            f"is_convex=True, but W has a negative curvature on these points (an eigenvalue of {values[0]:.2g}): "
            "choose a kernel that is positive semi-definite, or leave is_convex out to find a stationary point."
        )


def _compare(
    reading: Reading, values: Sequence[Any], bounds: Sequence[Array], problem: KernelProblem, options: dict[str, Any]
) -> None:
    """Raise unless what was read has the values of W at random points, over some of the rows, or over all if few.

    There is no W of some of the rows where shapes are fixed in it, or where a row is computed from many others. Of such
    a W with many rows nothing is compared.
    """
    m = problem.program.m
    rows = np.unique(np.linspace(0, m - 1, _SAMPLE).astype("int64"))
    pairs = None
    if reading.arrays is not None and len(rows) < m:
        try:
            pairs = _values(reading, values, bounds, rows, m, options)
        except (ValueError, IndexError):  # shapes are fixed in W
            pairs = None
    if pairs is None and m <= _BLOCK:
        pairs = _values(reading, values, bounds, np.arange(m), m, options)
    size = 0.0 if pairs is None else max(abs(a) for a, _ in pairs)
    if pairs is not None and np.isfinite(size) and any(abs(a - b) > _ROUNDING * size for a, b in pairs):
        raise UnreadableError("what was read from W does not have its values: please report this W")


def _values(
    reading: Reading, values: Sequence[Any], bounds: Sequence[Array], rows: Array, m: int, options: dict[str, Any]
) -> list[tuple[float, float]]:
    """The values of W as it is written and as it was read, over these of m rows, at three random points."""
    copies, rng, some = len(reading.parts), np.random.default_rng(0), list(values)
    if len(rows) < m:
        is_row = [x in set(reading.arrays or ()) for x in reading.inputs]
        some = [value[rows] if of_rows else value for value, of_rows in zip(values, is_row, strict=True)]
    n, entries = copies * len(rows), np.concatenate([rows + k * m for k in range(copies)])
    lower, upper = (np.broadcast_to(np.asarray(bound, dtype="float64"), m * copies)[entries] for bound in bounds[:2])
    low, high = np.maximum(lower, -1.0), np.minimum(upper, 1.0)
    written = function([reading.v, *reading.inputs], reading.W, mode=PLAIN)
    read = bind(reading, some, n, [np.full(n, -np.inf), np.full(n, np.inf)], **options)
    points = [low + (high - low) * rng.uniform(0.1, 0.9, n) for _ in range(3)]
    return [(float(written(u, *map(_dense, some))), read.value(u)) for u in points]


def _dense(value: Any) -> Any:
    return value.toarray() if hasattr(value, "tocsr") else value
