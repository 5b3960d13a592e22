"""`save` and `load`, which choose a format by the extension of the file, and `parity` of ONNX files."""

from __future__ import annotations

import os
import pathlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from symsvm.io.file_errors import ModelFileError
from symsvm.io.models.libsvm_model import read_libsvm_model, write_libsvm_model
from symsvm.io.models.native import read_native, write_native

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Path, Points

__all__ = ["Parity", "load", "parity", "save"]


def save(model: Any, path: Path, *, precision: Literal["float64", "float32"] | None = None) -> None:
    """Write a fitted model to a file, atomically; the extension is the format.

    Parameters
    ----------
    model : estimator or Pipeline
        An estimator, or (except for .libsvm) a pipeline of scalings and an estimator, for .symsvm also with a
        vectoriser of texts at its head.
    path : str or path-like
        The name of the file: `.symsvm` holds everything, `.libsvm` is LIBSVM's model file, `.onnx` needs the extra
        symsvm[onnx].
    precision : {"float64", "float32"}, optional
        Of .onnx files: "float64" (the default) for a graph of plain operators, "float32" for ONNX's SVM operators.
    """
    path = pathlib.Path(os.fspath(path))
    if precision is not None and path.suffix != ".onnx":
        raise ModelFileError(path, f"precision={precision!r} applies only to .onnx files; others store every bit.")
    if path.suffix == ".symsvm":
        write_native(model, path)
    elif path.suffix == ".libsvm":
        write_libsvm_model(model, path)
    elif path.suffix == ".onnx":
        from symsvm.io.models.onnx_model import write_onnx  # needs onnx

        write_onnx(model, path, precision or "float64")
    else:
        raise ModelFileError(path, f"the extension must be .symsvm, .libsvm or .onnx, got {path.suffix!r}.")


def load(path: Path, *, trusted: Collection[str] = (), n_features: int | None = None) -> Any:
    """Read a model from a file; the extension is the format.

    Parameters
    ----------
    path : str or path-like
        The name of a `.symsvm` or `.libsvm` file.
    trusted : collection of str
        Names "module:name" of kernels that a .symsvm file may import; importing runs their code.
    n_features : int, optional
        The number of features of a .libsvm file, which has only columns in which a support vector has an entry.

    Returns
    -------
    estimator or Pipeline
        The fitted model.
    """
    path = pathlib.Path(os.fspath(path))
    if isinstance(trusted, str):
        raise TypeError(f"trusted must be a list of names, got {trusted!r}.")
    if trusted and path.suffix != ".symsvm":
        raise ModelFileError(path, "trusted= applies only to .symsvm files; others name no code.")
    if n_features is not None and path.suffix != ".libsvm":
        raise ModelFileError(path, "n_features= applies only to .libsvm files.")
    if path.suffix == ".symsvm":
        return read_native(path, frozenset(trusted))
    if path.suffix == ".libsvm":
        return read_libsvm_model(path, n_features)
    if path.suffix == ".onnx":
        raise ModelFileError(path, "ONNX files cannot be loaded: run it with onnxruntime, or load the .symsvm file.")
    raise ModelFileError(path, f"the extension must be .symsvm or .libsvm, got {path.suffix!r}.")


@dataclass(frozen=True)
class Parity:
    """How far the outputs of an ONNX file are from those of a model on some points.

    Parameters
    ----------
    points : int
        The number of points.
    labels : int or None
        The number of points with another label, None for a regression.
    differences : dict
        For each other output the largest absolute difference, and the largest absolute value to compare it with.
    dtype : str
        The floating type of the graph.
    """

    points: int
    labels: int | None
    differences: dict[str, tuple[float, float]]
    dtype: str

    def __str__(self) -> str:
        lines = [f"{self.points} points, {self.dtype}"]
        lines += [] if self.labels is None else [f"label: {self.labels} differ"]
        lines += [
            f"{name}: largest difference {difference:.1e}, largest value {size:.3g}"
            for name, (difference, size) in self.differences.items()
        ]
        return "\n".join(lines)


def parity(model: Any, path: Path, X: Points | ArrayLike) -> Parity:
    """Compare an ONNX file, run by onnxruntime, with the model that it was made from.

    Parameters
    ----------
    model : estimator or Pipeline
        The fitted model.
    path : str or path-like
        The name of the .onnx file.
    X : array-like or CSR of shape (n, d)
        The points to compare on.

    Returns
    -------
    Parity
        The differences.
    """
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    dtype = "float64" if "double" in session.get_inputs()[0].type else "float32"
    names = [output.name for output in session.get_outputs()]
    points: Any = X
    points = points.toarray() if hasattr(points, "toarray") else np.asarray(points)
    found: dict[str, Any] = dict(zip(names, session.run(names, {"x": points.astype(dtype)}), strict=True))
    methods = {"value": "predict", "scores": "decision_function", "probabilities": "predict_proba"}
    differences = {}
    for name in names:
        if name in methods:
            expected = getattr(model, methods[name])(points)
            difference = np.abs(expected - found[name]).max(initial=0.0)
            differences[name] = (float(difference), float(np.abs(expected).max(initial=0.0)))
    labels = int((model.predict(points) != found["label"]).sum()) if "label" in names else None
    return Parity(len(points), labels, differences, dtype)
