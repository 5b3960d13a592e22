"""Projections onto the feasible set of the dual: the box, the hyperplane, and both at once.

The paper's step projects onto the hyperplane with `P` and then onto the box with `Pi` (Eq. 25, 26). Two successive
projections are not the projection onto the intersection; `box_section` is.
"""

# PyTensor declares elementwise functions (pt.switch, ...) without a return type, pt.concatenate with a wrong one.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportIndexIssue=false
# pyright: reportOperatorIssue=false, reportOptionalOperand=false, reportReturnType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import disconnected_grad

from symsvm._lib.validation import as_float

if TYPE_CHECKING:
    from symsvm._lib.types import Graph

__all__ = ["P", "Pi", "box_section", "projector"]

_ROUNDING = 8  # rounding errors of a sum over breakpoints, in units of eps times the sum of absolute values


def Pi(v: Any, upper: Any, lower: Any = 0.0) -> Graph:
    """Project onto the box lower <= p <= upper, coordinate by coordinate (Eq. 22, 26).

    Pi(v)_i = upper_i if v_i > upper_i, lower_i if v_i < lower_i, v_i otherwise: the point of the box nearest to v.

    >>> Pi(pt.constant([-1.0, 0.5, 3.0]), 2.0).eval().tolist()
    [0.0, 0.5, 2.0]
    """
    v = as_float(v)
    upper, lower = _like(upper, v), _like(lower, v)
    return pt.switch(v > upper, upper, pt.switch(v < lower, lower, v))


def P(v: Any, y: Any, c: Any = 0.0) -> Graph:
    """Project onto the hyperplane y.p = c (Eq. 24, 26).

    P(v) = v - (y.v - c) / (y.y) y: the point of the hyperplane nearest to v.

    >>> P(pt.constant([1.0, 0.0]), pt.constant([1.0, -1.0])).eval().tolist()
    [0.5, 0.5]
    """
    v, y = as_float(v), as_float(y)
    return v - ((y * v).sum() - _like(c, v)) / (y * y).sum() * y


