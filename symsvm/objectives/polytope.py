"""The projection onto a box that linear equalities and inequalities cut, by Newton's method on its dual.

::

    p = argmin_p  1/2 sum_i (p_i - v_i)^2 / scale_i    subject to    lower <= p <= upper,    A p = c,    G p <= h

With M = [A; G], r = [c; h] and one multiplier per row, nu = (b, mu) with mu >= 0, the minimiser is

    p(nu) = Pi(v - scale M'nu),    and nu minimises the convex    theta(nu) = - min over the box of the Lagrangian.

theta is piecewise quadratic: its gradient is r - M p(nu), its Hessian M_F scale_F M_F' over the free coordinates F.
It has only k variables: a Newton step costs O(m k^2), and a few steps end on the piece that holds the minimum.
"""

# PyTensor declares elementwise functions (pt.switch, ...) without a return type.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportReturnType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import grad_not_implemented
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

from symsvm._lib.validation import as_float

if TYPE_CHECKING:
    from symsvm._lib.types import Array, Graph

__all__ = [
    "PolytopeProjection",
    "bounded_newton_step",
    "nearest_point",
    "polytope_section",
    "rows_overlap",
    "step_length",
]

_EPS = float(np.finfo("float64").eps)
# Added to the Hessian of theta, whose diagonal is at most 1, since rows may be redundant or have no free coordinates.
_RIDGE, _LEAST_RIDGE = 1e-4, 1e-13
_MAX_STEPS = 100  # a feasible set is reached in about ten
_TINY = 1e-300
_UNBOUNDED = 1e25  # theta has no minimum if no point is feasible: the multipliers grow without limit


def rows_overlap(A: Array) -> bool:
    """Whether two rows of a matrix share a column, so that their equalities share a variable."""
    return bool(((np.atleast_2d(A) != 0).sum(axis=0) > 1).any())


def nearest_point(
    v: Array, lower: Array, upper: Array, scale: Array, M: Array, r: Array, n_equal: int, start: Array
) -> tuple[Array, Array]:
    """Return the projection p (m,) of v, and the multipliers nu (k,) of its rows.

    The first `n_equal` rows of M p and r are equal, the others at most r. If no point is feasible, p is not either.

    >>> v, zero, one = np.array([1.0, 3.0]), np.zeros(2), np.ones(2)
    >>> p, nu = nearest_point(v, zero, 9 * one, one, np.array([[1.0, 1.0]]), np.array([2.0]), 0, np.zeros(1))
    >>> p.tolist(), nu.tolist()
    ([0.0, 2.0], [1.0])
    """
    k = M.shape[0]
    is_limit = np.arange(k) >= n_equal
    # Rows of length 1 in the metric. A row without entries, or with an infinite limit, has the multiplier 0.
    norms = np.sqrt((M * M) @ scale)
    used = (norms > 0) & (r < np.inf)
    norms = np.where(used, norms, 1.0)
    N = np.where(used, 1 / norms, 0.0).reshape((k, 1)) * M
    r = np.where(used, r, 0.0) / norms
    size = np.abs(N)
    nu = np.where(used, start * norms, 0.0)
    nu = np.where(is_limit, np.maximum(nu, 0.0), nu)
    best, stalled = np.inf, 0
    for _ in range(_MAX_STEPS):
        u = v - scale * (nu @ N)
        p = np.minimum(np.maximum(u, lower), upper)
        free = (u > lower) & (u < upper)
        g = r - N @ p
        wrong = np.where(is_limit & (nu <= 0), np.maximum(-g, 0.0), np.abs(g))
        terms = np.abs(p) + np.where(free, np.abs(v) + scale * (np.abs(nu) @ size), 0.0)
        rounding = 2 * _EPS * (size @ terms + np.abs(r)) + _TINY
        error = np.max(wrong / rounding)
        stalled = stalled + 1 if error < 1e6 and error > best / 2 else 0
        best = min(error, best)
        if error <= 1 or stalled == 3 or np.max(np.abs(nu)) > _UNBOUNDED:
            break
        # Multipliers are of the size of `away`. Where the rows have no free coordinates a Newton step has no length of
        # its own; the ridge limits it, and vanishes with the residual, so that convergence is quadratic elsewhere.
        away = np.sqrt(np.sum((v - p) ** 2 / scale))
        ridge = max(_LEAST_RIDGE, min(1e-2, _RIDGE * np.max(wrong) / away if away > 0 else 1e-2))
        H = (N * np.where(free, scale, 0.0)) @ N.T + ridge * np.eye(k)
        d = bounded_newton_step(H, g, nu, n_equal)
        t = step_length(u, lower, upper, scale, nu, d, d @ N, d @ r)
        if t == 0:
            break
        nu = nu + t * d
        nu = np.where(is_limit, np.maximum(nu, 0.0), nu)
    u = v - scale * (nu @ N)
    p = np.minimum(np.maximum(u, lower), upper)
    # p is a difference with an error of eps |v|: what it leaves in the rows is taken from the free coordinates.
    free = (u > lower) & (u < upper)
    is_tight = ~is_limit | (nu > 0)
    T = np.where(is_tight, 1.0, 0.0).reshape((k, 1)) * N
    H = (T * np.where(free, scale, 0.0)) @ T.T + _LEAST_RIDGE * np.eye(k)
    for _ in range(2):
        excess = np.where(is_tight, N @ p - r, 0.0)
        step = np.where(free, scale, 0.0) * (np.linalg.solve(H, excess) @ T)
        closer = np.minimum(np.maximum(p - step, lower), upper)
        if np.max(np.abs(np.where(is_tight, N @ closer - r, 0.0))) < np.max(np.abs(excess)):
            p = closer
    return p, nu / norms


