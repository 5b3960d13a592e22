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
from symsvm.rewrites import lift
from symsvm.validation import count, number

__all__ = ["Info", "Program", "Solution", "compile"]


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
    certificate : the `Certificate` of lam.
    stopped : why the run ended: `tol`, `max_iter`, `time_limit`, `callback` or `interrupt`.
    n_iter : the number of steps.
    trace : arrays `W`, `violation` and `seconds`, an entry an iteration.
    """

    lam: np.ndarray
    W: float
    b: float | None
    certificate: Certificate
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
        self.objective, self.solver = objective, solver
        variable = objective.variable
        lam = variable.type(variable.name or "lam")
        extras = [pt.tensor(f"state{i}", dtype=lam.dtype, shape=()) for i in range(len(solver.start()))]
        constraints = [objective.lower, objective.upper, *(objective.equality or ())]
        state, W, g = solver.step(objective, variable, *extras)
        first = solver.init(objective, variable)
        graphs = clone_replace([*lift([*state, W, g]), first, *constraints], {variable: lam})
        step, init, self._constraints = graphs[: len(state) + 2], graphs[len(state) + 2], graphs[len(state) + 3 :]
        own = {lam, *extras}
        self.inputs = [v for v in explicit_graph_inputs(graphs) if v not in own and not isinstance(v, Constant)]
        unnamed = [v for v in self.inputs if v.name is None]
        if unnamed:
            raise ValueError(f"every free input of an objective needs a name, {unnamed[0]!r} has none.")
        self._mode = mode
        # What does not change from step to step, the Gram matrix above all, is computed once a run.
        constants, hoisted, step = hoist(step, [lam, *extras])
        options = {"mode": mode, "on_unused_input": "ignore"}
        self._prepare = function(self.inputs, constants, **options)
        self._step = function([lam, *extras, *hoisted, *self.inputs], step, **options)
        # The loop hands over arrays of the right type, JAX's own among them: no check, no copy.
        self._step.trust_input = True
        self._init_graph = ([lam, *self.inputs], init)
        self._init = None

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
        began = time.perf_counter()
        data = self._data(data)
        lower, upper, *rest = (self._value(graph, data) for graph in self._constraints)
        equality = (rest[0], float(rest[1])) if rest else None
        steps = self.steps(self._start(start, data), data)
        rows, stopped = [], None
        try:
            for n_iter, (lam, W, g, _) in enumerate(steps):
                certificate = self.objective.certificate(lam, W, g, lower, upper, equality, tol=tol)
                info = Info(n_iter, time.perf_counter() - began, W, certificate.violation)
                rows.append((info.W, info.violation, info.seconds))
                if certificate.status in ("optimal", "stationary"):
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
            stopped, n_iter = "interrupt", len(rows) - 1
        trace = dict(zip(("W", "violation", "seconds"), np.array(rows).T, strict=True))
        return Solution(lam, W, certificate.b, certificate, stopped, n_iter, trace)

    def _data(self, data):
        names = [v.name for v in self.inputs]
        missing, unknown = [n for n in names if n not in data], [n for n in data if n not in names]
        if missing or unknown:
            what = f"{missing[0]!r} is missing" if missing else f"{unknown[0]!r} is unknown"
            raise TypeError(f"the objective's free inputs are {', '.join(names) or 'none'}: {what}.")
        return [np.asarray(data[v.name], dtype=v.dtype) for v in self.inputs]

    def _start(self, start, data):
        variable = self.objective.variable
        if start is None:
            if not isinstance(variable, SharedVariable):
                raise TypeError(f"start must be given: {variable} is an input, not a shared variable with a value.")
            start = variable.get_value()
        start = np.asarray(start, dtype=variable.dtype)
        if start.ndim != 1 or not np.isfinite(start).all():
            raise ValueError(f"start must be a finite vector, got the shape {start.shape}.")
        if self._init is None:
            inputs, graph = self._init_graph
            self._init = function(inputs, graph, mode=self._mode, on_unused_input="ignore")
        return np.asarray(self._init(start, *data))

    def _value(self, graph, data):
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
        return np.asarray(value, dtype="float64")
