"""The compiler: from sums as a paper writes them to compiled functions.

`lifting` runs the `rewrites` before differentiation, `ops` evaluates kernel matrices in tiles, `functions` compiles
graphs, and `step_functions` compiles an objective together with a solver. The compiler imports kernels and objectives;
evaluation, solvers and the packages that build on them import the compiler.
"""

from symsvm.compiler.functions import MODES, Compiled, function, grad, hoist, resolve_mode, value_and_grad
from symsvm.compiler.matvec import kernel_matvec

__all__ = ["MODES", "Compiled", "function", "grad", "hoist", "kernel_matvec", "resolve_mode", "value_and_grad"]
