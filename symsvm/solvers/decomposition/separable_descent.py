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

from symsvm._lib.blas import SingleThreadedBlas
from symsvm._lib.interrupts import is_interrupt
from symsvm.solvers.decomposition.algorithm import Result
from symsvm.solvers.decomposition.conjugate_newton import ConjugateNewton
from symsvm.solvers.decomposition.newton_equations import KernelProducts
from symsvm.solvers.decomposition.sequential_quadratic import SequentialQuadratic
from symsvm.solvers.solution import Info

if TYPE_CHECKING:
    from collections.abc import Callable

    from symsvm._lib.types import Array
    from symsvm.evaluation.kernel_matrix import KernelMatrix
    from symsvm.objectives.separable_program import SeparableProgram
    from symsvm.solvers.decomposition.parameters import Parameters

__all__ = ["minimise_separable"]

# Iterations without progress after which the precision is raised, the method changed, or the run ended.
_PATIENCE = 4


def minimise_separable(
    program: SeparableProgram,
    matrix: KernelMatrix,
    start: Array,
    *,
    tol: float,
    max_iter: int | None,
    time_limit: float | None,
    callback: Callable[[Info], object],
    seed: int,
    parameters: Parameters,
    memory: int,
    may_be_convex: bool,
) -> Result:
    """Solve a `SeparableProgram` over the kernel matrix of its points, from a feasible point.

    Parameters
    ----------
    seed : of the columns of K in the preconditioner; the same seed gives the same bits.
    memory : the bytes that K may take; where it takes more, it is computed by tiles for each product.
    may_be_convex : False where the problem is known not to be convex.
    The others are those of `decompose`. An iteration is a Newton step.
    """
    run = _Run(program, matrix, seed, parameters, memory)
    # Threads of BLAS would compete with Numba's.
    with SingleThreadedBlas(), np.errstate(over="ignore", invalid="ignore"):
        return run.run(start, _Limits(tol, max_iter, time_limit, callback), may_be_convex)


class _Limits(NamedTuple):
    """What ends a run."""

    tol: float
    max_iter: int | None
    time_limit: float | None
    report: Callable[[Info], object]


class _Run:
    """One run: its method, which may change, and what it has reached."""

    def __init__(self, program: SeparableProgram, matrix: KernelMatrix, seed: int, parameters: Parameters, memory: int):
        self.program, self.trace = program, []
        self._products = KernelProducts(matrix, memory, parameters.whole)
        self._options = self._products, parameters, seed
        self._entries_before = matrix.entries
        self._best, self._least, self._idle = np.inf, np.inf, 0  # the least violation and the least W, steps in vain
        self._reached: tuple[Array, Array | None]

    def run(self, start: Array, limits: _Limits, may_be_convex: bool) -> Result:
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
        return Result(z, Kz, stopped, len(self.trace) - 1, 0, self.trace)

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
