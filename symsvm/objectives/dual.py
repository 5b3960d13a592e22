"""The duals of support vector machines over a kernel: the equations of the paper, `CSVC` and `KernelDual`.

The equations have a `sum_over` wherever the paper has a sum over training points: a reduce inside a reduce. That is the
clear way to write the problem; `symsvm.compiler.lifting` turns it into code that runs fast.
"""

# PyTensor declares elementwise functions (pt.switch, ...) without a return type, pt.concatenate with a wrong one.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytensor
import pytensor.tensor as pt

from symsvm._lib.validation import points
from symsvm.kernels.kernel_parameters import known_shape
from symsvm.objectives.argument_checks import check_kernel, check_labels
from symsvm.objectives.certificate import certify_svc
from symsvm.objectives.objective import Objective, shared_variables
from symsvm.objectives.quadratic_program import QuadraticProgram
from symsvm.objectives.sums import map_rows, sum_over

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike
    from pytensor.graph.basic import Variable

    from symsvm._lib.types import Array, Graph, Points, Scalar
    from symsvm.kernels import Kernel
    from symsvm.objectives.certificate import Certificate

__all__ = ["CSVC", "KernelDual", "W", "decision", "decisions", "double_sum", "f1", "f1i", "intercept", "share_numbers"]


def decision(x: Graph, lam: Graph, X: Graph, y: Graph, kernel: Kernel, b: Scalar = 0.0) -> Graph:
    """The decision function f(x) = sum_i y_i lam_i K(x, x_i) + b of one point (Eq. 28, 30).

    Its sign is the class (Eq. 002:1.22, 003:20, 003:26).
    """
    b = pt.as_tensor(b).astype(lam.dtype)
    return sum_over(lambda lam_i, y_i, x_i: lam_i * y_i * kernel.checked_pair(x, x_i), lam, y, X) + b


def decisions(Z: Graph, lam: Graph, X: Graph, y: Graph, kernel: Kernel, b: Scalar = 0.0) -> Graph:
    """The decision function of the rows of Z, f(z_i) for each i (Eq. 28, 30)."""
    return map_rows(lambda z: decision(z, lam, X, y, kernel, b), Z)


def f1i(x_i: Graph, lam: Graph, X: Graph, y: Graph, kernel: Kernel) -> Graph:
    """The inner sum f_1i = 1/2 sum_j lam_j y_j K(x_i, x_j) for one i (Eq. 32)."""
    return 0.5 * decision(x_i, lam, X, y, kernel)


def f1(lam: Graph, X: Graph, y: Graph, kernel: Kernel) -> Graph:
    """The double sum f_1 = 1/2 sum_ij lam_i lam_j y_i y_j K(x_i, x_j) = sum_i lam_i y_i f_1i (Eq. 12, 31).

    With the linear kernel it is half the squared norm of theta (Eq. 12).
    """
    return sum_over(lambda lam_i, y_i, x_i: lam_i * y_i * f1i(x_i, lam, X, y, kernel), lam, y, X)


def W(lam: Graph, X: Graph, y: Graph, kernel: Kernel) -> Graph:
    """The dual objective W = -sum_i lam_i + f_1, to be minimised; -W is the Lagrangian (Eq. 13, 15, 21, 25).

    Other documents maximise -W, without slack (Eq. 003:19) or with it (Eq. 002:1.15).
    """
    return -lam.sum() + f1(lam, X, y, kernel)


def intercept(lam: Graph, X: Graph, y: Graph, kernel: Kernel, C: Scalar | None = None) -> Graph:
    """The intercept b, the mean of y_i - sum_j y_j lam_j K(x_j, x_i) (Eq. 27, 29; Eq. 002:1.20, 002:1.21, 003:21).

    Without C the mean is over all m points, as Eq. 29 prints it. With C it is over the free support vectors,
    0 < lam_i < C, the only points for which y_i f(x_i) = 1 must hold (Eq. 27; Eq. 002:1.17, 002:1.18, 002:1.19, 003:6);
    without free ones, b is the midpoint of the interval that the others admit.
    """
    r = y - decisions(X, lam, X, y, kernel)
    if C is None:
        return r.mean()
    free = (lam > 0) & (lam < C)
    # Point i requires b >= r_i if its lam_i may increase y.lam, and b <= r_i if it may decrease it.
    up = pt.switch(y > 0, lam < C, lam > 0)
    low = pt.switch(y > 0, lam > 0, lam < C)
    middle = (pt.switch(up, r, -np.inf).max() + pt.switch(low, r, np.inf).min()) / 2
    return pt.switch(free.any(), pt.switch(free, r, 0).sum() / pt.maximum(free.sum(), 1), middle).astype(lam.dtype)