def projector(A: Any) -> Graph:
    """The orthogonal projector onto the null space of A, 1 - A'(AA')^-1 A (Eq. 23); `P` is its case of one row.

    Parameters
    ----------
    A : TensorVariable
        A matrix (k, m) of full row rank; A p = 0 is the constraint.

    Returns
    -------
    TensorVariable
        The projector (m, m).

    Examples
    --------
    >>> projector(pt.constant([[1.0, -1.0]])).eval().tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    A = as_float(A)
    return pt.eye(A.shape[1], dtype=A.dtype) - A.T @ pt.linalg.solve(A @ A.T, A, assume_a="sym")


def box_section(v: Any, y: Any, C: Any, scale: Any = 1.0, *, lower: Any = 0.0, c: Any = 0.0) -> Graph:
    """Project exactly onto the intersection of the box and the hyperplane, in a diagonal metric.

    ::

        argmin_p  sum_i (p_i - v_i)^2 / scale_i    subject to    lower <= p <= C,   y.p = c

    The minimiser is p(t) = Pi(v - t scale y) for a multiplier t. phi(t) = y.p(t) - c is piecewise linear and does not
    increase, so its root lies between two neighbours of the 2m breakpoints, the values of t at which a coordinate
    enters or leaves a bound. They are sorted, phi is summed along them, and t follows in closed form from the free
    coordinates: exact, O(m log m), and differentiable if no coordinate is at a kink.

    Parameters
    ----------
    v : TensorVariable
        The point to project, (m,).
    y : TensorVariable
        The normal of the hyperplane (the labels of the dual), (m,); zeros are allowed.
    C : TensorVariable or array_like
        The upper bounds, scalar or (m,), infinite ones allowed.
    scale : TensorVariable or array_like
        The step of each coordinate, scalar or (m,), positive; 1 is the Euclidean metric.
    lower : TensorVariable or array_like
        The lower bounds, as C.
    c : TensorVariable or float
        The value of y.p. A point of the box must attain it (p = 0 does for c = 0).

    Returns
    -------
    TensorVariable
        The projection (m,).

    Examples
    --------
    >>> p = box_section(pt.constant([3.0, 0.5, 1.0]), pt.constant([1.0, -1.0, -1.0]), 2.0)
    >>> p.eval().tolist()
    [2.0, 0.75, 1.25]
    """
    v = as_float(v)
    y, upper, lower, scale = (_full(a, v) for a in (y, C, lower, scale))
    c = _like(c, v)
    # No gradient through the search: it only finds which coordinates are free, and that is locally constant.
    t = _multiplier(*map(disconnected_grad, (v, y, upper, lower, scale, c)))
    # Rounding in the sums of the search may end it one breakpoint off. Two Newton steps, each with phi summed again at
    # the point, correct that; the last one carries the gradient.
    t = disconnected_grad(_newton(t, v, y, upper, lower, scale, c))
    t = _newton(t, v, y, upper, lower, scale, c)
    p = Pi(v - t * scale * y, upper, lower)
    # p is a difference with an error of eps |v|. If |v| is far larger than p, that leaves a residual y.p - c, which is
    # subtracted from the free coordinates.
    free = (p > lower) & (p < upper) & pt.neq(y, 0)
    slope = pt.switch(free, scale * y * y, 0.0).sum()
    residual = disconnected_grad(((y * p).sum() - c) / pt.switch(slope > 0, slope, 1.0))
    return Pi(pt.switch(free, p - residual * scale * y, p), upper, lower)


def _newton(t, v, y, upper, lower, scale, c):
    """Return the root of the linear piece of phi at t."""
    p = v - t * scale * y
    free = (p > lower) & (p < upper) & pt.neq(y, 0)
    slope = pt.switch(free, scale * y * y, 0.0).sum()
    level = pt.switch(free, y * v, y * Pi(p, upper, lower)).sum() - c
    return pt.switch(slope > 0, level / pt.switch(slope > 0, slope, 1.0), t)


def _multiplier(v, y, upper, lower, scale, c):
    """Return a root t of phi(t) = y.Pi(v - t scale y) - c by sorting its breakpoints."""
    fixed = pt.eq(y, 0)  # coordinates that do not move with t
    w = pt.switch(fixed, 1.0, scale * y)
    # Coordinate i is free for t in (enter, leave); y p falls from `start` to `end` as t rises.
    at_upper, at_lower = (v - upper) / w, (v - lower) / w
    enter, leave = pt.minimum(at_upper, at_lower), pt.maximum(at_upper, at_lower)
    start, end = pt.switch(y > 0, y * upper, y * lower), pt.switch(y > 0, y * lower, y * upper)
    slope, level = scale * y * y, y * v
    # To the left of all finite breakpoints, phi(t) = level0 - t slope0.
    free0 = pt.isinf(enter) & ~fixed
    level0 = pt.switch(fixed, y * v, pt.switch(free0, level, start)).sum() - c
    slope0 = pt.switch(free0, slope, 0.0).sum()
    enters, leaves = ~(pt.isinf(enter) | fixed), ~(pt.isinf(leave) | fixed)
    t = pt.concatenate([pt.switch(enters, enter, np.inf), pt.switch(leaves, leave, np.inf)])
    levels = pt.concatenate([pt.switch(enters, level - start, 0.0), pt.switch(leaves, end - level, 0.0)])
    slopes = pt.concatenate([pt.switch(enters, slope, 0.0), pt.switch(leaves, -slope, 0.0)])
    order = pt.argsort(t)
    t = t[order]
    # Bounds of the rounding errors of phi and of its slope.
    eps = _ROUNDING * np.finfo(v.dtype).eps
    tol, tol_slope = eps * (pt.abs(level0) + pt.abs(levels).sum()), eps * slope.sum()
    levels = pt.concatenate([level0[None], level0 + pt.cumsum(levels[order])])
    slopes = pt.concatenate([slope0[None], slope0 + pt.cumsum(slopes[order])])
    finite = ~pt.isinf(t)
    phi = levels[:-1] - pt.switch(finite, t, 0.0) * slopes[:-1]
    infinite = pt.constant(np.full(1, np.inf, dtype=v.dtype))
    ends = pt.concatenate([-infinite, t, infinite])

    def root(k, flat):
        """Return the root on the piece after k breakpoints, `flat` if phi is constant there."""
        falls = slopes[k] > tol_slope
        return pt.clip(pt.switch(falls, levels[k] / pt.switch(falls, slopes[k], 1.0), flat), ends[k], ends[k + 1])

    # phi may vanish on a whole interval, where no coordinate is free; its midpoint is away from every kink.
    left = root((finite & (phi > tol)).sum(), -np.inf)
    right = root((finite & (phi >= -tol)).sum(), np.inf)
    left, right = (
        pt.switch(pt.isinf(left), pt.switch(pt.isinf(right), 0.0, right - pt.abs(right) - 1), left),
        pt.switch(pt.isinf(right), pt.switch(pt.isinf(left), 0.0, left + pt.abs(left) + 1), right),
    )
    return (left + right) / 2


def _like(value: Any, v: Graph) -> Graph:
    return pt.as_tensor(value).astype(v.dtype)


def _full(value: Any, v: Graph) -> Graph:
    value = _like(value, v)
    return value if value.ndim else pt.full_like(v, value)
