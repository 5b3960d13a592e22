"""Decomposition: the fast exact solver, over a kernel oracle and without a cache of rows.

    z feasible; G = K z
    repeat:
        the violation of optimality over the variables in play; if it is within tol:
            stop if G is exact; else compute it again in float64, with all variables in play
        put out of play what stands firm at a bound
        W = all free variables, and on each side some that violate optimality: half the worst, half at random
        solve for z_W by SMO on K_WW, of which only the rows of newcomers are computed
        G += K[:, W] (what z_W changed by)

The two operations on the kernel, a block K_WW and the product in the last line, are those of `symsvm.oracle.Pairs`.
They run in float32 until float64 finds that they have gone astray; nothing is believed that float64 has not confirmed.
"""

import time
from dataclasses import dataclass

import numpy as np

from symsvm.solvers.working_set import WorkingSet

__all__ = ["Result", "decompose"]

# Variables that are solved for all at once.
WHOLE = 2048
# Violators a side that join the free variables, and the most of these.
JOIN, MOST = 512, 8192


@dataclass(frozen=True)
class Result:
    """Where a decomposition ended.

    Attributes
    ----------
    z, Kz : the point, and K z in float64.
    stopped : why it ended: `tol`, `max_iter`, `time_limit`, `callback`, `interrupt`, or `stalled` (no step changes
        anything any more, though the violation exceeds tol: what rounding leaves).
    n_iter, steps : outer iterations and steps of SMO.
    trace : arrays over the iterations: seconds, violation, free, bounded, in_play, steps.
    """

    z: np.ndarray
    Kz: np.ndarray
    stopped: str
    n_iter: int
    steps: int
    trace: dict


