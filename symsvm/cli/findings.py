"""Findings: what a search has found, as a document, as a table and as a picture."""

import numpy as np

from symsvm.cli.output import grid, styled

__all__ = ["drawn", "findings", "partly", "show"]

_SHOWN = 10


def findings(tuning, prefix):
    """What a search has found, as a dict; the names are those of the machine."""
    table = tuning.table

    def own(params):
        return {name.removeprefix(prefix): value for name, value in params.items()}

    cells = []
    for i, params in enumerate(tuning.params):
        numbers = {name: float(table[name][i]) for name in ("mean_score", "std_score", "seconds")}
        numbers = {name: value if np.isfinite(value) else None for name, value in numbers.items()}
        more = {
            "fold_scores": table["fold_scores"][i],
            "points": int(table["points"][i]),
            "status": str(table["status"][i]),
        }
        cells.append({"params": own(params), **numbers, **more})
    found = {"best_params": own(tuning.best_params), "best_score": tuning.best_score, "seconds": tuning.seconds}
    return found | {"folds": table["fold_scores"].shape[1], "complete": tuning.is_complete, "cells": cells}


def _rank(cell):
    """Best first; what was judged on more points comes before, what has no score last."""
    return (-cell["points"], np.inf) if cell["mean_score"] is None else (-cell["points"], -cell["mean_score"])


def partly(tuning, prefix):
    """A sentence about cells of which none was judged in all folds."""
    scores = tuning.table["fold_scores"]
    judged = np.isfinite(scores)
    folds = judged.sum(axis=1)
    text = "interrupted before a cell was judged in all folds"
    if folds.any():
        means = np.where(judged, scores, 0.0).sum(axis=1) / np.maximum(folds, 1)
        best = int(np.argmax(np.where(folds == folds.max(), means, -np.inf)))
        named = ", ".join(f"{name.removeprefix(prefix)} = {_shown(v)}" for name, v in tuning.params[best].items())
        text += f"; in {folds.max()} of {scores.shape[1]} folds the best is {named} with {means[best]:.4f}"
    return f"{text}; nothing was written."


def _word(status):
    """A status without its reason, which is too long for a column."""
    return status.partition(":")[0]


def show(found, output):
    """Print the best cells as a table, why cells failed, and the best."""
    names = list(found["best_params"])
    order = sorted(range(len(found["cells"])), key=lambda i: _rank(found["cells"][i]))
    rows = []
    for i in order[:_SHOWN]:
        cell = found["cells"][i]
        score = ("", "") if cell["mean_score"] is None else (f"{cell['mean_score']:.4f}", f"{cell['std_score']:.4f}")
        rows.append(
            (
                *(_shown(cell["params"][name]) for name in names),
                *score,
                f"{cell['seconds']:.3g}",
                _word(cell["status"]),
            )
        )
    more = f", the first {_SHOWN}" if len(order) > _SHOWN else ""
    title = f"{len(order)} cells in {found['folds']} folds, {found['seconds']:.3g} s; best first{more}"
    heads = [*names, "mean score", "deviation", "seconds", "status"]
    output.show(grid(heads, rows, left=0, title=title, width=output.width))
    failed = [cell["status"] for cell in found["cells"] if cell["status"].startswith("failed: ")]
    if failed:
        reason = " ".join(failed[0].removeprefix("failed: ").split())
        output.note(f"{len(failed)} of {len(order)} cells failed; the first: {reason}")
    best = ", ".join(f"{name} = {_shown(value)}" for name, value in found["best_params"].items())
    output.show(styled(("best: ", "bold"), (best, "bold green"), f", score {found['best_score']:.4f}"))


def _shown(value):
    return f"{value:g}" if isinstance(value, float) else str(value)


def drawn(tuning, names, prefix, path):
    """Draw the scores over the first two parameters; the others are those of the best cell."""
    from symsvm.inspection import plot

    display = plot.surface(tuning, parameters=[prefix + name for name in names[:2]])
    ax = display.ax_
    for text in (ax.xaxis.label, ax.yaxis.label, ax.title):
        text.set_text(text.get_text().replace(prefix, ""))
    display.figure_.savefig(path, dpi=120, bbox_inches="tight")
    return path
