"""StepFunctions: the compiled functions of an objective and a solver, whatever the numbers and the data are."""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.mode import get_mode
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan

from symsvm.compiler.functions import function, hoist, mode_key, value_and_grad
from symsvm.compiler.lifting import largest, lift, lower, tile
from symsvm.compiler.rewrites.tile import gram
from symsvm.graphs.dtypes import retype
from symsvm.graphs.structure import signature

__all__ = ["StepFunctions", "split_step", "step_functions"]

_CACHE = {}


def step_functions(objective, given, solver, mode, memory, dtype):
    """Return the machine of an objective and a solver, the one that was made for the same structure if there is one.

    `given` are the leaves of the objective's graphs that a run gives values to: inputs, shared variables, numbers.
    """
    i, *row = _row(objective, solver)
    structure = signature([objective.variable, i, *given], [objective.value, *objective.bounds, *row])
    names = tuple(v.name for v in given)
    key = structure, names, type(objective), solver.structure, mode_key(mode), memory, dtype
    if key not in _CACHE:
        _CACHE[key] = StepFunctions(objective, given, solver, mode, memory, dtype)
    return _CACHE[key]


def split_step(step, changing, mode):
    """Split a step at what does not depend on `changing`: return (constants, the inputs they become, the step)."""
    constants, hoisted, step = hoist(step, changing)
    if mode is get_mode("NUMBA"):  # whose loops need less time and room than what PyTensor makes of the graph
        constants = [gram(v) for v in constants]
    return constants, hoisted, step


