"""A linear machine whose points are spread over workers: the problem that Newton's and the interior-point method solve.

Each `LinearPartition` holds some points and their part of every vector of points. A step sends the weights, or a
direction, of d + 1 numbers to all of them, and gets sums: a vector of d + 1 numbers, a matrix of (d + 1)^2, some
scalars. The sums of the partitions are added in their order: what comes out does not depend on who holds a partition.
"""

from __future__ import annotations

import functools
import operator
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.linear.interior_point import MAX_INTERIOR
from symsvm.linear.measure import Assessment, balance_rule, measure_l2
from symsvm.objectives.certificate import rounding_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from symsvm._lib.types import Array
    from symsvm.distributed.team import Team
    from symsvm.linear.linear_problem import Loss
    from symsvm.linear.measure import Measure
    from symsvm.objectives.certificate import Certificate

__all__ = ["PartitionedPoints", "PartitionedProblem", "SpreadDual"]

# Calls that leave a partition as it is; the others are repeated where a lost one was made again.
_PURE = ("assess", "combination", "sides", "sizes", "summary", "total", "multiply", "normal", "curvature", "slopes")


class PartitionedPoints:
    """The partitions of a team, and what they were asked: one that is lost is made again and asked the same.

    Parameters
    ----------
    team : Team
        The team of `LinearPartition` objects; its `restore` is set.

    Attributes
    ----------
    summaries : list of PartitionSummary
        What each partition with points is.
    """

    def __init__(self, team: Team) -> None:
        self.team, self._log, self._has_points = team, [], [False] * len(team)
        team.restore = self._restore
        summaries = team.call("summary")
        self._has_points = [summary.n > 0 for summary in summaries]
        self.summaries = [summary for summary in summaries if summary.n]

    def ask(self, method: str, *args: Any) -> list[Any]:
        """Call a method of all partitions with points.

        Parameters
        ----------
        method : str
            The method.
        *args : object
            Its arguments.

        Returns
        -------
        list
            The results, in the order of the partitions.
        """
        found = self.team.call_each(method, [args if there else None for there in self._has_points])
        if method == "begin":
            self._log.clear()
        if (args[0] if method == "ask" else method) not in _PURE:
            self._log.append((method, args))
        return [result for result, there in zip(found, self._has_points, strict=True) if there]

    def _restore(self, k: int, call: Callable[..., Any]) -> None:
        if self._has_points[k]:
            for method, args in self._log:
                call(method, *args)


class SpreadDual:
    """A dual vector z, whose entries are with the partitions under a number; they forget it with this object.

    Parameters
    ----------
    number : int
        The number.
    forget : callable
        A function of the number.
    """

    def __init__(self, number: int, forget: Callable[[int], None]) -> None:
        self.number = number
        self.balanced: SpreadDual | None = None
        self.v: Array | None = None
        weakref.finalize(self, forget, number)


