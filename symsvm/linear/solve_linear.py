"""solve_linear: large linear support vector machines by the algorithm that suits loss, penalty and shape.

    (P)   minimise  R(w, b) + sum_i C_i loss(y_i, x_i.w + s b)

    penalty  loss                       shape                      algorithm, and why
    l2       squared                    n >= d, or b free          Newton: some ten passes, whatever C is
    l2       squared                    n < d                      coordinate descent: cheap where rows are nearly
                                                                   orthogonal, as of texts; Newton if it is slow
    l2       hinge, epsilon-insens.     min(n, d) <= 1000          coordinate descent; if it is slow, the interior-point
                                                                   method: exact, whatever C is; at once if b is free
    l2       hinge, epsilon-insens.     both larger                coordinate descent, with multipliers for a free b, in
                                                                   turn with conjugate gradients on the face of z
    l1       squared                    d <= 500                   Newton with a quadratic model of d features
    l1       squared                    d > 500                    the same for sets of features, while they are few;
                                                                   then coordinate descent over the columns

`tol` bounds both the largest violation of the optimality conditions, in the unit of margins (of targets: of their mean
size), and the gap P - D as a share of P; see `symsvm.linear.linear_problem`. LIBLINEAR compares the same violation with
its tolerance in the dual; Newton's method goes on until LIBLINEAR's condition on the gradient holds as well.
"""

import numpy as np

from symsvm._lib.validation import choice, count, number
from symsvm.linear.coordinate_descent import descend, descend_free
from symsvm.linear.interior_point import INTERIOR, interior_point
from symsvm.linear.linear_problem import LOSSES, LinearProblem
from symsvm.linear.linear_solution import LinearSolution, follow
from symsvm.linear.newton import FORMED, newton
from symsvm.linear.polish import polish
from symsvm.linear.rows import Rows
from symsvm.linear.sparse_weights import column_descent, proximal_newton
from symsvm.linear.working_sets import working_sets
from symsvm.solvers.program import check_run_arguments

__all__ = ["solve_linear"]

SLOW = 100  # visits to each point after which coordinate descent makes way, where something else can follow


def solve_linear(
    X,
    y,
    C,
    *,
    loss,
    penalty="l2",
    epsilon=0.0,
    intercept=True,
    penalize_intercept=True,
    intercept_scaling=1.0,
    tol=1e-4,
    max_iter=None,
    time_limit=None,
    callback=None,
    start=None,
    seed=0,
):
    """Minimise R(w, b) + sum_i C_i loss(y_i, x_i.w + s b) and return a `LinearSolution`; see the head of this file.

    Parameters
    ----------
    X : (n, d), dense or sparse (CSR is read as it is), float32 or float64; or `Rows`, made before for many runs.
    y : labels -1 and +1 for the hinge losses, targets for the others.
    C : C_i = C times weight, a number or one a point; a point of 0 has no part.
    loss : "hinge", "squared_hinge", "epsilon_insensitive" or "squared_epsilon_insensitive".
    penalty : "l2", R = 1/2 |w|^2, or "l1", R = |w|_1 (squared losses only).
    epsilon : the tube of the insensitive losses.
    intercept, penalize_intercept, intercept_scaling : whether there is b, whether it is in R as a weight is, and s.
    tol : see the head of this file.
    max_iter, time_limit : the most passes or Newton steps, and the most seconds, looked at between passes.
    callback : a function of an `Info`; a true return value stops the run.
    start : a `LinearSolution` of the same points, perhaps for another C, or u = (w, b), or w.
    seed : of the order of the points; the same seed gives the same bits.

    >>> X, y = np.array([[-1.0], [0.5], [2.0]]), np.array([-1.0, 1.0, 1.0])
    >>> solution = solve_linear(X, y, 10.0, loss="hinge", penalize_intercept=False, tol=1e-8)
    >>> solution.w.round(4).tolist(), round(solution.b, 4), solution.certificate.status
    ([1.3333], 0.3333, 'optimal')
    """
    tol, max_iter, time_limit = check_run_arguments(tol, max_iter, time_limit, callback)
    choice(loss, "loss", LOSSES), choice(penalty, "penalty", ("l2", "l1"))
    s = number(intercept_scaling, "intercept_scaling", positive=True) if intercept else 0.0
    if penalty == "l1" and not loss.startswith("squared"):
        raise ValueError(f"penalty 'l1' needs a squared loss, got {loss!r}; use 'squared_hinge' or penalty 'l2'.")
    if number(epsilon, "epsilon") < 0:
        raise ValueError(f"epsilon must be at least 0, got {epsilon!r}.")
    rows = X if isinstance(X, Rows) and X.s == s else Rows(X.X if isinstance(X, Rows) else X, s)
    y, C = checked_targets(y, rows.n, signs=loss.endswith("hinge")), checked_C(C, rows.n)
    free = bool(intercept) and not penalize_intercept
    problem = LinearProblem(rows, y, C, loss=loss, penalty=penalty, epsilon=epsilon, free=free)
    u, z = _start(problem, start)
    stages = _stages(problem, u, z, tol, count(seed, "seed"))
    options = {"tol": tol, "max_iter": max_iter, "time_limit": time_limit, "callback": callback}
    options["last"] = ("polish", lambda best, most: _last(problem, *best[1:])) if rows.small else None
    (_, u, z), stopped, n_iter, trace, algorithm = follow(stages, problem.measure, **options)
    b = float(u[-1]) if s else None

    def certify():
        return problem.certificate(u, z, tol)

    return LinearSolution(u[:-1].copy(), b, z, stopped, n_iter, trace, algorithm, certify, s, problem.C)


