"""The algorithms on one problem, each run once and judged by the primal objective of its solution.

    P = 1/2 |w|^2 + C sum_i loss(y_i, f(x_i))

f is the decision function of a solution, whether the algorithm found weights or multipliers. A `Model` is a loss and a
treatment of the bias. Algorithms for one model share an optimum P*, which the decomposition solver finds at a much
smaller tolerance.
"""

from __future__ import annotations

import functools
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning

from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.inspection.comparison.problems import Problem
from symsvm.kernels import RBF
from symsvm.objectives import KernelDual, PerceptronRisk, PrimalRisk, QuadraticProgram
from symsvm.solvers import KernelPerceptron, Perceptron, compile, list_solvers, relax, solve

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from symsvm._lib.types import Array

__all__ = ["LAGRANGIAN", "Entry", "Model", "contest", "list_algorithms", "make_dual"]

# The algorithm whose bounds and equality are relaxed.
LAGRANGIAN = "adagrad on the Lagrangian dual"
# The tolerance of the optimum P*.
_OPTIMUM_TOL = 1e-9
# Memory is measured over this many seconds of a second run, since tracing slows a run down.
_MEMORY_SECONDS = 1.0
_LIBLINEAR_ITERATIONS = 100_000

# A prepared run: (tol, time_limit) -> RunResult.
_Run = Callable[..., "RunResult"]


@dataclass(frozen=True)
class Model:
    """A loss ("hinge", "epsilon_insensitive" or the square of one) and a bias, "free" or "embedded"."""

    loss: str
    bias: str

    @property
    def is_squared(self) -> bool:
        """Whether slacks are squared."""
        return self.loss.startswith("squared")

    def __str__(self) -> str:
        return f"{self.loss.replace('_', ' ')}, {self.bias} bias"


@dataclass(frozen=True)
class Entry:
    """The result of one algorithm on one problem.

    Parameters
    ----------
    problem : Problem
        The problem.
    model : Model
        The loss and the bias.
    algorithm : str
        The name of the algorithm.
    P, excess : float
        The primal objective, and (P - P*) / P*.
    gap, infeasibility : float
        From the certificate of the run; NaN without one.
    score : float
        The accuracy, or R2 for a regression, on the test set.
    vectors : float or None
        The share of points that are support vectors; None for weights.
    iterations : int
        The number of iterations.
    seconds : float
        The time of the run without compilation.
    stopped : str
        Why the run stopped.
    memory : float
        The peak memory of Python and NumPy in the first second, in MB, without memory that libraries allocate.
    trace : dict or None
        The trace of the solution, if it has one.
    decide : callable
        The decision function.
    z : ndarray or None
        The multipliers; None for weights.
    """

    problem: Problem = field(repr=False)
    model: Model
    algorithm: str
    P: float
    excess: float
    gap: float
    infeasibility: float
    score: float
    vectors: float | None
    iterations: int
    seconds: float
    stopped: str
    memory: float
    trace: dict[str, Any] | None = field(repr=False)
    decide: Callable[[Array], Array] = field(repr=False)
    z: Array | None = field(repr=False)

    @property
    def optimum(self) -> float:
        """P* of the model."""
        return self.P / (1 + self.excess)


@dataclass(frozen=True)
class RunResult:
    """The result of a run: f on the training points, |w|^2, the decision function, and fields of an `Entry`."""

    f: Array
    squared_norm: float
    decide: Callable[[Array], Array]
    gap: float | None = None
    infeasibility: float = np.nan
    vectors: float | None = None
    iterations: int = 0
    stopped: str = "tol"
    trace: dict[str, Any] | None = None
    z: Array | None = None


def contest(
    problem: Problem,
    *,
    algorithms: Collection[str] | None = None,
    tol: float = 1e-3,
    time_limit: float = 10.0,
    mode: str | None = None,
) -> Iterator[Entry]:
    """Yield an `Entry` for each algorithm that suits the problem.

    Parameters
    ----------
    problem : Problem
        The problem.
    algorithms : collection of str, optional
        The names of the algorithms to run, all by default.
    tol : float, default 1e-3
        The tolerance of each algorithm.
    time_limit : float, default 10.0
        The time limit of each algorithm in seconds.
    mode : str, optional
        The backend of algorithms that are compiled from graphs.

    Yields
    ------
    Entry
        The results, in a fixed order.
    """
    for model, algorithm, prepare in list_algorithms(problem, mode):
        if algorithms is None or algorithm in algorithms:
            yield _measure(problem, model, algorithm, prepare, tol, time_limit)


