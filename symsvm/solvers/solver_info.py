"""SolverInfo: what a solver says of itself, for `symsvm.list_solvers()`."""

from dataclasses import dataclass

__all__ = ["PROBLEMS", "SolverInfo"]

# The kinds of problem, with what belongs to each.
PROBLEMS = {
    "dual": "a quadratic dual over a kernel: CSVC, KernelDual",
    "primal": "a primal over weights, its loss not smooth or smooth",
    "lagrangian": "a Lagrangian dual, bounds and equality relaxed",
    "separation": "two classes to separate by any hyperplane: PerceptronRisk",
    "kernel-separation": "two classes to separate over a kernel: PerceptronRisk(kernel=...)",
    "smooth": "any smooth W over a box, with an equality or without",
}


@dataclass(frozen=True)
class SolverInfo:
    """The class attribute `info` of a solver.

    Attributes
    ----------
    name : how `solve(objective, name)` and `SVC(solver=name)` call it.
    problems : the kinds of problem it takes, of `PROBLEMS`.
    backends : the backends it runs on, of "numba" and "jax".
    equation : one step, on one line.
    reference : who described it.
    accuracy : what a run states to reach.
    """

    name: str
    problems: tuple[str, ...]
    backends: tuple[str, ...]
    equation: str
    reference: str
    accuracy: str

    def __post_init__(self):
        unknown = set(self.problems) - set(PROBLEMS)
        if unknown or not self.problems:
            raise ValueError(f"problems must be of {', '.join(PROBLEMS)}, got {self.problems!r}.")
