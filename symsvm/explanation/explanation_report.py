"""The contents of an explanation: equations, formulas before and after the passes, and how a run executes them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytensor.graph.basic import Constant
from pytensor.graph.traversal import ancestors

import symsvm
from symsvm.compiler.functions import MODES, hoist, mode_key, resolve_mode
from symsvm.compiler.lifting import MEMORY, PASSES, count_rewrites, largest_array, stages, tile
from symsvm.compiler.step_functions import split_step
from symsvm.explanation.execution_plan import (
    ExecutionPlan,
    describe_array,
    describe_memory,
    describe_step,
    find_scans,
    format_bytes,
    make_plan,
    why_not_lifted,
    why_not_tiled,
)
from symsvm.explanation.formula import Formula, Term
from symsvm.explanation.graph_reader import GraphReader
from symsvm.explanation.reading_report import describe_fit, describe_reading
from symsvm.graphs.structure import leaves
from symsvm.kernels import Kernel
from symsvm.objectives import Objective
from symsvm.paper.dictionary import EQUATIONS
from symsvm.solvers.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["ExplanationReport", "make_report"]


@dataclass(frozen=True)
class ExplanationReport:
    """The parts of an explanation, as texts and formulas.

    Attributes
    ----------
    problem : str
        The objective with its feasible set.
    read, fit : tuple of str
        Lines about how W is read as a sum over pairs and points, and about the last fit of an estimator.
    equations : dict
        The numbers and titles of the equations that it implements.
    written, drawn : Formula
        The graph as written, for text and for a picture (where every loop has a line).
    fired : Counter
        How many nodes each pass replaced in W, and the tiling in a step.
    running : Formula
        W and its gradient after the passes.
    when : dict of str to str
        For each name: "input", "variable", "once" (a run), "step" (each step) or "tile" (each step, in tiles).
    stored : dict of str to str
        For each array that is stored between steps, its shape and size.
    notes : tuple of str
        Sentences about loops that no pass replaces.
    backend, memory, step : str
        Sentences about where it runs, what it stores and what a step repeats.
    """

    problem: str
    read: tuple[str, ...]
    fit: tuple[str, ...]
    equations: dict[int | str, str]
    written: Formula
    drawn: Formula
    fired: Counter
    running: Formula
    when: dict[str, str]
    stored: dict[str, str]
    notes: tuple[str, ...]
    backend: str
    memory: str
    step: str


def make_report(x: Any) -> ExplanationReport:
    """Return the report of an objective, a program, or an object with a `program_` or an `objective_`."""
    objective, program = _find_objective(x)
    mode = resolve_mode(getattr(x, "mode", None) if program is None else program.functions.mode)
    given = _find_inputs(objective) if program is None else program.given
    originals = [objective.variable, *given]
    names = [float(v.data.item()) if isinstance(v, Constant) else v.name or "input" for v in originals]
    names[0] = objective.variable.name or "v"
    reader = GraphReader({v: name for v, name in zip(originals, names, strict=True) if isinstance(name, str)})
    W = reader.read(objective.value)
    written, drawn = (Formula({"W": W}, reader.loop_variables, name_loops=each) for each in (False, True))
    fired, notes = _count_passes(objective.value, reader)
    plan = make_plan(objective, program, originals)
    constants, _, left = split_step(plan.step, [plan.lam, *plan.extras], mode)
    fits = largest_array(plan.with_shapes([*constants, *left])) <= plan.memory
    step = plan.step
    if not fits:
        with count_rewrites() as tiled:
            tile(step[-2:])
        fired += tiled
        step = tile(step)
    constants, _, left = hoist(step, [plan.lam, *plan.extras])
    reader = GraphReader(dict(zip([plan.lam, *plan.given], names, strict=True)))
    needed = set(ancestors(step[-2:]))
    hoisted = {c: reader.read(c) for c in constants if c in needed}
    outputs = {"W": reader.read(step[-2]), "grad W": _read_gradient(step[-1], reader)}
    running = Formula(outputs, reader.loop_variables, named=hoisted.values(), name_loops=True)
    stored = {running.names[t]: describe_array(c, plan, mode) for c, t in hoisted.items() if t in running.names}
    return ExplanationReport(
        problem=repr(objective),
        read=tuple(describe_reading(objective)),
        fit=tuple(describe_fit(getattr(x, "solutions_", ()))),
        equations=_find_equations(x, objective, program, getattr(program, "solver", None)),
        written=written,
        drawn=drawn,
        fired=Counter({name: fired[name] for name in PASSES if fired[name]}),
        running=running,
        when=_schedule(running, names, hoisted.values()),
        stored=stored,
        notes=notes,
        backend=_describe_backend(mode, program, plan),
        memory=describe_memory(plan, fits, step, stored, len(constants) - len(stored)),
        step=describe_step(program, left),
    )


def _count_passes(W: Any, reader: GraphReader) -> tuple[Counter, tuple[str, ...]]:
    """Return how many nodes each pass replaced in W, and notes about loops that no pass replaces."""
    *_, last = found = list(stages([W]))
    if last.name != "as written":
        notes = [f"A loop is not lifted, which is slow: {why_not_lifted(s, reader)}." for s in find_scans(last.graphs)]
        return sum((stage.fired for stage in found), Counter()), tuple(notes)
    lifted = found[-2].graphs
    reason = why_not_tiled(lifted)
    note = (
        f"The passes are not applied: they would create an array of {format_bytes(largest_array(lifted))}, more than "
        f"{format_bytes(MEMORY)}{'' if reason is None else f', and {reason}'}. W is differentiated as written, loop by "
        "loop, which is slow."
    )
    return Counter(), (note,)


def _find_objective(x: Any) -> tuple[Objective, Program | None]:
    """Return the objective that is to be explained and its program, if there is one."""
    if isinstance(x, Objective):
        return x, None
    if isinstance(x, Program):
        return x.objective, x
    program: Program | None = getattr(x, "program_", None)
    if program is not None:
        return program.objective, program
    # The class is asked first: a property that raises AttributeError has its own message, which must reach the user.
    if not hasattr(type(x), "objective_") and not hasattr(x, "objective_"):
        raise TypeError(f"x must be an Objective, a Program, or trained from one, got {x!r}.")
    return x.objective_, None


def _find_inputs(objective: Any) -> list[Any]:
    variables, _ = leaves([objective.value, *objective.bounds])
    return [v for v in variables if v is not objective.variable]


def _read_gradient(graph: Any, reader: GraphReader) -> Term:
    """Return the gradient as a term; the gradient of a loop is a longer loop, too long to be of use."""
    if not find_scans([graph]):
        return reader.read(graph)
    names = {v for v in ancestors([graph]) if v.owner is None and v.name}
    args = sorted(map(reader.read, names), key=lambda term: term.label)
    return reader.terms.make("call", ("loop", None), args, 1)


def _schedule(formula: Formula, names: Sequence[str | float], hoisted: Iterable[Term]) -> dict[str, str]:
    """Return when each name is computed."""
    variable, *rest = names
    assert isinstance(variable, str)
    when = {variable: "variable"} | {name: "input" for name in rest if isinstance(name, str)}
    once = set().union(*map(_subterms, hoisted))
    for line in formula.lines:
        changes = variable in line.term.names or line.name in ("W", "grad W")
        when[line.name] = "step" if changes else "once" if line.term in once else "tile"
    return when


def _subterms(term: Term) -> set[Term]:
    """Return a term and all terms in it."""
    seen, stack = {term}, [term]
    while stack:
        new = set(stack.pop().args) - seen
        seen |= new
        stack += new
    return seen


def _find_equations(*things: Any) -> dict[int | str, str]:
    """Return the equations whose code is in the class of one of these objects or of their kernels."""
    classes, kernels = {type(thing) for thing in things}, [getattr(thing, "kernel", None) for thing in things]
    while kernels:
        kernel = kernels.pop()
        if isinstance(kernel, Kernel):
            classes.add(type(kernel))
            kernels += kernel.get_params(deep=False).values()
    return {n: e.title for n, e in EQUATIONS.items() if any(classes & set(_classes_along(name)) for name in e.code)}


def _classes_along(name: str) -> Iterator[type]:
    """Yield the classes along a dotted name below symsvm."""
    target: Any = symsvm
    for part in name.split("."):
        target = getattr(target, part, None)
        if isinstance(target, type):
            yield target


def _describe_backend(mode: Any, program: Program | None, plan: ExecutionPlan) -> str:
    key = mode_key(mode)
    name = f"{key} ({MODES[key]})" if isinstance(key, str) else str(key)
    return f"{name}, {plan.lam.dtype}" + ("" if program is not None else "; not compiled yet")