def _measure(
    problem: Problem, model: Model, algorithm: str, prepare: Callable[[], _Run], tol: float, time_limit: float
) -> Entry:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table says why a run stopped
        run = functools.partial(prepare(), tol=tol)
        run(time_limit=0.0)  # compiles functions that are compiled at their first call
        began = time.perf_counter()
        found = run(time_limit=time_limit)
        seconds = time.perf_counter() - began
        tracemalloc.start()  # not while the time is measured
        try:
            run(time_limit=min(_MEMORY_SECONDS, time_limit))
            memory = tracemalloc.get_traced_memory()[1] / 2**20
        finally:
            tracemalloc.stop()
    P = _primal(problem, model, found.f, found.squared_norm)
    return Entry(
        problem=problem,
        model=model,
        algorithm=algorithm,
        P=P,
        excess=P / _optimum(problem, model) - 1,
        gap=np.nan if found.gap is None else found.gap,
        infeasibility=found.infeasibility,
        score=_score(problem, found.decide(problem.X_test)),
        vectors=found.vectors,
        iterations=found.iterations,
        seconds=seconds,
        stopped=found.stopped,
        memory=memory,
        trace=found.trace,
        decide=found.decide,
        z=found.z,
    )


def _primal(problem: Problem, model: Model, f: Array, squared_norm: float) -> float:
    """Return P of a decision function with the values f on the training points."""
    if problem.epsilon is None:
        loss = np.maximum(0.0, 1 - problem.y * f)
    else:
        loss = np.maximum(0.0, np.abs(problem.y - f) - problem.epsilon)
    return float(0.5 * squared_norm + problem.C * np.sum(loss**2 if model.is_squared else loss))


def _score(problem: Problem, f: Array) -> float:
    if problem.epsilon is None:
        return float(np.mean(np.where(f >= 0, 1.0, -1.0) == problem.y_test))
    return float(1 - np.sum((problem.y_test - f) ** 2) / np.sum((problem.y_test - problem.y_test.mean()) ** 2))


@functools.lru_cache(maxsize=32)
def _optimum(problem: Problem, model: Model) -> float:
    """Return P*: the dual objective of the decomposition solver at a small tolerance, a lower bound of every P."""
    return -solve(make_dual(problem, model), tol=_OPTIMUM_TOL).certificate.W


def make_dual(problem: Problem, model: Model) -> KernelDual:
    """Return the dual of a model; an embedded bias is a constant in the kernel."""
    intercept = model.bias == "free"
    kernel = problem.kernel if intercept else problem.kernel + 1.0
    options = {"squared": model.is_squared, "intercept": intercept}
    if problem.epsilon is None:
        return KernelDual(QuadraticProgram.c_svc(problem.y, problem.C, **options), problem.X, kernel)
    return KernelDual(QuadraticProgram.svr(problem.y, problem.C, problem.epsilon, **options), problem.X, kernel)


# ---- the algorithms


def list_algorithms(problem: Problem, mode: str | None) -> Iterator[tuple[Model, str, Callable[[], _Run]]]:
    """Yield (model, name, prepare): `prepare()` compiles and returns a function (tol, time_limit) -> `RunResult`."""
    loss = "hinge" if problem.epsilon is None else "epsilon_insensitive"
    free, embedded, squared = Model(loss, "free"), Model(loss, "embedded"), Model(f"squared_{loss}", "embedded")

    def algorithm(model: Model, name: str, prepare: Callable[..., _Run], *arguments: str):
        return model, name, functools.partial(prepare, problem, model, mode, *arguments)

    for info in list_solvers("dual"):
        yield algorithm(free, info.name, _prepare_dual, info.name)
    yield algorithm(embedded, "smo", _prepare_dual, "smo")
    for model in (free, embedded):
        yield algorithm(model, LAGRANGIAN, _prepare_lagrangian)
    if problem.is_linear:
        yield algorithm(embedded, "adagrad on the primal", _prepare_primal, "adagrad")
        yield algorithm(embedded, "stochastic-subgradient", _prepare_primal, "stochastic-subgradient")
        yield algorithm(embedded, "qp on the primal", _prepare_primal, "qp")
        yield algorithm(squared, "gradient-descent", _prepare_primal, "gradient-descent")
        yield algorithm(embedded, "liblinear", _prepare_liblinear)
    if problem.epsilon is None:
        yield algorithm(embedded, "perceptron" if problem.is_linear else "kernel-perceptron", _prepare_perceptron)
    yield algorithm(free, "libsvm", _prepare_libsvm)


def _run_fields(solution: Any) -> dict[str, Any]:
    """Return the fields of a result that every solution has."""
    certificate = solution.certificate
    fields = {"gap": certificate.gap, "infeasibility": certificate.infeasibility}
    return fields | {"iterations": solution.n_iter, "stopped": solution.stopped, "trace": solution.trace}


def _expansion_result(problem: Problem, kernel: Any, beta: Array, b: float, **fields: Any) -> RunResult:
    """Return the result of coefficients beta of the training points and an intercept."""
    support, evaluator = np.flatnonzero(beta), KernelEvaluator(kernel)

    def decide(Z: Array) -> Array:
        if not len(support):
            return np.full(len(Z), b)
        return evaluator.block(Z, problem.X[support]) @ beta[support] + b

    f = decide(problem.X)
    return RunResult(f, float(beta @ (f - b)), decide, vectors=len(support) / len(problem.y), **fields)


