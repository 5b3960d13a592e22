"""Scores: how good a model is on points with labels, as a dict, and as tables."""

import numpy as np

from symsvm.cli.machine import machine_of
from symsvm.cli.output import facts, grid, styled

__all__ = ["kind_of", "score_lines", "scored", "trained_on", "training_score"]


def kind_of(model):
    """What a model is: a "classifier", a "regressor" or an "outlier" detector."""
    machine = machine_of(model)
    if hasattr(machine, "classes_"):
        return "classifier"
    return "outlier" if type(machine).__name__ == "OneClassSVM" else "regressor"


def scored(model, X, y):
    """The scores of a model on points X with labels y."""
    kind = kind_of(model)
    found = {"classifier": _classified, "regressor": _regressed, "outlier": _outliers}[kind](model, X, y)
    return {"kind": kind, "points": len(X) if isinstance(X, list) else X.shape[0], **found}


def _classified(model, X, y):
    from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    predicted = model.predict(X)
    classes = np.unique(np.concatenate([np.asarray(machine_of(model).classes_), y]))
    matrix = confusion_matrix(y, predicted, labels=classes)
    columns = precision_recall_fscore_support(y, predicted, labels=classes, zero_division=0.0)
    names = ("precision", "recall", "f1", "support")
    each = {
        str(c): dict(zip(names, row, strict=True))
        for c, row in zip(classes.tolist(), zip(*columns, strict=True), strict=True)
    }
    correct = int(np.trace(matrix))
    found = {
        "correct": correct,
        "accuracy": correct / len(y),
        "classes": classes.tolist(),
        "confusion": matrix,
        "each": each,
    }
    found["balanced_accuracy"] = float(np.mean([row["recall"] for row in each.values() if row["support"]]))
    found |= _ranked(model, X, y)
    if getattr(machine_of(model), "calibration", None) is not None and np.isin(y, model.classes_).all():
        from sklearn.metrics import log_loss

        found["log_loss"] = float(log_loss(y, model.predict_proba(X), labels=model.classes_))
    return found


