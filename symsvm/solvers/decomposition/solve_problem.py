"""The solution of a `KernelProblem`, and paths over many programs."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.compiler.lifting import MEMORY
from symsvm.evaluation.local import LocalKernelMatrix
from symsvm.evaluation.symmetry import check_symmetric
from symsvm.objectives import KernelDual
from symsvm.objectives.separable_program import SeparableProgram
from symsvm.solvers.convergence import ProgressBar, warn_not_converged
from symsvm.solvers.decomposition.algorithm import decompose
from symsvm.solvers.decomposition.diagnosis import diagnosis
from symsvm.solvers.decomposition.kernel_problem import KernelProblem, VariableChange
from symsvm.solvers.decomposition.parameters import DEFAULTS, Parameters
from symsvm.solvers.decomposition.separable_descent import minimise_separable
from symsvm.solvers.decomposition.working_set import WorkingSetReuse
from symsvm.solvers.program import check_run_arguments
from symsvm.solvers.solution import Solution, collect_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, Points
    from symsvm.evaluation.kernel_matrix import KernelMatrix
    from symsvm.kernels import Kernel
    from symsvm.objectives import QuadraticProgram
    from symsvm.objectives.separable import SeparableTerm
    from symsvm.solvers.checkpoint import Checkpoint
    from symsvm.solvers.solution import Info

__all__ = ["path", "solve_dual", "solve_problem", "solve_separable", "starting_point"]

# Points of which the size of the kernel's values is known.
_SAMPLE = 256


def solve_dual(
    program: QuadraticProgram, matrix: KernelMatrix, *, is_psd: bool | None = None, **options: Any
) -> Solution:
    """Solve a `QuadraticProgram` over the kernel matrix of its points; `Solution.z` are its variables.

    Parameters
    ----------
    program : QuadraticProgram
        The problem.
    matrix : KernelMatrix
        The matrix between its points.
    is_psd : bool, optional
        Whether K is positive semi-definite; only then can a point be called optimal and not just stationary.
    **options : object
        Those of `solve_problem`.

    Returns
    -------
    Solution
        The last point, with its certificate.
    """
    return solve_problem(KernelProblem(program, matrix, is_convex=is_psd), kind="z", **options)


def solve_separable(
    program: QuadraticProgram,
    phi: SeparableTerm,
    matrix: KernelMatrix,
    factor: float | Array = 1.0,
    *,
    is_psd: bool | None = None,
    memory: int | None = None,
    **options: Any,
) -> Solution:
    """Solve a `QuadraticProgram` with a separable term over the kernel matrix of its points; lam = factor z.

    Parameters
    ----------
    program : QuadraticProgram
        The quadratic terms and the constraints.
    phi : SeparableTerm
        The separable term, a function of z.
    matrix : KernelMatrix
        The matrix between the points.
    factor : float or array
        lam divided by z.
    is_psd : bool, optional
        Whether K is positive semi-definite.
    memory : int, optional
        Bytes that K may take, 1 GiB by default; where it takes more, it is computed by tiles for each product.
    **options : object
        Those of `solve_problem`.

    Returns
    -------
    Solution
        The last point, with its certificate.
    """
    change = VariableChange(np.broadcast_to(1.0 / np.asarray(factor), program.n))
    limit = MEMORY if memory is None else memory
    return solve_problem(KernelProblem(program, matrix, change, phi, is_psd, memory=limit), **options)


def solve_problem(
    problem: KernelProblem,
    *,
    kind: str = "lam",
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
    checkpoint: Checkpoint | None = None,
) -> Solution:
    """Solve a `KernelProblem`.

    Parameters
    ----------
    problem : KernelProblem
        The problem.
    kind : {"lam", "z"}
        What the objective's variable is.
    start : array_like or Solution, optional
        See `DualProgram.run`.
    tol : float
        The largest KKT violation to accept, as LIBSVM defines it, in float64.
    max_iter, time_limit : int, float, optional
        The most outer iterations and the most seconds; each returns the point reached, which is feasible, with a
        ConvergenceWarning that says what makes the problem hard.
    callback : callable, optional
        A function of an `Info`; a true return value stops the run.
    verbose : int
        1 draws a bar with violation, gap and support vectors on a terminal.
    seed, pairs, parameters
        See `Decomposition`.
    reuse : WorkingSetReuse, optional
        Hands the working set from one program to the next over the same points.
    checkpoint : Checkpoint, optional
        Writes the point to a file from time to time.

    Returns
    -------
    Solution
        The last point, with its certificate.
    """
    tol, max_iter, time_limit = check_run_arguments(tol, max_iter, time_limit, callback)
    program, matrix, change = problem.program, problem.matrix, problem.change
    bar = ProgressBar(tol) if verbose else None

    def report(info):
        info = info if change.violation == 1 else replace(info, violation=change.violation * info.violation)
        if bar is not None:
            bar.show(info)
        return callback is not None and callback(info)

    tol_z, near = tol / change.violation, starting_point(program, start, change)
    options = {"tol": tol_z, "max_iter": max_iter, "time_limit": time_limit, "callback": report, "seed": seed}
    options["parameters"] = parameters
    whole: Any = program if problem.smooth is None else SeparableProgram(program, problem.smooth)
    try:
        if problem.smooth is None:
            result = decompose(program, matrix, start=near, pairs=pairs, reuse=reuse, checkpoint=checkpoint, **options)
        else:
            options |= {"memory": problem.memory, "may_be_convex": problem.is_convex is not False}
            result = minimise_separable(whole, matrix, program.start(near), **options)
    finally:
        if bar is not None:
            bar.close()
    with np.errstate(over="ignore", invalid="ignore"):  # the certificate says where W is not finite
        return _solution(problem, result, whole, kind, tol)


def _solution(problem: KernelProblem, result: Any, whole: Any, kind: str, tol: float) -> Solution:
    """The solution at the end of a run; warn if it stopped short of tol."""
    program, matrix, change = problem.program, problem.matrix, problem.change
    is_whole = problem.smooth is not None or result.is_snapped
    z, Kz = (result.z, result.Kz) if is_whole else _snap(program, matrix, result)
    tol_z = tol / change.violation

    @functools.cache
    @np.errstate(over="ignore", invalid="ignore")
    def certify():
        """Certify z from the data alone; only the rows of support vectors are computed."""
        beta = program.weights(z)
        support, Kz = np.flatnonzero(beta), np.zeros(program.m)
        matrix.product(beta[support], None, support, Kz, exact=True)
        return change.certificate(whole, Kz, z, tol=tol, is_convex=problem.is_convex)

    F = whole.gradient(Kz, z)
    b, violation = whole.multipliers(F, z)
    stopped = result.stopped
    is_sure = problem.smooth is None and bool(problem.is_convex) and result.most_violation <= tol_z
    if (
        stopped == "tol"
        and not is_sure
        and _is_doubtful(matrix, z, result.size, tol_z)
        and certify().status not in ("optimal", "stationary")
    ):
        stopped, violation = "stalled", certify().violation / change.violation
    if stopped != "tol":
        was_tried = stopped != "interrupt" or result.n_iter > 0
        trouble = diagnosis(program, matrix, problem.is_convex, z, tol_z) if was_tried else []
        advice = [sentence[0].upper() + sentence[1:] for sentence in trouble]
        reached = f"a violation of {change.violation * violation:.2g}, above tol={tol:g}"
        warn_not_converged(stopped, result.n_iter, reached, advice)
    v, trace = change.to_variable(z), collect_trace(result.trace)
    if change.violation != 1:
        trace["violation"] = change.violation * trace["violation"]
    expand = _expansion(problem, z, b) if problem.expand is not None else None
    b = change.multiplier * b
    b = (b if len(b) > 1 else float(b[0])) if len(b) else None
    return Solution(v, b, v, stopped, result.n_iter, trace, certify, kind, program, z, expand, F)


def _snap(program: QuadraticProgram, matrix: KernelMatrix, result: Any) -> tuple[Array, Array]:
    """The point of a run and its K z, with variables at their bounds that are off them by rounding alone.

    Values of K may be so large that rounding of z is none of F: W and the violation must not rise.
    """
    z, Kz = program.snap_to_bounds(result.z), result.Kz
    if z is result.z or not np.isfinite(Kz).all():
        return result.z, Kz
    step = program.weights(z - result.z)
    support, Kz = np.flatnonzero(step), Kz.copy()
    matrix.product(step[support], None, support, Kz, exact=True)
    before, after = (program.gradient(*point) for point in ((result.Kz, result.z), (Kz, z)))
    rounding = 8 * np.finfo("float64").eps * (np.abs(before) + np.abs(program.p))
    rises = program.multipliers(after, z)[1] > program.multipliers(before, result.z)[1] + rounding.max()
    rises |= program.value(Kz, z) > program.value(result.Kz, result.z) + np.abs(result.z) @ rounding
    return (result.z, result.Kz) if rises else (z, Kz)


def _is_doubtful(matrix: KernelMatrix, z: Array, size: float, tol: float) -> bool:
    """Whether the violation is certified at the end of a run: of few points, and where rounding may be as large as tol.

    It was measured by the run, which may have computed K z in another order. `size` is that of |K_ii|, 0 if unknown.
    """
    if matrix.is_exact:
        return True
    if not size:
        size = np.abs(matrix.diagonal(np.linspace(0, matrix.m - 1, min(matrix.m, _SAMPLE)).astype("int64"))).max()
    return not np.finfo("float64").eps * size * float(np.abs(z).sum()) <= tol / 100


def _expansion(problem: KernelProblem, z: Array, b: Array) -> Callable[..., Array]:
    """The decision function over other rows: K z + b there, in the units of the objective."""
    beta, scale = problem.program.weights(z), problem.change.decision
    offset = float(np.mean(b)) if len(b) else 0.0

    def decide(*rows):
        assert problem.expand is not None
        return scale * (problem.expand(rows, beta) + offset)

    return decide


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
            check_symmetric(kernel, matrix.X)
        last = solve_dual(program, matrix, start=last, is_psd=kernel.is_psd, reuse=reuse, **options)
        yield last


def starting_point(program: QuadraticProgram, start: Any, change: VariableChange) -> Array | None:
    """The z to begin near, from a value of the variable or a solution, for fewer points or for other bounds."""
    if start is None:
        return None
    old = getattr(start, "program", None)
    v = np.asarray(getattr(start, "point", start), dtype="float64")
    n = program.m if change.is_split else program.n
    copies = n // program.m
    if v.ndim != 1 or len(v) % copies or len(v) > n or not np.isfinite(v).all():
        raise ValueError(f"start must be a finite vector of at most {n} numbers, got the shape {v.shape}.")
    m = len(v) // copies
    here = np.concatenate([np.arange(m) + k * program.m for k in range(copies)])
    full = np.zeros(n)
    full[here] = v
    z = change.to_program(full)
    if old is not None and old.n == len(v):
        z *= _ratio(old, program, here)
    return z


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
