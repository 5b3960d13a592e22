"""The execution plan of a problem: what a run computes once, what a step repeats, and which loops are not lifted."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pytensor.compile.mode import get_mode
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot

from symsvm.compiler.functions import value_and_grad
from symsvm.compiler.lifting import MEMORY, largest_array, lift, lower
from symsvm.compiler.meshes import is_mesh_mode
from symsvm.compiler.ops import KernelGram, KernelMatvec, NotElementwise, factor
from symsvm.compiler.rewrites.products import tiled_gram
from symsvm.compiler.rewrites.reduce_to_sum import ScanBody, added_terms
from symsvm.explanation.formula import Formula
from symsvm.graphs.structure import varying_axes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import Any

    from pytensor.graph.basic import Apply, Variable

    from symsvm.explanation.graph_reader import GraphReader
    from symsvm.objectives import Objective
    from symsvm.solvers.program import Program

__all__ = [
    "ExecutionPlan",
    "describe_array",
    "describe_memory",
    "describe_step",
    "find_scans",
    "format_bytes",
    "make_plan",
    "why_not_lifted",
    "why_not_tiled",
]


class ExecutionPlan(NamedTuple):
    """The graphs of a step, (..., W, gradient), over their leaves.

    `with_shapes` returns graphs whose leaves have the shapes of a run, as far as these are known.
    """

    step: list[Any]
    lam: Any
    given: list[Any]
    extras: list[Any]
    memory: float
    with_shapes: Callable[[Iterable[Variable]], list[Any]]


def make_plan(objective: Objective, program: Program | None, originals: Sequence[Variable]) -> ExecutionPlan:
    """Return the plan of a program, or of an objective without one; `originals` are the leaves of the user's graph."""
    if program is None:
        lam, *given = originals
        step = lower(lift(value_and_grad(objective.value, objective.variable), math.inf))
        extras, memory = [], MEMORY
    else:
        functions = program.functions
        step, lam, given, extras = functions.step, functions.lam, functions.given, functions.extras
        memory = program.memory
    leaves = zip([lam, *given], originals, strict=True)
    sized: dict[Any, Any] = {v: v.type.clone(shape=_known_shape(original))() for v, original in leaves}

    def with_shapes(graphs: Iterable[Variable]) -> list[Any]:
        return clone_replace(list(graphs), sized, rebuild_strict=False)

    return ExecutionPlan(step, lam, given, extras, memory, with_shapes)


def _known_shape(v: Any) -> tuple[int | None, ...]:
    """Return the shape of a leaf, as far as it is known before a run."""
    if isinstance(v, SharedVariable):
        return np.shape(v.get_value(borrow=True))
    return v.type.shape


# ---- sentences about a plan


def describe_array(variable: Any, plan: ExecutionPlan, mode: Any) -> str:
    """Return the shape and size of a stored array, and how it is computed if not by PyTensor."""
    (sized,) = plan.with_shapes([variable])
    shape = str(sized.type.shape).replace("None", "?")
    text = f"{shape} {sized.type.dtype}" if sized.ndim else f"a {sized.type.dtype}"
    if None not in sized.type.shape:
        text += f", {format_bytes(_bytes(sized))}"
    if is_mesh_mode(mode) and variable.ndim == 2:
        n = mode.mesh.devices.size
        return f"{text}, its rows spread over {n} device{'' if n == 1 else 's'}"
    generated = mode is get_mode("NUMBA") and variable.ndim == 2 and _is_generated(variable)
    return text + (", by loops generated from its expression" if generated else "")


def _is_generated(variable: Any) -> bool:
    owner: Any = tiled_gram(variable).owner
    return isinstance(owner.op, KernelGram)


def describe_memory(
    plan: ExecutionPlan, fits: bool, step: Sequence[Variable], stored: Collection[str], others: int
) -> str:
    """Say whether matrices are computed once (hoisted) or in tiles, and the memory limit."""
    limit = format_bytes(plan.memory)
    owners = (v.owner for v in ancestors(step) if v.owner is not None)
    tiled: list[Any] = [node for node in owners if isinstance(node.op, KernelMatvec)]
    if tiled:
        matrices = plan.with_shapes([node.op.graph(node.inputs) for node in tiled])
        return (
            f"tiled: a matrix of {format_bytes(max(map(_bytes, matrices)))} does not fit the memory limit of {limit}. "
            "Each step computes products with it one tile at a time; the matrix is never stored."
        )
    sized = plan.with_shapes(plan.step)
    if not fits:
        reason = why_not_tiled(sized)
        return (
            f"too small: an array of {format_bytes(largest_array(sized))} does not fit the memory limit of {limit}, "
            f"and it cannot be tiled{'' if reason is None else f': {reason}'}. A run stops with an error before the "
            "first step; raise memory."
        )
    if not stored:
        return f"no part of W can be computed before the steps; the memory limit is {limit}."
    more = f" (and {others} smaller)" if others else ""
    text = f"hoisted: {', '.join(stored)}{more}, computed once a run and stored; the memory limit is {limit}."
    if any(None in v.type.shape for v in sized):
        text += " If the shapes of a run need more, products are tiled instead."
    return text


