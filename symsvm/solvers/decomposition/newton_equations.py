"""Newton's equations over a kernel matrix: conjugate gradients with a low-rank preconditioner.

For the free variables and E = D + phi'' they are, with B the columns of the equalities,

    (K + E) x + B mu = r,    B' x = 0.

The preconditioner is M = L L' + E, with L L' the Nystroem approximation of K by some of its columns. By Woodbury's
identity, with S = 1 / E,

    M^-1 = S - S L (1 + L' S L)^-1 L' S.

Of few variables M is K + E itself. Projected by the equalities, M^-1 - M^-1 B (B' M^-1 B)^-1 B' M^-1 keeps B' x = 0.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.linalg.blas import dsymv, dsyrk, ssymv, ssyrk  # pyright: ignore[reportAttributeAccessIssue]

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.evaluation.kernel_matrix import KernelMatrix
    from symsvm.objectives import QuadraticProgram
    from symsvm.solvers.decomposition.parameters import Parameters

__all__ = ["KernelProducts", "NewtonEquations"]

# Rows that are computed together.
_ROWS = 1024
# A ridge on the matrix between the landmarks, relative to its diagonal: float32 has no smaller eigenvalues.
_RIDGE = 1e-5
# Points in a sample of K_ii; one of so many landmarks is enough where E is large.
_SAMPLE, _FEWER = 64, 4
# Products S_i K_ii, summed over the points, from which on float32 has too few digits for 1 + L' S L.
_FLOAT32_SUM = 1e6
# The factor of a change of S up to which a preconditioner serves another system.
_DRIFT = 2.0


class KernelProducts:
    """Products K q for many q: with a triangle of K in memory where it fits, else by tiles."""

    def __init__(self, matrix: KernelMatrix, memory: int, whole: int):
        self.matrix, self._memory = matrix, memory
        # Of few points all is float64.
        self.is_exact = matrix.is_exact or (matrix.m <= whole and self._fits("float64"))
        self._K: Array | None = None

    def _fits(self, dtype: str) -> bool:
        return np.dtype(dtype).itemsize * self.matrix.m**2 <= self._memory

    def raise_precision(self) -> bool:
        """Compute in float64 from now on; return False if that is so already."""
        if self.is_exact:
            return False
        self.is_exact, self._K = True, None
        return True

    def __call__(self, q: Array) -> Array:
        """The product K q, (m,)."""
        dtype = "float64" if self.is_exact else "float32"
        if not q.any():
            return np.zeros(len(q))
        if self.matrix.is_exact or not self._fits(dtype):
            return self._tiled(q, self.is_exact)
        if self._K is None:
            self._K = self._triangle(dtype)
        # The lower triangle by rows is the upper triangle of the transpose, by columns as BLAS has it.
        multiply = dsymv if self.is_exact else ssymv
        scale = float(np.abs(q).max())  # float32 has a range that q may exceed
        product = multiply(1.0, self._K.T, (q / scale).astype(dtype), lower=0)
        return scale * product.astype("float64")

    def exact(self, q: Array) -> Array:
        """The product K q in float64, (m,)."""
        return self._tiled(q, True)

    def _tiled(self, q: Array, exact: bool) -> Array:
        out, columns = np.zeros(len(q)), np.flatnonzero(q)
        if len(columns):
            self.matrix.product(q[columns], None, columns, out, exact=exact)
        return out

    def _triangle(self, dtype: str) -> Array:
        """The lower triangle of K."""
        m = self.matrix.m
        K = np.empty((m, m), dtype)
        for low in range(0, m, _ROWS):
            rows = np.arange(low, min(m, low + _ROWS))
            self.matrix.block(rows, np.arange(rows[-1] + 1), K[rows[0] : rows[-1] + 1])
        return K


class NewtonEquations:
    """The system (K + E) x + B mu = r for one program and many E.

    Attributes
    ----------
    size : the mean of K_ii, of some points.
    """

    def __init__(self, qp: QuadraticProgram, products: KernelProducts, parameters: Parameters, seed: int):
        self.qp, self.products, self._parameters = qp, products, parameters
        self._landmarks = np.random.default_rng(seed).permutation(qp.m)
        self._L = np.zeros((qp.m, 0), "float32")
        some = np.unique(np.linspace(0, qp.m - 1, _SAMPLE).astype("int64"))
        K = np.empty((len(some), len(some)))
        products.matrix.block(some, some, K)
        self.size = float(np.abs(np.diagonal(K)).mean())
        self._preconditioner: _Dense | _LowRank | None = None

    def solve(
        self, r: Array, S: Array, Kx: Array, x: Array, goal: float, level: float, deadline: float
    ) -> tuple[Array, Array, bool]:
        """Take steps of conjugate gradients from x, which has K x = Kx by point, on the variables with S > 0.

        Parameters
        ----------
        r : the right-hand side less (K + E) x, (n,).
        S : 1 / E, (n,); 0 for variables that are fixed.
        goal : the part of the residual to leave, in the norm of M^-1.
        level : the largest difference between two residuals, less mu, to leave; the first one met ends.
        deadline : a time of `time.perf_counter` that ends the steps.

        Returns x, K x by point, and whether K + E was positive along all steps.
        """
        qp, free = self.qp, np.flatnonzero(S > 0)
        point, E = qp.point[free], 1 / S[free]
        M = _Projected(self._precondition(S, free), qp.group[free], len(qp.total))
        x, Kx, r = x.copy(), Kx.copy(), r[free]
        g = M.solve(r)
        p, rho = g, float(r @ g)
        first = rho
        for _ in range(self._parameters.cg_steps):
            if not rho > goal**2 * first or M.spread(r) <= level or time.perf_counter() >= deadline:
                break
            Kp = self.products(np.bincount(point, p, qp.m))
            q = Kp[point] + E * p
            curvature = float(p @ q)
            if not curvature > 0:
                return x, Kx, False
            step = rho / curvature
            x[free] += step * p
            Kx += step * Kp
            r = r - step * q
            g = M.solve(r)
            rho, before = float(r @ g), rho
            p = g + (rho / before) * p
        return x, Kx, bool(np.isfinite(x).all() and np.isfinite(Kx).all())

    def _precondition(self, S: Array, free: Array) -> _Dense | _LowRank:
        """A preconditioner for these S, the last one where they have hardly changed."""
        last = self._preconditioner
        if last is not None and last.serves(S, free):
            return last
        if len(free) <= self._parameters.newton_dense:
            self._preconditioner = _Dense(self.qp, self.products.matrix, S, free)
        else:
            # Where E exceeds K_ii, few eigenvalues of K exceed E.
            few = float(S.max()) * self.size <= 1
            rank = min(self._parameters.landmarks // (_FEWER if few else 1), self.qp.m)
            if self._L.shape[1] < rank:
                self._L = self._nystroem(np.sort(self._landmarks[:rank]))
            self._preconditioner = _LowRank(self._L, self.qp.point[free], S, free)
        return self._preconditioner

    def _nystroem(self, R: Array) -> Array:
        """L with L L' = K[:, R] K[R, R]^-1 K[R, :] for the landmarks R, float32."""
        matrix = self.products.matrix
        K = np.empty((matrix.m, len(R)), "float32")
        for low in range(0, matrix.m, _ROWS):
            rows = np.arange(low, min(matrix.m, low + _ROWS))
            matrix.block(rows, R, K[rows[0] : rows[-1] + 1])
        if not np.isfinite(K).all():  # beyond the range of float32: M is E alone
            return np.zeros_like(K)
        between = K[R].astype("float64")
        between[np.diag_indices(len(R))] += _RIDGE * np.trace(between) / len(R)
        factor = _factor(between)
        return np.ascontiguousarray(solve_triangular(factor.astype("float32"), K.T, lower=True, check_finite=False).T)


