"""The option that a word which is none was meant to be: by its letters, or by what other programs call it."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SYNONYMS", "explain_unknown_option"]

# What other programs call a parameter, by its name here.
SYNONYMS = {
    "C": ("c", "regularization", "reg", "lambda"),
    "calibration": ("calibrate",),
    "class_weight": ("weights", "weight", "class-weights", "balanced"),
    "gamma": ("width", "bandwidth", "rbf-gamma"),
    "folds": ("cv", "n-folds", "k-folds", "cross-validation", "splits"),
    "header": ("names", "columns"),
    "jobs": ("n-jobs", "threads", "workers", "cores"),
    "kernel": ("kernel-type",),
    "max_iter": ("epochs", "iterations", "max-iterations", "n-iter", "steps"),
    "output": ("out", "model", "save", "save-to", "o"),
    "probability": ("probabilities", "proba", "prob"),
    "scale": ("normalize", "normalise", "standardize", "standardise", "scaler", "scaling"),
    "scoring": ("metric", "score"),
    "seed": ("random-state", "random-seed"),
    "solver": ("algorithm", "method", "optimizer"),
    "time_limit": ("timeout", "max-time", "seconds"),
    "tol": ("tolerance", "eps", "epsilon-stop"),
    "type_": ("svm-type", "svm", "machine", "task"),
}
# How similar letters must be, from 0 to 1.
_SIMILAR = 0.65


def explain_unknown_option(command: click.Command, ctx: click.Context, given: str) -> str:
    """Return a sentence about a word that begins with a dash and is no option of a command."""
    word = given.lstrip("-").lower().replace("_", "-")
    spellings: dict[str, str] = {}
    for spelling, option in _spellings(command, ctx):
        spellings.setdefault(spelling, option)
    near = [word] if word in spellings else difflib.get_close_matches(word, spellings, 3, _SIMILAR)
    options = list(dict.fromkeys(spellings[one] for one in near))
    if not options:
        return f"there is no option {given!r}; '{ctx.command_path} --help' lists them."
    return f"there is no option {given!r}; did you mean {' or '.join(map(repr, options[:2]))}?"


def _spellings(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, str]]:
    """Words without dashes and the option that each stands for: first the options' own, then synonyms."""
    options = [each for each in command.get_params(ctx) if isinstance(each, click.Option) and not each.hidden]
    for own in (True, False):
        for option in options:
            full = max(option.opts, key=len)
            words = [one.lstrip("-") for one in (*option.opts, *option.secondary_opts) if one.startswith("--")]
            for word in words if own else SYNONYMS.get(option.name or "", ()):
                yield word, full
