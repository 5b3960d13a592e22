"""Pictures: convergence and the decision boundary (needs the extra symsvm[plot])."""

import numpy as np

__all__ = ["convergence", "decision_boundary"]

_MINUS, _PLUS = "#c8553d", "#2a6f97"


def convergence(histories, optimum, ax=None):
    """Draw |W(t) - W*| against t on a logarithmic axis, a line for each named history.

    Parameters
    ----------
    histories : dict of name -> values of W, one a step.
    optimum : W*, the optimal value.
    """
    ax = _axes(ax)
    for name, W in histories.items():
        ax.semilogy(np.abs(np.asarray(W) - optimum), label=name, linewidth=1.6)
    ax.set(xlabel="step t", ylabel="|W(t) - W*|", title="Convergence (Eq. 25)")
    ax.grid(alpha=0.25)
    ax.legend(frameon=False)
    return ax


def decision_boundary(predict, X, y, lam=None, *, ax=None, resolution=80):
    """Draw the boundary f = 0 and the margins f = -1, +1 of a classifier of two features, with its points.

    Parameters
    ----------
    predict : a function of points (n, 2) that returns decision values (n,).
    X, y : points (m, 2) and labels -1, +1.
    lam : multipliers; points with lam > 0, the support vectors, are circled.
    """
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X must have two features to be drawn, got the shape {X.shape}.")
    ax = _axes(ax)
    low, high = X.min(axis=0), X.max(axis=0)
    pad = 0.08 * (high - low)
    grid = np.meshgrid(*(np.linspace(*ends, resolution) for ends in zip(low - pad, high + pad, strict=True)))
    f = np.asarray(predict(np.column_stack([axis.ravel() for axis in grid]))).reshape(grid[0].shape)
    ax.contourf(*grid, f, levels=[-np.inf, 0, np.inf], colors=[_MINUS, _PLUS], alpha=0.12)
    ax.contour(*grid, f, levels=[-1, 0, 1], colors="k", linestyles=["--", "-", "--"], linewidths=[0.8, 1.6, 0.8])
    for sign, colour, marker in ((-1, _MINUS, "o"), (1, _PLUS, "s")):
        rows = np.asarray(y) == sign
        ax.scatter(*X[rows].T, s=14, c=colour, marker=marker, linewidths=0, alpha=0.85, label=f"y = {sign:+d}")
    if lam is not None:
        rows = np.asarray(lam) > 0
        ax.scatter(*X[rows].T, s=46, facecolors="none", edgecolors="k", linewidths=0.6, label="support vectors")
    ax.set_title("Decision function (Eq. 30)")
    ax.legend(frameon=True, loc="best", fontsize="small")
    return ax


def _axes(ax):
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("Pictures need matplotlib, which is not installed: pip install 'symsvm[plot]'.") from None
    return pyplot.subplots()[1]
