"""ClassesProblem: the machine of Crammer and Singer, k classes in one problem, its dual, optimality and gap.

    (P)   minimise  1/2 sum_m |u_m|^2 + sum_i C_i max_m (e_im + f_im - f_i,y_i),      f_im = x_i.w_m + s b_m,

e_im = 1 for m != y_i, else 0. In the dual, u_m = sum_i z_im (x_i, s) and

    minimise  1/2 sum_m |u_m|^2 + sum_im e_im z_im    subject to    z_im <= C_i where m = y_i, else 0,  sum_m z_im = 0.

With G_im = e_im + f_im at u = u(z), the gap is a sum of terms that are at least 0,

    P - D = sum_i sum_m (c_im - z_im) (max_m G_im - G_im)            c_im the bound of z_im,

and z is optimal when max_m G_im <= G_im wherever z_im is below its bound; the violation is how far that fails.
"""

import numpy as np
from numba import njit

from symsvm.linear.linear_problem import Measure
from symsvm.linear.rows import FAST
from symsvm.objectives.certificate import Certificate

__all__ = ["ClassesProblem"]

_LOOP = {"cache": True, "nogil": True, **FAST}


@njit(**_LOOP)
def _scores(flat, dense, s, U, F):
    """F = [X s]U."""
    values, points, begins = flat
    last, k = U.shape[0] - 1, U.shape[1]
    for i in range(F.shape[0]):
        out = F[i]
        for m in range(k):
            out[m] = s * U[last, m]
        row = slice(begins[i], begins[i + 1])
        x, p = values[row], points if dense else points[row]
        for l in range(len(x)):
            v, at = float(x[l]), U[p[l]]
            for m in range(k):
                out[m] += v * at[m]


@njit(**_LOOP)
def _combined(flat, dense, s, Z, U):
    """U = [X s]'Z."""
    values, points, begins = flat
    last, k = U.shape[0] - 1, U.shape[1]
    U[:] = 0.0
    for i in range(Z.shape[0]):
        z, some = Z[i], False
        for m in range(k):
            some |= z[m] != 0
        if some:
            row = slice(begins[i], begins[i + 1])
            x, p = values[row], points if dense else points[row]
            for l in range(len(x)):
                v, at = float(x[l]), U[p[l]]
                for m in range(k):
                    at[m] += v * z[m]
            for m in range(k):
                U[last, m] += s * z[m]


@njit(**_LOOP)
def _assess(F, y, C, Z):
    """sum C_i max(...), sum e z, sum of the terms of the gap, and the largest violation, at F = [X s]u."""
    n, k = Z.shape
    loss = linear = gap = worst = 0.0
    for i in range(n):
        if C[i] == 0:
            continue
        top = F[i, y[i]]
        for m in range(k):
            top = max(top, F[i, m] + (0.0 if m == y[i] else 1.0))
        loss += C[i] * (top - F[i, y[i]])
        for m in range(k):
            bound, G = (C[i], F[i, m]) if m == y[i] else (0.0, F[i, m] + 1.0)
            if Z[i, m] < bound:
                gap += (bound - Z[i, m]) * (top - G)
                worst = max(worst, top - G)
            if m != y[i]:
                linear += Z[i, m]
    return loss, linear, gap, worst


class ClassesProblem:
    """The problem of Crammer and Singer; see the head of this file. y are classes 0 .. k - 1."""

    def __init__(self, rows, y, C, k):
        self.rows, self.k = rows, k
        self.y = np.ascontiguousarray(y, dtype="int64")
        self.C = np.array(np.broadcast_to(np.asarray(C, dtype="float64"), rows.n))
        self.bounds = np.zeros((rows.n, k))
        self.bounds[np.arange(rows.n), self.y] = self.C

    def combined(self, z, U=None):
        """u = [X s]'z (d + 1, k), in U if given."""
        U = np.empty((self.rows.d + 1, self.k)) if U is None else U
        _combined(self.rows.flat, not self.rows.sparse, self.rows.s, z, U)
        return U

    def scores(self, u, F=None):
        """f = [X s]u (n, k), in F if given."""
        F = np.empty((self.rows.n, self.k)) if F is None else F
        _scores(self.rows.flat, not self.rows.sparse, self.rows.s, u, F)
        return F

    def measure(self, u, z, *, f=None):
        """Measure z, with u = u(z). Return (Measure, z)."""
        loss, linear, gap, worst = _assess(self.scores(u) if f is None else f, self.y, self.C, z)
        half = 0.5 * float(np.einsum("ij,ij->", u, u))
        outside = max(0.0, float(np.max(z - self.bounds)), float(np.max(np.abs(z.sum(axis=1)))))
        return Measure(half + loss, -half - linear, gap, worst, outside), z

    def certificate(self, u, z, tol):
        """The `Certificate` of z in float64 from the data: W = -D, optimal if the measure reaches tol."""
        measure, z = self.measure(self.combined(z), z)
        rounding = 8 * np.finfo("float64").eps * self.k * float(np.abs(z).max())
        word = "optimal" if measure.reaches(tol) else "feasible"
        gap = measure.primal, measure.dual, measure.gap
        if not np.isfinite(measure.gap):
            word, gap = "diverged", (None, None, None)
        elif measure.infeasibility > rounding:
            word, gap = "infeasible", (None, None, None)
        b = u[-1].copy() if self.rows.s else None
        return Certificate(-measure.dual, measure.infeasibility, measure.violation, b, *gap, word, tol)
