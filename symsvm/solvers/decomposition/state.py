"""State: where a decomposition stands: z, G = K z, how far G can be trusted, and what is in play."""

import numpy as np

from symsvm.solvers.decomposition import selection
from symsvm.solvers.decomposition.working_set import WorkingSet
from symsvm.solvers.program import Info

__all__ = ["State"]

# Multiplications that a look at some products in float64 may cost.
_SPOT = 2**23
# Steps of SMO in one working set: a bound that only trouble reaches.
_STEPS = 10**6
# Iterations without a look at the errors of K z, and exact ones without progress that end a run.
_UNSEEN, _IDLE = 16, 20
# What a violation may fall by before rounding takes over.
_DIGITS = {"float32": 1e-5, "float64": 1e-9}


class State:
    """The state of a run: z, G = K z, how far G can be trusted, and what is in play."""

    def __init__(self, qp, gram, start, seed, pairs=None):
        self.qp, self.gram, self._before = qp, gram, gram.entries
        self.is_whole, self.pairs = qp.n <= selection.WHOLE and pairs is None, pairs
        self.rng = np.random.default_rng(seed)
        self.z = qp.start(start)
        kept = gram.kept is not None and gram.kept.adopt(qp)
        self.accurate = gram.is_exact or self._needs_float64()  # products in float64
        self.working = gram.kept if kept else WorkingSet(qp, gram, "float64" if self.accurate else "float32")
        self.Kz, self.F = np.zeros(qp.m), np.zeros(qp.n)
        self.is_exact, self.is_polished, self.steps = True, False, 0  # is_fresh: exact, and not a sum of many products
        # The part of tol to aim at: the rest is for what float32 does to K z. Little is won by less in a small problem.
        self.aim = 0.5 if self.is_whole else 0.8
        self._confirmed = self._shrunk = np.inf
        self._best, self._idle, self._unseen = None, 0, 0
        self.confirm()  # a start that is optimal already must be seen to be

    def _needs_float64(self):
        """Whether D alone keeps variables from infinity, and is less than what float32 does to K."""
        qp = self.qp
        unbounded = np.isinf(qp.lower) | np.isinf(qp.upper)
        if not unbounded.any():
            return False
        some = np.unique(np.linspace(0, qp.m - 1, 64).astype("int64"))
        K = np.empty((len(some), len(some)))
        self.gram.block(some, some, K)
        return bool(qp.diagonal[unbounded].min() < 1e-5 * np.abs(np.diagonal(K)).max())

    def confirm(self):
        """Compute K z in float64, of a z whose totals are what rounding allows."""
        if not self.is_feasible():
            self.z = self.qp.start(self.z)
        self._all_in_play()
        self.Kz[:] = 0
        self.is_exact = True
        support = np.flatnonzero(self.z)
        self.product(support, self.z[support], exact=True)
        self.is_fresh = True
        self.W = self.qp.value(self.Kz, self.z)

    def is_feasible(self):
        """Whether millions of steps have left the totals alone."""
        return self.qp.infeasibility(self.z) <= self.qp.rounding(self.z)

    def doubtful(self):
        """Whether many products were added up since K z was computed, or many steps since the totals were."""
        return (self.is_exact and not self.is_fresh) or not self.is_feasible()

    def catch_up(self):
        """Bring everything into play: add to K z what was left out of it."""
        for points, z in self._left:
            changed = np.flatnonzero(self.z != z)
            self.product(changed, (self.z - z)[changed], exact=self.accurate, rows=points)
        self._all_in_play()

    def _all_in_play(self):
        self.play, self.rows = np.arange(self.qp.n), np.arange(self.qp.m)
        self._left, self._left_bounded = [], 0  # (points put out of play, z at that time)

    def error(self):
        """The largest error of K z among some points in play, with those that decide how large the violation is."""
        qp, play = self.qp, self.play
        F = np.abs(self.F[play] + (self.b[qp.group[play]] if len(self.b) else 0.0))
        support = np.flatnonzero(self.z)
        size = min(len(self.rows), int(np.clip(_SPOT / self.gram.width / max(1, len(support)), 16, 64)))
        sample = self.rng.choice(self.rows, size, replace=False)
        some = np.unique(np.concatenate([sample, qp.point[play[np.argpartition(-F, size - 1)[:size]]]]))
        exact = np.zeros(len(some))
        beta, points = self.by_point(support, self.z[support])
        self.gram.product(beta, some, points, exact, exact=True)
        return float(np.max(np.abs(exact - self.Kz[some])))

    def trusted(self, tol):
        """Whether the violation is within tol though K z has errors; if not, aim lower or have float64 compute it."""
        error = 3 * self.error()  # of two products; others than those looked at may be half as bad again
        if self.worst + error <= tol:
            return True
        if error > 0.6 * tol or self.worst <= self.aim * tol <= tol - 1.1 * error:
            self.confirm()
        else:  # a few steps more cost less
            self.aim = min(self.aim, 1 - 1.1 * error / tol)
        return False

    def astray(self):
        """Whether errors of K z are now as large as the violation that they are to tell; a look at it now and then."""
        self._unseen += 1
        if self.is_exact or not len(self.play) or self._unseen < (1 if self.is_whole else _UNSEEN):
            return False
        self._unseen = 0
        return 6 * self.error() > self.worst

    def watch(self, tol):
        """Compare an exact violation with the last one: go back if W rose, and over to more exact arithmetic.

        First the products are computed in float64, then the working set's matrix is held in it; that where a violation
        has not halved. Returns False if all is float64 already and still neither W nor the violation falls.
        """
        if not self.is_feasible():
            self.confirm()
            self.violation()
        rounding = np.finfo("float64").eps * float(np.abs(self.z) @ (np.abs(self.F) + np.abs(self.qp.p)))
        slow, self._confirmed = self.worst > self._confirmed / 2, self.worst
        if self._best is not None:
            W, worst, z, Kz = self._best
            if self.W > W + 8 * rounding and self.sharpen():  # what float32 made worse is undone
                self.sharpen()
                self.z, self.Kz, self.W = z.copy(), Kz.copy(), W
                self.violation()
                return True
            sizes = np.finfo("float64").eps * float(np.abs(self.working.diagonal).max(initial=0.0))
            within_reach = sizes * float(np.abs(self.z).sum()) <= 10 * tol  # of what rounding leaves
            falls = self.worst < 0.9 * worst or (within_reach and self.W < W - 8 * rounding)
            self._idle = 0 if falls else self._idle + 1
            # A part of the free variables gets on slowly.
            patience = _IDLE if self.free <= selection.MOST else 25 * _IDLE
            if self._idle >= patience and not self.sharpen():
                if W < self.W:
                    self.z, self.Kz, self.W = z, Kz, W
                return False
        if self._best is None or self._idle == 0:
            self._best = self.W, self.worst, self.z.copy(), self.Kz.copy()
        if slow:
            self.sharpen()
        return True

    def settle(self):
        """End at the best point that float64 has seen, should the last one be worse."""
        self.confirm()
        if self._best is not None and self._best[0] < self.W:
            self.W, _, self.z, self.Kz = self._best

    def sharpen(self):
        """Take the next of the two steps to float64; return False if both are taken."""
        if not self.accurate:
            self.accurate = True
        elif self.working.K.dtype != "float64":
            self.working = WorkingSet(self.qp, self.gram, "float64")
        else:
            return False
        return True

    def violation(self):
        """The largest violation in play; for each group the least F that may rise and the greatest that may fall."""
        from symsvm.solvers.decomposition.loops import survey  # Numba is loaded when it is first needed

        qp, is_tied = self.qp, len(self.qp.total) > 0
        ends = self.least, self.most, self.middle = np.empty((3, max(1, len(qp.total))))
        bounds = qp.lower, qp.upper, qp.diagonal, qp.p, qp.group
        self.free, self.bounded, self.worst = survey(self.Kz, self.z, *bounds, self.play, is_tied, self.F, *ends)
        self.b = -self.middle if is_tied else np.zeros(0)
        return self.worst

    def shrink(self):
        """Put out of play what is at a bound, more than half a violation on its safe side."""
        if self.is_whole or self.is_exact or self.worst > self._shrunk / 2:
            return
        from symsvm.solvers.decomposition.loops import part_firm

        self._shrunk = self.worst
        qp, before = self.qp, self.rows
        bounds = qp.lower, qp.upper, qp.group
        ends = self.least, self.most, self.worst / 2
        self.play, firm, bounded = part_firm(self.F, self.z, *bounds, self.play, *ends)
        self._left_bounded += bounded
        if qp.n == qp.m:
            self.rows, left = self.play, firm
        else:
            self.rows = np.unique(qp.point[self.play])
            left = np.setdiff1d(before, self.rows, assume_unique=True)
        self._left.append((left, self.z.copy()))

    def improve(self, tol, deadline=np.inf):
        """Solve for a working set, until the deadline at most; return whether anything changed."""
        self.is_polished = False
        self._choose(selection.selected(self))
        W = self.working.members
        # A part need not be solved better than the whole is; and no violation falls further than its digits go.
        digits = _DIGITS[str(self.working.K.dtype)]
        eps = self.worst * (digits if self.is_whole else max(digits, 0.1))
        if self.pairs is None:
            eps = max(self.aim * tol, eps)
        # Free variables have F near the middle: around it, float32 has the digits that count.
        middle = self.middle[np.maximum(self.qp.group, 0)] if len(self.qp.total) else 0.0
        new, change, steps = self.working.solve(self.F - middle, self.z, eps, _STEPS, deadline)
        self.steps += steps
        moved = np.flatnonzero(new != self.z[W])
        changed = W[moved]
        d, F = new[moved] - self.z[changed], self.F[changed]
        self.z[W] = new
        self._held_product(moved, d, change)
        # W is quadratic: it changes by d times the mean of its gradients before and after.
        qp = self.qp
        after = self.Kz[qp.point[changed]] + qp.diagonal[changed] * self.z[changed] + qp.p[changed]
        self.W += float(d @ (F + after)) / 2
        return len(changed) > 0

    def _choose(self, wanted):
        """Let the working set have these members, in float64 where float32 has no numbers for them."""
        self.working.choose(wanted)
        if not self.working.is_finite() and self.working.K.dtype == "float32":
            self.accurate, self.working = True, WorkingSet(self.qp, self.gram, "float64")
            self.working.choose(wanted)
        if not self.working.is_finite():
            raise ValueError(f"the kernel {self.gram.kernel!r} is not finite on these points: scale X.")

    def recover(self):
        """Go back from a K z that is not finite; return False if float64 has computed it."""
        if self._best is None:
            return False
        self.W, _, z, Kz = self._best
        self.z, self.Kz, self.is_exact = z.copy(), Kz.copy(), True
        self._all_in_play()
        self.violation()
        return self.sharpen()

    def by_point(self, variables, d):
        """The points of the variables and the sum of d for each."""
        if self.qp.n == self.qp.m:
            return d, variables
        points, where = np.unique(self.qp.point[variables], return_inverse=True)
        return np.bincount(where, weights=d, minlength=len(points)), points

    def product(self, variables, d, *, exact=False, rows=None):
        """G += K[:, variables] d, for the points in play, or those asked for."""
        if not len(variables):
            return
        qp = self.qp
        d, points = self.by_point(variables, d)
        self.is_exact &= exact
        self.is_fresh = False
        if rows is None and len(self.play) < qp.n:
            rows = self.rows
        if rows is None:
            self.gram.product(d, None, points, self.Kz, exact=exact)
        elif len(rows):
            part = self.Kz[rows]
            self.gram.product(d, rows, points, part, exact=exact)
            self.Kz[rows] = part

    def _held_product(self, moved, d, change):
        """G += K[:, W] d: for the members W of the working set their matrix is there already."""
        qp, working = self.qp, self.working
        W = working.members
        if not len(moved) or (self.accurate and working.K.dtype != "float64"):
            self.product(W[moved], d, exact=self.accurate)
            return
        change[moved] -= qp.diagonal[W[moved]] * d
        others = np.zeros(qp.m, dtype=bool)
        others[self.rows] = True
        others[qp.point[W]] = False
        self.product(W[moved], d, exact=self.accurate, rows=np.flatnonzero(others))
        self.Kz[qp.point[W]] += change  # once for a point, though two of its variables may be members
        self.is_exact &= self.accurate
        self.is_fresh = False

    def info(self, iteration, seconds):
        """The diagnostics of an iteration; what is out of play has no part in the gap."""
        from symsvm.solvers.decomposition.loops import gap

        qp, left = self.qp, self._left_bounded
        distance = gap(self.F, self.z, qp.lower, qp.upper, qp.diagonal, qp.group, self.b, self.play)
        rows = (self.gram.entries - self._before) / qp.m
        return Info(iteration, seconds, self.W, self.worst, distance, self.free, self.bounded + left, rows)