def _ranked(model, X, y):
    """The areas under the ROC and the precision-recall curves, of each class against the rest, or the second of two."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    machine = machine_of(model)
    classes = np.asarray(machine.classes_)
    if getattr(machine, "decision_function_shape", "ovr") == "ovo" and len(classes) > 2:
        return {}
    values = np.asarray(model.decision_function(X))
    columns = {classes[1]: values} if len(classes) == 2 else dict(zip(classes.tolist(), values.T, strict=True))
    areas = {}
    for name, column in columns.items():
        truth = y == name
        if 0 < np.count_nonzero(truth) < len(y):
            areas[str(name)] = {
                "roc_auc": roc_auc_score(truth, column),
                "average_precision": average_precision_score(truth, column),
            }
    if not areas:
        return {"areas": {}, "roc_auc": None, "average_precision": None}
    means = {key: float(np.mean([area[key] for area in areas.values()])) for key in ("roc_auc", "average_precision")}
    return {"areas": areas, **means}


def _regressed(model, X, y):
    predicted, y = model.predict(X), np.asarray(y, dtype="float64")
    error, spread = predicted - y, np.sum((y - y.mean()) ** 2)
    square = float(np.mean(error**2))
    moving = np.std(predicted) > 0 and spread > 0
    return {
        "mean_squared_error": square,
        "root_mean_squared_error": square**0.5,
        "mean_absolute_error": float(np.mean(np.abs(error))),
        "largest_error": float(np.max(np.abs(error))),
        "r2": float(1 - np.sum(error**2) / spread) if spread > 0 else None,
        "squared_correlation": float(np.corrcoef(predicted, y)[0, 1] ** 2) if moving else None,
    }


def _outliers(model, X, y):
    """The share of outliers; and how well they are told where the labels are 1 (inlier) and another one."""
    predicted = model.predict(X)
    found = {"outliers": int(np.sum(predicted < 0)), "outlier_share": float(np.mean(predicted < 0))}
    if y is not None and y.dtype.kind in "biuf" and len(np.unique(y)) == 2 and 1 in y:
        from sklearn.metrics import average_precision_score, roc_auc_score

        inlier, values = y == 1, model.decision_function(X)
        found |= {
            "correct": int(np.sum((predicted > 0) == inlier)),
            "accuracy": float(np.mean((predicted > 0) == inlier)),
        }
        found |= {
            "roc_auc": roc_auc_score(inlier, values),
            "average_precision": average_precision_score(inlier, values),
        }
    return found


def score_lines(scores, width):
    """Tables of some scores, as wide as `width` allows."""
    n = scores["points"]
    if scores["kind"] == "regressor":
        names = {"mean squared error": "mean_squared_error", "its root": "root_mean_squared_error"}
        names |= {"mean absolute error": "mean_absolute_error", "largest error": "largest_error"}
        names |= {"R2": "r2", "squared correlation": "squared_correlation"}
        yield facts([(name, _digits(scores[key], 6)) for name, key in names.items()])
        return
    lines = []
    if scores["kind"] == "outlier":
        lines.append(("outliers", f"{scores['outliers']}/{n} = {scores['outlier_share']:.4f}"))
    if "accuracy" in scores:
        lines.append(("accuracy", f"{scores['correct']}/{n} = {scores['accuracy']:.4f}"))
    if "balanced_accuracy" in scores:
        lines.append(("balanced accuracy", _digits(scores["balanced_accuracy"])))
    mean = "mean " if len(scores.get("areas", ())) > 1 else ""
    for name, key in (
        (f"{mean}ROC AUC", "roc_auc"),
        (f"{mean}average precision", "average_precision"),
        ("log loss", "log_loss"),
    ):
        if scores.get(key) is not None:
            lines.append((name, _digits(scores[key])))
    yield facts(lines)
    if "each" in scores:
        yield from _per_class(scores, width)
        yield from _confusion(scores, width)


def trained_on(model, X, y):
    """The scores of the training points that one prediction gives."""
    kind, n = kind_of(model), len(X) if isinstance(X, list) else X.shape[0]
    if kind == "regressor":
        return scored(model, X, y)
    predicted = model.predict(X)
    counted = int(np.sum(predicted < 0 if kind == "outlier" else predicted == y))
    names = ("outliers", "outlier_share") if kind == "outlier" else ("correct", "accuracy")
    return {"kind": kind, "points": n, **dict(zip(names, (counted, counted / n), strict=True))}


def training_score(scores):
    """The name and the value of the one score that a summary has of the training points."""
    if scores["kind"] == "regressor":
        return "training error", f"{scores['mean_squared_error']:.6g} mean squared, R2 {_digits(scores['r2'])}"
    if scores["kind"] == "outlier":
        return "outliers", f"{scores['outliers']}/{scores['points']} = {scores['outlier_share']:.4f}"
    return "training accuracy", f"{scores['correct']}/{scores['points']} = {scores['accuracy']:.4f}"


def _per_class(scores, width):
    areas, rows = scores.get("areas", {}), []
    several = len(areas) > 1
    for name, row in scores["each"].items():
        cells = [name, *(_digits(row[key]) for key in ("precision", "recall", "f1")), int(row["support"])]
        if several:
            cells += [_digits(areas[name][key]) if name in areas else "" for key in ("roc_auc", "average_precision")]
        rows.append(cells)
    names = ["class", "precision", "recall", "f1", "points", *(("ROC AUC", "avg precision") if several else ())]
    yield grid(names, rows, width=width)


def _confusion(scores, width):
    """The matrix, rows true; the largest confusions instead where it is too wide for the terminal."""
    names, matrix = list(map(str, scores["classes"])), np.asarray(scores["confusion"])
    cell = max(*map(len, names), len(str(matrix.max()))) + 2
    if min(max(map(len, names)), 12) + 2 + cell * len(names) <= width:
        yield styled(("confusion matrix", "bold"), ", a row for each true class, a column for each predicted one")
        yield grid(["", *names], [[name, *row] for name, row in zip(names, matrix.tolist(), strict=True)], width=width)
        return
    wrong = matrix - np.diag(np.diag(matrix))
    worst = [np.unravel_index(i, matrix.shape) for i in np.argsort(-wrong, axis=None, kind="stable")[:10]]
    rows = [(names[i], names[j], wrong[i, j]) for i, j in worst if wrong[i, j]]
    yield styled(
        ("the largest confusions", "bold"), f" of {len(names)} classes; the whole matrix is in --json, or wider"
    )
    yield grid(["true", "predicted", "points"], rows, left=2, width=width)


def _digits(value, digits=4):
    if value is None:
        return "undefined"
    return f"{value:.{digits}g}" if digits != 4 else f"{value:.4f}"
