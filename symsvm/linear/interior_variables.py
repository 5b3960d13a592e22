"""What the interior-point method asks of the points: its variables, of which there are one or two for each point.

`interior_point` uses these methods and nothing else of the points, so that they may be anywhere; `InteriorVariables`
has them in memory. The docstring of `interior_point` states the equations; h = C - a.

::

    residuals()            the residuals; sum a lam + h nu, and [X s]'z of z = sum_k sigma_k a_k
    normal()               [X s]' Psi [X s]
    right_hand_side(mu)    [X s]' sum_k sigma e / Theta, for the centre mu
    direction(du, mu)      da, dlam and dnu; the longest step
    complementarity(l)     sum a lam + h nu after a step l
    take_step(l, u)        the step; z, None if it exceeds float64
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from symsvm._lib.code_cache import njit
from symsvm.linear.rows import LOOP, Rows

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.linear.linear_problem import LinearProblem

__all__ = ["InteriorVariables"]


def _gram_root(rows: Rows) -> Rows:
    """Return points of at most n features with the same inner products."""
    X = rows.X.astype("float64")
    K = (X @ X.T).toarray() if rows.sparse else X @ X.T
    values, vectors = np.linalg.eigh(K)
    positive = values > max(values[-1], 0.0) * 1e-15
    if not positive.any():
        positive[-1] = True
    return Rows(vectors[:, positive] * np.sqrt(np.maximum(values[positive], 0.0)), rows.s)


@njit(**LOOP)
def _residuals(f, sides, c, a, h, lam, nu, residual, inverse, psi, z):
    """Set residual = sigma f + c - lam + nu, inverse = 1 / Theta, psi and z; return sum a lam + h nu."""
    m, total = len(f), 0.0
    psi[:] = 0.0
    z[:] = 0.0
    for k in range(len(a)):
        i = k % m
        total += a[k] * lam[k] + h[k] * nu[k]
        residual[k] = sides[k] * f[i] + c[k] - lam[k] + nu[k]
        inverse[k] = a[k] * h[k] / (lam[k] * h[k] + nu[k] * a[k])
        psi[i] += inverse[k]
        z[i] += sides[k] * a[k]
    return total


@njit(**LOOP)
def _right_hand_side(sides, a, h, lam, nu, residual, inverse, da, dlam, dnu, centre, e, out):
    """Set e of the variables and out = sum_k sigma e / Theta of the points; da, dlam, dnu give the corrector."""
    m = len(out)
    out[:] = 0.0
    for k in range(len(a)):
        up, down = centre - da[k] * dlam[k], centre + da[k] * dnu[k]
        e[k] = -residual[k] + up / a[k] - lam[k] - down / h[k] + nu[k]
        out[k % m] += sides[k] * e[k] * inverse[k]


@njit(**LOOP)
def _direction(df, sides, a, h, lam, nu, inverse, e, da, dlam, dnu, centre):
    """Set da, dlam and dnu from df = [X s] du; return the longest step that keeps a, h, lam and nu positive."""
    m, length = len(df), np.inf
    for k in range(len(a)):
        up, down = centre - da[k] * dlam[k], centre + da[k] * dnu[k]
        x = (e[k] - sides[k] * df[k % m]) * inverse[k]
        y, w = (up - lam[k] * x) / a[k] - lam[k], (down + nu[k] * x) / h[k] - nu[k]
        da[k], dlam[k], dnu[k] = x, y, w
        if x < 0:
            length = min(length, -a[k] / x)
        elif x > 0:
            length = min(length, h[k] / x)
        if y < 0:
            length = min(length, -lam[k] / y)
        if w < 0:
            length = min(length, -nu[k] / w)
    return length


@njit(**LOOP)
def _complementarity(a, h, lam, nu, da, dlam, dnu, length):
    """Return sum a lam + h nu after a step."""
    total = 0.0
    for k in range(len(a)):
        total += (a[k] + length * da[k]) * (lam[k] + length * dlam[k])
        total += (h[k] - length * da[k]) * (nu[k] + length * dnu[k])
    return total


@njit(**LOOP)
def _take_step(sides, C, unit, a, h, lam, nu, da, dlam, dnu, length, z):
    """Take a step, and set z with each a at a bound if it is nearer to it, as a share of C, than its slack is to 0."""
    m = len(z)
    z[:] = 0.0
    for k in range(len(a)):
        i = k % m
        a[k] += length * da[k]
        h[k] -= length * da[k]
        lam[k] += length * dlam[k]
        nu[k] += length * dnu[k]
        if a[k] * unit >= lam[k] * C[i]:
            z[i] += sides[k] * (C[i] if h[k] * unit < nu[k] * C[i] else min(a[k], C[i]))


class InteriorVariables:
    """The variables of a `LinearProblem` with a hinge or epsilon-insensitive loss, in memory.

    Parameters
    ----------
    problem : LinearProblem
        The problem.
    whole : bool
        Whether these are all points of the problem; if there are fewer than features, a root of XX' replaces X.

    Attributes
    ----------
    d : int
        The number of features.
    n_bounds : int
        The number of bounds of the variables.
    largest_cost : float
        The largest C_i.
    """

    def __init__(self, problem: LinearProblem, *, whole: bool = True) -> None:
        rows, self._unit, used = problem.rows, problem.unit, np.flatnonzero(problem.used)
        self._rows = _gram_root(rows) if whole and rows.d > rows.n else rows
        self.d, self._n = self._rows.d, rows.n
        t, self._C, m = problem.t[used], problem.C[used], len(used)
        self._used = None if m == rows.n else used
        self._sides = np.sign(t) if problem.classifies else np.repeat([1.0, -1.0], m)
        copies = 1 if problem.classifies else 2
        self._c = problem.epsilon - self._sides * np.tile(t, copies)
        self._a = 0.5 * np.tile(self._C, copies)
        self._h, self._f = self._a.copy(), np.zeros(m)
        self._lam, self._nu = np.maximum(self._c, 0.0) + self._unit, np.maximum(-self._c, 0.0) + self._unit
        k = len(self._a)
        self._residual, self._inverse, self._e = np.empty(k), np.empty(k), np.empty(k)
        self._step = np.empty(k), np.empty(k), np.empty(k)
        self._psi, self._sums, self._snapped = np.empty(m), np.empty(m), np.empty(m)
        self.n_bounds, self.largest_cost = 2 * k, float(self._C.max(initial=0.0))

    def _product(self, u: Array) -> Array:
        f = self._rows.product(u)
        return f if self._used is None else f[self._used]

    def _transposed(self, x: Array) -> Array:
        return self._rows.transposed(self._spread(x))

    def _spread(self, x: Array) -> Array:
        """A vector of the points with a cost as one of all points."""
        if self._used is None:
            return x
        full = np.zeros(self._n)
        full[self._used] = x
        return full

    @property
    def _variables(self) -> tuple[Array, Array, Array, Array]:
        return self._a, self._h, self._lam, self._nu

    def residuals(self) -> tuple[float, Array]:
        """Compute the residuals at the present point.

        Returns
        -------
        total : float
            sum a lam + h nu.
        v : ndarray
            [X s]'z (d + 1,).
        """
        for part in self._step:
            part[:] = 0.0
        rest = self._residual, self._inverse, self._psi, self._sums
        total = _residuals(self._f, self._sides, self._c, *self._variables, *rest)
        return total, self._transposed(self._sums)

    def normal(self) -> Array:
        """Return [X s]' Psi [X s].

        Returns
        -------
        ndarray
            The matrix (d + 1, d + 1).
        """
        return self._rows.normal(self._spread(self._psi))

    def right_hand_side(self, centre: float) -> Array:
        """Return [X s]' sum_k sigma e / Theta, with the corrector of the last direction.

        Parameters
        ----------
        centre : float
            The product a lam to aim at.

        Returns
        -------
        ndarray
            The vector (d + 1,).
        """
        rest = self._residual, self._inverse, *self._step, centre, self._e, self._sums
        _right_hand_side(self._sides, *self._variables, *rest)
        return self._transposed(self._sums)

    def direction(self, du: Array, centre: float) -> float:
        """Compute the direction of all variables.

        Parameters
        ----------
        du : ndarray
            The direction of the weights.
        centre : float
            That of `right_hand_side`.

        Returns
        -------
        float
            The longest step that keeps the variables positive.
        """
        rest = self._inverse, self._e, *self._step, centre
        return _direction(self._product(du), self._sides, *self._variables, *rest)

    def complementarity(self, length: float) -> float:
        """Return sum a lam + h nu after a step.

        Parameters
        ----------
        length : float
            The step.

        Returns
        -------
        float
            The sum.
        """
        return _complementarity(*self._variables, *self._step, length)

    def take_step(self, length: float, u: Array) -> Array | None:
        """Take a step.

        Parameters
        ----------
        length : float
            The step.
        u : ndarray
            The weights after it.

        Returns
        -------
        ndarray or None
            z, with variables near a bound set to it; None if a number exceeds float64.
        """
        _take_step(self._sides, self._C, self._unit, *self._variables, *self._step, length, self._snapped)
        self._f = self._product(u)
        if not (np.isfinite(self._f).all() and np.isfinite(self._snapped).all()):
            return None
        return self._snapped.copy() if self._used is None else self._spread(self._snapped)
