"""The model that is served: read from its file, described, and replaced when the file changes."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import stat
import time
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm import __version__
from symsvm._lib.heap import trim_memory
from symsvm.io.models import load
from symsvm.kernels import Kernel
from symsvm.serve.served_model import ServedModel, to_json_value

if TYPE_CHECKING:
    from symsvm._lib import types
    from symsvm.serve.metrics import Metrics
    from symsvm.serve.settings import Settings

__all__ = ["LoadedModel", "ModelSlot", "describe", "read_model"]

log = logging.getLogger("symsvm.serve")

# A parameter with more entries, such as a list of stop words, is described by their number.
_MAX_ENTRIES = 500
# Statuses of certificates from the best to the worst; an unknown word counts as "unknown".
_STATUSES = ("optimal", "stationary", "feasible", "unknown", "infeasible", "diverged")
_NUMBERS = ("W", "primal", "dual", "gap", "relative_gap", "violation", "infeasibility", "tol")


@dataclass(frozen=True)
class LoadedModel:
    """A model that was read from a file; `digest` is the SHA-256 of the file, `description` that of `GET /v1/model`."""

    served: ServedModel
    digest: str
    description: dict[str, Any]


def read_model(path: types.Path, settings: Settings) -> LoadedModel:
    """Read a model file; the model is checked, but not yet warmed up."""
    before = _file_stamp(path)
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(f"{path} is not a regular file")  # reading a pipe could block for ever
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    served = ServedModel(load(path, trusted=settings.trusted, n_features=settings.n_features))
    if _file_stamp(path) != before:
        raise OSError(f"{path} changed while it was read")
    source = {"digest": digest, "loaded": datetime.now(UTC).isoformat(timespec="seconds")}
    return LoadedModel(served, digest, source | describe(served))


def _file_stamp(path: types.Path) -> tuple[int, ...] | None:
    """Values that change when a file does; None if there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


class ModelSlot:
    """Holds the current model, and watches the file that it was read from.

    A changed file is read in a thread of its own, and warmed up in the thread that predicts, because compiled functions
    are shared; then it replaces the current model. Requests in progress finish with the model that they began with. The
    current model stays if the file cannot be read, if warming up fails, or if the requests to the new model would have
    another form.

    Attributes
    ----------
    current : LoadedModel
        The model that is served.
    stale : bool
        Whether the file has changed and was refused, or is missing.
    message : str or None
        A sentence about that. The reason is only in the log.
    """

    def __init__(self, path: types.Path, settings: Settings, metrics: Metrics) -> None:
        self.path, self.settings, self.metrics = Path(os.fspath(path)), settings, metrics
        self.stale, self.message = False, None
        self._seen = _file_stamp(self.path)
        self.current = read_model(self.path, settings)
        self.current.served.warm_up()
        metrics.set_model(self.current.digest, self.current.description)

    async def watch(self, executor: Executor) -> None:
        """Check the file at intervals until cancelled; a change is read when two checks find the same file."""
        before = self._seen
        while True:
            await asyncio.sleep(self.settings.reload)
            stamp = await asyncio.to_thread(_file_stamp, self.path)
            if stamp == before != self._seen:
                self._seen = stamp
                await self._replace(executor)
            before = stamp

    async def _replace(self, executor: Executor) -> None:
        started = time.perf_counter()
        try:
            loaded = await asyncio.to_thread(read_model, self.path, self.settings)
            if loaded.digest == self.current.digest:
                return self._set_stale(False, None)
            if not loaded.served.accepts_requests_of(self.current.served):
                raise TypeError("requests to the new model have another form: restart the service to use it")
            await asyncio.get_running_loop().run_in_executor(executor, loaded.served.warm_up)
        except Exception as error:  # whatever is wrong with the file, the current model stays
            self.metrics.reloads.labels("refused").inc()
            log.error("the changed model file is refused and the current model stays: %s", error)
            return self._set_stale(True, "the model file has changed and was refused: see the log for the reason.")
        self.current = loaded
        self.metrics.reloads.labels("replaced").inc()
        self.metrics.set_model(loaded.digest, loaded.description)
        log.info("model %s replaced the previous one in %.2f s", loaded.digest[:12], time.perf_counter() - started)
        self._set_stale(False, None)
        return await asyncio.to_thread(trim_memory)

    def _set_stale(self, stale: bool, message: str | None) -> None:
        self.stale, self.message = stale, message
        self.metrics.stale.set(stale)


# ---- description


def describe(served: ServedModel) -> dict[str, Any]:
    """The kind, kernel, parameters, labels and certificate of a model, as JSON."""
    estimator = served.estimator
    n_features = served.n_features if served.kind == "numbers" else int(estimator.n_features_in_)
    return {
        "kind": served.kind,
        "answer": served.answer,
        "estimator": type(estimator).__name__,
        "steps": [{"name": type(step).__name__, "parameters": _parameters(step)} for step in served.transformers],
        "kernel": _kernel(estimator),
        "parameters": _parameters(estimator),
        "labels": list(served.classes),
        "calibrated": served.calibrated,
        "n_features": n_features,
        "feature_names": served.feature_names,
        "n_support": len(estimator.support_) if hasattr(estimator, "support_") else None,
        "certificate": _certificate(estimator),
        "version": __version__,
    }


def _parameters(step: Any) -> dict[str, Any]:
    return {name: _parameter(value) for name, value in step.get_params(deep=False).items()}


def _parameter(value: Any) -> Any:
    """The value of a parameter as JSON."""
    if isinstance(value, dict | list | tuple) and len(value) > _MAX_ENTRIES:
        return f"{len(value)} entries"
    if isinstance(value, dict):
        return {str(key): _parameter(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_parameter(item) for item in value]
    if isinstance(value, Kernel):
        return repr(value)
    if isinstance(value, type):  # the dtype of a vectoriser
        return value.__name__
    if callable(value) or isinstance(value, np.ndarray):
        return type(value).__name__
    return to_json_value(value)


def _kernel(estimator: Any) -> Any:
    """The kernel with its parameters, such as RBF(sigma=0.5)."""
    kernel = getattr(estimator, "kernel_", None)
    if kernel is not None:
        return repr(kernel)
    return _parameter(estimator.kernel) if hasattr(estimator, "kernel") else "linear"


def _certificate(estimator: Any) -> dict[str, Any] | None:
    """The certificate of each problem, and the worst of their values; None where there is none."""
    try:
        found = estimator.certificate_
    except AttributeError:
        return None
    each = [_certificate_dict(certificate) for certificate in (found if isinstance(found, list) else [found])]
    return {
        "status": max((one["status"] for one in each), key=_badness),
        "problems": len(each),
        "relative_gap": _largest(each, "relative_gap"),
        "violation": _largest(each, "violation"),
        "infeasibility": _largest(each, "infeasibility"),
        "tol": _largest(each, "tol"),
        "each": each,
    }


def _certificate_dict(certificate: Any) -> dict[str, Any]:
    return {"status": certificate.status} | {name: to_json_value(getattr(certificate, name)) for name in _NUMBERS}


def _badness(status: str) -> int:
    return _STATUSES.index(status if status in _STATUSES else "unknown")


def _largest(each: list[dict[str, Any]], name: str) -> float | None:
    values = [one[name] for one in each]
    return None if None in values else max(values)
