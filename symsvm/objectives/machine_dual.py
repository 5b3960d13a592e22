"""The dual of each machine in symbols, for `explain`; a `KernelDual` is the same problem over numbers.

    minimise W(lam)    subject to    0 <= lam <= upper    and the equalities of the machine

For a classifier lam_i is the multiplier of point i, and z_i = y_i lam_i the variable of its `QuadraticProgram`. For a
regression lam = (alpha, alpha'), z = (alpha, -alpha'). Points have the weight 1.
"""

# PyTensor declares elementwise functions (pt.gt, ...) without a return type.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportOptionalOperand=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt

from symsvm.objectives import dual
from symsvm.objectives.objective import Objective, shared_variables

if TYPE_CHECKING:
    from symsvm._lib.types import Graph
    from symsvm.kernels import Kernel

__all__ = ["MachineDual"]


class MachineDual(Objective):
    """The dual of a machine over symbols.

    Parameters
    ----------
    name : str
        The start of the repr, the machine and its variable: "SVR(W of lam".
    W, lam : TensorVariable
        The objective and its variable.
    upper : float
        The upper bound; the lower one is 0.
    kernel : Kernel
        The kernel, with its numbers.
    equality : tuple, optional
        (a, c) as for an `Objective`.
    sums : str
        The equality in words, for the repr.
    """

    def __init__(
        self, name: str, W: Graph, lam: Graph, upper: float, kernel: Kernel, equality: Any = None, sums: str = ""
    ) -> None:
        super().__init__(W, lam, 0.0, upper, equality, is_convex=kernel.is_psd)
        self.rows_overlap = False  # those of nu-SVC are the two classes
        self.kernel, self._text = kernel, f"{name}, 0 <= lam <= {upper:g}{sums and f', {sums}'})"

    def __repr__(self) -> str:
        return self._text

    @classmethod
    def c_svc(cls, kernel: Kernel, C: float, *, intercept: bool = True) -> Objective:
        """The dual of the C-SVC (Eq. 21); without an intercept, or with one inside the kernel, there is no equality.

        >>> from symsvm.kernels import Linear
        >>> MachineDual.c_svc(Linear(), 2.0), MachineDual.c_svc(Linear(), 2.0, intercept=False)
        (CSVC(W of lam, 0 <= lam <= 2, a.lam = 0), CSVC(W of lam, 0 <= lam <= 2))
        """
        lam, X, y = _symbols()
        if intercept:
            return dual.CSVC(lam, X, y, C, kernel)
        return cls("CSVC(W of lam", dual.W(lam, X, y, dual.share_numbers(kernel)), lam, C, kernel)

    @classmethod
    def nu_svc(cls, kernel: Kernel, nu: float) -> MachineDual:
        """The dual of the nu-SVC: f_1 (Eq. 31), lam_i <= 1, both classes sum to nu m / 2.

        >>> from symsvm.kernels import Linear
        >>> MachineDual.nu_svc(Linear(), 0.5)
        NuSVC(W of lam, 0 <= lam <= 1, sum of lam over each class = 0.25 m)
        """
        lam, X, y = _symbols()
        classes = pt.stack([pt.gt(y, 0), pt.lt(y, 0)]).astype("float64")
        equality = classes, _totals(nu / 2 * X.shape[0])
        W, sums = dual.f1(lam, X, y, dual.share_numbers(kernel)), f"sum of lam over each class = {nu / 2:g} m"
        return cls("NuSVC(W of lam", W, lam, 1.0, kernel, equality, sums)

    @classmethod
    def svr(cls, kernel: Kernel, C: float, epsilon: float, *, intercept: bool = True) -> MachineDual:
        """The dual of epsilon-insensitive regression (Eq. 002:2.14), beta = alpha - alpha'.

            W = epsilon sum_i lam_i - y.beta + 1/2 sum_ij beta_i beta_j K(x_i, x_j)

        >>> from symsvm.kernels import Linear
        >>> MachineDual.svr(Linear(), 2.0, 0.1)
        SVR(W of lam = (alpha, alpha'), 0 <= lam <= 2, sum of alpha = sum of alpha')
        """
        lam, X, y = _symbols()
        beta, ones = _difference(lam, y), pt.ones_like(y)
        (width,) = shared_variables(epsilon=np.asarray(epsilon, dtype="float64"))
        W = width * lam.sum() - (y * beta).sum() + _half_double_sum(beta, X, kernel)
        equality = (pt.concatenate([ones, -ones]), 0.0) if intercept else None
        return cls(_SVR, W, lam, C, kernel, equality, "sum of alpha = sum of alpha'" if intercept else "")

    @classmethod
    def nu_svr(cls, kernel: Kernel, C: float, nu: float) -> MachineDual:
        """The dual of the nu-SVR: as `svr` without epsilon, alpha and alpha' each sum to C nu m / 2.

        >>> from symsvm.kernels import Linear
        >>> MachineDual.nu_svr(Linear(), 2.0, 0.5)
        NuSVR(W of lam = (alpha, alpha'), 0 <= lam <= 2, sum of alpha = sum of alpha' = 0.5 m)
        """
        lam, X, y = _symbols()
        beta, ones, zeros = _difference(lam, y), pt.ones_like(y), pt.zeros_like(y)
        W = -(y * beta).sum() + _half_double_sum(beta, X, kernel)
        sides = pt.stack([pt.concatenate([ones, zeros]), pt.concatenate([zeros, ones])])
        sums = f"sum of alpha = sum of alpha' = {C * nu / 2:g} m"
        return cls(f"Nu{_SVR}", W, lam, C, kernel, (sides, _totals(C * nu / 2 * y.shape[0])), sums)

    @classmethod
    def one_class(cls, kernel: Kernel, nu: float) -> MachineDual:
        """The dual of the one-class machine: 1/2 sum_ij lam_i lam_j K(x_i, x_j), lam_i <= 1, the sum of lam is nu m.

        >>> from symsvm.kernels import Linear
        >>> MachineDual.one_class(Linear(), 0.5)
        OneClassSVM(W of lam, 0 <= lam <= 1, sum of lam = 0.5 m)
        """
        lam, X, _ = _symbols()
        equality = pt.ones_like(lam), nu * X.shape[0]
        W = _half_double_sum(lam, X, kernel)
        return cls("OneClassSVM(W of lam", W, lam, 1.0, kernel, equality, f"sum of lam = {nu:g} m")


_SVR = "SVR(W of lam = (alpha, alpha')"


def _symbols() -> tuple[Any, Any, Any]:
    return pt.dvector("lam"), pt.dmatrix("X"), pt.dvector("y")


def _difference(lam: Graph, y: Graph) -> Graph:
    """beta = alpha - alpha'."""
    m = y.shape[0]
    return lam[:m] - lam[m:]


def _half_double_sum(beta: Graph, X: Graph, kernel: Kernel) -> Graph:
    """1/2 sum_ij beta_i beta_j K(x_i, x_j)."""
    return 0.5 * dual.double_sum(beta, X, dual.share_numbers(kernel))


def _totals(half: Any) -> Any:
    return pt.stack([half, half])
