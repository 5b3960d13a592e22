"""SeparationProgram: passes of a perceptron, and the proof where none of them can succeed.

By Gordan's theorem either some theta has y_i <theta, x_i> > 0 for all i, or some lam >= 0 other than 0 has
sum_i lam_i y_i x_i = 0: a point in the convex hulls of both classes. A linear program says which.
"""

from dataclasses import replace

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import vectorize_graph
from scipy.optimize import linprog

from symsvm.compiler.functions import function
from symsvm.solvers.program import Program

__all__ = ["SeparationProgram", "hulls_meet"]


class SeparationProgram(Program):
    """A `PerceptronRisk` and a perceptron; see `compile`."""

    def __init__(self, objective, solver, *, dtype=None, **options):
        if dtype not in (None, "float64"):
            raise ValueError(f"{solver!r} counts its mistakes in float64: leave dtype out, got {dtype!r}.")
        super().__init__(objective, solver, **options)

    def run(self, start=None, **options):
        """Pass over the points until none is wrong, `max_iter` + 1 times at most; see `Program.run`.

        Where it ends without, the certificate holds a proof that nothing separates the classes, or says that something
        does; the linear program behind it is solved when the certificate is read.
        """
        solution = super().run(start, **options)
        if solution.stopped == "tol" or not self.solver.prove:
            return solution
        return replace(solution, certify=lambda: self._settled(solution.certificate))

    def _settled(self, certificate):
        proof = hulls_meet(self._signed())
        if proof is None or proof is False:
            return replace(certificate, separable=None if proof is None else True)
        return replace(certificate, status="infeasible", separable=False, proof=proof)

    def _signed(self):
        """y_i x_i, a row each; over a kernel the x_i that have its inner products."""
        i, row = self.objective.row
        A = np.asarray(function([], vectorize_graph(row, {i: pt.arange(self.objective.m)}), mode="FAST_COMPILE")())
        if self.objective.kernel is None:
            return A
        values, vectors = np.linalg.eigh((A + A.T) / 2)
        kept = values > 1e-12 * values[-1]
        return vectors[:, kept] * np.sqrt(values[kept])


def hulls_meet(A):
    """lam >= 0 of sum 1 with A'lam = 0, False if a linear program finds none, None if it cannot say.

    >>> hulls_meet(np.array([[1.0, 1.0], [-2.0, -1.0], [3.0, 1.0]])) is not False
    True
    """
    A = A.T / np.abs(A).max(initial=1e-300)
    m = A.shape[1]
    limits = np.r_[np.zeros(len(A)), 1.0]
    found = linprog(np.zeros(m), A_eq=np.vstack([A, np.ones(m)]), b_eq=limits, bounds=(0, None))
    if found.status == 2:
        return False
    proves = found.status == 0 and np.abs(A @ np.maximum(found.x, 0)).max() <= 1e-9
    return np.maximum(found.x, 0) if proves else None
