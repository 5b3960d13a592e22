"""The subproblem of a working set: SMO and Newton's steps on a matrix in memory.

    F in float64; repeat until the violation is at most eps:
        candidates: the free variables, and those that violate optimality most
        if they are many: steps of SMO on all variables, with F in the type of K
        if they are few: steps of SMO on a matrix of the candidates alone, with Newton's steps between them
        F += K d for all variables that moved, summed in float64

Near the end a dozen variables of thousands move, thousands of times. The last line removes the errors that steps in
float32 have accumulated: the violation can fall as far as K itself is known. Where SMO takes longer than a
factorisation of the matrix between the free variables, `Subproblem.solve` takes Newton's step on all of them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from symsvm._lib.heap import aligned_copy, aligned_full
from symsvm.evaluation.symmetric_loops import add_rows
from symsvm.solvers.decomposition.newton import newton
from symsvm.solvers.decomposition.small_newton import CUT, small_newton
from symsvm.solvers.decomposition.smo import BLOCK, candidates, smo
from symsvm.solvers.decomposition.variable_loops import lay_out
from symsvm.solvers.decomposition.working_set import padded

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.solvers.decomposition.working_set import WorkingSet

__all__ = ["Subproblem", "descend"]

# Candidates are few if they are at most one of so many variables; the part of a violation that steps on them leave.
_FEW, _FEW_GOAL = 8, 0.1
# The part of a violation that steps on all variables leave: float32 has no digits for less.
_DIGITS = 1e-3
# Nanoseconds of a step of SMO, and of each variable in it.
_STEP, _EACH = 100.0, 0.4
# Steps of SMO before a Newton step on few candidates; Newton steps that may end at a bound, and their nanoseconds.
_STEPS_BETWEEN, _CUT_STEPS, _CUT_TIME = 50, 10, 1e6


def descend(
    K: Array,
    F: Array,
    z: Array,
    lower: Array,
    upper: Array,
    diagonal: Array,
    up: Array,
    low: Array,
    floor: float,
    eps: float,
    most_time: float,
    is_tied: bool,
) -> tuple[int, float, float]:
    """Take steps until no group violates optimality by more than eps; return their number, their time, the violation.

    Parameters
    ----------
    K, z, lower, upper, diagonal, up, low, floor, eps : arrays and numbers
        Those of `smo`.
    F : array of shape (n,)
        The gradient, float64; it is kept up to date.
    most_time : float
        Nanoseconds, by the usual time of steps: a run does not depend on the clock.
    is_tied : bool
        Whether there is an equality; else a variable without bounds and costs takes its place.
    """
    n = len(F)
    before, found = z.copy(), np.empty(n + 1, "int64")
    steps, spent, few = 0, 0.0, n // _FEW
    while True:
        f = aligned_copy(F, K.dtype)
        size, violation = candidates(f, up, low, found)
        # Steps reduce no violation that is NaN, nor one that is infinite, which has no candidates.
        if not violation > eps or not size or spent >= most_time:
            return steps, spent, violation
        left = most_time - spent
        if size > few:
            step, goal = _STEP + _EACH * n, max(eps, _DIGITS * violation)
            taken = smo(K, f, z, lower, upper, diagonal, up, low, floor, goal, int(left / step) + 1, few)
            time = taken * step
        else:
            goal, ways = max(eps, _FEW_GOAL * violation), (lower, upper, diagonal, up, low, floor)
            taken, time = _descend_few(K, F, z, *ways, goal, left, is_tied, found[:size])
        steps, spent = steps + taken, spent + time
        moved = np.flatnonzero(z != before)
        if not len(moved):  # a violation in float64 that is none in float32
            return steps, spent, violation
        add_rows(K, moved, z[moved] - before[moved], F)
        before[moved] = z[moved]


def _descend_few(K, F, z, lower, upper, diagonal, up, low, floor, eps, most_time, is_tied, chosen):
    """Solve for the chosen variables; return the number of steps and their time."""
    groups, n = len(up), len(chosen)
    size = padded(n)
    k, f, d = aligned_full((size, size), 0, K.dtype), *aligned_full((2, size), 0, K.dtype)
    rise, fall = aligned_full((groups, size), np.inf, K.dtype), aligned_full((groups, size), -np.inf, K.dtype)
    x, least, most = np.zeros((3, size))
    k[:n, :n], f[:n], d[:n] = K[chosen[:, None], chosen], F[chosen], diagonal[chosen]
    x[:n], least[:n], most[:n] = z[chosen], lower[chosen], upper[chosen]
    rise[:, :n], fall[:, :n] = up[:, chosen], low[:, chosen]
    step, spent, steps = _STEP + _EACH * size, float(size * size), 0
    few = size // _FEW if size > BLOCK else 0  # then the candidates are chosen again
    while spent < most_time:
        free = np.count_nonzero((rise == 0) & (fall == 0))
        cost = 2e3 + free**3 / 32 + 1.5 * free**2 + 0.2 * free * size
        some = max(_STEPS_BETWEEN, int(cost / step))
        taken = smo(k, f, x, least, most, d, rise, fall, floor, eps, some, few)
        steps, spent = steps + taken, spent + taken * step
        if taken < some:
            break
        for g in range(groups):
            for _ in range(min(_CUT_STEPS, 1 + int(_CUT_TIME / cost))):
                spent += cost
                if small_newton(k, f, x, least, most, rise[g], fall[g], is_tied) != CUT:
                    break
    z[chosen], up[:, chosen], low[:, chosen] = x[:n], rise[:, :n], fall[:, :n]
    return steps, spent


class Subproblem:
    """The arrays of the problem in the members of a working set, the other variables fixed."""

    def __init__(self, working: WorkingSet, F: Array, z: Array):
        qp, W, n = working.qp, working.members, len(working.members)
        has_equality = len(qp.total) > 0
        self.parameters, self.n, self.groups = working.parameters, n, max(1, len(qp.total))
        self._members, self._F_before = W, F
        # No equality is an equality with a further variable that has no bounds and no costs.
        size = padded(n + (not has_equality))
        working.pad(size)
        self.K, dtype = working.K, working.K.dtype
        self.F, self.z, self.lower, self.upper = np.zeros((4, size))
        self.up = aligned_full((self.groups, size), np.inf, dtype)
        self.low = aligned_full((self.groups, size), -np.inf, dtype)
        ours = self.F, self.z, self.lower, self.upper, self.up, self.low
        lay_out(W, F, z, qp.lower, qp.upper, qp.group, *ours)
        self.group = qp.group[W] if has_equality else np.zeros(n, dtype="int64")
        self.equalities = self.groups if has_equality else 0
        if not has_equality:
            self.up[0, n] = self.low[0, n] = 0
            self.lower[n], self.upper[n] = -np.inf, np.inf
        self.diagonal = aligned_copy(np.diagonal(self.K)[:size], dtype)
        # K is positive semi-definite: along an edge at least D is left.
        rounding = 1e-12 * float(np.abs(self.diagonal).max(initial=0.0))
        self.floor = max(1e-30, rounding, (1 + has_equality) * float(qp.diagonal[W].min(initial=np.inf)))

    def solve(self, eps: float, deadline: float) -> tuple[Array, Array, int]:
        """Reduce the violation to eps; return the members' z, the change of their F, and the number of steps."""
        steps, budget, newton_steps = 0, self._newton_cost(), 0
        while True:
            total = 0.0
            while total < budget:
                taken, spent, violation = self._smo(eps, budget - total, deadline)
                steps, total = steps + taken, total + spent
                is_late = steps >= self.parameters.max_steps or time.perf_counter() >= deadline
                if violation <= eps or total < budget or is_late:
                    n = self.n
                    return self.z[:n], self.F[:n] - self._F_before[self._members], steps
                budget = max(budget, self._newton_cost())  # more variables may be free now
            has_helped = self._newton(is_patient=newton_steps >= self.parameters.newton_simple)
            newton_steps += 1
            budget = self._newton_cost() if has_helped else 2 * max(budget, self._newton_cost())

    def _smo(self, eps: float, most_time: float, deadline: float) -> tuple[int, float, float]:
        """Take steps of SMO, not much past the deadline; return their number, their time, and the violation left."""
        steps, total = 0, 0.0
        while True:
            some = min(most_time - total, self.parameters.pause)  # interrupts arrive between two calls
            ways = self.lower, self.upper, self.diagonal, self.up, self.low, self.floor
            taken, spent, violation = descend(self.K, self.F, self.z, *ways, eps, some, self.equalities > 0)
            steps, total = steps + taken, total + spent
            if violation <= eps or spent < some or total >= most_time or time.perf_counter() >= deadline:
                return steps, total, violation

    def _free(self) -> Array:
        """The variables between their bounds."""
        n = self.n
        return np.flatnonzero((self.z[:n] > self.lower[:n]) & (self.z[:n] < self.upper[:n]))

    def _newton_cost(self) -> float:
        """The nanoseconds of a factorisation."""
        free = len(self._free())
        return max(self.parameters.newton_time, free**3 / 60 + 5 * free**2)

    def _newton(self, is_patient: bool) -> bool:
        """Take Newton's step on the free variables, as far as it reduces the objective; return whether it does."""
        free = self._free()
        if not 1 < len(free) <= self.parameters.newton_variables:
            return False
        F, z = self.F[free], self.z[free]
        lower, upper, group = self.lower[free], self.upper[free], self.group[free]
        A, change = self.K[free[:, None], free].astype("float64"), np.zeros(len(self.F))
        new = newton(A, F, z, lower, upper, group, self.equalities, is_patient=is_patient)
        d = new - z
        with np.errstate(over="ignore", invalid="ignore"):  # a step that overflows is not taken
            add_rows(self.K, free, d, change)
            slope, curvature = float(F @ d), float(change[free] @ d)
        if not (slope < 0 and np.isfinite(change).all()):
            return False
        if any(abs(d[group == g].sum()) > 1e-9 * np.abs(d).sum() for g in range(self.equalities)):
            return False
        t = 1.0 if curvature <= -slope else -slope / curvature
        self.z[free] = new if t == 1.0 else z + t * d
        self.F += t * change
        self.up[group, free] = np.where(self.z[free] < upper, 0, np.inf)
        self.low[group, free] = np.where(self.z[free] > lower, 0, -np.inf)
        return True
