"""Any objective with a quadratic W as a `KernelDual`: its matrix is read from the gradient.

    W(lam) = 1/2 lam.H lam + g_0.lam + W(0)    has the gradient    g(lam) = H lam + g_0

so the rows of H are g(e_i) - g(0): the graph of the gradient over a batch of unit vectors. With an equality a.lam = c
the variables are z = a lam, whose sum is c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.replace import vectorize_graph

from symsvm.compiler.functions import value_and_grad
from symsvm.kernels import Precomputed
from symsvm.objectives import KernelDual, QuadraticProgram

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.objectives import Objective

__all__ = ["DenseQuadratic"]


class DenseQuadratic:
    """A quadratic objective over a shared variable: the graphs to evaluate (`dual_inputs`), and the dual they give."""

    def __init__(self, objective: Objective, memory: int):
        variable: Any = objective.variable
        if not isinstance(variable, SharedVariable):
            raise TypeError(f"{variable} must be a shared variable, whose length is that of the matrix of W.")
        n = len(variable.get_value(borrow=True))
        if 3 * 8 * n**2 > memory:
            raise ValueError(f"memory={memory} does not hold the matrix of W for {n} variables.")
        self.objective, self._probe = objective, np.random.default_rng(0).normal(size=n)
        W, g = value_and_grad(objective.value, variable)
        points = np.concatenate([np.zeros((1, n)), np.eye(n), self._probe[None]]).astype(objective.variable.dtype)
        batch = vectorize_graph(g, {variable: pt.constant(points)})
        at_zero = vectorize_graph(W, {variable: pt.constant(points[0])})
        self.dual_inputs = [batch, at_zero, *objective.bounds]

    def dual(
        self,
        gradients: Array,
        W0: float,
        lower: Array,
        upper: Array,
        a: Array | None = None,
        c: float | Array = 0.0,
    ) -> tuple[KernelDual, Array]:
        """The same problem in z = a lam, and 1 / a."""
        g0, H = gradients[0], gradients[1:-1] - gradients[0]
        expected, found = H @ self._probe + g0, gradients[-1]
        scale = np.abs(H) @ np.abs(self._probe) + np.abs(g0)
        if not np.all(np.abs(expected - found) <= 1e-6 * (scale + scale.max())):
            name = self.objective.variable.name
            raise TypeError(
                f"this solver needs a W that is quadratic in {name}: use 'accelerated-gradient', 'projected-gradient', "
                "'adagrad' or 'gradient-descent'."
            )
        n = len(g0)
        groups, factor = np.full(n, -1), np.ones(n)
        if a is not None:
            rows = np.atleast_2d(a)
            if ((rows != 0).sum(axis=0) != 1).any():
                raise ValueError(
                    "this solver needs every variable in one equality, or none at all: use 'accelerated-gradient'."
                )
            groups, factor = np.argmax(rows != 0, axis=0), rows.sum(axis=0)
        ends = np.broadcast_to(lower, n) * factor, np.broadcast_to(upper, n) * factor
        K = (H + H.T) / 2 / np.outer(factor, factor)
        total = np.atleast_1d(c) if a is not None else np.zeros(0)
        bounds = np.minimum(*ends), np.maximum(*ends)
        program = QuadraticProgram(g0 / factor, *bounds, n, groups, total, np.zeros(n), float(W0))
        dual = KernelDual(program, Precomputed.points(n), Precomputed(K), is_convex=self.objective.is_convex)
        return dual, 1 / factor
