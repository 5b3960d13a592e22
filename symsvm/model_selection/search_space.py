"""The numbers that a search by gradient moves, as one vector without bounds on the signs.

Each number theta of a parameter has a coordinate x::

    theta = exp(x)             positive numbers: C, epsilon, gamma, widths, weights
    theta = 1 / (1 + exp(-x))  nu
    theta = x                  numbers that may be negative, such as coef0

A vector, such as a width for each feature, has one coordinate for each entry. The prior of vectors of logarithms is
Gaussian: with their mean subtracted, so that the common scale is free,

    1/2 sum_k (x_k - mean x)^2 / tau^2
"""

from __future__ import annotations

import copy
import difflib
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from symsvm._lib.validation import is_symbolic, number
from symsvm.estimators import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from symsvm.kernels import Constant, Kernel
from symsvm.kernels.algebra import Scale
from symsvm.solvers import Decomposition
from symsvm.solvers.registry import choose_solver

if TYPE_CHECKING:
    from collections.abc import Iterable

    from symsvm._lib.types import Array

__all__ = ["Coordinate", "SearchSpace"]

# Numbers of the machines that have a derivative, besides those of kernels.
_MACHINE = {SVC: ("C",), SVR: ("C", "epsilon"), NuSVC: ("nu",), NuSVR: ("C", "nu")}
# Kernels named by a string: their parameters as arguments of the estimator.
_NAMED = {"rbf": ("gamma",), "laplacian": ("gamma",), "poly": ("gamma", "coef0"), "sigmoid": ("gamma", "coef0")}
# No logarithm moves further than this in a descent.
_REACH = np.log(1e4)
# Ranges of numbers that none is given for: of logarithms, of logits, and of numbers that may be negative.
_RANGES = {"log": (1e-100, 1e100), "logit": (1e-3, 1 - 1e-3), "linear": (-1e100, 1e100)}


@dataclass(frozen=True)
class Coordinate:
    """One parameter of a search.

    Attributes
    ----------
    name : str
        Its name, such as "C" or "kernel__k1__sigma".
    scale : {"log", "logit", "linear"}
        How its numbers become coordinates.
    value : array
        The number or the vector that the estimator has.
    low, high : float
        The range of its numbers.
    where : slice
        Its part of the vector.
    """

    name: str
    scale: str
    value: Array
    low: float
    high: float
    where: slice

    @property
    def is_vector(self) -> bool:
        """Whether it has a number for each feature."""
        return self.value.ndim == 1

    def to_x(self, theta: Any) -> Array:
        """Return the coordinates of numbers."""
        theta = np.atleast_1d(np.asarray(theta, dtype="float64"))
        if self.scale == "linear":
            return theta
        return np.log(theta) if self.scale == "log" else np.log(theta) - np.log1p(-theta)

    def to_theta(self, x: Array) -> Any:
        """Return the numbers of coordinates, in their range: a float or a vector."""
        if self.scale == "linear":
            theta = np.asarray(x)
        else:
            theta = np.exp(x) if self.scale == "log" else 1 / (1 + np.exp(-np.asarray(x)))
        theta = np.clip(theta, self.low, self.high)
        return theta if self.is_vector else float(theta[0])

    def slope(self, theta: Any) -> Array:
        """Return d theta / d x."""
        theta = np.atleast_1d(np.asarray(theta, dtype="float64"))
        if self.scale == "linear":
            return np.ones_like(theta)
        return theta if self.scale == "log" else theta * (1 - theta)


