"""Watch: a fit that shows how far it is, and that Ctrl-C ends with the feasible model that it has by then."""

import contextlib
import signal
import threading
import time

import numpy as np

__all__ = ["Watch", "ended_by_ctrl_c"]


class Watch:
    """Looks after the fit of one machine.

    The first Ctrl-C ends the problem under way where it is, and those after it where they begin; both are feasible. The
    second one ends the command.

    Attributes
    ----------
    calibrated : False where one cut off the calibration.
    seconds : how long the fit took.
    """

    def __init__(self, output):
        self.output, self.calibrated = output, True
        self._interrupts, self._calibrating = 0, False
        self._fit = self._bar = None

    @property
    def stopped(self):
        """Whether there was a Ctrl-C."""
        return self._interrupts > 0

    def fit(self, model, X, y):
        """Fit a model, an estimator or a pipeline, to points and labels."""
        from symsvm.cli.machine import machine_of

        machine, problems = machine_of(model), _problems(machine_of(model), y)
        verbose, method = machine.verbose, getattr(machine, "calibration", None)
        if method is not None:
            machine.set_params(calibration=None)  # that comes after the fit, which is there then whatever happens
        began = time.perf_counter()
        try:
            with self._listening(), self._drawing(machine, problems):
                with machine.watching(self._look) as self._fit:
                    model.fit(X, y)
                if method is not None:
                    self._calibrate(model, X, y, method)
        finally:
            machine.verbose = verbose
        self.seconds = time.perf_counter() - began
        return model

    # ---- Ctrl-C

    @contextlib.contextmanager
    def _listening(self):
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread hears signals
            return
        before = signal.signal(signal.SIGINT, self._interrupted)
        try:
            yield
        except _Cut:
            self.calibrated = False
        finally:
            signal.signal(signal.SIGINT, before)

    def _interrupted(self, *_):
        self._interrupts += 1
        if self._calibrating:
            raise _Cut
        if self._interrupts > 1 or (self._fit is not None and self._fit.is_solving):
            raise KeyboardInterrupt  # a solver answers the first one with the point that it has

    # ---- the fit

    def _look(self, info):
        """See one iteration of one of the problems; true stops the fit."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=info.problem, at=f"violation {info.violation:.1e}")
        return self.stopped

    def _calibrate(self, model, X, y, method):
        """Fit the probabilities to the folds of the points that the machine at the end of a pipeline sees."""
        from symsvm.cli.machine import machine_of

        if self.stopped:
            self.calibrated = False
            return
        machine = machine_of(model)
        self._calibrating = True
        try:
            Z = X if machine is model else model[:-1].transform(X)
            machine.calibrate(Z, y, method)
        finally:
            self._calibrating = False

    # ---- the bar

    @contextlib.contextmanager
    def _drawing(self, machine, problems):
        """A bar over the problems; for a single one over a kernel, the solver's own bar."""
        if not self.output.draws:
            yield
            return
        if problems == 1 and hasattr(machine, "kernel"):
            machine.verbose = 1
            yield
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("problem"),
            MofNCompleteColumn(),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[at]}"),
        )
        with Progress(*columns, console=self.output.aside, transient=True) as bar:
            self._bar = bar
            bar.add_task("", total=problems, at="")
            yield
        self._bar = None


class _Cut(BaseException):
    """Ctrl-C where a fit is one of several; no solver may take it for a wish to stop early."""


@contextlib.contextmanager
def ended_by_ctrl_c():
    """Let Ctrl-C end all that is inside: of a solver that has a point by then, it would end one fit of several."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears signals
        return

    heard = []

    def cut(*_):
        heard.append(True)
        raise _Cut

    before = signal.signal(signal.SIGINT, cut)
    try:
        yield
    except BaseException:  # compiled code may make another error of it
        if not heard:
            raise
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before)


def _problems(machine, y):
    """How many problems a fit solves."""
    scheme = getattr(machine, "multi_class", None)
    k = 2 if scheme is None else len(np.unique(y))
    if k <= 2 or scheme == "crammer_singer":
        return 1
    return k if scheme == "ovr" else k * (k - 1) // 2
