"""Kernels: an expression `pair(x, z)` for a pair of points defines a kernel; all else is derived from it (Eq. 14).

    k = RBF(sigma=0.5) + 0.1 * Linear() ** 2      # an algebra: +, *, a number + or *, an integer **
    k(X, Z)                                       # the graph of the Gram matrix, (m, n)
    k.diag(X)                                     # the graph of k(x_i, x_i), (m,)

A hyper-parameter is a number, a shared variable or any scalar graph; `pytensor.grad` differentiates with respect to it.
The widths of `RBF` and `Laplacian` may be vectors, a number for each feature.
Kernels follow scikit-learn's rules for parameters, so that `clone` and a grid over `kernel__sigma` work. The package
needs `_lib` and `graphs` only; every package from `objectives` on may import it.
"""

from symsvm.kernels.kernel import Kernel
from symsvm.kernels.named import RBF, Constant, Laplacian, Linear, Polynomial, Precomputed, Sigmoid, pair_kernel

__all__ = ["RBF", "Constant", "Kernel", "Laplacian", "Linear", "Polynomial", "Precomputed", "Sigmoid", "pair_kernel"]
