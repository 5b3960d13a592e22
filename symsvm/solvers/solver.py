"""What a solver is: the protocol `Solver`, and `SolverInfo`, which describes one for `symsvm.list_solvers()`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable

    from symsvm._lib.types import Graph
    from symsvm.objectives import Objective

__all__ = ["PROBLEMS", "Solver", "SolverInfo"]

# The kinds of problem, with what belongs to each.
PROBLEMS = {
    "dual": "a quadratic dual over a kernel: CSVC, KernelDual",
    "primal": "a primal over weights, its loss not smooth or smooth",
    "lagrangian": "a Lagrangian dual, bounds and equality relaxed",
    "separation": "two classes to separate by any hyperplane: PerceptronRisk",
    "kernel-separation": "two classes to separate over a kernel: PerceptronRisk(kernel=...)",
    "smooth": "any smooth W over a box, with linear constraints or without",
}


@dataclass(frozen=True)
class SolverInfo:
    """The description of a solver, its class attribute `info`.

    Parameters
    ----------
    name : str
        The name that `solve(objective, name)` and `SVC(solver=name)` take.
    problems : tuple of str
        The kinds of problem it solves, keys of `PROBLEMS`.
    backends : tuple of str
        The backends it runs on: "numba", "jax".
    equation : str
        One step, on one line.
    reference : str
        The authors who described it, with the year.
    accuracy : str
        The accuracy that a run reaches.
    """

    name: str
    problems: tuple[str, ...]
    backends: tuple[str, ...]
    equation: str
    reference: str
    accuracy: str

    def __post_init__(self) -> None:
        unknown = set(self.problems) - set(PROBLEMS)
        if unknown or not self.problems:
            raise ValueError(f"problems must be of {', '.join(PROBLEMS)}, got {self.problems!r}.")


class Solver(Protocol):
    """An algorithm as graphs: `init` builds the first state and `step` the next one; see `symsvm.solvers.Program`.

    The state of a run is lam, then further vectors with the shape of lam, then numbers. A class need not derive from
    `Solver`; deriving gives its methods their documentation. It may define more, all optional:

    - `info`, a `SolverInfo`: `compile` then refuses problems that it does not list.
    - `max_iter`: the limit on the steps of a run, 1000 by default.
    - `backtracks = True`: a step to a point where W is not finite is left to the solver, which takes it back.
    - `carries_gradient = True`: the state holds a gradient that is updated, so the certificate is computed anew.
    - `by_rows = True`: it uses `objective.row`, the graph of one row of the Hessian.
    - `is_finished(*state)`: whether the solver's own rule ends the run (`Solution.stopped` is then "rest").
    - `program(objective, solver, **options)`: returns what `compile` returns; `start`, `init` and `step` are then not
      needed.
    """

    def __init__(self) -> None:
        """Create a solver without parameters."""

    @property
    def structure(self) -> Hashable:
        """What the graphs depend on; solvers with equal `structure` share one compilation."""
        ...

    def start(self) -> tuple[float, ...]:
        """Return the first values of the numbers in the state.

        Returns
        -------
        tuple of float
            The values.
        """
        ...

    def init(self, objective: Objective, lam: Graph) -> tuple[Graph, ...]:
        """Return the graphs of the vectors in the first state.

        Parameters
        ----------
        objective : Objective
            The problem.
        lam : TensorVariable
            The point that the run starts from.

        Returns
        -------
        tuple of TensorVariable
            The first lam and the other vectors.
        """
        ...

    def step(self, objective: Objective, *state: Any, **_: Any) -> tuple[tuple[Graph, ...], Graph, Graph]:
        """Return the graphs of one step.

        Parameters
        ----------
        objective : Objective
            The problem.
        *state : TensorVariable
            The present state: lam, the other vectors, the numbers.
        **_
            None; it lets an implementation name its state.

        Returns
        -------
        state : tuple of TensorVariable
            The next state.
        W : TensorVariable
            The objective at the present lam.
        g : TensorVariable
            Its gradient, or a subgradient, at the present lam.
        """
        ...
