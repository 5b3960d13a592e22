"""The results of a search in the layout of scikit-learn's `cv_results_`, and the choice of the best candidate."""

from __future__ import annotations

import numbers
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from symsvm._lib.types import Array
    from symsvm.model_selection.tuning_result import Scoreboard

__all__ = ["choose_best", "cv_results", "last_of_halving", "warn_of_failures"]


def cv_results(
    candidates: Sequence[dict[str, Any]],
    measured: Array,
    names: Sequence[str],
    *,
    error_score: float,
    with_train: bool,
    more: Mapping[str, Sequence[Any]],
) -> dict[str, Any]:
    """Return results as scikit-learn lays them out, an entry for each candidate.

    Parameters
    ----------
    candidates : sequence of dict
        The parameters of each candidate.
    measured : array of shape (candidates, folds)
        A `Measurement` for each fit; None for one that failed.
    names : sequence of str
        The names of the scorers.
    error_score : float
        The score of a fit that failed.
    with_train : bool
        Whether there are scores on the points of the fits.
    more : dict
        Further columns.

    Returns
    -------
    dict
        Times, parameters (masked arrays, where a candidate does not have one), and of each scorer the score of each
        fold, their mean, standard deviation and rank.
    """
    results: dict[str, Any] = {name: np.asarray(column) for name, column in more.items()}

    failed = np.array([[m is None for m in row] for row in measured.tolist()])

    def store(key, of, *, is_score=False):
        values = np.array([[np.nan if m is None else of(m) for m in row] for row in measured.tolist()], dtype="float64")
        if is_score:
            values[failed] = error_score
            results.update({f"split{k}_{key}": values[:, k] for k in range(values.shape[1])})
        else:
            values[failed] = 0.0
        results[f"mean_{key}"], results[f"std_{key}"] = values.mean(axis=1), values.std(axis=1)
        if is_score and not np.isfinite(results[f"mean_{key}"]).all():
            kind = key.partition("_")[0]
            warnings.warn(
                f"One or more of the {kind} scores are non-finite: {results[f'mean_{key}']}", UserWarning, stacklevel=5
            )

    store("fit_time", lambda m: m.fit_seconds)
    store("score_time", lambda m: m.score_seconds)
    results |= {f"param_{name}": _column(candidates, name) for name in _parameter_names(candidates)}
    results["params"] = list(candidates)
    for name in names:
        store(f"test_{name}", lambda m, name=name: m.test[name], is_score=True)
        results[f"rank_test_{name}"] = _ranks(results[f"mean_test_{name}"])
        if with_train:
            store(f"train_{name}", lambda m, name=name: m.train[name], is_score=True)
    return results


def _parameter_names(candidates):
    return dict.fromkeys(name for candidate in candidates for name in candidate)


def _column(candidates, name):
    """The values of a parameter, masked where a candidate does not have it; of objects unless all are numbers."""
    given = {i: candidate[name] for i, candidate in enumerate(candidates) if name in candidate}
    try:
        array = np.array(list(given.values()))
        dtype: Any = array.dtype if array.ndim == 1 and array.dtype.kind in "biufc" else object
    except ValueError:  # lists of different lengths
        dtype = object
    column = np.ma.MaskedArray(np.empty(len(candidates), dtype=dtype), mask=True)
    for i, value in given.items():
        column[i] = value
    return column


def _ranks(means):
    """Ranks from 1, the same for equal means; those of nan are last."""
    if np.isnan(means).all():
        return np.ones(len(means), dtype="int32")
    return rankdata(-np.where(np.isnan(means), np.nanmin(means) - 1, means), method="min").astype("int32")


def choose_best(refit: Any, metric: str, results: Mapping[str, Any]) -> int:
    """Return the index of the best candidate: that of a function `refit`, or the first of rank 1."""
    if not callable(refit):
        return int(np.argmin(results[f"rank_test_{metric}"]))
    best: Any = refit(results)
    if not isinstance(best, numbers.Integral):
        raise TypeError(f"refit must return the index of a candidate, best_index_; got {best!r}.")
    index, n = int(best), len(results["params"])
    if not 0 <= index < n:
        raise IndexError(f"best_index_ must be from 0 to {n - 1}, got {index} of refit.")
    return index


def last_of_halving(results: Mapping[str, Any]) -> int:
    """Return the index of the best candidate of the last iteration of successive halving."""
    last = np.flatnonzero(results["iter"] == np.max(results["iter"]))
    scores = results["mean_test_score"][last]
    return int(last[0 if np.isnan(scores).all() else np.nanargmax(scores)])


def warn_of_failures(scores: Scoreboard, error_score: float | str) -> None:
    """Raise the first error of a fit if `error_score` is "raise", or if every fit has failed; else warn of failures."""
    failed = [str(text).removeprefix("failed: ") for text in scores.status.ravel() if str(text).startswith("failed")]
    if not failed:
        return
    if error_score == "raise":
        raise scores.errors[0]
    reasons = "; ".join(f"{failed.count(reason)} with: {reason}" for reason in dict.fromkeys(failed))
    if len(failed) == scores.status.size:
        kind = TypeError if all(isinstance(error, TypeError) for error in scores.errors) else ValueError
        text = f"All the {len(failed)} fits failed, {reasons} Try error_score='raise' to see the error."
        raise kind(text) from scores.errors[0]
    warnings.warn(
        f"{len(failed)} fits failed out of a total of {scores.status.size}; their scores are {error_score}. {reasons}",
        FitFailedWarning,
        stacklevel=4,
    )
