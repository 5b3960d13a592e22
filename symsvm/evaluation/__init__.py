"""Numbers from kernels: blocks and products of a kernel matrix that is never held as a whole.

`kernel_matrix` states what a solver asks of it, `local` computes it from points in memory. Below it are the kernel
matrices between two sets of points (`cross_matrix`), made by an `evaluator` of one kernel. Solvers, estimators and
everything after them may import it.
"""

from symsvm.evaluation.kernel_matrix import KernelMatrix
from symsvm.evaluation.local import LocalKernelMatrix
from symsvm.evaluation.spectrum import Mercer, mercer

__all__ = ["KernelMatrix", "LocalKernelMatrix", "Mercer", "mercer"]
