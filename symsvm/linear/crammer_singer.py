"""The multi-class machine of Crammer and Singer, k classes in one problem, linear, with the l2 penalty.

::

    (P)   minimise  1/2 sum_m |u_m|^2 + sum_i C_i max_m (e_im + f_im - f_i,y_i),      f_im = x_i.w_m + s b_m,

e_im = 1 for m != y_i, else 0. In the dual, u_m = sum_i z_im (x_i, s) and ::

    minimise  1/2 sum_m |u_m|^2 + sum_im e_im z_im    subject to    z_im <= C_i where m = y_i, else 0,  sum_m z_im = 0.

With G_im = e_im + f_im at u = u(z), the gap is a sum of terms that are at least 0, ::

    P - D = sum_i sum_m (c_im - z_im) (max_m G_im - G_im)            c_im the bound of z_im,

and z is optimal when max_m G_im <= G_im wherever z_im is below its bound; the violation is how far that fails.

The solver is a dual coordinate descent over the points in random order. With the others fixed, and A = |x_i|^2 + s^2,
B = G - A z_i, the best z_im is min(c_im, (beta - B_m) / A), where sorting gives the beta with sum_m z_im = 0. A class
is shrunk (skipped) for a point if its z_im is at its bound and its G_im is less than the others' (Keerthi,
Sundararajan, Chang, Hsieh and Lin, A sequential dual method for large scale multi-class linear SVMs, 2008). Once the
gap is small, passes alternate with subspace minimisation, see `symsvm.linear.subspace`.
"""

from __future__ import annotations

import functools
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm._lib.code_cache import njit
from symsvm._lib.validation import count, number
from symsvm.linear.class_descent import ClassDescent
from symsvm.linear.compensated import compensated_combination, compensated_margins
from symsvm.linear.measure import Measure
from symsvm.linear.rows import LOOP, Rows
from symsvm.linear.solve_linear import LinearSolution, as_rows, check_C, run_stages
from symsvm.linear.subspace import minimize_free_classes
from symsvm.objectives.certificate import Certificate
from symsvm.solvers.convergence import shown, warn_not_converged
from symsvm.solvers.program import check_run_arguments

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from numpy.typing import ArrayLike
    from scipy.sparse import sparray, spmatrix

    from symsvm._lib.types import Array
    from symsvm.solvers.solution import Callback

__all__ = ["ClassesProblem", "solve_crammer_singer"]

# Subspace minimisation follows passes
SMALL_GAP = 1e-3  # that reach this gap, as a share of P,
SLOW_PASSES = 0.5  # or that leave more than this share of the gap.
SUBSPACE_ITERATIONS, SUBSPACE_RESIDUAL = 60, 0.03  # iterations, and the share of the residual at which it ends
FINAL_ROUNDS = 20  # rounds of subspace minimisation and passes towards machine precision
ROUNDED = 1e-2  # errors of scores above this share of tol are worth a look
ROUNDING = 1e-13  # a violation of this size, relative to the values, counts as 0


@njit(**LOOP)
def _all_scores(flat, dense, s, U, F):
    """Set F = [X s]U."""
    values, points, begins = flat
    last, k = U.shape[0] - 1, U.shape[1]
    for i in range(F.shape[0]):
        out = F[i]
        for m in range(k):
            out[m] = s * U[last, m]
        row = slice(begins[i], begins[i + 1])
        x, p = values[row], points if dense else points[row]
        for l in range(len(x)):
            v, at = float(x[l]), U[p[l]]
            for m in range(k):
                out[m] += v * at[m]


@njit(**LOOP)
def _combine(flat, dense, s, Z, U):
    """Set U = [X s]'Z."""
    values, points, begins = flat
    last, k = U.shape[0] - 1, U.shape[1]
    U[:] = 0.0
    for i in range(Z.shape[0]):
        z, some = Z[i], False
        for m in range(k):
            some |= z[m] != 0
        if some:
            row = slice(begins[i], begins[i + 1])
            x, p = values[row], points if dense else points[row]
            for l in range(len(x)):
                v, at = float(x[l]), U[p[l]]
                for m in range(k):
                    at[m] += v * z[m]
            for m in range(k):
                U[last, m] += s * z[m]


@njit(**LOOP)
def _assess(F, e, y, C, Z):
    """Return sum C_i max(...), sum e z, the gap as a sum of terms, and the largest violation; e = 0 if F has e_im."""
    n, k = Z.shape
    loss = linear = gap = worst = 0.0
    for i in range(n):
        if C[i] == 0:
            continue
        top = F[i, y[i]]
        for m in range(k):
            top = max(top, F[i, m] + (0.0 if m == y[i] else e))
        loss += C[i] * (top - F[i, y[i]])
        for m in range(k):
            bound, G = (C[i], F[i, m]) if m == y[i] else (0.0, F[i, m] + e)
            if Z[i, m] < bound:
                gap += (bound - Z[i, m]) * (top - G)
                worst = max(worst, top - G)
            if m != y[i]:
                linear += Z[i, m]
    return loss, linear, gap, worst


