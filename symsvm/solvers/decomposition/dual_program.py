"""The solver `Decomposition`, its program behind `compile`, and paths over many programs."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant

from symsvm._lib.validation import choice
from symsvm.compiler.functions import function
from symsvm.compiler.lifting import MEMORY
from symsvm.compiler.reading import Reading, UnreadableError, leaves_of, read
from symsvm.compiler.reading.pair_expression import PLAIN
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.evaluation.local import LocalKernelMatrix
from symsvm.evaluation.symmetry import check_symmetric
from symsvm.graphs.structure import leaves
from symsvm.objectives import KernelDual, Objective
from symsvm.solvers.decomposition.binding import bind, program_of
from symsvm.solvers.decomposition.kernel_problem import KernelProblem
from symsvm.solvers.decomposition.parameters import DEFAULTS, Parameters
from symsvm.solvers.decomposition.solve_problem import solve_problem
from symsvm.solvers.decomposition.verification import verify
from symsvm.solvers.program import check_input_names, check_memory, input_values
from symsvm.solvers.solution import Solution
from symsvm.solvers.solver import SolverInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array
    from symsvm.objectives import QuadraticProgram
    from symsvm.solvers.solution import Info

__all__ = ["Decomposition", "DualProgram"]

_OTHERS = "Use 'accelerated-gradient', 'projected-gradient', 'adagrad' or 'gradient-descent'."


class Decomposition:
    """The fast exact solver of every W that is a sum over pairs of points and a sum over points.

    It solves::

        minimise 1/2 z.(K + D) z + p.z    subject to    lower <= z <= upper,    sum of z over group g = total_g

    Working sets of all free variables and of violators are solved by SMO in float32; the result is confirmed in
    float64. It takes any `Objective` that `symsvm.compiler.reading.read` reads, such as `CSVC`, and `KernelDual`; dense
    or CSR points and any kernel. It stores no row of K outside its working set: at most 8192 free variables and 1024
    others, 0.5 GB. Smooth functions of single variables may be added to W, as in kernel logistic regression: then it
    takes Newton's steps, with K in memory where it fits.

    Parameters
    ----------
    seed : int
        Of the random half of the violators; the same seed gives the same bits.
    pairs : {"worst", "random"} or None
        None for these working sets. "worst" for the maximal violating pair, which is SMO after Keerthi et al. (Eq.
        003:26), and "random" for a random pair of violators, as in simplified SMO: special cases, to compare with.
        They take as many steps, and a product with K for each.
    parameters : Parameters
        The numbers that tune the algorithm; they change the time of a run, not its result.

    Examples
    --------
    >>> from symsvm.kernels import Linear
    >>> from symsvm.objectives import QuadraticProgram
    >>> X, y = np.array([[-1.0], [0.5], [2.0]]), np.array([-1.0, 1.0, 1.0])
    >>> objective = KernelDual(QuadraticProgram.c_svc(y, C=10.0), X, Linear())
    >>> solution = DualProgram(objective, Decomposition()).run(tol=1e-6)
    >>> solution.z.round(4).tolist(), round(solution.b, 4), solution.certificate.status
    ([-0.8889, 0.8889, 0.0], 0.3333, 'optimal')
    """

    info = SolverInfo(
        name="decomposition",
        problems=("dual", "smooth"),
        backends=("numba",),
        equation="z_W <- argmin 1/2 z_W.K_WW z_W + (K z + p - K_WW z_W).z_W over working sets W",
        reference="Joachims (1999); Fan, Chen and Lin (2005)",
        accuracy="a KKT violation of tol, confirmed in float64; of a smooth W, a sum over pairs and points",
    )

    def __init__(
        self,
        *,
        seed: int = 0,
        pairs: Literal["worst", "random"] | None = None,
        parameters: Parameters = DEFAULTS,
    ):
        self.seed, self.parameters = seed, parameters
        self.pairs = None if pairs is None else choice(pairs, "pairs", ("worst", "random"))

    @property
    def options(self) -> dict[str, Any]:
        """The options of `solve_dual`."""
        return {"seed": self.seed, "pairs": self.pairs, "parameters": self.parameters}

    def program(self, objective: Objective, solver: Decomposition, **options: Any) -> DualProgram:
        """The program that `compile` returns.

        Parameters
        ----------
        objective : Objective
            The problem.
        solver : Decomposition
            This solver.
        **options : dict
            Those of `compile`.

        Returns
        -------
        DualProgram
            The program.
        """
        return DualProgram(objective, solver, **options)

    def __repr__(self):
        pairs = "" if self.pairs is None else f", pairs={self.pairs!r}"
        parameters = "" if self.parameters == DEFAULTS else f", parameters={self.parameters!r}"
        return f"Decomposition(seed={self.seed}{pairs}{parameters})"


class DualProgram:
    """An objective over pairs of points, and `Decomposition`; see `compile`.

    Nothing is compiled but the loops of the pair expression, when they are first needed.

    Parameters
    ----------
    objective : Objective
        The problem: a `KernelDual`, or any W that `symsvm.compiler.reading.read` reads.
    solver : Decomposition
        The solver.
    mode : str or Mode, optional
        The backend of kernel values, "NUMBA" by default.
    memory : int, optional
        The bytes that a matrix may take which W has as a whole, 1 GiB by default.
    dtype : {"float64"}, optional
        Only float64: the solver chooses its precision itself.

    Attributes
    ----------
    objective, solver, mode
        The parameters.
    reading : Reading or None
        What W is; None for a `KernelDual`, which is a quadratic program over a kernel as it stands.
    inputs : list of TensorVariable
        The free inputs of the objective, which are arguments of `run`.
    """

    def __init__(
        self,
        objective: Objective,
        solver: Decomposition,
        *,
        mode: Any = None,
        memory: int | None = None,
        dtype: str | None = None,
    ):
        if not isinstance(objective, Objective):
            raise TypeError(f"objective must be a symsvm Objective, got {objective!r}.")
        if dtype not in (None, "float64"):
            raise ValueError(f"{solver!r} chooses its precision itself: leave dtype out, got {dtype!r}.")
        self.objective, self.solver, self.mode = objective, solver, mode
        self.memory = MEMORY if memory is None else check_memory(memory)
        self.reading: Reading | None = None
        self._given: list[Any] = []
        bounds: list[Any] = []
        if objective.is_grouped is False:
            raise TypeError(
                "this solver needs every variable in one equality, or none in any, and no inequality: use "
                "'accelerated-gradient' or 'qp'."
            )
        if not isinstance(objective, KernelDual):
            try:
                self.reading = read(objective)
            except UnreadableError as error:
                raise TypeError(f"this solver needs a W over pairs of points: {error}. {_OTHERS}") from None
            self._given, bounds = leaves_of(objective), objective.bounds
        variables, _ = leaves(bounds)
        every = dict.fromkeys(v for v in (*self._given, *variables) if not isinstance(v, Constant))
        self.inputs = [v for v in every if not isinstance(v, SharedVariable)]
        check_input_names(self.inputs)
        of_bounds = [v for v in self.inputs if v in set(variables)]
        self._bounds = of_bounds, function(of_bounds, bounds, mode=PLAIN) if bounds else None

    @property
    def kind(self) -> str:
        """What the variable of the objective is: "z" of a `KernelDual`, else "lam"."""
        return "z" if isinstance(self.objective, KernelDual) else "lam"

    def problem(self, **data: Any) -> KernelProblem:
        """Return the problem that `run` solves: the program, the kernel matrix and the change of variables.

        Parameters
        ----------
        **data : array_like or CSR matrix
            A value for each free input of the objective, by name.

        Returns
        -------
        KernelProblem
            The problem.
        """
        return self._problem(None, data)

    def quadratic_program(self, m: int, **data: Any) -> QuadraticProgram:
        """Return the program of the problem without its matrix, for those who have the matrix already.

        Parameters
        ----------
        m : int
            The number of points.
        **data : array_like
            A value for each free input of the objective but those that only the matrix needs.

        Returns
        -------
        QuadraticProgram
            The program in z, for a matrix K(x_i, x_j) without further factors.
        """
        assert self.reading is not None
        values = {v: data.get(v.name) for v in self.inputs}
        given = [values[v] if v in values else _value(v) for v in self._given] + self.reading.fixed
        inputs, evaluate = self._bounds
        assert evaluate is not None
        program, _, t = program_of(self.reading, given, m, None, evaluate(*(values[v] for v in inputs)))
        if t is not None:
            raise ValueError("the matrix of this problem has factors for each point: use `problem`.")
        return program

    def _problem(self, start: Any, data: Mapping[str, Any]) -> KernelProblem:
        objective, values = self.objective, dict(zip(self.inputs, input_values(self.inputs, data), strict=True))
        if isinstance(objective, KernelDual):
            check_symmetric(objective.kernel, objective.X, mode=self.mode)
            matrix = LocalKernelMatrix(objective.kernel, objective.X, mode=self.mode)
            expand = functools.partial(_expand, objective, self.mode)
            return KernelProblem(objective.program, matrix, is_convex=objective.is_convex, expand=expand)
        assert self.reading is not None
        given = [values[v] if v in values else _value(v) for v in self._given] + self.reading.fixed
        inputs, evaluate = self._bounds
        assert evaluate is not None
        bounds = evaluate(*(values[v] for v in inputs))
        objective.check_constraints(bounds)
        variable: Any = objective.variable
        n = len(variable.get_value(borrow=True)) if isinstance(variable, SharedVariable) else None
        n = len(np.atleast_1d(start)) if n is None and start is not None and not isinstance(start, Solution) else n
        options: Any = {"is_convex": objective.is_convex, "memory": self.memory, "mode": self.mode}
        try:
            problem = bind(self.reading, given, n, bounds, **options)
            verify(self.reading, given, bounds, problem, **options)
        except UnreadableError as error:
            raise TypeError(f"this solver needs a W over pairs of points: {error}. {_OTHERS}") from None
        return problem

    def run(
        self,
        start: ArrayLike | Solution | None = None,
        *,
        tol: float = 1e-3,
        max_iter: int | None = None,
        time_limit: float | None = None,
        callback: Callable[[Info], object] | None = None,
        verbose: int = 0,
        **data: Any,
    ) -> Solution:
        """Run until the KKT violation is at most `tol`, and return a `Solution`.

        Parameters
        ----------
        start : array_like or Solution, optional
            A value of the variable to begin near; or a `Solution` of the same problem with other bounds, or with fewer
            points (new ones come after them).
        tol, max_iter, time_limit, callback, verbose
            See `solve_problem`.
        **data : array_like or CSR matrix
            A value for each free input of the objective, by name.

        Returns
        -------
        Solution
            The last point, with its certificate.
        """
        problem = self._problem(start, data)
        limits = {"tol": tol, "max_iter": max_iter, "time_limit": time_limit, "callback": callback, "verbose": verbose}
        return solve_problem(problem, start=start, kind=self.kind, **limits, **self.solver.options)


def _expand(dual: KernelDual, mode: Any, rows: tuple, beta: Array) -> Array:
    """sum_j K(x, x_j) beta_j at other points."""
    (Z,), support = rows, np.flatnonzero(beta)
    return KernelEvaluator(dual.kernel, mode=mode).matvec(Z, dual.X[support], beta[support])


def _value(v: Any) -> Any:
    """The value of a shared variable or a constant."""
    return v.get_value(borrow=True) if isinstance(v, SharedVariable) else v.data