class _Preconditioner:
    """What preconditioners share: the S and the variables that they were made for."""

    def __init__(self, S: Array, free: Array):
        self._free, self.S = free, S[free]

    def serves(self, S: Array, free: Array) -> bool:
        """Whether a system with these S is close."""
        if not np.array_equal(free, self._free):
            return False
        S = S[free]
        return bool((S <= _DRIFT * self.S).all() and (self.S <= _DRIFT * S).all())


class _Dense(_Preconditioner):
    """M = K + E, by its factor: with T = S^1/2, M^-1 = T (1 + T K T)^-1 T."""

    def __init__(self, qp: QuadraticProgram, matrix: KernelMatrix, S: Array, free: Array):
        super().__init__(S, free)
        points = qp.point[free]
        A = np.empty((len(free), len(free)))
        matrix.block(points, points, A)
        self._root = np.sqrt(self.S)
        A *= self._root[:, None] * self._root
        A[np.diag_indices(len(free))] += 1
        self._factor = _factor(A)

    def solve(self, r: Array) -> Array:
        """M^-1 r."""
        root = self._root if r.ndim == 1 else self._root[:, None]
        return root * cho_solve((self._factor, True), root * r, check_finite=False)


class _LowRank(_Preconditioner):
    """M = L L' + E, by Woodbury's identity."""

    def __init__(self, L: Array, point: Array, S: Array, free: Array):
        super().__init__(S, free)
        self._L, self._point = L, point
        by_point = np.bincount(point, self.S, len(L))
        dtype = "float32" if float(by_point @ np.einsum("ij,ij->i", L, L)) <= _FLOAT32_SUM else "float64"
        scaled = L * np.sqrt(by_point)[:, None].astype(dtype)
        # L' S L by its lower triangle: the transpose of L by rows is what BLAS has by columns.
        G = (ssyrk if dtype == "float32" else dsyrk)(1.0, scaled.T, lower=1).astype("float64")
        G[np.diag_indices(len(G))] += 1
        self._factor = _factor(G)

    def solve(self, r: Array) -> Array:
        """M^-1 r."""
        S = self.S if r.ndim == 1 else self.S[:, None]
        u = S * r
        columns = [np.bincount(self._point, column, len(self._L)) for column in np.atleast_2d(u.T)]
        by_point = columns[0] if r.ndim == 1 else np.stack(columns, axis=1)
        scale = float(np.abs(by_point).max()) or 1.0
        inner = (self._L.T @ (by_point / scale).astype("float32")).astype("float64")
        inner = cho_solve((self._factor, True), inner, check_finite=False)
        size = float(np.abs(inner).max()) or 1.0
        outer = (self._L @ (inner / size).astype("float32")).astype("float64")
        return u - S * (scale * size * outer)[self._point]


