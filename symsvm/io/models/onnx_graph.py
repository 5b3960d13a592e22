"""OnnxGraph: nodes and constants of a graph in one floating type, with the kernels and the votes written out."""

import itertools

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from symsvm.io.models.model_file_error import ModelFileError
from symsvm.kernels import RBF, Constant, Laplacian, Linear, Polynomial, Sigmoid
from symsvm.kernels.algebra import Power, Product, Scale, Sum

__all__ = ["OnnxGraph"]

OPSETS = {"": 17, "ai.onnx.ml": 3}
IR_VERSION = 8  # of the year of these operators, so that older runtimes read the file


class OnnxGraph:
    """A graph that grows node by node; values are known by their names."""

    def __init__(self, path, dtype):
        self.path, self.dtype = path, np.dtype(dtype)
        self.nodes, self.constants, self.outputs = [], [], []

    def add(self, op, *inputs, outputs=1, domain="", **attributes):
        """Add a node; return the name of its output, or the names."""
        inputs = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        names = [f"{op}_{len(self.nodes)}_{i}" if outputs > 1 else f"{op}_{len(self.nodes)}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value):
        """The name of a constant; floats become the graph's floating type."""
        array = np.asarray(value)
        array = array.astype(self.dtype) if array.dtype.kind == "f" else array
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def output(self, name, value, kind, *shape):
        """Let a value leave the graph by this name."""
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, kind, ["n", *shape]))

    @property
    def float_kind(self):
        """ONNX's name of the floating type."""
        return TensorProto.DOUBLE if self.dtype == "float64" else TensorProto.FLOAT

    def model(self, d, note):
        """The whole graph as a model over points x (n, d)."""
        x = helper.make_tensor_value_info("x", self.float_kind, ["n", d])
        graph = helper.make_graph(self.nodes, "symsvm", [x], self.outputs, self.constants)
        opsets = [helper.make_opsetid(*item) for item in OPSETS.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name=note)

    # ---- kernels

    def gram(self, kernel, x, V):
        """K(x_i, v_j), (n, s), for constant points V."""
        if type(kernel) in (Sum, Product):
            left, right = self.gram(kernel.k1, x, V), self.gram(kernel.k2, x, V)
            return self.add("Add" if type(kernel) is Sum else "Mul", left, right)
        if type(kernel) is Scale:
            # A row of numbers: onnxruntime makes a single factor of a MatMul an attribute, which is float32.
            return self.add("Mul", np.full((1, len(V)), float(kernel.c)), self.gram(kernel.k1, x, V))
        if type(kernel) is Power:
            return self.add("Pow", self.gram(kernel.k1, x, V), float(kernel.n))
        if type(kernel) is Constant:
            return self.add("Add", self.add("MatMul", x, np.zeros(V.T.shape)), float(kernel.c))
        if type(kernel) is RBF:
            return self.add("Exp", self.add("Mul", self._squares(x, V), -1 / (2 * float(kernel.sigma) ** 2)))
        if type(kernel) is Laplacian:
            apart = self.add("Abs", self.add("Sub", self.add("Unsqueeze", x, np.array([1])), V[None]))
            total = self.add("ReduceSum", apart, np.array([2]), keepdims=0)
            return self.add("Exp", self.add("Mul", total, -float(kernel.gamma)))
        if type(kernel) is Linear:
            return self.add("MatMul", x, V.T)
        if type(kernel) in (Polynomial, Sigmoid):
            inner = self.add("Add", self.add("MatMul", x, float(kernel.gamma) * V.T), float(kernel.coef0))
            return self.add("Tanh", inner) if type(kernel) is Sigmoid else self.add("Pow", inner, float(kernel.degree))
        raise ModelFileError(
            self.path, f"ONNX has no operators for the kernel {kernel!r}: save as .symsvm, or use one with a name."
        )

    def _squares(self, x, V):
        """|x - v|^2 = |x|^2 + |v|^2 - 2 x.v, never negative, of points around the middle of V: less cancels there."""
        middle = V.mean(axis=0) if len(V) else np.zeros(V.shape[1])
        x, V = self.add("Sub", x, middle), V - middle
        lengths = self.add("ReduceSum", self.add("Mul", x, x), np.array([1]), keepdims=1)
        total = self.add("Add", self.add("MatMul", x, -2 * V.T), self.add("Add", lengths, (V * V).sum(axis=1)[None]))
        return self.add("Max", total, 0.0)

    # ---- several classes

    def votes(self, values, k):
        """As `symsvm.estimators.base.votes`: a vote a pair, and a part below 1/3 from the sums of values."""
        first, second = np.zeros((k * (k - 1) // 2, k)), np.zeros((k * (k - 1) // 2, k))
        for column, (a, b) in enumerate(itertools.combinations(range(k), 2)):
            first[column, a] = second[column, b] = 1.0
        wins = self._at_least_0(values)
        losses = self.add("Sub", 1.0, wins)
        count = self.add("Add", self.add("MatMul", wins, first), self.add("MatMul", losses, second))
        sums = self.add("MatMul", values, first - second)
        size = self.add("Mul", self.add("Add", self.add("Abs", sums), 1.0), 3.0)
        return self.add("Add", count, self.add("Div", sums, size))

    def _at_least_0(self, values):
        return self.add("Cast", self.add("GreaterOrEqual", values, 0.0), to=self.float_kind)

    def walk(self, values, k):
        """The directed acyclic graph of decisions: each pair rules out its first or its last class."""
        table = np.zeros((k, k), dtype="int64")
        for column, (a, b) in enumerate(itertools.combinations(range(k), 2)):
            table[a, b] = column
        ones = self.add("Cast", self.add("ArgMax", values, axis=1, keepdims=1), to=TensorProto.INT64)
        first = self.add("Mul", ones, np.array(0))
        last = self.add("Add", first, np.array(k - 1))
        for _ in range(k - 1):
            pair = self.add("Gather", table.ravel(), self.add("Add", self.add("Mul", first, np.array(k)), last))
            value = self.add("GatherElements", values, pair, axis=1)
            wins = self.add("Cast", self.add("GreaterOrEqual", value, 0.0), to=TensorProto.INT64)
            last = self.add("Sub", last, wins)
            first = self.add("Add", first, self.add("Sub", np.array(1), wins))
        return self.add("Squeeze", first, np.array([1]))
