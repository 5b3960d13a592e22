"""Selection: which variables a decomposition solves for next."""

import numpy as np

__all__ = ["JOIN", "MOST", "WHOLE", "selected"]

# Variables that are solved for all at once.
WHOLE = 2560
# Violators a side that join the free variables (up to four times as many where these are few), and the most of these.
JOIN, MOST = 512, 8192


def selected(state):
    """The next working set of a `State`: everything if that is little, else free variables and violators; or a pair."""
    from symsvm.solvers.decomposition.loops import violators  # Numba is loaded when it is first needed

    qp = state.qp
    if state.is_whole:
        return np.arange(qp.n)
    if state.pairs is not None:
        return _pair(state)
    ends = state.least, state.most, 0.1 * state.worst
    free, *sides = violators(state.F, state.z, qp.lower, qp.upper, qp.group, state.play, *ends)
    if len(free) > MOST:
        distance = np.abs(state.F[free] - state.middle[np.maximum(qp.group[free], 0)])  # the same for both ends
        free = _drawn(free, distance, MOST, state.rng)
    chosen = [free]
    for candidates, score in (sides[:2], sides[2:]):
        join = min(max(JOIN, len(candidates) // 4), max(JOIN, 4 * JOIN - len(free)))
        chosen.append(_drawn(candidates, score, join, state.rng) if len(candidates) > join else candidates)
    return np.sort(np.concatenate(chosen))


def _drawn(candidates, score, most, rng):
    """The worst of the candidates and others by chance, half each: the worst are near copies of one another."""
    order = np.argpartition(-score, most // 2)
    rest = rng.choice(candidates[order[most // 2 :]], most - most // 2, replace=False)
    return np.concatenate([candidates[order[: most // 2]], rest])


def _pair(state):
    """An i that may rise and a j that may fall, F_i < F_j, in the worst group: the worst of both, or by chance."""
    qp, F, z, worst = state.qp, state.F, state.z, state.pairs == "worst"
    g = int(np.argmax(state.most - state.least))
    here = state.play[qp.group[state.play] == g] if len(qp.total) else state.play
    pair, margin = [], 0.2 * state.worst  # by which a pair violates: less may be too little for a step
    rising = here[(z[here] < qp.upper[here]) & (F[here] < state.most[g] - margin)]
    if len(rising):
        pair.append(rising[np.argmin(F[rising])] if worst else state.rng.choice(rising))
    least = F[pair[0]] if pair else state.least[g]
    falling = here[(z[here] > qp.lower[here]) & (F[here] > least + margin)]
    if len(falling):
        pair.append(falling[np.argmax(F[falling])] if worst else state.rng.choice(falling))
    return np.sort(np.array(pair, dtype="int64"))
