"""Contestants: how each algorithm is prepared for a problem, run, and turned into a decision function."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import sklearn.svm

from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.kernels import RBF
from symsvm.objectives import KernelDual, PerceptronRisk, PrimalRisk, QuadraticProgram
from symsvm.solvers import KernelPerceptron, Perceptron, compile, list_solvers, relax

__all__ = ["Found", "Model", "contestants", "dual_of"]


@dataclass(frozen=True)
class Model:
    """A loss ("hinge", "epsilon_insensitive" or the square of one) and a bias, "free" or "embedded"."""

    loss: str
    bias: str

    @property
    def is_squared(self):
        """Whether slacks are squared."""
        return self.loss.startswith("squared")

    def __str__(self):
        return f"{self.loss.replace('_', ' ')}, {self.bias} bias"


@dataclass(frozen=True)
class Found:
    """What a run found: f on the training points, |w|^2, the decision function, and what an `Entry` says besides."""

    f: np.ndarray
    norm: float
    decide: Callable
    gap: float | None = None
    infeasibility: float = np.nan
    vectors: float | None = None
    iterations: int = 0
    stopped: str = "tol"
    trace: dict | None = None
    z: np.ndarray | None = None


def contestants(problem, mode):
    """Yield (model, algorithm, prepare): `prepare()` compiles and returns a function (tol, time_limit) -> `Found`."""
    loss = "hinge" if problem.epsilon is None else "epsilon_insensitive"
    free, embedded, squared = Model(loss, "free"), Model(loss, "embedded"), Model(f"squared_{loss}", "embedded")

    def entry(model, algorithm, prepare, *arguments):
        return model, algorithm, functools.partial(prepare, problem, model, mode, *arguments)

    for info in list_solvers("dual"):
        yield entry(free, info.name, _by_dual, info.name)
    yield entry(embedded, "smo", _by_dual, "smo")
    for model in (free, embedded):
        yield entry(model, "adagrad on the Lagrangian dual", _by_relaxation)
    if problem.is_linear:
        yield entry(embedded, "adagrad on the primal", _by_weights, "adagrad")
        yield entry(embedded, "stochastic-subgradient", _by_weights, "stochastic-subgradient")
        yield entry(embedded, "qp on the primal", _by_weights, "qp")
        yield entry(squared, "gradient-descent", _by_weights, "gradient-descent")
        yield entry(embedded, "liblinear", _by_liblinear)
    if problem.epsilon is None:
        yield entry(embedded, "perceptron" if problem.is_linear else "kernel-perceptron", _by_mistakes)
    yield entry(free, "libsvm", _by_libsvm)


def dual_of(problem, model):
    """The dual of a model; an embedded bias is a constant in the kernel."""
    intercept = model.bias == "free"
    kernel = problem.kernel if intercept else problem.kernel + 1.0
    options = {"squared": model.is_squared, "intercept": intercept}
    if problem.epsilon is None:
        return KernelDual(QuadraticProgram.c_svc(problem.y, problem.C, **options), problem.X, kernel)
    return KernelDual(QuadraticProgram.svr(problem.y, problem.C, problem.epsilon, **options), problem.X, kernel)


def _run_of(solution):
    """What every solution says of its run."""
    certificate = solution.certificate
    names = {"gap": certificate.gap, "infeasibility": certificate.infeasibility}
    return names | {"iterations": solution.n_iter, "stopped": solution.stopped, "trace": solution.trace}


def _machine(problem, kernel, beta, b, **more):
    """What factors beta of the points and an intercept predict with."""
    support, oracle = np.flatnonzero(beta), KernelEvaluator(kernel)

    def decide(Z):
        if not len(support):
            return np.full(len(Z), b)
        return oracle.block(Z, problem.X[support]) @ beta[support] + b

    f = decide(problem.X)
    return Found(f, float(beta @ (f - b)), decide, vectors=len(support) / len(problem.y), **more)


def _by_dual(problem, model, mode, name):
    dual = dual_of(problem, model)
    return _by_point(problem, dual, compile(dual, name, mode=mode), lambda solution: solution.feasible)


def _by_relaxation(problem, model, mode):
    dual = dual_of(problem, model)
    program = compile(relax(dual), "adagrad", mode=mode)
    return _by_point(problem, dual, program, lambda solution: solution.certificate.z)


def _by_point(problem, dual, program, point):
    """A run that ends with a point of the dual."""

    def run(tol, time_limit):
        solution = program.run(tol=tol, time_limit=time_limit)
        z, b = point(solution), solution.certificate.b
        beta = dual.program.weights(z)
        return _machine(problem, dual.kernel, beta, 0.0 if b is None else b, z=z, **_run_of(solution))

    return run


def _by_weights(problem, model, mode, name):
    options = {} if problem.epsilon is None else {"epsilon": problem.epsilon}
    risk = PrimalRisk(problem.X, problem.y, problem.C, model.loss, bias=model.bias, **options)
    program = compile(risk, name, mode=mode)

    def run(tol, time_limit):
        solution = program.run(tol=tol, time_limit=time_limit)
        v = solution.lam
        return Found(risk.decision(problem.X, v), float(v @ v), lambda Z: risk.decision(Z, v), **_run_of(solution))

    return run


def _by_mistakes(problem, model, mode):
    """A perceptron: its multipliers are its mistakes, and the bias is a weight."""
    kernel = None if problem.is_linear else problem.kernel
    solver = (Perceptron if kernel is None else KernelPerceptron)(prove=False)
    program = compile(PerceptronRisk(problem.X, problem.y, kernel=kernel), solver, mode=mode)

    def run(tol, time_limit):
        solution = program.run(tol=tol, time_limit=time_limit)
        z = solution.certificate.lam * problem.y
        return _machine(problem, problem.kernel + 1.0, z, 0.0, z=z, **_run_of(solution))

    return run


def _by_liblinear(problem, model, mode):
    def run(tol, time_limit):
        shared = {"C": problem.C, "tol": tol, "max_iter": 100_000, "random_state": 0}
        if problem.epsilon is None:
            peer = sklearn.svm.LinearSVC(loss="hinge", **shared).fit(problem.X, problem.y)
        else:
            peer = sklearn.svm.LinearSVR(epsilon=problem.epsilon, **shared).fit(problem.X, problem.y)
        norm = float(np.sum(peer.coef_**2) + np.sum(peer.intercept_**2))
        decide = _decision(problem, peer)
        return Found(decide(problem.X), norm, decide, infeasibility=0.0, iterations=int(np.max(peer.n_iter_)))

    return run


def _by_libsvm(problem, model, mode):
    kernel, dual = problem.kernel, dual_of(problem, model)
    named = {"kernel": "rbf", "gamma": 1 / (2 * kernel.sigma**2)} if isinstance(kernel, RBF) else {"kernel": "linear"}

    def run(tol, time_limit):
        shared = {"C": problem.C, "tol": tol, **named}
        if problem.epsilon is None:
            peer = sklearn.svm.SVC(**shared).fit(problem.X, problem.y)
        else:
            peer = sklearn.svm.SVR(epsilon=problem.epsilon, **shared).fit(problem.X, problem.y)
        decide, b = _decision(problem, peer), peer.intercept_[0]
        beta = np.bincount(peer.support_, peer.dual_coef_[0], len(problem.y))
        z = beta if problem.epsilon is None else np.concatenate([np.maximum(beta, 0), np.minimum(beta, 0)])
        f = decide(problem.X)
        certificate = dual.program.certificate(f - b, z, tol=tol, is_psd=True)
        return Found(
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


def _decision(problem, peer):
    return peer.decision_function if problem.epsilon is None else peer.predict
