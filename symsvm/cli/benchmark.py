"""Benchmark: the same fit by symsvm and by scikit-learn, in turns."""

import time

import numpy as np

from symsvm.cli.errors import Refused
from symsvm.cli.inputs import read_table
from symsvm.cli.machine import REGRESSIONS, SCALES, check_labels, estimator_of, parts_of
from symsvm.cli.output import grid, styled
from symsvm.cli.summary import data_line, model_line
from symsvm.cli.table import described, filled
from symsvm.cli.watch import ended_by_ctrl_c

__all__ = ["benchmark", "shown"]

_DATA = ("labels", "format", "header", "zero_based", "limit")


def benchmark(file, settings, turns, out):
    """Time fits and predictions; returns what was measured, as a dict."""
    kind = settings["type_"] or "c-svc"
    if settings["text"]:
        raise Refused("texts are not timed: scikit-learn has the same pipeline; use points.")
    table = read_table(
        file,
        supervised=kind != "one-class",
        targets=kind in REGRESSIONS,
        is_gram=settings["kernel"] == "precomputed",
        **{name: settings[name] for name in _DATA},
    )
    if kind != "one-class":
        check_labels(table, kind)
    X, y = _scaled(table.X, settings["scale"]), table.y
    ours, theirs = estimator_of(settings, y), _twin(settings, y)
    with ended_by_ctrl_c(), out.heeding():
        first = _seconds(lambda: ours.fit(X, y).predict(X))
        times = {"symsvm": [], "scikit-learn": []}
        for _ in range(turns):
            for name, model in zip(times, (ours, theirs), strict=True):
                fit, predict = (
                    _seconds(lambda model=model: model.fit(X, y)),
                    _seconds(lambda model=model: model.predict(X)),
                )
                times[name].append((fit, predict))
        rows = {name: _row(model, X, y, times[name]) for name, model in zip(times, (ours, theirs), strict=True)}
    same = ours.predict(X) == theirs.predict(X) if hasattr(ours, "classes_") else None
    ratio = rows["scikit-learn"]["fit_seconds"] / rows["symsvm"]["fit_seconds"]
    found = {"data": described(table), "model": parts_of(ours), "first_fit_seconds": first, "rows": rows}
    return found | {"times_faster": ratio, "same_predictions": None if same is None else float(np.mean(same))}


def _scaled(X, scale):
    if scale in (None, "none"):
        return X
    from symsvm.io.data import Scaling

    X = X if scale == "maxabs" else filled(X, f"--scale {scale}")
    return Scaling(SCALES[scale]).fit_transform(X)


def _twin(settings, y):
    """scikit-learn's estimator of the same name and parameters."""
    import sklearn.svm

    ours = estimator_of(settings, y)
    params, make = ours.get_params(deep=False), getattr(sklearn.svm, type(ours).__name__)
    known = make().get_params()
    for name, fine in (
        ("multi_class", ("ovo", "ovr", "crammer_singer")),
        ("kernel", ("linear", "poly", "rbf", "sigmoid", "precomputed")),
    ):
        if params.get(name) is not None and params[name] not in fine:
            raise Refused(f"scikit-learn has no {name} {params[name]!r} to time against.")
    if "multi_class" not in known and params.get("multi_class") == "ovr" and len(np.unique(y)) > 2:
        raise Refused("scikit-learn's machine has pairs of classes only: leave out --multi-class ovr.")
    if params.get("calibration") is not None:
        raise Refused("probabilities are calibrated in different ways: leave out -b and --calibration.")
    return make(**{name: value for name, value in params.items() if name in known})


def _seconds(run):
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _row(model, X, y, times):
    fits, predictions = zip(*times, strict=True)
    found = {"fit_seconds": min(fits), "predict_seconds": min(predictions)}
    if y is not None and hasattr(model, "score"):
        found["training_score"] = float(model.score(X, y))
    if hasattr(model, "support_"):
        found["support_vectors"] = len(model.support_)
    return found


def shown(found, out):
    """Print the two rows and the ratio."""
    rows = []
    for name, row in found["rows"].items():
        cells = (f"{row['fit_seconds']:.4g}", f"{row['predict_seconds']:.4g}", row.get("support_vectors", ""))
        rows.append((name, *cells, f"{row['training_score']:.4f}" if "training_score" in row else ""))
    head = ["", "fit, s", "predict, s", "support vectors", "training score"]
    ratio = found["times_faster"]
    verdict = f"{ratio:.3g} times faster" if ratio >= 1 else f"{1 / ratio:.3g} times slower"
    out.show(data_line(found["data"]), model_line(found["model"]), grid(head, rows, width=out.width))
    out.show(styled("symsvm fits ", (verdict, "bold green" if ratio >= 1 else "bold yellow"), "."))
    out.show(
        f"The first fit and prediction, which load or compile their loops, took {found['first_fit_seconds']:.3g} s."
    )
    if found["same_predictions"] is not None:
        out.show(f"{100 * found['same_predictions']:.4g} % of the predictions are the same.")