class SearchSpace:
    """The parameters of a search: their names, their coordinates, and estimators with their values.

    Parameters
    ----------
    estimator : SVC, SVR, NuSVC or NuSVR
        The estimator whose parameters they are.
    over : iterable of str, or dict
        Names; or ranges (low, high) by names, None for the default range.
    gamma : float or None
        The value of gamma="scale" or "auto" on the points of the search.
    """

    def __init__(self, estimator: Any, over: Iterable[str] | Mapping[str, Any], *, gamma: float | None = None) -> None:
        kind = machine(estimator)
        ranges: dict[str, Any] = dict(over) if isinstance(over, Mapping) else dict.fromkeys(_names(over))
        if not ranges:
            raise ValueError("over names no parameter: give some, such as over=['C', 'gamma'].")
        self.estimator: Any = clone(estimator)
        if gamma is not None:
            self.estimator.set_params(gamma=gamma)
        known, start = _numbers_of(self.estimator, kind), 0
        self.coordinates: list[Coordinate] = []
        for name, limits in ranges.items():
            if name not in known:
                raise ValueError(_unknown(name, self.estimator, known))
            coordinate = _coordinate(name, *known[name], limits, start)
            start = coordinate.where.stop
            self.coordinates.append(coordinate)
        self.n = start

    def x_of(self, params: Mapping[str, Any]) -> Array:
        """Return the vector of values by names; parameters that are not named keep those of the estimator."""
        x = np.empty(self.n)
        for c in self.coordinates:
            theta = np.broadcast_to(np.asarray(params.get(c.name, c.value), dtype="float64"), c.value.shape)
            x[c.where] = c.to_x(np.clip(theta, c.low, c.high))
        return x

    def params_of(self, x: Array) -> dict[str, Any]:
        """Return values by names: floats and vectors."""
        return {c.name: c.to_theta(x[c.where]) for c in self.coordinates}

    def gradient(self, params: Mapping[str, Any], by_theta: Mapping[str, Any]) -> Array:
        """Return the gradient by x from that by the numbers themselves."""
        g = np.empty(self.n)
        for c in self.coordinates:
            g[c.where] = np.atleast_1d(by_theta[c.name]) * c.slope(params[c.name])
        return g

    def bounds(self, x: Array) -> list[tuple[float, float]]:
        """Return the range of each coordinate for a descent from x: no number changes by more than a large factor."""
        pairs = []
        for c in self.coordinates:
            low, high = (float(c.to_x(v)[0]) for v in (c.low, c.high))
            reach = _REACH if c.scale == "log" else np.inf
            pairs += [(max(low, start - reach), min(high, start + reach)) for start in x[c.where]]
        return pairs

    def prior(self, x: Array, tau: float) -> tuple[float, Array]:
        """Return the negative logarithm of the prior of vectors, up to a constant, and its gradient."""
        value, g = 0.0, np.zeros(self.n)
        for c in self.coordinates:
            if c.is_vector and c.scale == "log":
                away = x[c.where] - x[c.where].mean()
                value += 0.5 * float(away @ away) / tau**2
                g[c.where] = away / tau**2
        return value, g

    def model(self, params: Mapping[str, Any]) -> Any:
        """Return a clone of the estimator with these values, without a bar and without a calibration."""
        model: Any = clone(self.estimator)
        model.set_params(**params, verbose=0)
        if hasattr(model, "probability"):
            model.set_params(probability="deprecated")
        return model.set_params(calibration=None) if hasattr(model, "calibration") else model

    def kernel_paths(self) -> dict[str, str]:
        """Return the names of parameters of the kernel, each with its name in the `Kernel` object."""
        paths = {}
        for c in self.coordinates:
            if c.name.startswith("kernel__"):
                paths[c.name] = c.name.removeprefix("kernel__")
            elif c.name in ("gamma", "coef0"):
                paths[c.name] = "sigma" if self.estimator.kernel == "rbf" else c.name
        return paths

    @property
    def has_vectors(self) -> bool:
        """Whether a parameter is a vector."""
        return any(c.is_vector for c in self.coordinates)


def machine(estimator: Any) -> type:
    """Return which of the machines an estimator is; refuse others in a sentence."""
    if isinstance(estimator, OneClassSVM):
        raise TypeError(
            "OneClassSVM has no labels, so there is no held-out loss to minimise: use SVC, SVR, NuSVC or NuSVR."
        )
    kind = next((kind for kind in _MACHINE if isinstance(estimator, kind)), None)
    if kind is None:
        name, advice = type(estimator).__name__, ": transform the points first" if hasattr(estimator, "steps") else ""
        raise TypeError(f"a search by gradient takes SVC, SVR, NuSVC or NuSVR, got {name}{advice}.")
    kernel = estimator.kernel
    if kernel == "precomputed" or (callable(kernel) and not isinstance(kernel, Kernel)):
        raise TypeError(
            "a search by gradient needs a kernel with an expression, got a matrix or a function: give a Kernel."
        )
    if estimator.mode is not None or not isinstance(choose_solver(estimator.solver, "dual"), Decomposition):
        raise ValueError("a search by gradient runs the default solver on Numba: leave out solver and mode.")
    return kind