class _Projected:
    """The preconditioner M with the equalities: M^-1 - M^-1 B (B' M^-1 B)^-1 B' M^-1."""

    def __init__(self, M: _Dense | _LowRank, group: Array, groups: int):
        B = (group[:, None] == np.arange(groups)).astype("float64")
        self._M, self._B = M, B[:, B.any(axis=0)]
        if self._B.shape[1]:
            self._MB = M.solve(self._B)
            self._inverse = np.linalg.inv(self._B.T @ self._MB)
        self._S = M.S

    def solve(self, r: Array) -> Array:
        """The projected M^-1 r."""
        u = self._M.solve(r)
        return u - self._MB @ (self._inverse @ (self._B.T @ u)) if self._B.shape[1] else u

    def spread(self, r: Array) -> float:
        """The largest difference between residuals of a group, twice the largest one without equalities."""
        if not self._B.shape[1]:
            return 2 * float(np.abs(r).max(initial=0.0))
        return max(float(np.ptp(r[column > 0])) for column in self._B.T)


def _factor(A: Array) -> Array:
    """The lower Cholesky factor of A, with a ridge where it needs one."""
    ridge, diagonal = 0.0, np.diagonal(A).copy()
    while True:
        try:
            return cholesky(A, lower=True, check_finite=False)
        except LinAlgError:
            ridge = max(10 * ridge, 1e-12 * float(np.mean(diagonal)))
            if not ridge < np.inf:
                raise
            A[np.diag_indices(len(A))] = diagonal + ridge
