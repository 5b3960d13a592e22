"""The vectors of a run where the points are: what `LocalVectors` does in memory, each worker does for its rows.

    the coordinator                                      a worker
        z, bounds, the points of the working set             its rows; z, G = K z, F, what is active, for these
        sends moved points, d, and their new z          ->   G += K[:, W] d, F and its extremes
        least and most over all workers, the violation  <-   least, most, counts
        sends these                                     ->   candidates, the gap over its rows
        the working set: worst and random candidates    <-   indices and F

Steps that return nothing wait for the next call, so that a round takes two calls of every worker, and one for the
points of newcomers. Minima, maxima and counts do not depend on how rows are divided, and each row of a product is
computed by one worker in the order of the columns: the run has the bits of one process. The steps since the last
product from scratch are kept, without points: a worker that takes over the rows of a lost one takes them again.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.distributed.active_counts import SpreadActiveSet
from symsvm.solvers.decomposition.vectors import Survey, largest, middle_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from symsvm._lib.types import Array
    from symsvm.objectives import QuadraticProgram

__all__ = ["SpreadVectors"]

# Steps that are sent together to a worker that takes over.
_REPLAYED = 16


class SpreadVectors:
    """The vectors of a program over a `SpreadKernelMatrix`; see `LocalVectors` for the methods.

    Parameters
    ----------
    qp : QuadraticProgram
        The program.
    matrix : SpreadKernelMatrix
        The matrix between its points.
    parameters : Parameters
        The numbers that tune the run.

    Attributes
    ----------
    z : array
        The point.
    active : object
        Counts of what is active.
    """

    def __init__(self, qp: QuadraticProgram, matrix: Any, parameters: Any) -> None:
        self.qp, self.matrix, self._part_of_violation = qp, matrix, parameters.candidate_part
        self._team, self._run, self._copies = matrix.points.team, matrix.points.number(), qp.n // qp.m
        part, row = matrix.points.part[matrix.index], matrix.points.row[matrix.index]
        self._part, self._local = part, np.empty(qp.m, "int64")
        self._points: list[Array] = []  # of each part, in order
        for k in range(len(self._team)):
            here = np.flatnonzero(part == k)
            self._local[here] = np.arange(len(here))
            self._points.append(here)
        self._rows = [row[here].astype("int64") for here in self._points]
        self.z, self._G, self._relative = np.zeros(qp.n), np.zeros(qp.m), np.zeros(qp.n)
        self._F, self._version, self._read_at = np.zeros(qp.n), 1, np.zeros(qp.n, "int32")  # F as read in a version
        self._is_untouched = True
        self.active: Any = SpreadActiveSet(self)
        self._tokens, self._live = itertools.count(), {}
        self._waiting: list[tuple[str, tuple[Any, ...]]] = []
        self._log: list[tuple[str, tuple[Any, ...]]] = []
        self._forget_readings()
        self._team.call_each("begin", [self._beginning(k) for k in range(len(self._team))])
        self._end = matrix.points.keep_up(self._take_over)

    def close(self) -> None:
        """Let the workers forget the run."""
        self._end()
        self._team.call("end", self._run)

    # ---- calls

    def _beginning(self, k: int) -> tuple[Any, ...] | None:
        """The arguments of `Rows.begin` for a part, None if it has no rows of the program."""
        if not len(self._points[k]):
            return None
        v = self._variables_of(k)
        qp = self.qp
        bounds = tuple(bound[v] for bound in (qp.p, qp.lower, qp.upper, qp.group, qp.diagonal))
        return self._run, self.matrix.number, self._rows[k], bounds, qp.total

    def _variables_of(self, k: int) -> Array:
        """The variables of a part, in its own order."""
        return (np.arange(self._copies)[:, None] * self.qp.m + self._points[k]).ravel()

    def _mine(self, k: int, variables: Array) -> Array:
        """Which of the variables belong to a part."""
        return np.flatnonzero(self._part[variables % self.qp.m] == k)

    def _local_variables(self, k: int, variables: Array) -> Array:
        """The numbers that a part has for variables."""
        return self._local[variables % self.qp.m] + variables // self.qp.m * len(self._points[k])

    def _global_variables(self, k: int, variables: Array) -> Array:
        """The variables with these numbers in a part."""
        copy, point = np.divmod(variables.astype("int64"), len(self._points[k]))
        return self._points[k][point] + copy * self.qp.m

    def _change(self, name: str, *args: Any) -> None:
        """Note a step that returns nothing; it goes with the next call. The caller may write to its arrays again."""
        self._waiting.append((name, tuple(arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args)))
        self._forget_readings()

    def _forget_readings(self) -> None:
        self._surveyed: Any = None
        self._candidates: Any = None
        self._version += 1

    def _note_gradient(self, variables: Array, F: Array) -> None:
        self._F[variables], self._read_at[variables] = F, self._version

    def _ask(self, *steps: tuple[str, tuple[Any, ...]]) -> list[Any]:
        """Take the steps that wait, then these; return the results of these, for each part that has rows."""
        waiting = self._waiting
        every = [*waiting, *steps]
        visitors: dict[int, Any] = {}
        arguments = [
            (self._run, [self._localised(k, i, step, visitors) for i, step in enumerate(every)]) if len(rows) else None
            for k, rows in enumerate(self._rows)
        ]
        found = self._team.call_each("apply", arguments)
        self._waiting = []
        self._log += [step for step in every if step[0] in _KEPT]
        entries = np.sum([each[1] for each in found if each is not None], axis=0)
        self.matrix.entries += int(entries.sum())
        self._team.traffic.entries += entries
        return [None if each is None else each[0][-len(steps) :] for each in found]  # pyright: ignore

    def _localised(self, k: int, i: int, step: tuple[str, tuple[Any, ...]], visitors: dict[int, Any]) -> Any:
        """A step in the numbers of a part; `visitors` has the points of each step, which all parts get."""
        name, args = step

        def points(indices):
            if i not in visitors:
                visitors[i] = self.matrix.visitors(indices) if len(indices) else None
            return visitors[i]

        if name == "put":
            return name, (args[0][self._variables_of(k)],)
        if name in ("move", "gradient"):
            here = self._mine(k, args[0])
            return name, (self._local_variables(k, args[0][here]), *(values[here] for values in args[1:]))
        if name in ("products", "write_products"):
            here = np.flatnonzero(self._part[args[0]] == k)
            return name, (self._local[args[0][here]], *(values[here] for values in args[1:]))
        if name == "recompute":
            return name, (args[0], points(args[1]), args[2])
        if name == "add":
            return name, (args[0], points(args[1]), args[2])
        if name == "add_to_dropped":
            return name, (args[0], args[1], points(args[2]), args[3])
        if name == "add_outside":
            d, columns, inside, change, exact = args
            here = np.flatnonzero(self._part[inside] == k)
            return name, (d, points(columns), self._local[inside[here]], change[here], exact)
        return step

    def _take_over(self, k: int, call: Callable[..., Any]) -> None:
        """Bring a part that was loaded again to the state before the call that was under way."""
        beginning = self._beginning(k)
        if beginning is None:
            return
        call("begin", *beginning)
        for low in range(0, len(self._log), _REPLAYED):
            visitors: dict[int, Any] = {}
            some = self._log[low : low + _REPLAYED]
            call("apply", self._run, [self._localised(k, i, step, visitors) for i, step in enumerate(some)])

    def _scattered(self, name: str, indices: Array) -> Array:
        """Numbers that each part has some of: F of variables, or K z at points."""
        values = np.empty(len(indices))
        for k, found in enumerate(self._ask((name, (indices,)))):
            if found is not None:
                here = self._part[indices % self.qp.m] == k
                values[here] = found[0]
        return values

    # ---- readings

    def survey(self) -> Survey:
        """Compute F and its extremes over the active variables."""
        if self._surveyed is None:
            self._note_survey([found[0] for found in self._ask(("survey", ())) if found is not None])
        return self._surveyed[0]  # pyright: ignore[reportOptionalSubscript]

    def _note_survey(self, parts: list[Any]) -> None:
        """Put the surveys of the parts together."""
        surveys = [survey for survey, _ in parts]
        least = np.min([survey[3] for survey in surveys], axis=0)
        most = np.max([survey[4] for survey in surveys], axis=0)
        with np.errstate(invalid="ignore"):
            violation = float(max(0.0, *(most - least)))
        counts = [sum(survey[i] for survey in surveys) for i in (0, 1)]
        whole = Survey(counts[0], counts[1], violation, least, most, middle_of(least, most))
        self._surveyed = whole, all(is_finite for _, is_finite in parts)

    def is_finite(self) -> bool:
        """Whether K z is finite."""
        self.survey()
        return self._surveyed[1]

    def gap(self, b: Array) -> float:
        """The duality gap over the active variables, for these multipliers; candidates come with it."""
        survey = self.survey()
        ends = survey.least, survey.most, self._part_of_violation * survey.violation
        found = self._ask(("gap", (b,)), ("violators", ends))
        self._note_candidates(ends, [None if each is None else each[1] for each in found])
        return float(sum(each[0] for each in found if each is not None))

    def violators(self, least: Array, most: Array, floor: float) -> tuple[Array, Array, Array, Array, Array]:
        """The free active variables, and those at a bound that could rise and that could fall, with their scores."""
        ends = least, most, floor
        known: Any = self._candidates
        if known is None or not all(map(np.array_equal, known[0], ends)):
            found = self._ask(("violators", ends))
            self._note_candidates(ends, [None if each is None else each[0] for each in found])
        _, ((free, _), (up, F_up), (low, F_low)) = self._candidates
        group = self.qp.group
        return free, up, most[np.maximum(group[up], 0)] - F_up, low, F_low - least[np.maximum(group[low], 0)]

    def _note_candidates(self, ends: Any, parts: list[Any]) -> None:
        """Put the candidates of the parts together, in the order of the variables."""
        kinds = []
        for kind in range(3):
            pieces = [
                (self._global_variables(k, found[2 * kind]), found[2 * kind + 1])
                for k, found in enumerate(parts)
                if found is not None
            ]
            variables, F = (np.concatenate(values) for values in zip(*pieces, strict=True))
            order = np.argsort(variables)
            kinds.append((variables[order], F[order]))
            self._note_gradient(variables, F)
        self._candidates = ends, kinds

    def gradient(self, variables: Array) -> Array:
        """F of some active variables; it is asked for those that are no candidates."""
        if not (self._read_at[variables] == self._version).all():
            self._note_gradient(variables, self._scattered("gradient", variables))
        return self._F[variables]

    def relative_gradient(self, members: Array, middle: Array | None) -> Array:
        """A vector with F minus the middle of its equality, if there are any, at these members."""
        F = self.gradient(members)
        self._relative[members] = F - (0.0 if middle is None else middle[np.maximum(self.qp.group[members], 0)])
        return self._relative

    def products(self, points: Array) -> Array:
        """K z at some points; the next survey comes with what a working set has changed."""
        if not self._waiting or self._waiting[-1][0] != "add_outside":
            return self._scattered("products", points)
        step = self._waiting.pop()
        inside, parts = step[1][2], self._ask(step, ("survey", ()))
        for k, found in enumerate(parts):
            if found is not None:
                self._G[inside[self._part[inside] == k]] = found[0]
        self._note_survey([found[1] for found in parts if found is not None])
        return self._G[points]

    @property
    def Kz(self) -> Array:
        """K z at all points."""
        return self._scattered("products", np.arange(self.qp.m))

    @property
    def F(self) -> Array:
        """The gradient at all variables."""
        return self._scattered("gradient", np.arange(self.qp.n))

    def value(self) -> float:
        """The objective: only where z is not 0 K z matters."""
        support = np.unique(np.flatnonzero(self.z) % self.qp.m)
        Kz = np.zeros(self.qp.m)
        if len(support):
            Kz[support] = self._scattered("products", support)
        return self.qp.value(Kz, self.z)

    def rounding(self) -> float:
        """What rounding does to the objective."""
        support, F = np.flatnonzero(self.z), np.zeros(self.qp.n)
        F[support] = self._scattered("gradient", support)
        return float(np.finfo("float64").eps * (np.abs(self.z) @ (np.abs(F) + np.abs(self.qp.p))))

    def largest_product(self) -> float:
        """The largest |(K z)_i|."""
        return max(found[0] for found in self._ask(("largest_product", ())) if found is not None)

    def active_points(self, positions: Array) -> Array:
        """The active points at these positions among them."""
        return self.active.points[positions] if self.active.is_shrunk else positions

    def worst_points(self, b: Array, size: int) -> Array:
        """The points of the active variables with the largest |F + b|."""
        pieces = [
            (self._global_variables(k, found[0][0]), found[0][1])
            for k, found in enumerate(self._ask(("worst", (b, size))))
            if found is not None
        ]
        variables, F = (np.concatenate(values) for values in zip(*pieces, strict=True))
        order = np.argsort(variables)
        return variables[order][largest(F[order], size)] % self.qp.m

    # ---- changes

    def put(self, z: Array) -> None:
        """Go to another point; K z is not changed."""
        self.z = z
        if z.any() or not self._is_untouched:  # all parts begin at 0
            self._is_untouched = False
            self._change("put", z)

    def move(self, variables: Array, values: Array) -> None:
        """Give some variables these values; K z is not changed."""
        self.z[variables] = values
        self._is_untouched = False
        self._change("move", variables, values)

    def recompute(self, d: Array, points: Array, deadline: float) -> bool:
        """K z = K[:, points] d in float64, with all variables active; whether there was time for it."""
        self.active.reset()
        if not self._live:  # what was before does not matter any more
            self._log, self._waiting = [], []
            if not self._is_untouched:
                self._change("put", self.z)
        self._forget_readings()
        found = self._ask(("recompute", (d, points, deadline - time.perf_counter())))
        return all(each[0] for each in found if each is not None)

    def add(self, d: Array, points: Array, *, exact: bool) -> None:
        """K z += K[:, points] d for the active points."""
        self._change("add", d, points, exact)

    def add_outside(self, d: Array, points: Array, inside: Array, change: Array, *, exact: bool) -> None:
        """The same for the active points that are not in `inside`; for those the change of K z is given."""
        self._change("add_outside", d, points, inside, change, exact)

    def add_to_dropped(self, time: int, d: Array, points: Array, *, exact: bool) -> None:
        """K z += K[:, points] d for the points that were dropped at this time, counted from 0."""
        self._change("add_to_dropped", time, d, points, exact)

    def write_products(self, points: Array, values: Array) -> None:
        """Set K z at some points."""
        self._change("write_products", points, values)

    def activate(self) -> None:
        """Let all variables take part."""
        if self.active.is_shrunk:
            self._change("activate")
        self.active.reset()

    def shrink(self, least: Array, most: Array, margin: float) -> None:
        """Drop the active variables that are safely at a bound."""
        found = [each[0] for each in self._ask(("shrink", (least, most, margin))) if each is not None]
        self.active.count(*(sum(counts) for counts in zip(*found, strict=True)))
        self._candidates = None

    def save(self) -> Any:
        """Return what `restore` goes back to."""
        token = next(self._tokens)
        self._live[token] = self.z.copy()
        self._waiting.append(("save", (token,)))
        return token

    def restore(self, saved: Any) -> None:
        """Go back to a point that was saved; what is active stays."""
        self.z = self._live[saved].copy()
        self._change("restore", saved)

    def forget(self, saved: Any) -> None:
        """Note that a saved point is not needed any more."""
        self._live.pop(saved, None)
        self._waiting.append(("forget", (saved,)))

    def hold(self, points: Array) -> None:
        """Fetch the points of the next working set."""
        self.matrix.hold(points)

    def read_active(self) -> tuple[Array, Array]:
        """The active variables and points.

        Returns
        -------
        tuple of array
            Both in order.
        """
        variables, points = [], []
        for k, found in enumerate(self._ask(("active", ()))):
            if found is not None:
                variables.append(self._global_variables(k, found[0][0]))
                points.append(self._points[k][found[0][1]])
        return np.sort(np.concatenate(variables)), np.sort(np.concatenate(points))


# Steps that change a part; F is a part of its state.
_KEPT = frozenset(
    (
        "put",
        "move",
        "recompute",
        "add",
        "add_outside",
        "add_to_dropped",
        "write_products",
        "activate",
        "shrink",
        "save",
        "restore",
        "forget",
        "survey",
    )
)
