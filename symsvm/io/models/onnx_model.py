"""Fitted models as ONNX graphs for onnxruntime: plain operators in float64, or ONNX's SVM operators in float32.

The input is `x` (n, d). Classifiers have the outputs `label`, `scores` (as `decision_function`) and, if calibrated,
`probabilities`; regressors have `value`; `OneClassSVM` has `label` and `scores`. This module needs the package onnx.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from symsvm import __version__
from symsvm._lib.atomic_write import atomic_write
from symsvm._lib.dense import as_dense
from symsvm._lib.validation import choice
from symsvm.compiler.ops.squared_distances import centre
from symsvm.io.data import Scaling
from symsvm.io.file_errors import ModelFileError
from symsvm.io.models.estimator_state import ESTIMATORS, calibration_arrays
from symsvm.io.models.libsvm_model import libsvm_kernel_params
from symsvm.kernels import RBF, Constant, Laplacian, Linear, Polynomial, Sigmoid
from symsvm.kernels.algebra import Power, Product, Scale, Sum

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    raise ImportError(f"ONNX files need more packages, pip install 'symsvm[onnx]': {error}.") from None

if TYPE_CHECKING:
    from symsvm._lib.types import Array, Path
    from symsvm.kernels import Kernel

__all__ = ["OnnxGraph", "write_onnx"]

_OPSETS = {"": 17, "ai.onnx.ml": 3}
_IR_VERSION = 8  # of the year of these operators, so that older runtimes read the file
_MAX_BYTES = 2**31 - 2**20  # of a protobuf
_ERROR = 1e-11  # of a kernel value


def write_onnx(model: Any, path: Path, precision: str = "float64") -> None:
    """Write a model to an .onnx file, as plain operators in float64 or ONNX's SVM operators in float32."""
    choice(precision, "precision", ("float64", "float32"))
    *scalings, estimator = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    if ESTIMATORS.get(type(estimator).__name__) is not type(estimator):
        known = ", ".join(ESTIMATORS)
        raise ModelFileError(
            path, f"{type(estimator).__name__} cannot be exported: an ONNX file holds {known}, after scalings."
        )
    check_is_fitted(estimator)
    graph, x = OnnxGraph(path, precision), "x"
    for scaling in scalings:
        x = _scale(graph, x, scaling)
    values = _decision_values(graph, x, estimator)
    if hasattr(estimator, "classes_"):
        _add_class_outputs(graph, estimator, values)
    elif hasattr(estimator, "offset_"):
        score = graph.add("Squeeze", values, np.array([1]))
        inside = graph.add("Cast", graph.add("GreaterOrEqual", score, 0.0), to=TensorProto.INT64)
        label = graph.add("Sub", graph.add("Mul", inside, np.array(2)), np.array(1))
        graph.output("label", label, TensorProto.INT64)
        graph.output("scores", score, graph.float_kind)
    else:
        graph.output("value", graph.add("Squeeze", values, np.array([1])), graph.float_kind)
    if sum(len(constant.raw_data) for constant in graph.constants) > _MAX_BYTES:
        raise ModelFileError(path, "an ONNX file holds at most 2 GB: save as .symsvm.")
    written = graph.model((scalings or [estimator])[0].n_features_in_, f"symsvm {__version__}")
    onnx.checker.check_model(written)
    with atomic_write(path) as file:
        file.write(written.SerializeToString())


def _scale(graph: OnnxGraph, x: str, scaling: Any) -> str:
    """The points after a scaling."""
    if type(scaling) is Scaling:
        return graph.add("Add", graph.add("Mul", graph.add("Sub", x, scaling.shift_), scaling.scale_), scaling.offset_)
    if type(scaling) is StandardScaler:
        x = graph.add("Sub", x, scaling.mean_) if scaling.with_mean else x
        return graph.add("Div", x, scaling.scale_) if scaling.with_std else x
    if type(scaling) is MaxAbsScaler:
        return graph.add("Div", x, scaling.scale_)
    if type(scaling) is MinMaxScaler:
        x = graph.add("Add", graph.add("Mul", x, scaling.scale_), scaling.min_)
        return graph.add("Clip", x, *map(float, scaling.feature_range)) if scaling.clip else x
    raise ModelFileError(
        graph.path,
        f"{type(scaling).__name__} cannot be exported: use Scaling of symsvm.data, StandardScaler, MinMaxScaler or "
        "MaxAbsScaler.",
    )


