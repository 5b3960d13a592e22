"""Pictures of an evaluation: curves, the confusion matrix, predictions against targets."""

import importlib.util
from pathlib import Path

import numpy as np

from symsvm.cli.errors import Refused

__all__ = ["drawn", "prepare"]


def prepare():
    """Have pictures drawn to files only; refuse them, before any work, where nothing is there to draw with."""
    if importlib.util.find_spec("matplotlib") is None:
        raise Refused("pictures need matplotlib, which is not installed: pip install 'symsvm[plot]'.")
    import matplotlib as mpl

    mpl.use("Agg")


def drawn(model, X, y, directory, scores):
    """Draw what suits a model into a directory; return the paths."""
    import matplotlib as mpl

    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"text.parse_math": False}):  # labels may have a $ in them
        return _pictures(model, X, y, directory, scores)


def _pictures(model, X, y, directory, scores):
    if scores["kind"] == "regressor":
        return [_predicted(model, X, y, directory / "predictions.png")]
    paths = []
    if scores.get("roc_auc") is not None:
        from symsvm.inspection import plot

        paths.append(_saved(plot.roc(model, X, y).figure_, directory / "roc.png"))
        paths.append(_saved(plot.precision_recall(model, X, y).figure_, directory / "precision_recall.png"))
    if "confusion" in scores:
        paths.append(_confusion(scores, directory / "confusion.png"))
    return paths


def _saved(figure, path):
    import matplotlib.pyplot as plt

    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)
    return str(path)


def _confusion(scores, path):
    """Rows true; the colour is the share of a row."""
    import matplotlib.pyplot as plt

    matrix, names = np.asarray(scores["confusion"]), list(map(str, scores["classes"]))
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    size = max(3.2, 0.45 * len(names) + 1.5)
    figure, ax = plt.subplots(figsize=(size, size))
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    for i, j in np.ndindex(*matrix.shape):
        if matrix[i, j]:
            ax.text(
                j,
                i,
                str(matrix[i, j]),
                ha="center",
                va="center",
                fontsize=8,
                color="white" if shares[i, j] > 0.5 else "black",
            )
    tilt = 90 if max(map(len, names)) > 4 else 0
    ax.set_xticks(range(len(names)), names, rotation=tilt)
    ax.set_yticks(range(len(names)), names)
    ax.set(xlabel="predicted", ylabel="true")
    return _saved(figure, path)


def _predicted(model, X, y, path):
    """Predictions against targets; the line is where they are equal."""
    import matplotlib.pyplot as plt

    predicted = model.predict(X)
    figure, ax = plt.subplots(figsize=(4.8, 4.8))
    ends = [min(y.min(), predicted.min()), max(y.max(), predicted.max())]
    ax.plot(ends, ends, color="#888888", linewidth=1.0, linestyle=":")
    ax.plot(y, predicted, "o", markersize=3, alpha=0.5, color="#0072B2")
    ax.set(xlabel="target", ylabel="prediction")
    return _saved(figure, path)
