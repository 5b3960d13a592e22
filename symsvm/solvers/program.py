"""Program: an objective and a solver, compiled; and the one loop of the library."""

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant

from symsvm._lib.interrupts import is_interrupt, restored_interrupts
from symsvm._lib.validation import count, number
from symsvm._lib.validation import dtype as _dtype
from symsvm.compiler.functions import resolve_mode
from symsvm.compiler.lifting import MEMORY, TILE
from symsvm.compiler.step_functions import step_functions
from symsvm.graphs.structure import leaves
from symsvm.objectives import Objective

__all__ = ["Info", "Program", "Solution", "check_names", "checked_run", "traced", "values_of"]

# Arguments of Program.run that a free input cannot be called by.
_RESERVED = ("start", "tol", "max_iter", "callback", "time_limit", "self")


@dataclass(frozen=True)
class Info:
    """The diagnostics of one iteration, at the point before its step; what a callback receives.

    Attributes
    ----------
    iteration, seconds : steps so far, time since the run began.
    W, violation, gap : the objective, the largest KKT violation, the duality gap (None where no primal is known).
    free, bounded : how many support vectors are between their bounds and at one; None where nobody counted.
    rows : kernel rows computed so far, entries / m; None where nobody counted.
    problem : which of its problems an estimator is at, from 0; None in the run of one alone.
    """

    iteration: int
    seconds: float
    W: float
    violation: float
    gap: float | None = None
    free: int | None = None
    bounded: int | None = None
    rows: float | None = None
    problem: int | None = None


@dataclass(frozen=True)
class Solution:
    """What a run returns, whatever stopped it.

    Attributes
    ----------
    lam : the point.
    b : the multiplier of the equality (the intercept of a classifier), None without one, an array for several.
    feasible : lam itself if it is feasible, else its projection onto the feasible set.
    stopped : why the run ended: `tol`, `max_iter`, `time_limit`, `callback`, `interrupt`, `diverged` (the next W would
        not be finite; lam is the last point before), `stalled` (rounding leaves no step that changes anything) or
        `rest` (the solver's own rule finds nothing to change).
    n_iter : the number of steps.
    trace : arrays, an entry an iteration: `iteration`, `seconds`, `W`, `violation` and what else an `Info` holds.
    certify : the function that makes the certificate.
    program : the `QuadraticProgram` that was solved, where there is one; a later run may start from it.
    """

    lam: np.ndarray = field(repr=False)
    b: float | np.ndarray | None
    feasible: np.ndarray = field(repr=False)
    stopped: str
    n_iter: int
    trace: dict = field(repr=False)
    certify: Callable = field(repr=False)
    program: object = field(default=None, repr=False)

    @functools.cached_property
    def certificate(self):
        """The `Certificate` of lam in float64, computed from the data when it is first read."""
        return self.certify()

    @property
    def W(self):
        """The objective at lam, from the certificate."""
        return self.certificate.W


def traced(infos):
    """The arrays of a list of `Info`, without the entries that nobody counted."""
    names = [f.name for f in fields(Info) if getattr(infos[0], f.name) is not None]
    return {name: np.array([getattr(info, name) for info in infos]) for name in names}


