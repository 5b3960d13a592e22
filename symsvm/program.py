"""Program: an objective and a solver, compiled; and the one loop of the library."""

import time
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import explicit_graph_inputs

from symsvm.certificate import Certificate
from symsvm.compiler import function, hoist
from symsvm.objectives import Objective
from symsvm.rewrites import lift
from symsvm.validation import count, number

__all__ = ["Info", "Program", "Solution", "compile"]

# Arguments of Program.run that a free input cannot be called by.
_RESERVED = ("start", "tol", "max_iter", "callback", "time_limit", "self")


@dataclass(frozen=True)
class Info:
    """The diagnostics of one iteration, at the point before its step; what a callback receives."""

    iteration: int
    seconds: float
    W: float
    violation: float


@dataclass(frozen=True)
class Solution:
    """What a run returns, whatever stopped it.

    Attributes
    ----------
    lam : the point.
    W : the objective there.
    b : the multiplier of the equality (the intercept of a classifier), None without one.
    certificate : the `Certificate` of lam, from W and its gradient in the type of the objective.
    feasible : lam itself if it is feasible, else its projection onto the feasible set.
    stopped : why the run ended: `tol`, `max_iter`, `time_limit`, `callback`, `interrupt` or `diverged` (the next W
        would not be finite; lam is the last point before).
    n_iter : the number of steps.
    trace : arrays `W`, `violation` and `seconds`, an entry an iteration.
    """

    lam: np.ndarray
    W: float
    b: float | None
    certificate: Certificate
    feasible: np.ndarray
    stopped: str
    n_iter: int
    trace: dict


def compile(objective, solver, *, mode=None):
    """Compile an objective and a solver into a `Program`.

    Free inputs of the objective's graphs (other than its variable) become arguments of `Program.run`, by name.
    """
    return Program(objective, solver, mode=mode)


