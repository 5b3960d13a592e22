"""Solutions as functions of PyTorch tensors: `symsvm.torch.argmin`, differentiable by autograd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symsvm._lib.extras import import_extra
from symsvm.implicit.solution_function import SolutionFunction

if TYPE_CHECKING:
    from collections.abc import Callable

    from symsvm.objectives import Objective

__all__ = ["argmin"]


def argmin(objective: Objective, *, mode: Any = None, **options: Any) -> Callable[..., tuple[Any, Any]]:
    """Return the solution of an objective as a function of PyTorch tensors.

    The solver and the adjoint system run on the host, in float64, whatever device and type the tensors have; see
    `symsvm.argmin` for what is computed. Autograd differentiates it once.

    Parameters
    ----------
    objective : Objective
        Any W that `symsvm.argmin` takes.
    mode : str or Mode, optional
        The backend of the gradient's sums over pairs, "NUMBA" by default.
    **options : object
        The options tol, max_iter, time_limit and warm_start of `symsvm.argmin`.

    Returns
    -------
    callable
        The function of the free inputs of the objective, by name, that returns lam (n,) and b, a scalar or one for each
        equality, of the type and on the device of the first tensor that has a gradient.
    """
    torch: Any = import_extra("torch", "symsvm.torch")
    solution = SolutionFunction(objective, mode=mode, **options)

    class Solve(torch.autograd.Function):
        @staticmethod
        def forward(ctx, like, *tensors):
            v, b, F = solution.solve(*(x.detach().cpu().numpy() for x in tensors))
            ctx.save_for_backward(*tensors)
            ctx.point = v, b, F
            return tuple(torch.as_tensor(x).to(like) for x in (v, b))

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, gv, gb):
            tensors = ctx.saved_tensors
            arrays = [x.detach().cpu().numpy() for x in tensors]
            found = solution.gradient(*arrays, *ctx.point, gv.detach().cpu().numpy(), gb.detach().cpu().numpy())
            return None, *(torch.as_tensor(g).to(x) for g, x in zip(found, tensors, strict=True))

    def of_inputs(**inputs):
        tensors = [torch.as_tensor(x) for x in solution.arrays(inputs)]
        tensors = [x if x.is_floating_point() else x.to(torch.get_default_dtype()) for x in tensors]
        like = next((x for x in tensors if x.requires_grad), tensors[0] if tensors else torch.zeros(()))
        v, b = Solve.apply(like.detach(), *tensors)
        if not solution.has_scalar_b:
            return v, b
        return v, b[0] if len(b) else v.new_zeros(())

    return of_inputs
