"""Projected gradient descent: the paper's own algorithm (Eq. 25)."""

import pytensor.tensor as pt
from pytensor.graph.replace import graph_replace

from symsvm._lib.validation import choice, number
from symsvm.compiler.functions import value_and_grad
from symsvm.objectives.projections import P, Pi
from symsvm.solvers.solver_info import SolverInfo

__all__ = ["ProjectedGradient"]


class ProjectedGradient:
    """Step against the gradient, then back onto the feasible set (Eq. 25).

        lam' = lam - alpha grad W(lam) + beta lam
        lam  = projection(lam')

    Parameters
    ----------
    alpha : the step size. Below 2 / (largest eigenvalue of the Hessian) no exact step raises W; above it there is no
        such promise. None finds it: a step that W does not reward as its gradient promised is taken back and halved,
        after any other the next is longer.
    beta : multiplies lam itself; it is in the author's program, but it is no momentum and shifts the fixed point.
    projection : "exact" projects onto the feasible set. "paper" applies P and then Pi (Eq. 26), which is not the
        projection onto the intersection of both sets: it neither ends feasible nor at the minimum.
    """

    info = SolverInfo(
        name="projected-gradient",
        problems=("dual", "smooth"),
        backends=("numba", "jax"),
        equation="lam <- project(lam - alpha grad W(lam))",
        reference="Eq. 25; Bertsekas, Nonlinear Programming (1999)",
        accuracy="a KKT violation of tol; steps in proportion to the condition of K",
    )

    def __init__(self, alpha=None, *, beta=0.0, projection="exact"):
        self.alpha = None if alpha is None else number(alpha, "alpha", positive=True)
        self.beta = number(beta, "beta")
        self.projection = choice(projection, "projection", ("exact", "paper"))
        if self.alpha is None and (self.beta or self.projection == "paper"):
            raise ValueError("alpha=None measures its steps against W: it needs beta=0 and projection='exact'.")

    @property
    def structure(self):
        """What its graphs depend on; the numbers are in the state."""
        return type(self), self.alpha is None, self.projection

    def start(self):
        """Return the numbers of the state: the step size and beta."""
        return (1.0 if self.alpha is None else self.alpha, self.beta)

    def init(self, objective, lam):
        """The graphs of the vectors of the state, lam alone: feasible, unless the paper's projection leaves it."""
        return (objective.project(lam) if self.projection == "exact" else lam,)

    def step(self, objective, lam, alpha, beta):
        """The graphs of the next (lam, alpha, beta), and of W and its gradient at the present lam (Eq. 25, 26)."""
        W, g = value_and_grad(objective.value, lam)
        new = self._project(objective, lam - alpha * g + beta * lam).astype(lam.dtype)
        if self.alpha is None:
            # With h the step, W(lam + h) <= W + g.h + |h|^2 / (2 alpha) holds for every alpha up to 1 / Lipschitz.
            h = new - lam
            promised = (g * h).sum() + (h * h).sum() / (2 * alpha)
            # What rounding does to W must not count as a broken promise.
            rounding = 16 * _EPS[lam.dtype] * pt.abs(W)
            kept = graph_replace(W, {lam: new}) - W <= promised + rounding
            new = pt.switch(kept, new, lam)
            alpha = pt.switch(kept, 1.25 * alpha, 0.5 * alpha).astype(lam.dtype)
        return (new, alpha, beta), W, g

    def _project(self, objective, v):
        if self.projection == "exact":
            return objective.project(v)
        if objective.equality is not None:
            v = P(v, *objective.equality)
        return Pi(v, objective.upper, objective.lower)

    def __repr__(self):
        return f"ProjectedGradient(alpha={self.alpha}, beta={self.beta}, projection={self.projection!r})"


_EPS = {"float64": 2.0**-52, "float32": 2.0**-23}
