"""Projections onto the feasible set of the dual: the box, the hyperplane, and both at once.

The paper's step projects onto the hyperplane with `P` and then onto the box with `Pi` (Eq. 25, 26); two projections in
turn are not the projection onto the intersection. `box_section` is.
"""

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import disconnected_grad

from symsvm._lib.validation import as_float

__all__ = ["P", "Pi", "box_section", "projector"]


def Pi(v, upper, lower=0.0):
    """Project onto the box lower <= p <= upper, coordinate by coordinate (Eq. 22, 26).

    Pi(v)_i = upper_i if v_i > upper_i, lower_i if v_i < lower_i, v_i otherwise: the p in the box nearest to v.

    >>> Pi(pt.constant([-1.0, 0.5, 3.0]), 2.0).eval().tolist()
    [0.0, 0.5, 2.0]
    """
    v = as_float(v)
    upper, lower = _like(upper, v), _like(lower, v)
    return pt.switch(v > upper, upper, pt.switch(v < lower, lower, v))


def P(v, y, c=0.0):
    """Project onto the hyperplane y.p = c (Eq. 24, 26).

    P(v) = v - (y.v - c) / (y.y) y: the p on the hyperplane nearest to v.

    >>> P(pt.constant([1.0, 0.0]), pt.constant([1.0, -1.0])).eval().tolist()
    [0.5, 0.5]
    """
    v, y = as_float(v), as_float(y)
    return v - ((y * v).sum() - _like(c, v)) / (y * y).sum() * y


