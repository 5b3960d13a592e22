"""The descent of a held-out loss: a coarse grid of starting points, then L-BFGS from the best of them.

The function that L-BFGS minimises over the coordinates x is

    L(theta(x)) + scale / n * 1/2 sum_k (x_k - mean x)^2 / tau^2

with n the weight of all points. The log loss is a negative logarithm of probabilities, and scale is 1; a squared or an
absolute error becomes one when divided by twice its value, or by its value, so scale is that at the start.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from symsvm.model_selection.cached_source import SearchStopped
from symsvm.model_selection.held_out_loss import Evaluation, HeldOutLoss

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from symsvm._lib.types import Array
    from symsvm.model_selection.search_space import Coordinate, SearchSpace

__all__ = ["Descent", "Limits", "SearchStep", "coarse_grid"]

# Steps that L-BFGS remembers, and the change of a logarithm in its first one.
_MEMORY, _FIRST_STEP = 10, 0.5
# Values of the coarse grid: of C, in a regression as parts of the deviation of y; of a scale of the kernel, as factors;
# of nu; of epsilon, as parts of the deviation of y.
_C, _FACTORS, _NU, _EPSILON = (0.3, 3.0, 30.0, 300.0), (0.25, 0.5, 1.0, 2.0), (0.15, 0.3, 0.5), (0.1,)


@dataclass(frozen=True)
class SearchStep:
    """One evaluation of a search by gradient; a function given as `progress` receives it.

    Parameters
    ----------
    done : int
        The number of evaluations so far.
    stage : int
        0 for the coarse grid, then the number of the start.
    params : dict
        The parameters.
    loss : float
        The held-out loss; infinite where a fit failed.
    best : float
        The least loss so far.
    status : str
        "done", or why there is no loss.
    """

    done: int
    stage: int
    params: dict[str, Any]
    loss: float
    best: float
    status: str


@dataclass
class Limits:
    """What ends a search.

    Attributes
    ----------
    max_iter : int
        The most iterations from each start.
    max_evaluations : int or None
        The most evaluations, those of the grid included.
    deadline : float
        A time of `time.perf_counter`.
    tol : float
        The relative decrease of an iteration at which a start has converged.
    """

    max_iter: int
    max_evaluations: int | None
    deadline: float
    tol: float


class _Ended(Exception):
    """A limit is reached, or the user stops the search."""


@dataclass
class Descent:
    """Minimises a held-out loss, and keeps all its evaluations.

    Attributes
    ----------
    loss : HeldOutLoss
        The loss.
    limits : Limits
        What ends the search.
    tau : float or None
        The standard deviation of the prior of vectors; None for no prior.
    progress : callable or None
        A function of a `SearchStep`; a true return value stops the search.
    records : list of tuple
        For each evaluation: the `Evaluation`, its stage, and the loss with the prior.
    status : str
        "converged", "max_iter", "max_evaluations", "time_limit", "callback" or "interrupted".
    """

    loss: HeldOutLoss
    limits: Limits
    tau: float | None = None
    progress: Callable[[SearchStep], object] | None = None
    records: list[tuple[Evaluation, int, float]] = field(default_factory=list)
    status: str = "converged"
    _scale: float = 1.0

    @property
    def evaluations(self) -> list[Evaluation]:
        """All evaluations so far."""
        return [found for found, _, _ in self.records]

    @property
    def space(self) -> SearchSpace:
        """The parameters."""
        return self.loss.space

    def run(self, cells: Sequence[Mapping[str, Any]], starts: int, tol: float) -> None:
        """Evaluate the cells with fits to `tol`, then descend from the best of them; keep what was found if stopped."""
        try:
            for cell in cells:
                self._evaluate(self.space.params_of(self.space.x_of(cell)), 0, gradient=False, tol=tol)
            order = np.argsort([e.loss for e in self.evaluations], kind="stable")
            found = [self.evaluations[i] for i in order if np.isfinite(self.evaluations[i].loss)]
            if self.tau is not None and found:
                self._scale = self._unit(found[0].loss)
            for stage, start in enumerate(found[:starts], 1):
                self._descend(self.space.x_of(start.params), stage)
        except _Ended as ended:
            self.status = str(ended)
        except KeyboardInterrupt:
            self.status = "interrupted"
            if not np.isfinite([e.loss for e in self.evaluations]).any():
                raise

    @property
    def best(self) -> int:
        """The evaluation with the least loss and prior, among those of the descents if there are any."""
        values = np.array([objective for _, _, objective in self.records])
        descended = np.isfinite(values) & np.array([stage > 0 for _, stage, _ in self.records])
        return int(np.argmin(np.where(descended, values, np.inf) if descended.any() else values))

    def _unit(self, loss: float) -> float:
        if self.loss.criterion.has_unit:
            return 1.0
        return 2 * loss if self.loss.criterion.name == "squared_error" else loss

    def _evaluate(
        self, params: Mapping[str, Any], stage: int, *, gradient: bool = True, tol: float | None = None
    ) -> Any:
        """Evaluate and record; raise `_Ended` at a limit."""
        limits, done = self.limits, len(self.records)
        if limits.max_evaluations is not None and done >= limits.max_evaluations:
            raise _Ended("max_evaluations")
        if done and time.perf_counter() >= limits.deadline:
            raise _Ended("time_limit")
        try:
            found = self.loss(params, gradient=gradient, tol=tol)
        except SearchStopped:
            raise _Ended("time_limit") from None
        if np.isfinite(found.loss):  # from now on, the time limit also stops a fit under way
            self.loss.threads.deadline = limits.deadline
        objective = found.loss + self._prior(self.space.x_of(params))[0]
        self.records.append((found, stage, objective))  # at once: Ctrl-C may come at any time
        if self.progress is not None:
            best = min(e.loss for e in self.evaluations)
            step = SearchStep(done + 1, stage, found.params, found.loss, best, found.status)
            if self.progress(step):
                raise _Ended("callback")
        return found

    def _prior(self, x: Array) -> tuple[float, Array]:
        if self.tau is None:
            return 0.0, np.zeros(len(x))
        value, g = self.space.prior(x, self.tau)
        unit = self._scale / self.loss.weight
        return unit * value, unit * g

    def _descend(self, x: Array, stage: int) -> None:
        """Minimise by L-BFGS from x; where a kink ends a line search, begin again at the best point."""
        bounds, first = self.space.bounds(x), self._value_and_gradient(x, stage)
        steps, status = 0, "converged"
        while first is not None:
            run = _Run(x, *first, self.limits.tol)

            def scaled(x: Array, run: _Run = run) -> tuple[float, Array]:
                return run.scaled(x, lambda: self._value_and_gradient(x, stage))

            result = minimize(
                scaled,
                x,
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                callback=run.check,
                options={"maxcor": _MEMORY, "maxiter": self.limits.max_iter - steps, "ftol": 0.0, "gtol": 0.0},
            )
            steps += max(1, int(result.nit))
            if steps >= self.limits.max_iter:
                status = "max_iter"
                break
            if run.has_converged or not run.has_decreased:
                break
            x, first = run.best_x, (run.best, run.best_gradient)
        if status == "max_iter":
            self.status = status

    def _value_and_gradient(self, x: Array, stage: int) -> tuple[float, Array] | None:
        """The loss with the prior, and its gradient; None where a fit failed."""
        params = self.space.params_of(x)
        found = self._evaluate(params, stage)
        if found.gradient is None or not np.isfinite(found.loss):
            return None
        prior, by_prior = self._prior(x)
        return found.loss + prior, self.space.gradient(params, found.gradient) + by_prior


class _Run:
    """One run of L-BFGS: the scale of its function, its best point, and whether it has converged.

    The first step of L-BFGS is the gradient itself. The function is scaled so that this changes no logarithm by more
    than `_FIRST_STEP`, and one by as much.
    """

    def __init__(self, x: Array, value: float, gradient: Array, tol: float) -> None:
        self._first, self._tol = (x.copy(), value, gradient), tol
        self._scale = _FIRST_STEP / (float(np.abs(gradient).max()) or 1.0)
        self.best, self.best_x, self.best_gradient = value, x.copy(), gradient
        self._worst, self._last, self._small, self.has_converged = value, value, 0, not gradient.any()

    @property
    def has_decreased(self) -> bool:
        """Whether the run has decreased the function by more than the tolerance."""
        return self._first[1] - self.best > self._tol * abs(self._first[1])

    def scaled(self, x: Array, evaluate: Callable[[], tuple[float, Array] | None]) -> tuple[float, Array]:
        """The function that L-BFGS sees."""
        if np.array_equal(x, self._first[0]):
            found: Any = self._first[1:]
        else:
            found = evaluate()
        if found is None:  # a wall that leads back to the best point
            away = x - self.best_x
            return self._scale * (self._worst + abs(self._worst)) + 0.5 * float(away @ away), away
        value, gradient = found
        self._worst = max(self._worst, value)
        if value < self.best:
            self.best, self.best_x, self.best_gradient = value, x.copy(), gradient
        return self._scale * value, self._scale * gradient

    def check(self, intermediate_result: Any) -> None:
        """Stop after two iterations in a row that decreased the function by less than the tolerance."""
        value = intermediate_result.fun / self._scale
        is_small = self._last - value <= self._tol * abs(self._last)
        self._small, self._last = (self._small + 1 if is_small else 0), value
        if self._small == 2:
            self.has_converged = True
            raise StopIteration


def coarse_grid(space: SearchSpace, X: Any, y: Array, grid: Mapping[str, Sequence[Any]] | None = None) -> list[dict]:
    """Return the cells of a grid in an order in which fits share work: by kernel, then by C.

    Parameters
    ----------
    space : SearchSpace
        The parameters.
    X : array or CSR of shape (m, d)
        The points.
    y : array of shape (m,)
        Labels or targets.
    grid : dict, optional
        Lists of values by names; by default C, nu and epsilon take usual values, and the first scale of the kernel
        takes multiples of one that suits the distances of the points. A vector takes multiples of its own value.

    Returns
    -------
    list of dict
        The cells.
    """
    if grid is None:
        axes, scaled = {}, False
        for c in space.coordinates:
            values = _default_values(c, space, X, y, is_first=not scaled)
            scaled |= c.name not in ("C", "nu", "epsilon") and values is not None
            if values is not None:
                axes[c.name] = values
    else:
        axes = _checked_grid(space, grid)
    names = sorted(axes, key=lambda name: (name in ("C", "nu", "epsilon"), name == "C"))
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*(axes[name] for name in names))]


def _checked_grid(space: SearchSpace, grid: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    if not hasattr(grid, "items"):
        raise TypeError(f"grid must be a dict from names to lists of values, got {grid!r}.")
    known = {c.name: c for c in space.coordinates}
    axes = {}
    for name, values in grid.items():
        if name not in known:
            raise ValueError(f"grid names {name!r}, which `over` does not: it has {', '.join(known)}.")
        if isinstance(values, str) or not np.iterable(values) or not len(list(values)):
            raise ValueError(f"grid[{name!r}] must be a list of values, got {values!r}.")
        c = known[name]
        for value in values:
            theta = np.asarray(value)
            if theta.dtype.kind not in "if" or theta.ndim > c.value.ndim:
                raise ValueError(f"grid[{name!r}] must hold numbers, got {value!r}.")
            if (theta < c.low).any() or (theta > c.high).any():
                raise ValueError(f"grid[{name!r}] has {value!r}, outside the range from {c.low:g} to {c.high:g}.")
        axes[name] = list(values)
    return axes


def _default_values(c: Coordinate, space: SearchSpace, X: Any, y: Array, *, is_first: bool) -> list[Any] | None:
    if c.name == "C":
        unit = 1.0 if hasattr(space.estimator, "class_weight") else float(np.std(y)) or 1.0
        return _within(c, [v * unit for v in _C])
    if c.name == "nu":
        return _within(c, _NU)
    if c.name == "epsilon":
        return _within(c, [v * (float(np.std(y)) or 1.0) for v in _EPSILON])
    if c.scale != "log" or not is_first:
        return None
    name, kernel = c.name.rpartition("__")[2], space.estimator.kernel
    if name == "sigma" or (name == "gamma" and kernel == "rbf"):
        typical = typical_width(X)  # of a single width for all features
        values: list[Any] = [typical * v for v in _FACTORS]
        if name == "gamma":
            values = [0.5 / v**2 for v in values]
        elif c.is_vector:
            shape = c.value / np.exp(np.log(c.value).mean())
            values = [v * shape for v in values]
    else:
        values = [c.value * v for v in _FACTORS]
    return _within(c, values)


def _within(c: Coordinate, values: Any) -> list[Any]:
    kept = [v for v in values if np.all(np.asarray(v) >= c.low) and np.all(np.asarray(v) <= c.high)]
    return kept or [c.value]


def typical_width(X: Any) -> float:
    """Return sqrt(sum of the variances of the features), the root of half the mean squared distance of two points.

    >>> typical_width(np.array([[0.0, 0.0], [2.0, 0.0]]))
    1.0
    """
    if hasattr(X, "tocsr"):
        mean = np.asarray(X.mean(axis=0)).ravel()
        total = float(X.multiply(X).sum()) / X.shape[0] - float(mean @ mean)
    else:
        total = float(X.var(axis=0).sum())
    return float(np.sqrt(total)) if total > 0 else 1.0
