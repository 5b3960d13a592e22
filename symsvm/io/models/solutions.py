"""Solutions: what a fitted estimator keeps of its problems (certificate, trace, how they ended), to a file and back."""

import functools
from dataclasses import fields

import numpy as np

from symsvm.linear.linear_solution import LinearSolution
from symsvm.objectives.certificate import Certificate
from symsvm.solvers.solution import Solution

__all__ = ["kept", "restored"]

_FIELDS = tuple(field.name for field in fields(Certificate))


def kept(model):
    """A dict for each problem; the dual vectors are in it where the next fit begins at them."""
    return [_kept(solution, getattr(model, "warm_start", False)) for solution in model.solutions_]


def _kept(solution, whole):
    certificate = {name: getattr(solution.certificate, name) for name in _FIELDS}
    state = {"certificate": certificate, "trace": dict(solution.trace)}
    state |= {"stopped": solution.stopped, "n_iter": solution.n_iter}
    if isinstance(solution, LinearSolution):
        state |= {"algorithm": solution.algorithm, "s": float(solution.s)}
        state |= {name: getattr(solution, name) for name in ("w", "b", "dual", "C") if whole}
    return state


def restored(model, states):
    """The solutions of a model, from what `kept` returned; without the dual vector lam of a kernel machine."""
    return [_restored(model, i, state) for i, state in enumerate(states)]


def _restored(model, i, state):
    if set(state["certificate"]) != set(_FIELDS) or not isinstance(state["trace"], dict):
        raise ValueError(f"the certificate of problem {i} is incomplete")
    certificate = Certificate(**state["certificate"])
    ended = {name: state[name] for name in ("stopped", "n_iter", "trace")}
    ended["certify"] = functools.partial(_same, certificate)
    if hasattr(model, "support_"):
        return Solution(lam=np.empty(0), b=certificate.b, feasible=np.empty(0), **ended)
    weights = {name: state[name] for name in ("w", "b", "dual", "C") if name in state}
    if not weights:
        weights = {"w": np.atleast_2d(model.coef_)[i], "b": model.intercept_[i] / (state["s"] or 1.0), "dual": None}
    return LinearSolution(**weights, algorithm=state["algorithm"], s=state["s"], **ended)


def _same(value):
    return value
