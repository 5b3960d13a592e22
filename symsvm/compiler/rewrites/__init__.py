"""The passes, each a registered PyTensor rewrite: loops to sums, sums to products of matrices, quadratic forms, tiles.

`symsvm.compiler.lifting` registers and runs them. Only the compiler and the explanation of its steps import from here.
"""

__all__ = []
