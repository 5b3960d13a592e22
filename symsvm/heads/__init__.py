"""Heads: what stands at the end of a network, in the place of softmax and cross-entropy.

`one_vs_rest`, `crammer_singer` and `weston_watkins` are losses of scores f (m, k) and classes y (m,). `kernel_machines`
are the decision values of exact kernel machines, differentiated through their solution; `solve_machines` is that
solution over a kernel matrix. The package imports objectives, solvers and `implicit`.
"""

from symsvm.heads.kernel_layer import kernel_machines
from symsvm.heads.machines import solve_machines
from symsvm.heads.multiclass_losses import crammer_singer, one_vs_rest, weston_watkins

__all__ = ["crammer_singer", "kernel_machines", "one_vs_rest", "solve_machines", "weston_watkins"]
