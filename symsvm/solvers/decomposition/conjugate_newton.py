"""Newton's method on the primal of a program with a strictly convex separable term.

With z(f) = argmin_v h_i(v) + v f_i between the bounds, and f = K beta + b, the primal

    P(beta, b) = 1/2 beta.K beta - sum_i min_v (h_i(v) + v f_i) + b.total

is smooth, its gradient is K (beta - z), and there are no constraints. Newton's step x solves, with E = h''(z),

    (K + E) x + B mu = E (z - beta)    where z is between the bounds,    x = z - beta    where it is at one.

For the logistic loss this is iteratively reweighted least squares. A bound where h' is infinite is no obstacle: z(f)
stays inside. Each iterate of conjugate gradients is a direction of descent, so a line search along f is all that
convergence needs. At the solution beta = z.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from symsvm.solvers.decomposition.newton_equations import NewtonEquations

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.objectives.separable_program import SeparableProgram
    from symsvm.solvers.decomposition.newton_equations import KernelProducts
    from symsvm.solvers.decomposition.parameters import Parameters

__all__ = ["ConjugateNewton"]

# A step is accepted where the slope of P along it has not grown to more than this part of what it was, upwards.
_SLOPE = 0.5
# Trials of a line search, and the limits of what each leaves of a step.
_TRIALS, _SHORTER, _LONGER = 40, 0.1, 0.5
# The part of a residual to leave, at least, and the factors by which it changes.
_LEAST_FORCING, _STRICTER, _LOOSER = 1e-8, 0.1, 3.0
# A residual is outlying from so many times the median on; S_i K_ii of variables that others hardly move.
_OUTLYING, _PINNED = 10.0, 0.1
# The part of tol that residuals may leave.
_AIM = 0.3


class ConjugateNewton:
    """The state of Newton's method on the primal.

    Attributes
    ----------
    z, Kz : a feasible point, and K z by point: beta where it is between the bounds, else the z of f.
    is_exact : whether Kz was computed in float64 as one product.
    has_progressed : whether the last step has reduced P by more than rounding.
    """

    def __init__(
        self, program: SeparableProgram, products: KernelProducts, parameters: Parameters, seed: int, start: Array
    ):
        self.program, self.products, self._parameters = program, products, parameters
        self._equations = NewtonEquations(program.quadratic, products, parameters, seed)
        self.z, self.has_progressed, self._b = start, True, np.zeros(len(program.quadratic.total))
        self._forcing = parameters.forcing
        self.confirm()

    def confirm(self) -> None:
        """Compute K z in float64 from the data, and continue from there."""
        qp = self.program.quadratic
        self.Kz, self.is_exact = self.products.exact(qp.weights(self.z)), True
        self._beta, self._f, self._image = self.z, self.Kz, None

    def raise_precision(self) -> bool:
        """Compute products in float64 from now on; return False if that is so already."""
        if not self.products.raise_precision():
            return False
        self._f, self._image = self.products.exact(self.program.quadratic.weights(self._beta)), None
        return True

    def advance(self, tol: float, violation: float, deadline: float) -> bool:
        """Take a step; return False if there is none."""
        qp, program = self.program.quadratic, self.program
        beta, f = self._beta, self._f
        if self._image is None:
            self._image, self._b = program.balanced_minimisers(f[qp.point], self._b, beta)
        image = self._image
        S = program.slopes(image)
        x, Kx = self._first(beta, image, S)
        while True:
            x, Kx, is_positive = self._solve(x, Kx, S, tol, deadline)
            if not is_positive or not x.any():
                return False
            step = self._search(x, Kx)
            if step is not None:
                break
            if time.perf_counter() >= deadline or self._forcing <= _LEAST_FORCING:
                return False
            self._forcing *= _STRICTER  # the solution of the equations itself is a direction of descent
        # Where steps are short, more accurate ones may be longer.
        change = _STRICTER if step < 1.0 else _LOOSER
        self._forcing = min(max(change * self._forcing, _LEAST_FORCING), self._parameters.forcing)
        self._beta, self._f = beta + step * x, f + step * Kx
        if step == 1.0:
            self._beta[S == 0] = image[S == 0]
        self._choose_point()
        return True

    def _solve(self, x: Array, Kx: Array, S: Array, tol: float, deadline: float) -> tuple[Array, Array, bool]:
        """Continue the solution of Newton's equations from x."""
        if not (S > 0).any():
            return x, Kx, True
        assert self._image is not None
        E = np.divide(1.0, S, out=np.zeros_like(S), where=S > 0)
        r = np.where(S > 0, E * (self._image - self._beta - x) - Kx[self.program.quadratic.point], 0.0)
        return self._equations.solve(r, S, Kx, x, self._forcing, _AIM * tol, deadline)

    def _first(self, beta: Array, image: Array, S: Array) -> tuple[Array, Array]:
        """A first step, with the totals kept in proportion to S, and its product: of variables that others hardly move.

        These are at a bound, or so near to one that E is large; with beta off z, they would outweigh all others in r.
        """
        qp = self.program.quadratic
        d = image - beta
        r = np.divide(np.abs(d), S, out=np.zeros(qp.n), where=S > 0)
        median = float(np.median(r[S > 0])) if (S > 0).any() else 0.0
        outlying = (r > _OUTLYING * median) & (S * self._equations.size <= _PINNED)
        x = np.where((S == 0) | outlying, d, 0.0)
        if not x.any():
            return x, np.zeros(qp.m)
        groups = len(qp.total)
        if groups:
            excess, slope = np.bincount(qp.group, x, groups), np.bincount(qp.group, S, groups)
            x -= np.divide(excess, slope, out=np.zeros(groups), where=slope > 0)[qp.group] * S
        return x, self.products(qp.weights(x))

    def _search(self, x: Array, Kx: Array) -> float | None:
        """The length of a step, None if there is none; the image of its end is kept."""
        qp, program = self.program.quadratic, self.program
        beta, length = self._beta, 1.0
        assert self._image is not None
        first = float(Kx @ qp.weights(beta - self._image))
        sizes = np.abs(Kx) @ qp.weights(np.abs(beta) + np.abs(self._image))
        rounding = 8 * np.finfo("float64").eps * float(sizes)
        self.has_progressed = -first > rounding
        if first > rounding:
            return None
        for _ in range(_TRIALS):
            f = (self._f + length * Kx)[qp.point]
            image, b = program.balanced_minimisers(f, self._b, self._image)
            slope = float(Kx @ qp.weights(beta + length * x - image))
            if slope <= _SLOPE * abs(first) + rounding:
                self._image, self._b = image, b
                return length
            secant = abs(first) / (abs(first) + slope) if np.isfinite(slope) else 0.0
            length *= min(max(secant, _SHORTER), _LONGER)
        return None

    def _choose_point(self) -> None:
        """Let z be beta where it is feasible, else the image of f."""
        qp, beta, image = self.program.quadratic, self._beta, self._image
        assert image is not None
        self.is_exact = False
        if ((beta >= qp.lower) & (beta <= qp.upper)).all():
            self.z, self.Kz = self.program.restore_totals(beta, self.program.slopes(image)), self._f
        else:
            self.z, self.Kz = image, self._f + self.products(qp.weights(image - beta))
