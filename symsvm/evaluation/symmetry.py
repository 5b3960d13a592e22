"""Whether a kernel is symmetric, K(x, z) = K(z, x), as every method here assumes; asked of kernels that users write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.kernels import Kernel, algebra, named

if TYPE_CHECKING:
    from pytensor.compile.mode import Mode

    from symsvm._lib.types import Points

__all__ = ["check_symmetric", "is_known_symmetric"]

# Points, evenly spaced among those given, whose pairs are compared.
_POINTS = 32
# The difference of K(x, z) and K(z, x) that rounding may leave, relative to the largest of them.
_ROUNDING = 1e-8


def is_known_symmetric(kernel: Kernel) -> bool:
    """Whether the expression of a kernel of symsvm shows it: all but those with an expression of the user's.

    >>> from symsvm.kernels import RBF, Linear, pair_kernel
    >>> is_known_symmetric(RBF(1.0) + 2 * Linear()), is_known_symmetric(pair_kernel(lambda x, z: x[0] * z[1]))
    (True, False)
    """
    if type(kernel) is named.PairKernel or type(kernel).__module__ not in (named.__name__, algebra.__name__):
        return False
    parts = [value for value in kernel.get_params(deep=False).values() if isinstance(value, Kernel)]
    return all(is_known_symmetric(part) for part in parts)


def check_symmetric(kernel: Kernel, X: Points, *, mode: str | Mode | None = None) -> None:
    """Raise a ValueError if K(x, z) and K(z, x) differ for two of the points.

    A dual with another matrix has another gradient than the solvers compute, and no certificate of it would hold.
    """
    if is_known_symmetric(kernel):
        return
    rows = np.unique(np.linspace(0, X.shape[0] - 1, _POINTS).astype("int64"))  # pyright: ignore[reportOptionalSubscript]
    sample: Any = X[rows]  # pyright: ignore[reportOptionalSubscript, reportIndexIssue]
    sample = sample.toarray() if hasattr(sample, "tocsr") else sample
    K = KernelEvaluator(kernel, mode=mode).block(sample, sample.copy())
    if not np.isfinite(K).all():
        return  # what is not finite is reported by those who use it
    difference = np.abs(K - K.T)
    if difference.max(initial=0.0) > _ROUNDING * np.abs(K).max(initial=0.0):
        i, j = np.unravel_index(np.argmax(difference), K.shape)
        raise ValueError(
            f"the kernel {kernel!r} must be symmetric, K(x, z) = K(z, x), but K(x_{rows[i]}, x_{rows[j]}) = {K[i, j]:.6g} "
            f"and K(x_{rows[j]}, x_{rows[i]}) = {K[j, i]:.6g}: use (K(x, z) + K(z, x)) / 2."
        )
