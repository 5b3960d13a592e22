"""WorkingSet: the variables that are solved for together, and the matrix of their points."""

import numpy as np

__all__ = ["WorkingSet"]


class WorkingSet:
    """Some variables of a quadratic program, a slot each, with K + D between the slots.

    Newcomers take the slots of those who leave, so that only their rows are computed.
    """

    def __init__(self, qp, pairs):
        from symsvm.solvers.smo import BLOCK  # Numba is loaded when it is first needed

        self.qp, self.pairs, self._block = qp, pairs, BLOCK
        self.members = np.zeros(0, dtype="int64")
        self.K = np.zeros((0, 0), pairs.dtype)

    def choose(self, wanted):
        """Let exactly the variables `wanted` be the members."""
        stay = np.isin(self.members, wanted, assume_unique=True)
        new = np.setdiff1d(wanted, self.members[stay], assume_unique=True)
        self._make_room(len(wanted))
        free = np.flatnonzero(~stay)
        taken, n = free[: len(new)], len(self.members)
        more = np.arange(n, n + len(new) - len(taken))
        self.members = np.concatenate([self.members, np.zeros(len(more), dtype="int64")])
        slots = np.concatenate([taken, more])
        self.members[slots] = new
        slots = self._close_up(free[len(new) :], slots)
        self._fill(slots)

    def _make_room(self, n):
        """A matrix for n members, filled up to whole blocks, with one slot more for the variable of no equality."""
        if n + 1 <= len(self.K):
            return
        size = -(-(n + 1 + n // 4) // self._block) * self._block
        K, held = np.empty((size, size), self.K.dtype), len(self.members)
        K[:held, :held] = self.K[:held, :held]
        self.K = K

    def _close_up(self, gone, slots):
        """Move the last members into slots that are free for good; return where the given slots are now."""
        n = len(self.members) - len(gone)
        holes = gone[gone < n]
        movers = np.setdiff1d(np.arange(n, len(self.members)), gone)
        self.members[holes] = self.members[movers]
        self.K[holes, :n] = self.K[movers, :n]
        self.K[:n, holes] = self.K[:n, movers]
        self.K[np.ix_(holes, holes)] = self.K[np.ix_(movers, movers)]
        where = np.arange(len(self.members))
        where[movers] = holes
        self.members = self.members[:n]
        return where[slots]

    def _fill(self, slots):
        """Compute the rows and columns of newcomers."""
        if not len(slots):
            return
        qp, n = self.qp, len(self.members)
        rows = self.pairs.block(qp.point[self.members[slots]], qp.point[self.members])
        self.K[slots, :n] = rows
        self.K[:n, slots] = rows.T
        self.K[slots, slots] += qp.diagonal[self.members[slots]]

    def solve(self, F, z, eps, most_steps):
        """Run SMO on the members from the gradient F and the point z; return their new z and the number of steps."""
        from symsvm.solvers.smo import smo

        qp, W, n = self.qp, self.members, len(self.members)
        groups, alone = max(1, len(qp.total)), not len(qp.total)
        # No equality is one with a further variable that nothing bounds and nothing costs.
        size = -(-(n + alone) // self._block) * self._block
        self.K[n:size, :size] = 0
        self.K[:size, n:size] = 0
        dtype = self.K.dtype
        gradient, values = np.zeros(size, dtype), np.zeros(size)
        lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
        gradient[:n], values[:n], lower[:n], upper[:n] = F[W], z[W], qp.lower[W], qp.upper[W]
        up, low = np.full((groups, size), np.inf, dtype), np.full((groups, size), -np.inf, dtype)
        for g in range(groups):
            mine = alone | (qp.group[W] == g)
            up[g, :n][mine & (z[W] < qp.upper[W])] = 0
            low[g, :n][mine & (z[W] > qp.lower[W])] = 0
        if alone:
            up[0, n] = low[0, n] = 0
        diagonal = np.ascontiguousarray(np.diagonal(self.K)[:size])
        steps, _ = smo(self.K, gradient, values, lower, upper, diagonal, up, low, eps, most_steps)
        return values[:n], steps
