"""Models from the options of a command: the estimator, its pipeline, and their description."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symsvm.cli.command_group import InvalidUsage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from symsvm._lib.types import Array

__all__ = [
    "CLASSIFIERS",
    "REGRESSIONS",
    "SCALES",
    "build_estimator",
    "build_model",
    "check_text_options",
    "describe_model",
    "final_estimator",
    "model_kind",
]

CLASSIFIERS = ("c-svc", "nu-svc", "linear-svc")
REGRESSIONS = ("svr", "nu-svr", "linear-svr")
# --scale -> the argument of `symsvm.data.Scaling`.
SCALES = {"unit": (0, 1), "sym": (-1, 1), "zscore": "z-score", "maxabs": "max-abs"}
# --type -> the class of symsvm.
_ESTIMATORS = {
    "c-svc": "SVC",
    "nu-svc": "NuSVC",
    "one-class": "OneClassSVM",
    "svr": "SVR",
    "nu-svr": "NuSVR",
    "linear-svc": "LinearSVC",
    "linear-svr": "LinearSVR",
}
# Parameters of estimators that are options of the same name.
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
# How messages name an option, if not as --parameter.
_OPTION_NAMES = {"C": "--cost", "calibration": "-b 1, or --calibration,"}
# Parameters that a description leaves out.
_MINOR = ("verbose", "random_state", "cache_size", "shrinking", "break_ties", "dual", "warm_start", "probability")


def build_estimator(settings: Mapping[str, Any], y: Array | None = None) -> Any:
    """Create the estimator that the options ask for; class weights are matched to the labels `y`."""
    import symsvm

    kind = settings.get("type_") or "c-svc"
    make = getattr(symsvm, _ESTIMATORS[kind])
    known = make().get_params(deep=False)
    given = {name: settings[name] for name in _PARAMETERS if settings.get(name) is not None}
    if settings.get("sigma") is not None:
        if "kernel" not in known:
            raise InvalidUsage(f"--sigma does not belong to --type {kind}.")
        given["kernel"] = _kernel_of_widths(given.get("kernel", "rbf"), settings["sigma"])
    if settings.get("probability") and "calibration" not in given:
        given["calibration"] = "sigmoid"
    if settings.get("class_weight"):
        given["class_weight"] = _class_weights(settings["class_weight"], y) if "class_weight" in known else None
    if settings.get("shrinking") is not None:
        given["shrinking"] = bool(settings["shrinking"])
    for name in ("shrinking", "cache_size"):  # accepted as in LIBSVM, without effect
        if name not in known:
            given.pop(name, None)
    for name in given:
        if name not in known:
            option = _OPTION_NAMES.get(name, f"--{name.replace('_', '-')}")
            raise InvalidUsage(f"{option} does not belong to --type {kind}.")
    if "random_state" in known:
        given["random_state"] = settings.get("seed", 0)
    return make(**given)


def _kernel_of_widths(name: str, sigma: Sequence[float]) -> Any:
    """Return the kernel of this name with one width, or with a width for each feature."""
    from symsvm.kernels import RBF, Laplacian

    if name not in ("rbf", "laplacian"):
        raise InvalidUsage(f"--sigma belongs to --kernel rbf and laplacian, not to {name}.")
    widths = sigma[0] if len(sigma) == 1 else list(sigma)
    return RBF(widths) if name == "rbf" else Laplacian.from_sigma(widths)


def _class_weights(given: Sequence[str], y: Array | None) -> str | dict[Any, float]:
    """Convert `LABEL=W` or `balanced` to the parameter class_weight, whose keys are labels of the data."""
    import numpy as np

    if "balanced" in given:
        if len(given) > 1:
            raise InvalidUsage("--class-weight is either balanced or LABEL=W, not both.")
        return "balanced"
    labels = {str(label): label for label in np.unique(np.asarray(y)).tolist()}
    weights = {}
    for item in given:
        label, _, weight = item.rpartition("=")
        try:
            number = float(weight)
        except ValueError:
            number = -1.0
        if not label or not 0 < number < float("inf"):
            raise InvalidUsage(f"--class-weight must be LABEL=W with a positive W, or balanced, got {item!r}.")
        if label not in labels:
            known = ", ".join(list(labels)[:20])
            raise InvalidUsage(f"--class-weight names {label!r}, which is not a label; the labels are {known}.")
        weights[labels[label]] = number
    return weights


def build_model(settings: Mapping[str, Any], y: Array | None = None) -> Any:
    """Create the estimator that the options ask for, in a pipeline if points are scaled or texts vectorised first."""
    estimator, scale = build_estimator(settings, y), settings["scale"]
    if settings["text"]:
        from symsvm.io.text import classifier

        return classifier().set_params(svm=estimator)
    if scale in (None, "none"):
        return estimator
    from sklearn.pipeline import make_pipeline

    from symsvm.io.data import Scaling

    return make_pipeline(Scaling(SCALES[scale]), estimator)


def check_text_options(settings: Mapping[str, Any], kind: str) -> None:
    """Raise if options ask for another model of texts than the linear one."""
    if settings["text"] and (kind != "linear-svc" or settings["scale"] not in (None, "none")):
        raise InvalidUsage("--text trains a linear-svc over TF-IDF: leave out --type and --scale.")


def final_estimator(model: Any) -> Any:
    """Return the estimator at the end of a pipeline, or the model itself."""
    return model[-1] if hasattr(model, "steps") else model


def model_kind(model: Any) -> str:
    """Return "classifier", "regressor" or "outlier", for a detector of outliers."""
    estimator = final_estimator(model)
    if hasattr(estimator, "classes_"):
        return "classifier"
    return "outlier" if type(estimator).__name__ == "OneClassSVM" else "regressor"


def describe_model(model: Any) -> dict[str, Any]:
    """Return the class, the main parameters, the kernel and the preceding steps of a model."""
    estimator = final_estimator(model)
    kernel = getattr(estimator, "kernel_", None)
    sigma = getattr(kernel, "sigma", None)
    params = {name: value for name, value in estimator.get_params(deep=False).items() if name not in _MINOR}
    return {
        "class": type(estimator).__name__,
        "params": {name: _describe_value(value) for name, value in params.items()},
        "classes": len(getattr(estimator, "classes_", ())),
        "kernel": None if kernel is None else repr(kernel),
        "gamma": 1 / (2 * sigma**2) if isinstance(sigma, (int, float)) else None,
        "before": [_describe_step(step) for _, step in model.steps[:-1]] if estimator is not model else [],
    }


def _describe_step(step: Any) -> str:
    if hasattr(step, "vocabulary_"):
        return f"over TF-IDF of {len(step.vocabulary_)} words"
    return f"features scaled to {step.to}" if hasattr(step, "to") else repr(step)


def _describe_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): item for key, item in value.items()}
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)
