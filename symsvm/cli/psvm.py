"""psvm's flags, as the options that they stand for, and psvm's report."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from symsvm.cli.command_group import InvalidUsage
from symsvm.cli.model_building import final_estimator
from symsvm.cli.option_types import POSITIVE, DataFile, Name, Number
from symsvm.cli.options import add_options, default_gamma, section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["LOADED_MODEL_OPTIONS", "accuracy_lines", "machine_lines", "merge_flags", "psvm_options"]

# psvm's flag -> the option that it stands for.
_EQUIVALENTS = {
    "train_attributes": "file",
    "train_labels": "labels",
    "test_attributes": "test",
    "psvm_kernel": "kernel",
    "psvm_scheme": "multi_class",
    "psvm_scale": "scale",
    "kernel_degree": "degree",
    "kernel_constant": "coef0",
    "kernel_gamma": "gamma",
    "model_out": "output",
    "train_format": "format",
}
# An option -> the one that it needs. --test-limit is not here: data sets and texts may have a test part of their own.
_COMPANIONS = {"test_labels": "test", "test_format": "test", "predict_format": "predict_attributes"}
# What --model-in can be used for, and the options that have an effect beside it.
_TASKS = ("test", "test_attributes", "predict_attributes")
LOADED_MODEL_OPTIONS = (
    *_TASKS,
    "model_in",
    "test_labels",
    "test_limit",
    "test_format",
    "predict_format",
    "format",
    "header",
    "zero_based",
    "text",
    "text_column",
    "as_json",
    "quiet",
)


def psvm_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare psvm's flags."""
    flag = section("psvm's flags")
    file, data_format = DataFile(), Name(("csv", "idx"))
    return add_options(
        function,
        [
            flag("--train-attributes", type=file, help="Training points; also selects psvm's report and defaults."),
            flag("--train-labels", type=file, help="Labels of the training points."),
            flag("--test-attributes", type=file, help="Test points."),
            flag("--predict-attributes", type=file, help="Points to predict; their labels are printed."),
            flag("--train-format", type=data_format, help="Format of the training files. Default: by their names."),
            flag("--test-format", type=data_format, help="Format of the test files."),
            flag("--predict-format", type=data_format, help="Format of the file to predict."),
            flag("--linear", "psvm_kernel", flag_value="linear", help="Same as --kernel linear."),
            flag("--polynomial", "psvm_kernel", flag_value="poly", help="Same as --kernel poly."),
            flag("--rbf", "psvm_kernel", flag_value="rbf", help="Same as --kernel rbf."),
            flag("--1AA", "psvm_scheme", flag_value="ovr", help="One against all: --multi-class ovr."),
            flag("--1A1", "psvm_scheme", flag_value="ovo", help="One against one: --multi-class ovo."),
            flag("--n1", "psvm_scale", flag_value="unit", help="Scale to [0, 1]: --scale unit."),
            flag("--n2", "psvm_scale", flag_value="sym", help="Scale to [-1, 1]: --scale sym."),
            flag("--nz", "psvm_scale", flag_value="zscore", help="Standardise: --scale zscore."),
            flag("--kernel-degree", type=int, help="Same as --degree; psvm's default is 2."),
            flag("--kernel-constant", type=Number(), help="Same as --coef0; psvm's default is 0."),
            flag("--kernel-gamma", type=POSITIVE, help="Same as --gamma; psvm's default is 0.05."),
            flag("--model-in", metavar="MODEL", help="Load this model instead of training one."),
            flag("--model-out", metavar="MODEL", help="Same as --output."),
        ],
    )


def merge_flags(settings: Mapping[str, Any], is_libsvm: bool) -> dict[str, Any]:
    """Replace psvm's flags by the options that they stand for, and set the defaults of psvm or LIBSVM.

    The key "psvm" of the result says whether the call is one of psvm's.
    """
    settings = dict(settings)
    settings["psvm"] = bool(settings["train_attributes"] or settings["model_in"])
    _check_companions(settings)
    for name, option in _EQUIVALENTS.items():
        value = settings.pop(name)
        if value is None:
            continue
        if settings.get(option) is not None:
            raise InvalidUsage(f"--{option.replace('_', '-')} is given twice: once by a flag of psvm.")
        settings[option] = value
    kernel = settings["kernel"] or "rbf"
    if settings["psvm"]:
        # psvm's polynomial is (x.z + c)^d.
        defaults = {"degree": 2 if kernel == "poly" else None, "gamma": {"rbf": 0.05, "poly": 1.0}.get(kernel)}
    else:
        defaults = {"gamma": default_gamma(settings, is_libsvm)}
    if settings.get("sigma") is not None:
        if settings["gamma"] is not None:
            raise InvalidUsage("--sigma and --gamma both give the width of the kernel: leave one of them out.")
        del defaults["gamma"]
    for name, value in defaults.items():
        if settings[name] is None:
            settings[name] = value
    return settings


def _check_companions(settings: Mapping[str, Any]) -> None:
    """Raise if an option is given that would have no effect."""
    for name, other in _COMPANIONS.items():
        if settings[name] is not None and not (settings[other] or settings.get(f"{other}_attributes")):
            raise InvalidUsage(f"--{name.replace('_', '-')} has no effect without --{other.replace('_', '-')}.")
    if settings["model_in"] is not None and not any(settings[name] for name in _TASKS):
        raise InvalidUsage("--model-in alone does nothing: add --test-attributes or --predict-attributes.")


# ---- the report


def machine_lines(model: Any, document: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each binary machine of a fit, the totals and the certificate."""
    total, rows = 0, list(_machines(final_estimator(model)))
    for name, n_vectors, n_iter, seconds in rows:
        total += n_vectors
        yield f"{name}: {n_vectors} SVs, {n_iter} iterations, {seconds:.3f} s"
    machines = f"{len(rows)} machine{'s' * (len(rows) > 1)}: {total} SVs ({document['support_vectors']} different)"
    yield f"{machines}, {document['iterations']} iterations, {document['seconds']:.3f} s"
    yield f"Certificate: {document['certificate']['status']}, violation {document['certificate']['violation']:.2e}"


def _machines(estimator: Any) -> Iterator[tuple[str, int, int, float]]:
    """Yield (name, support vectors, iterations, seconds) of each binary machine."""
    classes = [str(c) for c in getattr(estimator, "classes_", ())]
    if len(classes) <= 2:
        names = [" vs ".join(classes) or "machine"]
    elif estimator.multi_class == "ovr":
        names = [f"{c} vs rest" for c in classes]
    else:
        names = [f"{a} vs {b}" for a, b in itertools.combinations(classes, 2)]
    counts = (estimator.decision_coef_ != 0).sum(axis=0)
    for name, count, solution in zip(names, counts, estimator.solutions_, strict=True):
        yield name, int(count), solution.n_iter, float(solution.trace["seconds"][-1])


def accuracy_lines(scores: Mapping[str, Any]) -> Iterator[str]:
    """Yield the accuracy and the confusion matrix, one row for each true class."""
    correct, n, matrix = scores["correct"], scores["points"], scores["confusion"].tolist()
    yield f"Model accuracy: {correct}/{n} = {correct / n:.6g}"
    names = [str(c) for c in scores["classes"]]
    width = max(*map(len, names), len(str(max(map(max, matrix))))) + 1
    yield "Confusion matrix (rows: true, columns: predicted):"
    yield " " * width + "".join(f"{name:>{width}}" for name in names)
    for name, row in zip(names, matrix, strict=True):
        yield f"{name:>{width}}" + "".join(f"{count:>{width}}" for count in row)
