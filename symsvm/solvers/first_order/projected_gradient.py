"""Projected gradient descent, the algorithm of the paper (Eq. 25)."""

# pyright: reportOperatorIssue=false, reportAttributeAccessIssue=false
# (PyTensor's functions, such as pt.switch, have no return types that pyright can infer.)

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import graph_replace

from symsvm._lib.validation import choice, number
from symsvm.compiler.functions import value_and_grad
from symsvm.objectives.projections import P, Pi
from symsvm.solvers.solver import Solver, SolverInfo

if TYPE_CHECKING:
    from collections.abc import Hashable

    from symsvm._lib.types import Graph
    from symsvm.objectives import Objective

__all__ = ["ProjectedGradient"]


class ProjectedGradient(Solver):
    """Step against the gradient, then project onto the feasible set (Eq. 25).

    ::

        lam' = lam - alpha grad W(lam) + beta lam
        lam  = projection(lam')

    Parameters
    ----------
    alpha : float, optional
        The step size. Below 2 / (largest eigenvalue of the Hessian) no exact step raises W. None finds it: a step that
        lowers W by less than the descent condition asks for is taken back and halved; after any other the next step
        size is larger.
    beta : float
        Multiplies lam itself. It is in the author's program, but it is not a momentum, and it shifts the fixed point.
    projection : {"exact", "paper"}
        With "exact", project onto the feasible set. With "paper", apply P and then Pi (Eq. 26), which is not the
        projection onto the intersection of both sets: the run ends neither feasible nor at the minimum.
    """

    info = SolverInfo(
        name="projected-gradient",
        problems=("dual", "smooth"),
        backends=("numba", "jax"),
        equation="lam <- project(lam - alpha grad W(lam))",
        reference="Eq. 25; Bertsekas, Nonlinear Programming (1999)",
        accuracy="a KKT violation of tol; steps in proportion to the condition of K",
    )

    def __init__(
        self, alpha: float | None = None, *, beta: float = 0.0, projection: Literal["exact", "paper"] = "exact"
    ) -> None:
        self.alpha = None if alpha is None else number(alpha, "alpha", positive=True)
        self.beta = number(beta, "beta")
        self.projection = choice(projection, "projection", ("exact", "paper"))
        if self.alpha is None and (self.beta or self.projection == "paper"):
            raise ValueError(
                "alpha=None finds the step size from W and needs beta=0 and projection='exact': set both or give alpha."
            )

    @property
    def structure(self) -> Hashable:
        return type(self), self.alpha is None, self.projection

    # The state: lam; the step size; beta.
    def start(self) -> tuple[float, ...]:
        return (1.0 if self.alpha is None else self.alpha, self.beta)

    def init(self, objective: Objective, lam: Graph) -> tuple[Graph, ...]:
        return (objective.project(lam) if self.projection == "exact" else lam,)

    def step(self, objective: Objective, lam: Graph, alpha: Graph, beta: Graph) -> Any:
        """Return the graphs of one step (Eq. 25, 26).

        Parameters
        ----------
        objective : Objective
            The problem.
        lam, alpha, beta : TensorVariable
            The present state.

        Returns
        -------
        tuple
            The next state, and W and its gradient at the present lam.
        """
        W, g = value_and_grad(objective.value, lam)
        new = self._project(objective, lam - alpha * g + beta * lam).astype(lam.dtype)
        if self.alpha is None:
            # With h the step, W(lam + h) <= W + g.h + |h|^2 / (2 alpha) holds for every alpha up to 1 / Lipschitz.
            h = new - lam
            bound = (g * h).sum() + (h * h).sum() / (2 * alpha)
            # The rounding of W must not count as a violation.
            rounding = 16 * float(np.finfo(lam.dtype).eps) * pt.abs(W)
            accepted = graph_replace(W, {lam: new}) - W <= bound + rounding
            new = pt.switch(accepted, new, lam)
            alpha = pt.switch(accepted, 1.25 * alpha, 0.5 * alpha).astype(lam.dtype)
        return (new, alpha, beta), W, g

    def _project(self, objective: Objective, v: Graph) -> Graph:
        if self.projection == "exact":
            return objective.project(v)
        if objective.has_shared_constraints:
            raise ValueError(
                "projection='paper' is for one equality (Eq. 26), and this objective has inequalities, or equalities "
                "that share variables: use projection='exact'."
            )
        if objective.equality is not None:
            v = P(v, *objective.equality)
        return Pi(v, objective.upper, objective.lower)

    def __repr__(self):
        return f"ProjectedGradient(alpha={self.alpha}, beta={self.beta}, projection={self.projection!r})"
