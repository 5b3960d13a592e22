"""Plan: what a run computes once and holds, what it repeats in each step, and why."""

import inspect
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from pytensor.compile.mode import get_mode
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.math import Dot

from symsvm.compiler.functions import value_and_grad
from symsvm.compiler.lifting import MEMORY, largest, lift, lower
from symsvm.compiler.ops import KernelGram, KernelMatvec
from symsvm.compiler.rewrites.tile import gram
from symsvm.explanation.loops import not_tiled
from symsvm.graphs.structure import varies

__all__ = ["Plan", "described", "memory_of", "plan_of", "size", "step_of"]


class Plan(NamedTuple):
    """The graphs of a step, (..., W, gradient), over their leaves; `sizes` gives graphs the shapes of a run."""

    step: list
    lam: Variable
    given: list
    extras: list
    memory: int
    sizes: Callable


def plan_of(objective, program, originals):
    """Return the plan of a program, or that of an objective alone; `originals` are the leaves as the user has them."""
    if program is None:
        step, (lam, *given), extras, memory = _gradient(objective), originals, [], MEMORY
    else:
        machine = program.functions
        step, lam, given, extras, memory = machine.step, machine.lam, machine.given, machine.extras, program.memory
    sized = {v: v.type.clone(shape=_shape(original))() for v, original in zip([lam, *given], originals, strict=True)}
    return Plan(
        step, lam, given, extras, memory, lambda graphs: clone_replace(list(graphs), sized, rebuild_strict=False)
    )


def _gradient(objective):
    """W and its gradient, as a machine would lift them."""
    return lower(lift(value_and_grad(objective.value, objective.variable), math.inf))


def _shape(v):
    """The shape of a leaf, as far as it is known before a run."""
    if isinstance(v, SharedVariable):
        return np.shape(v.get_value(borrow=True))
    return v.type.shape


def described(variable, plan, mode):
    """The shape and size of an array that is held, and how it is computed if not by PyTensor."""
    (sized,) = plan.sizes([variable])
    shape = str(sized.type.shape).replace("None", "?")
    text = f"{shape} {sized.type.dtype}" if sized.ndim else f"a {sized.type.dtype}"
    if None not in sized.type.shape:
        text += f", {size(_bytes(sized))}"
    looped = mode is get_mode("NUMBA") and variable.ndim == 2 and isinstance(gram(variable).owner.op, KernelGram)
    return text + (", by loops generated from its expression" if looped else "")


def memory_of(plan, fits, step, held, others):
    """The plan in words: hoisted or tiled."""
    limit = size(plan.memory)
    tiled = [v.owner for v in ancestors(step) if v.owner is not None and isinstance(v.owner.op, KernelMatvec)]
    if tiled:
        matrices = plan.sizes([node.op.graph(node.inputs) for node in tiled])
        return (
            f"tiled: a matrix of {size(max(map(_bytes, matrices)))} does not fit the memory of {limit}; products with "
            "it are computed in each step a tile at a time, and it is never held."
        )
    sized = plan.sizes(plan.step)
    if not fits:
        reason = not_tiled(sized)
        return (
            f"too small: an array of {size(largest(sized))} does not fit the memory of {limit}, and there are no tiles"
            f"{'' if reason is None else f', for {reason}'}; a program stops before it and says so."
        )
    if not held:
        return f"nothing that W needs can be computed ahead of the steps; the memory is {limit}."
    more = f" (and {others} smaller)" if others else ""
    text = f"hoisted: {', '.join(held)}{more}, computed once a run and held; the memory is {limit}."
    if any(None in v.type.shape for v in sized):
        text += " Where a run's shapes ask for more, products are tiled instead."
    return text


def step_of(program, left):
    """What a step repeats."""
    nodes = {v.owner for v in ancestors(left) if v.owner is not None}
    n = sum(isinstance(node.op, KernelMatvec) or _has_matrix(node) for node in nodes)
    products = f"{n or 'no'} product{'' if n == 1 else 's'} with a matrix"
    if program is None:
        return f"W and its gradient take {products}."
    rule = inspect.getdoc(program.solver).partition("\n")[0]
    return f"{program.solver!r}: {rule} It takes {products}."


def _has_matrix(node):
    """Whether a node multiplies a matrix, and not two vectors."""
    return isinstance(node.op, Dot) and any(varies(v) == {0, 1} for v in node.inputs)


def _bytes(variable):
    return math.prod(n or 0 for n in variable.type.shape) * variable.type.numpy_dtype.itemsize


def size(n):
    """Bytes as text.

    >>> size(1000), size(72000000)
    ('1000 bytes', '68.7 MiB')
    """
    units = ["bytes", "KiB", "MiB", "GiB"]
    while n >= 1024 and len(units) > 1:
        n /= 1024
        units.pop(0)
    return f"{n:.4g} {units[0]}" if units[0] == "bytes" else f"{n:.3g} {units[0]}"
