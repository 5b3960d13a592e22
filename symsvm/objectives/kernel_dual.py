"""KernelDual: any of the duals, over points and a kernel.

minimise 1/2 sum_ij z_i z_j K(x_i, x_j) + 1/2 sum_i D_i z_i^2 + p.z    subject to the bounds and totals of the program
"""

import functools

import numpy as np
import pytensor
import pytensor.tensor as pt

from symsvm._lib.validation import points
from symsvm.kernels import Kernel
from symsvm.objectives.objective import Objective
from symsvm.objectives.quadratic_program import QuadraticProgram
from symsvm.objectives.sums import each, sum_over

__all__ = ["KernelDual"]


class KernelDual(Objective):
    """A `QuadraticProgram` over the points X and a kernel; every solver takes it.

    Parameters
    ----------
    program : a `QuadraticProgram`, such as `csvc(y, C)` or `svr(y, C, epsilon)`.
    X : the points (m, d), dense or a CSR matrix (which only `Decomposition` reads).
    kernel : a `Kernel`.
    is_convex : whether K is positive semi-definite, by default as the kernel says.

    The variable is z = y lam for a classifier, alpha - alpha' for a regression (two variables a point, in this order).

    >>> from symsvm.kernels import Linear
    >>> from symsvm.objectives import QuadraticProgram
    >>> X, y = np.array([[-1.0], [0.5], [2.0]]), np.array([-1.0, 1.0, 1.0])
    >>> KernelDual(QuadraticProgram.c_svc(y, C=10.0), X, Linear())
    KernelDual(3 variables, 3 points, Linear())
    """

    problem = "dual"

    def __init__(self, program, X, kernel, *, is_convex=None):
        if not isinstance(program, QuadraticProgram):
            raise TypeError(
                f"program must be a QuadraticProgram such as QuadraticProgram.c_svc(y, C), got {program!r}."
            )
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a symsvm kernel, such as RBF(sigma=1.0), got {kernel!r}.")
        X = sparse_points(X) if hasattr(X, "tocsr") else points(X)
        kernel.check_points(X)
        if X.shape[0] != program.m:
            raise ValueError(
                f"X must have one row for each of the {program.m} points of the program, got {X.shape[0]}."
            )
        self.program, self.X, self.kernel = program, X, kernel
        self.is_convex = kernel.is_psd if is_convex is None else is_convex

    @property
    def parts(self):
        """Graphs to evaluate before `dual`: none, all is here."""
        return []

    def dual(self):
        """The problem itself, and the factor of z in the variable: 1."""
        return self, 1.0

    @functools.cached_property
    def variable(self):
        """z, a shared variable whose value is where a run starts."""
        return pytensor.shared(self.program.start(), name="z")

    @functools.cached_property
    def _symbols(self):
        """X, p, D and the kernel with its numbers in shared variables."""
        if hasattr(self.X, "tocsr"):
            raise TypeError("graphs over sparse points are not supported: use Decomposition(), or X.toarray().")
        qp = self.program
        vectors = self._shared(self.X, "X"), self._shared(qp.p, "p"), self._shared(qp.diagonal, "D")
        lifted = self.kernel.lift(lambda name, value: self._shared(np.asarray(value, dtype="float64"), name))
        return *vectors, lifted

    @functools.cached_property
    def value(self):
        """The graph of the objective, a sum inside a sum."""
        qp, z = self.program, self.variable
        X, p, D, kernel = self._symbols
        beta = z if qp.n == qp.m else z.reshape((qp.n // qp.m, qp.m)).sum(axis=0)

        def inner(x_i):
            return sum_over(lambda beta_j, x_j: beta_j * kernel.checked_pair(x_i, x_j), beta, X)

        quadratic = sum_over(lambda beta_i, x_i: beta_i * inner(x_i), beta, X) + (D * z**2).sum()
        return 0.5 * quadratic + (p * z).sum()

    @functools.cached_property
    def row(self):
        """(i, the graph of row i of K + D), for the variables that stand for the same point the same row of K."""
        X, _, D, kernel = self._symbols
        i, copies = pt.lscalar("i"), self.program.n // self.program.m
        K_i = each(lambda x: kernel.checked_pair(X[i % X.shape[0]], x), X)
        K_i = K_i if copies == 1 else pt.concatenate([K_i] * copies)
        return i, pt.inc_subtensor(K_i[i], D[i])

    @functools.cached_property
    def lower(self):
        """The graph of the lower bounds."""
        return self._shared(self.program.lower, "lower")

    @functools.cached_property
    def upper(self):
        """The graph of the upper bounds."""
        return self._shared(self.program.upper, "upper")

    @functools.cached_property
    def equality(self):
        """(A, c): a row of ones and zeros for each group, and the totals; None without groups."""
        groups = len(self.program.total)
        if not groups:
            return None
        A = (self.program.group == np.arange(groups)[:, None]).astype("float64")
        A = pytensor.shared(A, name="A", shape=(groups, None))
        return A, pytensor.shared(self.program.total, name="c", shape=(groups,))

    @staticmethod
    def _shared(value, name):
        return pytensor.shared(value, name=name)

    def certificate(self, lam, W, g, lower, upper, equality, *, tol):
        """Certify z with primal, dual and gap: K z follows from the gradient, g = K z + D z + p."""
        qp = self.program
        Kz = (np.asarray(g, dtype="float64") - qp.diagonal * lam - qp.p)[: qp.m]
        return qp.certificate(Kz, lam, tol=tol, is_psd=self.is_convex)

    def __repr__(self):
        return f"KernelDual({self.program.n} variables, {self.program.m} points, {self.kernel!r})"


def sparse_points(X):
    """Return a sparse matrix of points as CSR in float64, finite."""
    X = X.tocsr().astype("float64")
    if not np.isfinite(X.data).all():
        raise ValueError("X must be finite.")
    X.sum_duplicates()
    return X
