"""Reports on data, models, certificates and scores: dictionaries for JSON, and tables for a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from symsvm.cli.model_building import describe_model, final_estimator, model_kind
from symsvm.cli.output import column_table, key_value_table, styled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.table import Table
    from rich.text import Text

    from symsvm._lib.types import Array

    Report = dict[str, Any]

__all__ = [
    "data_line",
    "describe_fit",
    "fit_table",
    "has_converged",
    "model_line",
    "problem_table",
    "score",
    "score_tables",
    "score_training",
]

# Statuses of a certificate, best first; the first ones are those of a converged problem.
_STATUSES = ("optimal", "stationary", "unknown", "feasible", "infeasible", "diverged")
_CONVERGED = _STATUSES[:2]
# The most classes and confusions that are listed.
_MAX_LISTED = 10


# ---- data and models


def data_line(data: Mapping[str, Any]) -> Text:
    """Return a line about points and labels, from `Table.describe`."""
    name, m, d = data["name"], data["rows"], data.get("features")
    text = f"{m} texts" if d is None else f"{m} points, {d} feature{'s' * (d != 1)}"
    if data.get("filled", 1.0) < 0.995:
        text += f", {100 * data['filled']:.3g} % not zero"
    if "classes" in data:
        counts = [f"{label} ({count})" for label, count in data["classes"].items()]
        more = f" and {len(counts) - _MAX_LISTED} more" if len(counts) > _MAX_LISTED else ""
        listed = ", ".join(counts[:_MAX_LISTED])
        text += f"; {len(counts)} labels: {listed}{more}" if len(counts) > 1 else f"; label {counts[0]}"
    if "targets" in data:
        targets = data["targets"]
        text += f"; targets from {targets['least']:g} to {targets['greatest']:g}, mean {targets['mean']:.4g}"
    return styled((name, "bold"), f": {text}")


def model_line(model: Mapping[str, Any]) -> Text:
    """Return a line about a model, from `describe_model`: its class, parameters, kernel and scaling."""
    names = ("C", "nu", "epsilon", "loss", "penalty", "class_weight", "calibration")
    params = {name: model["params"][name] for name in names if model["params"].get(name) is not None}
    if model["classes"] > 2:
        params["multi_class"] = model["params"]["multi_class"]
    parts = [f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in params.items()]
    if model["kernel"]:
        # Numbers inside the kernel's repr are cut to six digits.
        kernel = re.sub(r"\d+\.\d{6,}(e[+-]?\d+)?", lambda match: f"{float(match[0]):.6g}", model["kernel"])
        parts.append(f"kernel={kernel}")
        parts += [f"gamma={model['gamma']:.6g}"] if model["gamma"] else []
    before = "".join(f", {step}" for step in model["before"])
    return styled((model["class"], "bold cyan"), f"({', '.join(parts)}){before}")


# ---- fits


def describe_fit(model: Any, seconds: float | None = None) -> Report:
    """Return the model, its certificate, its support vectors and how it was solved."""
    import numpy as np

    estimator = final_estimator(model)
    report: Report = {"model": describe_model(model), "certificate": _summarise_certificates(estimator)}
    if hasattr(estimator, "support_"):
        report["support_vectors"] = len(estimator.support_)
        report["points"] = int(estimator.shape_fit_[0])
    report["iterations"] = int(np.sum(estimator.n_iter_))
    report["stopped"] = sorted({solution.stopped for solution in estimator.solutions_})
    if seconds is not None:
        report["seconds"] = seconds
    return report


def _summarise_certificates(estimator: Any) -> Report:
    """Return the worst status, gap and violation of the problems of a fit."""
    found = estimator.certificate_
    certificates = found if isinstance(found, list) else [found]
    return {
        "status": max((c.status for c in certificates), key=_STATUSES.index),
        "problems": len(certificates),
        "converged": sum(c.status in _CONVERGED for c in certificates),
        "gap": max((c.gap for c in certificates if c.gap is not None), default=None),
        "relative_gap": max((c.relative_gap for c in certificates if c.gap is not None), default=None),
        "violation": max(c.violation for c in certificates),
        "infeasibility": max(c.infeasibility for c in certificates),
        "tol": certificates[0].tol,
    }


def has_converged(report: Report) -> bool:
    """Whether all problems of a fit reached their tolerance, from `describe_fit`."""
    return report["certificate"]["converged"] == report["certificate"]["problems"]


def fit_table(report: Report) -> Table:
    """Return the certificate and the size of a fit, from `describe_fit`."""
    c = report["certificate"]
    if c["status"] == "unknown":
        vectors = ("support vectors", report["support_vectors"])
        return key_value_table([("status", "unknown: the file holds neither a certificate nor C"), vectors])
    is_good = c["status"] in _CONVERGED
    is_bad = c["status"] in ("infeasible", "diverged")
    status: list[Any] = [(c["status"], "bold green" if is_good else "bold red" if is_bad else "bold yellow")]
    if c["problems"] > 1:
        some = f", {c['converged']} of {c['problems']} problems within tol"
        status.append(f", all {c['problems']} problems" if is_good else some)
    rows: list[tuple[str, Any]] = [("status", styled(*status))]
    if c["gap"] is not None:
        rows.append(("gap", f"{c['gap']:.2e} ({c['relative_gap']:.1e} relative)"))
    rows.append(("violation", f"{c['violation']:.2e} (tol {c['tol']:g})"))
    if "support_vectors" in report:
        share = 100 * report["support_vectors"] / max(report["points"], 1)
        rows.append(("support vectors", f"{report['support_vectors']} of {report['points']} points ({share:.0f} %)"))
    rows.append(("iterations", f"{report['iterations']}"))
    if "seconds" in report:
        rows.append(("seconds", f"{report['seconds']:.3g}"))
    if "training" in report:
        rows.append(_training_row(report["training"]))
    return key_value_table(rows)


def problem_table(estimator: Any, width: int) -> Table:
    """Return a table with a row for each problem of an estimator with several."""
    rows = []
    for i, solution in enumerate(estimator.solutions_):
        c = solution.certificate
        gap = "" if c.gap is None else f"{c.relative_gap:.1e}"
        rows.append((c.status, i + 1, gap, f"{c.violation:.1e}", solution.n_iter, solution.stopped))
    names = ["status", "problem", "relative gap", "violation", "iterations", "stopped"]
    return column_table(names, rows, left=1, width=width)


# ---- scores


def score(model: Any, X: Any, y: Array | None) -> Report:
    """Return the scores of a model on points X with labels y."""
    kind = model_kind(model)
    scorer = {"classifier": _score_classifier, "regressor": _score_regressor, "outlier": _score_outliers}[kind]
    return {"kind": kind, "points": len(X) if isinstance(X, list) else X.shape[0], **scorer(model, X, y)}


def score_training(model: Any, X: Any, y: Array | None) -> Report:
    """Return the scores on the training points that need no more than one prediction."""
    kind, n = model_kind(model), len(X) if isinstance(X, list) else X.shape[0]
    if kind == "regressor":
        return score(model, X, y)
    predicted = model.predict(X)
    count = int((predicted < 0 if kind == "outlier" else predicted == y).sum())
    names = ("outliers", "outlier_share") if kind == "outlier" else ("correct", "accuracy")
    return {"kind": kind, "points": n, **dict(zip(names, (count, count / n), strict=True))}


def _score_classifier(model: Any, X: Any, y: Any) -> Report:
    import numpy as np
    from sklearn.metrics import confusion_matrix, log_loss, precision_recall_fscore_support

    predicted = model.predict(X)
    classes = np.unique(np.concatenate([np.asarray(final_estimator(model).classes_), y]))
    matrix = confusion_matrix(y, predicted, labels=classes)
    columns: Any = precision_recall_fscore_support(y, predicted, labels=classes, zero_division=0.0)  # pyright: ignore[reportArgumentType] (a number is allowed)
    names = ("precision", "recall", "f1", "support")
    rows = zip(classes.tolist(), zip(*columns, strict=True), strict=True)
    each = {str(label): dict(zip(names, row, strict=True)) for label, row in rows}
    correct = int(np.trace(matrix))
    scores = {
        "correct": correct,
        "accuracy": correct / len(y),
        "classes": classes.tolist(),
        "confusion": matrix,
        "each": each,
        "balanced_accuracy": float(np.mean([row["recall"] for row in each.values() if row["support"]])),
        **_areas(model, X, y),
    }
    if getattr(final_estimator(model), "calibration_method", None) is not None and np.isin(y, model.classes_).all():
        scores["log_loss"] = float(log_loss(y, model.predict_proba(X), labels=model.classes_))
    return scores


def _areas(model: Any, X: Any, y: Any) -> Report:
    """Return the areas under the ROC and precision-recall curves: each class against the rest, or the second of two."""
    import numpy as np
    from sklearn.metrics import average_precision_score, roc_auc_score

    estimator = final_estimator(model)
    classes = np.asarray(estimator.classes_)
    if getattr(estimator, "decision_function_shape", "ovr") == "ovo" and len(classes) > 2:
        return {}
    values = np.asarray(model.decision_function(X))
    columns = {classes[1]: values} if len(classes) == 2 else dict(zip(classes.tolist(), values.T, strict=True))
    areas = {}
    for label, column in columns.items():
        truth = y == label
        if 0 < np.count_nonzero(truth) < len(y):
            areas[str(label)] = {
                "roc_auc": roc_auc_score(truth, column),
                "average_precision": average_precision_score(truth, column),
            }
    if not areas:
        return {"areas": {}, "roc_auc": None, "average_precision": None}
    means = {key: float(np.mean([area[key] for area in areas.values()])) for key in ("roc_auc", "average_precision")}
    return {"areas": areas, **means}


def _score_regressor(model: Any, X: Any, y: Any) -> Report:
    import numpy as np

    predicted, y = model.predict(X), np.asarray(y, dtype="float64")
    error, spread = predicted - y, np.sum((y - y.mean()) ** 2)
    square = float(np.mean(error**2))
    has_correlation = np.std(predicted) > 0 and spread > 0
    return {
        "mean_squared_error": square,
        "root_mean_squared_error": square**0.5,
        "mean_absolute_error": float(np.mean(np.abs(error))),
        "largest_error": float(np.max(np.abs(error))),
        "r2": float(1 - np.sum(error**2) / spread) if spread > 0 else None,
        "squared_correlation": float(np.corrcoef(predicted, y)[0, 1] ** 2) if has_correlation else None,
    }


def _score_outliers(model: Any, X: Any, y: Any) -> Report:
    """Return the share of outliers; with labels 1 (inlier) and another one, also how well they are detected."""
    import numpy as np

    predicted = model.predict(X)
    scores: Report = {"outliers": int(np.sum(predicted < 0)), "outlier_share": float(np.mean(predicted < 0))}
    if y is not None and y.dtype.kind in "biuf" and len(np.unique(y)) == 2 and 1 in y:
        from sklearn.metrics import average_precision_score, roc_auc_score

        is_inlier, values = y == 1, model.decision_function(X)
        is_correct = (predicted > 0) == is_inlier
        scores |= {
            "correct": int(np.sum(is_correct)),
            "accuracy": float(np.mean(is_correct)),
            "roc_auc": roc_auc_score(is_inlier, values),
            "average_precision": average_precision_score(is_inlier, values),
        }
    return scores


def _training_row(scores: Report) -> tuple[str, str]:
    """Return the name and the value of the score that the summary of a fit has."""
    if scores["kind"] == "regressor":
        return "training error", f"{scores['mean_squared_error']:.6g} mean squared, R2 {_fixed(scores['r2'])}"
    if scores["kind"] == "outlier":
        return "outliers", f"{scores['outliers']}/{scores['points']} = {scores['outlier_share']:.4f}"
    return "training accuracy", f"{scores['correct']}/{scores['points']} = {scores['accuracy']:.4f}"


def score_tables(scores: Report, width: int) -> Iterator[Any]:
    """Yield the tables of some scores, from `score`."""
    n = scores["points"]
    if scores["kind"] == "regressor":
        names = {"mean squared error": "mean_squared_error", "its root": "root_mean_squared_error"}
        names |= {"mean absolute error": "mean_absolute_error", "largest error": "largest_error"}
        names |= {"R2": "r2", "squared correlation": "squared_correlation"}
        values = {name: scores[key] for name, key in names.items()}
        yield key_value_table([(name, "undefined" if v is None else f"{v:.6g}") for name, v in values.items()])
        return
    rows = []
    if scores["kind"] == "outlier":
        rows.append(("outliers", f"{scores['outliers']}/{n} = {scores['outlier_share']:.4f}"))
    if "accuracy" in scores:
        rows.append(("accuracy", f"{scores['correct']}/{n} = {scores['accuracy']:.4f}"))
    mean = "mean " if len(scores.get("areas", ())) > 1 else ""
    names = {"balanced_accuracy": "balanced accuracy", "roc_auc": f"{mean}ROC AUC"}
    names |= {"average_precision": f"{mean}average precision", "log_loss": "log loss"}
    rows += [(name, _fixed(scores[key])) for key, name in names.items() if scores.get(key) is not None]
    yield key_value_table(rows)
    if "each" in scores:
        yield _class_table(scores, width)
        yield from _confusion_table(scores, width)


def _class_table(scores: Report, width: int) -> Table:
    """Return a table with a row for each class."""
    areas, rows = scores.get("areas", {}), []
    has_areas = len(areas) > 1
    for label, row in scores["each"].items():
        cells = [label, *(_fixed(row[key]) for key in ("precision", "recall", "f1")), int(row["support"])]
        if has_areas:
            cells += [_fixed(areas[label][key]) if label in areas else "" for key in ("roc_auc", "average_precision")]
        rows.append(cells)
    names = ["class", "precision", "recall", "f1", "points", *(("ROC AUC", "avg precision") if has_areas else ())]
    return column_table(names, rows, width=width)


def _confusion_table(scores: Report, width: int) -> Iterator[Any]:
    """Yield the confusion matrix with a row for each true class; if it is too wide, the largest confusions."""
    import numpy as np

    names, matrix = list(map(str, scores["classes"])), np.asarray(scores["confusion"])
    cell = max(*map(len, names), len(str(matrix.max()))) + 2
    if min(max(map(len, names)), 12) + 2 + cell * len(names) <= width:
        yield styled(("confusion matrix", "bold"), ", a row for each true class, a column for each predicted one")
        rows = [[name, *row] for name, row in zip(names, matrix.tolist(), strict=True)]
        yield column_table(["", *names], rows, width=width)
        return
    errors = matrix - np.diag(np.diag(matrix))
    largest = np.argsort(-errors, axis=None, kind="stable")[:_MAX_LISTED]
    cells = [np.unravel_index(i, matrix.shape) for i in largest]
    rows = [(names[int(i)], names[int(j)], errors[i, j]) for i, j in cells if errors[i, j]]
    yield styled(
        ("the largest confusions", "bold"),
        f" of {len(names)} classes; for the whole matrix use --json or a wider terminal",
    )
    yield column_table(["true", "predicted", "points"], rows, left=2, width=width)


def _fixed(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"
