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
from sklearn.exceptions import ConvergenceWarning

from symsvm.inspection.comparison.contestants import Model, contestants, dual_of
from symsvm.inspection.comparison.problems import Problem
from symsvm.solvers import solve

__all__ = ["Entry", "contest"]


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
    memory : the most that Python and NumPy held beside what there was, in the first second, in MB; what libraries
        allocate by themselves is not seen.
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

    @property
    def optimum(self):
        """P* of the model."""
        return self.P / (1 + self.excess)


def contest(problem, *, algorithms=None, tol=1e-3, time_limit=10.0, mode=None):
    """Yield an `Entry` for each algorithm that suits the problem.

    Parameters
    ----------
    algorithms : the names of those to run, all by default.
    tol : what each is asked for; `time_limit` in seconds stops it before.
    mode : the backend of the algorithms that are graphs.
    """
    for model, algorithm, prepare in contestants(problem, mode):
        if algorithms is None or algorithm in algorithms:
            yield _measured(problem, model, algorithm, prepare, tol, time_limit)


def _measured(problem, model, algorithm, prepare, tol, time_limit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a stop short of tol is in the table
        run = functools.partial(prepare(), tol=tol)
        run(time_limit=0.0)  # compiles what is compiled when it is first needed
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


def _primal(problem, model, f, norm):
    """P of a machine that takes the values f on the training points."""
    if problem.epsilon is None:
        loss = np.maximum(0.0, 1 - problem.y * f)
    else:
        loss = np.maximum(0.0, np.abs(problem.y - f) - problem.epsilon)
    return float(0.5 * norm + problem.C * np.sum(loss**2 if model.is_squared else loss))


def _score(problem, f):
    if problem.epsilon is None:
        return float(np.mean(np.where(f >= 0, 1.0, -1.0) == problem.y_test))
    return float(1 - np.sum((problem.y_test - f) ** 2) / np.sum((problem.y_test - problem.y_test.mean()) ** 2))


@functools.lru_cache(maxsize=32)
def _optimum(problem, model):
    """P* by the fast solver at a tolerance of 1e-9: its dual objective, which no P is below."""
    return -solve(dual_of(problem, model), tol=1e-9).certificate.W
