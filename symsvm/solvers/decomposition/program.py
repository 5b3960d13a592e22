"""DualProgram: a quadratic dual and the decomposition that solves it, behind `compile`."""

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable

from symsvm._lib.validation import choice
from symsvm.compiler.functions import function
from symsvm.compiler.lifting import MEMORY
from symsvm.evaluation.local import LocalKernelMatrix
from symsvm.graphs.structure import leaves
from symsvm.objectives import KernelDual, Objective
from symsvm.solvers.convergence import warn_not_converged
from symsvm.solvers.decomposition.algorithm import decompose
from symsvm.solvers.decomposition.dense_quadratic import Quadratic
from symsvm.solvers.decomposition.diagnosis import diagnosis
from symsvm.solvers.program import Solution, check_names, checked_run, traced, values_of
from symsvm.solvers.progress import Progress
from symsvm.solvers.solver_info import SolverInfo

__all__ = ["Decomposition", "DualProgram", "path", "solve_dual"]


class Decomposition:
    """The fast exact solver of quadratic duals over a kernel (see `symsvm.solvers.decomposition.algorithm`).

        minimise 1/2 z.(K + D) z + p.z    subject to    lower <= z <= upper,    sum of z over group g = total_g

    Working sets of all free variables and of violators, solved by SMO in float32; float64 confirms the result. It takes
    `CSVC` and `KernelDual`, dense or CSR points and any kernel, and holds no row of K outside its working set: at most
    8192 free variables and 1024 others, 0.5 GB. It also takes any other `Objective` whose W is quadratic, over a shared
    variable: its matrix, which must fit the memory, is read off the gradient.

    Parameters
    ----------
    seed : of the random half of the violators; the same seed gives the same bits.
    pairs : None for these working sets. "worst" for the maximal violating pair, which is SMO after Keerthi et al. (Eq.
        003:26), and "random" for a pair of violators by chance, which is what simplified SMO does: special cases, to
        compare with. They take as many steps, and a product with K for each.

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

    def __init__(self, *, seed=0, pairs=None):
        self.seed, self.pairs = seed, None if pairs is None else choice(pairs, "pairs", ("worst", "random"))

    @property
    def options(self):
        """What `solve_dual` is told."""
        return {"seed": self.seed, "pairs": self.pairs}

    def program(self, objective, solver, **options):
        """What `compile` returns."""
        return DualProgram(objective, solver, **options)

    def __repr__(self):
        return f"Decomposition(seed={self.seed}{'' if self.pairs is None else f', pairs={self.pairs!r}'})"


class DualProgram:
    """An objective that is a quadratic dual over a kernel, and `Decomposition`; see `compile`.

    Nothing is compiled but the loops of the kernel, when they are first needed.
    """

    def __init__(self, objective, solver, *, mode=None, memory=None, dtype=None):
        if not isinstance(objective, Objective):
            raise TypeError(f"objective must be a symsvm Objective, got {objective!r}.")
        if dtype not in (None, "float64"):
            raise ValueError(f"{solver!r} chooses its arithmetic as it goes: leave dtype out, got {dtype!r}.")
        self.objective, self.solver, self.mode = objective, solver, mode
        self._source = objective if hasattr(objective, "dual") else Quadratic(objective, memory or MEMORY)
        variables, _ = leaves(self._source.parts)
        self.inputs = [v for v in variables if not isinstance(v, SharedVariable)]
        check_names(self.inputs)
        parts = self._source.parts
        self._evaluate = function(self.inputs, parts, mode="FAST_COMPILE") if parts else lambda: ()

    def run(self, start=None, *, tol=1e-3, max_iter=None, time_limit=None, callback=None, verbose=0, **data):
        """Run until the KKT violation is at most `tol`, and return a `Solution`.

        Parameters
        ----------
        start : a lam to begin near; or a `Solution` of the same problem with other bounds, or with fewer points (new
            ones come after them).
        data : a value for each free input of the objective, by name.
        For the others see `solve_dual`.
        """
        values = values_of(self.inputs, data)
        dual, factor = self._source.dual(*self._evaluate(*values))
        gram = LocalKernelMatrix(dual.kernel, dual.X, mode=self.mode)
        options = {"tol": tol, "max_iter": max_iter, "time_limit": time_limit, "callback": callback, "verbose": verbose}
        options |= {"start": start, "is_psd": dual.is_convex, **self.solver.options}
        return solve_dual(dual.program, gram, factor, **options)


def solve_dual(
    program,
    gram,
    factor=1.0,
    *,
    is_psd=None,
    start=None,
    tol=1e-3,
    max_iter=None,
    time_limit=None,
    callback=None,
    verbose=0,
    seed=0,
    pairs=None,
):
    """Solve a `QuadraticProgram` over the kernel matrix of its points; return a `Solution` with lam = factor z.

    Parameters
    ----------
    is_psd : whether K is positive semi-definite; only then can a point be called optimal and not just stationary.
    start : see `DualProgram.run`.
    tol : the largest KKT violation to accept, as LIBSVM means it, in float64.
    max_iter, time_limit : the most outer iterations and the most seconds; each returns the point reached, which is
        feasible, with a ConvergenceWarning that says what makes the problem hard.
    callback : a function of an `Info`; a true return value stops the run.
    verbose : 1 draws a bar with violation, gap and support vectors on a terminal.
    seed, pairs : see `Decomposition`.
    """
    tol, max_iter, time_limit = checked_run(tol, max_iter, time_limit, callback)
    bar = Progress(tol) if verbose else None

    def watch(info):
        if bar is not None:
            bar.show(info)
        return callback is not None and callback(info)

    options = {"tol": tol, "max_iter": max_iter, "time_limit": time_limit, "callback": watch}
    try:
        start = _start(program, start, factor)
        result = decompose(program, gram, start=start, seed=seed, pairs=pairs, **options)
    finally:
        if bar is not None:
            bar.close()
    z = program.snapped(result.z)

    def certify():
        """From z and the data alone: only the rows of support vectors take part."""
        beta = program.weights(z)
        support, Kz = np.flatnonzero(beta), np.zeros(program.m)
        gram.product(beta[support], None, support, Kz, exact=True)
        return program.certificate(Kz, z, tol=tol, is_psd=is_psd)

    b, violation = program.multipliers(program.gradient(result.Kz, z), z)
    if result.stopped != "tol":
        is_cut = result.stopped == "interrupt" and not result.n_iter  # nothing was tried
        trouble = [] if is_cut else diagnosis(program, gram, is_psd, z, tol)
        advice = [sentence[0].upper() + sentence[1:] for sentence in trouble]
        reached = f"a violation of {violation:.2g}, above tol={tol:g}"
        warn_not_converged(result.stopped, result.n_iter, reached, advice)
    b = (b if len(b) > 1 else float(b[0])) if len(b) else None
    lam = factor * z
    return Solution(lam, b, lam, result.stopped, result.n_iter, traced(result.trace), certify, program)


def path(X, kernel, programs, **options):
    """Solve one `QuadraticProgram` after another over the same points, each from the last solution: a path over C, say.

    Rows of the kernel between the variables of the last working set are kept for the next one. Yields a `Solution`
    each; `options` are those of `solve_dual`.

    >>> from symsvm.kernels import RBF
    >>> from symsvm.objectives import QuadraticProgram
    >>> X, y = np.array([[-1.0], [0.5], [2.0], [2.2]]), np.array([-1.0, 1.0, 1.0, -1.0])
    >>> [round(s.W, 3) for s in path(X, RBF(1.0), [QuadraticProgram.c_svc(y, C) for C in (0.1, 1.0, 10.0)])]
    [-0.392, -3.221, -18.52]
    """
    gram, last = None, None
    for program in programs:
        if gram is None:
            gram = LocalKernelMatrix(kernel, KernelDual(program, X, kernel).X)
            gram.keeps = True
        last = solve_dual(program, gram, start=last, is_psd=kernel.is_psd, **options)
        yield last
    gram.kept = None


def _start(program, start, factor):
    """A z to begin near: the given one, which may have been made for fewer points or for other bounds."""
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
    full[here] = z / (factor[here] if np.ndim(factor) else factor)
    if old is not None and old.n == len(z):
        full *= _ratio(old, program, here)
    return full


def _ratio(old, new, here):
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