# ---- decision values


def _decision_values(graph: OnnxGraph, x: str, model: Any) -> str:
    """The decision values, (n, problems)."""
    if not hasattr(model, "support_"):
        return graph.add("Add", graph.add("MatMul", x, np.atleast_2d(as_dense(model.coef_)).T), model.intercept_)
    if callable(model.kernel) and model.kernel_ is None:
        raise ModelFileError(graph.path, "a kernel that is a Python function cannot be exported: use a symsvm kernel.")
    coef, b = model.decision_coef_, model.intercept_
    if model.kernel_ is None:
        K = graph.add("Gather", x, model.support_.astype("int64"), axis=1)
        return graph.add("Add", graph.add("MatMul", K, coef), b)
    V = model.support_vectors_
    V = np.asarray(V.toarray() if hasattr(V, "toarray") else V, dtype="float64")
    if graph.dtype == "float64":
        return graph.add("Add", graph.add("MatMul", graph.gram(model.kernel_, x, V), coef), b)
    return _svm_operators(graph, x, model, V, coef)


def _svm_operators(graph: OnnxGraph, x: str, model: Any, V: Array, coef: Array) -> str:
    """SVMClassifier for pairs of classes, an SVMRegressor for each other problem."""
    kernel = libsvm_kernel_params(model.kernel_)
    if kernel is None:
        raise ModelFileError(
            graph.path, f"ONNX's SVM operators have no kernel {model.kernel_!r}: save with precision='float64'."
        )
    numbers = [kernel.get("gamma", 1.0), kernel.get("coef0", 0.0), float(kernel.get("degree", 3))]
    names = {"linear": "LINEAR", "polynomial": "POLY", "rbf": "RBF", "sigmoid": "SIGMOID"}
    common = {"domain": "ai.onnx.ml", "kernel_type": names[kernel["kernel_type"]], "kernel_params": numbers}
    k = len(getattr(model, "classes_", ()))
    if k > 2 and model.multi_class != "ovr":
        return graph.add_pair(
            "SVMClassifier",
            x,
            classlabels_ints=list(range(k)),
            coefficients=as_dense(model.dual_coef_).ravel().tolist(),
            rho=model.intercept_.tolist(),
            support_vectors=V.ravel().tolist(),
            vectors_per_class=model.n_support_.tolist(),
            **common,
        )[1]
    columns = []
    for c, b in zip(coef.T, model.intercept_.tolist(), strict=True):
        used = np.flatnonzero(c)
        attributes = {"coefficients": c[used].tolist(), "support_vectors": V[used].ravel().tolist(), "rho": [b]}
        columns.append(graph.add("SVMRegressor", x, n_supports=len(used), **attributes, **common))
    return columns[0] if len(columns) == 1 else graph.add("Concat", *columns, axis=1)


# ---- classes


