"""Shapley values by their definition: a sum over all subsets of the features."""

import itertools
import math

import numpy as np


def shapley_by_definition(decision, x, reference):
    """The values of the features of x; `decision` is a function of points (n, d)."""
    d = len(x)
    sets = [np.isin(np.arange(d), members) for k in range(d + 1) for members in itertools.combinations(range(d), k)]
    value = dict(zip([s.tobytes() for s in sets], decision(np.where(sets, x, reference)), strict=True))
    phi = np.zeros((d, *np.shape(next(iter(value.values())))))
    for s in sets:
        for k in np.flatnonzero(~s):
            more, size = s.copy(), int(s.sum())
            more[k] = True
            weight = math.factorial(size) * math.factorial(d - size - 1) / math.factorial(d)
            phi[k] += weight * (value[more.tobytes()] - value[s.tobytes()])
    return phi
