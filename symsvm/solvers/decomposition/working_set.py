"""WorkingSet: the variables that are solved for together, and the matrix of their points."""

import time

import numpy as np

from symsvm.solvers.decomposition.newton import newton

__all__ = ["WorkingSet", "blocks"]

# Rows that are computed together: of a symmetric matrix only what is left of the diagonal, in steps of so many.
_ROWS = 512
# Columns that keep rows from being a multiple of 4096 bytes: a column would then be in the same lines of the cache.
_ASIDE = 16


class WorkingSet:
    """Some variables of a quadratic program, a slot each, with K + D between the slots.

    Those who leave give their slots to the last who stay, newcomers come after these: only their rows are computed.
    """

    def __init__(self, qp, gram, dtype):
        self.qp, self.gram = qp, gram
        self.members = np.zeros(0, dtype="int64")
        self.K = np.zeros((0, 0), dtype)
        self._own = np.zeros(0, dtype)  # K_ii without D
        self._padded = None  # up to where K has zeros beside its members

    @classmethod
    def of_all(cls, qp, gram, K):
        """All variables, one a point, over a matrix between them that is there: `blocks(n + 1)` rows and columns."""
        working = cls(qp, gram, K.dtype)
        working.K, working.members = K, np.arange(qp.n)
        working._own = np.diagonal(K)[: qp.n].copy()
        working.adopt(qp)
        return working

    def adopt(self, qp):
        """Go on with another program over the same points; return whether that can be."""
        if (qp.n, qp.m) != (self.qp.n, self.qp.m):
            return False
        here = np.arange(len(self.members))
        self.K[here, here] = self._own + qp.diagonal[self.members]
        self.qp = qp
        return True

    def choose(self, wanted):
        """Let exactly the variables `wanted` be the members."""
        if len(self.members) == len(wanted) == self.qp.n:
            return
        asked = np.zeros(self.qp.n, dtype=bool)
        asked[wanted] = True
        stay = asked[self.members]
        asked[self.members[stay]] = False
        self._close_up(stay)
        n = len(self.members)
        if n < len(stay) or n < len(wanted):
            self._padded = None
        self._make_room(len(wanted))
        self.members = np.concatenate([self.members, wanted[asked[wanted]]])
        self._fill(n)

    @property
    def diagonal(self):
        """K_ii of the members, without D."""
        return self._own

    def is_finite(self):
        """Whether K_ii are numbers; where K is positive semi-definite, K_ij are then."""
        return bool(np.isfinite(self._own).all())

    def _make_room(self, n):
        """A matrix for n members, filled up to whole blocks, with one slot more for the variable of no equality."""
        if n + 1 <= len(self.K):
            return
        size = blocks(min(self.qp.n, n + n // 4) + 1) + _ASIDE
        K, held = np.empty((size, size), self.K.dtype), len(self.members)
        K[:held, :held] = self.K[:held, :held]
        self.K = K

    def pad(self, size):
        """Have zeros from the members on, up to this size."""
        n = len(self.members)
        if self._padded != size:
            self.K[n:size, :size] = 0
            self.K[:size, n:size] = 0
            self._padded = size

    def _close_up(self, stay):
        """Keep those who stay, the last of them in the slots of those who leave."""
        from symsvm.solvers.decomposition.loops import move  # Numba is loaded when it is first needed

        n = np.count_nonzero(stay)
        holes, movers = np.flatnonzero(~stay[:n]), n + np.flatnonzero(stay[n:])
        if len(holes):
            self.members[holes], self._own[holes] = self.members[movers], self._own[movers]
            move(self.K, n, len(stay), movers, holes)
        self.members, self._own = self.members[:n], self._own[:n]

    def _fill(self, start):
        """Compute the rows and columns of the slots from `start` on."""
        qp, n = self.qp, len(self.members)
        points = qp.point[self.members]
        if start == 0 and n > qp.m:  # most points stand there twice
            points, slots = np.unique(points, return_inverse=True)
            K = np.empty((len(points), len(points)), self.K.dtype)
            self._compute(K, points, 0)
            self.K[:n, :n] = K[slots[:, None], slots]
        else:
            self._compute(self.K, points, start)
        new = np.arange(start, n)
        self._own = np.concatenate([self._own, self.K[new, new]])
        self.K[new, new] += qp.diagonal[self.members[start:]]

    def _compute(self, K, points, start):
        """Write the rows and columns of the points from `start` on."""
        from symsvm.evaluation.loops import mirror

        n = len(points)
        for low in range(start, n, _ROWS):
            high = min(n, low + _ROWS)
            self.gram.block(points[low:high], points[:high], K[low:high])
            mirror(K, low, high)

    def solve(self, F, z, eps, most_steps, deadline=np.inf):
        """Solve for the members from the gradient F and the point z.

        Returns their new z, what it changes their F by, and the number of steps.

        At the deadline, a time of `time.perf_counter`, it returns what it has.

        SMO takes steps; where they come to cost more than a factorisation of the matrix between the free variables,
        Newton's step on these is taken, and SMO goes on from there.
        """
        part = _Part(self, F, z)
        steps, budget, helped = 0, part.budget(), 0
        while True:
            taken, spent, violation = part.smo(eps, budget, deadline)
            steps += taken
            if violation <= eps or spent < budget or steps >= most_steps or time.perf_counter() >= deadline:
                n = len(self.members)
                return part.z[:n], part.F[:n] - F[self.members], steps
            has_helped = part.newton(is_patient=helped >= _HASTY)
            helped += 1
            budget = part.budget() if has_helped else 2 * max(budget, part.budget())


class _Part:
    """The arrays of a problem of its own that the members of a working set are."""

    def __init__(self, working, F, z):
        from symsvm.solvers.decomposition.loops import lay_out  # Numba is loaded when it is first needed

        qp, W, n = working.qp, working.members, len(working.members)
        self.n, self.groups, alone = n, max(1, len(qp.total)), not len(qp.total)
        # No equality is one with a further variable that nothing bounds and nothing costs.
        size = blocks(n + alone)
        working.pad(size)
        self.K, dtype = working.K, working.K.dtype
        self.F, self.z, self.lower, self.upper = np.zeros((4, size))
        self.up, self.low = np.full((self.groups, size), np.inf, dtype), np.full((self.groups, size), -np.inf, dtype)
        ours = self.F, self.z, self.lower, self.upper, self.up, self.low
        lay_out(W, F, z, qp.lower, qp.upper, qp.group, *ours)
        self.group = np.zeros(n, dtype="int64") if alone else qp.group[W]
        self.equalities = 0 if alone else self.groups
        if alone:
            self.up[0, n] = self.low[0, n] = 0
            self.lower[n], self.upper[n] = -np.inf, np.inf
        self.diagonal = np.ascontiguousarray(np.diagonal(self.K)[:size])
        # K is positive semi-definite: along an edge D is left at least.
        rounding = 1e-12 * float(np.abs(self.diagonal).max(initial=0.0))
        self.floor = max(1e-30, rounding, (1 if alone else 2) * float(qp.diagonal[W].min(initial=np.inf)))

    def _open(self, members):
        """Say which of the members may rise and fall."""
        z, group = self.z[members], self.group[members]
        self.up[group, members] = np.where(z < self.upper[members], 0, np.inf)
        self.low[group, members] = np.where(z > self.lower[members], 0, -np.inf)

    def free(self):
        """The variables between their bounds."""
        n = self.n
        return np.flatnonzero((self.z[:n] > self.lower[:n]) & (self.z[:n] < self.upper[:n]))

    def smo(self, eps, most_time, deadline):
        """Steps of SMO, not much past the deadline; return their number, their time, and the violation left."""
        from symsvm.solvers.decomposition.subproblem import focus

        bounds, steps, total = (self.lower, self.upper), 0, 0.0
        while True:
            some = min(most_time - total, _PAUSE)  # an interrupt is heard between two calls
            ways = self.diagonal, self.up, self.low, self.floor
            taken, spent, violation = focus(self.K, self.F, self.z, *bounds, *ways, eps, some, self.equalities > 0)
            steps, total = steps + taken, total + spent
            if violation <= eps or spent < some or total >= most_time or time.perf_counter() >= deadline:
                return steps, total, violation

    def budget(self):
        """The nanoseconds that a factorisation costs."""
        free = len(self.free())
        return max(_LEAST, free**3 / 60 + 5 * free**2)

    def newton(self, is_patient):
        """Take Newton's step on the free variables, cut where it ceases to help; return whether it did."""
        from symsvm.evaluation.loops import add_rows

        free = self.free()
        if not 1 < len(free) <= _FACTOR:
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
        self._open(free)
        return True


# Nanoseconds of SMO before a factorisation, at least, and the most variables in one.
_LEAST, _FACTOR = 2e6, 4096
# Newton's steps of a problem that may end at the bounds they meet first, before one has to go on from there.
_HASTY = 2
# Nanoseconds of SMO without a look at the clock.
_PAUSE = 1e8


def blocks(n):
    """n, filled up to whole blocks of the vectorised loops."""
    from symsvm.solvers.decomposition.smo import BLOCK

    return -(-n // BLOCK) * BLOCK
