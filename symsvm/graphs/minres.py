"""The minimal residual method for a symmetric positive semi-definite linear system, as a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytensor.tensor as pt
from pytensor.scan.basic import scan

if TYPE_CHECKING:
    from collections.abc import Callable

    from symsvm._lib.types import Graph

__all__ = ["minres"]


def minres(product: Callable[[Graph], Graph], b: Graph, steps: int, tol: float = 1e-8) -> Graph:
    """The x that minimises |b - A x| over the span of b, A b, ..., A^(steps - 1) b (Eq. 002:1.30).

    For a semi-definite A this is the method of conjugate residuals, with one product per step::

        x += a p,   r -= a A p,   a = r.Ar / |A p|^2        p = r + c p,   c = r.Ar / (r.Ar of the previous step)

    Once |A r| <= tol |A b|, x no longer changes: r is then orthogonal to the range of A up to the tolerance, and no x
    has a smaller residual.

    Parameters
    ----------
    product : callable
        The function v -> A v, of graphs.
    b : graph
        A vector.
    steps : int
        The number of steps. It is fixed, so that every backend can compile the loop.
    tol : float
        The tolerance.

    Returns
    -------
    graph
        The vector x.

    Examples
    --------
    >>> A, b = pt.constant([[2.0, 1.0], [1.0, 3.0]]), pt.constant([4.0, 7.0])
    >>> minres(lambda v: A @ v, b, 2).eval(mode="FAST_COMPILE").round(6).tolist()
    [1.0, 2.0]
    """
    Ab = product(b)
    limit = tol**2 * (Ab * Ab).sum()

    def step(x, r, Ar, p, Ap, limit):
        is_running = (Ar * Ar).sum() > limit
        slope = (r * Ar).sum()
        a = pt.switch(is_running, slope / _positive((Ap * Ap).sum()), 0.0)
        x, r = x + a * p, r - a * Ap
        Ar = product(r)
        c = pt.switch(is_running, (r * Ar).sum() / _positive(slope), 0.0)
        return x, r, Ar, r + c * p, Ar + c * Ap

    outputs = scan(
        step,
        outputs_info=[pt.zeros_like(b), b, Ab, b, Ab],
        non_sequences=[limit],
        n_steps=steps,
        return_updates=False,
    )
    return outputs[0][-1]


def _positive(value):
    """Return the value, or 1 where it is not positive and the quotient is not used."""
    return pt.switch(value > 0, value, 1.0)