class _Run:
    """The state of a run: z, G = K z, whether G is exact, and what is in play."""

    def __init__(self, qp, pairs, exact, start, seed):
        self.qp, self.pairs, self._exact = qp, pairs, exact
        self.rng = np.random.default_rng(seed)
        self.z = qp.start() if start is None else np.array(start, dtype="float64")
        self.working = WorkingSet(qp, pairs)
        self.play = np.arange(qp.n)
        self.Kz = np.zeros(pairs.shape[0])
        self.is_exact, self.steps = True, 0
        self.accurate = qp.n <= WHOLE  # products in float64
        self._confirmed = np.inf
        self._product(np.flatnonzero(self.z), self.z[self.z != 0])

    def confirm(self):
        """Compute K z in float64, with everything in play."""
        self.Kz[:] = 0
        self.is_exact = True
        support = np.flatnonzero(self.z)
        self._product(support, self.z[support], exact=True)
        self.play = np.arange(self.qp.n)

    def watch(self):
        """Go over to more exact arithmetic where an exact violation has not halved since the last one; say if so.

        First the products are computed in float64, then the working set's matrix is held in it.
        """
        slow, self._confirmed = self.worst > self._confirmed / 2, self.worst
        return slow and self.sharpen()

    def sharpen(self):
        """Take the next of the two steps to float64; return False if both are taken."""
        if not self.accurate:
            self.accurate = True
        elif self.working.K.dtype != "float64":
            self.working = WorkingSet(self.qp, self._exact())
        else:
            return False
        return True

    def violation(self):
        """The largest violation in play; for each group the least F that may rise and the greatest that may fall."""
        qp, play = self.qp, self.play
        self.F = qp.gradient(self.Kz, self.z)
        f, up, low = self.F[play], self.z[play] < qp.upper[play], self.z[play] > qp.lower[play]
        groups = max(1, len(qp.total))
        least, most = np.zeros(groups), np.zeros(groups)  # 0 is the F of the variable of no equality
        for g in range(groups):
            mine = qp.group[play] == g if len(qp.total) else np.ones(len(play), dtype=bool)
            ends = (np.inf, -np.inf) if len(qp.total) else (0.0, 0.0)
            least[g] = np.min(f, where=up & mine, initial=ends[0])
            most[g] = np.max(f, where=low & mine, initial=ends[1])
        self.least, self.most = least, most
        self.worst = float(np.max(most - least))
        return self.worst

    def shrink(self):
        """Put out of play what is at a bound, more than half a violation on its safe side."""
        qp, play = self.qp, self.play
        f, group = self.F[play], np.maximum(qp.group[play], 0)
        at_lower, at_upper = self.z[play] <= qp.lower[play], self.z[play] >= qp.upper[play]
        margin = self.worst / 2
        firm = (at_lower & (f > self.most[group] + margin)) | (at_upper & (f < self.least[group] - margin))
        self.play = play[~firm]

    def wanted(self):
        """The next working set: everything if that is little, else free variables and violators."""
        qp, play = self.qp, self.play
        if qp.n <= WHOLE:
            return np.arange(qp.n)
        f, z, group = self.F[play], self.z[play], np.maximum(qp.group[play], 0)
        up, low = z < qp.upper[play], z > qp.lower[play]
        free = np.flatnonzero(up & low)
        if len(free) > MOST:
            middle = (self.least + self.most)[group[free]] / 2
            free = free[np.argpartition(-np.abs(f[free] - middle), MOST)[:MOST]]
        chosen = [free]
        # The worst violators are near copies of one another: half of the newcomers are drawn from the others.
        for may, score in ((up & ~low, self.most[group] - f), (low & ~up, f - self.least[group])):
            candidates = np.flatnonzero(may & (score > 0.1 * self.worst))
            if len(candidates) > JOIN:
                order = np.argpartition(-score[candidates], JOIN // 2)
                rest = self.rng.choice(candidates[order[JOIN // 2 :]], JOIN - JOIN // 2, replace=False)
                candidates = np.concatenate([candidates[order[: JOIN // 2]], rest])
            chosen.append(candidates)
        return play[np.sort(np.concatenate(chosen))]

    def improve(self, tol):
        """Solve for a working set; return whether anything changed."""
        whole = self.qp.n <= WHOLE
        self.working.choose(self.wanted())
        W = self.working.members
        # A part need not be solved better than the whole is; and no violation falls further than its digits go.
        digits = _DIGITS[str(self.working.K.dtype)]
        eps = max(0.8 * tol, self.worst * (digits if whole else max(digits, 0.1)))
        # Free variables have F near the middle: around it, float32 has the digits that count.
        middle = (self.least + self.most) / 2 if len(self.qp.total) else np.zeros(1)
        new, steps = self.working.solve(self.F - middle[np.maximum(self.qp.group, 0)], self.z, eps, _STEPS)
        self.steps += steps
        changed = np.flatnonzero(new != self.z[W])
        d = new[changed] - self.z[W[changed]]
        self.z[W] = new
        self._product(W[changed], d, exact=self.accurate)
        return len(changed) > 0

    def _product(self, variables, d, exact=False):
        """G += K[:, variables] d, for the points in play, or all where it is to be exact."""
        if not len(variables):
            return
        qp = self.qp
        points, where = np.unique(qp.point[variables], return_inverse=True)
        total = np.bincount(where, weights=d, minlength=len(points))
        if exact:
            self._exact().matvec(total, None, points, self.Kz)
            return
        self.is_exact = False
        if len(self.play) == qp.n:
            self.pairs.matvec(total, None, points, self.Kz)
        else:
            rows = np.unique(qp.point[self.play])
            part = self.Kz[rows]
            self.pairs.matvec(total, rows, points, part)
            self.Kz[rows] = part


# Steps of SMO in one working set: a bound that only trouble reaches.
_STEPS = 10**6
# What a violation may fall by before rounding takes over.
_DIGITS = {"float32": 1e-3, "float64": 1e-9}


def decompose(qp, pairs, exact, *, tol=1e-3, start=None, max_iter=None, time_limit=None, callback=None, seed=0):
    """Solve a `QuadraticProgram` over a kernel oracle.

    Parameters
    ----------
    pairs : the oracle's `Pairs` of the points with themselves, in float32 (or float64).
    exact : a function that returns them in float64; it is called when they are first needed.
    tol : the largest KKT violation to accept, as LIBSVM means it, in float64.
    start : a feasible z.
    max_iter, time_limit : the most outer iterations and seconds.
    callback : a function of a row of the trace (a dict); a true value stops.
    """
    began = time.perf_counter()
    run = _Run(qp, pairs, exact, start, seed)
    rows, stopped, n_iter = [], None, 0
    try:
        while True:
            violation = run.violation()
            if violation <= tol and not run.is_exact:
                run.confirm()
                continue
            rows.append(_row(run, violation, time.perf_counter() - began))
            if violation <= tol:
                stopped = "tol"
            elif max_iter is not None and n_iter >= max_iter:
                stopped = "max_iter"
            elif time_limit is not None and rows[-1]["seconds"] >= time_limit:
                stopped = "time_limit"
            if callback is not None and callback(rows[-1]) and stopped is None:
                stopped = "callback"
            if stopped is not None:
                break
            if run.is_exact:
                run.watch()
            else:
                run.shrink()
            n_iter += 1
            if not run.improve(tol) and not run.sharpen():
                stopped = "stalled"
                break
    except KeyboardInterrupt:
        if not rows:
            raise
        stopped = "interrupt"
    if not run.is_exact:
        run.confirm()
    trace = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return Result(run.z, run.Kz, stopped, n_iter, run.steps, trace)


def _row(run, violation, seconds):
    qp, z = run.qp, run.z
    inside = int(np.count_nonzero((z > qp.lower) & (z < qp.upper)))
    return {
        "seconds": seconds,
        "violation": violation,
        "free": inside,
        "bounded": int(np.count_nonzero((z != 0) & ((z <= qp.lower) | (z >= qp.upper)))),
        "in_play": len(run.play),
        "steps": run.steps,
    }
