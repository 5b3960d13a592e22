"""The interior-point method of Clarabel for quadratic programs, which knows nothing of support vector machines.

minimise 1/2 v.Pv + q.v    subject to    G v <= h,    A v = b
"""

import time
from dataclasses import dataclass

import numpy as np

from symsvm.solvers.program import Info, traced

__all__ = ["Found", "interior_point", "only_look", "reason"]


@dataclass(frozen=True)
class Found:
    """What the interior-point method returned.

    Attributes
    ----------
    v, mu : the point, and the multipliers of G v <= h.
    stopped : "tol", "infeasible", "max_iter", "time_limit" or "stalled".
    n_iter : how many factorisations it took.
    """

    v: np.ndarray
    mu: np.ndarray
    stopped: str
    n_iter: int


def interior_point(P, q, G, h, A=None, b=(), *, max_iter=None, time_limit=None):
    """minimise 1/2 v.Pv + q.v subject to G v <= h and A v = b, by Clarabel; returns a `Found`.

    Matrices may be sparse.
    """
    try:
        import clarabel
    except ImportError:
        raise ImportError("the solver 'qp' needs Clarabel: pip install symsvm[qp].") from None
    from scipy import sparse

    A = np.zeros((0, len(q))) if A is None else A
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    settings.max_iter = 200 if max_iter is None else max(1, min(max_iter, 10_000))
    if time_limit is not None:
        settings.time_limit = time_limit
    equal, below = len(b), len(h)
    rows = sparse.vstack([sparse.csc_matrix(A), sparse.csc_matrix(G)], format="csc")
    cones = [clarabel.ZeroConeT(equal)] * bool(equal) + [clarabel.NonnegativeConeT(below)] * bool(below)
    upper, limits = sparse.triu(sparse.csc_matrix(P), format="csc"), np.concatenate([b, h])
    found = clarabel.DefaultSolver(upper, np.asarray(q, dtype="float64"), rows, limits, cones, settings).solve()
    words = {"Solved": "tol", "AlmostSolved": "tol", "PrimalInfeasible": "infeasible", "MaxIterations": "max_iter"}
    words |= {"AlmostPrimalInfeasible": "infeasible", "MaxTime": "time_limit"}
    word = words.get(str(found.status), "stalled")
    if str(found.status).startswith("Almost"):  # also where a limit came first
        late = time_limit is not None and found.solve_time >= time_limit
        word = "time_limit" if late else "max_iter" if found.iterations >= settings.max_iter else word
    return Found(np.array(found.x), np.array(found.z)[equal:], word, int(found.iterations))


def reason(found, certificate):
    """Why it stopped; a point that the method calls solved and the certificate does not has stalled."""
    if certificate.status in ("optimal", "stationary"):
        return "tol"
    return "stalled" if found.stopped == "tol" else found.stopped


def only_look(found, certificate, began):
    """The trace of a run that is looked at once, at its end."""
    return traced(
        [Info(found.n_iter, time.perf_counter() - began, certificate.W, certificate.violation, certificate.gap)]
    )
