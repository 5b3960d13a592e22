"""The selection of working sets: which variables a decomposition solves for next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.solvers.decomposition.state import State

__all__ = ["select", "wants_all"]


def select(state: State) -> Array:
    """The next working set: all variables of a small problem, else free variables and violators, or a pair."""
    qp, p = state.qp, state.parameters
    if state.is_whole:
        return np.arange(qp.n)
    if state.pairs is not None:
        return _pair(state)
    ends = state.least, state.most, p.candidate_part * state.violation
    free, *sides = state.vectors.violators(*ends)
    if len(free) > p.max_free:
        distance = np.abs(
            state.vectors.gradient(free) - state.middle[np.maximum(qp.group[free], 0)]
        )  # the same for both ends
        free = _worst_and_random(free, distance, p.max_free, state.rng)
    chosen, join = [free], min(p.join, max(p.join_few, qp.m // p.join_points))
    for candidates, score in (sides[:2], sides[2:]):
        if len(candidates) > join:
            candidates = _worst_and_random(candidates, score, join, state.rng)
        chosen.append(candidates)
    return np.sort(np.concatenate(chosen))


def wants_all(state: State) -> bool:
    """Whether the matrix between all variables costs less than products: where a value of K takes long to compute.

    The symmetric matrix takes m^2 / 2 values; working sets and products with most variables take more. Most variables
    are expected where points have almost as many features as there are points.
    """
    qp, members, p, width = state.qp, state.working.members, state.parameters, state.matrix.width
    if width < p.wide or qp.n != qp.m or qp.n > p.max_free:
        return False
    if not len(members):
        return width > qp.n / p.wide_points
    return bool(np.count_nonzero(state.z[members]) > p.wide_part * len(members))


def _worst_and_random(candidates: Array, score: Array, most: int, rng: np.random.Generator) -> Array:
    """The worst of the candidates and random ones, half each: the worst are often near copies of one another."""
    order = np.argpartition(-score, most // 2)
    rest = rng.choice(candidates[order[most // 2 :]], most - most // 2, replace=False)
    return np.concatenate([candidates[order[: most // 2]], rest])


def _pair(state: State) -> Array:
    """An i that may rise and a j that may fall, F_i < F_j, in the worst group: the worst of both, or at random."""
    qp, F, z, worst = state.qp, state.F, state.z, state.pairs == "worst"
    g = int(np.argmax(state.most - state.least))
    here = state.active.variables
    if len(qp.total):
        here = here[qp.group[here] == g]
    pair, margin = [], 0.2 * state.violation  # a pair that violates by less may be too close for a step
    rising = here[(z[here] < qp.upper[here]) & (F[here] < state.most[g] - margin)]
    if len(rising):
        pair.append(rising[np.argmin(F[rising])] if worst else state.rng.choice(rising))
    least = F[pair[0]] if pair else state.least[g]
    falling = here[(z[here] > qp.lower[here]) & (F[here] > least + margin)]
    if len(falling):
        pair.append(falling[np.argmax(F[falling])] if worst else state.rng.choice(falling))
    return np.sort(np.array(pair, dtype="int64"))