class ClassesProblem:
    """The problem of Crammer and Singer, for classes y = 0 .. k - 1; the module's docstring states it."""

    def __init__(self, rows: Rows, y: Array, C: ArrayLike, k: int) -> None:
        self.rows, self.k = rows, k
        self.y = np.ascontiguousarray(y, dtype="int64")
        self.C = np.array(np.broadcast_to(np.asarray(C, dtype="float64"), rows.n))
        self.bounds = np.zeros((rows.n, k))
        self.bounds[np.arange(rows.n), self.y] = self.C

    def combine(self, z: Array, U: Array | None = None) -> Array:
        """Return u = [X s]'z (d + 1, k), in U if given."""
        U = np.empty((self.rows.d + 1, self.k)) if U is None else U
        _combine(self.rows.flat, not self.rows.sparse, self.rows.s, z, U)
        return U

    def scores(self, u: Array, F: Array | None = None) -> Array:
        """Return f = [X s]u (n, k), in F if given."""
        F = np.empty((self.rows.n, self.k)) if F is None else F
        _all_scores(self.rows.flat, not self.rows.sparse, self.rows.s, u, F)
        return F

    def measure(self, u: Array, z: Array, *, f: Array | None = None, e: float = 1.0) -> tuple[Measure, Array]:
        """Return the `Measure` of z, with u = u(z), and z; e = 0 where f contains e_im."""
        loss, linear, gap, worst = _assess(self.scores(u) if f is None else f, e, self.y, self.C, z)
        half = 0.5 * float(np.einsum("ij,ij->", u, u))
        outside = max(0.0, float(np.max(z - self.bounds)), float(np.max(np.abs(z.sum(axis=1)))))
        rounding = 8 * np.finfo("float64").eps * self.k * float(np.abs(z).max())
        return Measure(half + loss, -half - linear, gap, worst, outside, rounding), z

    @np.errstate(over="ignore", invalid="ignore")  # what exceeds float64 is "diverged"
    def certificate(self, u: Array, z: Array, tol: float) -> Certificate:
        """Return the `Certificate` of the weights u and of z in float64 from the data: W = -D.

        With rounding u is not quite v = u(z), which adds 1/2 |u - v|^2 to the gap. v and the differences of scores, all
        that the loss depends on, are as if in twice the precision: bad scaling leaves few digits of them.
        """
        v = compensated_combination(self.rows, z)
        found, z = self.measure(u, z, f=compensated_margins(self.rows, u, self.y), e=0.0)
        linear = float(z.sum() - z[np.arange(len(z)), self.y].sum())
        dual = -0.5 * float(np.einsum("ij,ij->", v, v)) - linear
        measure = replace(found, dual=dual, gap=found.gap + 0.5 * float(np.sum((u - v) ** 2)))
        return measure.certificate(tol, u[-1].copy() if self.rows.s else None)


def _descend(
    problem: ClassesProblem, z: Array, *, tol: float, seed: int, most: float, deadline: float
) -> Generator[tuple[Any, ...], Any, None]:
    """Yield (passes and steps so far, u, z, f, converged) until rounding stops the progress."""
    descent, total, goal, last, gap = ClassDescent(problem, z, seed, deadline), 0, 0.5 * tol, None, np.inf
    while True:
        done, converged, u = descent.passes(most - total, goal)
        total += done
        z = descent.z.copy()
        measure = yield total, u, z, None, converged
        if converged:
            if last is not None and np.array_equal(last, z):
                return
            last, goal = z, 0.25 * goal
        elif measure.gap <= SMALL_GAP * measure.primal or measure.gap > SLOW_PASSES * gap:
            limits = {"iterations": SUBSPACE_ITERATIONS, "share": SUBSPACE_RESIDUAL, "deadline": deadline}
            u, z, f, _ = minimize_free_classes(problem, z, **limits)
            total += 1
            yield total, u, z, f, False
            descent.z = z.copy()
            descent.unshrink()
        gap = measure.gap


def _refine(problem: ClassesProblem, z: Array) -> Iterator[tuple[Any, ...]]:
    """Continue to machine precision: subspace minimisation, and passes that correct the active set."""
    descent, total, least = ClassDescent(problem, z, 0), 0, np.inf
    for _ in range(FINAL_ROUNDS):
        u, z, f, _ = minimize_free_classes(problem, descent.z, iterations=10 * SUBSPACE_ITERATIONS, share=ROUNDING)
        total += 1
        yield total, u, z, f
        violation = problem.measure(u, z, f=f)[0].violation
        if violation <= ROUNDING * (1 + np.abs(f).max()) or (violation > 0.5 * least and least < 1e-10):
            return
        least = min(violation, least)
        descent.z = z.copy()
        descent.unshrink()
        done, _, u = descent.passes(np.inf, 0.1 * violation)
        total += done
        yield total, u, descent.z.copy()


