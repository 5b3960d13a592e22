"""Arrays of other libraries: what has nothing but DLPack is read by it, and JAX arrays are answered by JAX arrays."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["answers_in_kind", "from_dlpack"]

_Method = TypeVar("_Method", bound="Callable[..., Any]")


def from_dlpack(value: Any) -> Any:
    """Return an object of the DLPack protocol as a NumPy array, and anything else as it is.

    scikit-learn converts what it can; an array of a library without `__array__` needs this.
    """
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        return np.from_dlpack(value)
    return value


def answers_in_kind(method: _Method) -> _Method:
    """Make a method of one argument X, such as `predict`, return a JAX array if X is one.

    Labels that are strings stay a NumPy array, since JAX has none.
    """

    @functools.wraps(method)
    def answer(model: Any, X: Any) -> Any:
        if type(X) is np.ndarray or "jax" not in sys.modules:
            return method(model, X)
        jax = sys.modules["jax"]
        if not isinstance(X, jax.Array):
            return method(model, X)
        values = method(model, np.asarray(X))
        return jax.device_put(values, next(iter(X.devices()))) if values.dtype.kind in "biuf" else values

    return cast("_Method", answer)
