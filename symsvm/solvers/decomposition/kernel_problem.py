"""KernelProblem: what `Decomposition` solves, a `QuadraticProgram` over a `KernelMatrix`, in variables z = f v."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.compiler.lifting import MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from symsvm._lib.types import Array
    from symsvm.evaluation.kernel_matrix import KernelMatrix
    from symsvm.objectives import Certificate, QuadraticProgram
    from symsvm.objectives.separable import SeparableTerm
    from symsvm.objectives.separable_program import SeparableProgram

__all__ = ["KernelProblem", "VariableChange"]


@dataclass(frozen=True)
class VariableChange:
    """The variables z of a program and the variable v of an objective: z = f v.

    Attributes
    ----------
    factor : array or float
        f, for each entry of v.
    order : array of int or None
        The entry of v that each z belongs to; None where z has the order of v.
    violation : float
        A KKT violation in v is at most this times that in z: |f_i / a_i|, or max |f_i| without an equality.
    multiplier : array
        For each equality b of a.v = total, divided by that of the sum of z.
    decision : float
        The decision function of v divided by (K z) + b of z.
    is_split : bool
        Whether z consists of the positive parts of f v, and then of the negative ones.
    """

    factor: Any = 1.0
    order: Any = None
    violation: float = 1.0
    multiplier: Any = 1.0
    decision: float = 1.0
    is_split: bool = False

    def to_variable(self, z: Array) -> Array:
        """Return v."""
        if self.is_split:
            z = z[: len(z) // 2] + z[len(z) // 2 :]
        if self.order is not None:
            placed = np.empty_like(z)
            placed[self.order] = z
            z = placed
        return z / self.factor

    def to_program(self, v: Array) -> Array:
        """Return z."""
        z = v * self.factor
        z = z if self.order is None else z[self.order]
        return np.concatenate([np.maximum(z, 0.0), np.minimum(z, 0.0)]) if self.is_split else z

    def certificate(
        self,
        program: QuadraticProgram | SeparableProgram,
        Kz: Array,
        z: Array,
        *,
        tol: float,
        is_convex: bool | None,
    ) -> Certificate:
        """Return the certificate of z in the units of v."""
        bounds: Any = getattr(program, "quadratic", program)
        found = program.certificate(Kz, z, tol=tol / self.violation, is_psd=is_convex)
        if self.violation == 1 and np.all(self.multiplier == 1):
            return found
        violation = self.violation * found.violation
        if not len(bounds.total):  # the largest |dW/dv_i|, each with its own factor
            f = self.factor if self.order is None else self.factor[self.order]
            g = np.abs(np.resize(f, len(z))) * program.gradient(Kz, z)
            rising, falling = np.where(z < bounds.upper, -g, 0.0), np.where(z > bounds.lower, g, 0.0)
            violation = max(0.0, float(rising.max()), float(falling.max()))
        status = found.status
        if status == "feasible" and violation <= tol:
            status = "optimal" if is_convex else "stationary"
        b: Any = None
        if found.b is not None:
            b = self.multiplier * np.atleast_1d(found.b)
            b = b if len(b) > 1 else float(b[0])
        outside = found.infeasibility / float(np.min(np.abs(self.multiplier), initial=1.0))
        return replace(found, violation=float(violation), b=b, status=status, tol=tol, infeasibility=outside)


@dataclass(frozen=True)
class KernelProblem:
    """A problem that `Decomposition` solves: a program, the matrix between its points, and a change of variables.

    Attributes
    ----------
    program : QuadraticProgram
        The problem in z.
    matrix : KernelMatrix
        K.
    change : VariableChange
        z and the variable of the objective.
    smooth : SeparableTerm or None
        Further functions of z.
    is_convex : bool or None
        Whether the problem is known to be convex.
    is_proven : bool
        Whether the expression of W proves it.
    expand : callable or None
        The function of (rows, coefficients of the points) that returns sum_j H(r, r_j) beta_j for other rows r; None
        where H is given as a whole.
    memory : int
        Bytes that K may take where a solver stores it.
    """

    program: QuadraticProgram
    matrix: KernelMatrix
    change: VariableChange = VariableChange()
    smooth: SeparableTerm | None = None
    is_convex: bool | None = None
    is_proven: bool = False
    expand: Callable[[tuple, Array], Array] | None = None
    memory: int = MEMORY

    def value(self, v: Array) -> float:
        """Return W(v)."""
        z = self.change.to_program(v)
        beta, Kz = self.program.weights(z), np.zeros(self.program.m)
        self.matrix.product(beta, None, np.arange(self.program.m), Kz, exact=True)
        smooth = 0.0 if self.smooth is None else float(np.sum(self.smooth.value(z)))
        return self.program.value(Kz, z) + smooth
