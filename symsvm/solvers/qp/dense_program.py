"""Any quadratic W under any linear constraints as one quadratic program; its matrix is read from the gradient.

W(lam) = 1/2 lam.H lam + g_0.lam + W(0)    has the gradient    g(lam) = H lam + g_0,    so    H e_i = g(e_i) - g(0)
"""

# pyright: reportAttributeAccessIssue=false
# (PyTensor's variables get `ndim` and `data` from types that pyright cannot infer.)

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.replace import vectorize_graph
from scipy import sparse

from symsvm.compiler.functions import function, value_and_grad
from symsvm.compiler.lifting import MEMORY
from symsvm.graphs.structure import leaves
from symsvm.objectives.certificate import PolytopeCertifier
from symsvm.objectives.multipliers import check_feasible
from symsvm.objectives.polytope import nearest_point, rows_overlap
from symsvm.solvers.program import check_input_names, check_run_arguments, input_values
from symsvm.solvers.qp.quadratic_programming import (
    check_definite,
    check_unused,
    final_trace,
    interior_point,
    stop_reason,
)
from symsvm.solvers.solution import Solution

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.objectives import Objective
    from symsvm.solvers.qp.quadratic_programming import QPResult
    from symsvm.solvers.solution import Callback

__all__ = ["DenseProgram"]

_RIDGE = 1e-12


class DenseProgram:
    """A quadratic objective under any linear constraints, and `QuadraticProgramming`; `compile` makes one.

    Parameters
    ----------
    objective : Objective
        The problem. The length of its variable must be known from a shared value, a shape or the constraints.
    solver : QuadraticProgramming
        The solver.
    ordinary : object, optional
        The program to run instead where the values of the equalities turn out to share no variable.
    mode : str or Mode, optional
        Not used: the graphs are evaluated once, by NumPy.
    memory : int, optional
        The bytes that arrays beside the data may take, 1 GiB by default.
    dtype : {"float64"}, optional
        The type to compute in.
    """

    def __init__(
        self,
        objective: Objective,
        solver: Any,
        *,
        ordinary: Any = None,
        mode: Any = None,
        memory: int | None = None,
        dtype: str | None = None,
    ) -> None:
        if dtype not in (None, "float64"):
            raise ValueError(f"{solver!r} computes in float64: leave dtype out, got {dtype!r}.")
        self.objective, self.solver, self._ordinary = objective, solver, ordinary
        self._memory = memory or MEMORY
        variable: Any = objective.variable
        points: Any = pt.matrix("points of W", dtype=variable.dtype)
        W, g = value_and_grad(objective.value, variable)
        values = [vectorize_graph(g, {variable: points}), vectorize_graph(W, {variable: points[0]})]
        inputs = [v for v in leaves([W, *objective.bounds])[0] if v is not variable]
        self.inputs = [v for v in inputs if not isinstance(v, SharedVariable)]
        check_input_names(self.inputs)
        self._bounds = function(self.inputs, objective.bounds, mode="FAST_COMPILE")
        self._gradients = function([points, *self.inputs], values, mode="FAST_COMPILE")

    def run(
        self,
        start: None = None,
        *,
        tol: float = 1e-3,
        max_iter: int | None = None,
        time_limit: float | None = None,
        callback: Callback | None = None,
        **data: Any,
    ) -> Solution:
        """Solve, and return a `Solution`; `max_iter` and `time_limit` limit the interior-point method."""
        check_unused(start, callback)
        limits = {"tol": tol, "max_iter": max_iter, "time_limit": time_limit}
        tol, max_iter, time_limit = check_run_arguments(tol, max_iter, time_limit, callback)
        began, values = time.perf_counter(), input_values(self.inputs, data)
        lower, upper, *rows = (np.asarray(v, dtype="float64") for v in self._bounds(*values))
        equality, inequality = self.objective.split_rows(rows)
        if self._ordinary is not None and not rows_overlap(equality[0]):
            return self._ordinary.run(**limits, **data)
        certify = PolytopeCertifier(lower, upper, equality, inequality, tol, self.objective.is_convex)
        n = self._length(certify.M)
        for value in (lower, upper, certify.M):
            if value.ndim and value.shape[-1] != n:
                raise ValueError(f"a constraint has {value.shape[-1]} entries, but {self.objective.variable} has {n}.")
        H, g0, W0 = self._read(n, values)
        lower, upper = np.broadcast_to(lower, n).copy(), np.broadcast_to(upper, n).copy()
        result, candidates = _solve(H, g0, lower, upper, certify, max_iter, time_limit)
        certified = []
        for lam in candidates:
            Hlam = H @ lam
            certified.append((certify.exactly(lam, W0 + float(0.5 * lam @ Hlam + g0 @ lam), Hlam + g0), lam))
        certificate, lam = min(certified, key=lambda each: (each[0].status == "infeasible", each[0].violation))
        stopped, trace = stop_reason(result, certificate), final_trace(result, certificate, began)
        return Solution(lam, certificate.b, lam, stopped, result.n_iter, trace, lambda: certificate)

    def _length(self, M: Array) -> int:
        variable: Any = self.objective.variable
        if isinstance(variable, SharedVariable):
            return len(variable.get_value(borrow=True))
        return M.shape[1] if variable.type.shape[0] is None else variable.type.shape[0]

    def _read(self, n: int, values: list) -> tuple[Array, Array, float]:
        """Return H, g_0 and W(0), or raise if W is not quadratic or H is indefinite."""
        if 3 * 8 * n**2 > self._memory:
            raise ValueError(f"memory={self._memory} does not hold the matrix of W for {n} variables.")
        probe = np.random.default_rng(0).normal(size=n)
        points = np.concatenate([np.zeros((1, n)), np.eye(n), probe[None]]).astype(self.objective.variable.dtype)
        gradients, W0 = self._gradients(points, *values)
        gradients = np.broadcast_to(gradients, points.shape).astype("float64")  # that of a linear W has no batch
        g0, H = gradients[0], gradients[1:-1] - gradients[0]
        size = np.abs(H) @ np.abs(probe) + np.abs(g0)
        if not np.all(np.abs(H @ probe + g0 - gradients[-1]) <= 1e-6 * (size + size.max())):
            raise TypeError(
                f"'qp' needs a W that is quadratic in {self.objective.variable.name}: use 'accelerated-gradient'."
            )
        H = (H + H.T) / 2
        check_definite(H, self.objective.is_convex, "'accelerated-gradient', which ends")
        return H, g0, float(W0)


