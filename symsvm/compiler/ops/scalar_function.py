"""ScalarFunction: a function of numbers, extracted from an elementwise graph and written as source for inner loops."""

# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false, reportArgumentType=false, reportReturnType=false
# PyTensor's types do not say that graphs are tensors.

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.gradient import grad
from pytensor.graph.basic import Constant
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import toposort
from pytensor.tensor.elemwise import DimShuffle, Elemwise

from symsvm.graphs.dtypes import retype
from symsvm.graphs.structure import scalar_constant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from symsvm._lib.types import Array, Graph

__all__ = ["DTYPES", "INFIX", "TEMPLATES", "NotElementwise", "ScalarFunction"]


class NotElementwise(Exception):
    """A graph has an operation that cannot be written into an inner loop."""


class ScalarFunction:
    """A scalar expression of scalar inputs; two are equal if their expressions are.

    >>> x, y = pt.scalars("x", "y")
    >>> f = ScalarFunction([x, y], pt.exp(-x) * y)
    >>> print(f.source(["a", "b"], "result"))
    t0 = -a
    t1 = exp(t0)
    result = t1 * b
    >>> f == ScalarFunction([y, x], pt.exp(-y) * x)
    True
    """

    def __init__(self, inputs: Sequence[Graph], output: Graph) -> None:
        fresh = [v.type() for v in inputs]
        (self.output,) = clone_replace([output], dict(zip(inputs, fresh, strict=True)))
        self.inputs = fresh
        self.dtype: str = self.output.dtype
        text = self.source([f"x{i}" for i in range(len(fresh))], f"{self.dtype} y")
        self.key = text, tuple(v.dtype for v in fresh)

    @classmethod
    def of(cls, graph: Graph, leaves: Sequence[Graph]) -> ScalarFunction:
        """Return an elementwise graph of any dimension as a function of the variables `leaves`."""
        inputs = [pt.scalar(dtype=leaf.dtype) for leaf in leaves]
        known = dict(zip(leaves, inputs, strict=True))

        def scalar(variable):
            if variable not in known:
                if scalar_constant(variable) is not None:
                    known[variable] = pt.constant(scalar_constant(variable))
                elif variable.owner is not None and isinstance(variable.owner.op, Elemwise):
                    args = [scalar(v) for v in variable.owner.inputs]
                    outputs = Elemwise(variable.owner.op.scalar_op)(*args, return_list=True)
                    known[variable] = outputs[variable.owner.outputs.index(variable)]
                else:
                    raise NotElementwise(f"{variable.owner.op if variable.owner else variable} is not elementwise")
            return known[variable]

        return cls(inputs, scalar(graph))

    def __eq__(self, other):
        return isinstance(other, ScalarFunction) and self.key == other.key

    def __hash__(self):
        return hash(self.key)

    def __repr__(self):
        return f"<{self.key[0]}>".replace("\n", "; ")

    def __call__(self, *arrays: Array) -> Array:
        """Evaluate the function in NumPy."""
        names, code = self._code
        scope = {**_NUMPY, **dict(zip(names, arrays, strict=True))}
        with np.errstate(all="ignore"):
            exec(code, scope)
        return scope["y"]

    @functools.cached_property
    def _code(self):
        """The names of the inputs, and the compiled source."""
        names = [f"x{i}" for i in range(len(self.inputs))]
        return names, compile(self.source(names, "y"), "<scalar function>", "exec")

    def graph(self, arrays: Sequence[Graph]) -> Graph:
        """Return the graph of the expression applied to arrays that broadcast."""
        return vectorize_graph(self.output, dict(zip(self.inputs, arrays, strict=True)))

    def grad(self, i: int) -> ScalarFunction | None:
        """Return the derivative by input i, a function of the same inputs; None if the function does not use it."""
        gradient = grad(self.output, self.inputs[i], disconnected_inputs="ignore", return_disconnected="none")
        if gradient is None:
            return None
        gradient = rewrite_graph(gradient, include=("canonicalize", "stabilize"), clone=True)
        return ScalarFunction(self.inputs, gradient).retyped(self.dtype)

    def times(self) -> ScalarFunction:
        """Return the function times one more input."""
        factor = pt.scalar(dtype=self.dtype)
        return ScalarFunction([*self.inputs, factor], self.output * factor)

    def permuted(self, order: Sequence[int]) -> ScalarFunction:
        """Return the function with its inputs in another order: the new input i is the old input order[i]."""
        return ScalarFunction([self.inputs[i] for i in order], self.output)

    def retyped(self, dtype: str) -> ScalarFunction:
        """Return the function in another floating type."""
        (output, *inputs), _ = retype([self.output, *self.inputs], dtype)
        return ScalarFunction(inputs, output)

    @property
    def is_identity(self) -> bool:
        """Whether the function is its only input."""
        return self.inputs == [self.output]

    @property
    def is_product(self) -> bool:
        """Whether the function is the product of its two inputs."""
        node = self.output.owner
        return (
            len(self.inputs) == 2
            and node is not None
            and isinstance(node.op.scalar_op, ps.Mul)
            and len(node.inputs) == 2
            and set(node.inputs) == set(self.inputs)
        )

    @property
    def is_squared_difference(self) -> bool:
        """Whether the function is (a - b)^2 of its two inputs, or ((a - b) w)^2 of three."""
        node, (a, b, *weights) = self.output.owner, self.inputs
        if len(weights) > 1 or node is None or not isinstance(node.op.scalar_op, ps.Sqr):
            return False
        (root,) = node.inputs
        if weights:
            if root.owner is None or not isinstance(root.owner.op.scalar_op, ps.Mul):
                return False
            root, *factors = root.owner.inputs
            if factors != weights:
                return False
        difference = root.owner
        return (
            difference is not None and isinstance(difference.op.scalar_op, ps.Sub) and set(difference.inputs) == {a, b}
        )

    def source(self, names: Sequence[str], result: str) -> str:
        """Return the statements that compute `result` from variables with these names."""
        known = dict(zip(self.inputs, names, strict=True))
        lines = []

        def name(variable):
            if isinstance(variable, Constant):
                return _literal(variable)
            return known[variable]

        for node in toposort([self.output]):
            if isinstance(node.op, DimShuffle):
                known[node.outputs[0]] = name(node.inputs[0])
                continue
            if not isinstance(node.op, Elemwise) or len(node.outputs) != 1:
                raise NotElementwise(f"{node.op} is not elementwise")
            known[node.outputs[0]] = f"t{len(lines)}"
            text = _expression(node, [name(v) for v in node.inputs])
            lines.append(f"t{len(lines)} = {text}")
        if not lines or known.get(self.output) != f"t{len(lines) - 1}":
            return "\n".join([*lines, f"{result} = {name(self.output)}"])
        *lines, last = lines
        return "\n".join([*lines, f"{result} = {last.partition(' = ')[2]}"])


