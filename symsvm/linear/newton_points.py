"""What Newton's method asks of the points: sums over them, and vectors with one entry for each, which it need not see.

`primal_newton` uses these methods and nothing else of the points, so that they may be anywhere; `NewtonPoints` has them
in memory. With f = [X s] u, r = t - f and the losses L::

    evaluate(u)    sum L and [X s]'z, z = L'(r); r, z and psi = L''(r) are kept for the methods below
    snapshot()     z and f, or what stands for them
    normal()       [X s]' Psi [X s]
    curvature()    its diagonal
    multiply(p)    its product with p
    advance(p)     keeps q = [X s] p; slopes(0)
    slopes(a)      sum_i z_i(r - a q) q_i and sum_i psi_i(r - a q) q_i^2
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from symsvm._lib.code_cache import njit
from symsvm.linear.rows import LOOP, add, dot

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.linear.linear_problem import LinearProblem

__all__ = ["NewtonPoints", "directional_derivatives", "loss_derivatives"]


@njit(**LOOP)
def loss_derivatives(r, z, psi, D, lower, upper, epsilon):
    """Set z_i = argmax h_i = L'(r_i) and psi_i = L''(r_i), and return sum L; for losses with D > 0."""
    total = 0.0
    for i in range(len(r)):
        z[i] = psi[i] = 0.0
        if lower[i] < upper[i]:
            x = r[i] - epsilon if r[i] > epsilon else (r[i] + epsilon if r[i] < -epsilon else 0.0)
            best = min(max(x / D[i], lower[i]), upper[i])
            if best != 0 and lower[i] < best < upper[i]:
                z[i], psi[i] = best, 1 / D[i]
                total += 0.5 * best * x
            elif best != 0:
                z[i] = best
                total += best * (x - 0.5 * D[i] * best)
    return total


@njit(**LOOP)
def _multiply_hessian(arrays, s, psi, p, out):
    """Add [X s]' Psi [X s] p to out, in one pass over the rows with a loss."""
    d = len(p) - 1
    for i in range(len(psi)):
        if psi[i] != 0:
            a = psi[i] * (dot(arrays, i, p) + s * p[d])
            add(arrays, i, a, out)
            out[d] += s * a


@njit(**LOOP)
def directional_derivatives(r, q, a, D, lower, upper, epsilon):
    """Return sum_i z_i(r - a q) q_i and sum_i psi_i q_i^2: minus the first, and the second derivative of the loss."""
    first = second = 0.0
    for i in range(len(r)):
        if lower[i] < upper[i]:
            x = r[i] - a * q[i]
            x = x - epsilon if x > epsilon else (x + epsilon if x < -epsilon else 0.0)
            z = min(max(x / D[i], lower[i]), upper[i])
            if z != 0:
                first += z * q[i]
                if lower[i] < z < upper[i]:
                    second += q[i] * q[i] / D[i]
    return first, second


class NewtonPoints:
    """The points of a `LinearProblem` with a squared loss, in memory.

    Parameters
    ----------
    problem : LinearProblem
        The problem.

    Attributes
    ----------
    z, f : ndarray
        z = L'(r) and f = [X s] u at the last u.
    """

    def __init__(self, problem: LinearProblem) -> None:
        self._rows, self._t, self._loss = problem.rows, problem.t, problem.loss_parameters
        n = problem.rows.n
        self.z, self.f = np.empty(n), np.empty(n)
        self._r, self._q, self._psi = np.empty(n), np.empty(n), np.empty(n)

    def first_gradient(self) -> Array:
        """Return [X s]'z at u = 0.

        Returns
        -------
        ndarray
            The vector (d + 1,).
        """
        loss_derivatives(self._t, self.z, self._psi, *self._loss)
        return self._rows.transposed(self.z)

    def evaluate(self, u: Array) -> tuple[float, Array]:
        """Return sum L and [X s]'z at u.

        Parameters
        ----------
        u : ndarray
            The weights.

        Returns
        -------
        loss : float
            The sum of the losses.
        v : ndarray
            The vector (d + 1,).
        """
        self.f = self._rows.product(u)
        self._r = self._t - self.f
        loss = loss_derivatives(self._r, self.z, self._psi, *self._loss)
        return loss, self._rows.transposed(self.z)

    def snapshot(self) -> tuple[Array, Array]:
        """Return z and f at the last u.

        Returns
        -------
        tuple of ndarray
            The vectors (n,).
        """
        return self.z.copy(), self.f

    def normal(self) -> Array:
        """Return [X s]' Psi [X s].

        Returns
        -------
        ndarray
            The matrix (d + 1, d + 1).
        """
        return self._rows.normal(self._psi)

    def curvature(self) -> Array:
        """Return the diagonal of `normal`.

        Returns
        -------
        ndarray
            The diagonal (d + 1,).
        """
        return self._rows.curvature(self._psi)

    def multiply(self, p: Array, out: Array) -> Array:
        """Add the product of `normal` and p to a vector.

        Parameters
        ----------
        p, out : ndarray
            The vectors (d + 1,).

        Returns
        -------
        ndarray
            `out`.
        """
        _multiply_hessian(self._rows.arrays, self._rows.s, self._psi, p, out)
        return out

    def advance(self, p: Array) -> tuple[float, float]:
        """Compute q = [X s] p for `slopes`.

        Parameters
        ----------
        p : ndarray
            The direction.

        Returns
        -------
        tuple of float
            The slopes at 0.
        """
        self._q = self._rows.product(p)
        return self.slopes(0.0)

    def slopes(self, a: float) -> tuple[float, float]:
        """Return the first and second derivative of minus the loss, and of the loss, along u + a p.

        Parameters
        ----------
        a : float
            The step.

        Returns
        -------
        tuple of float
            sum z q and sum psi q^2.
        """
        return directional_derivatives(self._r, self._q, a, *self._loss)