def solve_crammer_singer(
    X: ArrayLike | sparray | spmatrix | Rows,
    y: ArrayLike,
    C: ArrayLike,
    *,
    intercept: bool = True,
    intercept_scaling: float = 1.0,
    tol: float = 1e-4,
    max_iter: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    start: LinearSolution | None = None,
    seed: int = 0,
    verbose: bool | int = 0,
) -> LinearSolution:
    """Solve the multi-class problem of Crammer and Singer.

    Parameters
    ----------
    X : array_like, sparse matrix or Rows
        The points (n, d); see `solve_linear`.
    y : array_like of int
        The classes 0 .. k - 1, k >= 2, one per point.
    C : array_like
        C_i = C times weight, a number or one per point; a point with 0 has no effect.
    intercept : bool
        Whether there are intercepts s b_m, which are penalised.
    intercept_scaling : float
        The constant feature s.
    tol : float
        The bound on the violation, and on the gap as a share of P.
    max_iter : int, optional
        The limit on passes and subspace steps.
    time_limit : float, optional
        The limit in seconds, checked after each pass and each step of subspace minimisation until tol is reached.
    callback : callable, optional
        A function of an `Info`; a true return value stops the run.
    start : LinearSolution, optional
        A solution for the same points, perhaps with another C.
    seed : int
        The seed of the order of the points; the same seed gives the same bits.
    verbose : bool or int
        Whether to draw a bar on a terminal, or to print a line at the end.

    Returns
    -------
    LinearSolution
        The solution, with w (d, k), b (k,) and dual (n, k).

    Examples
    --------
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [-1.0, -1.0]]), np.array([0, 1, 2])
    >>> solution = solve_crammer_singer(X, y, 1.0, tol=1e-8)
    >>> (X @ solution.w + solution.intercept).argmax(axis=1).tolist(), solution.certificate.status
    ([0, 1, 2], 'optimal')
    """
    tol, max_iter, time_limit = check_run_arguments(tol, max_iter, time_limit, callback)
    deadline = np.inf if time_limit is None else time.perf_counter() + time_limit
    s = number(intercept_scaling, "intercept_scaling", positive=True) if intercept else 0.0
    rows = as_rows(X, s)
    labels = np.asarray(y)
    if labels.shape != (rows.n,) or labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() < 1:
        raise ValueError(f"y must be {rows.n} integers 0 .. k - 1, one per point, of at least two classes.")
    problem = ClassesProblem(rows, labels, check_C(C, rows.n), int(labels.max()) + 1)
    z = np.zeros((rows.n, problem.k))
    if start is not None:
        dual: Any = getattr(start, "dual", None)
        if dual is None or dual.shape != z.shape:
            raise ValueError(f"start must be a LinearSolution with a dual of the shape {z.shape}.")
        old_C: Any = start.C
        z = dual * np.divide(problem.C, old_C, out=np.zeros(rows.n), where=old_C > 0)[:, None]
        z[np.arange(rows.n), problem.y] = np.minimum(z[np.arange(rows.n), problem.y], problem.C)

    options: Any = {"tol": tol, "seed": count(seed, "seed"), "deadline": deadline}
    with shown(callback, tol, verbose) as report:
        (last, u, z_best), stopped, n_iter, trace, algorithm = run_stages(
            [("sequential dual", lambda best, most: _descend(problem, z, most=most, **options))],
            problem.measure,
            zero=(np.zeros((rows.d + 1, problem.k)), np.zeros_like(z)),
            tol=tol,
            max_iter=max_iter,
            time_limit=time_limit,
            callback=report,
            final=("refinement", lambda best, most: _refine(problem, best[2])) if rows.is_small else None,
        )

    u = problem.combine(z_best)  # subspace minimisation updates u, and rounding accumulates in it

    @functools.cache
    def certify() -> Certificate:
        return problem.certificate(u, z_best, tol)

    # The run measures in float64: where rounding of the scores matters to the violation or to the gap, a sum of scores
    # times C_i, the certificate is asked too; for few points always.
    rounding = np.finfo("float64").eps * float(np.sqrt(rows.squares.max(initial=0.0)) * np.sqrt(np.sum(u**2)))
    rounding *= max(1.0, float(problem.C.sum()) / last.primal) if last.primal > 0 else 1.0
    if stopped == "tol" and (rows.is_small or not rounding <= ROUNDED * tol):
        found = certify()
        if found.status != "optimal":
            stopped = "stalled"
            reached = f"a violation of {found.violation:.2g}, where tol={tol:g}"
            warn_not_converged(stopped, n_iter, reached, ["Scale the features."])
    b = u[-1].copy() if s else None
    return LinearSolution(u[:-1].copy(), b, z_best, stopped, n_iter, trace, algorithm, certify, s, problem.C)
