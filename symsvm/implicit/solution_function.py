"""SolutionFunction: the solution of an objective and its gradient as functions of arrays, for other libraries."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.gradient import DisconnectedType

from symsvm.compiler.functions import COMPILING, function
from symsvm.implicit.argmin import Argmin, check_objective

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from symsvm._lib.types import Array
    from symsvm.objectives import Objective

__all__ = ["SolutionFunction"]


class SolutionFunction:
    """The solution of an objective, in numbers, and how a loss of it depends on the inputs.

    Parameters
    ----------
    objective : Objective
        Any W that `argmin` takes. Shared variables in it are numbers; its free inputs are what a call gives.
    mode : str or Mode, optional
        The backend of the gradient, "NUMBA" by default.
    **options : object
        tol, max_iter, time_limit and warm_start of `argmin`.

    Attributes
    ----------
    names : list of str
        The free inputs, in the order of `solve` and `gradient`.

    Examples
    --------
    >>> from symsvm.objectives.machine_duals import c_svc_dual
    >>> from symsvm.kernels import RBF
    >>> solution = SolutionFunction(c_svc_dual(RBF(pt.dscalar("sigma"))), mode="FAST_COMPILE")
    >>> sorted(solution.names)
    ['C', 'X', 'sigma', 'y']
    """

    def __init__(self, objective: Objective, *, mode: Any = None, **options: Any):
        inputs, limits, warm_start = check_objective(objective, **options)
        self.op, self._mode = Argmin(objective, inputs, {}, limits, warm_start=warm_start), mode
        self._given = [x if isinstance(x, SharedVariable) else None for x in inputs]
        self.names = [x.name for x in inputs if not isinstance(x, SharedVariable)]
        equality: Any = objective.equality
        self.has_scalar_b = equality is None or equality[0].ndim == 1

    def arrays(self, given: Mapping[str, Any]) -> list[Any]:
        """Return the arrays of a call in the order of `names`.

        Parameters
        ----------
        given : mapping
            The arrays by name.

        Returns
        -------
        list of array
            The arrays.
        """
        missing, unknown = set(self.names) - set(given), set(given) - set(self.names)
        if missing or unknown:
            found = f"{min(missing)!r} is missing" if missing else f"there is no input {min(unknown)!r}"
            raise TypeError(f"{found}: the inputs of the objective are {', '.join(sorted(self.names))}.")
        return [given[name] for name in self.names]

    def lengths(self, shapes: Sequence[tuple[int, ...]]) -> list[int]:
        """Return the lengths of v, b and F for inputs of these shapes."""
        rest = iter(shapes)
        return self.op.count([next(rest) if x is None else np.shape(x.get_value(borrow=True)) for x in self._given])

    def solve(self, *arrays: Any) -> tuple[Array, Array, Array]:
        """Return v, b and F: the solution, the multipliers, and the gradient of the program there."""
        return self.op.solve(*self._values(arrays))

    def gradient(self, *arrays: Any) -> list[Array]:
        """Return the gradients by all free inputs, from their values and v, b, F and the gradients by v and b."""
        *inputs, v, b, F, gv, gb = arrays
        given = [np.asarray(x, dtype="float64") for x in (v, b, F, gv, gb)]
        return self._compiled(*self._values(inputs), *given)

    def _values(self, arrays: Sequence[Any]) -> list[Array]:
        rest = iter(arrays)
        values = [next(rest) if x is None else x.get_value(borrow=True) for x in self._given]
        return [np.asarray(x, dtype=v.dtype) for x, v in zip(values, self.op.inputs, strict=True)]

    @functools.cached_property
    def _compiled(self) -> Any:
        with COMPILING:
            inputs = [x.type() for x in self.op.inputs]
            outputs = [pt.dvector(name) for name in ("v", "b", "F")]
            cotangents = [pt.dvector("gv"), pt.dvector("gb")]
            gradients = self.op.pullback(inputs, outputs, [*cotangents, DisconnectedType()()])
            free = [g for g, x in zip(gradients, self._given, strict=True) if x is None]
            return function([*inputs, *outputs, *cotangents], free, mode=self._mode)