class PartitionedProblem:
    """A `LinearProblem` with the l2 penalty over the partitions of a team.

    Parameters
    ----------
    points : PartitionedPoints
        The points.
    classes, sides, costs
        The arguments of `LinearPartition.begin`.
    s : float
        The constant feature.
    loss, epsilon, free
        Those of `LinearProblem`.

    Attributes
    ----------
    d : int
        The number of features.
    n : int
        The number of points with a cost.
    reg : ndarray
        The weights of the regulariser (d + 1,).
    unit : float
        The unit of violations.
    method : {"newton", "interior point", "proximal newton"}
        The algorithm for the loss and so many features.
    rarer_share : float
        The share of the rarer label.
    mean_square : float
        The mean of |x_i|^2 + s^2.
    """

    penalty = "l2"

    def __init__(
        self,
        points: PartitionedPoints,
        classes: Array | None,
        sides: Array | None,
        costs: Array,
        *,
        s: float,
        loss: Loss,
        epsilon: float,
        free: bool,
    ) -> None:
        self._points, self.s, self.free = points, s, free
        self.squared, self.classifies = loss.startswith("squared"), loss.endswith("hinge")
        self.d = points.summaries[0].d
        self.reg = np.ones(self.d + 1)
        if free:
            self.reg[-1] = 0.0
        self._unused: deque[int] = deque()
        self._last = 0
        found = np.array(points.ask("begin", classes, sides, costs, {"loss": loss, "epsilon": epsilon, "free": free}))
        self.n, positive, negative = (int(found[:, k].sum()) for k in range(3))
        self.largest_cost, self.rounding = float(found[:, 4].max()), _sum(found[:, 5])
        self.mean_square = _sum(found[:, 6]) / self.n or 1.0
        share = min(1.0, positive / self.n, negative / self.n) if self.classifies else 1.0
        self.rarer_share = share or 1.0
        self.unit = 1.0 if self.classifies else self._unit(_sum(found[:, 3]) / self.n if free else 0.0)
        self.method = "newton"
        if not self.squared:
            self.method = "interior point" if self.d <= MAX_INTERIOR else "proximal newton"
        points.ask("prepare", self.method, self.unit)

    def _unit(self, mean: float) -> float:
        found = np.array(self._points.ask("sizes", mean))
        return _sum(found[:, 0]) / self.n or float(found[:, 1].max()) or 1.0

    @property
    def zero(self) -> tuple[Array, SpreadDual]:
        """u = 0 and z = 0."""
        return np.zeros(self.d + 1), SpreadDual(0, lambda number: None)

    def new_dual(self, method: str, *args: Any) -> tuple[SpreadDual, list[Any]]:
        """Let the partitions keep a new z.

        Parameters
        ----------
        method, *args
            Those of `LinearPartition.renew`.

        Returns
        -------
        dual : SpreadDual
            What stands for z.
        results : list
            What the partitions return.
        """
        unused = [self._unused.popleft() for _ in range(len(self._unused))]
        self._last += 1
        dual = SpreadDual(self._last, self._unused.append)
        return dual, self._points.ask("renew", unused, dual.number, method, *args)

    def newton_points(self) -> _SpreadNewtonPoints:
        """Return what Newton's method asks of the points.

        Returns
        -------
        object
            It has the methods of `NewtonPoints`.
        """
        return _SpreadNewtonPoints(self, self._points)

    def interior_variables(self) -> _SpreadVariables:
        """Return what the interior-point method asks of the points.

        Returns
        -------
        object
            It has the methods of `InteriorVariables`.
        """
        return _SpreadVariables(self, self._points)

    def proximal_points(self) -> _SpreadNewtonPoints:
        """Return what the proximal method asks of the points.

        Returns
        -------
        object
            It has the methods of `ProximalPoints`.
        """
        return _SpreadNewtonPoints(self, self._points)

    def balance(self, z: SpreadDual) -> SpreadDual:
        """Return z with sum z = 0 if the intercept is free, else z itself; see `LinearProblem.balance`.

        Parameters
        ----------
        z : SpreadDual
            A vector within its bounds.

        Returns
        -------
        SpreadDual
            The balanced vector.
        """
        if not self.free or z.number == 0:
            return z
        if z.balanced is None:
            excess, rule = _sum(self._points.ask("total", z.number)), None
            if excess:
                sides = _sum(self._points.ask("sides", z.number, excess))
                rule = balance_rule(excess, tuple(sides), self.n, squared=self.squared)
            if rule is None:
                return z
            z.balanced, _ = self.new_dual("rebalanced", z.number, excess, *rule)
        return z.balanced

    def combination(self, z: SpreadDual) -> Array:
        """Return v = (X'z, s sum z) of the balanced z.

        Parameters
        ----------
        z : SpreadDual
            A vector within its bounds.

        Returns
        -------
        ndarray
            The vector (d + 1,).
        """
        return self._v(self.balance(z)).copy()

    def _v(self, z: SpreadDual) -> Array:
        v = _sum(self._points.ask("combination", z.number)) if z.v is None else z.v
        z.v = v
        return v

    def measure(self, u: Array, z: SpreadDual, *, f: Any = None) -> tuple[Measure, SpreadDual]:
        """Measure how far a pair (u, z) is from the optimum, after z has become feasible.

        Parameters
        ----------
        u : ndarray
            The weights (w, b).
        z : SpreadDual
            The dual vector, within its bounds.
        f : object
            Not used.

        Returns
        -------
        measure : Measure
            The objectives, the gap and the violations.
        z : SpreadDual
            The feasible z.
        """
        z = self.balance(z)
        return self._measure(u, z), z

    @np.errstate(over="ignore", invalid="ignore")  # what exceeds float64 is "diverged"
    def _measure(self, u: Array, z: SpreadDual) -> Measure:
        v = self._v(z)
        found = self._points.ask("assess", u, v, z.number)
        sums = np.array([(a.loss, a.dual, a.excess, a.total) for a in found])
        loss, dual, excess, total = (_sum(sums[:, k]) for k in range(4))
        worst, outside = max(a.worst for a in found), max(a.outside for a in found)
        slack = 0.0
        if self.free and z.number:
            size = _sum(self._points.ask("sides", z.number, 1.0))[1]
            slack = rounding_error(float(size), self.n, "float64")
        assessment = Assessment(loss, dual, excess, worst, outside, total)
        return measure_l2(self.reg, u, v, assessment, self.unit, slack, self.rounding, free=self.free)

    def certificate(self, u: Array, z: SpreadDual, tol: float) -> Certificate:
        """Return the certificate of a pair (u, z), computed in float64 from the data where they are.

        Parameters
        ----------
        u : ndarray
            The weights (w, b).
        z : SpreadDual
            The dual vector of a solution, which is balanced.
        tol : float
            The tolerance below which violation and relative gap make the pair optimal.

        Returns
        -------
        Certificate
            The certificate.
        """
        return self._measure(u, z).certificate(tol, float(u[-1]) if self.s else None)


