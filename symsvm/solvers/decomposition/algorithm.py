"""The decomposition: the fast exact solver, over blocks and products of a kernel matrix, without a cache of rows.

    z feasible; G = K z
    repeat:
        measure the violation of optimality over the active variables
        if it is within tol: reconstruct the gradient of shrunk variables, refine the free ones,
            confirm the violation in float64, stop
        shrink: drop variables that are safely at a bound
        W = all free variables, and on each side violators, half of them the worst and half at random
        solve for z_W on K_WW, of which only the rows of new members are computed
        G += K[:, W] (change of z_W)

The block K_WW and the product in the last line are the two operations of a `KernelMatrix`. They are computed in float32
until the error of G exceeds the violation; then the precision is raised. A run stops at a violation that was confirmed
in float64.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from symsvm._lib.blas import SingleThreadedBlas
from symsvm.objectives.certificate import rounding_error
from symsvm.solvers.decomposition.parameters import DEFAULTS, Parameters
from symsvm.solvers.decomposition.refinement import refine
from symsvm.solvers.decomposition.state import Check, State
from symsvm.solvers.solution import Info

if TYPE_CHECKING:
    from collections.abc import Callable

    from symsvm._lib.types import Array
    from symsvm.evaluation.kernel_matrix import KernelMatrix
    from symsvm.objectives import QuadraticProgram
    from symsvm.solvers.checkpoint import Checkpoint
    from symsvm.solvers.decomposition.working_set import WorkingSetReuse

__all__ = ["Result", "SingleThreadedBlas", "decompose"]

# Variables of a problem that is solved in one call, which no interrupt ends.
_SMALL = 1280


@dataclass(frozen=True)
class Result:
    """The end of a decomposition.

    Attributes
    ----------
    z, Kz : the point, and K z.
    stopped : why it ended: `tol`, `max_iter`, `time_limit`, `callback`, `interrupt`, `stalled` (no further progress is
        possible at float64 precision, though the violation exceeds tol) or `diverged` (the next W would not be finite,
        for a kernel that is indefinite or not finite; z is the last point before).
    n_iter, steps : outer iterations and steps of SMO.
    trace : a list of `Info`, one for each iteration.
    size : the largest |K_ii| of all variables that were solved for, 0 if it is not known.
    is_snapped : whether no variable is off its bound by rounding alone.
    most_violation : a bound of the violation at z for any other order of the sums; infinite where none is known.
    """

    z: Array
    Kz: Array
    stopped: str
    n_iter: int
    steps: int
    trace: list[Info]
    is_snapped: bool = False
    most_violation: float = np.inf
    size: float = 0.0


@dataclass(frozen=True)
class _Limits:
    """What ends a run before its tolerance."""

    tol: float
    max_iter: int | None
    deadline: float  # of time.perf_counter
    callback: Callable[[Info], object] | None
    checkpoint: Checkpoint | None = None


def decompose(
    qp: QuadraticProgram,
    matrix: KernelMatrix,
    *,
    tol: float = 1e-3,
    start: Array | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    callback: Callable[[Info], object] | None = None,
    seed: int = 0,
    pairs: str | None = None,
    parameters: Parameters = DEFAULTS,
    reuse: WorkingSetReuse | None = None,
    checkpoint: Checkpoint | None = None,
) -> Result:
    """Solve a `QuadraticProgram` over the kernel matrix of its points.

    Parameters
    ----------
    tol : the largest KKT violation to accept, as LIBSVM defines it, in float64.
    start : a z to begin near.
    max_iter, time_limit : the most outer iterations and seconds.
    callback : a function of an `Info`; a true value stops.
    seed, pairs, parameters : see `Decomposition`.
    reuse : hands the working set from one program to the next over the same points.
    checkpoint : writes the point to a file from time to time.
    """
    began = time.perf_counter()
    limits = _Limits(tol, max_iter, np.inf if time_limit is None else began + time_limit, callback, checkpoint)
    if pairs is None and (result := _decompose_small(qp, matrix, start, parameters, limits, began)) is not None:
        return result
    # Threads of BLAS would compete with Numba's. Values that are not finite are handled here.
    with SingleThreadedBlas(), np.errstate(over="ignore", invalid="ignore"):
        state = State(qp, matrix, start, seed, pairs, parameters, reuse, limits.deadline)
        trace: list[Info] = []
        try:
            stopped = _iterate(state, limits, began, trace)
            state.reconstruct_gradient()
            if stopped != "tol" and (state.is_whole or not state.is_feasible()):
                state.finish()
            if reuse is not None:
                reuse.working = state.working
            else:
                state.working.release()
        except KeyboardInterrupt:
            if not trace:
                raise
            stopped = "interrupt"
            if reuse is not None:
                reuse.working = None
            state.recompute_gradient()  # the interrupt may have come between z and K z
        result = Result(state.z, state.Kz, stopped, state.n_iter, state.steps, trace, size=state.size)
        state.vectors.close()
        return result


def _decompose_small(
    qp: QuadraticProgram,
    matrix: KernelMatrix,
    start: Array | None,
    parameters: Parameters,
    limits: _Limits,
    began: float,
) -> Result | None:
    """Solve a small problem in one call; None if it is not small, or if the call has not solved it."""
    dense = getattr(matrix, "dense", None)
    if dense is None or not matrix.is_exact or len(qp.total) > 1 or qp.n > min(parameters.whole, _SMALL):
        return None
    from symsvm.solvers.decomposition.small_problem import FIELDS, minimise  # Numba is loaded when it is first needed

    entries = matrix.entries
    K, points = dense()
    if K is None:
        return None
    p, first, found = parameters, qp.start(start), np.empty(FIELDS)
    bounds = qp.p, qp.lower, qp.upper, qp.diagonal, qp.group, qp.total
    rounds = p.rounding, p.refine_rounds, p.refine_cost
    slack = rounding_error(1.0, qp.n, "float64") if len(qp.total) else 0.0
    seconds = time.perf_counter() - began  # a solution that is there is not given up for a limit
    z, Kz, before = minimise(K, points, *bounds, first, limits.tol, p.aim_whole, slack, *rounds, found)
    W, violation, gap, free, bounded, W_z, violation_z, gap_z, free_z, bounded_z, done, is_off, steps, size = (
        found.tolist()
    )
    if not done:
        return None
    rows, trace = (matrix.entries - entries) / qp.m, []
    error = 4 * sys.float_info.epsilon * qp.n * size * float(np.abs(z).sum())
    n_iter = int(violation > limits.tol)
    end = Result(z, Kz, "tol", n_iter, int(steps), trace, not is_off, violation_z + error)
    stopped = None
    try:
        if n_iter:
            trace.append(Info(0, seconds, W, violation, gap, int(free), int(bounded), rows))
            stopped = _reached(limits, Check.ABOVE, trace[-1], began)
        if stopped is None:
            count = int(free_z), int(bounded_z)
            trace.append(Info(n_iter, time.perf_counter() - began, W_z, violation_z, gap_z, *count, rows))
            _reached(limits, Check.WITHIN, trace[-1], began)
    except KeyboardInterrupt:
        if not trace:
            raise
        stopped = "interrupt"
    if stopped is None:
        return end
    return replace(end, stopped=stopped) if len(trace) > n_iter else Result(first, before, stopped, 0, 0, trace)


def _iterate(state: State, limits: _Limits, began: float, trace: list[Info]) -> str:
    """Iterate until a limit is reached or no progress is possible; return which."""
    tol = limits.tol
    while True:
        state.measure()
        if state.is_late:  # no time for the first product: the run ends where it began
            trace.append(state.info(time.perf_counter() - began))
            return _reached(limits, Check.ABOVE, trace[-1], began) or "time_limit"
        if state.violation <= tol and state.active.is_shrunk:
            state.reconstruct_gradient()
            continue
        if state.violation <= tol and not state.is_refined:
            refine(state, tol)
            continue
        check = state.check(tol)
        if check is Check.RECOMPUTED:
            continue
        trace.append(state.info(time.perf_counter() - began))
        if (stopped := _reached(limits, check, trace[-1], began)) is not None:
            return stopped
        if state.is_exact and not state.make_progress(tol):
            return "stalled"
        if state.is_exact and state.violation <= tol:
            continue  # the best point, which it returned to, is within tol
        state.shrink()
        changed = state.solve_working_set(tol, limits.deadline)
        if limits.checkpoint is not None:
            limits.checkpoint.note(state.z, state.n_iter)
        if not state.is_finite():
            if not state.restore_best():
                return "diverged"
        elif changed or time.perf_counter() >= limits.deadline:
            continue
        elif not state.is_exact:  # nothing to improve in float32
            state.recompute_gradient()
            state.raise_precision()
        elif not state.raise_precision():
            return "stalled"


def _reached(limits: _Limits, check: Check, info: Info, began: float) -> str | None:
    """The limit that an iteration has reached, None if there is none; the callback is called in any case."""
    stopped = None
    if check is Check.WITHIN:
        stopped = "tol"
    elif limits.max_iter is not None and info.iteration >= limits.max_iter:
        stopped = "max_iter"
    elif info.seconds + began >= limits.deadline:
        stopped = "time_limit"
    if limits.callback is not None and limits.callback(info) and stopped is None:
        stopped = "callback"
    return stopped
