"""Ops over all pairs of points, from an epilogue of sums over features; see `form` for the mathematics.

KernelMatvec and its gradients never hold more than a tile of the matrix of pairs.
"""

from symsvm.compiler.ops.form import Form, factor
from symsvm.compiler.ops.kernel_ops import KernelFeatures, KernelGram, KernelMatvec
from symsvm.compiler.ops.scalar_function import NotElementwise, ScalarFunction

__all__ = ["Form", "KernelFeatures", "KernelGram", "KernelMatvec", "NotElementwise", "ScalarFunction", "factor"]
