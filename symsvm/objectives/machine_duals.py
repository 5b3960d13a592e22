"""The duals of the estimators in symbols: what `SVC`, `SVR` and the others compile and solve.

Inputs are the points X, the labels or targets y, and for each point the penalty C of its slack or its weight; a fit
gives them values. For a classifier lam_i is the multiplier of point i. For a regression lam = (alpha, alpha') and
beta = alpha - alpha'.
"""

# PyTensor declares elementwise functions (pt.gt, ...) without a return type.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportOptionalOperand=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytensor.tensor as pt

from symsvm.objectives import dual
from symsvm.objectives.objective import Objective

if TYPE_CHECKING:
    from symsvm._lib.types import Graph
    from symsvm.kernels import Kernel

__all__ = ["c_svc_dual", "nu_svc_dual", "nu_svr_dual", "one_class_dual", "svr_dual"]


def c_svc_dual(kernel: Kernel, *, intercept: bool = True) -> Objective:
    """Return the dual of the C-SVC (Eq. 21); without an intercept, or with one inside the kernel, it has no equality.

    >>> from symsvm.kernels import Linear
    >>> c_svc_dual(Linear()), c_svc_dual(Linear(), intercept=False)
    (CSVC(W of lam, 0 <= lam <= C, a.lam = 0), Objective(W of lam, 0 <= lam <= C))
    """
    lam, X, y, C = _symbols("C")
    if intercept:
        return dual.CSVC(lam, X, y, C, kernel)
    return Objective(dual.W(lam, X, y, dual.share_numbers(kernel)), lam, 0.0, C, is_convex=kernel.is_psd)


def nu_svc_dual(kernel: Kernel) -> Objective:
    """Return the dual of the nu-SVC: f_1 (Eq. 31), lam_i <= weight_i, both classes sum to nu / 2 times all weights.

    >>> from symsvm.kernels import Linear
    >>> nu_svc_dual(Linear())
    Objective(W of lam, 0 <= lam <= weight, a.lam = a graph)
    """
    lam, X, y, weight = _symbols("weight")
    half = pt.dscalar("nu") * weight.sum() / 2
    classes = pt.stack([pt.gt(y, 0), pt.lt(y, 0)]).astype("float64")
    W = dual.f1(lam, X, y, dual.share_numbers(kernel))
    return Objective(W, lam, 0.0, weight, (classes, pt.stack([half, half])), is_convex=kernel.is_psd)


def svr_dual(kernel: Kernel, *, intercept: bool = True) -> Objective:
    """Return the dual of epsilon-insensitive regression (Eq. 002:2.14).

        W = epsilon sum_i lam_i - y.beta + 1/2 sum_ij beta_i beta_j K(x_i, x_j)

    >>> from symsvm.kernels import Linear
    >>> svr_dual(Linear()).bounds[1].ndim
    1
    """
    lam, X, y, C = _symbols("C")
    beta, ones = _difference(lam, y), pt.ones_like(y)
    W = pt.dscalar("epsilon") * lam.sum() - (y * beta).sum() + _half_double_sum(beta, X, kernel)
    equality = (pt.concatenate([ones, -ones]), 0.0) if intercept else None
    return Objective(W, lam, 0.0, pt.concatenate([C, C]), equality, is_convex=kernel.is_psd)


def nu_svr_dual(kernel: Kernel) -> Objective:
    """Return the dual of the nu-SVR: as `svr_dual` without epsilon; alpha and alpha' each sum to nu / 2 times all C."""
    lam, X, y, C = _symbols("C")
    beta, ones, zeros = _difference(lam, y), pt.ones_like(y), pt.zeros_like(y)
    half = pt.dscalar("nu") * C.sum() / 2
    sides = pt.stack([pt.concatenate([ones, zeros]), pt.concatenate([zeros, ones])])
    W = -(y * beta).sum() + _half_double_sum(beta, X, kernel)
    upper = pt.concatenate([C, C])
    return Objective(W, lam, 0.0, upper, (sides, pt.stack([half, half])), is_convex=kernel.is_psd)


def one_class_dual(kernel: Kernel) -> Objective:
    """Return the dual of the one-class machine: lam_i <= weight_i, the sum of lam is nu times that of the weights.

    W = 1/2 sum_ij lam_i lam_j K(x_i, x_j)
    """
    lam, X, _, weight = _symbols("weight")
    equality = pt.ones_like(weight), pt.dscalar("nu") * weight.sum()
    return Objective(_half_double_sum(lam, X, kernel), lam, 0.0, weight, equality, is_convex=kernel.is_psd)


def _symbols(bound: str) -> tuple[Any, Any, Any, Any]:
    return pt.dvector("lam"), pt.dmatrix("X"), pt.dvector("y"), pt.dvector(bound)


def _difference(lam: Graph, y: Graph) -> Graph:
    """beta = alpha - alpha'."""
    m = y.shape[0]
    return lam[:m] - lam[m:]


def _half_double_sum(beta: Graph, X: Graph, kernel: Kernel) -> Graph:
    """1/2 sum_ij beta_i beta_j K(x_i, x_j)."""
    return 0.5 * dual.double_sum(beta, X, dual.share_numbers(kernel))
