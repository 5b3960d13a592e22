"""The l1 penalty with many features: problems of a few of them, by Newton's method, until no other feature matters.

At the optimum most u_j are 0, with |v_j| <= 1 for v = [X s]'z. A working set has the features with u_j != 0 and those
whose |v_j| exceeds 1 by most, in all twice as many as there were u_j != 0. Its problem is solved from where u is, so
that P falls, to a share of the largest violation; one product with X' tells which features come next (Massias, Gramfort
and Salmon, Celer: a fast solver for the lasso with dual extrapolation, 2018).
"""

import numpy as np
import scipy.sparse

from symsvm.linear.linear_problem import LinearProblem, slopes
from symsvm.linear.rows import Rows
from symsvm.linear.sparse_weights import proximal_newton, violations

__all__ = ["working_sets"]

FIRST = 100  # features of the first set
MOST = 2000  # features up to which the quadratic model of a set is formed
SHARE = 0.1  # of the largest violation, to which a set's problem is solved
STEPS = 10  # of Newton's method on one set, between two looks at the whole problem


def _columns(rows, S):
    """The rows with the features S alone."""
    if not rows.sparse:
        return Rows(rows.X[:, S], rows.s)
    values, points, begins = rows.columns
    first, sizes = begins[S].astype("int64"), (begins[S + 1] - begins[S]).astype("int64")
    ends = np.append(0, np.cumsum(sizes))
    where = np.arange(ends[-1]) + np.repeat(first - ends[:-1], sizes)
    X = scipy.sparse.csc_matrix((values[where], points[where].astype("int32"), ends), (rows.n, len(S)))
    return Rows(X.tocsr(), rows.s)


def _chosen(u, worse):
    """The features with u_j != 0, and the ones that are worst off."""
    support = np.flatnonzero(u)
    new = np.flatnonzero((u == 0) & (worse > 0))
    size = max(FIRST, len(support))
    if len(new) > size:
        new = new[np.argpartition(worse[new], -size)[-size:]]
    return np.sort(np.concatenate([support, new]))


def working_sets(problem, u):
    """Yield (Newton steps so far, u, z, f) until rounding leaves no step that helps, or a set is too large."""
    rows, reg = problem.rows, problem.reg
    u, z, psi = u.copy(), np.empty(rows.n), np.empty(rows.n)
    f, done, least, idle = rows.product(u), 0, np.inf, 0
    while True:
        slopes(problem.t - f, z, psi, *problem.parts)
        yield done, u.copy(), z.copy(), f
        worse = violations(u, rows.transposed(z), reg)
        worst = worse.max()
        idle, least = 0 if worst < 0.9 * least else idle + 1, min(least, worst)
        S = _chosen(u[:-1], worse[:-1])
        if worst == 0 or idle >= 10 or not 0 < len(S) <= MOST:
            return
        options = {"loss": problem.loss, "penalty": "l1", "epsilon": problem.epsilon, "free": problem.free}
        part = LinearProblem(_columns(rows, S), problem.t, problem.C, **options)
        both = np.append(S, rows.d)
        for steps, x, y, _ in proximal_newton(part, u[both]):
            near = steps and violations(x, part.rows.transposed(y), part.reg).max() <= SHARE * worst
            if near or steps >= STEPS:
                break
        u[both] = x
        f = rows.product(u)
        done += max(steps, 1)
