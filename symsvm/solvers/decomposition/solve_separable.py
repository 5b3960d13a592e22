"""The solution of a quadratic program with a separable smooth convex term, over a kernel matrix.

    minimise 1/2 z.(K + D) z + p.z + sum_i phi_i(z_i)    subject to    lower <= z <= upper,    sum over g = total_g

Two methods share the loop here. `ConjugateNewton` is for a strictly convex phi that keeps variables off their bounds,
as the entropy of kernel logistic regression does: all variables are free. `SequentialQuadratic` is for every other phi,
with many variables at bounds, and takes over where the first ends.

References
----------
S. S. Keerthi, K. B. Duan, S. K. Shevade, A. N. Poo, A fast dual algorithm for kernel logistic regression, Machine
Learning 61 (2005): the dual in lam, and its optimality conditions.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from symsvm._lib.interrupts import is_interrupt
from symsvm.compiler.lifting import MEMORY
from symsvm.objectives.separable_program import SeparableProgram
from symsvm.solvers.convergence import ProgressBar, warn_not_converged
from symsvm.solvers.decomposition.algorithm import SingleThreadedBlas
from symsvm.solvers.decomposition.conjugate_newton import ConjugateNewton
from symsvm.solvers.decomposition.diagnosis import diagnosis
from symsvm.solvers.decomposition.dual_program import starting_point
from symsvm.solvers.decomposition.newton_equations import KernelProducts
from symsvm.solvers.decomposition.parameters import DEFAULTS, Parameters
from symsvm.solvers.decomposition.sequential_quadratic import SequentialQuadratic
from symsvm.solvers.program import check_run_arguments
from symsvm.solvers.solution import Info, Solution, collect_trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array
    from symsvm.evaluation.kernel_matrix import KernelMatrix
    from symsvm.objectives import QuadraticProgram
    from symsvm.objectives.separable import SeparableTerm

__all__ = ["solve_separable"]

# Iterations without progress after which the precision is raised, the method changed, or the run ended.
_PATIENCE = 4


def solve_separable(
    program: QuadraticProgram,
    phi: SeparableTerm,
    matrix: KernelMatrix,
    factor: float | Array = 1.0,
    *,
    is_psd: bool | None = None,
    start: ArrayLike | Solution | None = None,
    tol: float = 1e-3,
    max_iter: int | None = None,
    time_limit: float | None = None,
    callback: Callable[[Info], object] | None = None,
    verbose: int = 0,
    seed: int = 0,
    parameters: Parameters = DEFAULTS,
    memory: int | None = None,
) -> Solution:
    """Solve a `QuadraticProgram` with a separable term over the kernel matrix of its points; lam = factor z.

    Parameters
    ----------
    program, phi : the quadratic terms and constraints, and the separable term, a function of z.
    start : a lam to begin near, or a `Solution`, which may be for other bounds or for fewer points.
    seed : of the columns of K in the preconditioner; the same seed gives the same bits.
    memory : the bytes that K may take, 1 GiB by default; where it takes more, it is computed by tiles for each product.
    The others are those of `solve_dual`. An iteration is a Newton step.
    """
    tol, max_iter, time_limit = check_run_arguments(tol, max_iter, time_limit, callback)
    bar = ProgressBar(tol) if verbose else None

    def report(info: Info) -> bool:
        if bar is not None:
            bar.show(info)
        return callback is not None and bool(callback(info))

    near = starting_point(program, None if start is None else getattr(start, "lam", start), factor)
    run = _Run(SeparableProgram(program, phi), matrix, seed, parameters, MEMORY if memory is None else memory)
    try:
        # Threads of BLAS would compete with Numba's.
        with SingleThreadedBlas(), np.errstate(over="ignore", invalid="ignore"):
            result = run.run(program.start(near), _Limits(tol, max_iter, time_limit, report), is_psd is not False)
    finally:
        if bar is not None:
            bar.close()
    z, Kz, whole = result.z, result.Kz, run.program
    b, violation = whole.multipliers(whole.gradient(Kz, z), z)
    if result.stopped != "tol":
        n_iter = len(result.trace) - 1
        was_tried = result.stopped != "interrupt" or n_iter > 0
        trouble = diagnosis(program, matrix, is_psd, z, tol) if was_tried else []
        advice = [sentence[0].upper() + sentence[1:] for sentence in trouble]
        warn_not_converged(result.stopped, n_iter, f"a violation of {violation:.2g}, above tol={tol:g}", advice)
    b = (b if len(b) > 1 else float(b[0])) if len(b) else None
    lam, trace = factor * z, collect_trace(result.trace)
    return Solution(
        lam,
        b,
        lam,
        result.stopped,
        len(result.trace) - 1,
        trace,
        lambda: whole.certificate(Kz, z, tol=tol, is_psd=is_psd),
        program,
    )


class _Limits(NamedTuple):
    """What ends a run."""

    tol: float
    max_iter: int | None
    time_limit: float | None
    report: Callable[[Info], bool]


class _Result(NamedTuple):
    """The end of a run: the point, K z in float64 from the data, why it ended, an `Info` for each iteration."""

    z: Array
    Kz: Array
    stopped: str
    trace: list[Info]


class _Run:
    """One run: its method, which may change, and what it has reached."""

    def __init__(self, program: SeparableProgram, matrix: KernelMatrix, seed: int, parameters: Parameters, memory: int):
        self.program, self.trace = program, []
        self._products = KernelProducts(matrix, memory, parameters.whole)
        self._options = self._products, parameters, seed
        self._entries_before = matrix.entries
        self._best, self._least, self._idle = np.inf, np.inf, 0  # the least violation and the least W, steps in vain
        self._reached: tuple[Array, Array | None]

    def run(self, start: Array, limits: _Limits, may_be_convex: bool) -> _Result:
        """Iterate from a feasible point until a limit is reached."""
        began, self._reached = time.perf_counter(), (start, None)
        try:
            make = ConjugateNewton if may_be_convex and self.program.is_barrier() else SequentialQuadratic
            self._method = make(self.program, *self._options, start)
            stopped = self._iterate(limits, began)
        except (KeyboardInterrupt, SystemError) as error:
            if not self.trace or not is_interrupt(error):
                raise
            stopped = "interrupt"
        z, Kz = self._reached
        if Kz is None:
            Kz = self._products.exact(self.program.quadratic.weights(z))
        return _Result(z, Kz, stopped, self.trace)

    def _iterate(self, limits: _Limits, began: float) -> str:
        tol, program = limits.tol, self.program
        deadline = np.inf if limits.time_limit is None else began + limits.time_limit
        while True:
            method = self._method
            F = program.gradient(method.Kz, method.z)
            b, violation = program.multipliers(F, method.z)
            if violation <= tol and not method.is_exact:
                method.confirm()
                continue
            self.trace.append(self._info(method, violation, b, time.perf_counter() - began))
            info, stopped = self.trace[-1], None
            if info.W <= self._least or violation <= tol:  # the point to return; first steps may make it worse
                self._reached, self._least = (method.z, method.Kz if method.is_exact else None), info.W
            if not (np.isfinite(info.W) and np.isfinite(violation)):
                stopped = "diverged"
            elif violation <= tol:
                stopped = "tol"
            elif limits.max_iter is not None and info.iteration >= limits.max_iter:
                stopped = "max_iter"
            elif time.perf_counter() >= deadline:
                stopped = "time_limit"
            if limits.report(info) and stopped is None:
                stopped = "callback"
            if stopped is not None:
                return stopped
            if not self._advance(method, tol, violation, deadline):
                return "stalled"

    def _advance(self, method: ConjugateNewton | SequentialQuadratic, tol: float, violation: float, end: float) -> bool:
        """Take a step; where there is none or no progress, in float64, in higher precision or by the other method."""
        falls = violation < 0.9 * self._best
        self._idle = 0 if falls or method.has_progressed else self._idle + 1
        self._best = min(self._best, violation)
        if self._idle < _PATIENCE and method.advance(tol, violation, end):
            return True
        self._idle = 0
        while True:
            if not method.raise_precision():
                if isinstance(method, SequentialQuadratic):
                    return False
                self._method = method = SequentialQuadratic(self.program, *self._options, method.z)
                self._best = np.inf
            if method.advance(tol, violation, end):
                return True

    def _info(self, method: ConjugateNewton | SequentialQuadratic, violation: float, b: Array, seconds: float) -> Info:
        program, qp, z = self.program, self.program.quadratic, method.z
        inside = (z > qp.lower) & (z < qp.upper)
        free, bounded = int(np.count_nonzero(inside)), int(np.count_nonzero(~inside & (z != 0)))
        rows = (self._products.matrix.entries - self._entries_before) / qp.m
        W, gap = program.value(method.Kz, z), program.gap(method.Kz, z, b)
        return Info(len(self.trace), seconds, W, violation, gap, free, bounded, rows)