def projector(A):
    """The orthogonal projector onto the null space of A, 1 - A'(AA')^-1 A (Eq. 23); `P` is its case of one row.

    Parameters
    ----------
    A : matrix (k, m) of full row rank; A p = 0 is the constraint.

    >>> projector(pt.constant([[1.0, -1.0]])).eval().tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    A = as_float(A)
    return pt.eye(A.shape[1], dtype=A.dtype) - A.T @ pt.linalg.solve(A @ A.T, A, assume_a="sym")


def box_section(v, y, C, scale=1.0, *, lower=0.0, c=0.0):
    """Project exactly onto the box and the hyperplane at once, in a metric of one's own.

        argmin_p  sum_i (p_i - v_i)^2 / scale_i    subject to    lower <= p <= C,   y.p = c

    The minimiser is p(t) = Pi(v - t scale y) for a multiplier t, and phi(t) = y.p(t) - c is piecewise linear and never
    rises, so its root lies between two neighbouring ones of the 2m values of t at which a coordinate enters or leaves a
    bound. They are sorted, phi is summed along them, and t then follows in closed form from the coordinates that are
    free: exact, O(m log m), and differentiable wherever no coordinate sits on a kink.

    Parameters
    ----------
    v : vector (m,), the point to project.
    y : vector (m,), the normal of the hyperplane (the labels of the dual); zeros are allowed.
    C, lower : upper and lower bounds, scalar or (m,), infinite ones allowed.
    scale : the step of each coordinate, scalar or (m,), positive; 1 is the Euclidean metric.
    c : the value of y.p. There must be a point in the box that attains it (p = 0 does for c = 0).

    >>> p = box_section(pt.constant([3.0, 0.5, 1.0]), pt.constant([1.0, -1.0, -1.0]), 2.0)
    >>> p.eval().tolist()
    [2.0, 0.75, 1.25]
    """
    v = as_float(v)
    y, upper, lower, scale = (_full(a, v) for a in (y, C, lower, scale))
    c = _like(c, v)
    # No gradient through the search: it only says which coordinates are free, and that is locally constant.
    t = _multiplier(*map(disconnected_grad, (v, y, upper, lower, scale, c)))
    # Rounding in the sums of the search may end it one breakpoint off: two steps of Newton's method, each with phi
    # summed afresh at the point, take it the rest of the way; the last carries the gradient.
    t = disconnected_grad(_newton(t, v, y, upper, lower, scale, c))
    t = _newton(t, v, y, upper, lower, scale, c)
    p = Pi(v - t * scale * y, upper, lower)
    # p is a difference, known to eps |v|; where |v| is far larger than p, what is left of y.p - c is taken out of p.
    free = (p > lower) & (p < upper) & pt.neq(y, 0)
    slope = pt.switch(free, scale * y * y, 0.0).sum()
    rest = disconnected_grad(((y * p).sum() - c) / pt.switch(slope > 0, slope, 1.0))
    return Pi(pt.switch(free, p - rest * scale * y, p), upper, lower)


def _newton(t, v, y, upper, lower, scale, c):
    """The root of the linear piece of phi at t."""
    p = v - t * scale * y
    free = (p > lower) & (p < upper) & pt.neq(y, 0)
    slope = pt.switch(free, scale * y * y, 0.0).sum()
    rest = pt.switch(free, y * v, y * Pi(p, upper, lower)).sum() - c
    return pt.switch(slope > 0, rest / pt.switch(slope > 0, slope, 1.0), t)


def _multiplier(v, y, upper, lower, scale, c):
    """A root t of phi(t) = y.Pi(v - t scale y) - c by sorting its breakpoints."""
    still = pt.eq(y, 0)
    w = pt.switch(still, 1.0, scale * y)
    # Coordinate i is free for t in (enter, leave); y p falls from `start` to `end` as t rises.
    at_upper, at_lower = (v - upper) / w, (v - lower) / w
    enter, leave = pt.minimum(at_upper, at_lower), pt.maximum(at_upper, at_lower)
    start, end = pt.switch(y > 0, y * upper, y * lower), pt.switch(y > 0, y * lower, y * upper)
    slope, level = scale * y * y, y * v
    # To the left of all finite breakpoints, phi(t) = level0 - t slope0.
    free0 = pt.isinf(enter) & ~still
    level0 = pt.switch(still, y * v, pt.switch(free0, level, start)).sum() - c
    slope0 = pt.switch(free0, slope, 0.0).sum()
    enters, leaves = ~(pt.isinf(enter) | still), ~(pt.isinf(leave) | still)
    t = pt.concatenate([pt.switch(enters, enter, np.inf), pt.switch(leaves, leave, np.inf)])
    levels = pt.concatenate([pt.switch(enters, level - start, 0.0), pt.switch(leaves, end - level, 0.0)])
    slopes = pt.concatenate([pt.switch(enters, slope, 0.0), pt.switch(leaves, -slope, 0.0)])
    order = pt.argsort(t)
    t = t[order]
    # What rounding may do to phi and to its slope.
    eps = 8 * np.finfo(v.dtype).eps
    tol, tol_slope = eps * (pt.abs(level0) + pt.abs(levels).sum()), eps * slope.sum()
    levels = pt.concatenate([level0[None], level0 + pt.cumsum(levels[order])])
    slopes = pt.concatenate([slope0[None], slope0 + pt.cumsum(slopes[order])])
    finite = ~pt.isinf(t)
    phi = levels[:-1] - pt.switch(finite, t, 0.0) * slopes[:-1]
    infinite = pt.constant(np.full(1, np.inf, dtype=v.dtype))
    ends = pt.concatenate([-infinite, t, infinite])

    def root(k, flat):
        """The root on the piece after k breakpoints, `flat` where phi does not fall there."""
        falls = slopes[k] > tol_slope
        return pt.clip(pt.switch(falls, levels[k] / pt.switch(falls, slopes[k], 1.0), flat), ends[k], ends[k + 1])

    # phi may vanish on a whole interval, where no coordinate is free; its middle is away from every kink.
    left = root((finite & (phi > tol)).sum(), -np.inf)
    right = root((finite & (phi >= -tol)).sum(), np.inf)
    left, right = (
        pt.switch(pt.isinf(left), pt.switch(pt.isinf(right), 0.0, right - pt.abs(right) - 1), left),
        pt.switch(pt.isinf(right), pt.switch(pt.isinf(left), 0.0, left + pt.abs(left) + 1), right),
    )
    return (left + right) / 2


def _like(value, v):
    return pt.as_tensor(value).astype(v.dtype)


def _full(value, v):
    value = _like(value, v)
    return value if value.ndim else pt.full_like(v, value)
