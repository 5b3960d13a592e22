"""StepFunctions: the compiled functions of an objective and a solver, for any numbers and data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.mode import get_mode
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan

from symsvm.compiler.functions import (
    function,
    hoist,
    mode_key,
    shape_error,
    value_and_grad,
)
from symsvm.compiler.lifting import largest_array, lift, lower, tile
from symsvm.compiler.meshes import is_mesh_mode, replicate, spread
from symsvm.compiler.rewrites.products import tiled_gram
from symsvm.graphs.dtypes import retype
from symsvm.graphs.structure import signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytensor.compile.mode import Mode

    from symsvm._lib.types import Array, Graph
    from symsvm.compiler.functions import Compiled
    from symsvm.objectives import Objective

__all__ = ["StepFunctions", "split_step", "step_functions"]

_CACHE: dict[tuple, StepFunctions] = {}


def step_functions(
    objective: Objective, given: Sequence[Graph], solver: Any, mode: Mode, memory: float, dtype: str
) -> StepFunctions:
    """Return the `StepFunctions` of an objective and a solver, shared by all objectives of the same structure.

    `given` are the leaves of the objective's graphs that get their values in a run: inputs, shared variables, numbers.
    """
    i, *row = _row(objective, solver)
    structure = signature([objective.variable, i, *given], [objective.value, *objective.bounds, *row])
    names = tuple(v.name for v in given)
    key = structure, names, type(objective), objective.constraint_structure, solver.structure
    key = *key, mode_key(mode), memory, dtype
    if key not in _CACHE:
        _CACHE[key] = StepFunctions(objective, given, solver, mode, memory, dtype)
    return _CACHE[key]


def split_step(
    step: Sequence[Graph], changing: Sequence[Graph], mode: Mode, *, stored: bool = True
) -> tuple[list[Graph], list[Graph], list[Graph]]:
    """Split a step as `hoist` does; on Numba, tiled loops compute the hoisted kernel matrices.

    On a mesh, kernel matrices that are stored, and products with others, are spread over its devices.
    """
    if is_mesh_mode(mode):
        step = spread(step, mode.mesh, changing if stored else None, must=True)
    constants, hoisted, rest = hoist(step, changing)
    if mode is get_mode("NUMBA"):  # the loops need less time and memory than PyTensor's code of the graph
        constants = [tiled_gram(v) for v in constants]
    return constants, hoisted, rest


class StepFunctions:
    """Graphs over explicit inputs, planned for the shapes of a run and compiled when they are first needed.

    A run evaluates `prepare` once, for what does not change from step to step, and then `step` in a loop. A Gram matrix
    that fits the memory is part of `prepare` (hoisted); else its products are tiled in `step`.

    Attributes
    ----------
    objective : Objective
        The objective over the variables below.
    lam : graph
        The variable of the objective.
    given : list of graphs
        The inputs that get their values in a run.
    extras : list of graphs
        The solver's own state, beside lam.
    step : list of graphs
        The next state, W and its gradient.
    mode, memory, dtype
        The backend, the memory limit in bytes and the floating type.
    """

    def __init__(
        self, objective: Objective, given: Sequence[Graph], solver: Any, mode: Mode, memory: float, dtype: str
    ) -> None:
        self.mode, self.memory, self.dtype = mode, memory, dtype
        variable = objective.variable
        i, *row = _row(objective, solver)
        graphs: Any = [objective.value, *objective.bounds, *row]
        fresh: list[Any] = [v.type(name=v.name) for v in (variable, *given)]
        graphs = clone_replace(graphs, dict(zip((variable, *given), fresh, strict=True)))
        graphs, fresh = _retyped(graphs, fresh, dtype)
        self.lam: Graph = fresh[0]
        self.given: list[Graph] = fresh[1:]
        value, *bounds = graphs[: len(graphs) - len(row)]
        self.objective = objective.with_graphs(value, self.lam, bounds, (i, graphs[-1]) if row else None)
        first, *vectors = solver.init(self.objective, self.lam)
        shapes = [self.lam.type.shape] * len(vectors) + [()] * len(solver.start())
        self.extras = [pt.tensor(f"state{i}", dtype=dtype, shape=shape) for i, shape in enumerate(shapes)]
        state, W, g = solver.step(self.objective, self.lam, *self.extras)
        self.step = lower(lift([*state, W, g], math.inf))
        self._graphs = {"init": [first, *vectors], "project": [self.objective.project(self.lam)]}
        self._steps: dict[bool, tuple[Compiled, Compiled]] = {}
        self._fits: dict[tuple, bool] = {}
        self._functions: dict[Any, Any] = {}

    def plan(self, fits: bool) -> tuple[list[Graph], list[Graph], list[Graph]]:
        """Return the graphs that `prepare` computes, the inputs of `step` that stand for them, and `step`."""
        step = self.step if fits else tile(self.step)
        return split_step(step, [self.lam, *self.extras], self.mode, stored=fits)

    def fits(self, lam: Array, values: Sequence[Array]) -> bool:
        """Whether every array of a run fits the memory, for values of these shapes."""
        shapes = tuple(np.shape(x) for x in (lam, *values))
        if shapes not in self._fits:
            self._fits[shapes] = self._largest(self._all_graphs(True), shapes) <= self.memory
            if not self._fits[shapes]:
                self._check(self._largest(self._all_graphs(False), shapes))
        return self._fits[shapes]

    def _all_graphs(self, fits):
        """Return all graphs of a run, in which the Gram matrix is hoisted or its products are tiled."""
        constants, _, step = self.plan(fits)
        return [*constants, *step]

    def _largest(self, graphs, shapes):
        """Return the bytes of the largest array, for variables of these shapes."""
        variables: list[Any] = [self.lam, *self.given]
        # A length of 1 stays unknown unless the type has it: in a loop of the graphs it would be another type.
        known = [
            tuple(n if n != 1 else old for n, old in zip(shape, v.type.shape, strict=True))
            for v, shape in zip(variables, shapes, strict=True)
        ]
        sized = [v.type.clone(shape=shape)(name=v.name) for v, shape in zip(variables, known, strict=True)]
        try:
            graphs = clone_replace(graphs, dict(zip(variables, sized, strict=True)), rebuild_strict=False)
        except (ValueError, TypeError) as error:
            raise shape_error(error, variables, shapes) from error
        return largest_array(graphs)

    def _check(self, needed):
        if needed > self.memory:
            raise ValueError(
                f"memory={self.memory} is too small: this objective needs an array of {needed} bytes that cannot be "
                "computed in tiles. Raise memory, or write the kernel as a function of sums over features."
            )

    def compile_ahead(self) -> None:
        """Compile for a Gram matrix that fits the memory, unless known shapes show that it does not."""
        if largest_array(self._all_graphs(True)) <= self.memory:
            self._compiled(True)
        else:
            self._check(largest_array(self._all_graphs(False)))

    def compiled(self, lam: Array, values: Sequence[Array]) -> tuple[Compiled, Compiled]:
        """Return the functions `prepare` (values -> constants) and `step`, for values of these shapes."""
        return self._compiled(self.fits(lam, values))

    def _compiled(self, fits):
        if fits not in self._steps:
            constants, hoisted, step = self.plan(fits)
            prepare = function(self.given, constants, mode=self.mode, memory=math.inf)
            # The loop passes arrays of the right type, also JAX arrays: they need no check and no copy.
            step = function(
                [self.lam, *self.extras, *hoisted, *self.given],
                step,
                mode=self.mode,
                memory=math.inf,  # `plan` has tiled what does not fit
                trust_input=True,
            )
            self._steps[fits] = prepare, step
        return self._steps[fits]

    def to_device(self, values: Sequence[Array]) -> list:
        """Return the values as arrays of the right types, on the device where the steps run."""
        arrays = self._arrays(values)
        if is_mesh_mode(self.mode):
            return replicate(arrays, self.mode.mesh)
        if self.mode is get_mode("JAX"):
            import jax.numpy as jnp

            return [jnp.asarray(x) for x in arrays]
        return arrays

    def evaluate(self, name: Literal["init", "project"], lam: Array, values: Sequence[Array]) -> list[Array]:
        """Evaluate `init` (the vectors of the first state) or `project` (one vector) at lam."""
        graphs = self._graphs[name]
        # Graphs of the constraints alone are evaluated once per run: NumPy is as fast, and needs no compilation.
        quick = set(self.given).intersection(ancestors(graphs)) <= set(ancestors(self.objective.bounds))
        if name not in self._functions:
            mode = "FAST_COMPILE" if quick else self.mode
            self._functions[name] = function([self.lam, *self.given], graphs, mode=mode)
        lam, values = np.asarray(lam, dtype=self.dtype), self._arrays(values) if quick else self.to_device(values)
        return [np.array(v) for v in self._functions[name](lam, *values)]

    def bounds(self, values: Sequence[Array]) -> list[Array]:
        """Return the values of the constraints; most are inputs or constants and need no compilation."""
        if "bounds" not in self._functions:
            self._functions["bounds"] = function(self.given, self.objective.bounds, mode="FAST_COMPILE")
        return self._functions["bounds"](*self._arrays(values))

    def _arrays(self, values):
        return [np.asarray(x, dtype=v.dtype) for v, x in zip(self.given, values, strict=True)]

    def value_and_grad_float64(self, lam: Array, values: Sequence[Array]) -> tuple[float, Array]:
        """Return W and its gradient at lam, computed in float64."""
        fits = self.fits(lam, values)
        if ("exact", fits) not in self._functions:
            graphs = value_and_grad(self.objective.value, self.lam)
            graphs, inputs = retype(graphs, "float64")
            graphs = graphs if fits else tile(graphs)
            given: list[Any] = [inputs.get(v, v) for v in (self.lam, *self.given)]
            compiled = function(given, graphs, mode=self.mode, memory=math.inf)
            self._functions["exact", fits] = compiled, [v.dtype for v in given]
        compiled, dtypes = self._functions["exact", fits]
        W, g = compiled(*(np.asarray(x, dtype=dtype) for x, dtype in zip((lam, *values), dtypes, strict=True)))
        return float(W), np.asarray(g)


def _row(objective: Objective, solver: Any) -> tuple:
    """Return (i, row i of the Hessian) for a solver that updates row by row, else an unused index."""
    if not getattr(solver, "by_rows", False):
        return (pt.lscalar("i"),)
    assert objective.row is not None, f"{objective!r} has no rows"
    return objective.row


def _retyped(graphs: list, variables: list, dtype: str) -> tuple[list, list]:
    """Return the graphs and their variables in a floating type."""
    if all(v.dtype == dtype for v in variables if v.dtype.startswith("float")):
        return graphs, variables
    lifted = lift(graphs)
    # Graphs in which a loop remains are retyped as written: the passes remove the marks of `disconnected_grad`.
    has_loop = any(v.owner is not None and isinstance(v.owner.op, Scan) for v in ancestors(lifted))
    graphs, inputs = retype(graphs if has_loop else lifted, dtype)
    return graphs, [inputs.get(v, v) for v in variables]
