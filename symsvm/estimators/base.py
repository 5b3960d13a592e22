"""The base class of all estimators: solutions, certificates and traces of a fit, and the monitor that reports on it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
import numbers
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from symsvm._lib.transactions import all_or_nothing
from symsvm._lib.validation import refuse_masked
from symsvm.estimators.containers import from_dlpack
from symsvm.estimators.parameter_checks import check_parameters
from symsvm.solvers.convergence import held_warnings, warn_convergence, warn_user

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array
    from symsvm.solvers import Info

__all__ = ["BaseSVM", "FitMonitor", "changes_model", "sample_weights"]

_Model = TypeVar("_Model")
_Arguments = ParamSpec("_Arguments")


def changes_model(
    method: Callable[Concatenate[_Model, _Arguments], object],
) -> Callable[Concatenate[_Model, _Arguments], _Model]:
    """Make a method (`fit`, `partial_fit`, `calibrate`) check all parameters, then change all of a model or nothing.

    Every method that sets attributes of a fit has this decorator: no other care is needed for a fit that fails.
    """
    change = all_or_nothing(method)

    @functools.wraps(method)
    def checked(model: _Model, /, *args: _Arguments.args, **options: _Arguments.kwargs) -> _Model:
        check_parameters(model)
        if "_skl_callbacks" in vars(model) and "_callback_fit_ctx" not in vars(model):
            from symsvm.estimators.callbacks import run_with_callbacks

            return run_with_callbacks(change, model, args, options)
        return change(model, *args, **options)

    return checked


class FitMonitor:
    """Reports on the fits of one estimator and stops them; `estimator.watching(callback)` returns it.

    Attributes
    ----------
    problem : int
        The number of the current problem of the fit, from 0; -1 before the first one.
    is_solving : bool
        Whether a solver is running. A KeyboardInterrupt raised by a signal handler then ends the fit with a feasible
        model; at any other time it propagates out of `fit`.
    is_shared : bool
        Whether several threads solve problems of one fit at once, which an interrupt of one of them ends.
    """

    def __init__(self, callback: Callable[[Info], object] | None = None) -> None:
        self._callback = callback
        self.begin()

    def begin(self) -> None:
        """Reset the state at the start of a fit."""
        self.problem, self.is_solving, self.is_shared, self._stopped_by = -1, False, False, None

    def share(self) -> None:
        """Let several threads solve problems of this fit at once."""
        self.is_shared = True

    @property
    def callback(self) -> Callable[[Info], object] | None:
        """The function that is called in each iteration, or None."""
        return self._callback

    @contextlib.contextmanager
    def replacing(self, model: Any) -> Iterator[None]:
        """Be the monitor of a model's fits inside a `with` block."""
        before = vars(model).get("_monitor")
        model._monitor = self
        try:
            yield
        finally:
            vars(model).pop("_monitor")
            if before is not None:
                model._monitor = before

    def stop(self) -> None:
        """Let the problems from now on stop at their starting points."""
        self._stopped_by = self._stopped_by or "callback"

    @property
    def is_watched(self) -> bool:
        """Whether there is a callback."""
        return self._callback is not None

    def solve(self, solve: Callable, *, takes_callback: bool = True) -> Any:
        """Solve the next problem of the fit by `solve(callback=)`, or by `solve()` if it takes no callback.

        If the callback or Ctrl-C has stopped one problem, the problems after it stop at their starting points. Only the
        first of them warns.
        """
        self.problem += 1
        before = self._stopped_by
        with held_warnings() as texts:
            solution = self._solve(solve, takes_callback)
        # Where several threads solve, the interrupt of one has stopped the others.
        if before is None and (self.is_watched or self._stopped_by is None):
            for text in texts:
                warn_convergence(text)
        if solution.stopped == "interrupt":
            self._stopped_by = "interrupt"
        return solution

    def _solve(self, solve, takes_callback):
        reports = takes_callback and (self.is_watched or self.is_shared or self._stopped_by is not None)
        try:
            self.is_solving = True
            return solve(**{"callback": self._report} if reports else {})
        except KeyboardInterrupt:
            if not takes_callback or not self.is_watched or self._stopped_by is not None:
                raise
            self._stopped_by = "interrupt"  # no iteration yet: solve again, to stop at the starting point
        finally:
            self.is_solving = False
        try:
            return solve(callback=self._report)
        except Exception as error:  # the interrupted work cannot be repeated, the import of a module for example
            raise KeyboardInterrupt from error

    def _report(self, info):
        """Pass one iteration to the callback; return whether to stop."""
        if self._stopped_by == "interrupt":
            raise KeyboardInterrupt  # every solver stops at it
        callback = self._callback if self._stopped_by is None else None
        if callback is not None and callback(dataclasses.replace(info, problem=self.problem)):
            self._stopped_by = "callback"
        return self._stopped_by is not None


def _has_callbacks(model):
    if importlib.util.find_spec("sklearn.callback") is None:
        raise AttributeError("set_callbacks needs scikit-learn 1.9 or later; `watching` takes a function.")
    return True


