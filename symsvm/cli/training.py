"""Training: read, fit, keep, report: what `symsvm train` does, in the order in which it does it."""

import os

import numpy as np

from symsvm.cli.errors import Refused
from symsvm.cli.inputs import check_width, fitting, held_out_table, read_table
from symsvm.cli.keeping import check_target, keep, opened, size_of
from symsvm.cli.machine import (
    CLASSIFIERS,
    REGRESSIONS,
    check_classes,
    check_labels,
    check_texts,
    estimator_of,
    pipeline_of,
)
from symsvm.cli.output import styled
from symsvm.cli.psvm_report import machine_lines, matrix_lines
from symsvm.cli.scores import kind_of, score_lines, scored, trained_on
from symsvm.cli.summary import data_line, fitted, fitted_lines, model_line
from symsvm.cli.table import described, filled
from symsvm.cli.watch import Watch, ended_by_ctrl_c

__all__ = ["Training"]


class Training:
    """One call of `symsvm train`.

    Attributes
    ----------
    converged : whether every problem of the fit reached its tolerance.
    interrupted : whether there was a Ctrl-C.
    """

    def __init__(self, settings, output):
        self.settings, self.output = settings, output
        self.kind = settings["type_"] or ("linear-svc" if settings["text"] else "c-svc")
        self.converged, self.interrupted = True, False
        self.document = {"command": "train"}
        scaled = settings["scale"] not in (None, "none")
        if settings["psvm"] and self.kind not in ("c-svc", "nu-svc"):
            raise Refused(f"psvm's flags are for classifiers over a kernel, not for --type {self.kind}.")
        check_texts(settings["text"], self.kind, scaled)
        if settings["text"]:
            self.settings = settings = settings | {"type_": self.kind, "probability": _probability(settings)}
        check_target(settings["output"], scaled=scaled, linear=self.kind.startswith("linear"))

    # ---- the data

    def _table(self):
        s = self.settings
        names = ("labels", "format", "header", "zero_based", "limit", "text", "text_column")
        table = read_table(
            s["file"],
            supervised=self.kind != "one-class",
            targets=self.kind in REGRESSIONS,
            is_gram=s["kernel"] == "precomputed",
            **{k: s[k] for k in names},
        )
        if self.kind != "one-class":
            check_labels(table, self.kind)
        self.document["data"] = described(table)
        return table

    def _points(self, table):
        """The points as the scaling takes them."""
        scale = self.settings["scale"]
        return table.X if scale in (None, "none", "maxabs") else filled(table.X, f"--scale {scale}")

    def _model(self, table):
        return pipeline_of(estimator_of(self.settings, table.y), self.settings["scale"], self.settings["text"])

    def _test(self, d):
        """The table to test with, or None; `d` is the number of features."""
        s = self.settings
        if s["file"] is None and s["test"] is None:
            return None
        is_named = s["test"] is not None and not os.path.exists(s["test"])  # a data set, which has its labels
        labels = s["test_labels"] or (None if s["psvm"] or is_named else s["labels"])
        options = {"labels": labels, "format": s["test_format"] or s["format"], "limit": s["test_limit"]}
        options |= {name: s[name] for name in ("header", "zero_based", "text", "text_column")}
        options |= {
            "targets": self.kind in REGRESSIONS,
            "n_features": d,
            "is_gram": s["kernel"] == "precomputed",
            "supervised": self.kind != "one-class",
        }
        table = held_out_table(s["test"], s["file"], **options)
        if table is None and s["test_limit"] is not None:
            raise Refused("--test-limit says nothing without --test.")
        if table is not None and d is not None:
            check_width(table, d)
        return table

    # ---- what is done

    def run(self):
        """Train, keep the model and report; the model is on the disk before anything is printed."""
        s, output = self.settings, self.output
        if s["model_in"] is not None:
            model = opened(s["model_in"])
            if kind_of(model) != "classifier":
                raise Refused(f"{s['model_in']} is no classifier, as psvm's are: use 'symsvm evaluate'.")
            test = self._test(model.n_features_in_)
            if test is not None:
                check_classes(test, model.classes_)
            self._finish(model, None, test)
            return
        table = self._table()
        test = self._test(None if s["text"] else table.X.shape[1])  # what is wrong with it is said before the work
        if test is not None and self.kind in CLASSIFIERS:
            check_classes(test, table.y)
        model, X, watch = self._model(table), self._points(table), Watch(output)
        with output.heeding():
            watch.fit(model, X, table.y)
        self.interrupted = watch.stopped
        found = fitted(model, watch.seconds)
        self.document |= found
        optimal = found["certificate"]["converged"] == found["certificate"]["problems"]
        self.converged = optimal and not watch.stopped
        if s["output"] is not None:
            keep(model, s["output"], rescue=True)
        if watch.stopped:
            output.note(_interrupted(optimal, watch.calibrated, s["output"]), wrong=True)
        if s["score"]:
            self.document["training"] = trained_on(model, X, table.y)
        self._finish(model, table, None if watch.stopped else test)

    def _finish(self, model, table, test):
        s, document = self.settings, self.document
        document["output"] = s["output"]
        if s["psvm"]:
            self._show_machines(model, table)
        else:
            self._show_fit(model)
        if test is not None:
            if kind_of(model) == "regressor":
                check_labels(test, "svr")
            document["test"] = {"data": described(test), **scored(model, fitting(model, test), test.y)}
            self._show_test(model, document["test"])
        if s["predict_attributes"]:
            self._predict(model)
        document |= {"converged": self.converged, "interrupted": self.interrupted}
        self.output.finish(document)

    def _predict(self, model):
        """psvm's predictions of points without labels."""
        s = self.settings
        table = read_table(
            s["predict_attributes"], format=s["predict_format"], supervised=False, n_features=model.n_features_in_
        )
        predicted = model.predict(fitting(model, table))
        self.document["predictions"] = predicted
        self.output.show("Predictions:")
        for label in predicted.tolist():
            self.output.answer(label)

    def cross_validate(self):
        """Print what LIBSVM prints for -v: the accuracy, or the error, of points that were held out."""
        from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict

        s, output = self.settings, self.output
        for name in ("output", "test"):
            if s[name] is not None:
                output.note(f"-v judges the machine and keeps no model: --{name} is left aside.")
        table = self._table()
        if table.y is None:
            raise Refused(f"{table.name} has no labels to cross-validate with: name them with --labels.")
        folds = KFold if self.kind in (*REGRESSIONS, "one-class") else StratifiedKFold
        folds = folds(s["folds"], shuffle=True, random_state=s["seed"])
        with ended_by_ctrl_c(), output.heeding():
            predicted = cross_val_predict(self._model(table), self._points(table), table.y, cv=folds)
        self.document["folds"] = s["folds"]
        if self.kind not in REGRESSIONS:
            accuracy = float(np.mean(predicted == table.y))
            self.document["cross_validation"] = {"accuracy": accuracy}
            output.answer(f"Cross Validation Accuracy = {100 * accuracy:.6g}%")
        else:
            error, r = float(np.mean((predicted - table.y) ** 2)), float(np.corrcoef(predicted, table.y)[0, 1])
            self.document["cross_validation"] = {"mean_squared_error": error, "squared_correlation": r**2}
            output.answer(f"Cross Validation Mean squared error = {error:.6g}")
            output.answer(f"Cross Validation Squared correlation coefficient = {r**2:.6g}")
        output.finish(self.document)

    # ---- what is shown

    def _show_fit(self, model):
        document, show = self.document, self.output.show
        show(data_line(document["data"]), model_line(document["model"]), "", fitted_lines(document))
        if document["output"]:
            show("", styled("written to ", (document["output"], "bold"), f", {size_of(document['output'])}"))
        elif not self.interrupted:
            show("", styled(("not kept: name a file with -o MODEL.symsvm to keep it", "dim")))

    def _show_machines(self, model, table):
        if table is not None:
            self.output.show(*machine_lines(model, self.document))

    def _show_test(self, model, scores):
        show, width = self.output.show, self.output.width
        if self.settings["psvm"]:
            show(*matrix_lines(scores))
        else:
            show("", data_line(scores["data"]), *score_lines(scores, width))


def _interrupted(optimal, calibrated, path):
    """What there is after a Ctrl-C."""
    how = "optimal" if optimal else "feasible but not optimal"
    without = "" if calibrated else ", without probabilities"
    where = f"is in {path}" if path else "was not kept, for there is no --output"
    return f"interrupted: the model, {how}{without}, {where}."


def _probability(settings):
    """Texts get probabilities unless -b 0 says otherwise."""
    return 1 if settings["probability"] is None else settings["probability"]
