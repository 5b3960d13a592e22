"""ONNX: a fitted model as a graph for onnxruntime and others, in float64 or with the float32 operators for machines.

The input is `x` (n, d). Classifiers have the outputs `label`, `scores` (as `decision_function`) and, calibrated,
`probabilities`; regressors `value`; the one-class machine `label` and `scores`.
"""

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from symsvm import __version__
from symsvm._lib.atomic_write import atomic_write
from symsvm._lib.validation import choice
from symsvm.io.data import Scaling
from symsvm.io.models.calibrations import calibration_arrays
from symsvm.io.models.fitted import ESTIMATORS
from symsvm.io.models.model_file_error import ModelFileError
from symsvm.io.models.named_kernel import named_kernel

try:
    import onnx

    from symsvm.io.models.onnx_graph import OnnxGraph
except ImportError as error:
    raise ImportError(f"ONNX files need more packages, pip install 'symsvm[onnx]': {error}.") from None

__all__ = ["write_onnx"]

_LARGEST = 2**31 - 2**20  # bytes of a protobuf


def write_onnx(model, path, precision="float64"):
    """Write a model to an .onnx file, as plain operators in float64 or ONNX's own for machines in float32."""
    choice(precision, "precision", ("float64", "float32"))
    *scalings, machine = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    if ESTIMATORS.get(type(machine).__name__) is not type(machine):
        raise ModelFileError(path, f"{type(machine).__name__} is none of {', '.join(ESTIMATORS)}.")
    check_is_fitted(machine)
    graph, x = OnnxGraph(path, precision), "x"
    for scaling in scalings:
        x = _scaled(graph, x, scaling)
    values = _values(graph, x, machine)
    if hasattr(machine, "classes_"):
        _classify(graph, machine, values)
    elif hasattr(machine, "offset_"):
        score = graph.add("Squeeze", values, np.array([1]))
        inside = graph.add("Cast", graph.add("GreaterOrEqual", score, 0.0), to=onnx.TensorProto.INT64)
        label = graph.add("Sub", graph.add("Mul", inside, np.array(2)), np.array(1))
        graph.output("label", label, onnx.TensorProto.INT64)
        graph.output("scores", score, graph.float_kind)
    else:
        graph.output("value", graph.add("Squeeze", values, np.array([1])), graph.float_kind)
    if sum(len(constant.raw_data) for constant in graph.constants) > _LARGEST:
        raise ModelFileError(path, "an ONNX file holds at most 2 GB: save as .symsvm.")
    written = graph.model((scalings or [machine])[0].n_features_in_, f"symsvm {__version__}")
    onnx.checker.check_model(written)
    with atomic_write(path) as file:
        file.write(written.SerializeToString())


def _scaled(graph, x, scaling):
    """The points after one of the scalings."""
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
        f"{type(scaling).__name__} is no scaling that ONNX export knows: use Scaling of symsvm.data, StandardScaler, "
        "MinMaxScaler or MaxAbsScaler.",
    )


# ---- decision values, (n, problems)


def _values(graph, x, model):
    if not hasattr(model, "support_"):
        return graph.add("Add", graph.add("MatMul", x, np.atleast_2d(model.coef_).T), model.intercept_)
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
    return _operators(graph, x, model, V, coef)


def _operators(graph, x, model, V, coef):
    """SVMClassifier for pairs of classes, an SVMRegressor for each other problem."""
    kernel = named_kernel(model.kernel_)
    if kernel is None:
        raise ModelFileError(
            graph.path, f"ONNX's operators have no kernel {model.kernel_!r}: save with precision='float64'."
        )
    numbers = [kernel.get("gamma", 1.0), kernel.get("coef0", 0.0), float(kernel.get("degree", 3))]
    names = {"linear": "LINEAR", "polynomial": "POLY", "rbf": "RBF", "sigmoid": "SIGMOID"}
    common = {"domain": "ai.onnx.ml", "kernel_type": names[kernel["kernel_type"]], "kernel_params": numbers}
    k = len(getattr(model, "classes_", ()))
    if k > 2 and model.multi_class != "ovr":
        return graph.add(
            "SVMClassifier",
            x,
            outputs=2,
            classlabels_ints=list(range(k)),
            coefficients=model.dual_coef_.ravel().tolist(),
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


def _classify(graph, model, values):
    """Scores, probabilities and labels from the values of the problems."""
    k = len(model.classes_)
    pairs = k > 2 and model.multi_class in ("ovo", "dag")
    scores = graph.add("Squeeze", values, np.array([1])) if k == 2 else graph.votes(values, k) if pairs else values
    if model.calibration is not None:
        probabilities = _probabilities(graph, model, values if k == 2 else scores)
        index = graph.add("ArgMax", probabilities, axis=1, keepdims=0)
    elif k == 2:
        index = graph.add("Cast", graph.add("Greater", scores, 0.0), to=onnx.TensorProto.INT64)
    elif model.multi_class == "dag":
        index = graph.walk(values, k)
    else:
        index = graph.add("ArgMax", scores, axis=1, keepdims=0)
    classes, kind = _labels(graph, model.classes_)
    graph.output("label", graph.add("Gather", classes, index), kind)
    whole = pairs and getattr(model, "decision_function_shape", "ovr") == "ovo"
    shape = () if k == 2 else (k * (k - 1) // 2,) if whole else (k,)
    graph.output("scores", values if whole else scores, graph.float_kind, *shape)
    if model.calibration is not None:
        graph.output("probabilities", probabilities, graph.float_kind, k)


def _labels(graph, classes):
    """The classes as a constant, and its type."""
    kinds = {"i": "int64", "u": "int64", "b": "bool", "f": "float64", "U": object, "O": object, "T": object}
    if classes.dtype.kind not in kinds:
        raise ModelFileError(graph.path, f"ONNX has no labels of the type {classes.dtype}: number the classes.")
    array = classes.astype(kinds[classes.dtype.kind])
    kind = {"i": "INT64", "b": "BOOL", "f": "DOUBLE", "O": "STRING"}[array.dtype.kind]
    name = f"constant_{len(graph.constants)}"
    graph.constants.append(onnx.numpy_helper.from_array(array, name))
    return name, getattr(onnx.TensorProto, kind)


def _probabilities(graph, model, scores):
    """Each class's map of its scores (n, k), or (n, 1) for two classes, divided by their sum."""
    k, arrays = len(model.classes_), calibration_arrays(model.calibration_)
    if model.calibration == "sigmoid":
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
    some = graph.add("Greater", total, 0.0)
    return graph.add("Where", some, graph.add("Div", p, graph.add("Where", some, total, 1.0)), 1.0 / k)


def _isotonic(graph, f, x, y):
    """y_0 + sum_i (y_i+1 - y_i) clip((f - x_i) / (x_i+1 - x_i), 0, 1): straight lines between the thresholds."""
    if len(x) == 1:
        return graph.add("Add", graph.add("Mul", f, 0.0), float(y[0]))
    parts = graph.add("Clip", graph.add("Div", graph.add("Sub", f, x[None, :-1]), np.diff(x)[None]), 0.0, 1.0)
    return graph.add("Add", graph.add("MatMul", parts, np.diff(y)[:, None]), float(y[0]))