def bounded_newton_step(H: Array, g: Array, nu: Array, n_equal: int) -> Array:
    """Return the d that minimises g.d + 1/2 d.Hd subject to nu_i + d_i >= 0 for i >= n_equal (Lawson and Hanson).

    Multipliers enter the set of those that may move one at a time, and leave it where they reach 0.
    """
    k = len(g)
    moving = (np.arange(k) < n_equal) | (nu > 0)
    z = nu.copy()
    tol = 64 * _EPS * (np.max(np.abs(g)) + np.max(np.abs(H)) * np.max(np.abs(nu)))
    for _ in range(10 * k + 10):
        slope = g + H @ (z - nu)
        both = moving.reshape((k, 1)) & moving
        step = np.linalg.solve(np.where(both, H, np.eye(k)), np.where(moving, -slope, 0.0))
        t, first = 1.0, -1
        for i in range(n_equal, k):
            if moving[i] and z[i] + t * step[i] < 0:
                t, first = z[i] / -step[i], i
        z = z + t * step
        if first >= 0:
            z[first], moving[first] = 0.0, False
            continue
        slope = np.where(moving, 0.0, g + H @ (z - nu))
        enters = np.argmin(slope)
        if slope[enters] >= -tol:
            break
        moving[enters] = True
    return z - nu


def step_length(
    u: Array, lower: Array, upper: Array, scale: Array, nu: Array, d: Array, w: Array, target: float
) -> float:
    """Return the t in (0, 1] near which theta(nu + t d) has its minimum; 0 if d is no direction of descent.

    Its derivative target - w.Pi(u - t scale w), w = M'd, does not decrease in t: Newton's method inside a bracket.
    """
    first = target - w @ np.minimum(np.maximum(u, lower), upper)
    if not first < 0:
        return 0.0
    low, high, t = 0.0, 1.0, 1.0
    for _ in range(200):
        q = u - t * scale * w
        slope = target - w @ np.minimum(np.maximum(q, lower), upper)
        if slope > -1e-3 * first:
            high = t
        elif slope < 0.1 * first and t < 1:
            low = t
        else:
            return t
        curvature = np.sum(np.where((q > lower) & (q < upper), scale * w * w, 0.0))
        t = t - slope / curvature if curvature > 0 else -1.0
        if not low < t < high:  # by orders of magnitude first: without free coordinates d is far too long
            t = high / 16 if low == 0 else np.sqrt(low * high) if high > 4 * low else (low + high) / 2
        if high - low <= 4 * _EPS * high:
            break
    return low if low > 0 else high


