"""What a run reports: an `Info` after each iteration, and a `Solution` at its end."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from symsvm.objectives import Certificate

__all__ = ["Callback", "Info", "Solution", "collect_trace"]


@dataclass(frozen=True)
class Info:
    """The diagnostics of one iteration, at the point before its step; the argument of a callback.

    Parameters
    ----------
    iteration : int
        The number of steps so far.
    seconds : float
        The time since the run began.
    W : float
        The objective.
    violation : float
        The largest KKT violation.
    gap : float or None
        The duality gap; None where no primal is known.
    free, bounded : int or None
        The number of support vectors between their bounds, and at one; None if the solver does not count them.
    rows : float or None
        The kernel rows computed so far, entries / m; None if the solver does not count them.
    problem : int or None
        The index of the problem, from 0, where an estimator solves several; None for a single run.
    """

    iteration: int
    seconds: float
    W: float
    violation: float
    gap: float | None = None
    free: int | None = None
    bounded: int | None = None
    rows: float | None = None
    problem: int | None = None


# A function that a run calls after each iteration; a true return value stops the run.
Callback: TypeAlias = Callable[[Info], object]


@dataclass(frozen=True)
class Solution:
    """The result of a run, whatever stopped it.

    The point has a name of its own for each kind of problem: `lam`, the multipliers of a dual; `z`, the variables of a
    `QuadraticProgram`; `w`, the weights of a primal. `point` is the value of the objective's variable, whichever it is.

    Parameters
    ----------
    point : ndarray
        The value of the objective's variable.
    b : float, ndarray or None
        The multiplier of the equality (the intercept of a classifier); None without an equality, an array for several.
    feasible : ndarray
        The point itself if it is feasible, else its projection onto the feasible set.
    stopped : str
        Why the run ended: `tol`, `max_iter`, `time_limit`, `callback`, `interrupt`, `diverged` (the next W would not be
        finite; the point is the last one before), `stalled` (no further progress at float64 precision) or `rest` (the
        solver's own rule ended the run).
    n_iter : int
        The number of steps.
    trace : dict of ndarray
        One array for each field of `Info` that the run filled, one entry for each iteration.
    certify : callable
        Returns the certificate.
    kind : {"lam", "z", "w"}
        What the point is.
    program : QuadraticProgram or None
        The problem that was solved, where it is a quadratic program; a later run may start from the solution.
    variables : ndarray or None
        The variables of `program`; None without one.
    expand : callable or None
        The function of other rows that returns the values of the decision function there.
    gradient : ndarray or None
        The gradient of the objective of `program` by its variables, in float64; None without a program.
    """

    point: np.ndarray = field(repr=False)
    b: float | np.ndarray | None
    feasible: np.ndarray = field(repr=False)
    stopped: str
    n_iter: int
    trace: dict[str, np.ndarray] = field(repr=False)
    certify: Callable[[], Certificate] = field(repr=False)
    kind: str = field(default="lam", repr=False)
    program: Any = field(default=None, repr=False)
    variables: np.ndarray | None = field(default=None, repr=False)
    expand: Callable[..., np.ndarray] | None = field(default=None, repr=False)
    gradient: np.ndarray | None = field(default=None, repr=False)

    @property
    def lam(self) -> np.ndarray:
        """The multipliers, lam >= 0 in the duals of support vector machines; of a `QuadraticProgram` they are |z|."""
        if self.kind == "w":
            raise AttributeError("the solution of a primal has no multipliers: its weights are `w`.")
        return np.abs(self.point) if self.kind == "z" else self.point

    @property
    def z(self) -> np.ndarray:
        """The variables of the `QuadraticProgram` that was solved: y lam for a classifier, (alpha, -alpha')."""
        if self.variables is None:
            raise AttributeError("z is the variable of a quadratic program, and no such program was solved.")
        return self.variables

    @property
    def w(self) -> np.ndarray:
        """The weights of a primal, with the intercept last if the primal has one."""
        if self.kind != "w":
            raise AttributeError("w are the weights of a primal; this is the solution of a dual: see `lam`.")
        return self.point

    @functools.cached_property
    def certificate(self) -> Certificate:
        """The `Certificate` of the point in float64, computed from the data when it is first read."""
        return self.certify()

    @property
    def W(self) -> float:
        """The objective at the point, from the certificate."""
        return self.certificate.W

    def decision_function(self, *rows: Any) -> np.ndarray:
        """Evaluate f(x) = sum_j c_j lam_j K(x, x_j) + b at other points (Eq. 28, 30).

        Parameters
        ----------
        *rows : array_like
            One array for each array of rows in the double sum of W, in the order in which W has them: the points, and
            further arrays where K takes more than the points.

        Returns
        -------
        ndarray
            The values of f, one for each row.
        """
        if self.expand is None:
            raise TypeError("a decision function needs a solution over a kernel: solve with 'decomposition'.")
        return self.expand(*rows)


def collect_trace(infos: Sequence[Info]) -> dict[str, np.ndarray]:
    """Turn a list of `Info` into one array for each field, without the fields that the solver left None."""
    names = [f.name for f in fields(Info) if getattr(infos[0], f.name) is not None]
    return {name: np.array([getattr(info, name) for info in infos]) for name in names}
