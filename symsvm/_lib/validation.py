"""Validation of arguments. An error names the argument, says what was found and what to do.

Validation runs before a graph is built or compiled. The functions return their argument as a plain NumPy value.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import ArrayLike, DTypeLike

    from symsvm._lib.types import Array, Graph

__all__ = [
    "as_float",
    "choice",
    "count",
    "dtype",
    "is_symbolic",
    "number",
    "number_or_vector",
    "points",
    "refuse_masked",
    "signs",
    "switch",
    "vector",
]


def is_symbolic(value: object) -> bool:
    """Whether `value` is part of a graph (a shared variable, an input or an expression)."""
    return isinstance(value, Variable)


def as_float(value: Any) -> Graph:
    """Return `value` as a tensor of float32 or float64; Python numbers and integers become float64.

    >>> as_float([1, 2]).dtype, as_float(2.0).dtype
    ('float64', 'float64')
    """
    tensor = pt.as_tensor(np.float64(value) if isinstance(value, numbers.Real) else value)
    return tensor if tensor.dtype in ("float32", "float64") else tensor.astype("float64")


def number(value: Any, name: str, *, positive: bool = False) -> float:
    """Return `value` as a finite float; it must be positive if `positive`.

    >>> number(2, "C", positive=True)
    2.0
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}.")
    try:
        result = float(value)
    except OverflowError:
        result = np.inf
    if not np.isfinite(result):
        raise ValueError(f"{name} must be finite, got {value!r}.")
    if positive and result <= 0:
        raise ValueError(f"{name} must be positive, got {value!r}.")
    return result


def vector(value: Any, name: str, *, positive: bool = False) -> Array:
    """Return `value` as a vector (d,) of finite float64 numbers; they must be positive if `positive`.

    >>> vector([1, 2], "sigma", positive=True)
    array([1., 2.])
    """
    refuse_masked(value, name)
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.array(value, dtype=object)  # rows of different lengths
    if array.ndim != 1 or not len(array):
        raise ValueError(f"{name} must be a number or a vector of numbers, got the shape {array.shape}.")
    if array.dtype.kind not in "iuf":
        wrong = next((entry for entry in array.tolist() if not isinstance(entry, numbers.Real)), array[0])
        raise TypeError(f"{name} must hold numbers, got {wrong!r} of type {type(wrong).__name__}.")
    array = array.astype("float64")
    bad = ~np.isfinite(array)
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(f"{name} must be finite, got {array[k]} at index {k}.")
    if positive and (array <= 0).any():
        k = int(np.argmax(array <= 0))
        raise ValueError(f"{name} must be positive, got {array[k]} at index {k}.")
    return array


def number_or_vector(value: Any, name: str, *, positive: bool = False) -> Any:
    """Return `value` as a float by `number`, or as a vector by `vector` if it is a list or an array.

    >>> number_or_vector([1, 2], "sigma"), number_or_vector(3, "sigma")
    (array([1., 2.]), 3.0)
    """
    is_vector = isinstance(value, (list, tuple)) or np.ndim(value) > 0
    return (vector if is_vector else number)(value, name, positive=positive)


def count(value: Any, name: str, *, least: int = 0) -> int:
    """Return `value` as an int; it must be at least `least`."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}.")
    return int(value)


def choice(value: Any, name: str, allowed: Collection[str]) -> str:
    """Return `value`; it must be one of the names in `allowed`."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")
    return value


def switch(value: Any, name: str) -> bool:
    """Return `value` as a bool; it must be True or False, since any text, "no" too, would count as true.

    >>> switch(np.False_, "fit_intercept")
    False
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r} of type {type(value).__name__}.")
    return bool(value)


def refuse_masked(value: Any, name: str) -> None:
    """Raise a ValueError if `value` is a masked array with masked entries: conversion would use what is below the mask.

    >>> refuse_masked(np.ma.masked_invalid([1.0, 2.0]), "X")
    """
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        masked = int(np.ma.count_masked(value))
        raise ValueError(
            f"{name} has {masked} masked entries, which are not data: fill them in, or leave out their rows."
        )


def dtype(value: DTypeLike) -> str:
    """Return the name of a floating type; it must be float32 or float64."""
    try:
        name: Any = np.dtype(value).name
    except TypeError:
        name = value
    return choice(name, "dtype", ("float64", "float32"))


def points(X: ArrayLike, name: str = "X", *, d: int | None = None, dtype: DTypeLike = "float64") -> Array:
    """Return `X` as a finite, contiguous array (m, d), one point per row.

    >>> points([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    refuse_masked(X, name)
    try:
        X = np.asarray(X)
        if np.iscomplexobj(X):
            raise TypeError(f"the type {X.dtype} is not real")
        with np.errstate(over="ignore"):  # an entry too large for the dtype is reported below
            array = np.ascontiguousarray(X, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} must be a numeric array, one point per row; it could not be converted: {error}."
        ) from None
    if array.ndim != 2:
        hint = f"; reshape one point with {name}.reshape(1, -1)" if array.ndim == 1 else ""
        raise ValueError(f"{name} must have two dimensions (points, features), got the shape {X.shape}{hint}.")
    if 0 in array.shape:
        raise ValueError(f"{name} must hold at least one point and one feature, got the shape {array.shape}.")
    if d is not None and array.shape[1] != d:
        raise ValueError(f"{name} must have {d} features as the training points have, got {array.shape[1]}.")
    _check_finite(array, name)
    return array


def signs(y: ArrayLike, name: str = "y", *, m: int | None = None, dtype: DTypeLike = "float64") -> Array:
    """Return labels as -1 and +1: of the two values found, the smaller becomes -1 (Eq. 4; Eq. 002:1.1, 003:1).

    Parameters
    ----------
    y : array-like
        Labels (m,) of two different values.
    name : str
        The name of the argument in error messages.
    m : int or None
        The number of labels that must be given.
    dtype : dtype
        The type of the result.

    Returns
    -------
    ndarray
        The labels, (m,).

    Examples
    --------
    >>> signs([0, 1, 1])
    array([-1.,  1.,  1.])
    """
    refuse_masked(y, name)
    try:
        y = np.asarray(y)
        values = np.unique(y)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold labels that can be compared: {error}.") from None
    if y.ndim != 1:
        raise ValueError(f"{name} must have one dimension, a label for each point, got the shape {y.shape}.")
    if m is not None and len(y) != m:
        raise ValueError(f"{name} must have one label for each of the m={m} points, got {len(y)}.")
    if y.dtype.kind == "f":
        _check_finite(y, name)
    if len(values) != 2:
        found = ", ".join(map(str, values[:5].tolist())) + (", ..." if len(values) > 5 else "")
        raise ValueError(f"{name} must hold two different labels, got {len(values)}: {found or 'none'}.")
    return np.where(y == values[1], 1, -1).astype(dtype)


def _check_finite(array: Array, name: str) -> None:
    bad = ~np.isfinite(array)
    if bad.any():
        where = tuple(map(int, np.argwhere(bad)[0]))
        raise ValueError(f"{name} must be finite, got {array[where]} at index {where} ({bad.sum()} such entries).")
