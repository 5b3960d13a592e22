"""Support: the support vectors of a fitted machine, their coefficients and the bounds of these."""

from typing import NamedTuple

import numpy as np

from symsvm.inspection.plot.canvas import dense, machine_of, parameter

__all__ = ["Support", "support_of"]

# A coefficient this close to its bound, relative to it, is at the bound; one this small, relative to the largest, is 0.
_AT, _ZERO = 1e-6, 1e-6


class Support(NamedTuple):
    """Support vectors, one an entry.

    Attributes
    ----------
    vectors : (n, d), in the features that the estimator is given; None where they are not known.
    rows : their rows in X; None where X does not hold the training points.
    size : |q_i|, the largest over the problems of several classes.
    total : the sum of |q_i| over these problems.
    bound : C_i, in the units of size; NaN where it is not known, infinite for squared losses.
    side : the index of the class of each, or of the sign of its coefficient, -1 before +1.
    limit : what the bound is called.
    """

    vectors: np.ndarray | None
    rows: np.ndarray | None
    size: np.ndarray
    total: np.ndarray
    bound: np.ndarray
    side: np.ndarray
    limit: str = "$C$"

    @property
    def bounded(self):
        """Which are at their bound, lam_i = C_i."""
        return self.size >= self.bound * (1 - _AT)


def support_of(estimator, X=None):
    """The `Support` of a fitted estimator, of a pipeline or a search around one; None where there is none.

    X may hold the training points: they are recognised. A linear machine, which keeps no vectors, needs them.
    """
    machine, before = machine_of(estimator)
    if hasattr(machine, "dual_coef_") and hasattr(machine, "support_"):
        return _kernel_support(machine, before, X)
    solutions = getattr(machine, "solutions_", None)
    if solutions and X is not None and hasattr(solutions[0], "dual"):
        return _linear_support(machine, before, solutions, X)
    return None


def _kernel_support(machine, before, X):
    q = machine.dual_coef_
    q = np.asarray(q.toarray() if hasattr(q, "tocsr") else q, dtype="float64")
    size, rows = np.abs(q).max(axis=0, initial=0.0), np.asarray(machine.support_)
    vectors = machine.support_vectors_
    vectors = dense(vectors) if vectors.shape[0] and len(rows) else None
    if X is not None and _holds(X, rows, vectors, before, machine.shape_fit_):
        vectors = dense(X)[rows]
    else:
        rows = None
        if before is not None and vectors is not None:
            back = getattr(before, "inverse_transform", None)
            vectors = None if back is None else np.asarray(back(vectors))
    classes = getattr(machine, "classes_", ())
    several, limit = len(classes) > 1, "its bound" if parameter(machine, "C") is None else "$C$"
    side = np.repeat(np.arange(len(classes)), machine.n_support_) if several else (q[0] > 0).astype("int64")
    return Support(vectors, rows, size, np.abs(q).sum(axis=0), _bounds(machine, q, side), side, limit)


def _holds(X, rows, vectors, before, shape):
    """Whether X are the training points: as many, and the support vectors where they should be."""
    if X.shape[0] != shape[0] or vectors is None:
        return X.shape[0] == shape[0]
    there = before.transform(X) if before is not None else X
    there = dense(there)[rows]
    return there.shape == vectors.shape and np.allclose(there, vectors, rtol=1e-5, atol=1e-8)


def _bounds(machine, q, side):
    """The bound of each coefficient: from the programs that were solved, else C times the weight of the class."""
    solutions = getattr(machine, "solutions_", ())
    if solutions and all(getattr(s, "program", None) is not None for s in solutions):
        return _program_bounds(machine, solutions)
    C = parameter(machine, "C")
    if C is None:  # one class has the bound 1; dual_coef_ of nu-SVC is divided by rho, which nobody kept
        return np.full(q.shape[1], 1.0 if hasattr(machine, "offset_") else np.nan)
    weight = getattr(machine, "class_weight_", None)
    return np.full(q.shape[1], float(C)) * (1.0 if weight is None or not len(weight) else np.asarray(weight)[side])


def _program_bounds(machine, solutions):
    """With weights of samples: C_i of the variable that each coefficient comes from, scaled as the coefficient is."""
    coef = machine.decision_coef_
    bound = np.full(coef.shape, np.nan)
    for column, solution in enumerate(solutions):
        here = np.flatnonzero(coef[:, column])
        if getattr(machine, "multi_class", None) == "ovr" or len(solutions) == 1:
            here = here[np.argsort(machine.support_[here])]  # all but pairs keep the order of the points
        program = solution.program
        beta = program.weights(np.asarray(solution.lam))
        reach = np.fmax(np.abs(program.lower), np.abs(program.upper)).reshape(-1, program.m).max(axis=0)
        there = np.flatnonzero(beta)
        bound[here, column] = reach[there] * np.abs(coef[here, column] / beta[there])
    largest = np.abs(coef).argmax(axis=1)  # the problem whose coefficient is shown
    return bound[np.arange(len(coef)), largest]


def _linear_support(machine, before, solutions, X):
    there = dense(before.transform(X) if before is not None else X)
    duals = [np.asarray(s.dual) for s in solutions if s.dual is not None]
    if len(duals) < len(solutions) or any(len(z) != len(there) for z in duals):
        return None
    z = np.column_stack(duals)
    w = np.column_stack([s.w for s in solutions])
    if getattr(machine, "penalty", "l2") == "l2" and not _sums(there, z, w):
        return None  # other points than those of the fit
    size = np.abs(z).max(axis=1)
    rows = np.flatnonzero(size > _ZERO * size.max(initial=0.0))
    C = solutions[0].C
    squared = "squared" in getattr(machine, "loss", "")
    bound = np.full(len(there), np.inf if squared else np.nan) if squared or C is None else np.asarray(C) + 0 * size
    largest = z[np.arange(len(z)), np.abs(z).argmax(axis=1)]
    side = (largest[rows] > 0).astype("int64")
    return Support(dense(X)[rows], rows, size[rows], np.abs(z[rows]).sum(axis=1), bound[rows], side)


def _sums(X, z, w):
    """Whether w = sum_i z_i x_i, up to what a stopping rule leaves."""
    return np.linalg.norm(X.T @ z - w) <= 0.05 * np.linalg.norm(w)