class BaseSVM(BaseEstimator):
    """An estimator that solves one or several problems and keeps their solutions in `solutions_`."""

    solutions_: list

    # The link of scikit-learn's HTML representation to the documentation.
    _doc_link_module = "symsvm"
    _doc_link_template: Any = "https://github.com/symsvm/symsvm/blob/main/docs/estimators.md"

    @classmethod
    def _get_param_names(cls):
        return _parameter_names(cls)

    @property
    def certificate_(self) -> Any:
        """The `Certificate` of the fit in float64, computed on first access; a list of them for several problems."""
        return self._of_solutions("certificate")

    @property
    def trace_(self) -> Any:
        """The trace of the fit, arrays of the fields of `Info`; a list of traces for several problems."""
        return self._of_solutions("trace")

    def _of_solutions(self, name):
        check_is_fitted(self)
        if not self.solutions_:
            raise AttributeError(f"{name}_ is not available after partial_fit, which keeps no points: use fit.")
        values = [getattr(solution, name) for solution in self.solutions_]
        return values[0] if len(values) == 1 else values

    @available_if(_has_callbacks)
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set the callbacks of the fits, objects of scikit-learn's protocol `sklearn.callback.FitCallback`.

        Each problem and each iteration of its solver is a task; `docs/estimators.md` describes them. The method is
        there from scikit-learn 1.9 on.

        Parameters
        ----------
        *callbacks : FitCallback
            The callbacks; none removes those that were set.

        Returns
        -------
        self
            The estimator.
        """
        from sklearn.callback import CallbackSupportMixin  # slow to import

        return CallbackSupportMixin.set_callbacks(self, *callbacks)  # type: ignore[arg-type]

    @contextlib.contextmanager
    def watching(self, callback: Callable[[Info], object]) -> Iterator[FitMonitor]:
        """Call a function in each iteration of the fits inside a `with` block.

        A true return value stops the fit: the current problem at its present point, and the problems after it at their
        starting points. All of them are feasible, and one ConvergenceWarning is issued. The callback is not a
        parameter: clones (such as those that a search or a calibration fits) and files do not have it. The solver "qp"
        does not call it. `set_callbacks` does the same by scikit-learn's protocol, and clones keep its callbacks.

        Parameters
        ----------
        callback : callable
            A function of an `Info`, whose field `problem` is the number of the problem.

        Yields
        ------
        FitMonitor
            The state of the fit: the number of the current problem, and whether a solver is running.

        Examples
        --------
        >>> from symsvm import SVC
        >>> model, seen = SVC(), []
        >>> with model.watching(seen.append):
        ...     _ = model.fit([[0.0], [1.0], [2.0]], ["a", "b", "c"])
        >>> sorted({info.problem for info in seen})
        [0, 1, 2]
        """
        if not callable(callback):
            raise TypeError(f"callback must be a function of an Info, got {callback!r}.")
        monitor = FitMonitor(callback)
        with monitor.replacing(self):
            yield monitor

    def _begin_fit(self):
        """Start a fit, with the monitor of `watching` or a new one."""
        if vars(self).get("_monitor") is None or not self._monitor.is_watched:
            self._monitor = FitMonitor()
        self._monitor.begin()

    def _end_fit(self):
        if "_monitor" in vars(self) and not self._monitor.is_watched:
            del self._monitor

    def __getstate__(self) -> dict:
        """Return the state without the training points; certificates, which need them, are computed first."""
        own: Any = super().__getstate__()
        state = dict(own)
        for name in ("_monitor", "_checkpoint"):
            state.pop(name, None)
        if "solutions_" in state:
            state["solutions_"] = [_without_data(solution) for solution in state["solutions_"]]
        return state


@functools.cache
def _parameter_names(cls: Any) -> list[str]:
    """The names of an estimator's parameters, which scikit-learn finds anew for each fit."""
    names: Any = super(BaseSVM, cls)
    return names._get_param_names()


def _without_data(solution):
    """The solution with its certificate computed, and without the data that this takes."""
    return dataclasses.replace(solution, certify=functools.partial(_constant, solution.certificate))


def _constant(value):
    return value


def sample_weights(sample_weight: ArrayLike | None, m: int) -> Array:
    """Return the weights of m points in float64, checked; points of weight 0 take no part in a fit.

    Negative weights become 0, as in LIBSVM, with a warning.

    >>> sample_weights(None, 2).tolist(), sample_weights([0, 3], 2).tolist()
    ([1.0, 1.0], [0.0, 3.0])
    """
    if sample_weight is None:
        return np.ones(m)
    sample_weight = from_dlpack(sample_weight)
    refuse_masked(sample_weight, "sample_weight")
    if isinstance(sample_weight, numbers.Real):
        weights = np.full(m, sample_weight, dtype="float64")
    else:
        options = {"ensure_2d": False, "dtype": np.float64, "order": "C", "input_name": "sample_weight"}
        weights = check_array(sample_weight, **options)
    if weights.shape != (m,):
        raise ValueError(f"sample_weight must have one weight for each of the {m} points, got shape {weights.shape}.")
    if not (weights > 0).any():
        raise ValueError(
            "sample_weight must hold a positive weight: Invalid input - all samples have zero or negative weights."
        )
    if (weights < 0).any():
        negative = int((weights < 0).sum())
        warn_user(f"sample_weight has {negative} negative weights: such points are left out, as by 0.")
        weights = np.maximum(weights, 0.0)
    return weights
