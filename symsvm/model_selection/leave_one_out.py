"""Leave-one-out decision values of a solved problem by the span of its support vectors, and their derivatives.

Leave out point i, and let the free variables F stay free and those at bounds B stay there. The free ones then change by
the system of the adjoint, with N = M^-1, M = [A E; E' 0], A = K_FF + ridge, E the equality (1 for a free variable)::

    i free            f_i = -p_i - z_i / N_ii
    i at its bound    f_i = (K beta)_i + b - z_i S_i,    S_i = K_ii - k_i'N k_i,    k_i = (K_Fi, 1)
    z_i = 0           f_i = (K beta)_i + b

1 / N_ii and S_i are squared distances of Phi(x_i) from the span of the others (Vapnik and Chapelle, 2000). The values
are those of a fit without the point wherever leaving it out moves no variable to or from a bound. With g = dL/df,
a_i = g_i z_i, T = N k_B, and g0 = g but 0 where i is free::

    dL/dz_F = -g / N_ii        dL/dz_B = -g S        dL/dp_F = -g        and those of f = K beta + b with g0
    dL/dK   = -N_F diag(a / N_ii^2) N_F' - T_F diag(a_B) T_F'   on F x F
              2 T_F diag(a_B)   on F x B        -a_B   on the diagonal of B
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import inv

from symsvm._lib.blas import SingleThreadedBlas

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.model_selection.cached_source import FoldProblem

__all__ = ["LeaveOneOut"]

# Added to the diagonal of K_FF, relative to its largest entry: points that are there twice make it singular.
_RIDGE = 1e-10


class LeaveOneOut:
    """The leave-one-out decision values of one problem.

    Parameters
    ----------
    problem : FoldProblem
        The problem, with its solution.
    matrix : KernelMatrix
        The matrix between its points.

    Attributes
    ----------
    f : array of shape (m,)
        The decision value of each point, without it.
    """

    def __init__(self, problem: FoldProblem, matrix: Any) -> None:
        program, z, b = problem.program, problem.solution.z, problem.solution.b
        assert z is not None
        self._program, self._z = program, z
        free = (z > program.lower) & (z < program.upper)
        self._F, self._B = np.flatnonzero(free), np.flatnonzero(~free & (z != 0))
        F, B, point = self._F, self._B, program.point
        f = np.zeros(program.m)
        beta = program.weights(z)
        support = np.flatnonzero(beta)
        with SingleThreadedBlas():
            matrix.product(beta[support], None, support, f, exact=True)
            f += 0.0 if b is None else float(np.mean(b))
            n, has_b = len(F), int(len(program.total) > 0 and len(F) > 0)
            M = np.zeros((n + has_b, n + has_b))
            if n:
                A = np.empty((n, n))
                matrix.block(point[F], point[F], A)
                M[:n, :n] = A
                diagonal = np.arange(n)
                M[diagonal, diagonal] += program.diagonal[F] + _RIDGE * np.abs(np.diagonal(A)).max()
            M[n:, :n] = M[:n, n:] = 1.0
            self._N = inv(M, check_finite=False) if n else M
            k = np.ones((n + has_b, len(B)))
            if n and len(B):
                block = np.empty((n, len(B)))
                matrix.block(point[F], point[B], block)
                k[:n] = block
            self._T = self._N @ k
            self._S = matrix.diagonal(point[B]) - np.einsum("ji,ji->i", k, self._T)
        self._span = np.diagonal(self._N)[:n].copy()
        f[point[F]] = -program.p[F] - z[F] / self._span
        f[point[B]] -= z[B] * self._S
        self.f = f

    def pullback(self, g: Array) -> tuple[Array, Array, Array, Array]:
        """Return from g = dL/df: g0, the further gradients by z and by p, and D, the one by K at fixed z."""
        program, F, B, point = self._program, self._F, self._B, self._program.point
        n = len(F)
        g0, by_z, by_p = g.copy(), np.zeros(program.n), np.zeros(program.n)
        g0[point[F]] = 0.0
        by_z[F], by_p[F] = -g[point[F]] / self._span, -g[point[F]]
        by_z[B] = -g[point[B]] * self._S
        a_F, a_B = g[point[F]] * self._z[F] / self._span**2, g[point[B]] * self._z[B]
        D = np.zeros((program.m, program.m))
        with SingleThreadedBlas():
            N, T = self._N[:n, :n], self._T[:n]
            D[np.ix_(point[F], point[F])] = -(N * a_F) @ N - (T * a_B) @ T.T
            D[np.ix_(point[F], point[B])] = 2 * T * a_B
        D[point[B], point[B]] -= a_B
        return g0, by_z, by_p, D
