"""Shortfall: what a run that ends before its tolerance, or at an optimum that is of no use, tells its caller."""

import sys
import warnings

__all__ = ["warn_convergence", "warn_not_converged"]

# What stopped a run -> how a sentence goes on.
_WHY = {
    "max_iter": "after max_iter={n_iter} iterations",
    "time_limit": "at the time limit",
    "callback": "by the callback",
    "interrupt": "by an interrupt",
    "stalled": "where rounding leaves no step that helps",
    "diverged": "before a step to where the objective is not finite",
}


def warn_not_converged(stopped, n_iter, reached, advice):
    """Warn of a run that ended short of its tolerance.

    Parameters
    ----------
    stopped, n_iter : why and when the run ended, as a `Solution` says it.
    reached : what the point has, and what was asked for: "a violation of 0.1, above tol=0.001".
    advice : sentences about what to do.
    """
    why = _WHY[stopped].format(n_iter=n_iter)
    text = " ".join([f"stopped {why} with {reached}; the point is feasible.", *advice])
    warn_convergence(text)


def warn_convergence(text):
    """Raise a ConvergenceWarning at the line that called symsvm."""
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(text, ConvergenceWarning, stacklevel=_caller())


def _caller():
    """The number of frames up to the first one outside this package, for a warning to point at."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "symsvm":
        frame, level = frame.f_back, level + 1
    return level