class StepFunctions:
    """Graphs over explicit inputs, planned by shapes and compiled when they are first needed.

    A run evaluates `prepare` once, for what does not change from step to step, and then `step` again and again. Where
    the Gram matrix fits the memory it is part of the former (hoisted), else its products are tiled in the latter.
    """

    def __init__(self, objective, given, solver, mode, memory, dtype):
        self.mode, self.memory, self.dtype = mode, memory, dtype
        variable = objective.variable
        i, *row = _row(objective, solver)
        graphs = [objective.value, *objective.bounds, *row]
        fresh = [v.type(name=v.name) for v in (variable, *given)]
        graphs = clone_replace(graphs, dict(zip((variable, *given), fresh, strict=True)))
        graphs, fresh = _typed(graphs, fresh, dtype)
        self.lam, *self.given = fresh
        value, *bounds = graphs[: len(graphs) - len(row)]
        self.objective = objective.with_graphs(value, self.lam, bounds, (i, graphs[-1]) if row else None)
        first, *vectors = solver.init(self.objective, self.lam)
        shapes = [self.lam.type.shape] * len(vectors) + [()] * len(solver.start())
        self.extras = [pt.tensor(f"state{i}", dtype=dtype, shape=shape) for i, shape in enumerate(shapes)]
        state, W, g = solver.step(self.objective, self.lam, *self.extras)
        self.step = lower(lift([*state, W, g], math.inf))
        self._graphs = {"init": [first, *vectors], "project": [self.objective.project(self.lam)]}
        self._plans, self._fits, self._functions = {}, {}, {}

    def plan(self, fits):
        """The graphs of (constants, step), and the inputs that carry the constants into the step."""
        return split_step(self.step if fits else tile(self.step), [self.lam, *self.extras], self.mode)

    def fits(self, lam, values):
        """Whether every array of a run fits the memory, for values of these shapes."""
        shapes = tuple(np.shape(x) for x in (lam, *values))
        if shapes not in self._fits:
            self._fits[shapes] = self._largest(self._held(), shapes) <= self.memory
            if not self._fits[shapes]:
                self._check(self._largest(tile(self.step), shapes))
        return self._fits[shapes]

    def _held(self):
        """The graphs of all that is computed where the Gram matrix is held."""
        constants, _, step = self.plan(True)
        return [*constants, *step]

    def _largest(self, graphs, shapes):
        """The bytes of the largest array, for variables of these shapes."""
        variables = [self.lam, *self.given]
        # A length of 1 that the type does not know stays open: a loop in the graphs would take it for another type.
        known = [
            tuple(n if n != 1 else old for n, old in zip(shape, v.type.shape, strict=True))
            for v, shape in zip(variables, shapes, strict=True)
        ]
        sized = [v.type.clone(shape=shape)(name=v.name) for v, shape in zip(variables, known, strict=True)]
        return largest(clone_replace(graphs, dict(zip(variables, sized, strict=True)), rebuild_strict=False))

    def _check(self, needed):
        if needed > self.memory:
            raise ValueError(
                f"memory={self.memory} does not hold an array of {needed} bytes that this objective needs, and no "
                "tiles can take its place: give more, or write the kernel as a function of sums over features."
            )

    def compile_ahead(self):
        """Compile for the case that the Gram matrix fits, unless known shapes tell otherwise."""
        if largest(self._held()) <= self.memory:
            self._compiled(True)
        else:
            self._check(largest(tile(self.step)))

    def compiled(self, lam, values):
        """The functions `prepare` (values -> constants) and `step`, for values of these shapes."""
        return self._compiled(self.fits(lam, values))

    def _compiled(self, fits):
        if fits not in self._plans:
            constants, hoisted, step = self.plan(fits)
            prepare = function(self.given, constants, mode=self.mode, memory=math.inf)
            # The loop hands over arrays of the right type, JAX's own among them: no check, no copy.
            step = function(
                [self.lam, *self.extras, *hoisted, *self.given],
                step,
                mode=self.mode,
                memory=math.inf,  # it is split_step
                trust_input=True,
            )
            self._plans[fits] = prepare, step
        return self._plans[fits]

    def put(self, values):
        """The values as arrays of the right types, on the device where the steps run."""
        arrays = self._arrays(values)
        if self.mode is get_mode("JAX"):
            import jax.numpy as jnp

            return [jnp.asarray(x) for x in arrays]
        return arrays

    def evaluate(self, name, lam, values):
        """Evaluate `init` (the vectors of a first state) or `project` (one vector), graphs of lam and the values."""
        graphs = self._graphs[name]
        # Once a run, from the constraints alone: NumPy takes no longer, and there is nothing to compile.
        quick = set(self.given).intersection(ancestors(graphs)) <= set(ancestors(self.objective.bounds))
        if name not in self._functions:
            mode = "FAST_COMPILE" if quick else self.mode
            self._functions[name] = function([self.lam, *self.given], graphs, mode=mode)
        lam, values = np.asarray(lam, dtype=self.dtype), self._arrays(values) if quick else self.put(values)
        return [np.array(v) for v in self._functions[name](lam, *values)]

    def bounds(self, values):
        """The values of the constraints; most are inputs or constants, and need no compilation."""
        if "bounds" not in self._functions:
            self._functions["bounds"] = function(self.given, self.objective.bounds, mode="FAST_COMPILE")
        return self._functions["bounds"](*self._arrays(values))

    def _arrays(self, values):
        return [np.asarray(x, dtype=v.dtype) for v, x in zip(self.given, values, strict=True)]

    def exact(self, lam, values):
        """W and its gradient in float64."""
        fits = self.fits(lam, values)
        if ("exact", fits) not in self._functions:
            graphs = value_and_grad(self.objective.value, self.lam)
            graphs, inputs = retype(graphs, "float64")
            graphs = graphs if fits else tile(graphs)
            given = [inputs.get(v, v) for v in (self.lam, *self.given)]
            compiled = function(given, graphs, mode=self.mode, memory=math.inf)
            self._functions["exact", fits] = compiled, [v.dtype for v in given]
        compiled, dtypes = self._functions["exact", fits]
        W, g = compiled(*(np.asarray(x, dtype=dtype) for x, dtype in zip((lam, *values), dtypes, strict=True)))
        return float(W), np.asarray(g)


def _row(objective, solver):
    """(i, row i of the Hessian) for a solver that goes by rows; else an index for nothing."""
    return objective.row if getattr(solver, "by_rows", False) else (pt.lscalar("i"),)


def _typed(graphs, variables, dtype):
    """The graphs over variables of the type that is computed in."""
    if all(v.dtype == dtype for v in variables if v.dtype.startswith("float")):
        return graphs, variables
    lifted = lift(graphs)
    # With a loop that stays, as it is written: the passes remove what is marked as constant to the gradient.
    stays = any(v.owner is not None and isinstance(v.owner.op, Scan) for v in ancestors(lifted))
    graphs, inputs = retype(graphs if stays else lifted, dtype)
    return graphs, [inputs.get(v, v) for v in variables]