def _solve(
    H: Array,
    g0: Array,
    lower: Array,
    upper: Array,
    rows: PolytopeCertifier,
    max_iter: int | None,
    time_limit: float | None,
) -> tuple[QPResult, list[Array]]:
    """Return the result of the interior-point method, and its point moved onto the active constraints and refined."""
    n, n_equal = len(g0), rows.n_equal
    used = np.isfinite(rows.r)
    norms = np.maximum(np.abs(rows.M).max(axis=1), 1e-300)
    M, r = rows.M / norms[:, None], np.where(used, rows.r, 0.0) / norms
    eye, below, above = sparse.csr_matrix(sparse.eye(n)), np.isfinite(upper), np.isfinite(lower)
    limited = np.flatnonzero(used[n_equal:]) + n_equal
    G = sparse.vstack([eye[below], -eye[above], sparse.csr_matrix(M[limited])])
    h = np.concatenate([upper[below], -lower[above], r[limited]])
    # In units in which variables and gradient are of the size of 1.
    widest, size, slope = (float(np.abs(v).max(initial=0.0)) or 1.0 for v in (np.append(h, r), H, g0))
    unit = min(widest, slope / size) if g0.any() else widest
    options = {"max_iter": max_iter, "time_limit": time_limit}
    result = interior_point(H * unit / slope, g0 / slope, G, h / unit, M[:n_equal], r[:n_equal] / unit, **options)
    if result.stopped == "infeasible":
        check_feasible(lower, upper, rows.M, rows.r, n_equal)
    mu, at_upper, at_lower = unit * result.mu, np.zeros(n), np.zeros(n)
    parts = np.split(mu, np.cumsum([below.sum(), above.sum()]))
    at_upper[below], at_lower[above] = parts[:2]
    # An interior point is at no bound: constraints whose multiplier exceeds their slack are active.
    z = unit * result.v
    is_active = np.arange(len(r)) < n_equal
    is_active[limited] = parts[2] > r[limited] - M[limited] @ z
    z = np.where(at_upper > upper - z, upper, np.where(at_lower > z - lower, lower, z))
    fixed = (z == upper) | (z == lower)
    plain, _ = nearest_point(z, lower, upper, np.ones(n), rows.M, rows.r, n_equal, np.zeros(len(r)))
    order = np.argsort(~is_active, kind="stable")  # the active rows first
    face = np.where(fixed, z, lower), np.where(fixed, z, upper), np.ones(n), rows.M[order], rows.r[order]
    candidates = [plain]
    for point in (z, z + _newton_step(H, H @ z + g0, M[is_active], r[is_active] - M[is_active] @ z, ~fixed)):
        candidates.append(nearest_point(point, *face, int(is_active.sum()), np.zeros(len(r)))[0])
    return result, candidates


def _newton_step(H: Array, g: Array, M: Array, missing: Array, free: Array) -> Array:
    """Return the d over the free coordinates that minimises g.d + 1/2 d.Hd subject to M d = missing."""
    d, k, n = np.zeros(len(g)), len(M), int(free.sum())
    ridge = _RIDGE * max(float(np.abs(H).max()), 1.0)  # H may be singular, and rows redundant
    system = np.block([[H[np.ix_(free, free)] + ridge * np.eye(n), M[:, free].T], [M[:, free], -ridge * np.eye(k)]])
    d[free] = np.linalg.solve(system, np.concatenate([-g[free], missing]))[:n]
    return d
