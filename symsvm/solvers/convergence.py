"""How a run reports to its user: a warning where it ends before its tolerance, others, and a progress bar."""

from __future__ import annotations

import contextlib
import inspect
import math
import sys
import threading
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from symsvm.solvers.solution import Info

__all__ = ["ProgressBar", "held_warnings", "warn_convergence", "warn_not_converged", "warn_user"]

_HELD = threading.local()

# `Solution.stopped` -> the words of the warning.
_REASONS = {
    "max_iter": "after max_iter={n_iter} iterations",
    "time_limit": "at the time limit",
    "callback": "by the callback",
    "interrupt": "by an interrupt",
    "stalled": "because there is no further progress at float64 precision,",
    "rest": "by the solver's own rule",
    "diverged": "because the objective of the next point is not finite,",
}


def warn_not_converged(
    stopped: str, n_iter: int, reached: str, advice: Iterable[str], *, is_feasible: bool = True
) -> None:
    """Warn that a run ended before its tolerance.

    Parameters
    ----------
    stopped, n_iter : why and when the run ended, as in a `Solution`.
    reached : what the point has and what was asked for, such as "a violation of 0.1, above tol=0.001".
    advice : sentences that say what to do.
    is_feasible : whether the point is feasible.
    """
    reason = _REASONS[stopped].format(n_iter=n_iter)
    point = "the point is feasible" if is_feasible else "the point is not feasible, its projection is"
    warn_convergence(" ".join([f"stopped {reason} with {reached}; {point}.", *advice]))


def warn_convergence(text: str) -> None:
    """Issue a ConvergenceWarning that points at the line that called symsvm."""
    held = getattr(_HELD, "texts", None)
    if held is not None:
        held.append(text)
        return
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(text, ConvergenceWarning, stacklevel=_caller_level())


@contextlib.contextmanager
def held_warnings() -> Iterator[list[str]]:
    """Collect the texts of convergence warnings of this thread inside the block: the caller decides what to issue.

    Yields
    ------
    list of str
        The texts so far.
    """
    before = getattr(_HELD, "texts", None)
    _HELD.texts = texts = []
    try:
        yield texts
    finally:
        _HELD.texts = before


def warn_user(text: str) -> None:
    """Issue a UserWarning that points at the line that called symsvm."""
    warnings.warn(text, UserWarning, stacklevel=_caller_level())


def _caller_level() -> int:
    """The `stacklevel` of the first frame outside this package and its decorators, which are of contextlib."""
    frame, level = inspect.currentframe(), 0
    while (
        frame is not None
        and frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] in ("symsvm", "contextlib")
    ):
        frame, level = frame.f_back, level + 1
    return level


class ProgressBar:
    """A bar from the first violation to tol, on a logarithmic scale, with the gap and the support vectors.

    After a second it has the rows of the kernel matrix that are computed in a second, and an estimate of what is left.
    It is drawn on a terminal only.
    """

    def __init__(self, tol: float) -> None:
        from tqdm import tqdm

        layout = "{desc} {percentage:3.0f}% |{bar}| {elapsed}{postfix}"
        self._bar = tqdm(total=1.0, desc="symsvm", bar_format=layout, file=sys.stderr, disable=None, leave=True)
        self._tol, self._first = tol, None

    def show(self, info: Info) -> None:
        """Draw an `Info`."""
        if self._first is None:
            self._first = max(info.violation, 2 * self._tol)
        share = math.log(self._first / max(info.violation, self._tol)) / math.log(self._first / self._tol)
        self._bar.n = max(self._bar.n, min(1.0, share))
        text = [f"iteration {info.iteration}", f"violation {info.violation:.1e}"]
        if info.gap is not None:
            text.append(f"gap {info.gap:.1e}")
        if info.free is not None and info.bounded is not None:
            text.append(f"{info.free + info.bounded} support vectors")
        if info.rows and info.seconds > 1:
            text.append(f"{info.rows / info.seconds:.0f} rows/s")
        if 0.02 < self._bar.n < 1 and info.seconds > 1:  # if the violation goes on to fall as it did
            text.append(f"about {info.seconds * (1 / self._bar.n - 1):.0f} s left")
        self._bar.set_postfix_str(", ".join(text))

    def close(self) -> None:
        """End the drawing; the last state stays visible."""
        self._bar.close()
