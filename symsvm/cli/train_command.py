"""The command `symsvm train`: fit a machine to a file, write the model and report on it; or cross-validate."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from symsvm.cli.cluster_training import check_cluster_options, train_on_cluster
from symsvm.cli.command_group import DONE, NOT_CONVERGED, InvalidUsage
from symsvm.cli.inputs import (
    READER_OPTIONS,
    check_classes,
    check_labels,
    check_n_features,
    points_for,
    points_to_scale,
    read_table,
    read_test_table,
)
from symsvm.cli.interruptible_fit import InterruptibleFit, abort_on_interrupt
from symsvm.cli.model_building import CLASSIFIERS, REGRESSIONS, build_model, check_text_options, model_kind
from symsvm.cli.option_types import POSITIVE, DataFile, ValueList
from symsvm.cli.options import (
    MachineCommand,
    data_options,
    file_argument,
    machine_options,
    output_options,
    refuse_given,
    section,
)
from symsvm.cli.output import Output, check_model_path, file_size, load_model, save_model, styled
from symsvm.cli.psvm import LOADED_MODEL_OPTIONS, accuracy_lines, machine_lines, merge_flags, psvm_options
from symsvm.cli.reports import (
    data_line,
    describe_fit,
    fit_table,
    has_converged,
    model_line,
    score,
    score_tables,
    score_training,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from symsvm.cli.inputs import Table

__all__ = ["Training", "train"]

_EXAMPLES = (
    ("symsvm train heart_scale -o heart.symsvm", "Fit a machine with the RBF kernel and write the model:"),
    (
        "symsvm train iris.csv --labels species --scale zscore --kernel linear -c 10",
        "A CSV file with a column of class names:",
    ),
    ("symsvm train svmguide1 --scale sym -c 2 -g 2 --test svmguide1.t -b 1", "With a test file and probabilities:"),
    ("symsvm train -s 0 -t 2 -c 10 -w1 5 -w-1 2 -v 5 heart_scale", "Cross-validation with LIBSVM's flags:"),
    (
        "symsvm train --train-attributes train-images --train-labels train-labels --rbf --1AA --n1",
        "psvm's flags and report:",
    ),
)
_data = section("Data")


@click.command(cls=MachineCommand, examples=_EXAMPLES)
@file_argument(required=False)
@click.argument("model", required=False)
@_data("-o", "--output", metavar="MODEL", help="Write the model to this file: .symsvm, .libsvm or .onnx.")
@data_options
@_data("--test", type=DataFile(), help="Also report the scores on this file.")
@_data("--test-labels", type=DataFile(), help="Labels of --test, if they are in a separate file.")
@_data("--test-limit", type=click.IntRange(min=1), metavar="N", help="Read only the first N rows of the test data.")
@_data(
    "--scheduler",
    metavar="ADDRESS",
    help="Train on the Dask cluster of this scheduler, tcp://HOST:PORT; its workers read FILE (Parquet, .npy, LIBSVM).",
)
@section("Output")(
    "--score/--no-score",
    default=True,
    help="Whether to predict the training points and report the score. Default: yes.",
)
@section("Machine")(
    "--sigma",
    type=ValueList(POSITIVE),
    metavar="S|S1,S2,...",
    help="Width of the rbf or laplacian kernel in place of --gamma, or a width for each feature: "
    "exp(-1/2 sum_k ((x_k - z_k) / S_k)^2), exp(-sum_k |x_k - z_k| / S_k).",
)
@machine_options
@section("Solver")(
    "-v", "--folds", type=click.IntRange(min=2), metavar="N", help="Cross-validate with N folds; no model is written."
)
@psvm_options
@output_options
@click.pass_context
def train(ctx: click.Context, /, **settings: Any) -> None:
    """Train a support vector machine on FILE and write it to MODEL.

    The first Ctrl-C stops the training and writes the model found so far, which is feasible; the exit code is 1.
    """
    if settings["model_in"] is not None:
        refuse_given(ctx, set(settings) - set(LOADED_MODEL_OPTIONS), "--model-in loads a model and trains none")
    settings = merge_flags(settings, ctx.meta["libsvm"])
    if settings["model"] is not None:
        if settings["output"] is not None:
            raise InvalidUsage("the model file is given twice, as MODEL and by --output.")
        settings["output"] = settings["model"]
    if settings["file"] is None and settings["model_in"] is None:
        raise click.UsageError("there is no FILE to train on.", ctx)
    training = Training(settings, Output(settings["as_json"], settings["quiet"]))
    if settings["folds"]:
        training.cross_validate()
        ctx.exit(DONE)
    training.run()
    ctx.exit(DONE if training.converged else NOT_CONVERGED)


class Training:
    """One call of `symsvm train`.

    Attributes
    ----------
    converged : bool
        Whether all problems of the fit reached their tolerance.
    interrupted : bool
        Whether there was a Ctrl-C.
    document : dict
        The JSON document.
    """

    def __init__(self, settings: Mapping[str, Any], output: Output) -> None:
        self.output, self.converged, self.interrupted = output, True, False
        self.document: dict[str, Any] = {"command": "train"}
        self.kind = settings["type_"] or ("linear-svc" if settings["text"] else "c-svc")
        if settings["psvm"] and self.kind not in ("c-svc", "nu-svc"):
            raise InvalidUsage(f"psvm's flags are for classifiers with a kernel, not for --type {self.kind}.")
        check_text_options(settings, self.kind)
        self.settings = dict(settings)
        if settings["text"]:
            # Models of texts have probabilities unless -b 0 is given.
            probability = 1 if settings["probability"] is None else settings["probability"]
            self.settings |= {"type_": self.kind, "probability": probability}
        if settings["scheduler"] is not None:
            check_cluster_options(settings, self.kind)
        is_scaled = settings["scale"] not in (None, "none")
        check_model_path(settings["output"], is_scaled=is_scaled, is_linear=self.kind.startswith("linear"))

    # ---- the data

    def _read_training(self) -> Table:
        s = self.settings
        table = read_table(
            s["file"],
            supervised=self.kind != "one-class",
            targets=self.kind in REGRESSIONS,
            is_gram=s["kernel"] == "precomputed",
            **{name: s[name] for name in READER_OPTIONS},
        )
        if self.kind != "one-class":
            check_labels(table, self.kind)
        self.document["data"] = table.describe()
        return table

    def _read_test(self, n_features: int | None) -> Table | None:
        """Read the test data, if there are any; `n_features` is None for texts."""
        s = self.settings
        if s["file"] is None and s["test"] is None:
            return None
        is_set = s["test"] is not None and not os.path.exists(s["test"])  # a data set, which includes its labels
        labels = s["test_labels"] or (None if s["psvm"] or is_set else s["labels"])
        table = read_test_table(
            s["test"],
            s["file"],
            labels=labels,
            format=s["test_format"] or s["format"],
            limit=s["test_limit"],
            targets=self.kind in REGRESSIONS,
            n_features=n_features,
            is_gram=s["kernel"] == "precomputed",
            supervised=self.kind != "one-class",
            **{name: s[name] for name in ("header", "zero_based", "text", "text_column")},
        )
        if table is None and s["test_limit"] is not None:
            raise InvalidUsage("--test-limit has no effect without --test.")
        if table is not None and n_features is not None:
            check_n_features(table, n_features)
        return table

    # ---- training

    def run(self) -> None:
        """Train, write the model and report; the model is written before anything is printed."""
        s, output = self.settings, self.output
        if s["model_in"] is not None:
            self._run_loaded(s["model_in"])
            return
        if s["scheduler"] is not None:
            train_on_cluster(self)
            return
        table = self._read_training()
        # The test data are read first: an error in them must not come after a long training.
        test = self._read_test(None if s["text"] else table.X.shape[1])
        if test is not None and self.kind in CLASSIFIERS:
            check_classes(test, table.y)
        model, X, fit = build_model(s, table.y), points_to_scale(table.X, s["scale"]), InterruptibleFit(output)
        with output.warnings_as_notes():
            fit.fit(model, X, table.y)
        self.interrupted = fit.is_interrupted
        self.document |= describe_fit(model, fit.seconds)
        is_optimal = has_converged(self.document)
        self.converged = is_optimal and not self.interrupted
        if s["output"] is not None:
            save_model(model, s["output"], has_fallback=True)
        if self.interrupted:
            output.note(_interrupt_note(is_optimal, fit.is_calibrated, s["output"]), is_failure=True)
        if s["score"]:
            self.document["training"] = score_training(model, X, table.y)
        self.document["output"] = s["output"]
        if s["psvm"]:
            output.show(*machine_lines(model, self.document))
        else:
            self._show_fit()
        self._finish(model, None if self.interrupted else test)

    def report(self, model: Any) -> None:
        """Report on a model that a cluster has trained, and on the test data."""
        test = self._read_test(model.n_features_in_) if self.settings["test"] is not None else None
        if test is not None and self.kind in CLASSIFIERS:
            check_classes(test, model.classes_)
        self._show_fit()
        self._finish(model, test)

    def _run_loaded(self, path: str) -> None:
        """Report on a model that was trained before, as psvm does."""
        model = load_model(path)
        if model_kind(model) != "classifier":
            raise InvalidUsage(f"{path} is not a classifier, as --model-in needs it: use 'symsvm evaluate'.")
        test = self._read_test(model.n_features_in_)
        if test is not None:
            check_classes(test, model.classes_)
        self.document["output"] = self.settings["output"]
        self._finish(model, test)

    def _finish(self, model: Any, test: Table | None) -> None:
        """Report on the test data and print predictions, if there are any to print."""
        document, show = self.document, self.output.show
        if test is not None:
            if model_kind(model) == "regressor":
                check_labels(test, "svr")
            scores = {"data": test.describe(), **score(model, points_for(model, test), test.y)}
            document["test"] = scores
            if self.settings["psvm"]:
                show(*accuracy_lines(scores))
            else:
                show("", data_line(scores["data"]), *score_tables(scores, self.output.width))
        if self.settings["predict_attributes"]:
            self._predict(model)
        document |= {"converged": self.converged, "interrupted": self.interrupted}
        self.output.print_json(document)

    def _predict(self, model: Any) -> None:
        """Print the labels of psvm's --predict-attributes."""
        s = self.settings
        n_features = model.n_features_in_
        table = read_table(s["predict_attributes"], format=s["predict_format"], supervised=False, n_features=n_features)
        predicted = model.predict(points_for(model, table))
        self.document["predictions"] = predicted
        self.output.show("Predictions:")
        for label in predicted.tolist():
            self.output.print_result(label)

    def _show_fit(self) -> None:
        document, show = self.document, self.output.show
        show(data_line(document["data"]), model_line(document["model"]), "", fit_table(document))
        if document["output"]:
            show("", styled("written to ", (document["output"], "bold"), f", {file_size(document['output'])}"))
        elif not self.interrupted:
            show("", styled(("not written to a file: add -o MODEL.symsvm to write the model", "dim")))

    # ---- cross-validation

    def cross_validate(self) -> None:
        """Print the accuracy or the errors of cross-validated predictions, as LIBSVM does for -v."""
        import numpy as np
        from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict

        s, output = self.settings, self.output
        for name in ("output", "test"):
            if s[name] is not None:
                output.note(f"-v cross-validates and writes no model: --{name} is ignored.")
        table = self._read_training()
        if table.y is None:
            raise InvalidUsage(f"{table.name} has no labels to cross-validate with: give them with --labels.")
        make_folds = KFold if self.kind in (*REGRESSIONS, "one-class") else StratifiedKFold
        folds = make_folds(s["folds"], shuffle=True, random_state=s["seed"])
        model, X = build_model(s, table.y), points_to_scale(table.X, s["scale"])
        with abort_on_interrupt(), output.warnings_as_notes():
            predicted = np.asarray(cross_val_predict(model, X, table.y, cv=folds))
        self.document["folds"] = s["folds"]
        if self.kind not in REGRESSIONS:
            accuracy = float(np.mean(predicted == table.y))
            self.document["cross_validation"] = {"accuracy": accuracy}
            output.print_result(f"Cross Validation Accuracy = {100 * accuracy:.6g}%")
        else:
            error, r = float(np.mean((predicted - table.y) ** 2)), float(np.corrcoef(predicted, table.y)[0, 1])
            self.document["cross_validation"] = {"mean_squared_error": error, "squared_correlation": r**2}
            output.print_result(f"Cross Validation Mean squared error = {error:.6g}")
            output.print_result(f"Cross Validation Squared correlation coefficient = {r**2:.6g}")
        output.print_json(self.document)


def _interrupt_note(is_optimal: bool, is_calibrated: bool, path: str | None) -> str:
    """Return a sentence about the model that there is after a Ctrl-C."""
    status = "optimal" if is_optimal else "feasible but not optimal"
    probabilities = "" if is_calibrated else ", without probabilities"
    where = f"is in {path}" if path else "was not written to a file: there is no --output"
    return f"interrupted: the model, {status}{probabilities}, {where}."
