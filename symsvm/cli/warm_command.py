"""The command `symsvm warm`: compile ahead what estimators with named kernels use.

Each task fits some machines on random points, and leaves what they compile in the cache on disk. Tasks run in processes
of their own, since a process compiles one function at a time.
"""

from __future__ import annotations

import os
import time
import warnings
from typing import TYPE_CHECKING, Any

import click

from symsvm.cli.command_group import DONE, Command
from symsvm.cli.interruptible_fit import progress_bar
from symsvm.cli.options import output_options, section
from symsvm.cli.output import Output, styled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["TASKS", "run_task", "warm"]

_EXAMPLES = (
    ("symsvm warm", "Once after the installation, in the image of a container for example:"),
    ("NUMBA_CACHE_DIR=/var/cache/symsvm symsvm warm", "To another directory, which must be set later, too:"),
)


@click.command(cls=Command, examples=_EXAMPLES)
@section("Run")("--jobs", type=click.IntRange(min=1), metavar="N", help="Number of processes. Default: one per core.")
@output_options
@click.pass_context
def warm(ctx: click.Context, /, jobs: int | None, as_json: bool, quiet: bool) -> None:
    """Compile ahead what the estimators use, with kernels that have a name; no later fit waits for that.

    Kernels of your own are compiled when they are first used, each in some seconds.
    """
    out, began = Output(as_json, quiet), time.perf_counter()
    functions, directories = 0, {}
    with progress_bar("task", out) as bar:
        row = bar.add_task("", total=len(TASKS), status="")
        for name, count, kept in _run_all(jobs or os.cpu_count() or 1):
            functions += count
            directories |= dict.fromkeys(kept)
            bar.update(row, advance=1, status=f"{name}: {count} functions")
    seconds = time.perf_counter() - began
    where = " and ".join(directories) if directories else "the cache"
    if functions:
        out.show(styled((f"{functions} functions", "bold"), f" compiled in {seconds:.0f} s; they are kept in {where}."))
    else:
        out.show("Nothing to compile: everything is in the cache.")
    found = {"functions": functions, "seconds": seconds, "directories": list(directories)}
    out.print_json({"command": "warm", **found})
    ctx.exit(DONE)


def _run_all(jobs: int) -> Iterator[tuple[str, int, list[str]]]:
    """Run the tasks in processes; yield the name, the functions and the directories of each when it has ended."""
    import concurrent.futures
    import multiprocessing

    before = os.environ.get("SYMSVM_QUIET")
    os.environ["SYMSVM_QUIET"] = "1"  # the processes inherit it
    try:
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(min(jobs, len(TASKS)), context) as pool:
            tasks = {pool.submit(run_task, name): name for name in TASKS}
            for task in concurrent.futures.as_completed(tasks):
                yield tasks[task], *task.result()
    finally:
        if before is None:
            del os.environ["SYMSVM_QUIET"]
        else:
            os.environ["SYMSVM_QUIET"] = before


def run_task(name: str) -> tuple[int, list[str]]:
    """Run a task; return how many functions it compiled, and the directories that have their code."""
    from symsvm._lib.code_cache import COMPILATION

    before = COMPILATION.functions
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fits are of noise
        TASKS[name]()
    return COMPILATION.functions - before, COMPILATION.directories


def _data(m: int, d: int = 4, k: int = 2) -> tuple[Any, Any]:
    """Noise: points and labels 0, 1, ..., k - 1."""
    import numpy as np

    rng = np.random.default_rng(0)
    return rng.normal(size=(m, d)), rng.integers(0, k, m)


def _both(X: Any) -> Iterator[Any]:
    """The points as an array and as a sparse matrix."""
    from scipy.sparse import csr_matrix

    yield X
    yield csr_matrix(X)


def _kernel(name: Any) -> None:
    """Machines over a kernel: few points, whose matrix is of float64, and more."""
    from symsvm.estimators import SVC, SVR

    for m in (100, 700):
        X, y = _data(m)
        for points in _both(X):
            SVC(kernel=name, C=10.0).fit(points, y).predict(points)
    SVR(kernel=name).fit(X, X[:, 0]).predict(X)


def _solver() -> None:
    """What does not depend on the kernel: several classes, many points, other machines, probabilities."""
    from symsvm.estimators import SVC, NuSVC, OneClassSVM

    X, y = _data(6000, 3)
    SVC(C=10.0, tol=0.1, max_iter=20).fit(X, y)
    X, y = _data(900, 100, 3)
    SVC(multi_class="ovr").fit(X, y)
    SVC(C=1e4).fit(X, y)
    X, y = _data(1500, 2)
    SVC(C=1e5, max_iter=20).fit(X, y)
    NuSVC(nu=0.3).fit(X, y)
    OneClassSVM().fit(X)
    X, y = _data(60, 2)
    SVC(calibration="sigmoid", C=1e3).fit(X, y).predict_proba(X)


def _linear() -> None:
    """Linear machines, all losses and penalties."""
    from symsvm.estimators import LinearSVC, LinearSVR

    losses: Any = ("hinge", "l2"), ("squared_hinge", "l2"), ("squared_hinge", "l1")
    squared = "squared_epsilon_insensitive"
    tubes: Any = ("epsilon_insensitive", "l2"), (squared, "l2"), (squared, "l1")
    for k in (2, 3):
        X, y = _data(300, 5, k)
        for points in _both(X):
            for loss, penalty in losses:
                LinearSVC(loss=loss, penalty=penalty, max_iter=200).fit(points, y).predict(points)
            for multi_class in ("ovr", "crammer_singer"):
                LinearSVC(multi_class=multi_class, max_iter=200).fit(points, y)
            for loss, penalty in tubes:
                LinearSVR(loss=loss, penalty=penalty, max_iter=200).fit(points, X[:, 0])


def _files() -> None:
    """Readers of data files."""
    import tempfile
    from pathlib import Path

    from symsvm.io.data import read

    with tempfile.TemporaryDirectory() as directory:
        libsvm, csv = Path(directory, "data"), Path(directory, "data.csv")
        libsvm.write_text("1 1:0.5 3:-1e-3\n-1 2:2\n" * 50, encoding="utf-8")
        csv.write_text("label,a,b\n" + "1,0.5,-1e-3\n-1,2,3\n" * 50, encoding="utf-8")
        for path in (libsvm, csv):
            read(path)


# The tasks by name, long ones first.
TASKS: dict[str, Callable[[], None]] = {
    "linear machines": _linear,
    "solver": _solver,
    **{name: (lambda name=name: _kernel(name)) for name in ("rbf", "poly", "sigmoid", "laplacian", "linear")},
    "files": _files,
}
