"""Description: what `GET /v1/model` says of a model."""

import numpy as np
from sklearn.pipeline import Pipeline

from symsvm import __version__
from symsvm.kernels import Kernel
from symsvm.serve.answers import plain

__all__ = ["describe"]

_MANY = 500  # entries of a parameter, such as a list of stop words, that are told
_WORST = ("optimal", "stationary", "feasible", "unknown", "infeasible", "diverged")


def describe(served):
    """The kind, the kernel, the parameters, the labels and the certificate of a served model, as JSON."""
    machine, model = served.machine, served.model
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    return {
        "kind": served.kind,
        "answer": served.answer,
        "estimator": type(machine).__name__,
        "steps": [{"name": type(step).__name__, "parameters": _parameters(step)} for step in steps[:-1]],
        "kernel": _kernel(machine),
        "parameters": _parameters(machine),
        "labels": list(served.classes),
        "calibrated": served.calibrated,
        "n_features": served.n_features if served.kind == "numbers" else int(machine.n_features_in_),
        "feature_names": served.names,
        "n_support": len(machine.support_) if hasattr(machine, "support_") else None,
        "certificate": _certificate(machine),
        "version": __version__,
    }


def _parameters(step):
    return {name: _told(value) for name, value in step.get_params(deep=False).items()}


def _told(value):
    if isinstance(value, dict | list | tuple) and len(value) > _MANY:
        return f"{len(value)} entries"
    if isinstance(value, dict):
        return {str(key): _told(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_told(item) for item in value]
    if isinstance(value, Kernel):
        return repr(value)
    if isinstance(value, type):  # the dtype of a vectoriser
        return value.__name__
    if callable(value) or isinstance(value, np.ndarray):
        return type(value).__name__
    return plain(value)


def _kernel(machine):
    """The kernel with its numbers, such as RBF(sigma=0.5)."""
    kernel = getattr(machine, "kernel_", None)
    if kernel is not None:
        return repr(kernel)
    return "linear" if not hasattr(machine, "kernel") else _told(machine.kernel)


def _certificate(machine):
    """What the certificates of all problems say together, and each of them; None where there are none."""
    try:
        found = machine.certificate_
    except AttributeError:
        return None
    found = found if isinstance(found, list) else [found]
    each = [_one(certificate) for certificate in found]
    gaps = [one["relative_gap"] for one in each]
    return {
        "status": max((one["status"] for one in each), key=lambda word: _WORST.index(word) if word in _WORST else 3),
        "problems": len(each),
        "relative_gap": None if None in gaps else max(gaps),
        "violation": _largest(each, "violation"),
        "infeasibility": _largest(each, "infeasibility"),
        "tol": _largest(each, "tol"),
        "each": each,
    }


def _one(certificate):
    names = ("W", "primal", "dual", "gap", "relative_gap", "violation", "infeasibility", "tol")
    return {"status": certificate.status} | {name: plain(getattr(certificate, name)) for name in names}


def _largest(each, name):
    values = [one[name] for one in each]
    return None if None in values else max(values)
