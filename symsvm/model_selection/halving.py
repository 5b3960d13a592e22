"""Successive halving: many cells on few points, fewer cells on more (Jamieson and Talwalkar, 2016).

rounds r = 0 .. R:    m / factor^(R - r) points,    the best 1 / factor of the cells before
"""

import numpy as np
from sklearn.utils import check_random_state

__all__ = ["rounds_of", "survivors"]

# Points of which no fewer are worth a round.
_LEAST = 200


def rounds_of(cells, m, y, n_splits, factor, random_state):
    """The rows of each round, in order; those of the last are all.

    Rows of a round are among those of the next. With classes (y), each has its share, and at least as many points as
    there are folds.

    >>> [len(rows) for rows in rounds_of(25, 3000, None, 5, 3, 0)]
    [334, 1000, 3000]
    """
    most = int(np.log(cells) / np.log(factor) + 1e-9)
    rng = check_random_state(0 if random_state is None else random_state)
    place, rank = np.empty(m), np.empty(m, dtype="int64")
    for members in [np.arange(m)] if y is None else [np.flatnonzero(y == label) for label in np.unique(y)]:
        rank[members] = rng.permutation(len(members))
        place[members] = (rank[members] + 0.5) / len(members)
    sizes = [-(-m // factor**r) for r in range(most, 0, -1)]
    rounds = []
    for size in sizes:
        first = (place * m <= size) | ((rank < n_splits) & (y is not None))
        if _LEAST <= first.sum() < m:
            rounds.append(np.flatnonzero(first))
    return [*rounds, np.arange(m)]


def survivors(scores, factor):
    """The indices of the best 1 / factor of the cells, at least one, in their order; failures are the worst.

    >>> survivors(np.array([0.1, np.nan, 0.9, 0.5]), 2).tolist()
    [2, 3]
    """
    order = np.argsort(-np.where(np.isfinite(scores), scores, -np.inf), kind="stable")
    return np.sort(order[: max(1, -(-len(scores) // factor))])