def describe_step(program: Program | None, step: Sequence[Variable]) -> str:
    """Say what a step repeats."""
    nodes = {v.owner for v in ancestors(step) if v.owner is not None}
    n = sum(isinstance(node.op, KernelMatvec) or _has_matrix(node) for node in nodes)
    products = f"{n or 'no'} product{'' if n == 1 else 's'} with a matrix"
    if program is None:
        return f"W and its gradient take {products}."
    rule = (inspect.getdoc(program.solver) or "").partition("\n")[0]
    return f"{program.solver!r}: {rule} It takes {products}."


def _has_matrix(node: Apply) -> bool:
    """Whether a node is a product with a matrix, not of two vectors."""
    return isinstance(node.op, Dot) and any(varying_axes(v) == {0, 1} for v in node.inputs)


def _bytes(variable: Any) -> int:
    return math.prod(n or 0 for n in variable.type.shape) * variable.type.numpy_dtype.itemsize


def format_bytes(n: float) -> str:
    """Return a number of bytes as text.

    >>> format_bytes(1000), format_bytes(72000000)
    ('1000 bytes', '68.7 MiB')
    """
    units = ["bytes", "KiB", "MiB", "GiB"]
    while n >= 1024 and len(units) > 1:
        n /= 1024
        units.pop(0)
    return f"{n:.4g} {units[0]}" if units[0] == "bytes" else f"{n:.3g} {units[0]}"


# ---- loops and matrices that no pass could replace


def find_scans(graphs: Iterable[Variable]) -> list[Any]:
    """Return the Scan nodes of graphs, without those inside other Scans."""
    nodes = dict.fromkeys(v.owner for v in ancestors(graphs) if v.owner is not None and isinstance(v.owner.op, Scan))
    return list(nodes)


def why_not_lifted(scan: Any, reader: GraphReader) -> str:
    """Say why no pass replaces a Scan; the reader knows the names of its sequences."""
    info = scan.op.info
    if scan.op.name == "rows":
        return "it is intended, so that only one row is in memory at a time"
    if info.as_while:
        return "it may stop before the last row"
    if info.n_mit_mot or info.n_mit_sot:
        return "a step uses more than the previous step"
    inner = ScanBody(scan)
    pairs = list(zip(inner.states, inner.next_states, strict=True))
    for (accumulator, new), output in zip(pairs, scan.outputs, strict=False):
        added = added_terms(new, accumulator)
        if added is None:
            return f"a step does more than add to the accumulator: {_step_formula(output, reader)}"
        if any(inner.vectorise(term) is None for term in added):
            if set(ancestors(added)) & inner.carried:
                return "what it adds depends on another accumulator"
            return "what it adds contains a loop that no pass replaces"
    if pairs:
        return "all intermediate values are used, not only the last one"
    return "the result of a row contains a loop that no pass replaces"


def _step_formula(output: Variable, reader: GraphReader) -> str:
    """Return the formula of a step, `acc = ...`."""
    term = reader.read(output)
    (line, *_) = Formula({term.label.states[0]: term.args[-1]}, reader.loop_variables).lines
    return " ".join(str(line).split())


def why_not_tiled(graphs: Iterable[Variable]) -> str | None:
    """Return why the first product with a matrix of pairs that has no tiles has none; None if all have."""
    for v in ancestors(graphs):
        if v.owner is None or not isinstance(v.owner.op, Dot):
            continue
        for K in v.owner.inputs:
            while K.owner is not None and isinstance(K.owner.op, DimShuffle) and K.owner.op.new_order == (1, 0):
                (K,) = K.owner.inputs
            try:
                if K.owner is not None and varying_axes(K) == {0, 1}:
                    factor(K)
            except NotElementwise as reason:
                return str(reason)
    return None
