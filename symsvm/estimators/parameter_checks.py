"""Checks of the parameters of estimators, by their names: a fit makes all of them before any work.

A parameter means the same in every estimator that has it, so there is one check for each name. What an estimator takes
from a list of words (`loss`, `multi_class` ...) stands in its class attribute `_choices`.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from symsvm._lib.validation import choice, count, number, switch
from symsvm.compiler.functions import resolve_mode
from symsvm.estimators.libsvm_names import check_probability
from symsvm.kernels import Kernel
from symsvm.objectives.argument_checks import as_nu, as_tube
from symsvm.solvers.program import check_run_arguments
from symsvm.solvers.registry import choose_solver

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PARAMETER_CHECKS", "check_class_weight", "check_parameters"]


def check_parameters(model: Any) -> None:
    """Raise a TypeError or a ValueError that names the first parameter of an estimator that is wrong.

    >>> from symsvm import SVC
    >>> check_parameters(SVC(fit_intercept="no"))
    Traceback (most recent call last):
    TypeError: fit_intercept must be True or False, got 'no' of type str.
    """
    choices = getattr(type(model), "_choices", {})
    takes_infinite_C = getattr(type(model), "_has_hard_margin", False) and _is_infinite(model.C)
    for name, value in model.get_params(deep=False).items():
        if name in choices:
            choice(value, name, choices[name])
        elif name == "C" and takes_infinite_C:
            continue
        elif name in PARAMETER_CHECKS:
            PARAMETER_CHECKS[name](value, name)


def check_class_weight(value: Any, name: str = "class_weight") -> None:
    """Raise unless class weights are None, "balanced" or a dict of finite, positive numbers."""
    if value is None or (isinstance(value, str) and value == "balanced"):
        return
    if isinstance(value, str) or not hasattr(value, "items"):
        raise ValueError(f"{name} must be a dict of weights, 'balanced' or None, got {value!r}.")
    for label, weight in value.items():
        number(weight, f"{name}[{label!r}]", positive=True)


def _positive(value: Any, name: str) -> None:
    number(value, name, positive=True)


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and value == np.inf


def _at_least_1(value: Any, name: str) -> None:
    count(value, name, least=1)


def _epsilon(value: Any, name: str) -> None:
    as_tube(value)


def _nu(value: Any, name: str) -> None:
    as_nu(value)


def _gamma(value: Any, name: str) -> None:
    if isinstance(value, str):
        choice(value, name, ("scale", "auto"))
    else:
        number(value, name, positive=True)


def _kernel(value: Any, name: str) -> None:
    """The names of kernels are checked where they are given a meaning."""
    if not isinstance(value, str | Kernel) and not callable(value):
        raise TypeError(f"{name} must be a name, a Kernel or a function, got {value!r} of type {type(value).__name__}.")
    if isinstance(value, type):
        raise TypeError(f"{name} must be a kernel, not its class: write {value.__name__}().")


def _verbose(value: Any, name: str) -> None:
    if not isinstance(value, bool | np.bool_):
        count(value, name)


def _dual(value: Any, name: str) -> None:
    if isinstance(value, str):
        choice(value, name, ("auto",))
    else:
        switch(value, name)


def _max_iter(value: Any, name: str) -> None:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < -1:
        raise ValueError(f"{name} must be an integer of at least 0, or -1 for no limit, got {value!r}.")


def _time_limit(value: Any, name: str) -> None:
    check_run_arguments(1.0, None, value, None)


def _random_state(value: Any, name: str) -> None:
    try:
        check_random_state(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be None, an integer from 0 to 2^32 - 1 or a RandomState, got {value!r}."
        ) from None


def _calibration(value: Any, name: str) -> None:
    if value is not None:
        choice(value, name, ("sigmoid", "isotonic"))


def _stream_size(value: Any, name: str) -> None:
    if value is not None:
        count(value, name, least=1)


def _solver(value: Any, name: str) -> None:
    choose_solver(value, "dual")


def _mode(value: Any, name: str) -> None:
    resolve_mode(value)


PARAMETER_CHECKS: dict[str, Callable[[Any, str], object]] = {
    "C": _positive,
    "break_ties": switch,
    "cache_size": _positive,
    "calibration": _calibration,
    "class_weight": check_class_weight,
    "coef0": number,
    "degree": _at_least_1,
    "dual": _dual,
    "epsilon": _epsilon,
    "fit_intercept": switch,
    "gamma": _gamma,
    "intercept_scaling": _positive,
    "kernel": _kernel,
    "max_iter": _max_iter,
    "mode": _mode,
    "nu": _nu,
    "penalize_intercept": switch,
    "probability": check_probability,
    "random_state": _random_state,
    "shrinking": switch,
    "solver": _solver,
    "stream_size": _stream_size,
    "time_limit": _time_limit,
    "tol": _positive,
    "verbose": _verbose,
    "warm_start": switch,
}
