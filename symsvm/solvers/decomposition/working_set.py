"""The working set: the variables that are solved for together, and the matrix between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from symsvm._lib.heap import recycle, recycled_empty
from symsvm.solvers.decomposition.parameters import DEFAULTS, Parameters

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.evaluation.kernel_matrix import KernelMatrix
    from symsvm.objectives import QuadraticProgram

__all__ = ["WorkingSet", "WorkingSetReuse", "padded"]

# Rows that are computed together: of a symmetric matrix only what is left of the diagonal, in steps of so many.
_ROWS = 512
# Entries of the matrix that one core moves faster than several.
_FEW_MOVED = 2**20
# Further columns: rows of a multiple of 4096 bytes would put a column into the same lines of the cache.
_EXTRA = 16


class WorkingSet:
    """Some variables of a quadratic program, a slot for each, with K + D between the slots.

    The slots of members that leave go to the last ones that stay. New members come after these: only their rows are
    computed.

    Attributes
    ----------
    qp, matrix, parameters : the program, the kernel matrix of its points, the numbers that tune its solution.
    members : the variables, in the order of their slots.
    K : the matrix; it has room for more members.
    diagonal : K_ii of the members, without D.
    """

    def __init__(
        self, qp: QuadraticProgram, matrix: KernelMatrix, dtype: str | np.dtype, parameters: Parameters = DEFAULTS
    ):
        self.qp, self.parameters, self.matrix = qp, parameters, matrix
        self.members = np.zeros(0, dtype="int64")
        self.K = np.zeros((0, 0), dtype)
        self.diagonal = np.zeros(0, dtype)
        self._padded = None  # the size up to which K has zeros beside its members
        self._has_infinite = False  # among the values that were computed

    @classmethod
    def of_all(cls, qp: QuadraticProgram, matrix: KernelMatrix, K: Array) -> WorkingSet:
        """All variables, one for each point, over a given matrix of `padded(n + 1)` rows and columns."""
        working = cls(qp, matrix, K.dtype)
        working.K, working.members = K, np.arange(qp.n)
        working.diagonal = np.diagonal(K)[: qp.n].copy()
        working.adopt(qp)
        return working

    def adopt(self, qp: QuadraticProgram) -> bool:
        """Take another program over the same points; return whether it has as many variables."""
        if (qp.n, qp.m) != (self.qp.n, self.qp.m):
            return False
        here = np.arange(len(self.members))
        self.K[here, here] = self.diagonal + qp.diagonal[self.members]
        self.qp = qp
        return True

    def choose(self, wanted: Array) -> None:
        """Let exactly the variables `wanted` be the members."""
        if len(self.members) == len(wanted) == self.qp.n:
            return
        is_new = np.zeros(self.qp.n, dtype=bool)
        is_new[wanted] = True
        stay = is_new[self.members]
        is_new[self.members[stay]] = False
        self._remove(stay)
        n = len(self.members)
        if n < len(stay) or n < len(wanted):
            self._padded = None
        self._reserve(len(wanted))
        self.members = np.concatenate([self.members, wanted[is_new[wanted]]])
        self._fill(n)

    def is_finite(self) -> bool:
        """Whether all values of K between the members are finite."""
        n = len(self.members)
        self._has_infinite = self._has_infinite and not np.isfinite(self.K[:n, :n]).all()  # others may have left
        return not self._has_infinite

    def solve(self, F: Array, z: Array, eps: float, deadline: float = np.inf) -> tuple[Array, Array, int]:
        """Solve for the members from the gradient F at z, until the violation among them is at most eps.

        Returns their new z, the change of their F, and the number of steps. At the deadline, a time of
        `time.perf_counter`, it returns what it has.
        """
        from symsvm.solvers.decomposition.subproblem import Subproblem  # Numba is loaded when it is first needed

        return Subproblem(self, F, z).solve(eps, deadline)

    def release(self) -> None:
        """Leave the memory of K to the next working set."""
        if len(self.K):
            recycle(self.K)
            self.K = np.zeros((0, 0), self.K.dtype)

    def pad(self, size: int) -> None:
        """Write zeros beside the members, up to this size."""
        n = len(self.members)
        if self._padded != size:
            self.K[n:size, :size] = 0
            self.K[:size, n:size] = 0
            self._padded = size

    def _reserve(self, n: int) -> None:
        """Make room for n members in whole blocks, with one slot more for the variable of no equality."""
        if n + 1 <= len(self.K):
            return
        size = padded(min(self.qp.n, n + n // 2) + 1) + _EXTRA
        K, old = recycled_empty((size, size), self.K.dtype), len(self.members)
        K[:old, :old] = self.K[:old, :old]
        self.release()
        self.K = K

    def _remove(self, stay: Array) -> None:
        """Keep the members that stay, the last of them in the slots of those that leave."""
        from symsvm._lib.threads import in_parts  # Numba is loaded when it is first needed
        from symsvm.solvers.decomposition.variable_loops import move_columns, move_rows

        n = np.count_nonzero(stay)
        holes, movers = np.flatnonzero(~stay[:n]), n + np.flatnonzero(stay[n:])
        if len(holes):
            self.members[holes], self.diagonal[holes] = self.members[movers], self.diagonal[movers]
            in_turn = in_parts if len(holes) * len(stay) >= _FEW_MOVED else (lambda work, count: work(0, count))
            in_turn(lambda first, last: move_columns(self.K, movers, holes, first, last), len(stay))
            in_turn(lambda first, last: move_rows(self.K, n, movers, holes, first, last), len(holes))
        self.members, self.diagonal = self.members[:n], self.diagonal[:n]

    def _fill(self, start: int) -> None:
        """Compute the rows and columns of the slots from `start` on."""
        qp, n = self.qp, len(self.members)
        points = qp.point[self.members]
        if start == 0 and n > qp.m:  # most points have two members
            points, slots = np.unique(points, return_inverse=True)
            K = np.empty((len(points), len(points)), self.K.dtype)
            self._compute(K, points, 0)
            self.K[:n, :n] = K[slots[:, None], slots]
        else:
            self._compute(self.K, points, start)
        new = np.arange(start, n)
        self.diagonal = np.concatenate([self.diagonal, self.K[new, new]])
        self.K[new, new] += qp.diagonal[self.members[start:]]

    def _compute(self, K: Array, points: Array, start: int) -> None:
        """Write the rows and columns of the points from `start` on."""
        from symsvm.evaluation.symmetric_loops import is_finite, mirror

        n = len(points)
        for low in range(start, n, _ROWS):
            high = min(n, low + _ROWS)
            self.matrix.block(points[low:high], points[:high], K[low:high])
            self._has_infinite |= not is_finite(K[low:high], high)
            mirror(K, low, high)


class WorkingSetReuse:
    """Hands the working set of one program to the next over the same points: its kernel values are not computed again.

    Give the same object to several calls of `decompose` or `solve_dual`, one after another.

    Attributes
    ----------
    working : the last working set, None before the first run and after an interrupt.
    """

    def __init__(self, working: WorkingSet | None = None):
        self.working = working

    def take(self, qp: QuadraticProgram, matrix: KernelMatrix, parameters: Parameters = DEFAULTS) -> WorkingSet | None:
        """The working set, ready for another program over the same matrix; None if there is none that suits it."""
        working = self.working
        if working is None or working.matrix is not matrix or not working.adopt(qp):
            return None
        working.parameters = parameters
        return working


def padded(n: int) -> int:
    """The least multiple of the block of the vectorised loops that is at least n."""
    from symsvm.solvers.decomposition.smo import BLOCK

    return -(-n // BLOCK) * BLOCK
