"""WorkingSet: the variables that are solved for together, and the matrix of their points."""

import numpy as np

__all__ = ["WorkingSet"]

# Rows that are computed together: of a symmetric matrix only what is left of the diagonal, in steps of so many.
_ROWS = 512


class WorkingSet:
    """Some variables of a quadratic program, a slot each, with K + D between the slots.

    Those who leave give their slots to the last who stay, newcomers come after these: only their rows are computed.
    """

    def __init__(self, qp, gram, dtype):
        self.qp, self.gram = qp, gram
        self.members = np.zeros(0, dtype="int64")
        self.K = np.zeros((0, 0), dtype)

    def choose(self, wanted):
        """Let exactly the variables `wanted` be the members."""
        asked = np.zeros(self.qp.n, dtype=bool)
        asked[wanted] = True
        stay = asked[self.members]
        asked[self.members[stay]] = False
        self._close_up(stay)
        n = len(self.members)
        self._make_room(len(wanted))
        self.members = np.concatenate([self.members, wanted[asked[wanted]]])
        self._fill(n)

    def _make_room(self, n):
        """A matrix for n members, filled up to whole blocks, with one slot more for the variable of no equality."""
        if n + 1 <= len(self.K):
            return
        size = _blocks(min(self.qp.n, n + n // 4) + 1)
        K, held = np.empty((size, size), self.K.dtype), len(self.members)
        K[:held, :held] = self.K[:held, :held]
        self.K = K

    def _close_up(self, stay):
        """Keep those who stay, the last of them in the slots of those who leave."""
        from symsvm.solvers.smo import move  # Numba is loaded when it is first needed

        n = np.count_nonzero(stay)
        holes, movers = np.flatnonzero(~stay[:n]), n + np.flatnonzero(stay[n:])
        if len(holes):
            self.members[holes] = self.members[movers]
            move(self.K, n, len(stay), movers, holes)
        self.members = self.members[:n]

    def _fill(self, start):
        """Compute the rows and columns of the slots from `start` on."""
        from symsvm.solvers.smo import mirror

        qp, n = self.qp, len(self.members)
        points = qp.point[self.members]
        for low in range(start, n, _ROWS):
            high = min(n, low + _ROWS)
            self.gram.block(points[low:high], points[:high], self.K[low:high])
            mirror(self.K, low, high)
        new = np.arange(start, n)
        self.K[new, new] += qp.diagonal[self.members[start:]]

    def solve(self, F, z, eps, most_steps):
        """Run SMO on the members from the gradient F and the point z; return their new z and the number of steps."""
        from symsvm.solvers.smo import smo

        qp, W, n = self.qp, self.members, len(self.members)
        groups, alone = max(1, len(qp.total)), not len(qp.total)
        # No equality is one with a further variable that nothing bounds and nothing costs.
        size = _blocks(n + alone)
        self.K[n:size, :size] = 0
        self.K[:size, n:size] = 0
        dtype = self.K.dtype
        gradient, values = np.zeros(size, dtype), np.zeros(size)
        lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
        gradient[:n], values[:n], lower[:n], upper[:n] = F[W], z[W], qp.lower[W], qp.upper[W]
        up, low = np.full((groups, size), np.inf, dtype), np.full((groups, size), -np.inf, dtype)
        for g in range(groups):
            mine = alone | (qp.group[W] == g)
            up[g, :n][mine & (values[:n] < upper[:n])] = 0
            low[g, :n][mine & (values[:n] > lower[:n])] = 0
        if alone:
            up[0, n] = low[0, n] = 0
        diagonal = np.ascontiguousarray(np.diagonal(self.K)[:size])
        steps, _ = smo(self.K, gradient, values, lower, upper, diagonal, up, low, eps, most_steps)
        return values[:n], steps


def _blocks(n):
    """n, filled up to whole blocks of the vectorised loops."""
    from symsvm.solvers.smo import BLOCK

    return -(-n // BLOCK) * BLOCK
