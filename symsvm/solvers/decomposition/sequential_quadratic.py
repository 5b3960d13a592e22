"""Sequential quadratic programming: the separable term replaced by its second-order model, solved by `decompose`.

At a feasible z the model is the quadratic program with D + phi'' for D and p + phi' - phi'' z for p. Its solution gives
a direction; K z is linear along it, so a line search on the objective costs no product with K. Where phi' is infinite
at a bound, the model's bound leaves a part of the distance to it. This needs no strict convexity.
"""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

import numpy as np

from symsvm.solvers.decomposition.algorithm import decompose
from symsvm.solvers.decomposition.working_set import WorkingSetReuse

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.objectives.separable_program import SeparableProgram
    from symsvm.solvers.decomposition.newton_equations import KernelProducts
    from symsvm.solvers.decomposition.parameters import Parameters

__all__ = ["SequentialQuadratic"]

# The part of the distance to a bound with an infinite gradient that a step leaves, and that of the first point.
_LEFT, _FIRST = 0.05, 0.01
# The part of the violation that the solution of a model may leave.
_MODEL_PART = 0.1
# A step is accepted where the slope along it is at most the first of what it was; shorter ones where it is the second.
_SLOPE, _ROOT_SLOPE, _TRIALS = 0.5, 0.3, 60


class SequentialQuadratic:
    """The state of sequential quadratic programming; the attributes are those of `ConjugateNewton`."""

    def __init__(
        self, program: SeparableProgram, products: KernelProducts, parameters: Parameters, seed: int, start: Array
    ):
        self.program, self.products, self._parameters, self._seed = program, products, parameters, seed
        self._reuse, self.has_progressed = WorkingSetReuse(), True
        qp = program.quadratic
        with np.errstate(all="ignore"):
            self._open_lower = ~np.isfinite(program.phi.gradient(qp.lower)) & np.isfinite(qp.lower)
            self._open_upper = ~np.isfinite(program.phi.gradient(qp.upper)) & np.isfinite(qp.upper)
        self.z = self._inside(start)
        self.confirm()

    def _inside(self, z: Array) -> Array:
        """The point itself, or one with a distance to the bounds where the gradient is infinite."""
        qp = self.program.quadratic
        width = np.where(np.isfinite(qp.upper - qp.lower), qp.upper - qp.lower, 1.0)
        low = np.where(self._open_lower & (z <= qp.lower), qp.lower + _FIRST * width, qp.lower)
        high = np.where(self._open_upper & (z >= qp.upper), qp.upper - _FIRST * width, qp.upper)
        moved = np.clip(z, low, high)
        if (moved == z).all():
            return z
        room = np.where(moved > qp.lower, moved - qp.lower, 0.0), np.where(moved < qp.upper, qp.upper - moved, 0.0)
        moved = self.program.restore_totals(moved, np.minimum(np.minimum(*room), width))
        return moved if qp.infeasibility(moved) <= qp.rounding_error(moved) else z

    def confirm(self) -> None:
        """Compute K z in float64 from the data."""
        self.Kz, self.is_exact = self.products.exact(self.program.quadratic.weights(self.z)), True

    def raise_precision(self) -> bool:
        """Return False: each model is solved in the precision that it needs."""
        return False

    def advance(self, tol: float, violation: float, deadline: float) -> bool:
        """Solve the model at z and take a step towards its solution; return False if there is none."""
        qp, program, z, Kz = self.program.quadratic, self.program, self.z, self.Kz
        phi = {name: program.phi.evaluate(name, z, qp.lower, qp.upper) for name in ("gradient", "curvature")}
        lower = np.where(self._open_lower & (z > qp.lower), z - (1 - _LEFT) * (z - qp.lower), qp.lower)
        upper = np.where(self._open_upper & (z < qp.upper), z + (1 - _LEFT) * (qp.upper - z), qp.upper)
        bounds = {"lower": np.minimum(lower, z), "upper": np.maximum(upper, z)}
        terms = {"p": qp.p + phi["gradient"] - phi["curvature"] * z, "diagonal": qp.diagonal + phi["curvature"]}
        model = dataclasses.replace(qp, **bounds, **terms)
        left = None if np.isinf(deadline) else max(0.0, deadline - time.perf_counter())
        part = _MODEL_PART * min(tol, violation) if violation <= tol else max(tol / 2, _MODEL_PART * violation)
        options = {"seed": self._seed, "parameters": self._parameters, "reuse": self._reuse}
        result = decompose(model, self.products.matrix, tol=part, start=z, time_limit=left, **options)
        if result.stopped == "interrupt":
            raise KeyboardInterrupt
        d, Kd = result.z - z, result.Kz - Kz
        step = self._search(d, Kd)
        if step is None:
            return False
        self.z = np.clip(result.z if step == 1.0 else z + step * d, qp.lower, qp.upper)
        self.Kz = result.Kz if step == 1.0 else Kz + step * Kd
        self.is_exact = False
        return True

    def _search(self, d: Array, Kd: Array) -> float | None:
        """The length of a step along d, by the slope of the objective; None if it does not fall."""

        qp = self.program.quadratic
        F = self.program.gradient(self.Kz, self.z)
        b, _ = qp.multipliers(F, self.z)
        shift = b[qp.group] if len(b) else 0.0  # d sums to 0, up to rounding that b would enlarge

        def slope(length: float) -> float:
            return float(d @ (self.program.gradient(self.Kz + length * Kd, self.z + length * d) + shift))

        first = slope(0.0)
        sizes = float(np.abs(d) @ (np.abs(self.Kz[qp.point]) + np.abs(F) + np.abs(shift)))
        rounding = 8 * np.finfo("float64").eps * sizes
        self.has_progressed = -first > rounding
        if not d.any() or first > rounding:
            return None
        low, high, length = 0.0, 1.0, 1.0
        for trial in range(_TRIALS):
            found = slope(length)
            goal = _SLOPE if trial == 0 else _ROOT_SLOPE
            if found <= goal * abs(first) + rounding and (trial == 0 or abs(found) <= goal * abs(first) + rounding):
                return length
            low, high = (length, high) if found <= 0 else (low, length)
            length = (low + high) / 2
        return low or None
