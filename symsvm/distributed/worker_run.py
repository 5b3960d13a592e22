"""What a worker holds of a run: the kernel's numbers for its points, and its part of the vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.solvers.decomposition.vectors import LocalVectors, largest

__all__ = ["WorkerMatrix", "WorkerRun"]


class WorkerMatrix:
    """The numbers of a kernel for the rows; columns come from elsewhere."""

    def __init__(self, kernel, X, mode, as_sparse, centres):
        self._as_sparse, self._centres, self._kernel, self._mode = as_sparse, centres, kernel, mode
        self._evaluators = {dtype: KernelEvaluator(kernel, dtype=dtype, mode=mode) for dtype in ("float64", "float32")}
        with np.errstate(over="ignore", invalid="ignore"):
            self._exact: Any = self._square(X)
            self._fast: Any = self._evaluators["float32"].like(self._exact, centres)

    def _square(self, X):
        X = X.astype("float64", copy=False)
        return self._evaluators["float64"].square(sparse.csr_matrix(X) if self._as_sparse else X)

    def columns(self, points, exact):
        """The matrix between the rows and these points."""
        with np.errstate(over="ignore", invalid="ignore"):
            columns: Any = self._square(points)
            if exact:
                return self._exact.across(columns)
            return self._fast.across(self._evaluators["float32"].like(columns, self._centres))


class _Columns:
    """The matrix of a run: its rows, and points that visit as columns 0, 1, ... of the next product."""

    def __init__(self, matrix, rows):
        self._matrix, self._rows, self._visitors, self._made = matrix, rows, None, {}
        self.m, self.entries = len(rows), np.zeros(2, "int64")  # in float32, and in float64

    def visit(self, points):
        """Let these points be the columns."""
        self._visitors, self._made = points, {}

    def product(self, q, rows, columns, out, *, exact):
        """Add sum_j K(x_i, z_j) q_j over the chosen j to an array."""
        if exact not in self._made:
            self._made[exact] = self._matrix.columns(self._visitors, exact)
        own = self._rows if rows is None else self._rows[rows]
        self.entries[int(exact)] += len(own) * len(columns)
        with np.errstate(over="ignore", invalid="ignore"):
            self._made[exact].matvec(q, own, columns, out)


class WorkerRun:
    """A part of the vectors of a run; indices are those of this part. What the coordinator needs is returned."""

    def __init__(self, program, matrix, rows):
        self.qp, self.matrix = program, _Columns(matrix, rows)
        own: Any = self.matrix
        self._vectors: Any = LocalVectors(program, own)
        self._saved = {}

    def put(self, z):
        """Go to another point; K z is not changed."""
        self._vectors.put(z)

    def move(self, variables, values):
        """Give some variables these values."""
        self._vectors.move(variables, values)

    def recompute(self, d, points, seconds):
        """K z = sum_j K(x_i, z_j) d_j in float64, within so many seconds; return whether there was time."""
        import time

        columns = self._columns(d, points)
        return self._vectors.recompute(d, columns, time.perf_counter() + seconds)

    def add(self, d, points, exact):
        """K z += sum_j K(x_i, z_j) d_j for the active points."""
        self._vectors.add(d, self._columns(d, points), exact=exact)

    def add_outside(self, d, points, inside, change, exact):
        """The same for the points that are not in `inside`, whose change is given; return their K z."""
        self._vectors.add_outside(d, self._columns(d, points), inside, change, exact=exact)
        return self._vectors.products(inside)

    def add_to_dropped(self, time, d, points, exact):
        """The same for the points that were dropped at a time."""
        self._vectors.add_to_dropped(time, d, self._columns(d, points), exact=exact)

    def write_products(self, points, values):
        """Write K z of some points."""
        self._vectors.write_products(points, values)

    def activate(self):
        """Let all variables take part."""
        self._vectors.activate()

    def shrink(self, least, most, margin):
        """Drop variables that are safely at a bound; return how many stay, their points, and how many were bounded."""
        self._vectors.shrink(least, most, margin)
        active = self._vectors.active
        return active.n_variables, active.n_points, active.n_bounded

    def save(self, token):
        """Keep the point under a token."""
        self._saved[token] = self._vectors.save()

    def restore(self, token):
        """Return to the point of a token."""
        self._vectors.restore(self._saved[token])

    def forget(self, token):
        """Forget the point of a token."""
        self._saved.pop(token, None)

    def survey(self):
        """Return the counts and extremes of the active variables, and whether K z is finite."""
        return tuple(self._vectors.survey()), self._vectors.is_finite()

    def gap(self, b):
        """Return the duality gap of the active variables."""
        return self._vectors.gap(b)

    def violators(self, least, most, floor):
        """The free variables and the candidates of both sides, each with its F: scores are computed from these."""
        free, up, _, low, _ = self._vectors.violators(least, most, floor)
        found = []
        for variables in (free, up, low):
            found += [variables.astype("int32"), self._vectors.gradient(variables)]
        return found

    def worst(self, b, size):
        """The active variables with the largest |F + b|, and these numbers."""
        vectors, qp = self._vectors, self.qp
        active = vectors.active.variables
        F = np.abs(vectors.F[active] + (b[qp.group[active]] if len(b) else 0.0))
        some = largest(F, size)
        return active[some], F[some]

    def active(self):
        """Return the active variables and their points."""
        return self._vectors.active.variables.astype("int32"), self._vectors.active.points.astype("int32")

    def gradient(self, variables):
        """Return F of some variables."""
        return self._vectors.gradient(variables)

    def products(self, points):
        """Return K z of some points."""
        return self._vectors.products(points)

    def largest_product(self):
        """Return the largest |(K z)_i|."""
        return self._vectors.largest_product()

    def _columns(self, d, points):
        self.matrix.visit(points)
        return np.arange(len(d))  # none if there are no points
