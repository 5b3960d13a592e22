"""The hyper-parameters of kernels: their shapes, equality and text, and vectors of numbers as inputs of graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
import pytensor
from pytensor.compile.sharedvalue import SharedVariable

from symsvm._lib.validation import is_symbolic

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["check_length", "format_parameter", "is_same_parameter", "known_shape", "shared_vector"]


def known_shape(variable: Any) -> tuple[int | None, ...]:
    """Return the shape of a graph as far as it is known, that of its present value for a shared variable."""
    if isinstance(variable, SharedVariable):
        return np.shape(variable.get_value(borrow=True))
    return variable.type.shape


def check_length(name: str, shape: Sequence[int | None], d: int | None) -> None:
    """Raise ValueError if a vector has not one number for each of d features, where both are known."""
    if len(shape) == 1 and None not in (d, shape[0]) and shape[0] != d:
        raise ValueError(
            f"{name} has length {shape[0]}, but the points have {d} features: give one number for each feature, or one "
            "for all."
        )


# The vectors of numbers in graphs, by name and value.
_VECTORS: WeakValueDictionary[tuple[str, str, bytes], Any] = WeakValueDictionary()


def shared_vector(array: np.ndarray, name: str) -> Any:
    """A vector of numbers as a shared variable, the same one for the same numbers.

    A constant would be a part of the compiled code, which another vector would compile again.
    """
    key = name, array.dtype.name, array.tobytes()
    variable = _VECTORS.get(key)
    if variable is None:
        variable = _VECTORS[key] = pytensor.shared(array, name=name)
    return variable


def is_same_parameter(a: Any, b: Any) -> bool:
    """Whether two hyper-parameters are the same object, or equal numbers or arrays."""
    if a is b or is_symbolic(a) or is_symbolic(b):
        return a is b
    if np.ndim(a) or np.ndim(b):
        return np.array_equal(a, b)
    return bool(a == b)


# Numbers of a vector that a repr shows.
_SHOWN = 6


def format_parameter(value: Any) -> str:
    """Return a hyper-parameter as a repr shows it: a symbol by its name, a vector as a list, an array by its shape.

    >>> format_parameter(np.array([0.5, 2.0])), format_parameter(np.linspace(0, 1, 10))
    ('[0.5, 2.0]', '[0, 0.1111, 0.2222, ..., 1] (10 numbers)')
    """
    if is_symbolic(value):
        return value.name or str(value)
    if isinstance(value, np.ndarray) and value.ndim != 1:
        return f"array{value.shape}"
    if isinstance(value, (list, tuple, range, np.ndarray)):
        if len(value) <= _SHOWN:
            return f"[{', '.join(map(format_parameter, value))}]"
        first, last = ", ".join(f"{entry:.4g}" for entry in value[:3]), f"{value[-1]:.4g}"
        return f"[{first}, ..., {last}] ({len(value)} numbers)"
    return repr(value.item() if isinstance(value, np.generic) else value)