def _literal(constant):
    value, dtype = constant.data.reshape(()).item(), constant.dtype
    if dtype == "bool":
        return repr(value)
    if not dtype.startswith("float"):
        return repr(int(value))
    text = {np.inf: "inf", -np.inf: "-inf"}.get(value, "nan" if value != value else repr(float(value)))
    return f"{dtype}({text})"


def _expression(node, args):
    scalar_op, dtype, inputs = node.op.scalar_op, node.outputs[0].dtype, node.inputs
    if isinstance(scalar_op, ps.Cast):
        return f"{dtype}({args[0]})"
    if isinstance(scalar_op, ps.Switch):
        condition = args[0] if inputs[0].dtype == "bool" else f"{args[0]} != 0"
        return f"where({condition}, {', '.join(_cast(args[1:], inputs[1:], dtype))})"
    if dtype.startswith("float"):
        args = _cast(args, inputs, dtype)
    if isinstance(scalar_op, ps.Pow):
        return _power(inputs[1], args, dtype)
    if isinstance(scalar_op, (ps.ScalarMaximum, ps.ScalarMinimum)):
        return _extreme(node, args, "<" if isinstance(scalar_op, ps.ScalarMaximum) else ">")
    for kind, infix in INFIX.items():
        if type(scalar_op) is kind:
            return f" {_LOGICAL.get(infix, infix) if dtype == 'bool' else infix} ".join(args)
    for kind, template in TEMPLATES.items():
        if type(scalar_op) is kind:
            return template.format(*args, one=f"{dtype}(1.0)", zero=f"{dtype}(0.0)")
    raise NotElementwise(f"{scalar_op} has no inner loop")


