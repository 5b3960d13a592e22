"""The solver of large linear support vector machines: the choice of algorithms, their run, and `LinearSolution`.

::

    (P)   minimise  R(w, b) + sum_i C_i loss(y_i, x_i.w + s b)

    penalty  loss                       shape                      algorithm, and why
    l2       squared                    n >= d, or b free          Newton: some ten passes, whatever C is
    l2       squared                    n < d                      coordinate descent: cheap where rows are nearly
                                                                   orthogonal, as of texts; Newton if it is slow
    l2       hinge, epsilon-insens.     min(n, d) <= 1000          coordinate descent; if it is slow, the interior-point
                                                                   method: exact, whatever C is; at once if b is free
    l2       hinge, epsilon-insens.     both larger                coordinate descent, with multipliers for a free b, in
                                                                   turn with subspace minimisation
    l1       squared                    d <= 500                   Newton with a quadratic model of d features
    l1       squared                    d > 500                    the same for sets of features, while they are few;
                                                                   then coordinate descent over the columns

`tol` bounds both the largest violation of the optimality conditions, in the unit of margins (of targets: of their mean
size), and the gap P - D as a share of P; see `symsvm.linear.linear_problem`. LIBLINEAR compares the same violation with
its tolerance in the dual; Newton's method continues until LIBLINEAR's condition on the gradient holds as well.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from symsvm._lib.validation import choice, count, number
from symsvm.linear.coordinate_descent import coordinate_descent, multiplier_descent
from symsvm.linear.interior_point import MAX_INTERIOR, interior_point, refine_active_set
from symsvm.linear.l1_penalty import column_descent, proximal_newton, working_sets
from symsvm.linear.linear_problem import LOSSES, LinearProblem, Loss
from symsvm.linear.measure import Measure
from symsvm.linear.primal_newton import MAX_FORMED, primal_newton
from symsvm.linear.rows import Rows
from symsvm.solvers.convergence import shown, warn_not_converged
from symsvm.solvers.program import check_run_arguments
from symsvm.solvers.solution import Info, collect_trace

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from scipy.sparse import sparray, spmatrix

    from symsvm._lib.types import Array
    from symsvm.objectives.certificate import Certificate
    from symsvm.solvers.solution import Callback

__all__ = ["LinearSolution", "as_rows", "check_C", "run_stages", "solve_linear"]

SLOW_VISITS = 100  # visits to each point after which coordinate descent ends where another algorithm can follow
STAGE_IDLE = 50  # evaluations without a better gap, violation, D or P after which a stage ends

Points: TypeAlias = Iterator[tuple[Any, ...]]
Best: TypeAlias = tuple[Measure, np.ndarray, Any]  # z may be with workers
Stage: TypeAlias = tuple[str, Callable[..., Points]]


@dataclass(frozen=True)
class LinearSolution:
    """A linear model, the result of a run.

    Parameters
    ----------
    w : ndarray
        The weights (d,), or (d, k) for k classes at once.
    b : float, ndarray or None
        The weight of the constant feature s, so that f(x) = x.w + s b; None without an intercept. See `intercept`.
    dual : ndarray or None
        The dual vector z (n,), or (n, k), feasible, that the certificate uses.
    stopped : str
        Why the run ended: `tol`, `max_iter`, `time_limit`, `callback`, `interrupt`, `stalled` (no further progress at
        float64 precision) or `diverged` (a step exceeds float64). With `tol` the certificate is optimal.
    n_iter : int
        The number of passes over the points and of Newton steps.
    trace : dict of ndarray
        One entry for each evaluation of the whole problem: `iteration`, `seconds`, `W` = -D, `violation`, `gap`.
    algorithm : str
        The algorithms that ran, in order: "coordinate descent", "newton", "interior point", ...
    certify : callable
        Returns the certificate.
    s : float
        The constant feature.
    C : ndarray or None
        The costs C_i of the points.
    """

    w: np.ndarray = field(repr=False)
    b: float | np.ndarray | None
    dual: np.ndarray | None = field(repr=False)
    stopped: str
    n_iter: int
    trace: dict[str, np.ndarray] = field(repr=False)
    algorithm: str
    certify: Callable[[], Certificate] = field(repr=False)
    s: float = 1.0
    C: np.ndarray | None = field(default=None, repr=False)

    @functools.cached_property
    def certificate(self) -> Certificate:
        """The `Certificate` in float64, computed from the data, w, b and the dual vector when it is first read."""
        return self.certify()

    @property
    def intercept(self) -> float | np.ndarray:
        """The constant s b of f(x) = x.w + s b; 0 without an intercept."""
        return 0.0 if self.b is None else self.s * self.b


def run_stages(
    stages: Sequence[Stage],
    measure: Callable[..., tuple[Measure, Any]],
    *,
    zero: tuple[Array, Any],
    tol: float,
    max_iter: int | None,
    time_limit: float | None,
    callback: Callback | None,
    final: Stage | None = None,
) -> tuple[Best, str, int, dict[str, Array], str]:
    """Run stages one after the other until a point reaches tol.

    A stage is a name and a function of the best point so far and of the iterations left. The function returns a
    generator of (iterations, u, z[, f[, whether the stage's own criterion is met]]), to which the `Measure` of each
    point is sent. The best point is the one with the least gap. A point reaches tol if its status is "optimal", which
    is then that of its certificate. A run that ends before gives a warning.

    `final` continues from a point that reaches tol; its points count where neither gap nor violation grows. It is not
    subject to the time limit: what a run returns at tol does not depend on the clock.

    Parameters
    ----------
    measure : a function of (u, z, f=) that returns the `Measure` and the feasible z.
    zero : u = 0 and z = 0, the point of a run that finds no other whose values are finite.

    Returns
    -------
    The best (measure, u, z), why the run stopped, the iterations, the trace and the names of the stages.
    """
    began, infos, names, total = time.perf_counter(), [], [], 0
    best: Best | None = None
    stopped = called = None
    before = 0
    most = np.inf if max_iter is None else max_iter

    def evaluate(point: tuple[Any, ...]) -> tuple[Measure, tuple[Array, Any], bool, str | None]:
        """Return the `Measure`, (u, z), whether the stage's criterion is met, and whether the callback stops."""
        done, u, z, *more = point
        found, z = measure(u, z, f=more[0] if more else None)
        info = Info(before + int(done), time.perf_counter() - began, -found.dual, found.violation, found.gap)
        infos.append(info)
        return found, (u, z), all(more[1:]), _call(callback, info)

    # Steps may exceed float64. Such a point is measured and not taken, so that NumPy need not warn as well.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        try:
            for name, stage in stages:
                before = total
                names.append(name)
                if len(names) > 1 and best is None:
                    best = measure(*zero)[0], *zero
                points, found, low, idle = stage(best, most - total), None, None, 0
                while (point := _next_point(points, found)) is not None:
                    found, pair, converged, called = evaluate(point)
                    total, status = infos[-1].iteration, found.status(tol)
                    less = best is None or found.gap < best[0].gap
                    if status == "optimal" or (status == "feasible" and less):
                        best = found, *pair
                    late = time_limit is not None and infos[-1].seconds >= time_limit
                    end = "max_iter" if total >= most else "time_limit" if late else called
                    stopped = "tol" if status == "optimal" and converged else end
                    new = np.array([found.gap, found.violation, -found.dual, found.primal])
                    better = low is None or (new < low - np.abs(low) * (1e-3, 1e-3, 1e-15, 1e-15)).any()
                    idle, low = 0 if better else idle + 1, new if low is None else np.fmin(low, new)
                    if stopped or idle >= STAGE_IDLE:
                        break
                if stopped:
                    break
            if stopped == "tol" and final is not None and called is None:
                before = total
                names.append(final[0])
                for point in final[1](best, most - total):
                    found, pair, _, called = evaluate(point)
                    assert best is not None
                    closer = found.gap <= best[0].gap and found.violation <= best[0].violation
                    if closer and found.status(tol) == "optimal":
                        best = found, *pair
                    if called or infos[-1].iteration >= most:
                        break
                total = infos[-1].iteration
        except KeyboardInterrupt:
            if best is None:
                raise
            stopped = stopped or "interrupt"
        if best is None:
            best = measure(*zero)[0], *zero
    # No finite point at all, or none after it: the next one is not.
    exceeds = not infos or not np.isfinite(infos[-1].gap)
    stopped = stopped or ("diverged" if exceeds else "stalled")
    if stopped != "tol":
        last = best[0]
        relative = last.gap / last.primal if last.primal > 0 else np.inf
        reached = f"a relative gap of {relative:.2g} and a violation of {last.violation:.2g}, where tol={tol:g}"
        warn_not_converged(stopped, total, reached, ["Scale the features, lower C or allow more iterations."])
    return best, stopped, total, collect_trace(infos), ", ".join(names)


def _call(callback: Callback | None, info: Info) -> str | None:
    """Return "callback" if the callback stops the run, "interrupt" after a Ctrl-C in it, else None."""
    try:
        return "callback" if callback is not None and callback(info) else None
    except KeyboardInterrupt:
        return "interrupt"


def _next_point(points: Any, measure: Measure | None) -> tuple[Any, ...] | None:
    """Return the next point of a stage, to which the measure of the last one is sent; None at its end."""
    try:
        return points.send(measure)
    except StopIteration:
        return None


def solve_linear(
    X: ArrayLike | sparray | spmatrix | Rows,
    y: ArrayLike,
    C: ArrayLike,
    *,
    loss: Loss,
    penalty: Literal["l2", "l1"] = "l2",
    epsilon: float = 0.0,
    intercept: bool = True,
    penalize_intercept: bool = True,
    intercept_scaling: float = 1.0,
    tol: float = 1e-4,
    max_iter: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    start: LinearSolution | ArrayLike | None = None,
    seed: int = 0,
    verbose: bool | int = 0,
) -> LinearSolution:
    """Minimise R(w, b) + sum_i C_i loss(y_i, x_i.w + s b); the module's docstring states the problem and `tol`.

    Parameters
    ----------
    X : array_like, sparse matrix or Rows
        The points (n, d), float32 or float64; CSR is not copied. `Rows` serve many runs.
    y : array_like
        Labels -1 and +1 for the hinge losses, targets for the others.
    C : array_like
        C_i = C times weight, a number or one per point; a point with 0 has no effect.
    loss : {"hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive"}
        The loss.
    penalty : {"l2", "l1"}
        R is half the squared norm of w ("l2") or the sum of its absolute values ("l1", for squared losses only).
    epsilon : float
        The half width of the tube of the insensitive losses.
    intercept : bool
        Whether there is an intercept s b.
    penalize_intercept : bool
        Whether R includes b.
    intercept_scaling : float
        The constant feature s.
    tol : float
        The bound on the violation, and on the gap as a share of P.
    max_iter : int, optional
        The limit on passes and Newton steps.
    time_limit : float, optional
        The limit in seconds, checked between passes until tol is reached.
    callback : callable, optional
        A function of an `Info`; a true return value stops the run.
    start : LinearSolution or array_like, optional
        A solution for the same points, perhaps with another C; or u = (w, b), or w.
    seed : int
        The seed of the order of the points; the same seed gives the same bits.
    verbose : bool or int
        Whether to draw a bar on a terminal, or to print a line at the end.

    Returns
    -------
    LinearSolution
        The weights, with their certificate.

    Examples
    --------
    >>> X, y = np.array([[-1.0], [0.5], [2.0]]), np.array([-1.0, 1.0, 1.0])
    >>> solution = solve_linear(X, y, 10.0, loss="hinge", penalize_intercept=False, tol=1e-8)
    >>> solution.w.round(4).tolist(), round(solution.b, 4), solution.certificate.status
    ([1.3333], 0.3333, 'optimal')
    """
    tol, max_iter, time_limit = check_run_arguments(tol, max_iter, time_limit, callback)
    choice(loss, "loss", LOSSES)
    choice(penalty, "penalty", ("l2", "l1"))
    s = number(intercept_scaling, "intercept_scaling", positive=True) if intercept else 0.0
    if penalty == "l1" and not loss.startswith("squared"):
        raise ValueError(f"penalty 'l1' needs a squared loss, got {loss!r}; use 'squared_hinge' or penalty 'l2'.")
    if number(epsilon, "epsilon") < 0:
        raise ValueError(f"epsilon must be at least 0, got {epsilon!r}.")
    rows = as_rows(X, s)
    targets, costs = _check_targets(y, rows.n, signs=loss.endswith("hinge")), check_C(C, rows.n)
    if not loss.endswith("hinge"):
        _check_loss(targets, costs, float(epsilon), 2 if loss.startswith("squared") else 1)
    free = bool(intercept) and not penalize_intercept
    problem = LinearProblem(rows, targets, costs, loss=loss, penalty=penalty, epsilon=epsilon, free=free)
    u, z = _start(problem, start)
    with shown(callback, tol, verbose) as report:
        (_, u, z), stopped, n_iter, trace, algorithm = run_stages(
            _stages(problem, u, z, tol, count(seed, "seed")),
            problem.measure,
            zero=(np.zeros(rows.d + 1), np.zeros(rows.n)),
            tol=tol,
            max_iter=max_iter,
            time_limit=time_limit,
            callback=report,
            final=("refinement", lambda best, most: _refine(problem, *best[1:])) if rows.is_small else None,
        )
    b = float(u[-1]) if s else None

    def certify() -> Certificate:
        return problem.certificate(u, z, tol)

    return LinearSolution(u[:-1].copy(), b, z, stopped, n_iter, trace, algorithm, certify, s, problem.C)


def _stages(problem: LinearProblem, u: Array, z: Array, tol: float, seed: int) -> list[Stage]:
    """Return the algorithms for a problem, in order."""
    n, d = problem.rows.n, problem.rows.d

    def newton(best: Best | None, most: float) -> Points:
        return primal_newton(problem, u if best is None else best[1], tol=tol)

    def descent(best: Best | None, most: float, visits: float = np.inf) -> Points:
        return coordinate_descent(problem, z, tol=tol, seed=seed, most=most, visits=visits)

    def interior(best: Best | None, most: float) -> Points:
        return interior_point(problem)

    def refinement(best: Best | None, most: float) -> Points:
        assert best is not None
        return refine_active_set(problem, *best[1:])

    if problem.penalty == "l1":
        if d <= MAX_FORMED:
            return [("proximal newton", lambda best, most: proximal_newton(problem, u))]

        def columns(best: Best | None, most: float) -> Points:
            assert best is not None
            return column_descent(problem, best[1], tol=tol, seed=seed, most=most)

        return [("working sets", lambda best, most: working_sets(problem, u)), ("column descent", columns)]
    if problem.squared:
        if n >= d or problem.free:
            return [("newton", newton)]
        return [("coordinate descent", lambda best, most: descent(best, most, 3 * SLOW_VISITS)), ("newton", newton)]
    if min(n, d) <= MAX_INTERIOR:
        exact = [("interior point", interior), ("refinement", refinement)]
        if problem.free:
            return exact
        return [("coordinate descent", lambda best, most: descent(best, most, SLOW_VISITS)), *exact]
    if problem.free:
        b = float(u[-1])
        return [("multipliers", lambda best, most: multiplier_descent(problem, z, b, tol=tol, seed=seed, most=most))]
    return [("coordinate descent", descent)]


def _refine(problem: LinearProblem, u: Array, z: Array) -> Points:
    """Continue to machine precision, which takes milliseconds for a small problem."""
    if problem.penalty == "l1":
        yield from proximal_newton(problem, u) if problem.rows.d <= MAX_FORMED else working_sets(problem, u)
    elif problem.squared:
        yield from primal_newton(problem, u, tol=0.0)
    elif not (yield from refine_active_set(problem, u, z)):
        best, least = (u, z), np.inf
        for point in interior_point(problem):
            measure = problem.measure(*point[1:3])[0]
            best, least = (point[1:3], measure.violation) if measure.violation < least else (best, least)
            yield point
        yield from refine_active_set(problem, *best)


def _start(problem: LinearProblem, start: LinearSolution | ArrayLike | None) -> tuple[Array, Array]:
    """Return the first u and z: those of a solution, with z scaled as C; or u from given weights."""
    rows = problem.rows
    u, z = np.zeros(rows.d + 1), np.zeros(rows.n)
    if start is None:
        return u, z
    if isinstance(start, LinearSolution):
        w = np.append(start.w, 0.0 if start.b is None else start.b)
        if start.dual is not None and start.dual.shape == z.shape and problem.penalty == "l2":
            assert start.C is not None
            scale = np.divide(problem.C, start.C, out=np.zeros(rows.n), where=start.C > 0)
            z = start.dual if problem.squared else start.dual * scale
            z = np.clip(z, problem.lower, problem.upper)
    else:
        w = np.asarray(start, dtype="float64")
    if w.ndim != 1 or len(w) not in (rows.d, rows.d + 1) or not np.isfinite(w).all():
        raise ValueError(f"start must be a LinearSolution or {rows.d} finite weights, got the shape {w.shape}.")
    u[: len(w)] = w
    if not rows.s:
        u[-1] = 0.0
    return u, z


def as_rows(X: Any, s: float) -> Rows:
    """Return X as `Rows` with the constant feature s; `Rows` that have it already are not copied."""
    return X if isinstance(X, Rows) and X.s == s else Rows(X.X if isinstance(X, Rows) else X, s)


def _check_targets(y: ArrayLike, n: int, *, signs: bool) -> Array:
    """Return the targets, or labels -1 and +1, one per point; raise for others."""
    targets = np.asarray(y, dtype="float64")
    if targets.shape != (n,):
        raise ValueError(f"y must be {n} finite numbers, one per point, got the shape {targets.shape}.")
    if not np.isfinite(targets).all():
        raise ValueError("y must be finite, got a target that is infinite or not a number.")
    if signs and not np.isin(targets, (-1.0, 1.0)).all():
        raise ValueError("y must hold the labels -1 and +1; symsvm.data.signs turns any two labels into them.")
    return targets


def check_C(C: ArrayLike, n: int) -> Array:
    """Return C, a number or one per point; raise if one is negative or out of the range of float64, or if all are 0."""
    costs = np.asarray(C, dtype="float64")
    if costs.shape not in ((), (n,)) or not (np.isfinite(costs).all() and (costs >= 0).all() and (costs > 0).any()):
        raise ValueError(f"C must be a positive number, or {n} numbers of at least 0 and not all 0.")
    least, most, tiny = float(costs[costs > 0].min()), float(costs.max()), float(np.finfo("float64").tiny)
    if least < tiny:  # 1 / C, the curvature of a squared loss in the dual, is infinite
        raise ValueError(f"C, times the weight of a point, must be at least {tiny:.2g}, got {least:.2g}. Raise C.")
    if most > np.finfo("float64").max / (2 * n):
        raise ValueError(f"C, times the weight of a point, is {most:.2g}: {n} losses exceed float64. It must be less.")
    return costs


def _check_loss(t: Array, C: Array, epsilon: float, power: int) -> None:
    """Raise if the loss of the targets at w = 0 is beyond float64."""
    with np.errstate(over="ignore"):
        sizes = np.abs(t)
        total = float(np.sum(C * np.maximum(sizes - epsilon, 0.0) ** power)), float(sizes.sum())
    if not np.isfinite(total).all():
        found = f"y has targets of up to {sizes.max():.3g}, and C is up to {np.max(C):.3g}"
        raise ValueError(f"{found}: the loss at w = 0 exceeds the range of float64. Scale the targets or lower C.")
