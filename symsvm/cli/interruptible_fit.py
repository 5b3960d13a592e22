"""Fits with a progress bar that Ctrl-C ends early, with the feasible model found so far."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from symsvm.cli.model_building import final_estimator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress

    from symsvm._lib.types import Array
    from symsvm.cli.output import Output
    from symsvm.estimators.base import FitMonitor
    from symsvm.solvers.program import Info

__all__ = ["InterruptibleFit", "abort_on_interrupt", "progress_bar"]


class InterruptibleFit:
    """The fit of one model, with progress and Ctrl-C.

    The first Ctrl-C stops the problem being solved at its current point, and the problems after it at their starting
    points; all of these are feasible. The second Ctrl-C ends the command.

    Attributes
    ----------
    is_calibrated : bool
        False if Ctrl-C ended the calibration of probabilities, or prevented it.
    seconds : float
        The duration of the fit.
    """

    def __init__(self, output: Output) -> None:
        self.output, self.is_calibrated, self.seconds = output, True, 0.0
        self._n_interrupts, self._is_calibrating = 0, False
        self._monitor: FitMonitor | None = None
        self._bar: Progress | None = None

    @property
    def is_interrupted(self) -> bool:
        """Whether there was a Ctrl-C."""
        return self._n_interrupts > 0

    def fit(self, model: Any, X: Any, y: Array | None) -> Any:
        """Fit an estimator or a pipeline to points and labels."""
        estimator = final_estimator(model)
        verbose, method = estimator.verbose, getattr(estimator, "calibration", None)
        if method is not None:
            estimator.set_params(calibration=None)  # a separate step, so that Ctrl-C in it leaves a fitted model
        began = time.perf_counter()
        try:
            with self._handle_interrupts(), self._show_progress(estimator, _count_problems(estimator, y)):
                with estimator.watching(self._observe) as self._monitor:
                    model.fit(X, y)
                if method is not None:
                    self._calibrate(model, X, y, method)
        finally:
            estimator.set_params(verbose=verbose)
        self.seconds = time.perf_counter() - began
        return model

    # ---- Ctrl-C

    @contextlib.contextmanager
    def _handle_interrupts(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread can handle signals
            return
        before = signal.signal(signal.SIGINT, self._on_interrupt)
        try:
            yield
        except _Abort:
            self.is_calibrated = False
        finally:
            signal.signal(signal.SIGINT, before)

    def _on_interrupt(self, *_: object) -> None:
        self._n_interrupts += 1
        if self._is_calibrating:
            raise _Abort
        if self._n_interrupts > 1 or (self._monitor is not None and self._monitor.is_solving):
            raise KeyboardInterrupt  # a solver returns its current point at the first one

    # ---- the fit

    def _observe(self, info: Info) -> bool:
        """Update the bar after an iteration; True stops the fit."""
        if self._bar is not None:
            violation = f"violation {info.violation:.1e}"
            self._bar.update(self._bar.task_ids[0], completed=info.problem, status=violation)
        return self.is_interrupted

    def _calibrate(self, model: Any, X: Any, y: Any, method: str) -> None:
        """Calibrate the estimator at the end of a pipeline on the points that it is given there."""
        if self.is_interrupted:
            self.is_calibrated = False
            return
        estimator = final_estimator(model)
        self._is_calibrating = True
        try:
            Z = X if estimator is model else model[:-1].transform(X)
            estimator.calibrate(Z, y, method)
        finally:
            self._is_calibrating = False

    # ---- progress

    @contextlib.contextmanager
    def _show_progress(self, estimator: Any, n_problems: int) -> Iterator[None]:
        """Draw a bar over the problems; for one problem with a kernel, the solver draws its own."""
        if not self.output.shows_progress:
            yield
            return
        if n_problems == 1 and hasattr(estimator, "kernel"):
            estimator.set_params(verbose=1)
            yield
            return
        with progress_bar("problem", self.output) as bar:
            self._bar = bar
            bar.add_task("", total=n_problems, status="")
            yield
        self._bar = None


def progress_bar(unit: str, output: Output) -> Progress:
    """Create a progress bar on stderr; its tasks have the field `status`, a text behind the bar."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    status = TextColumn("{task.fields[status]}")
    columns = (TextColumn(unit), MofNCompleteColumn(), BarColumn(), TimeElapsedColumn(), status)
    return Progress(*columns, console=output.stderr, transient=True)


class _Abort(BaseException):
    """Ctrl-C during one of several fits; not a KeyboardInterrupt, at which a solver returns its current point."""


@contextlib.contextmanager
def abort_on_interrupt() -> Iterator[None]:
    """Let Ctrl-C abort everything inside; a solver would otherwise end only one of several fits."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle signals
        return

    interrupts = []

    def abort(*_: object) -> None:
        interrupts.append(True)
        raise _Abort

    before = signal.signal(signal.SIGINT, abort)
    try:
        yield
    except BaseException:  # compiled code may turn _Abort into another error
        if not interrupts:
            raise
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before)


def _count_problems(estimator: Any, y: Any) -> int:
    """Return the number of problems that a fit solves."""
    import numpy as np

    scheme = getattr(estimator, "multi_class", None)
    k = 2 if scheme is None else len(np.unique(y))
    if k <= 2 or scheme == "crammer_singer":
        return 1
    return k if scheme == "ovr" else k * (k - 1) // 2
