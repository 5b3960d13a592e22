"""scikit-learn's callbacks (`set_callbacks`, from its version 1.9 on): the tasks of a fit, and their early stops.

The tasks form a tree::

    fit                      all of it, with X, y and the weights; at its end the fitted estimator
      problem                each problem that is solved, one for a pair of classes for example
        iteration            each iteration of its solver; `metadata["info"]` is the `Info`

A hook `on_fit_task_end` that returns True at an iteration or a problem stops the fit as `watching` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.estimators.base import FitMonitor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from symsvm.solvers import Info

__all__ = ["TaskMonitor", "run_with_callbacks"]


class TaskMonitor(FitMonitor):
    """Reports on a fit to scikit-learn's callbacks, and to the function of `watching` too.

    Parameters
    ----------
    root : CallbackContext
        The task of the fit.
    estimator : estimator
        The estimator, as the callbacks get it.
    data : dict
        X, y and metadata, as they get them.
    watcher : callable, optional
        A function of an `Info`; a true return value stops the fit.
    """

    def __init__(
        self, root: Any, estimator: Any, data: dict[str, Any], watcher: Callable[[Info], object] | None = None
    ) -> None:
        super().__init__(self._report_iteration)
        self._root, self._estimator, self._data, self._watcher = root, estimator, data, watcher
        self._task: Any = root

    def solve(self, solve: Callable, *, takes_callback: bool = True) -> Any:
        """Solve the next problem of the fit, which is a task; see `FitMonitor.solve`."""
        self._task = self._root.subcontext("problem", max_subtasks=None)
        self._task.call_on_fit_task_begin(estimator=self._estimator, **self._data)
        solution = super().solve(solve, takes_callback=takes_callback)
        if self._task.call_on_fit_task_end(estimator=self._estimator, **self._data):
            self.stop()
        return solution

    def _report_iteration(self, info):
        """Pass an iteration to the callbacks, and to the watcher; return whether to stop."""
        data = self._data | {"metadata": self._data["metadata"] | {"info": info}}
        task = self._task.subcontext("iteration")
        task.call_on_fit_task_begin(estimator=self._estimator, **data)
        stops = task.call_on_fit_task_end(estimator=self._estimator, **data)
        return bool(self._watcher is not None and self._watcher(info)) or stops


def run_with_callbacks(change: Callable[..., Any], model: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Call a method that changes a model (`fit` ...) as a task of the model's callbacks."""
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    @with_callbacks
    def run(model: Any) -> Any:
        given = dict(zip(("X", "y"), args, strict=False)) | dict(options)
        weights = given.get("sample_weight", args[2] if len(args) > 2 else None)
        data = {"X": given.get("X"), "y": given.get("y"), "metadata": {}}
        if weights is not None:
            data["metadata"]["sample_weight"] = weights
        n = _count_problems(model, data["y"]) if change.__name__ == "fit" else None
        # scikit-learn documents this method for authors of estimators, in spite of its underscore.
        begin = getattr(CallbackSupportMixin, "_init_callback_context")  # noqa: B009
        root = begin(model, task_name=change.__name__, max_subtasks=n)
        root.call_on_fit_task_begin(estimator=model, **data)
        before = vars(model).get("_monitor")
        with TaskMonitor(root, model, data, None if before is None else before.callback).replacing(model):
            change(model, *args, **options)
        root.call_on_fit_task_end(estimator=model, **data, reconstruction_attributes=lambda: _fitted(model))
        return model

    return run(model)


def _count_problems(model: Any, y: Any) -> int | None:
    """The most problems that a fit solves."""
    if getattr(model, "C", 1.0) == np.inf:  # a hard margin is solved several times
        return None
    scheme = getattr(model, "multi_class", None)
    if scheme in (None, "crammer_singer"):
        return 1
    try:
        k = len(np.unique(np.asarray(y)))
    except TypeError:  # labels that are no labels: the fit will raise
        return None
    return 1 if k <= 2 else k if scheme == "ovr" else k * (k - 1) // 2


def _fitted(model: Any) -> dict[str, Any]:
    """The attributes of a fit."""
    return {name: value for name, value in vars(model).items() if name.endswith("_") or name == "_dual_coef"}