def _cast(args, inputs, dtype):
    """Return the arguments cast to the type of the result, as PyTensor casts them."""
    cast = []
    for a, v in zip(args, inputs, strict=True):
        if v.dtype != dtype and isinstance(v, Constant) and dtype.startswith("float"):
            a = repr(float(v.data.item()))  # 2 and 2.0 give the same source
        cast.append(a if v.dtype == dtype else f"{dtype}({a})")
    return cast


def _power(exponent, args, dtype):
    """Return x^n, by products if n is a small positive integer."""
    value = float(exponent.data.item()) if isinstance(exponent, Constant) else 0.5
    if 1 <= value <= 64 and value == int(value):
        return _products(args[0], int(value))
    if not dtype.startswith("float"):
        raise NotElementwise("a power of integers has no inner loop")
    return f"power({', '.join(args)})"


def _extreme(node, args, worse):
    """Return the maximum or minimum of two, NaN if one of them is: a comparison with NaN is false and selects it."""
    (a, b), (first, second) = args, node.inputs
    if isinstance(first, Constant):
        (a, b), second = (b, a), first
    value = f"where({a} {worse} {b}, {b}, {a})"
    return value if isinstance(second, Constant) else f"where({b} == {b}, {value}, {b})"


def _products(x, n):
    if n == 1:
        return x
    half = _products(x, n // 2)
    square = f"square({half})"
    return square if n % 2 == 0 else f"({square} * {x})"


# Types that a number may be cast to.
DTYPES = (*(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)), "float32", "float64")


def _special(name):
    """Return a function of scipy.special, which is slow to import and seldom needed."""
    return getattr(importlib.import_module("scipy.special"), name)


_NUMPY = {
    **{name: getattr(np, name) for name in DTYPES},
    **{name: getattr(np, name) for name in ("exp", "log", "sqrt", "tanh", "expm1", "log1p", "sin", "cos", "tan")},
    **{
        name: getattr(np, name)
        for name in ("sinh", "cosh", "asin", "acos", "atan", "floor", "square", "power", "where")
    },
    "inf": np.inf,
    "nan": np.nan,
    "bool": np.bool_,
    "erf": lambda x: _special("erf")(x),
    "sigmoid": lambda x: _special("expit")(x),
}
INFIX = {
    ps.Add: "+",
    ps.Mul: "*",
    ps.Sub: "-",
    ps.TrueDiv: "/",
    ps.LT: "<",
    ps.GT: ">",
    ps.LE: "<=",
    ps.GE: ">=",
    ps.EQ: "==",
    ps.NEQ: "!=",
    ps.AND: "&",
    ps.OR: "|",
}
_LOGICAL = {"+": "|", "*": "&"}  # of booleans
TEMPLATES = {
    ps.Neg: "-{0}",
    ps.Abs: "abs({0})",
    ps.Sqr: "square({0})",
    ps.Sqrt: "sqrt({0})",
    ps.Reciprocal: "{one} / {0}",
    ps.Exp: "exp({0})",
    ps.Log: "log({0})",
    ps.Tanh: "tanh({0})",
    ps.Sigmoid: "sigmoid({0})",
    ps.Expm1: "expm1({0})",
    ps.Log1p: "log1p({0})",
    ps.Sin: "sin({0})",
    ps.Cos: "cos({0})",
    ps.Tan: "tan({0})",
    ps.Sinh: "sinh({0})",
    ps.Cosh: "cosh({0})",
    ps.ArcSin: "asin({0})",
    ps.ArcCos: "acos({0})",
    ps.ArcTan: "atan({0})",
    ps.Erf: "erf({0})",
    ps.Floor: "floor({0})",
    ps.Sign: "where({0} > {zero}, {one}, where({0} < {zero}, -{one}, {0}))",
    ps.Identity: "{0}",
    ps.Second: "{1}",
    ps.Clip: "where({0} < {1}, {1}, where({0} > {2}, {2}, {0}))",
    ps.Softplus: "where({0} > {zero}, {0}, {zero}) + log1p(exp(-abs({0})))",
}
