"""Why a run did not reach its tolerance, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.evaluation.kernel_matrix import KernelMatrix
    from symsvm.objectives import QuadraticProgram

__all__ = ["diagnosis"]

# Points that are tested for an indefinite kernel.
_SAMPLE = 256
# Ratios of the scales of columns, and C times the kernel's values, from which on a sentence names them.
_SCALE_RATIO, _LARGE_C = 1e3, 1e4


def diagnosis(program: QuadraticProgram, matrix: KernelMatrix, is_psd: bool | None, z: Array, tol: float) -> list[str]:
    """Sentences, each with a reason why the problem is hard and what to do about it."""
    rows = np.linspace(0, program.m - 1, min(program.m, _SAMPLE)).astype("int64")
    K = np.empty((len(rows), len(rows)))
    matrix.block(rows, rows, K)
    if not np.isfinite(K).all():
        return [f"the kernel {matrix.name} is not finite on these points: scale X, or choose another."]
    found = [_bounds(program, K, z, tol)]
    if matrix.X is not None:
        found = [_scales(matrix.X), *found, _duplicates(program, matrix.X)]
    if not is_psd:
        found.append(_indefinite(matrix.name, K))
    return [sentence for sentence in found if sentence]


def _scales(X: Any) -> str | None:
    sizes = np.sqrt(np.asarray(X.multiply(X).mean(axis=0)).ravel()) if hasattr(X, "tocsr") else X.std(axis=0)
    used = np.flatnonzero(sizes > 0)
    if not len(used):
        return "all points are the same."
    small, large = used[np.argmin(sizes[used])], used[np.argmax(sizes[used])]
    if sizes[large] <= _SCALE_RATIO * sizes[small]:
        return None
    return (
        f"columns are on very different scales, {sizes[large]:.1e} in column {large} and {sizes[small]:.1e} in "
        f"column {small}: scale them, with sklearn.preprocessing.StandardScaler for example."
    )


def _bounds(program: QuadraticProgram, K: Array, z: Array, tol: float) -> str | None:
    """Bounds so large that rounding, or a nearly singular matrix, limits the accuracy."""
    finite = np.abs(np.concatenate([program.lower, program.upper]))
    finite = finite[np.isfinite(finite)]
    size = float(np.abs(np.diagonal(K)).max())
    C = float(finite.max(initial=0.0))
    rounding = np.finfo("float64").eps * size * float(np.abs(z).sum())
    if rounding > tol / 10:
        return (
            f"C is too large for the kernel's values of up to {size:.1e}: rounding alone leaves a violation of about "
            f"{rounding:.0e}; lower C, or raise tol."
        )
    if C * size > _LARGE_C:
        return (
            f"C is large (C times the kernel's values is {C * size:.1e}), beyond what float32 resolves, and takes many "
            "steps: lower C, raise tol, or allow more time."
        )
    return None


def _duplicates(program: QuadraticProgram, X: Any) -> str | None:
    """Equal points with opposite labels."""
    if program.n != program.m or not (program.p > 0).any() or not (program.p < 0).any():
        return None
    if hasattr(X, "tocsr"):
        X = X.copy()
        X.sort_indices()
        keys = [
            hash((X.indices[a:b].tobytes(), X.data[a:b].tobytes()))
            for a, b in zip(X.indptr, X.indptr[1:], strict=False)
        ]
    else:
        keys = [hash(row.tobytes()) for row in X + 0.0]  # -0.0 is 0.0
    keys = np.asarray(keys)
    both = np.intersect1d(keys[program.p > 0], keys[program.p < 0])
    if not len(both):
        return None
    count = int(np.isin(keys, both).sum())
    return f"{count} points are duplicates with opposite labels: no classifier separates them; lower C or remove them."


def _indefinite(name: str, K: Array) -> str | None:
    values = np.linalg.eigvalsh((K + K.T) / 2)
    if values[0] >= -1e-9 * np.abs(values).max():
        return None
    return (
        f"the kernel {name} is indefinite on these points (an eigenvalue of {values[0]:.2g}): a point may be "
        "stationary but not optimal; choose a kernel with is_psd."
    )