class _SpreadNewtonPoints:
    """`NewtonPoints` of a `PartitionedProblem`."""

    def __init__(self, problem: PartitionedProblem, points: PartitionedPoints) -> None:
        self._problem, self._ask = problem, functools.partial(points.ask, "ask")

    def begin_step(self, D):
        self._ask("begin_step", D)

    def first_gradient(self):
        return _sum(self._ask("first_gradient"))

    def evaluate(self, u):
        self._z, found = self._problem.new_dual("evaluate", u)
        self._z.v = v = _sum([v for _, v in found])
        return _sum([loss for loss, _ in found]), v

    def snapshot(self):
        return self._z, None

    def normal(self):
        return _sum(self._ask("normal"))

    def curvature(self):
        return _sum(self._ask("curvature"))

    def multiply(self, p, out):
        return out + _sum(self._ask("multiply", p, np.zeros(len(p))))

    def advance(self, p):
        return self._both(self._ask("advance", p))

    def slopes(self, a):
        return self._both(self._ask("slopes", a))

    def _both(self, found):
        first, second = zip(*found, strict=True)
        return _sum(first), _sum(second)


class _SpreadVariables:
    """`InteriorVariables` of a `PartitionedProblem`."""

    def __init__(self, problem: PartitionedProblem, points: PartitionedPoints) -> None:
        self._problem, self._ask = problem, functools.partial(points.ask, "ask")
        self.d, self.largest_cost = problem.d, problem.largest_cost
        self.n_bounds = 2 * problem.n * (1 if problem.classifies else 2)

    def residuals(self):
        found = self._ask("residuals")
        return _sum([total for total, _ in found]), _sum([v for _, v in found])

    def normal(self):
        return _sum(self._ask("normal"))

    def right_hand_side(self, centre):
        return _sum(self._ask("right_hand_side", centre))

    def direction(self, du, centre):
        return min(self._ask("direction", du, centre))

    def complementarity(self, length):
        return _sum(self._ask("complementarity", length))

    def take_step(self, length, u):
        z, finite = self._problem.new_dual("take_step", length, u)
        return z if all(finite) else None


def _sum(values: Sequence[Any] | Array) -> Any:
    """The sum in the order of the partitions."""
    return functools.reduce(operator.add, values)