def _names(over: Any) -> list[str]:
    names = [over] if isinstance(over, str) else list(over)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"over must hold names of parameters, got {name!r}.")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"over names {twice[0]!r} twice.")
    return names


def _numbers_of(estimator: Any, kind: type) -> dict[str, tuple[Any, str]]:
    """The numbers with a derivative: values and scales by names."""
    found = {name: (getattr(estimator, name), "logit" if name == "nu" else "log") for name in _MACHINE[kind]}
    if isinstance(estimator.kernel, str):
        for name in _NAMED.get(estimator.kernel, ()):
            found[name] = getattr(estimator, name), "linear" if name == "coef0" else "log"
        return found
    for path, (owner, name, value) in _leaves("kernel", estimator.kernel):
        if name in owner.structure or is_symbolic(value) or not _is_numeric(value):
            continue
        is_weight = isinstance(owner, Scale | Constant) and np.all(np.asarray(value) > 0)
        found[path] = value, "log" if is_weight or name in owner.positive else "linear"
    return found


def _leaves(prefix: str, kernel: Kernel) -> Any:
    """The hyper-parameters of a kernel and of those inside it: (owner, name, value) by path."""
    for name, value in kernel.get_params(deep=False).items():
        if isinstance(value, Kernel):
            yield from _leaves(f"{prefix}__{name}", value)
        else:
            yield f"{prefix}__{name}", (kernel, name, value)


def _is_numeric(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, numbers.Real):
        return True
    return isinstance(value, list | tuple | np.ndarray) and np.asarray(value).dtype.kind in "if"


def _unknown(name: str, estimator: Any, known: Mapping[str, Any]) -> str:
    has = ", ".join(known)
    if name.rpartition("__")[2] in ("degree", "n"):
        return f"over names {name!r}, an integer, which has no derivative: search it with `tune`. It may name {has}."
    if name == "gamma" and estimator.kernel == "linear":
        return f"over names 'gamma', which has no effect on the linear kernel. It may name {has}."
    near = difflib.get_close_matches(name, list(known), 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"over names {name!r}, which is no number of this estimator.{hint} It has {has}."


def _coordinate(name: str, value: Any, scale: str, limits: Any, start: int) -> Coordinate:
    if isinstance(value, str):
        raise ValueError(f"{name}={value!r} has no number to start at: give one.")
    theta = np.asarray(value, dtype="float64")
    if theta.ndim > 1:
        raise ValueError(f"{name} must be a number or a vector, got the shape {theta.shape}.")
    if limits is not None:
        try:
            low, high = (number(v, f"the range of {name}") for v in limits)
        except TypeError:
            raise TypeError(f"the range of {name} must be (low, high), got {limits!r}.") from None
        except ValueError as error:
            raise ValueError(f"the range of {name} must be (low, high), got {limits!r}: {error}") from None
        if not low < high:
            raise ValueError(f"the range of {name} must be (low, high) with low < high, got {limits!r}.")
        if scale == "logit" and not 0 < low < high < 1:
            raise ValueError(f"the range of {name} must lie between 0 and 1, got {limits!r}.")
        if scale == "log" and low <= 0:
            raise ValueError(f"the range of {name} must be positive, got {limits!r}.")
        scale = "log" if scale == "linear" and low > 0 else scale
    elif scale == "log":
        if not np.all(theta > 0):
            raise ValueError(f"{name} must be positive to have a logarithm, got {value!r}: give another start.")
        low, high = _RANGES["log"]
    else:
        low, high = _RANGES[scale]
    return Coordinate(name, scale, copy.copy(theta), low, high, slice(start, start + theta.size))
