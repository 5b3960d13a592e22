"""A linear classifier over a stream of points: each point is used for one step and not stored.

With the hinge loss and a stream of points the problem is, u = (w, b) over the features and a constant s, ::

    minimise F(u) = lambda / 2 |u|^2 + the mean of max(0, 1 - y x.u),    lambda = 1 / (C N)

which for N points is the primal of the support vector machine, divided by C N. A point gives an unbiased estimate of a
subgradient of F, lambda u - y x if y x.u < 1 and lambda u otherwise. F is strongly convex, which gives the step size::

    u_t+1 = u_t - alpha_t g_t,    alpha_t = 2 / (lambda (t + 1)),    result: the average of u_t with the weights t

The expected F falls to within 2 G^2 / (lambda (t + 1)) of its minimum, G = the largest |g|. Multiplied by t (t + 1),
the recursion is a sum: u_t+1 = 2 / (lambda t (t + 1)) V_t+1 with V_t+1 = V_t + t y x for a point within the margin.
Likewise, with H_t = 1 + 1/2 + ... + 1/t and U_t+1 = U_t + t H_t-1 y x, the average of u_1, ..., u_t+1 is ::

    4 / (lambda (t + 1) (t + 2)) (H_t V_t+1 - U_t+1)

so that the cost of a point is proportional to the number of its features that are not 0.

References: S. Shalev-Shwartz, Y. Singer, N. Srebro, Pegasos: primal estimated sub-gradient solver for SVM, ICML 2007;
S. Lacoste-Julien, M. Schmidt, F. Bach, A simpler approach to obtaining an O(1/t) convergence rate for the projected
stochastic subgradient method, 2012.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import numpy as np

from symsvm._lib.code_cache import njit
from symsvm.linear.rows import LOOP, Rows, add, dot

if TYPE_CHECKING:
    from symsvm._lib.types import Array

__all__ = ["Stream"]


@njit(**LOOP)
def _take_steps(arrays, s, order, signs, weights, V, U, t, H, factor):
    """Take a step for each point of `order`, after t points with H = H_t; return the next t and H."""
    last = len(V) - 1
    for i in order:
        t += 1  # the number of this step; H is that of the steps before
        value = dot(arrays, i, V) + s * V[last]
        scale = factor / (t * (t - 1.0)) if t > 1 else 0.0
        if weights[i] > 0 and signs[i] * value * scale < 1:
            a = t * weights[i] * signs[i]
            add(arrays, i, a, V)
            add(arrays, i, a * H, U)
            V[last] += a * s
            U[last] += a * H * s
        H += 1.0 / t
    return t, H


class Stream:
    """Two classes of a stream; the module's docstring states the method.

    Parameters
    ----------
    d : int
        The number of features.
    lam : float
        The regularisation lambda = 1 / (C N).
    u : ndarray, optional
        The first (w, b), 0 by default.
    t : int
        The number of points that u is taken to come from.

    Examples
    --------
    >>> from symsvm.linear.rows import Rows
    >>> stream = Stream(1, lam=0.1)
    >>> rows, signs = Rows(np.array([[-1.0], [0.5], [2.0]]), 1.0), np.array([-1.0, 1.0, 1.0])
    >>> for _ in range(3000):
    ...     stream.see(rows, signs)
    >>> stream.t, stream.u.round(1).tolist()
    (9000, [1.3, 0.3])
    """

    def __init__(self, d: int, lam: float, u: Array | None = None, t: int = 0) -> None:
        self.lam, self.t, self.H = float(lam), int(t), float(np.sum(1 / np.arange(1.0, t + 1)))
        u = np.zeros(d + 1) if u is None else np.asarray(u, dtype="float64")
        self.V = lam * t * (t + 1) / 2 * u  # the last point and the average are both u
        self.U = self.H * self.V - lam * (t + 1) * (t + 2) / 4 * u

    def see(self, rows: Rows, signs: Array, weights: Array | None = None, order: Array | None = None) -> None:
        """Take one step for each point.

        Parameters
        ----------
        rows : Rows
            The points, with the constant feature.
        signs : ndarray
            Their labels, -1 or +1.
        weights : ndarray, optional
            The weights of their losses, 1 by default.
        order : ndarray, optional
            The indices of the points in the order of the steps.
        """
        weights = np.ones(rows.n) if weights is None else weights
        order = np.arange(rows.n) if order is None else order
        state = self.V, self.U, self.t, self.H, 2 / self.lam
        self.t, self.H = _take_steps(rows.arrays, float(rows.s), order, signs, weights, *state)

    def copy(self) -> Stream:
        """Copy the stream; neither of the two changes the other.

        Returns
        -------
        Stream
            A stream that continues from the same point.
        """
        other = copy.copy(self)
        other.V, other.U = self.V.copy(), self.U.copy()
        return other

    @property
    def u(self) -> Array:
        """(w, b): the average, the weight of the constant feature last."""
        return 4 / (self.lam * (self.t + 1) * (self.t + 2)) * (self.H * self.V - self.U)