def _prepare_dual(problem: Problem, model: Model, mode: str | None, name: str) -> _Run:
    dual = make_dual(problem, model)
    return _dual_run(problem, dual, compile(dual, name, mode=mode), lambda solution: solution.feasible)


def _prepare_lagrangian(problem: Problem, model: Model, mode: str | None) -> _Run:
    dual = make_dual(problem, model)
    program = compile(relax(dual), "adagrad", mode=mode)
    return _dual_run(problem, dual, program, lambda solution: solution.certificate.z)


def _dual_run(problem: Problem, dual: KernelDual, program: Any, get_point: Callable[[Any], Array]) -> _Run:
    """Return a run that ends with a point of the dual."""

    def run(tol: float, time_limit: float) -> RunResult:
        solution = program.run(tol=tol, time_limit=time_limit)
        z, b = get_point(solution), solution.certificate.b
        beta = dual.program.weights(z)
        return _expansion_result(problem, dual.kernel, beta, 0.0 if b is None else b, z=z, **_run_fields(solution))

    return run


def _prepare_primal(problem: Problem, model: Model, mode: str | None, name: str) -> _Run:
    options: dict[str, Any] = {} if problem.epsilon is None else {"epsilon": problem.epsilon}
    loss: Any = model.loss
    bias: Any = model.bias
    risk = PrimalRisk(problem.X, problem.y, problem.C, loss, bias=bias, **options)
    program = compile(risk, name, mode=mode)

    def run(tol: float, time_limit: float) -> RunResult:
        solution = program.run(tol=tol, time_limit=time_limit)
        v = solution.w

        def decide(Z: Array) -> Array:
            return risk.decision(Z, v)

        return RunResult(decide(problem.X), float(v @ v), decide, **_run_fields(solution))

    return run


def _prepare_perceptron(problem: Problem, model: Model, mode: str | None) -> _Run:
    """Prepare a perceptron: its multipliers count its mistakes, and its bias is a weight."""
    kernel = None if problem.is_linear else problem.kernel
    solver = (Perceptron if kernel is None else KernelPerceptron)(prove=False)
    program = compile(PerceptronRisk(problem.X, problem.y, kernel=kernel), solver, mode=mode)

    def run(tol: float, time_limit: float) -> RunResult:
        solution: Any = program.run(tol=tol, time_limit=time_limit)
        z = solution.certificate.lam * problem.y
        return _expansion_result(problem, problem.kernel + 1.0, z, 0.0, z=z, **_run_fields(solution))

    return run


def _prepare_liblinear(problem: Problem, model: Model, mode: str | None) -> _Run:
    def run(tol: float, time_limit: float) -> RunResult:
        shared = {"C": problem.C, "tol": tol, "max_iter": _LIBLINEAR_ITERATIONS, "random_state": 0}
        if problem.epsilon is None:
            peer = sklearn.svm.LinearSVC(loss="hinge", **shared).fit(problem.X, problem.y)
        else:
            peer = sklearn.svm.LinearSVR(epsilon=problem.epsilon, **shared).fit(problem.X, problem.y)
        squared_norm = float(np.sum(peer.coef_**2) + np.sum(peer.intercept_**2))
        decide = _decision_function(problem, peer)
        iterations = int(np.max(peer.n_iter_))
        return RunResult(decide(problem.X), squared_norm, decide, infeasibility=0.0, iterations=iterations)

    return run


def _prepare_libsvm(problem: Problem, model: Model, mode: str | None) -> _Run:
    kernel, dual = problem.kernel, make_dual(problem, model)
    named: dict[str, Any] = {"kernel": "linear"}
    if isinstance(kernel, RBF):
        sigma: Any = kernel.sigma  # a number, not a graph or widths of features
        named = {"kernel": "rbf", "gamma": 1 / (2 * sigma**2)}

    def run(tol: float, time_limit: float) -> RunResult:
        shared = {"C": problem.C, "tol": tol, **named}
        if problem.epsilon is None:
            peer: Any = sklearn.svm.SVC(**shared).fit(problem.X, problem.y)
        else:
            peer = sklearn.svm.SVR(epsilon=problem.epsilon, **shared).fit(problem.X, problem.y)
        decide, b = _decision_function(problem, peer), peer.intercept_[0]
        beta = np.bincount(peer.support_, peer.dual_coef_[0], len(problem.y))
        z = beta if problem.epsilon is None else np.concatenate([np.maximum(beta, 0), np.minimum(beta, 0)])
        f = decide(problem.X)
        certificate = dual.program.certificate(f - b, z, tol=tol, is_psd=True)
        return RunResult(
            f,
            float(beta @ (f - b)),
            decide,
            gap=certificate.gap,
            infeasibility=certificate.infeasibility,
            vectors=len(peer.support_) / len(problem.y),
            iterations=int(np.max(peer.n_iter_)),
            z=z,
        )

    return run


def _decision_function(problem: Problem, peer: Any) -> Callable[[Array], Array]:
    return peer.decision_function if problem.epsilon is None else peer.predict
