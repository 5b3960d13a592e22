"""Report: what is known about a problem and how it is run, before it is written as text, picture or page."""

from collections import Counter
from dataclasses import dataclass

from pytensor.graph.basic import Constant
from pytensor.graph.traversal import ancestors

import symsvm
from symsvm.compiler.functions import MODES, hoist, mode_key, resolve_mode
from symsvm.compiler.lifting import MEMORY, PASSES, largest, stages, tile
from symsvm.compiler.rewrites.counting import counting
from symsvm.compiler.step_functions import split_step
from symsvm.explanation.formula import Formula
from symsvm.explanation.loops import loops, not_tiled, why
from symsvm.explanation.plan import described, memory_of, plan_of, size, step_of
from symsvm.explanation.reading import Reader
from symsvm.graphs.structure import leaves
from symsvm.kernels import Kernel
from symsvm.objectives import Objective
from symsvm.paper.dictionary import EQUATIONS
from symsvm.solvers.program import Program

__all__ = ["Report", "report"]


@dataclass(frozen=True)
class Report:
    """The findings, as texts and as lines of formulas.

    Attributes
    ----------
    problem : the objective with its feasible set.
    equations : number -> title, the equations that it implements.
    written, drawn : the graph as written, for a text and for a picture (where every loop is a line of its own).
    fired : how many nodes each pass replaced in W, and the tiling in what a step computes.
    running : W and its gradient after the passes.
    when : name -> "input", "variable", "once" a run, each "step", or "tile" (in each step, a tile at a time).
    held : name -> what is said of an array that is held from step to step.
    notes : sentences about loops that stay.
    backend, memory, step : sentences about where it runs, what it holds and what it repeats.
    """

    problem: str
    equations: dict
    written: Formula
    drawn: Formula
    fired: Counter
    running: Formula
    when: dict
    held: dict
    notes: tuple
    backend: str
    memory: str
    step: str


def report(x):
    """Find out about an objective, a program, or what has one as `program_` or `objective_`."""
    objective, program = _subject(x)
    mode = resolve_mode(getattr(x, "mode", None) if program is None else program.functions.mode)
    given = _given(objective) if program is None else program.given
    originals = [objective.variable, *given]
    names = [float(v.data.item()) if isinstance(v, Constant) else v.name or "input" for v in originals]
    names[0] = objective.variable.name or "v"
    reader = Reader({v: name for v, name in zip(originals, names, strict=True) if isinstance(name, str)})
    W = reader.read(objective.value)
    written, drawn = (Formula({"W": W}, reader.rows, loops=each) for each in (False, True))
    fired, notes = _passes(objective.value, reader)
    plan = plan_of(objective, program, originals)
    constants, _, left = split_step(plan.step, [plan.lam, *plan.extras], mode)
    fits = largest(plan.sizes([*constants, *left])) <= plan.memory
    step = plan.step
    if not fits:
        with counting() as tiled:
            tile(step[-2:])
        fired += tiled
        step = tile(step)
    constants, _, left = hoist(step, [plan.lam, *plan.extras])
    reader = Reader(dict(zip([plan.lam, *plan.given], names, strict=True)))
    needed = set(ancestors(step[-2:]))
    main = {c: reader.read(c) for c in constants if c in needed}
    outputs = {"W": reader.read(step[-2]), "grad W": _gradient_term(step[-1], reader)}
    running = Formula(outputs, reader.rows, also=main.values(), loops=True)
    held = {running.names[t]: described(c, plan, mode) for c, t in main.items() if t in running.names}
    return Report(
        problem=repr(objective),
        equations=_equations(x, objective, program, getattr(program, "solver", None)),
        written=written,
        drawn=drawn,
        fired=Counter({name: fired[name] for name in PASSES if fired[name]}),
        running=running,
        when=_when(running, names, main.values()),
        held=held,
        notes=notes,
        backend=_backend(mode, program, plan),
        memory=memory_of(plan, fits, step, held, len(constants) - len(held)),
        step=step_of(program, left),
    )


def _passes(W, reader):
    """How often each pass fired on W, and what is to be said of the loops that stay."""
    *_, last = found = list(stages([W]))
    if last.name != "as written":
        notes = [f"A loop stays a loop, which is slow: {why(scan, reader)}." for scan in loops(last.graphs)]
        return sum((stage.fired for stage in found), Counter()), tuple(notes)
    lifted = found[-2].graphs
    reason = not_tiled(lifted)
    note = (
        "No pass was kept, and W is differentiated as written, loop by loop, which is slow: they would make an array "
        f"of {size(largest(lifted))}, more than {size(MEMORY)}{'' if reason is None else f', and {reason}'}."
    )
    return Counter(), (note,)


def _subject(x):
    """(objective, program or None) of what is to be explained."""
    if isinstance(x, Objective):
        return x, None
    program = x if isinstance(x, Program) else getattr(x, "program_", None)
    if program is not None:
        return program.objective, program
    if not hasattr(type(x), "objective_") and not hasattr(
        x, "objective_"
    ):  # a property says itself why it is not there
        raise TypeError(f"x must be an Objective, a Program, or trained from one, got {x!r}.")
    return x.objective_, None


def _given(objective):
    variables, _ = leaves([objective.value, *objective.bounds])
    return [v for v in variables if v is not objective.variable]


def _gradient_term(graph, reader):
    """The gradient as a term; that of a loop is a longer loop that nobody would read."""
    if not loops([graph]):
        return reader.read(graph)
    names = {v for v in ancestors([graph]) if v.owner is None and v.name}
    args = sorted(map(reader.read, names), key=lambda term: term.label)
    return reader.terms.make("call", ("loop", None), args, 1)


def _when(formula, names, hoisted):
    variable, *rest = names
    when = {variable: "variable"} | {name: "input" for name in rest if isinstance(name, str)}
    once = set().union(*map(_below, hoisted))
    for line in formula.lines:
        steps = variable in line.term.names or line.name in ("W", "grad W")
        when[line.name] = "step" if steps else "once" if line.term in once else "tile"
    return when


def _below(term):
    """A term and all that is in it."""
    seen, stack = {term}, [term]
    while stack:
        new = set(stack.pop().args) - seen
        seen |= new
        stack += new
    return seen


def _equations(*things):
    """The numbered equations whose code is in the class of one of these, or of a kernel in them."""
    classes, kernels = {type(thing) for thing in things}, [getattr(thing, "kernel", None) for thing in things]
    while kernels:
        kernel = kernels.pop()
        if isinstance(kernel, Kernel):
            classes.add(type(kernel))
            kernels += kernel.get_params(deep=False).values()
    return {n: e.title for n, e in EQUATIONS.items() if any(classes & set(_along(name)) for name in e.code)}


def _along(name):
    """The classes that a dotted name below symsvm goes through."""
    target = symsvm
    for part in name.split("."):
        target = getattr(target, part, None)
        if isinstance(target, type):
            yield target


def _backend(mode, program, plan):
    key = mode_key(mode)
    name = f"{key} ({MODES[key]})" if isinstance(key, str) else str(key)
    return f"{name}, {plan.lam.dtype}" + ("" if program is not None else "; not compiled yet")
