"""`symsvm train --scheduler`: the same on a Dask cluster, whose workers read the file."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from typing import TYPE_CHECKING, Any

from symsvm.cli.command_group import BadData, InvalidUsage
from symsvm.cli.inputs import Table, check_labels, integer_labels
from symsvm.cli.interruptible_fit import InterruptibleFit
from symsvm.cli.model_building import REGRESSIONS, build_model
from symsvm.cli.output import save_model
from symsvm.cli.reports import describe_fit, has_converged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["check_cluster_options", "train_on_cluster"]

# Options that need all points in one place, and how they are given.
_REFUSED = {
    "text": "--text",
    "limit": "--limit",
    "folds": "--folds",
    "probability": "-b 1",
    "calibration": "--calibration",
    "model_in": "--model-in",
    "zero_based": "--zero-based",
}
_FORMATS = {".parquet": "parquet", ".npy": "npy"}


class _ClusterTable(Table):
    """Points that workers have read, with their labels."""

    @property
    def n_rows(self) -> int:
        """The number of points."""
        return len(self.y if self.y is not None else ())

    def describe(self) -> dict[str, Any]:
        """Return the size, the storage and the labels."""
        found = dataclasses.replace(Table(self.name, [""] * self.n_rows, self.y)).describe()
        return found | {"storage": "partitions", "features": self.X.shape[1]}


def check_cluster_options(settings: Mapping[str, Any], kind: str) -> None:
    """Raise for options that do not go with --scheduler.

    Parameters
    ----------
    settings : dict
        The options.
    kind : str
        The machine.
    """
    for name, option in _REFUSED.items():
        if settings.get(name):
            raise InvalidUsage(f"{option} needs all points in one place: leave it out, or leave out --scheduler.")
    if settings["scale"] not in (None, "none"):
        raise InvalidUsage("--scale needs all points in one place: scale the file first, or leave out --scheduler.")
    if settings["psvm"] or settings["kernel"] == "precomputed" or kind.startswith("linear"):
        raise InvalidUsage("--scheduler is for machines with a kernel that the workers compute.")


def train_on_cluster(training: Any) -> None:
    """Train a machine on a file that the workers of a Dask cluster read, write the model and report.

    Parameters
    ----------
    training : Training
        The call of the command.
    """
    s, output, kind = training.settings, training.output, training.kind
    with _cluster(s["scheduler"]) as engine:
        table = _read(s, kind, engine)
        if table.y is not None:
            check_labels(table, kind)
        training.document["data"] = table.describe()
        model, fit = build_model(s, table.y), InterruptibleFit(output)
        with output.warnings_as_notes():
            fit.fit(model, table.X, table.y)
        training.interrupted = fit.is_interrupted
        training.document |= describe_fit(model, fit.seconds)
        training.converged = has_converged(training.document) and not training.interrupted
        if s["output"] is not None:
            save_model(model, s["output"], has_fallback=True)
        training.document["output"] = s["output"]
    training.report(model)


@contextlib.contextmanager
def _cluster(address: str) -> Iterator[Any]:
    """The engine of a scheduler, whose client is active inside the block."""
    try:
        import distributed
    except ImportError:
        raise InvalidUsage("--scheduler needs Dask: pip install 'symsvm[dask]'.") from None
    try:
        client = distributed.Client(address, timeout=10)
    except (OSError, TimeoutError, ValueError) as error:
        raise InvalidUsage(f"there is no Dask scheduler at {address}: {error}") from None
    from symsvm.distributed import DaskEngine

    with client, DaskEngine(client) as engine:
        if not engine.workers():
            raise InvalidUsage(f"the Dask scheduler at {address} has no workers: start some.")
        yield engine


def _read(settings: Mapping[str, Any], kind: str, engine: Any) -> _ClusterTable:
    """The points of the file as a collection, and the labels."""
    import numpy as np

    from symsvm.distributed import spread

    path, labels = os.fspath(settings["file"]), settings["labels"]
    form = settings["format"] or next((form for end, form in _FORMATS.items() if path.endswith(end)), "libsvm")
    if form == "parquet":
        import dask.dataframe

        frame = dask.dataframe.read_parquet(path)
        if kind == "one-class" and labels is None:
            return _ClusterTable(path, frame, None)
        names = list(frame.columns)
        label = names[-1] if labels is None else labels
        if label not in names:
            raise BadData(f"{path} has no column {label!r} for the labels; its columns are {', '.join(names)}.")
        X, y = frame.drop(columns=label), np.asarray(frame[label].compute())
    elif form == "npy":
        X, y = spread(path, engine), None
        if labels is not None:
            y = np.load(labels, allow_pickle=False)
        elif kind != "one-class":
            raise InvalidUsage(f"{path} has no labels: give a file of them with --labels.")
    elif form == "libsvm":
        from symsvm.distributed.spread_points import SpreadPoints

        X = spread(path, engine)
        points = SpreadPoints(X.connect, X.blocks)
        y, X.shape = points.labels(), points.shape
        points.close()
    else:
        raise InvalidUsage(f"--scheduler reads Parquet, .npy and LIBSVM files, not {form}.")
    if y is not None and kind not in REGRESSIONS:
        y = integer_labels(y)
    return _ClusterTable(path, X, y)