def _add_class_outputs(graph: OnnxGraph, model: Any, values: str) -> None:
    """Scores, probabilities and labels from the values of the problems."""
    k = len(model.classes_)
    pairs = k > 2 and model.multi_class in ("ovo", "dag")
    scores = graph.add("Squeeze", values, np.array([1])) if k == 2 else graph.votes(values, k) if pairs else values
    probabilities = None
    if model.calibration_method is not None:
        probabilities = _probabilities(graph, model, values if k == 2 else scores)
    if model.calibration is not None:
        index = graph.add("ArgMax", probabilities, axis=1, keepdims=0)
    elif k == 2:
        index = graph.add("Cast", graph.add("Greater", scores, 0.0), to=TensorProto.INT64)
    elif model.multi_class == "dag":
        index = graph.decision_dag(values, k)
    elif getattr(model, "counts_votes", False):
        index = graph.majority(values, k)
    else:
        index = graph.add("ArgMax", scores, axis=1, keepdims=0)
    classes, kind = _label_constant(graph, model.classes_)
    graph.output("label", graph.add("Gather", classes, index), kind)
    by_pair = pairs and getattr(model, "decision_function_shape", "ovr") == "ovo"
    shape = () if k == 2 else (k * (k - 1) // 2,) if by_pair else (k,)
    graph.output("scores", values if by_pair else scores, graph.float_kind, *shape)
    if probabilities is not None:
        graph.output("probabilities", probabilities, graph.float_kind, k)


def _label_constant(graph: OnnxGraph, classes: Array) -> tuple[str, int]:
    """The name of a constant with the classes, and its type."""
    kinds = {"i": "int64", "u": "int64", "b": "bool", "f": "float64", "U": object, "O": object, "T": object}
    if classes.dtype.kind not in kinds:
        raise ModelFileError(graph.path, f"ONNX has no labels of type {classes.dtype}: use integers for the classes.")
    array = classes.astype(kinds[classes.dtype.kind])
    kind = {"i": "INT64", "b": "BOOL", "f": "DOUBLE", "O": "STRING"}[array.dtype.kind]
    name = f"constant_{len(graph.constants)}"
    graph.constants.append(numpy_helper.from_array(array, name))
    return name, getattr(TensorProto, kind)


def _probabilities(graph: OnnxGraph, model: Any, scores: str) -> str:
    """The calibrated scores (n, k), or (n, 1) for two classes, divided by their sum."""
    k, arrays = len(model.classes_), calibration_arrays(model.calibration_)
    if model.calibration_method == "sigmoid":
        A, B = np.hstack(arrays)
        p = graph.add(
            "Div", 1.0, graph.add("Add", graph.add("Exp", graph.add("Add", graph.add("Mul", scores, A), B)), 1.0)
        )
    else:
        columns = [graph.add("Gather", scores, np.array([c]), axis=1) for c in range(len(arrays))]
        columns = [_isotonic(graph, column, *array) for column, array in zip(columns, arrays, strict=True)]
        p = columns[0] if len(columns) == 1 else graph.add("Concat", *columns, axis=1)
    if k == 2:
        return graph.add("Concat", graph.add("Sub", 1.0, p), p, axis=1)
    total = graph.add("ReduceSum", p, np.array([1]), keepdims=1)
    positive = graph.add("Greater", total, 0.0)
    return graph.add("Where", positive, graph.add("Div", p, graph.add("Where", positive, total, 1.0)), 1.0 / k)


def _isotonic(graph: OnnxGraph, f: str, x: Array, y: Array) -> str:
    """Linear interpolation of thresholds: y_0 + sum_i (y_i+1 - y_i) clip((f - x_i) / (x_i+1 - x_i), 0, 1)."""
    if len(x) == 1:
        return graph.add("Add", graph.add("Mul", f, 0.0), float(y[0]))
    parts = graph.add("Clip", graph.add("Div", graph.add("Sub", f, x[None, :-1]), np.diff(x)[None]), 0.0, 1.0)
    return graph.add("Add", graph.add("MatMul", parts, np.diff(y)[:, None]), float(y[0]))


# ---- graph


class OnnxGraph:
    """Nodes and constants of a graph in one floating type; values are strings, the names of outputs."""

    def __init__(self, path: Path, dtype: str) -> None:
        self.path, self.dtype = path, np.dtype(dtype)
        self.nodes, self.constants, self.outputs = [], [], []

    def add(self, op: str, *inputs: Any, domain: str = "", **attributes: Any) -> str:
        """Add a node with one output; return its name. Inputs that are not names become constants."""
        name = f"{op}_{len(self.nodes)}"
        self._add_node(op, inputs, [name], domain, attributes)
        return name

    def add_pair(self, op: str, *inputs: Any, domain: str = "", **attributes: Any) -> tuple[str, str]:
        """Add a node with two outputs; return their names."""
        names = f"{op}_{len(self.nodes)}_0", f"{op}_{len(self.nodes)}_1"
        self._add_node(op, inputs, list(names), domain, attributes)
        return names

    def _add_node(self, op: str, inputs: tuple, outputs: list[str], domain: str, attributes: dict) -> None:
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        self.nodes.append(helper.make_node(op, names, outputs, domain=domain, **attributes))

    def constant(self, value: Any) -> str:
        """The name of a constant; floats become the graph's floating type."""
        array = np.asarray(value)
        array = array.astype(self.dtype) if array.dtype.kind == "f" else array
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def output(self, name: str, value: str, kind: int, *shape: int) -> None:
        """Make a value an output of the graph."""
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, kind, ["n", *shape]))

    @property
    def float_kind(self) -> int:
        """ONNX's number of the floating type."""
        return TensorProto.DOUBLE if self.dtype == "float64" else TensorProto.FLOAT

    def model(self, d: int, producer: str) -> onnx.ModelProto:
        """The graph as a model with the input x (n, d)."""
        x = helper.make_tensor_value_info("x", self.float_kind, ["n", d])
        graph = helper.make_graph(self.nodes, "symsvm", [x], self.outputs, self.constants)
        opsets = [helper.make_opsetid(*item) for item in _OPSETS.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name=producer)

    # ---- kernels

    def gram(self, kernel: Kernel, x: str, V: Array) -> str:
        """K(x_i, v_j), (n, s), for constant points V."""
        cls, params = type(kernel), kernel.get_params(deep=False)
        if cls in (Sum, Product):
            left, right = self.gram(params["k1"], x, V), self.gram(params["k2"], x, V)
            return self.add("Add" if cls is Sum else "Mul", left, right)
        if cls is Scale:
            # A row of equal numbers: onnxruntime fuses a single factor into MatMul as a float32 attribute.
            return self.add("Mul", np.full((1, len(V)), float(params["c"])), self.gram(params["k1"], x, V))
        if cls is Power:
            return self.add("Pow", self.gram(params["k1"], x, V), float(params["n"]))
        if cls is Constant:
            return self.add("Add", self.add("MatMul", x, np.zeros(V.T.shape)), float(params["c"]))
        if cls is RBF:
            gamma, w = 0.5, 1 / np.asarray(params["sigma"], dtype="float64")
            if not w.ndim:
                gamma, w = float(w**2 / 2), None
            return self.add("Exp", self.add("Mul", self._squared_distances(x, V, gamma, w), -gamma))
        if cls is Laplacian:
            differences = self.add("Abs", self.add("Sub", self.add("Unsqueeze", x, np.array([1])), V[None]))
            gamma = np.asarray(params["gamma"], dtype="float64")
            if gamma.ndim:
                differences, gamma = self.add("Mul", differences, gamma), 1.0
            total = self.add("ReduceSum", differences, np.array([2]), keepdims=0)
            return self.add("Exp", self.add("Mul", total, -float(gamma)))
        if cls is Linear:
            return self.add("MatMul", x, V.T)
        if cls in (Polynomial, Sigmoid):
            inner = self.add("Add", self.add("MatMul", x, float(params["gamma"]) * V.T), float(params["coef0"]))
            return self.add("Tanh", inner) if cls is Sigmoid else self.add("Pow", inner, float(params["degree"]))
        raise ModelFileError(
            self.path, f"ONNX has no operators for the kernel {kernel!r}: save as .symsvm, or use a named kernel."
        )

    def _squared_distances(self, x: str, V: Array, gamma: float, w: Array | None) -> str:
        """|x - v|^2 = |x|^2 + |v|^2 - 2 x.v, at least 0, with a centre of V as origin; of points times w, if given.

        Where support vectors are so far from it that the error of this, (d + 4) eps (|x|^2 + |v|^2), matters to
        exp(-gamma |x - v|^2), the differences are squared instead.
        """
        c, d = centre(V), V.shape[1]
        U = V - c if w is None else (V - c) * w
        if gamma * (d + 4) * np.finfo("float64").eps * 2 * float((U**2).sum(axis=1).max(initial=0.0)) > _ERROR:
            differences = self.add("Sub", self.add("Unsqueeze", x, np.array([1])), V[None])
            differences = differences if w is None else self.add("Mul", differences, w)
            return self.add("ReduceSum", self.add("Mul", differences, differences), np.array([2]), keepdims=0)
        x = self.add("Sub", x, c)
        x = x if w is None else self.add("Mul", x, w)
        lengths = self.add("ReduceSum", self.add("Mul", x, x), np.array([1]), keepdims=1)
        total = self.add("Add", self.add("MatMul", x, -2 * U.T), self.add("Add", lengths, (U * U).sum(axis=1)[None]))
        return self.add("Max", total, 0.0)

    # ---- several classes

    def votes(self, values: str, k: int) -> str:
        """As `symsvm.estimators.multiclass.votes`: votes of the pairs, plus less than 1/3 from sums of values."""
        first, second = np.zeros((k * (k - 1) // 2, k)), np.zeros((k * (k - 1) // 2, k))
        for column, (a, b) in enumerate(itertools.combinations(range(k), 2)):
            first[column, a] = second[column, b] = 1.0
        wins = self._is_nonnegative(values)
        losses = self.add("Sub", 1.0, wins)
        count = self.add("Add", self.add("MatMul", wins, first), self.add("MatMul", losses, second))
        sums = self.add("MatMul", values, first - second)
        size = self.add("Mul", self.add("Add", self.add("Abs", sums), 1.0), 3.0)
        return self.add("Add", count, self.add("Div", sums, size))

    def majority(self, values: str, k: int) -> str:
        """As `symsvm.estimators.multiclass.majority`: the class with the most votes, the first of several."""
        first, second = np.zeros((k * (k - 1) // 2, k)), np.zeros((k * (k - 1) // 2, k))
        for column, (a, b) in enumerate(itertools.combinations(range(k), 2)):
            first[column, a] = second[column, b] = 1.0
        wins = self.add("Cast", self.add("Greater", values, 0.0), to=self.float_kind)
        losses = self.add("Sub", 1.0, wins)
        count = self.add("Add", self.add("MatMul", wins, first), self.add("MatMul", losses, second))
        return self.add("ArgMax", count, axis=1, keepdims=0)

    def _is_nonnegative(self, values: str) -> str:
        return self.add("Cast", self.add("GreaterOrEqual", values, 0.0), to=self.float_kind)

    def decision_dag(self, values: str, k: int) -> str:
        """The class of a directed acyclic graph of decisions: each pair rules out its first or its last class."""
        table = np.zeros((k, k), dtype="int64")
        for column, (a, b) in enumerate(itertools.combinations(range(k), 2)):
            table[a, b] = column
        indices = self.add("Cast", self.add("ArgMax", values, axis=1, keepdims=1), to=TensorProto.INT64)
        first = self.add("Mul", indices, np.array(0))  # zeros (n, 1)
        last = self.add("Add", first, np.array(k - 1))
        for _ in range(k - 1):
            pair = self.add("Gather", table.ravel(), self.add("Add", self.add("Mul", first, np.array(k)), last))
            value = self.add("GatherElements", values, pair, axis=1)
            wins = self.add("Cast", self.add("GreaterOrEqual", value, 0.0), to=TensorProto.INT64)
            last = self.add("Sub", last, wins)
            first = self.add("Add", first, self.add("Sub", np.array(1), wins))
        return self.add("Squeeze", first, np.array([1]))
