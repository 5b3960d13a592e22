"""The solver `Decomposition`, its program behind `compile`, and paths over many programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable

from symsvm._lib.validation import choice
from symsvm.compiler.functions import function
from symsvm.compiler.lifting import MEMORY
from symsvm.evaluation.local import LocalKernelMatrix
from symsvm.graphs.structure import leaves
from symsvm.objectives import KernelDual, Objective
from symsvm.solvers.convergence import ProgressBar, warn_not_converged
from symsvm.solvers.decomposition.algorithm import decompose
from symsvm.solvers.decomposition.dense_quadratic import DenseQuadratic
from symsvm.solvers.decomposition.diagnosis import diagnosis
from symsvm.solvers.decomposition.parameters import DEFAULTS, Parameters
from symsvm.solvers.decomposition.working_set import WorkingSetReuse
from symsvm.solvers.program import check_input_names, check_run_arguments, input_values
from symsvm.solvers.solution import Solution, collect_trace
from symsvm.solvers.solver import SolverInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, Points
    from symsvm.evaluation.kernel_matrix import KernelMatrix
    from symsvm.kernels import Kernel
    from symsvm.objectives import QuadraticProgram
    from symsvm.solvers.solution import Info

__all__ = ["Decomposition", "DualProgram", "path", "solve_dual", "starting_point"]


class Decomposition:
    """The fast exact solver of quadratic duals over a kernel.

    It solves::

        minimise 1/2 z.(K + D) z + p.z    subject to    lower <= z <= upper,    sum of z over group g = total_g

    Working sets of all free variables and of violators are solved by SMO in float32; the result is confirmed in
    float64. It takes `CSVC` and `KernelDual`, dense or CSR points and any kernel, and holds no row of K outside its
    working set: at most 8192 free variables and 1024 others, 0.5 GB. It also takes any other `Objective` over a shared
    variable whose W is quadratic: its matrix, which must fit the memory, is read from the gradient.

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
    >>> solution.lam.round(4).tolist(), round(solution.b, 4), solution.certificate.status
    ([-0.8889, 0.8889, 0.0], 0.3333, 'optimal')
    """

    info = SolverInfo(
        name="decomposition",
        problems=("dual", "smooth"),
        backends=("numba",),
        equation="z_W <- argmin 1/2 z_W.K_WW z_W + (K z + p - K_WW z_W).z_W over working sets W",
        reference="Joachims (1999); Fan, Chen and Lin (2005)",
        accuracy="a KKT violation of tol, confirmed in float64; of a smooth W, only a quadratic one",
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
    """An objective that is a quadratic dual over a kernel, and `Decomposition`; see `compile`.

    Nothing is compiled but the loops of the kernel, when they are first needed.
    """

    def __init__(
        self,
        objective: Objective,
        solver: Decomposition,
        *,
        mode: str | None = None,
        memory: int | None = None,
        dtype: str | None = None,
    ):
        if not isinstance(objective, Objective):
            raise TypeError(f"objective must be a symsvm Objective, got {objective!r}.")
        if dtype not in (None, "float64"):
            raise ValueError(f"{solver!r} chooses its precision itself: leave dtype out, got {dtype!r}.")
        self.objective, self.solver, self.mode = objective, solver, mode
        # What gives the dual: the objective itself, or its matrix.
        self._source: Any = objective if hasattr(objective, "dual") else DenseQuadratic(objective, memory or MEMORY)
        variables, _ = leaves(self._source.dual_inputs)
        self.inputs = [v for v in variables if not isinstance(v, SharedVariable)]
        check_input_names(self.inputs)
        parts = self._source.dual_inputs
        self._evaluate = function(self.inputs, parts, mode="FAST_COMPILE") if parts else lambda: ()

    def run(
        self,
        start: ArrayLike | Solution | None = None,
        *,
        tol: float = 1e-3,
        max_iter: int | None = None,
        time_limit: float | None = None,
        callback: Callable[[Info], object] | None = None,
        verbose: int = 0,
        **data: ArrayLike,
    ) -> Solution:
        """Run until the KKT violation is at most `tol`, and return a `Solution`.

        Parameters
        ----------
        start : a lam to begin near; or a `Solution` of the same problem with other bounds, or with fewer points (new
            ones come after them).
        data : a value for each free input of the objective, by name.
        For the others see `solve_dual`.
        """
        values = input_values(self.inputs, data)
        dual, factor = self._source.dual(*self._evaluate(*values))
        matrix = LocalKernelMatrix(dual.kernel, dual.X, mode=self.mode)
        options = {"tol": tol, "max_iter": max_iter, "time_limit": time_limit, "callback": callback, "verbose": verbose}
        options |= {"start": start, "is_psd": dual.is_convex, **self.solver.options}
        return solve_dual(dual.program, matrix, factor, **options)


def solve_dual(
    program: QuadraticProgram,
    matrix: KernelMatrix,
    factor: float | Array = 1.0,
    *,
    is_psd: bool | None = None,
    start: ArrayLike | Solution | None = None,
    tol: float = 1e-3,
    max_iter: int | None = None,
    time_limit: float | None = None,
    callback: Callable[[Info], object] | None = None,
    verbose: int = 0,
    seed: int = 0,
    pairs: str | None = None,
    parameters: Parameters = DEFAULTS,
    reuse: WorkingSetReuse | None = None,
) -> Solution:
    """Solve a `QuadraticProgram` over the kernel matrix of its points; return a `Solution` with lam = factor z.

    Parameters
    ----------
    is_psd : whether K is positive semi-definite; only then can a point be called optimal and not just stationary.
    start : see `DualProgram.run`.
    tol : the largest KKT violation to accept, as LIBSVM defines it, in float64.
    max_iter, time_limit : the most outer iterations and the most seconds; each returns the point reached, which is
        feasible, with a ConvergenceWarning that says what makes the problem hard.
    callback : a function of an `Info`; a true return value stops the run.
    verbose : 1 draws a bar with violation, gap and support vectors on a terminal.
    seed, pairs, parameters : see `Decomposition`.
    reuse : hands the working set from one program to the next over the same points.
    """
    tol, max_iter, time_limit = check_run_arguments(tol, max_iter, time_limit, callback)
    bar = ProgressBar(tol) if verbose else None

    def report(info):
        if bar is not None:
            bar.show(info)
        return callback is not None and callback(info)

    options = {"tol": tol, "max_iter": max_iter, "time_limit": time_limit, "callback": report, "seed": seed}
    options |= {"pairs": pairs, "parameters": parameters, "reuse": reuse}
    try:
        result = decompose(program, matrix, start=starting_point(program, start, factor), **options)
    finally:
        if bar is not None:
            bar.close()
    z = program.snap_to_bounds(result.z)

    def certify():
        """Certify z from the data alone; only the rows of support vectors are computed."""
        beta = program.weights(z)
        support, Kz = np.flatnonzero(beta), np.zeros(program.m)
        matrix.product(beta[support], None, support, Kz, exact=True)
        return program.certificate(Kz, z, tol=tol, is_psd=is_psd)

    b, violation = program.multipliers(program.gradient(result.Kz, z), z)
    if result.stopped != "tol":
        was_tried = result.stopped != "interrupt" or result.n_iter > 0
        trouble = diagnosis(program, matrix, is_psd, z, tol) if was_tried else []
        advice = [sentence[0].upper() + sentence[1:] for sentence in trouble]
        reached = f"a violation of {violation:.2g}, above tol={tol:g}"
        warn_not_converged(result.stopped, result.n_iter, reached, advice)
    b = (b if len(b) > 1 else float(b[0])) if len(b) else None
    lam = factor * z
    return Solution(lam, b, lam, result.stopped, result.n_iter, collect_trace(result.trace), certify, program)


def path(
    X: ArrayLike | Points, kernel: Kernel, programs: Iterable[QuadraticProgram], **options: Any
) -> Iterator[Solution]:
    """Solve one `QuadraticProgram` after another over the same points, each from the last solution, as a path over C.

    The kernel values of a working set are reused by the next program.

    Parameters
    ----------
    X : array or CSR matrix of shape (m, d)
        The points.
    kernel : Kernel
        The kernel.
    programs : iterable of QuadraticProgram
        The programs.
    **options : dict
        Those of `Program.run`: tol, max_iter, time_limit, callback, verbose; and those of `Decomposition`: seed, pairs,
        parameters.

    Yields
    ------
    Solution
        The solution of each program.

    Examples
    --------
    >>> from symsvm.kernels import RBF
    >>> from symsvm.objectives import QuadraticProgram
    >>> X, y = np.array([[-1.0], [0.5], [2.0], [2.2]]), np.array([-1.0, 1.0, 1.0, -1.0])
    >>> [round(s.W, 3) for s in path(X, RBF(1.0), [QuadraticProgram.c_svc(y, C) for C in (0.1, 1.0, 10.0)])]
    [-0.392, -3.221, -18.52]
    """
    matrix, reuse, last = None, WorkingSetReuse(), None
    for program in programs:
        if matrix is None:
            matrix = LocalKernelMatrix(kernel, KernelDual(program, X, kernel).X)
        last = solve_dual(program, matrix, start=last, is_psd=kernel.is_psd, reuse=reuse, **options)
        yield last


def starting_point(program: QuadraticProgram, start: Any, factor: float | Array) -> Array | None:
    """The z to begin near, from a lam or a solution for fewer points or for other bounds."""
    if start is None:
        return None
    old = getattr(start, "program", None)
    z = np.asarray(getattr(start, "lam", start), dtype="float64")
    copies = program.n // program.m
    if z.ndim != 1 or len(z) % copies or len(z) > program.n or not np.isfinite(z).all():
        raise ValueError(f"start must be a finite vector of at most {program.n} numbers, got the shape {z.shape}.")
    m = len(z) // copies
    here = np.concatenate([np.arange(m) + k * program.m for k in range(copies)])
    full = np.zeros(program.n)
    full[here] = z / (np.asarray(factor)[here] if np.ndim(factor) else factor)
    if old is not None and old.n == len(z):
        full *= _ratio(old, program, here)
    return full


def _ratio(old: QuadraticProgram, new: QuadraticProgram, here: Array) -> float:
    """The factor between all bounds of two programs, or between all 1 / D, for z to grow with C; 1 if there is none."""
    before, now = np.concatenate([old.lower, old.upper]), np.concatenate([new.lower[here], new.upper[here]])
    used = (before != 0) & np.isfinite(before)
    if not used.any():  # squared losses: D = 1 / (2 C)
        before, now = new.diagonal[here], old.diagonal
        used = before > 0
    if not used.any() or not np.isfinite(now[used]).all():
        return 1.0
    ratios = now[used] / before[used]
    return float(ratios[0]) if np.ptp(ratios) <= 1e-12 * abs(ratios[0]) else 1.0
