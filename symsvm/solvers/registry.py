"""The registry of solvers: `list_solvers`, and `compile` and `solve`, which take a solver or its name."""

from __future__ import annotations

import difflib
import textwrap
from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

from symsvm.compiler.functions import resolve_mode
from symsvm.compiler.reading import is_readable
from symsvm.objectives import Objective
from symsvm.solvers.decomposition.dual_program import Decomposition, DualProgram
from symsvm.solvers.first_order.accelerated_gradient import AcceleratedGradient
from symsvm.solvers.first_order.adagrad import AdaGrad
from symsvm.solvers.first_order.gradient_descent import GradientDescent
from symsvm.solvers.first_order.projected_gradient import ProjectedGradient
from symsvm.solvers.first_order.stochastic_subgradient import StochasticSubgradient
from symsvm.solvers.program import Program
from symsvm.solvers.qp.quadratic_programming import QuadraticProgramming
from symsvm.solvers.solver import PROBLEMS, SolverInfo
from symsvm.solvers.textbook.maximal_violating_pair import MaximalViolatingPair
from symsvm.solvers.textbook.perceptron import KernelPerceptron, Perceptron
from symsvm.solvers.textbook.simplified_smo import SimplifiedSMO

if TYPE_CHECKING:
    from symsvm.solvers.qp.quadratic_programming import PrimalQP
    from symsvm.solvers.solution import Solution

__all__ = ["SOLVERS", "SolverTable", "choose_solver", "compile", "list_solvers", "solve", "suitable_names"]

# Every solver that has a name. A new solver is added here and nowhere else.
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

# The solver that "auto" stands for, by the kind of problem.
_DEFAULTS = {
    "dual": Decomposition,
    "primal": AdaGrad,
    "lagrangian": AdaGrad,
    "separation": Perceptron,
    "kernel-separation": KernelPerceptron,
    "smooth": AcceleratedGradient,
}


class SolverTable(tuple[SolverInfo, ...]):
    """A tuple of `SolverInfo` that prints as a table."""

    __slots__ = ()

    def __str__(self) -> str:
        names = [field.name for field in fields(SolverInfo)]
        table = [names, *([_cell(getattr(info, name)) for name in names] for info in self)]
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


def list_solvers(problem: str | None = None) -> SolverTable:
    """Return the `SolverInfo` of every solver; printed, they are a table.

    Parameters
    ----------
    problem : str, optional
        A kind of problem, such as "dual" or "primal", to list only the solvers for it.

    Returns
    -------
    SolverTable
        The descriptions, in the order of preference.

    Examples
    --------
    >>> [info.name for info in list_solvers("dual")][:2]
    ['decomposition', 'accelerated-gradient']
    """
    if problem is not None and problem not in PROBLEMS:
        raise ValueError(f"problem must be one of {', '.join(map(repr, PROBLEMS))}, got {problem!r}.")
    return SolverTable(solver.info for solver in SOLVERS if problem is None or problem in solver.info.problems)


def suitable_names(problem: str) -> tuple[str, ...]:
    """Return the names of the solvers for a kind of problem."""
    return tuple(info.name for info in list_solvers(problem))


def choose_solver(solver: Any, problem: str) -> Any:
    """Return the solver given as an object, by name or as "auto"; raise if it does not solve this kind of problem."""
    if isinstance(solver, str) and solver == "auto":
        return _DEFAULTS[problem]()
    if isinstance(solver, str):
        classes = {each.info.name: each for each in SOLVERS}
        if solver not in classes:
            near = difflib.get_close_matches(solver, classes, 1, 0.0)[0]
            names = ", ".join(map(repr, ("auto", *suitable_names(problem))))
            raise ValueError(f"solver must be one of {names}, got {solver!r}; did you mean {near!r}?")
        solver = classes[solver]()
    if isinstance(solver, type):
        raise TypeError(f"solver must be a solver, not its class: write {solver.__name__}().")
    if not any(hasattr(solver, name) for name in ("program", "init", "step", "structure")):
        raise TypeError(f"solver must be the name of a solver, or a solver such as Decomposition(), got {solver!r}.")
    info: SolverInfo | None = getattr(solver, "info", None)
    if info is not None and problem not in info.problems:
        raise ValueError(
            f"{info.name!r} is for {' and '.join(info.problems)} problems, and this is {PROBLEMS[problem]}: "
            f"use {' or '.join(map(repr, suitable_names(problem)))}."
        )
    return solver


