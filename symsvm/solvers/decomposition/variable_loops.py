"""Compiled loops over the variables of a decomposition: optimality, violators, shrinking.

Which variables are at a bound follows no order: branches on it would be predicted wrongly, so that values are selected.
"""

import numpy as np

from symsvm._lib.code_cache import njit
from symsvm.compiler.ops.scratch import indices, vector
from symsvm.compiler.ops.vector_math import where

__all__ = ["gap", "lay_out", "move_columns", "move_rows", "part_shrinkable", "survey", "violators"]


@njit(cache=True, nogil=True)
def survey(Kz, z, lower, upper, diagonal, p, group, active, is_tied, F, least, most, middle):
    """F = Kz + D z + p for the active variables; the least F that may rise and the greatest that may fall, per group.

    Where no equality ties them, a variable whose F is 0 may do both. `middle` is between the two ends, or at the one
    that there is. Returns how many variables are free, how many are at a bound other than 0, and the violation.
    """
    m, free, bounded = len(Kz), 0, 0
    for g in range(len(least)):
        least[g], most[g] = (np.inf if is_tied else 0.0), (-np.inf if is_tied else 0.0)
    for k in range(len(active)):
        i = active[k]
        point = i
        while point >= m:  # the variables of a point are m apart; a division takes longer
            point -= m
        f = Kz[point] + diagonal[i] * z[i] + p[i]
        F[i] = f
        g = max(group[i], 0)
        rises, falls = z[i] < upper[i], z[i] > lower[i]
        low, high = where(rises, f, np.inf), where(falls, f, -np.inf)
        if low < least[g]:
            least[g] = low
        if high > most[g]:
            most[g] = high
        free += rises & falls
        bounded += (rises != falls) & (z[i] != 0)
    worst = 0.0
    for g in range(len(least)):
        worst = max(worst, most[g] - least[g])
        if np.isinf(least[g]) or np.isinf(most[g]):
            end = most[g] if np.isinf(least[g]) else least[g]
            middle[g] = 0.0 if np.isinf(end) else end
        else:
            middle[g] = (least[g] + most[g]) / 2
    return free, bounded, worst


@njit(cache=True, nogil=True)
def lay_out(members, F, z, lower, upper, group, f, x, least, most, up, low):
    """The same for the members side by side, and for each group 0 where one may rise (may fall), else inf (-inf)."""
    for k in range(len(members)):
        i = members[k]
        f[k], x[k], least[k], most[k] = F[i], z[i], lower[i], upper[i]
        g = max(group[i], 0)
        up[g, k] = 0 if z[i] < upper[i] else np.inf
        low[g, k] = 0 if z[i] > lower[i] else -np.inf


@njit(cache=True, nogil=True)
def gap(F, z, lower, upper, diagonal, group, b, active):
    """sum_i of h_i(z_i) - min_v h_i(v), h_i(v) = 1/2 D_i v^2 + v f_i, f = F - D z + b, over the active variables."""
    total = 0.0
    for k in range(len(active)):
        i = active[k]
        D, f = diagonal[i], F[i] - diagonal[i] * z[i]
        if len(b):
            f += b[group[i]]
        best = where(f > 0, lower[i], where(f < 0, upper[i], z[i]))
        if D > 0:
            best = min(max(-f / D, lower[i]), upper[i])
        total += 0.5 * D * (z[i] - best) * (z[i] + best) + (z[i] - best) * f
    return total


@njit(cache=True, nogil=True)
def violators(F, z, lower, upper, group, active, least, most, floor):
    """The free variables, then those at a bound that could rise and that could fall, with scores above the floor.

    A score is how far F is on the wrong side of the other end: most - F of what may rise, F - least of what may fall.
    """
    n = len(active) + 1  # each is written before it is known whether it counts
    free, up, low = indices(n), indices(n), indices(n)
    up_score, low_score = vector(n, F), vector(n, F)
    n_free = n_up = n_low = 0
    for k in range(len(active)):
        i = active[k]
        g = max(group[i], 0)
        rises, falls = z[i] < upper[i], z[i] > lower[i]
        free[n_free], up[n_up], low[n_low] = i, i, i
        up_score[n_up], low_score[n_low] = most[g] - F[i], F[i] - least[g]
        n_free += rises & falls
        n_up += (rises > falls) & (most[g] - F[i] > floor)
        n_low += (falls > rises) & (F[i] - least[g] > floor)
    return free[:n_free], up[:n_up], up_score[:n_up], low[:n_low], low_score[:n_low]


@njit(cache=True, nogil=True)
def part_shrinkable(F, z, lower, upper, group, active, least, most, margin):
    """The variables that stay active; those safely at a bound, by more than the margin; how many of these are not 0."""
    n = len(active) + 1
    stay, dropped = indices(n), indices(n)
    n_stay = n_dropped = bounded = 0
    for k in range(len(active)):
        i = active[k]
        g = max(group[i], 0)
        safe = ((z[i] <= lower[i]) & (F[i] > most[g] + margin)) | ((z[i] >= upper[i]) & (F[i] < least[g] - margin))
        stay[n_stay], dropped[n_dropped] = i, i
        n_stay, n_dropped = n_stay + (not safe), n_dropped + safe
        bounded += safe & (z[i] != 0)
    return stay[:n_stay], dropped[:n_dropped], bounded


@njit(cache=True, nogil=True)
def move_columns(K, movers, holes, first, last):
    """The columns `movers` take the places `holes`, in the rows from first to last."""
    for i in range(first, last):
        row = K[i]
        for k in range(len(holes)):
            row[holes[k]] = row[movers[k]]


@njit(cache=True, nogil=True)
def move_rows(K, n, movers, holes, first, last):
    """The rows `movers`, their first n columns, take the places `holes`, for a range of these."""
    for k in range(first, last):
        source, target = K[movers[k]], K[holes[k]]
        for j in range(n):
            target[j] = source[j]