class Program:
    """An objective and a solver, compiled for one backend; see `compile`."""

    def __init__(self, objective, solver, *, mode=None, memory=None, dtype=None):
        if not isinstance(objective, Objective):
            raise TypeError(f"objective must be a symsvm Objective, got {objective!r}.")
        if isinstance(solver, type) or not all(hasattr(solver, name) for name in ("start", "init", "step")):
            raise TypeError(f"solver must be a solver such as ProjectedGradient(), got {solver!r}.")
        self.objective, self.solver = objective, solver
        self.memory = MEMORY if memory is None else _memory(memory)
        self.dtype = objective.variable.dtype if dtype is None else _dtype(dtype)
        mode = resolve_mode(mode)
        roots = [objective.value, *objective.bounds]
        variables, numbers = leaves(roots)
        # A bound is a user's number, whichever it is; an infinite one, or 0, shapes the problem.
        numbers += [v for v in objective.bounds if _is_bound(v) and v not in numbers]
        variables.remove(objective.variable)
        self._shared = [v for v in variables if isinstance(v, SharedVariable)]
        self.inputs = [v for v in variables if not isinstance(v, SharedVariable)]
        check_names(self.inputs)
        self._numbers = [v.data for v in numbers]
        # What a run gives values to, in this order.
        self.given = [*self.inputs, *self._shared, *numbers]
        self.functions = step_functions(objective, self.given, solver, mode, self.memory, self.dtype)
        self.functions.compile_ahead()

    def steps(self, first, data=()):
        """Yield (lam, W(lam), grad W(lam), next lam), for ever or until the solver rests: the loop of every run.

        `first` are the vectors that a state begins with, lam and the solver's own. A point without a finite W is passed
        over if the solver takes such steps back.
        """
        values = self.functions.put(self._values(data))
        lam, *state = (np.asarray(v, dtype=self.dtype) for v in (*first, *self.solver.start()))
        prepare, step = self.functions.compiled(lam, values)
        constants = prepare(*values)
        passes, takes_back = False, getattr(self.solver, "takes_back", False)
        rests = getattr(self.solver, "rests", None)  # whether nothing will change any more, by the solver's own rule
        while True:
            new, *state, W, g = step(lam, *state, *constants, *values)  # the state stays where it was computed
            new, W = np.asarray(new), float(W)
            if np.isfinite(W) or not passes:
                yield lam, W, np.asarray(g), new
            if rests is not None and rests(*state):
                return
            lam, passes = new, takes_back

    def _values(self, data):
        """The values of all that a run takes: data, what the shared variables hold now, numbers."""
        return [*data, *(v.get_value(borrow=True) for v in self._shared), *self._numbers]

    @restored_interrupts()
    def run(self, start=None, *, tol=1e-3, max_iter=None, callback=None, time_limit=None, **data):
        """Run from `start` until the KKT violation is at most `tol`, and return a `Solution`.

        Parameters
        ----------
        start : the first point, projected onto the feasible set; by default the shared variable's value.
        tol : the largest KKT violation to accept.
        max_iter, time_limit : the most steps (1000 unless told or unless the solver's are cheap) and the most seconds;
            each returns the point reached.
        callback : a function of an `Info`; a true return value stops the run.
        data : a value for each free input of the objective, by name.
        """
        max_iter = getattr(self.solver, "max_iter", 1000) if max_iter is None else max_iter
        tol, max_iter, time_limit = checked_run(tol, max_iter, time_limit, callback)
        # Believe only what float64 confirms, from the data.
        doubtful = self.dtype != "float64" or getattr(self.solver, "carries_gradient", False)
        began = time.perf_counter()
        data = values_of(self.inputs, data)
        start = self._checked(start)
        lower, upper, *rest = self._bounds(data, len(start))
        first = self.first(start, data)
        equality = tuple(rest) or None
        rows, stopped, reached = [], None, None
        certify = self.objective.certifier(lower, upper, equality, tol)
        try:
            for n_iter, (lam, W, g, _) in enumerate(self.steps(first, data)):
                certificate = certify(lam, W, g)
                if doubtful and certificate.status in ("optimal", "stationary"):
                    certificate = certify(lam, *self.exact(lam, data))
                if certificate.status == "diverged" and reached is not None:
                    stopped = "diverged"
                    break
                reached = lam, W, certificate  # at once: an interrupt must not mix two points
                info = Info(n_iter, time.perf_counter() - began, W, certificate.violation, certificate.gap)
                rows.append(info)
                if certificate.status == "diverged":
                    stopped = "diverged"
                elif certificate.status in ("optimal", "stationary"):
                    stopped = "tol"
                elif n_iter == max_iter:
                    stopped = "max_iter"
                elif time_limit is not None and info.seconds >= time_limit:
                    stopped = "time_limit"
                if callback is not None and callback(info) and stopped is None:
                    stopped = "callback"
                if stopped:
                    break
        except (KeyboardInterrupt, SystemError) as error:
            if not rows or not is_interrupt(error):
                raise
            stopped = "interrupt"
        lam, W, certificate = reached
        stopped = stopped or "rest"
        if doubtful and stopped != "tol" and certificate.status != "diverged":
            certificate = certify(lam, *self.exact(lam, data))
            W = certificate.W
        lam = np.array(lam)  # the user's own; JAX's are read-only
        feasible = lam
        if certificate.status == "infeasible":
            (feasible,) = self.functions.evaluate("project", lam, self._values(data))
        return Solution(lam, certificate.b, feasible, stopped, len(rows) - 1, traced(rows), lambda: certificate)

    def first(self, start=None, data=()):
        """The vectors that a run begins with: `start`, or the shared variable's value, as the solver prepares it."""
        return self.functions.evaluate("init", self._checked(start), self._values(data))

    def exact(self, lam, data=()):
        """W and its gradient at lam in float64, also for a program that computes in float32."""
        return self.functions.exact(lam, self._values(data))

    def _checked(self, start):
        variable = self.objective.variable
        if start is None:
            if not isinstance(variable, SharedVariable):
                raise TypeError(f"start must be given: {variable} is an input, not a shared variable with a value.")
            start = variable.get_value()
        start = np.asarray(start, dtype=self.dtype)
        length = variable.type.shape[0]
        if start.ndim != 1 or not len(start) or not np.isfinite(start).all() or length not in (None, len(start)):
            expected = f" of length {length}" if length is not None else ""
            raise ValueError(f"start must be a finite vector{expected}, got the shape {start.shape}.")
        return start

    def _bounds(self, data, length):
        """The float64 values of the constraints: lower, upper and, with an equality, a and c."""
        values = [np.asarray(v, dtype="float64") for v in self.functions.bounds(self._values(data))]
        for value in values[:3]:  # lower, upper, a
            if value.ndim and value.shape[-1] != length:
                raise ValueError(f"a constraint has {value.shape[-1]} entries, but start has {length}.")
        for value in values:
            if np.isnan(value).any():
                raise ValueError("a constraint holds NaN.")
        return values


