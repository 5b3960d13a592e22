"""Whether a kernel is symmetric, K(x, z) = K(z, x), as every method here assumes; asked of kernels that users write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.graph.traversal import ancestors

from symsvm.compiler.functions import COMPILING, function
from symsvm.compiler.reading import UnreadableError, leaves_of, read
from symsvm.compiler.reading.pair_expression import PLAIN
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.kernels import Kernel, algebra, named
from symsvm.objectives import KernelDual

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytensor.compile.mode import Mode

    from symsvm._lib.types import Array, Points
    from symsvm.compiler.reading import Reading
    from symsvm.objectives import Objective

__all__ = ["SymmetryCheck", "check_symmetric", "is_known_symmetric"]

# Points, evenly spaced among those given, whose pairs are compared.
_POINTS = 32
# The difference of K(x, z) and K(z, x) that rounding may leave, relative to the largest of them.
_ROUNDING = 1e-8


def is_known_symmetric(kernel: Kernel) -> bool:
    """Whether the expression of a kernel of symsvm shows it: all but those with an expression of the user's.

    >>> from symsvm.kernels import RBF, Linear, pair_kernel
    >>> is_known_symmetric(RBF(1.0) + 2 * Linear()), is_known_symmetric(pair_kernel(lambda x, z: x[0] * z[1]))
    (True, False)
    """
    if type(kernel) is named.PairKernel or type(kernel).__module__ not in (named.__name__, algebra.__name__):
        return False
    parts = [value for value in kernel.get_params(deep=False).values() if isinstance(value, Kernel)]
    return all(is_known_symmetric(part) for part in parts)


def check_symmetric(kernel: Kernel, X: Points, *, mode: str | Mode | None = None) -> None:
    """Raise a ValueError if K(x, z) and K(z, x) differ for two of the points.

    A dual with another matrix has another gradient than the solvers compute, and no certificate of it would hold.
    """
    if is_known_symmetric(kernel):
        return
    rows = np.unique(np.linspace(0, X.shape[0] - 1, _POINTS).astype("int64"))  # pyright: ignore[reportOptionalSubscript]
    sample: Any = X[rows]  # pyright: ignore[reportOptionalSubscript, reportIndexIssue]
    sample = sample.toarray() if hasattr(sample, "tocsr") else sample
    values = _difference(KernelEvaluator(kernel, mode=mode).block(sample, sample.copy()), rows)
    if values is not None:
        raise ValueError(
            f"the kernel {kernel!r} must be symmetric, K(x, z) = K(z, x), but {values}: use (K(x, z) + K(z, x)) / 2."
        )


def _difference(K: Array, rows: Array) -> str | None:
    """The two values of K between these rows that differ most, in words; None if K is symmetric."""
    if not np.isfinite(K).all():
        return None  # what is not finite is reported by those who use it
    difference = np.abs(K - K.T)
    if difference.max(initial=0.0) <= _ROUNDING * np.abs(K).max(initial=0.0):
        return None
    i, j = np.unravel_index(np.argmax(difference), K.shape)
    x, z = f"x_{rows[i]}", f"x_{rows[j]}"
    return f"K({x}, {z}) = {K[i, j]:.6g} and K({z}, {x}) = {K[j, i]:.6g}"


class SymmetryCheck:
    """Whether the double sum of a W is symmetric; asked before a run of a solver that takes any smooth W.

    Such a solver minimises W rightly, which is that of (K(x, z) + K(z, x)) / 2; a decision function with K is that of
    another W. An objective with a kernel is refused, as elsewhere; of a W that is written by hand there are words for a
    warning. A W whose expression proves the symmetry, and one that is no sum over pairs, cost nothing in a run.

    Parameters
    ----------
    objective : Objective
        The problem.
    memory : int
        The bytes that a matrix may take which W has as a whole; a larger one is not compared.
    """

    def __init__(self, objective: Objective, memory: int) -> None:
        self.kernel: Kernel | None = getattr(objective, "kernel", None)
        self._memory = memory
        self._reading: Reading | None = None
        if isinstance(objective, KernelDual):  # its points are there
            check_symmetric(objective.kernel, objective.X)
        elif objective.problem in ("dual", "smooth") and not (self.kernel and is_known_symmetric(self.kernel)):
            self._reading = _unproven(objective)
        self._leaves = [] if self._reading is None else leaves_of(objective)

    def __call__(self, values: Mapping[Any, Any]) -> str | None:
        """Compare the values for some pairs of points; raise a ValueError, or return a sentence, if they differ.

        Parameters
        ----------
        values : dict
            The values of the leaves of W.

        Returns
        -------
        str or None
            What a warning should say.
        """
        if self._reading is None:
            return None
        given = [np.asarray(values[v]) for v in self._leaves] + self._reading.fixed
        found = _sample(self._reading, given, self._memory)
        words = None if found is None else _difference(*found)
        if words is None:
            return None
        if self.kernel is not None:
            raise ValueError(
                f"the kernel {self.kernel!r} must be symmetric, K(x, z) = K(z, x), but {words}: "
                "use (K(x, z) + K(z, x)) / 2."
            )
        return (
            f"the double sum in W is not symmetric: {words}. The result is that of (K(x, z) + K(z, x)) / 2: write this "
            "in W, and use it for decision values."
        )


def _unproven(objective: Objective) -> Reading | None:
    """What W is, if it has a sum over pairs whose expression does not prove that it is symmetric."""
    try:
        reading = read(objective)
    except UnreadableError:
        return None
    return None if reading.pairs is not None and reading.pairs.expression.is_symmetric else reading


def _sample(reading: Reading, values: list[Any], memory: int) -> tuple[Array, Array] | None:
    """H between some of the rows that W sums over, or all of a matrix that is given, and the indices of these rows."""
    if reading.pairs is None:
        sizes = [value.shape[0] for value in values if value.ndim == 2]
        if not sizes or 3 * 8 * max(sizes) ** 2 > memory:
            return None
        (K,) = _evaluate(reading, "the matrix", [reading.matrix], values)
        return K, np.arange(len(K))
    expression, arrays, numbers = reading.pairs
    found = _evaluate(reading, "rows and numbers", [*arrays, *numbers], values)
    arrays, numbers = found[: len(arrays)], found[len(arrays) :]
    rows = np.unique(np.linspace(0, len(arrays[0]) - 1, _POINTS).astype("int64"))
    some = [array[rows] for array in arrays]
    with COMPILING:
        evaluate = expression.function("the matrix", expression.matrix, PLAIN)
    return evaluate(*some, *some, *numbers), rows


def _evaluate(reading: Reading, name: str, graphs: list[Any], values: list[Any]) -> list[Array]:
    """The values of graphs of a reading that do not depend on the variable; compiled once for each name."""
    key = f"{name} of a sample"
    with COMPILING:
        if key not in reading.compiled:
            below = set(ancestors(graphs))
            used = [k for k, x in enumerate(reading.inputs) if x in below]
            reading.compiled[key] = used, function([reading.inputs[k] for k in used], graphs, mode=PLAIN)
    used, compiled = reading.compiled[key]
    return compiled(*(values[k] for k in used))
