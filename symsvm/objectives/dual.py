"""The dual of the support vector machine, written as the paper writes it: a reduce inside a reduce.

Wherever the paper has a sum over training points there is a `sum_over` here, which is a `reduce`. It is the right way
to write the problem; `symsvm.compiler.lifting` makes it the right way to run it.
"""

import numpy as np
import pytensor
import pytensor.tensor as pt

from symsvm.objectives.certificate import certify_svc
from symsvm.objectives.kernel_dual import KernelDual
from symsvm.objectives.objective import Objective
from symsvm.objectives.quadratic_program import QuadraticProgram
from symsvm.objectives.sums import each, sum_over

__all__ = ["CSVC", "W", "decision", "decisions", "f1", "f1i", "intercept"]


def decision(x, lam, X, y, kernel, b=0.0):
    """The decision function f(x) = sum_i y_i lam_i K(x, x_i) + b of one point (Eq. 28, 30).

    Its sign is the class (Eq. 002:1.22, 003:20, 003:26).
    """
    b = pt.as_tensor(b).astype(lam.dtype)
    return sum_over(lambda lam_i, y_i, x_i: lam_i * y_i * kernel.checked_pair(x, x_i), lam, y, X) + b


def decisions(Z, lam, X, y, kernel, b=0.0):
    """The decision function of the rows of Z, f(z_i) for each i (Eq. 28, 30)."""
    return each(lambda z: decision(z, lam, X, y, kernel, b), Z)


def f1i(x_i, lam, X, y, kernel):
    """The inner sum f_1i = 1/2 sum_j lam_j y_j K(x_i, x_j) for one i (Eq. 32)."""
    return 0.5 * decision(x_i, lam, X, y, kernel)


def f1(lam, X, y, kernel):
    """The double sum f_1 = 1/2 sum_ij lam_i lam_j y_i y_j K(x_i, x_j) = sum_i lam_i y_i f_1i (Eq. 12, 31).

    With the linear kernel it is 1/2 |theta|^2 (Eq. 12).
    """
    return sum_over(lambda lam_i, y_i, x_i: lam_i * y_i * f1i(x_i, lam, X, y, kernel), lam, y, X)


def W(lam, X, y, kernel):
    """The dual objective W = -sum_i lam_i + f_1, to be minimised; -W is the Lagrangian (Eq. 13, 15, 21, 25).

    Others maximise -W, without slack (Eq. 003:19) or with it (Eq. 002:1.15).
    """
    return -lam.sum() + f1(lam, X, y, kernel)


def intercept(lam, X, y, kernel, C=None):
    """The intercept b, the mean of y_i - sum_j y_j lam_j K(x_j, x_i) (Eq. 27, 29; Eq. 002:1.20, 002:1.21, 003:21).

    Without C the mean is over all m points, as Eq. 29 prints it. With C it is over the free support vectors,
    0 < lam_i < C, the only points for which y_i f(x_i) = 1 must hold (Eq. 27; Eq. 002:1.17, 002:1.18, 002:1.19, 003:6);
    where there are none, b is the middle of the interval that the others admit.
    """
    r = y - decisions(X, lam, X, y, kernel)
    if C is None:
        return r.mean()
    free = (lam > 0) & (lam < C)
    # The point i asks b >= r_i if it may raise y.lam, b <= r_i if it may lower it.
    up = pt.switch(y > 0, lam < C, lam > 0)
    low = pt.switch(y > 0, lam > 0, lam < C)
    middle = (pt.switch(up, r, -_INF).max() + pt.switch(low, r, _INF).min()) / 2
    return pt.switch(free.any(), pt.switch(free, r, 0).sum() / pt.maximum(free.sum(), 1), middle).astype(lam.dtype)


class CSVC(Objective):
    """The dual of the soft-margin classifier (Eq. 21).

        minimise W(lam) = -sum_i lam_i + 1/2 sum_ij lam_i lam_j y_i y_j K(x_i, x_j)
        subject to 0 <= lam_i <= C, y.lam = 0

    Parameters
    ----------
    lam, X, y : graphs of the multipliers (m,), the points (m, d) and the labels -1, +1 (m,).
    C : the upper bound, a number or a graph, scalar or (m,).
    kernel : a `Kernel`.
    """

    problem = "dual"

    def __init__(self, lam, X, y, C, kernel):
        # Numbers of the kernel in shared variables: objectives that differ in them alone share a compilation.
        lifted = kernel.lift(lambda name, value: pytensor.shared(np.asarray(value, dtype=lam.dtype), name=name))
        super().__init__(W(lam, X, y, lifted), lam, 0.0, C, (y, 0.0), is_convex=kernel.is_psd)
        self.X, self.y, self.kernel = X, y, kernel
        i = pt.lscalar("i")
        self.row = i, y[i] * y * each(lambda x: lifted.checked_pair(X[i], x), X)

    @property
    def parts(self):
        """Graphs to evaluate for `dual`: the points, the labels, C and what the kernel has of symbols."""
        return [self.X, self.y, self.upper, *self.kernel.symbols()]

    def dual(self, X, y, C, *hyper_parameters):
        """The same problem in numbers, over z = y lam; and y, by which z is multiplied to give lam."""
        return KernelDual(QuadraticProgram.c_svc(y, C), X, self.kernel.with_values(hyper_parameters)), y

    def certificate(self, lam, W, g, lower, upper, equality, *, tol):
        """Certify lam with primal, dual and gap: K q follows from the gradient, g_i = y_i (K q)_i - 1."""
        y = equality[0]
        _check_labels(y)  # known here first: y may be data of the run
        return certify_svc(lam, y * (g + 1), y, upper, tol=tol, is_psd=self.is_convex)


def _check_labels(y):
    if not np.isin(y, (-1.0, 1.0)).all():
        raise ValueError("y must hold the labels -1 and +1; symsvm.data.signs turns any two labels into them.")


_INF = float("inf")