def checked_run(tol, max_iter, time_limit, callback):
    """The arguments of a run as numbers."""
    if time_limit is not None:
        time_limit = number(time_limit, "time_limit")
        if time_limit < 0:
            raise ValueError(f"time_limit must not be negative, got {time_limit}.")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of an Info, got {callback!r}.")
    return number(tol, "tol", positive=True), None if max_iter is None else count(max_iter, "max_iter"), time_limit


def check_names(inputs):
    """Raise unless every free input can be an argument of `run`."""
    names = [v.name for v in inputs]
    for name in names:
        if name is None or names.count(name) > 1 or name in _RESERVED:
            raise ValueError(f"every free input of an objective needs a name of its own for run(), not {name!r}.")


def values_of(inputs, data):
    """The values that `data` has for the free inputs of an objective, in their order."""
    names = [v.name for v in inputs]
    missing, unknown = [n for n in names if n not in data], [n for n in data if n not in names]
    if missing or unknown:
        what = f"{missing[0]!r} is missing" if missing else f"{unknown[0]!r} is unknown"
        raise TypeError(f"the objective's free inputs are {', '.join(names) or 'none'}: {what}.")
    values = [np.asarray(data[v.name], dtype=v.dtype) for v in inputs]
    for v, value in zip(inputs, values, strict=True):
        if value.ndim != v.ndim:
            raise ValueError(f"{v.name} must have {v.ndim} dimension(s), got the shape {value.shape}.")
        if np.isnan(value).any():
            raise ValueError(f"{v.name} must not hold NaN.")
    return values


def _is_bound(v):
    return isinstance(v, Constant) and not v.ndim and np.isfinite(v.data) and v.data != 0


def _memory(value):
    memory = count(value, "memory")
    if memory < TILE:
        raise ValueError(f"memory must hold at least one tile, {TILE} bytes, got {memory}.")
    return memory
