"""The Lagrangian relaxation of a quadratic dual over a kernel."""

from __future__ import annotations

from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.objectives import CSVC, KernelDual, LagrangianDual

__all__ = ["relax"]


def relax(dual: KernelDual, *, ridge: float | None = None, inner: int = 100) -> LagrangianDual:
    """Return the `LagrangianDual` of a `KernelDual`, with its bounds and its equality relaxed (Eq. 002:1.24).

    The matrix K is computed here. The certificate of a solution has z, the point of the dual that is recovered.

    Parameters
    ----------
    dual : KernelDual
        The dual, over a kernel that is positive semi-definite.
    ridge : float, optional
        See `LagrangianDual`.
    inner : int
        See `LagrangianDual`.

    Returns
    -------
    LagrangianDual
        The relaxed problem.

    Examples
    --------
    >>> import numpy as np
    >>> from symsvm import RBF, KernelDual, QuadraticProgram, solve
    >>> X, y = np.array([[-1.0], [0.5], [2.0]]), np.array([-1.0, 1.0, 1.0])
    >>> dual = KernelDual(QuadraticProgram.c_svc(y, C=1.0), X, RBF(1.0))
    >>> solution = solve(relax(dual), "adagrad", mode="FAST_COMPILE", tol=0.02)
    >>> solution.certificate.status, solution.certificate.z.round(1).tolist()
    ('optimal', [-1.0, 0.7, 0.3])
    """
    if not isinstance(dual, KernelDual):
        hint = (
            "; CSVC holds graphs: give KernelDual(QuadraticProgram.c_svc(y, C), X, kernel)"
            if isinstance(dual, CSVC)
            else ""
        )
        raise TypeError(f"dual must be a KernelDual, got {dual!r}{hint}.")
    if not dual.is_convex:
        raise ValueError(f"{dual.kernel!r} is not known to be positive semi-definite: its Lagrangian has no minimum.")
    return LagrangianDual(dual.program, KernelEvaluator(dual.kernel).block(dual.X, dual.X), ridge=ridge, inner=inner)
