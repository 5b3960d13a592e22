"""Methods that change all of an object or nothing of it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["all_or_nothing"]

_Object = TypeVar("_Object")
_Arguments = ParamSpec("_Arguments")


def all_or_nothing(
    method: Callable[Concatenate[_Object, _Arguments], object],
) -> Callable[Concatenate[_Object, _Arguments], _Object]:
    """Make a method that sets attributes, such as `fit`, set all of them or none; it returns its object.

    The method runs on a second object with the same attributes. When it has returned, what it set and deleted is set
    and deleted in the first one, in one assignment. Until then that one is as it was: for an error, for a
    KeyboardInterrupt at any point, and for another thread that reads it. The method must not write into the arrays and
    objects that the attributes hold: it replaces them.

    >>> class Model:
    ...     @all_or_nothing
    ...     def fit(self, x):
    ...         self.x_ = x
    ...         self.inverse_ = 1 / x
    >>> model = Model().fit(2.0)
    >>> model.fit(0.0)
    Traceback (most recent call last):
    ZeroDivisionError: float division by zero
    >>> model.x_
    2.0
    """

    @functools.wraps(method)
    def change(self: _Object, /, *args: _Arguments.args, **options: _Arguments.kwargs) -> _Object:
        before = dict(vars(self))
        other = object.__new__(type(self))
        vars(other).update(before)
        method(other, *args, **options)
        after = vars(other)
        changed = {name: value for name, value in after.items() if name not in before or value is not before[name]}
        deleted = before.keys() - after.keys()
        # Not `after` itself: a callback may have changed other attributes of the object in the meantime.
        self.__dict__ = {name: value for name, value in vars(self).items() if name not in deleted} | changed
        return self

    return change
