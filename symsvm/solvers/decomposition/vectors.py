"""The vectors of a decomposition that have an entry for each point: z, G = K z, the gradient F, and the active set.

The transitions of `State` ask these of one object. `LocalVectors` has them in memory. A kernel matrix whose points live
elsewhere has vectors there as well, from its method `vectors`: loops over all variables then run where the points are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from symsvm.solvers.decomposition.limited_product import add_product_until

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.evaluation.kernel_matrix import KernelMatrix
    from symsvm.objectives import QuadraticProgram

__all__ = ["ActiveSet", "LocalVectors", "Survey", "largest", "middle_of", "own_vectors"]


class Survey(NamedTuple):
    """What a pass over the active variables finds.

    Attributes
    ----------
    free, bounded : int
        Variables between their bounds, and at one other than 0.
    violation : float
        The largest violation of optimality.
    least, most, middle : array
        For each equality the least F that may rise, the greatest that may fall, and their middle.
    """

    free: int
    bounded: int
    violation: float
    least: Array
    most: Array
    middle: Array


class ActiveSet:
    """The variables that take part, and their points. The others are shrunk: dropped, safely at a bound.

    Parameters
    ----------
    qp : QuadraticProgram
        The program.
    """

    def __init__(self, qp: QuadraticProgram) -> None:
        self._qp = qp
        self.reset()

    def reset(self) -> None:
        """Let all variables take part."""
        self.variables, self.points = np.arange(self._qp.n), np.arange(self._qp.m)
        self.dropped: list[Array] = []  # points, for each time
        self.n_bounded = 0  # dropped variables at a bound other than 0

    @property
    def is_shrunk(self) -> bool:
        """Whether variables were dropped."""
        return len(self.variables) < self._qp.n

    @property
    def n_variables(self) -> int:
        """How many variables take part."""
        return len(self.variables)

    @property
    def n_points(self) -> int:
        """How many points they have."""
        return len(self.points)

    def drop(self, stay: Array, dropped: Array, n_bounded: int) -> None:
        """Let only some variables take part.

        Parameters
        ----------
        stay, dropped : array of int
            The active variables that stay, and those that are dropped.
        n_bounded : int
            How many of these are at a bound other than 0.
        """
        qp, before = self._qp, self.points
        self.variables = stay
        self.n_bounded += n_bounded
        if qp.n == qp.m:
            self.points, points = stay, dropped
        else:
            self.points = np.unique(qp.point[stay])
            points = np.setdiff1d(before, self.points, assume_unique=True)
        self.dropped.append(points)


class LocalVectors:
    """The vectors in memory, updated by products with a kernel matrix.

    Parameters
    ----------
    qp : QuadraticProgram
        The program.
    matrix : KernelMatrix
        The matrix K between its points.

    Attributes
    ----------
    z, Kz, F : array
        The point; K z; the gradient (K + D) z + p, up to date for the active variables after `survey`.
    active : ActiveSet
        The active set.
    """

    def __init__(self, qp: QuadraticProgram, matrix: KernelMatrix) -> None:
        self.qp, self.matrix = qp, matrix
        self.z, self.Kz, self.F = np.zeros(qp.n), np.zeros(qp.m), np.zeros(qp.n)
        self.active = ActiveSet(qp)

    # ---- readings

    def survey(self) -> Survey:
        """Compute F and its extremes over the active variables."""
        from symsvm.solvers.decomposition.variable_loops import survey  # Numba is loaded when it is first needed

        qp = self.qp
        ends = np.empty((3, max(1, len(qp.total))))
        bounds = qp.lower, qp.upper, qp.diagonal, qp.p, qp.group
        found = survey(self.Kz, self.z, *bounds, self.active.variables, len(qp.total) > 0, self.F, *ends)
        return Survey(*found, *ends)

    def gap(self, b: Array) -> float:
        """The duality gap over the active variables, for these multipliers."""
        from symsvm.solvers.decomposition.variable_loops import gap

        qp = self.qp
        return gap(self.F, self.z, qp.lower, qp.upper, qp.diagonal, qp.group, b, self.active.variables)

    def violators(self, least: Array, most: Array, floor: float) -> tuple[Array, Array, Array, Array, Array]:
        """The free active variables, and those at a bound that could rise and that could fall, with their scores."""
        from symsvm.solvers.decomposition.variable_loops import violators

        qp = self.qp
        return violators(self.F, self.z, qp.lower, qp.upper, qp.group, self.active.variables, least, most, floor)

    def gradient(self, variables: Array) -> Array:
        """F of some active variables."""
        return self.F[variables]

    def relative_gradient(self, members: Array, middle: Array | None) -> Array:
        """A vector with F minus the middle of its equality, if there are any, at these members at least."""
        if middle is None or len(middle) == 1:
            return self.F - (0.0 if middle is None else middle[0])
        return self.F - middle[np.maximum(self.qp.group, 0)]

    def products(self, points: Array) -> Array:
        """K z at some points."""
        return self.Kz[points]

    def value(self) -> float:
        """The objective."""
        return self.qp.value(self.Kz, self.z)

    def rounding(self) -> float:
        """What rounding does to the objective."""
        return float(np.finfo("float64").eps * (np.abs(self.z) @ (np.abs(self.F) + np.abs(self.qp.p))))

    def largest_product(self) -> float:
        """The largest |(K z)_i|."""
        return float(np.abs(self.Kz).max())

    def is_finite(self) -> bool:
        """Whether K z is finite."""
        return bool(np.isfinite(self.Kz.sum()))

    def active_points(self, positions: Array) -> Array:
        """The active points at these positions among them."""
        return self.active.points[positions]

    def worst_points(self, b: Array, size: int) -> Array:
        """The points of the active variables with the largest |F + b|."""
        active, qp = self.active.variables, self.qp
        F = np.abs(self.F[active] + (b[qp.group[active]] if len(b) else 0.0))
        return qp.point[active[largest(F, size)]]

    # ---- changes

    def put(self, z: Array) -> None:
        """Go to another point; K z is not changed."""
        self.z = z

    def move(self, variables: Array, values: Array) -> None:
        """Give some variables these values; K z is not changed."""
        self.z[variables] = values

    def recompute(self, d: Array, points: Array, deadline: float) -> bool:
        """K z = K[:, points] d in float64, with all variables active; whether there was time for it."""
        self.active.reset()
        self.Kz[:] = 0
        return not len(points) or add_product_until(self.matrix, d, points, self.Kz, deadline)

    def add(self, d: Array, points: Array, *, exact: bool) -> None:
        """K z += K[:, points] d for the active points."""
        if self.active.is_shrunk:
            self.add_to(self.active.points, d, points, exact=exact)
        else:
            self.matrix.product(d, None, points, self.Kz, exact=exact)

    def add_outside(self, d: Array, points: Array, inside: Array, change: Array, *, exact: bool) -> None:
        """The same for the active points that are not in `inside`; for those the change of K z is given."""
        others = np.zeros(self.qp.m, dtype=bool)
        others[self.active.points] = True
        others[inside] = False
        self.add_to(np.flatnonzero(others), d, points, exact=exact)
        self.Kz[inside] += change  # once for a point, though two of its variables may be members

    def add_to(self, rows: Array, d: Array, points: Array, *, exact: bool) -> None:
        """K z += K[:, points] d for these rows."""
        if len(rows) and len(points):
            part = self.Kz[rows]
            self.matrix.product(d, rows, points, part, exact=exact)
            self.Kz[rows] = part

    def write_products(self, points: Array, values: Array) -> None:
        """Set K z at some points."""
        self.Kz[points] = values

    def shrink(self, least: Array, most: Array, margin: float) -> None:
        """Drop the active variables that are safely at a bound."""
        from symsvm.solvers.decomposition.variable_loops import part_shrinkable

        qp = self.qp
        bounds = qp.lower, qp.upper, qp.group
        self.active.drop(*part_shrinkable(self.F, self.z, *bounds, self.active.variables, least, most, margin))

    def activate(self) -> None:
        """Let all variables take part."""
        self.active.reset()

    def add_to_dropped(self, time: int, d: Array, points: Array, *, exact: bool) -> None:
        """K z += K[:, points] d for the points that were dropped at this time, counted from 0."""
        self.add_to(self.active.dropped[time], d, points, exact=exact)

    def save(self) -> Any:
        """Return what `restore` goes back to."""
        return self.z.copy(), self.Kz.copy()

    def restore(self, saved: Any) -> None:
        """Go back to a point that was saved; what is active stays."""
        z, Kz = saved
        self.z, self.Kz = z.copy(), Kz.copy()

    def forget(self, saved: Any) -> None:
        """Note that a saved point is not needed any more."""

    def close(self) -> None:
        """End the run."""

    def hold(self, points: Array) -> None:
        """Note that blocks between these points are wanted next."""


def own_vectors(qp: QuadraticProgram, matrix: Any, parameters: Any) -> Any:
    """The vectors of a program over a matrix: where its points are, if it has a method `vectors`, else in memory."""
    make = getattr(matrix, "vectors", None)
    return LocalVectors(qp, matrix) if make is None else make(qp, parameters)


def largest(F: Array, size: int) -> Array:
    """The positions of the largest entries, of equal ones the first.

    >>> largest(np.array([1.0, 3.0, 2.0, 2.0]), 2).tolist()
    [1, 2]
    """
    size = min(size, len(F))
    if not size:
        return np.zeros(0, dtype="int64")
    edge = np.partition(F, len(F) - size)[len(F) - size]
    above = np.flatnonzero(F > edge)
    return np.concatenate([above, np.flatnonzero(edge == F)[: size - len(above)]])


def middle_of(least: Array, most: Array) -> Array:
    """The middle between two ends for each equality, or the end that there is, or 0.

    >>> middle_of(np.array([1.0, np.inf]), np.array([2.0, 3.0])).tolist()
    [1.5, 3.0]
    """
    with np.errstate(invalid="ignore"):
        middle = (least + most) / 2
    end = np.where(np.isinf(least), most, least)
    return np.where(np.isinf(least) | np.isinf(most), np.where(np.isinf(end), 0.0, end), middle)