def _stages(problem, u, z, tol, seed):
    """The algorithms for a problem, in order, as `follow` takes them."""
    n, d = problem.rows.n, problem.rows.d

    def newtons(best, most):
        return newton(problem, u if best is None else best[1], tol=tol)

    def descent(best, most, visits=np.inf):
        return descend(problem, z, tol=tol, seed=seed, most=most, visits=visits)

    def interior(best, most):
        return interior_point(problem)

    if problem.penalty == "l1":
        if d <= FORMED:
            return [("proximal newton", lambda best, most: proximal_newton(problem, u))]

        def columns(best, most):
            return column_descent(problem, best[1], tol=tol, seed=seed, most=most)

        return [("working sets", lambda best, most: working_sets(problem, u)), ("column descent", columns)]
    if problem.squared:
        if n >= d or problem.free:
            return [("newton", newtons)]
        return [("coordinate descent", lambda best, most: descent(best, most, 3 * SLOW)), ("newton", newtons)]
    if min(n, d) <= INTERIOR:
        exact = [("interior point", interior), ("polish", lambda best, most: polish(problem, *best[1:]))]
        if problem.free:
            return exact
        return [("coordinate descent", lambda best, most: descent(best, most, SLOW)), *exact]
    if problem.free:
        b = float(u[-1])
        return [("multipliers", lambda best, most: descend_free(problem, z, b, tol=tol, seed=seed, most=most))]
    return [("coordinate descent", descent)]


def _last(problem, u, z):
    """Go on until rounding leaves no step: for problems so small that nobody waits for it."""
    if problem.penalty == "l1":
        yield from proximal_newton(problem, u) if problem.rows.d <= FORMED else working_sets(problem, u)
    elif problem.squared:
        yield from newton(problem, u, tol=0.0)
    elif not (yield from polish(problem, u, z)):
        best, least = (u, z), np.inf
        for point in interior_point(problem):
            measure = problem.measure(*point[1:3])[0]
            best, least = (point[1:3], measure.violation) if measure.violation < least else (best, least)
            yield point
        yield from polish(problem, *best)


def _start(problem, start):
    """u and z to begin with: those of a solution, z scaled with C; or of given weights."""
    rows = problem.rows
    u, z = np.zeros(rows.d + 1), np.zeros(rows.n)
    if start is None:
        return u, z
    if isinstance(start, LinearSolution):
        w = np.append(start.w, 0.0 if start.b is None else start.b)
        if start.dual is not None and start.dual.shape == z.shape and problem.penalty == "l2":
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


def checked_targets(y, n, *, signs):
    """Targets, or labels -1 and +1, one a point."""
    y = np.asarray(y, dtype="float64")
    if y.shape != (n,) or not np.isfinite(y).all():
        raise ValueError(f"y must be {n} finite numbers, one a point, got the shape {y.shape}.")
    if signs and not np.isin(y, (-1.0, 1.0)).all():
        raise ValueError("y must hold the labels -1 and +1; symsvm.data.signs turns any two labels into them.")
    return y


def checked_C(C, n):
    """C, a number or one a point."""
    C = np.asarray(C, dtype="float64")
    if C.shape not in ((), (n,)) or not (np.isfinite(C).all() and (C >= 0).all() and (C > 0).any()):
        raise ValueError(f"C must be a positive number, or {n} numbers of at least 0 and not all 0.")
    return C