def compile(
    objective: Objective,
    solver: Any,
    *,
    mode: Any = None,
    memory: int | None = None,
    dtype: str | None = None,
    mesh: Any = None,
) -> Program | DualProgram | PrimalQP:
    """Compile an objective and a solver into a `Program`.

    Free inputs of the objective's graphs (other than its variable) become arguments of `Program.run`, by name. A run
    reads shared variables when it begins. Numbers are inputs of the compiled functions: objectives of the same
    structure share one compilation, whatever C, sigma, the data and their number are.

    Parameters
    ----------
    objective : Objective
        The problem.
    solver : Solver or str
        A solver such as `ProjectedGradient()`, or a name: "auto" or one of `list_solvers()`.
    mode : str or Mode, optional
        The backend: "NUMBA" (default), "JAX" or another PyTensor mode.
    memory : int, optional
        The bytes that arrays beside the data may take, 1 GiB by default. A Gram matrix that fits is computed once for
        each run, a larger one in tiles in each step.
    dtype : {"float32", "float64"}, optional
        The type to compute in, by default that of the objective. Certificates are in float64.
    mesh : jax.sharding.Mesh, optional
        The devices to spread the kernel matrix over, by rows, for mode "JAX" and a solver of steps; "auto" is then
        'accelerated-gradient'.

    Returns
    -------
    Program
        The compiled program; a solver that does not consist of steps has a program of its own with the same `run`.
    """
    if not isinstance(objective, Objective):
        raise TypeError(f"objective must be a symsvm Objective, got {objective!r}.")
    if mesh is not None:
        mode = resolve_mode(mode, mesh)
        spreads = objective.problem in AcceleratedGradient.info.problems
        solver = AcceleratedGradient() if spreads and isinstance(solver, str) and solver == "auto" else solver
    if isinstance(solver, str) and solver == "auto" and objective.problem == "smooth":
        solver = Decomposition() if objective.is_grouped is not False and is_readable(objective) else solver
    solver = choose_solver(solver, objective.problem)
    make = getattr(solver, "program", Program)
    if mesh is not None and (hasattr(solver, "program") or getattr(solver, "by_rows", False)):
        raise ValueError(
            f"mesh is for solvers whose steps multiply by a kernel matrix: {solver!r} is none of them, "
            "use 'accelerated-gradient'."
        )
    return cast("Program", make(objective, solver, mode=mode, memory=memory, dtype=dtype))


def solve(
    objective: Objective,
    solver: Any = "auto",
    *,
    mode: Any = None,
    memory: int | None = None,
    dtype: str | None = None,
    mesh: Any = None,
    **run: Any,
) -> Solution:
    """Compile an objective with a solver, or the name of one, and run it.

    "auto" takes `Decomposition()` for every W that is a sum over pairs and points (`CSVC`, `KernelDual`, and any W that
    `symsvm.compiler.reading.read` reads), `AdaGrad()` for primals and Lagrangian duals, the perceptron that suits a
    `PerceptronRisk`, and `AcceleratedGradient()` for other objectives.

    Parameters
    ----------
    objective : Objective
        The problem.
    solver : Solver or str
        A solver, or a name: "auto" or one of `list_solvers()`.
    mode : str or Mode, optional
        The backend: "NUMBA" (default), "JAX" or another PyTensor mode.
    memory, dtype, mesh : optional
        See `compile`.
    **run : object
        The arguments of the run; see `Program.run`.

    Returns
    -------
    Solution
        The last point, with its certificate.
    """
    return compile(objective, solver, mode=mode, memory=memory, dtype=dtype, mesh=mesh).run(**run)


def _cell(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) else ", ".join(value)
