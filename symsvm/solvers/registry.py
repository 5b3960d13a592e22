"""The registry of solvers: who there is and who suits which problem; `compile` and `solve`, which take names."""

import difflib
import textwrap
from dataclasses import fields

from symsvm.objectives import Objective
from symsvm.solvers.decomposition.dual_program import Decomposition
from symsvm.solvers.first_order.accelerated_gradient import AcceleratedGradient
from symsvm.solvers.first_order.adagrad import AdaGrad
from symsvm.solvers.first_order.gradient_descent import GradientDescent
from symsvm.solvers.first_order.projected_gradient import ProjectedGradient
from symsvm.solvers.first_order.stochastic_subgradient import StochasticSubgradient
from symsvm.solvers.program import Program
from symsvm.solvers.qp.quadratic_programming import QuadraticProgramming
from symsvm.solvers.solver_info import PROBLEMS, SolverInfo
from symsvm.solvers.textbook.maximal_violating_pair import MaximalViolatingPair
from symsvm.solvers.textbook.perceptron import KernelPerceptron, Perceptron
from symsvm.solvers.textbook.simplified_smo import SimplifiedSMO

__all__ = ["SOLVERS", "Solvers", "chosen", "compile", "list_solvers", "solve", "suitable"]

# Every solver that has a name: the one place to add one.
SOLVERS = (
    Decomposition,
    AcceleratedGradient,
    ProjectedGradient,
    AdaGrad,
    GradientDescent,
    StochasticSubgradient,
    MaximalViolatingPair,
    SimplifiedSMO,
    QuadraticProgramming,
    Perceptron,
    KernelPerceptron,
)


# What "auto" takes for a kind of problem.
_DEFAULTS = {
    "dual": Decomposition,
    "primal": AdaGrad,
    "lagrangian": AdaGrad,
    "separation": Perceptron,
    "kernel-separation": KernelPerceptron,
    "smooth": ProjectedGradient,
}


class Solvers(tuple):
    """The cards of some solvers; prints as a table."""

    __slots__ = ()

    def __str__(self):
        names = [field.name for field in fields(SolverInfo)]
        table = [names, *([_cell(getattr(card, name)) for name in names] for card in self)]
        wrapped = [[textwrap.wrap(cell, 44) or [""] for cell in row] for row in table]
        widths = [max(len(line) for row in wrapped for line in row[k]) for k in range(len(names))]
        lines = []
        for row in wrapped:
            for k in range(max(map(len, row))):
                cells = (cell[k] if k < len(cell) else "" for cell in row)
                lines.append("  ".join(c.ljust(width) for c, width in zip(cells, widths, strict=True)).rstrip())
            lines.append("")
        return "\n".join(lines[:-1])

    __repr__ = __str__


def list_solvers(problem=None):
    """The `SolverInfo` of every solver, or of those that suit a kind of problem, such as "dual" or "primal".

    >>> [card.name for card in list_solvers("dual")][:2]
    ['decomposition', 'accelerated-gradient']
    """
    if problem is not None and problem not in PROBLEMS:
        raise ValueError(f"problem must be one of {', '.join(map(repr, PROBLEMS))}, got {problem!r}.")
    return Solvers(solver.info for solver in SOLVERS if problem is None or problem in solver.info.problems)


def suitable(problem):
    """The names of the solvers that suit a kind of problem."""
    return tuple(card.name for card in list_solvers(problem))


def chosen(solver, problem):
    """The solver that is meant by a name, by itself or by "auto", if it suits the problem."""
    if isinstance(solver, str) and solver == "auto":
        return _DEFAULTS[problem]()
    if isinstance(solver, str):
        names = {each.info.name: each for each in SOLVERS}
        if solver not in names:
            near = difflib.get_close_matches(solver, names, 1, 0.0)[0]
            raise ValueError(
                f"solver must be one of {', '.join(map(repr, ('auto', *suitable(problem))))}, got {solver!r}; {near!r}?"
            )
        solver = names[solver]()
    card = getattr(solver, "info", None)
    if card is not None and problem not in card.problems:
        raise ValueError(
            f"{card.name!r} is for {' and '.join(card.problems)} problems, and this is {PROBLEMS[problem]}: "
            f"use {' or '.join(map(repr, suitable(problem)))}."
        )
    return solver


def compile(objective, solver, *, mode=None, memory=None, dtype=None):
    """Compile an objective and a solver into a `Program`.

    Free inputs of the objective's graphs (other than its variable) become arguments of `Program.run`, by name. Shared
    variables are read when a run begins, numbers are inputs of what is compiled: objectives of the same structure share
    one compilation, whatever C, sigma, the data and their number are.

    Parameters
    ----------
    objective : an `Objective`.
    solver : a solver such as `ProjectedGradient()`, or a name: "auto" or one of `list_solvers()`.
    mode : the backend, "NUMBA" (default), "JAX" or another PyTensor mode.
    memory : bytes that arrays beside the data may take, 1 GiB by default. A Gram matrix that fits is computed once a
        run, another one a tile at a time in each step.
    dtype : "float32" or "float64" to compute in; by default that of the objective. Certificates are in float64.
    """
    if not isinstance(objective, Objective):
        raise TypeError(f"objective must be a symsvm Objective, got {objective!r}.")
    solver = chosen(solver, objective.problem)
    own = getattr(solver, "program", Program)  # a solver may run otherwise than by steps
    return own(objective, solver, mode=mode, memory=memory, dtype=dtype)


def solve(objective, solver="auto", *, mode=None, **run):
    """Compile an objective with a solver, or the name of one, and run it; see `Program.run` and `DualProgram.run`.

    "auto" sends quadratic duals over a kernel (`CSVC`, `KernelDual`) to `Decomposition()`, primals and Lagrangian duals
    to `AdaGrad()`, a `PerceptronRisk` to the perceptron that suits it, other objectives to `ProjectedGradient()`.
    """
    return compile(objective, solver, mode=mode).run(**run)


def _cell(value):
    return value if isinstance(value, str) else ", ".join(value)
