"""Diagnosis: why a run ended short of its tolerance, in words, and what to do about it."""

import numpy as np

from symsvm.evaluation.evaluator import KernelEvaluator

__all__ = ["diagnosis"]

# Points that are looked at for an indefinite kernel.
_LOOK = 256
# Ratios of scales, and of C to what a kernel's values are, that are called wild.
_WILD, _LARGE = 1e3, 1e4


def diagnosis(program, gram, is_psd, z, tol):
    """A list of sentences, each with something that makes the problem hard and what to do about it."""
    X = gram.X
    rows = np.linspace(0, program.m - 1, min(program.m, _LOOK)).astype("int64")
    K = KernelEvaluator(gram.kernel).block(X[rows], X[rows])
    if not np.isfinite(K).all():
        return [f"the kernel {gram.kernel!r} is not finite on these points: scale X, or choose another."]
    found = [_scales(X), _bounds(program, K, z, tol), _duplicates(program, X)]
    if not is_psd:
        found.append(_indefinite(gram.kernel, K))
    return [sentence for sentence in found if sentence]


def _scales(X):
    sizes = np.sqrt(np.asarray(X.multiply(X).mean(axis=0)).ravel()) if hasattr(X, "tocsr") else X.std(axis=0)
    used = np.flatnonzero(sizes > 0)
    if not len(used):
        return "all points are the same."
    small, large = used[np.argmin(sizes[used])], used[np.argmax(sizes[used])]
    if sizes[large] <= _WILD * sizes[small]:
        return None
    return (
        f"columns are on wildly different scales, {sizes[large]:.1e} in column {large} and {sizes[small]:.1e} in "
        f"column {small}: scale them, with sklearn.preprocessing.StandardScaler for example."
    )


def _bounds(program, K, z, tol):
    """Bounds so large that rounding, or a matrix that is as good as singular, decides."""
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
    if C * size > _LARGE:
        return (
            f"C is large (C times the kernel's values is {C * size:.1e}), beyond what float32 resolves, and takes many "
            "steps: lower C, raise tol, or allow more time."
        )
    return None


def _duplicates(program, X):
    """Points that are equal and pull in opposite directions."""
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
    return f"{count} points are duplicates with opposite labels: no machine tells them apart; lower C or remove them."


def _indefinite(kernel, K):
    values = np.linalg.eigvalsh((K + K.T) / 2)
    if values[0] >= -1e-9 * np.abs(values).max():
        return None
    return (
        f"the kernel {kernel!r} is indefinite on these points (an eigenvalue of {values[0]:.2g}): a point may be "
        "stationary but not optimal; choose a kernel with is_psd."
    )
