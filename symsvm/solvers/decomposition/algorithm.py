"""The decomposition: the fast exact solver, over a kernel oracle and without a cache of rows.

    z feasible; G = K z
    repeat:
        the violation of optimality over the variables in play
        if it is within tol: bring all into play, then have float64 confirm it; stop if it does
        now and then put out of play what stands firm at a bound
        W = all free variables, and on each side some that violate optimality: half the worst, half at random
        solve for z_W by SMO on K_WW, of which only the rows of newcomers are computed
        G += K[:, W] (what z_W changed by)

The two operations on the kernel, a block K_WW and the product in the last line, are those of a
`KernelMatrix`. They run in float32 until float64 finds that they have gone astray; nothing is
believed that float64 has not confirmed.
"""

import functools
import threading
import time
from dataclasses import dataclass

import numpy as np
from threadpoolctl import ThreadpoolController

from symsvm.solvers.decomposition.refinement import polish
from symsvm.solvers.decomposition.state import State

__all__ = ["Result", "decompose"]


@dataclass(frozen=True)
class Result:
    """Where a decomposition ended.

    Attributes
    ----------
    z, Kz : the point, and K z.
    stopped : why it ended: `tol`, `max_iter`, `time_limit`, `callback`, `interrupt`, `stalled` (no step makes anything
        better any more, though the violation exceeds tol: what rounding leaves) or `diverged` (the next W would not be
        finite, for a kernel that is indefinite or has such values; z is the last point before).
    n_iter, steps : outer iterations and steps of SMO.
    trace : a list of `Info`, one an iteration.
    """

    z: np.ndarray
    Kz: np.ndarray
    stopped: str
    n_iter: int
    steps: int
    trace: list


def decompose(qp, gram, *, tol=1e-3, start=None, max_iter=None, time_limit=None, callback=None, seed=0, pairs=None):
    """Solve a `QuadraticProgram` over the `LocalKernelMatrix` of its points.

    Parameters
    ----------
    tol : the largest KKT violation to accept, as LIBSVM means it, in float64.
    start : a z to begin near.
    max_iter, time_limit : the most outer iterations and seconds.
    callback : a function of an `Info`; a true value stops.
    seed, pairs : see `Decomposition`.
    """
    # Threads of BLAS would wait in the way of Numba's; what is not finite is seen to here.
    with _OneThread(), np.errstate(over="ignore", invalid="ignore"):
        began = time.perf_counter()
        state = State(qp, gram, start, seed, pairs)
        return _decompose(qp, gram, tol, state, max_iter, time_limit, callback, began)


class _OneThread:
    """One thread for BLAS while any run is under way; the last of them to end gives back what the first one found."""

    lock, runs, limits = threading.Lock(), 0, None

    def __enter__(self):
        with self.lock:
            if not _OneThread.runs:
                _OneThread.limits = _blas().limit(limits=1, user_api="blas")
            _OneThread.runs += 1

    def __exit__(self, *error):
        with self.lock:
            _OneThread.runs -= 1
            if not _OneThread.runs:
                _OneThread.limits.restore_original_limits()


@functools.cache
def _blas():
    return ThreadpoolController()


def _decompose(qp, gram, tol, state, max_iter, time_limit, callback, began):
    deadline = np.inf if time_limit is None else began + time_limit
    trace, stopped, n_iter = [], None, 0
    try:
        while True:
            reached = state.violation() <= tol
            if reached and len(state.play) < qp.n:
                state.catch_up()
                continue
            if reached and not state.is_polished:
                polish(state, tol)
                continue
            if (reached and not state.is_exact and not (reached := state.trusted(tol))) and state.is_exact:
                continue  # float64 has computed it
            if state.doubtful() if reached else state.astray():
                state.confirm()
                continue
            trace.append(state.info(n_iter, time.perf_counter() - began))
            if reached:
                stopped = "tol"
            elif max_iter is not None and n_iter >= max_iter:
                stopped = "max_iter"
            elif trace[-1].seconds + began >= deadline:
                stopped = "time_limit"
            if callback is not None and callback(trace[-1]) and stopped is None:
                stopped = "callback"
            if stopped is None and state.is_exact:
                if not state.watch(tol):
                    stopped = "stalled"
                elif state.worst <= tol:
                    continue  # what it went back to is within tol
            if stopped is not None:
                break
            state.shrink()
            n_iter += 1
            changes = state.improve(tol, deadline)
            if not np.isfinite(state.W) or not np.isfinite(state.Kz.sum()):
                if not state.recover():
                    stopped = "diverged"
                    break
            elif changes or time.perf_counter() >= deadline:
                continue
            elif not state.is_exact:
                state.confirm()  # float32 sees nothing to do; what does float64 see?
                state.sharpen()
            elif not state.sharpen():
                stopped = "stalled"
                break
        state.catch_up()
        if stopped != "tol" and (state.is_whole or not state.is_feasible()):
            state.settle()
        gram.kept = state.working if gram.keeps else None
    except KeyboardInterrupt:
        if not trace:
            raise
        stopped, gram.kept = "interrupt", None
        state.confirm()  # it may have been between z and K z
    return Result(state.z, state.Kz, stopped, n_iter, state.steps, trace)
