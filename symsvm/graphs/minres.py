"""minres: linear systems with a symmetric positive semi-definite matrix, from its products, as a graph."""

import pytensor.tensor as pt
from pytensor.scan import scan

__all__ = ["minres"]


def minres(product, b, steps, tol=1e-8):
    """The x with the least |b - A x| among b, A b, ..., A^(steps - 1) b and what they span (Eq. 002:1.30).

    For a semi-definite A the minimal residual method is that of the conjugate residuals, with one product a step,

        x += a p,   r -= a A p,   a = r.Ar / |A p|^2        p = r + c p,   c = r.Ar / (r.Ar of the step before)

    It rests where |A r| <= tol |A b|: r is then as good as orthogonal to the range of A, and no x makes it smaller.

    Parameters
    ----------
    product : a function of graphs, v -> A v.
    b : vector.
    steps : the number of steps, which is fixed, so that every backend takes it.

    >>> A, b = pt.constant([[2.0, 1.0], [1.0, 3.0]]), pt.constant([4.0, 7.0])
    >>> minres(lambda v: A @ v, b, 2).eval(mode="FAST_COMPILE").round(6).tolist()
    [1.0, 2.0]
    """
    Ab = product(b)
    rest = tol**2 * (Ab * Ab).sum()

    def step(x, r, Ar, p, Ap, rest):
        goes = (Ar * Ar).sum() > rest
        slope = (r * Ar).sum()
        a = pt.switch(goes, slope / _positive((Ap * Ap).sum()), 0.0)
        x, r = x + a * p, r - a * Ap
        Ar = product(r)
        c = pt.switch(goes, (r * Ar).sum() / _positive(slope), 0.0)
        return x, r, Ar, r + c * p, Ar + c * Ap

    outputs = scan(
        step,
        outputs_info=[pt.zeros_like(b), b, Ab, b, Ab],
        non_sequences=[rest],
        n_steps=steps,
        return_updates=False,
    )
    return outputs[0][-1]


def _positive(value):
    """The value, or 1 where it is not positive and nothing is divided."""
    return pt.switch(value > 0, value, 1.0)
