"""Machine: from the options of a command to an estimator, with its scaling in a pipeline."""

import numpy as np

from symsvm.cli.errors import BadData, Refused
from symsvm.cli.table import whole

__all__ = [
    "CLASSIFIERS",
    "ESTIMATORS",
    "REGRESSIONS",
    "SCALES",
    "check_classes",
    "check_labels",
    "check_texts",
    "estimator_of",
    "machine_of",
    "parts_of",
    "pipeline_of",
]

ESTIMATORS = {
    "c-svc": "SVC",
    "nu-svc": "NuSVC",
    "one-class": "OneClassSVM",
    "svr": "SVR",
    "nu-svr": "NuSVR",
    "linear-svc": "LinearSVC",
    "linear-svr": "LinearSVR",
}
SCALES = {"unit": (0, 1), "sym": (-1, 1), "zscore": "z-score", "maxabs": "max-abs"}
# Options under the names that the estimators have for them.
_PARAMETERS = (
    "C",
    "kernel",
    "gamma",
    "degree",
    "coef0",
    "nu",
    "epsilon",
    "multi_class",
    "loss",
    "penalty",
    "calibration",
    "solver",
    "tol",
    "max_iter",
    "time_limit",
    "mode",
    "cache_size",
)
_SAID = {
    "C": "--cost",
    "multi_class": "--multi-class",
    "max_iter": "--max-iter",
    "time_limit": "--time-limit",
    "calibration": "-b 1, or --calibration,",
}
REGRESSIONS = ("svr", "nu-svr", "linear-svr")
CLASSIFIERS = ("c-svc", "nu-svc", "linear-svc")


def estimator_of(settings, y=None):
    """The estimator that the options ask for; `y` are the labels, whose names class weights use."""
    import symsvm

    kind = settings.get("type_") or "c-svc"
    make = getattr(symsvm, ESTIMATORS[kind])
    known = make().get_params(deep=False)
    given = {name: settings[name] for name in _PARAMETERS if settings.get(name) is not None}
    if settings.get("probability") and "calibration" not in given:
        given["calibration"] = "sigmoid"
    if settings.get("class_weight"):
        given["class_weight"] = _weights(settings["class_weight"], y) if "class_weight" in known else None
    if settings.get("shrinking") is not None:
        given["shrinking"] = bool(settings["shrinking"])
    for name in ("shrinking", "cache_size"):  # of LIBSVM; they change nothing
        if name not in known:
            given.pop(name, None)
    for name in given:
        if name not in known:
            raise Refused(f"{_SAID.get(name, '--' + name.replace('_', '-'))} does not belong to --type {kind}.")
    if "random_state" in known:
        given["random_state"] = settings.get("seed", 0)
    return make(**given)


def _weights(given, y):
    """The class weights of `LABEL=W` or `balanced`, with labels as the data have them."""
    if "balanced" in given:
        if len(given) > 1:
            raise Refused("--class-weight is either balanced or LABEL=W, not both.")
        return "balanced"
    labels = {str(label): label for label in np.unique(y).tolist()}
    weights = {}
    for item in given:
        label, _, weight = item.rpartition("=")
        try:
            number = float(weight)
        except ValueError:
            number = -1.0
        if not label or not 0 < number < float("inf"):
            raise Refused(f"--class-weight must be LABEL=W with a positive W, or balanced, got {item!r}.")
        if label not in labels:
            raise Refused(f"--class-weight names {label!r}, which is no label: {', '.join(list(labels)[:20])}.")
        weights[labels[label]] = number
    return weights


def pipeline_of(estimator, scale, text=False):
    """The estimator behind a scaling or, for texts, behind TF-IDF; or alone."""
    if text:
        from symsvm.io.text import classifier

        return classifier().set_params(svm=estimator)
    if scale in (None, "none"):
        return estimator
    from sklearn.pipeline import make_pipeline

    from symsvm.io.data import Scaling

    return make_pipeline(Scaling(SCALES[scale]), estimator)


def machine_of(model):
    """The estimator at the end of a pipeline, or the model itself."""
    return model[-1] if hasattr(model, "steps") else model


def parts_of(model):
    """The class, the parameters that matter and the scaling of a model, as a dict."""
    machine = machine_of(model)
    kernel = getattr(machine, "kernel_", None)
    quiet = ("verbose", "random_state", "cache_size", "shrinking", "break_ties", "dual", "warm_start")
    params = {k: v for k, v in machine.get_params(deep=False).items() if k not in quiet}
    parts = {"class": type(machine).__name__, "params": {k: _said(v) for k, v in params.items()}}
    parts["classes"] = len(getattr(machine, "classes_", ()))
    parts["kernel"] = None if kernel is None else repr(kernel)
    sigma = getattr(kernel, "sigma", None)
    parts["gamma"] = None if sigma is None else 1 / (2 * sigma**2)
    parts["before"] = [_step(step) for _, step in model.steps[:-1]] if machine is not model else []
    return parts


def _step(step):
    """What a step of a pipeline does before the machine."""
    if hasattr(step, "vocabulary_"):
        return f"over TF-IDF of {len(step.vocabulary_)} words"
    return f"features scaled to {step.to}" if hasattr(step, "to") else repr(step)


def _said(value):
    if isinstance(value, dict):
        return {str(k): v for k, v in value.items()}
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def check_labels(table, kind):
    """Refuse labels that the machine cannot learn from, in the words of the data."""
    y = table.y
    if kind in CLASSIFIERS:
        if y.dtype.kind == "f":
            first = y[np.argmax((y != np.rint(y)) | (np.abs(y) >= 2**53))]  # floats do not tell larger ones apart
            raise Refused(
                f"{table.name} has labels such as {first:g}, which are no classes: for a regression use --type svr."
            )
        if len(np.unique(y)) < 2:
            raise BadData(f"{table.name}: all {len(y)} points are of the class {y[0]}, and a classifier needs two.")
    elif kind != "one-class" and y.dtype.kind not in "fiub":
        raise BadData(f"{table.name}: the labels are words such as {str(y[0])!r}, and a regression needs numbers.")


def check_classes(table, classes):
    """Refuse words as labels where a machine knows numbers, numbers where it knows words, and numbers of no class."""
    classes, y = whole(np.asarray(classes)), table.y
    if (y.dtype.kind in "biu") != (classes.dtype.kind in "biu"):
        first = y[np.argmax(y != np.rint(y))] if y.dtype.kind == "f" else y[0]
        what = f"{str(first)!r}, and the model's are such as {str(classes[0])!r}"
        raise BadData(f"{table.name}: the labels are such as {what}; name the right column with --labels.")


def check_texts(text, kind, scaled):
    """Refuse another machine for texts than the one that they have."""
    if text and (kind != "linear-svc" or scaled):
        raise Refused("--text trains a linear-svc over TF-IDF: leave out --type and --scale.")