class KernelDual(Objective):
    """A `QuadraticProgram` over the points X and a kernel; every solver of duals takes it.

    ::

        minimise 1/2 sum_ij z_i z_j K(x_i, x_j) + 1/2 sum_i D_i z_i^2 + p.z
        subject to the bounds and totals of the program

    The variable is z = y lam for a classifier, alpha - alpha' for a regression (two variables per point, in this
    order).

    Parameters
    ----------
    program : QuadraticProgram
        The program, such as `QuadraticProgram.c_svc(y, C)` or `QuadraticProgram.svr(y, C, epsilon)`.
    X : array_like or CSR matrix
        The points (m, d); only `Decomposition` takes a CSR matrix.
    kernel : Kernel
        The kernel.
    is_convex : bool, optional
        Whether K is positive semi-definite; `kernel.is_psd` by default.

    Attributes
    ----------
    program, X, kernel, is_convex
        The arguments, checked.

    Examples
    --------
    >>> from symsvm.kernels import Linear
    >>> from symsvm.objectives import QuadraticProgram
    >>> X, y = np.array([[-1.0], [0.5], [2.0]]), np.array([-1.0, 1.0, 1.0])
    >>> KernelDual(QuadraticProgram.c_svc(y, C=10.0), X, Linear())
    KernelDual(3 variables, 3 points, Linear())
    """

    problem, kind = "dual", "z"

    def __init__(
        self, program: QuadraticProgram, X: ArrayLike | Points, kernel: Kernel, *, is_convex: bool | None = None
    ) -> None:
        if not isinstance(program, QuadraticProgram):
            raise TypeError(
                f"program must be a QuadraticProgram such as QuadraticProgram.c_svc(y, C), got {program!r}."
            )
        check_kernel(kernel)
        checked: Any = _sparse_points(X) if hasattr(X, "tocsr") else points(cast("ArrayLike", X))
        kernel.check_points(checked)
        if checked.shape[0] != program.m:
            raise ValueError(
                f"X must have one row for each of the {program.m} points of the program, got {checked.shape[0]}."
            )
        self.program, self.X, self.kernel = program, checked, kernel
        self.is_convex = kernel.is_psd if is_convex is None else is_convex

    @functools.cached_property
    def variable(self) -> Any:
        """The graph of z, a shared variable whose value is the start of a run."""
        return pytensor.shared(self.program.start(), name="z")

    @functools.cached_property
    def _symbols(self) -> tuple[Any, Any, Any, Kernel]:
        """X, p, D and the kernel with its numbers in shared variables."""
        if hasattr(self.X, "tocsr"):
            raise TypeError("graphs over sparse points are not supported: use Decomposition(), or X.toarray().")
        qp = self.program
        X, p, D = shared_variables(X=self.X, p=qp.p, D=qp.diagonal)
        return X, p, D, share_numbers(self.kernel)

    @functools.cached_property
    def value(self) -> Graph:
        """The graph of the objective, a sum inside a sum."""
        qp, z = self.program, self.variable
        X, p, D, kernel = self._symbols
        beta = z if qp.n == qp.m else z.reshape((qp.n // qp.m, -1)).sum(axis=0)
        quadratic = double_sum(beta, X, kernel) + (D * z**2).sum()
        return 0.5 * quadratic + (p * z).sum()

    @functools.cached_property
    def row(self) -> tuple[Graph, Graph]:
        """(i, the graph of row i of K + D); variables of the same point have the same row of K."""
        X, _, D, kernel = self._symbols
        i: Any = pt.lscalar("i")
        copies = self.program.n // self.program.m
        K_i: Any = map_rows(lambda x: kernel.checked_pair(X[i % X.shape[0]], x), X)
        K_i = K_i if copies == 1 else pt.concatenate([K_i] * copies)
        K_i = pt.inc_subtensor(K_i[i], D[i])
        return i, K_i

    @functools.cached_property
    def lower(self) -> Any:
        """The graph of the lower bounds."""
        return pytensor.shared(self.program.lower, name="lower")

    @functools.cached_property
    def upper(self) -> Any:
        """The graph of the upper bounds."""
        return pytensor.shared(self.program.upper, name="upper")

    @functools.cached_property
    def equality(self) -> tuple[Any, Any] | None:
        """(A, c): a row of ones and zeros for each group, and the totals; None without groups."""
        groups = len(self.program.total)
        if not groups:
            return None
        A = (self.program.group == np.arange(groups)[:, None]).astype("float64")
        A = pytensor.shared(A, name="A", shape=(groups, None))
        return A, pytensor.shared(self.program.total, name="c", shape=(groups,))

    def certificate(
        self, lam: Array, W: float, g: Array, lower: Any, upper: Any, equality: Any, *, tol: float
    ) -> Certificate:
        # With primal, dual and gap: K z follows from the gradient, g = K z + D z + p.
        qp = self.program
        Kz = (np.asarray(g, dtype="float64") - qp.diagonal * lam - qp.p)[: qp.m]
        return qp.certificate(Kz, lam, tol=tol, is_psd=self.is_convex)

    def __repr__(self) -> str:
        return f"KernelDual({self.program.n} variables, {self.program.m} points, {self.kernel!r})"


class CSVC(Objective):
    """The dual of the soft-margin classifier (Eq. 21).

    ::

        minimise W(lam) = -sum_i lam_i + 1/2 sum_ij lam_i lam_j y_i y_j K(x_i, x_j)
        subject to 0 <= lam_i <= C, y.lam = 0

    Parameters
    ----------
    lam : TensorVariable
        The multipliers (m,).
    X : TensorVariable
        The points (m, d).
    y : TensorVariable
        The labels -1 and +1 (m,).
    C : array_like or TensorVariable
        The upper bound, scalar or (m,).
    kernel : Kernel
        The kernel.

    Attributes
    ----------
    X, y, kernel
        The arguments.
    """

    problem = "dual"

    def __init__(self, lam: Variable, X: Variable, y: Variable, C: ArrayLike | Variable, kernel: Kernel) -> None:
        lam, X, y = cast("tuple[Graph, Graph, Graph]", (lam, X, y))
        kernel.check_features(known_shape(X)[1])
        lifted = share_numbers(kernel, lam.dtype)
        super().__init__(W(lam, X, y, lifted), lam, 0.0, C, (y, 0.0), is_convex=kernel.is_psd)
        self.X, self.y, self.kernel = X, y, kernel
        i: Any = pt.lscalar("i")
        self.row = i, y[i] * y * map_rows(lambda x: lifted.checked_pair(X[i], x), X)

    def check_constraints(self, bounds: Sequence[Array]) -> None:
        check_labels(bounds[2])  # in a run, since y may be its data

    def certificate(
        self, lam: Array, W: float, g: Array, lower: Any, upper: Any, equality: Any, *, tol: float
    ) -> Certificate:
        # With primal, dual and gap: K q follows from the gradient, g_i = y_i (K q)_i - 1.
        y = equality[0]
        return certify_svc(lam, y * (g + 1), y, upper, tol=tol, is_psd=self.is_convex)


def share_numbers(kernel: Kernel, dtype: str = "float64") -> Kernel:
    """Return the kernel with its numbers in shared variables: objectives that differ in them share a compilation."""
    return kernel.lift(lambda name, value: pytensor.shared(np.asarray(value, dtype=dtype), name=name))


def double_sum(beta: Graph, X: Graph, kernel: Kernel) -> Graph:
    """sum_ij beta_i beta_j K(x_i, x_j)."""

    def inner(x_i: Graph) -> Graph:
        return sum_over(lambda beta_j, x_j: beta_j * kernel.checked_pair(x_i, x_j), beta, X)

    return sum_over(lambda beta_i, x_i: beta_i * inner(x_i), beta, X)


def _sparse_points(X: Any) -> Points:
    """Return a sparse matrix of points as CSR in float64, finite."""
    X = X.tocsr().astype("float64")
    if not np.isfinite(X.data).all():
        raise ValueError("X must be finite.")
    X.sum_duplicates()
    return X