class PolytopeProjection(Op):
    """(v, lower, upper, scale, M, r) -> (p, nu): `nearest_point` as an operation of float64 arrays.

    Every backend calls the function as it is; JAX on the host. Its time is that of a few products in BLAS. A graph of
    the same method would be a loop that ends at a tolerance, which PyTensor does not convert to JAX; a fixed number of
    steps would cost as much for every point as for the hardest.

    Parameters
    ----------
    n_equal : int
        The number of rows that are equalities.
    """

    __props__ = ("n_equal",)

    def __init__(self, n_equal: int) -> None:
        self.n_equal = n_equal

    def make_node(self, *inputs: Any) -> Apply:
        """Return the node of the inputs, cast to float64."""
        arrays = [pt.as_tensor(x).astype("float64") for x in inputs]
        return Apply(self, arrays, [pt.tensor(dtype="float64", shape=x.type.shape) for x in (arrays[0], arrays[-1])])

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Run `nearest_point`."""
        outputs[0][0], outputs[1][0] = nearest_point(*inputs, self.n_equal, np.zeros(len(inputs[-1])))

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list:
        """The gradient by v of y.p: the projection of scale y onto the active constraints, divided by scale."""
        _, lower, upper, scale, M, r = inputs
        (p, nu), (y, _) = outputs, cotangents
        ends: Any = pt.switch((p > lower) & (p < upper), np.inf, 0.0)
        is_active = (pt.arange(r.shape[0]) < self.n_equal) | (nu > 0)
        rows = pt.switch(is_active[:, None], M, 0.0)
        every: Any = PolytopeProjection(np.iinfo("int32").max)  # all rows are equalities
        along, _ = every(scale * y, -ends, ends, scale, rows, pt.zeros_like(r))
        return [along / scale, *(grad_not_implemented(self, i, x) for i, x in enumerate(inputs) if i)]


def polytope_section(
    v: Any,
    A: Any,
    c: Any,
    n_equal: int,
    C: Any,
    scale: Any = 1.0,
    *,
    lower: Any = 0.0,
) -> Graph:
    """Project onto the intersection of the box with any number of hyperplanes and half-spaces, in a diagonal metric.

    ::

        argmin_p  sum_i (p_i - v_i)^2 / scale_i    subject to    lower <= p <= C,   A_i.p = c_i for i < n_equal,   else
                                                                                 A_i.p <= c_i

    Parameters
    ----------
    v : TensorVariable
        The point to project, (m,).
    A : TensorVariable
        The normals (k, m); they may share coordinates, and rows may be redundant.
    c : TensorVariable
        The right-hand sides (k,).
    n_equal : int
        The number of rows that are equalities; they come first.
    C : TensorVariable or array_like
        The upper bounds, scalar or (m,), infinite ones allowed.
    scale : TensorVariable or array_like
        The step of each coordinate, scalar or (m,), positive; 1 is the Euclidean metric.
    lower : TensorVariable or array_like
        The lower bounds, as C.

    Returns
    -------
    TensorVariable
        The projection (m,), computed in float64; differentiable by v if no coordinate is at a kink.

    Examples
    --------
    >>> A, c = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0]]), np.array([1.0, 0.0])
    >>> polytope_section(pt.constant([3.0, 0.0, 0.0]), A, c, 1, 2.0).eval(mode="FAST_COMPILE").round(12).tolist()
    [0.5, 0.5, 0.0]
    """
    v = as_float(v)
    bounds = [pt.full_like(v, x, dtype="float64") if not x.ndim else x for x in map(pt.as_tensor, (lower, C, scale))]
    project: Any = PolytopeProjection(n_equal)
    p, _ = project(v, *bounds, A, c)
    return p.astype(v.dtype)