class Program:
    """An objective and a solver, compiled for one backend; see `compile`."""

    def __init__(self, objective, solver, *, mode=None):
        if not isinstance(objective, Objective):
            raise TypeError(f"objective must be a symsvm Objective, got {objective!r}.")
        if isinstance(solver, type) or not all(hasattr(solver, name) for name in ("start", "init", "step")):
            raise TypeError(f"solver must be a solver such as ProjectedGradient(), got {solver!r}.")
        self.objective, self.solver = objective, solver
        variable = objective.variable
        lam = variable.type(variable.name or "lam")
        extras = [pt.tensor(f"state{i}", dtype=lam.dtype, shape=()) for i in range(len(solver.start()))]
        constraints = [objective.lower, objective.upper, *(objective.equality or ())]
        state, W, g = solver.step(objective, variable, *extras)
        first = solver.init(objective, variable)
        graphs = [*lift([*state, W, g]), first, objective.project(variable), *constraints]
        graphs = clone_replace(graphs, {variable: lam})
        step, (init, project, *self._constraints) = graphs[: len(state) + 2], graphs[len(state) + 2 :]
        own = {lam, *extras}
        self.inputs = [v for v in explicit_graph_inputs(graphs) if v not in own and not isinstance(v, Constant)]
        names = [v.name for v in self.inputs]
        for name in names:
            if name is None or names.count(name) > 1 or name in _RESERVED:
                raise ValueError(f"every free input of an objective needs a name of its own for run(), not {name!r}.")
        self._mode = mode
        # What does not change from step to step, the Gram matrix above all, is computed once a run.
        constants, hoisted, step = hoist(step, [lam, *extras])
        options = {"mode": mode, "on_unused_input": "ignore"}
        self._prepare = function(self.inputs, constants, **options)
        self._step = function([lam, *extras, *hoisted, *self.inputs], step, **options)
        # The loop hands over arrays of the right type, JAX's own among them: no check, no copy.
        self._step.trust_input = True
        self._graphs = {"init": ([lam, *self.inputs], init), "project": ([lam, *self.inputs], project)}
        self._functions = {}

    def steps(self, lam, data=()):
        """Yield (lam, W(lam), grad W(lam), next lam) for ever: the loop that every run is made of."""
        extras = [np.asarray(v, dtype=lam.dtype) for v in self.solver.start()]
        constants = self._prepare(*data)
        while True:
            new, *extras, W, g = map(np.asarray, self._step(lam, *extras, *constants, *data))
            yield lam, float(W), g, new
            lam = new

    def run(self, start=None, *, tol=1e-3, max_iter=1000, callback=None, time_limit=None, **data):
        """Run from `start` until the KKT violation is at most `tol`, and return a `Solution`.

        Parameters
        ----------
        start : the first point, projected onto the feasible set; by default the shared variable's value.
        tol : the largest KKT violation to accept.
        max_iter, time_limit : the most steps and the most seconds; each returns the point reached.
        callback : a function of an `Info`; a true return value stops the run.
        data : a value for each free input of the objective, by name.
        """
        tol, max_iter = number(tol, "tol", positive=True), count(max_iter, "max_iter")
        if time_limit is not None:
            time_limit = number(time_limit, "time_limit")
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be a function of an Info, got {callback!r}.")
        began = time.perf_counter()
        data = self._data(data)
        start = self._checked(start)
        lower, upper, *rest = (self._value(graph, data, len(start)) for graph in self._constraints)
        first = self.first(start, data)
        equality = (rest[0], float(rest[1])) if rest else None
        rows, stopped, reached = [], None, None
        try:
            for n_iter, (lam, W, g, _) in enumerate(self.steps(first, data)):
                certificate = self.objective.certificate(lam, W, g, lower, upper, equality, tol=tol)
                if certificate.status == "diverged" and reached is not None:
                    stopped = "diverged"
                    break
                reached = lam, W, certificate  # at once: an interrupt must not mix two points
                info = Info(n_iter, time.perf_counter() - began, W, certificate.violation)
                rows.append((info.W, info.violation, info.seconds))
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
        except KeyboardInterrupt:
            if not rows:
                raise
            stopped = "interrupt"
        lam, W, certificate = reached
        lam = np.array(lam)  # the user's own; JAX's are read-only
        feasible = self._evaluate("project", lam, data) if certificate.status == "infeasible" else lam
        trace = dict(zip(("W", "violation", "seconds"), np.array(rows).T, strict=True))
        return Solution(lam, W, certificate.b, certificate, feasible, stopped, len(rows) - 1, trace)

    def _data(self, data):
        names = [v.name for v in self.inputs]
        missing, unknown = [n for n in names if n not in data], [n for n in data if n not in names]
        if missing or unknown:
            what = f"{missing[0]!r} is missing" if missing else f"{unknown[0]!r} is unknown"
            raise TypeError(f"the objective's free inputs are {', '.join(names) or 'none'}: {what}.")
        values = [np.asarray(data[v.name], dtype=v.dtype) for v in self.inputs]
        for v, value in zip(self.inputs, values, strict=True):
            if value.ndim != v.ndim:
                raise ValueError(f"{v.name} must have {v.ndim} dimension(s), got the shape {value.shape}.")
            if np.isnan(value).any():
                raise ValueError(f"{v.name} must not hold NaN.")
        return values

    def first(self, start=None, data=()):
        """The first point of a run: `start`, or the shared variable's value, as the solver prepares it."""
        return self._evaluate("init", self._checked(start), data)

    def _checked(self, start):
        variable = self.objective.variable
        if start is None:
            if not isinstance(variable, SharedVariable):
                raise TypeError(f"start must be given: {variable} is an input, not a shared variable with a value.")
            start = variable.get_value()
        start = np.asarray(start, dtype=variable.dtype)
        length = variable.type.shape[0]
        if start.ndim != 1 or not len(start) or not np.isfinite(start).all() or length not in (None, len(start)):
            expected = f" of length {length}" if length is not None else ""
            raise ValueError(f"start must be a finite vector{expected}, got the shape {start.shape}.")
        return start

    def _evaluate(self, name, lam, data):
        """Evaluate a graph of lam and the data, compiled when it is first needed."""
        if name not in self._functions:
            inputs, graph = self._graphs[name]
            self._functions[name] = function(inputs, graph, mode=self._mode, on_unused_input="ignore")
        return np.array(self._functions[name](lam, *data))

    def _value(self, graph, data, length):
        """The float64 value of a constraint: most are constants or shared variables, and need no compilation."""
        if isinstance(graph, Constant):
            value = graph.data
        elif isinstance(graph, SharedVariable):
            value = graph.get_value()
        elif graph in self.inputs:
            value = data[self.inputs.index(graph)]
        else:
            compiled = function(self.inputs, graph, mode="FAST_COMPILE", on_unused_input="ignore")
            value = compiled(*data)
        value = np.asarray(value, dtype="float64")
        if value.ndim and len(value) != length:
            raise ValueError(f"a constraint has {len(value)} entries, but start has {length}.")
        if np.isnan(value).any():
            raise ValueError("a constraint holds NaN.")
        return value
