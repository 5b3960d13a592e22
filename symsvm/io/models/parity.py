"""Parity: how far an ONNX file, run by onnxruntime, is from the model that it was made of."""

from dataclasses import dataclass

import numpy as np

__all__ = ["Parity", "parity"]


@dataclass(frozen=True)
class Parity:
    """What differs on some points.

    Attributes
    ----------
    points : how many there were.
    labels : how many got another label, None for a regression.
    differences : output -> the largest absolute difference, and the largest value to compare it with.
    dtype : of the graph.
    """

    points: int
    labels: int | None
    differences: dict
    dtype: str

    def __str__(self):
        lines = [f"{self.points} points, {self.dtype}"]
        lines += [] if self.labels is None else [f"label: {self.labels} differ"]
        lines += [
            f"{name}: largest difference {difference:.1e}, largest value {size:.3g}"
            for name, (difference, size) in self.differences.items()
        ]
        return "\n".join(lines)


def parity(model, path, X):
    """Run the .onnx file at `path` on points X (n, d) with onnxruntime, and compare it with `model`: a `Parity`."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    dtype = "float64" if "double" in session.get_inputs()[0].type else "float32"
    names = [output.name for output in session.get_outputs()]
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    found = dict(zip(names, session.run(names, {"x": X.astype(dtype)}), strict=True))
    methods = {"value": "predict", "scores": "decision_function", "probabilities": "predict_proba"}
    differences = {}
    for name in names:
        if name in methods:
            expected = getattr(model, methods[name])(X)
            gap = np.abs(expected - found[name]).max(initial=0.0)
            differences[name] = (float(gap), float(np.abs(expected).max(initial=0.0)))
    labels = int((model.predict(X) != found["label"]).sum()) if "label" in names else None
    return Parity(len(X), labels, differences, dtype)
