"""Ops over all pairs of points: a kernel matrix, its products and their gradients, computed in tiles.

`kernel_form` has the mathematics, `kernel_ops` the Ops, `tiles` the generated loops, and `numba_dispatch` and
`jax_dispatch` the backends. The rewrites, the rest of the compiler and evaluation import from here.
"""

from symsvm.compiler.ops.kernel_form import KernelForm, factor
from symsvm.compiler.ops.kernel_ops import KernelFeatures, KernelGram, KernelMatvec
from symsvm.compiler.ops.scalar_function import NotElementwise, ScalarFunction

__all__ = ["KernelFeatures", "KernelForm", "KernelGram", "KernelMatvec", "NotElementwise", "ScalarFunction", "factor"]
