"""Contest: the algorithms on one problem, each run once, all judged by the primal objective of what they return.

    P = 1/2 |w|^2 + C sum_i loss(y_i, f(x_i))

f is what a solution predicts with, whatever it was found by: weights, multipliers or multipliers of multipliers. A
model is a loss and what becomes of the bias; algorithms for one model share an optimum P*, which the fast solver finds
at a tolerance that none of them is asked for.
"""

import functools
import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning

from symsvm.comparison.problems import Problem
from symsvm.kernels import RBF
from symsvm.objectives import KernelDual, PrimalRisk, csvc, svr
from symsvm.oracle import Oracle
from symsvm.solvers import list_solvers, relax, solve

__all__ = ["Entry", "Model", "contest"]


@dataclass(frozen=True)
class Model:
    """A loss ("hinge", "epsilon_insensitive" or the square of one) and a bias, "free" or "embedded"."""

    loss: str
    bias: str

    def __str__(self):
        return f"{self.loss.replace('_', ' ')}, {self.bias} bias"


@dataclass(frozen=True)
class Entry:
    """What one algorithm did with one problem.

    Attributes
    ----------
    problem, model, algorithm : who.
    P, excess : the primal objective, and (P - P*) / P*.
    gap, infeasibility : of its own certificate; nan where it has none.
    score : accuracy or R2 on the test set.
    vectors : the share of points that are support vectors; None for weights.
    iterations, seconds, stopped : of the run, without compilation.
    memory : the most that Python and NumPy held beside what there was, in the first second, in MB.
    trace : of the solution, None where there is none.
    decide : the decision function.
    z : the multipliers, None for weights.
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
    trace: dict | None = field(repr=False)
    decide: Callable = field(repr=False)
    z: np.ndarray | None = field(repr=False)


def contest(problem, *, algorithms=None, tol=1e-3, time_limit=10.0, mode=None):
    """Yield an `Entry` for each algorithm that suits the problem.

    Parameters
    ----------
    algorithms : the names of those to run, all by default.
    tol : what each is asked for; `time_limit` in seconds stops it before.
    mode : the backend of the algorithms that are graphs.
    """
    for model, algorithm, run in _contestants(problem, mode):
        if algorithms is not None and algorithm not in algorithms:
            continue
        yield _measured(problem, model, algorithm, functools.partial(run, tol=tol), time_limit)


def _contestants(problem, mode):
    """(model, algorithm, a function of tol and time_limit that returns a `_Found`)."""
    loss = "hinge" if problem.epsilon is None else "epsilon_insensitive"
    free, embedded, squared = Model(loss, "free"), Model(loss, "embedded"), Model(f"squared_{loss}", "embedded")
    for card in list_solvers("dual"):
        yield free, card.name, functools.partial(_by_dual, problem, free, card.name, mode)
    yield embedded, "smo", functools.partial(_by_dual, problem, embedded, "smo", mode)
    for model in (free, embedded):
        name = "adagrad on the Lagrangian dual"
        yield model, name, functools.partial(_by_relaxation, problem, model, mode)
    if problem.is_linear:
        yield embedded, "adagrad on the primal", functools.partial(_by_weights, problem, embedded, mode)
        yield squared, "gradient descent", functools.partial(_by_weights, problem, squared, mode)
        yield embedded, "liblinear", functools.partial(_by_liblinear, problem)
    yield free, "libsvm", functools.partial(_by_libsvm, problem)


@dataclass(frozen=True)
class _Found:
    """f on the training points, |w|^2, and the rest of what an `Entry` says."""

    f: np.ndarray
    norm: float
    decide: Callable
    gap: float = np.nan
    infeasibility: float = np.nan
    vectors: float | None = None
    iterations: int = 0
    stopped: str = ""
    trace: dict | None = None
    z: np.ndarray | None = None


def _measured(problem, model, algorithm, run, time_limit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a stop short of tol is in the table
        run(time_limit=0.0)  # compiles
        began = time.perf_counter()
        found = run(time_limit=time_limit)
        seconds = time.perf_counter() - began
        tracemalloc.start()  # not while the clock runs
        try:
            run(time_limit=min(1.0, time_limit))
            memory = tracemalloc.get_traced_memory()[1] / 2**20
        finally:
            tracemalloc.stop()
    P = _primal(problem, model, found.f, found.norm)
    return Entry(
        problem=problem,
        model=model,
        algorithm=algorithm,
        P=P,
        excess=P / _optimum(problem, model) - 1,
        gap=found.gap,
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


def _primal(problem, model, f, norm):
    """P of a machine that takes the values f on the training points."""
    if problem.epsilon is None:
        loss = np.maximum(0.0, 1 - problem.y * f)
    else:
        loss = np.maximum(0.0, np.abs(problem.y - f) - problem.epsilon)
    return float(0.5 * norm + problem.C * np.sum(loss**2 if model.loss.startswith("squared") else loss))


def _score(problem, f):
    if problem.epsilon is None:
        return float(np.mean(np.where(f >= 0, 1.0, -1.0) == problem.y_test))
    return float(1 - np.sum((problem.y_test - f) ** 2) / np.sum((problem.y_test - problem.y_test.mean()) ** 2))


# ---- how each one is run


def _dual(problem, model):
    """The dual of a model; an embedded bias is a constant in the kernel."""
    squared, intercept = model.loss.startswith("squared"), model.bias == "free"
    kernel = problem.kernel if intercept else problem.kernel + 1.0
    options = {"squared": squared, "intercept": intercept}
    if problem.epsilon is None:
        return KernelDual(csvc(problem.y, problem.C, **options), problem.X, kernel)
    return KernelDual(svr(problem.y, problem.C, problem.epsilon, **options), problem.X, kernel)


@functools.lru_cache(maxsize=32)
def _optimum(problem, model):
    """P* by the fast solver at a tolerance of 1e-9: its dual objective, which no P is below."""
    return -solve(_dual(problem, model), tol=1e-9).certificate.W


def _machine(problem, dual, z, b, **more):
    """What a point of a dual predicts with."""
    beta = dual.program.weights(z)
    support = np.flatnonzero(beta)
    oracle = Oracle(dual.kernel)

    def decide(Z):
        return oracle.block(Z, problem.X[support]) @ beta[support] + b

    f = decide(problem.X)
    share = len(support) / len(problem.y)
    return _Found(f, float(beta @ (f - b)), decide, vectors=share, z=z, **more)


def _by_dual(problem, model, name, mode, **limits):
    dual = _dual(problem, model)
    solution = solve(dual, name, mode=mode, **limits)
    certificate = solution.certificate
    return _machine(
        problem,
        dual,
        solution.feasible,
        0.0 if certificate.b is None else certificate.b,
        gap=certificate.gap,
        infeasibility=certificate.infeasibility,
        iterations=solution.n_iter,
        stopped=solution.stopped,
        trace=solution.trace,
    )


def _by_relaxation(problem, model, mode, **limits):
    dual = _dual(problem, model)
    solution = solve(relax(dual), "adagrad", mode=mode, **limits)
    certificate = solution.certificate
    return _machine(
        problem,
        dual,
        certificate.z,
        0.0 if certificate.b is None else certificate.b,
        gap=certificate.gap,
        infeasibility=certificate.infeasibility,
        iterations=solution.n_iter,
        stopped=solution.stopped,
        trace=solution.trace,
    )


def _by_weights(problem, model, mode, **limits):
    options = {} if problem.epsilon is None else {"epsilon": problem.epsilon}
    risk = PrimalRisk(problem.X, problem.y, problem.C, model.loss, bias=model.bias, **options)
    name = "gradient-descent" if risk.is_smooth else "adagrad"
    solution = solve(risk, name, mode=mode, **limits)
    v, certificate = solution.lam, solution.certificate
    more = {"gap": certificate.gap, "infeasibility": certificate.infeasibility, "trace": solution.trace}
    more |= {"iterations": solution.n_iter, "stopped": solution.stopped}
    return _Found(risk.decision(problem.X, v), float(v @ v), lambda Z: risk.decision(Z, v), **more)


def _by_liblinear(problem, *, tol, time_limit):
    shared = {"C": problem.C, "tol": tol, "max_iter": 100_000, "random_state": 0}
    if problem.epsilon is None:
        peer = sklearn.svm.LinearSVC(loss="hinge", **shared).fit(problem.X, problem.y)
    else:
        peer = sklearn.svm.LinearSVR(epsilon=problem.epsilon, **shared).fit(problem.X, problem.y)
    decide = peer.predict if problem.epsilon is not None else peer.decision_function
    norm = float(np.sum(peer.coef_**2) + np.sum(peer.intercept_**2))
    return _Found(decide(problem.X), norm, decide, infeasibility=0.0, iterations=int(np.max(peer.n_iter_)))


def _by_libsvm(problem, *, tol, time_limit):
    kernel = problem.kernel
    shared = {"C": problem.C, "tol": tol, "kernel": "linear"}
    if isinstance(kernel, RBF):
        shared |= {"kernel": "rbf", "gamma": 1 / (2 * kernel.sigma**2)}
    if problem.epsilon is None:
        peer = sklearn.svm.SVC(**shared).fit(problem.X, problem.y)
    else:
        peer = sklearn.svm.SVR(epsilon=problem.epsilon, **shared).fit(problem.X, problem.y)
    decide = peer.predict if problem.epsilon is not None else peer.decision_function
    dual = _dual(problem, Model("hinge", "free"))
    beta = np.bincount(peer.support_, peer.dual_coef_[0], len(problem.y))
    z = beta if problem.epsilon is None else np.concatenate([np.maximum(beta, 0), np.minimum(beta, 0)])
    f = decide(problem.X)
    certificate = dual.program.certificate(f - peer.intercept_[0], z, tol=tol, is_psd=True)
    more = {"gap": certificate.gap, "infeasibility": certificate.infeasibility, "stopped": "tol", "z": z}
    share = len(peer.support_) / len(problem.y)
    iterations = int(np.max(peer.n_iter_))
    return _Found(f, float(beta @ (f - peer.intercept_[0])), decide, vectors=share, iterations=iterations, **more)
