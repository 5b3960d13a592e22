"""Loops over arrays for which NumPy would need many passes, or memory of its own, compiled by Numba."""

import numpy as np
from numba import njit, prange

from symsvm.ops.alone import alone

__all__ = [
    "add_rows",
    "gap",
    "gather",
    "held_product",
    "lay_out",
    "mirror",
    "mirror_columns",
    "move",
    "part_firm",
    "sum_rows",
    "survey",
    "violators",
]


@njit(cache=True, nogil=True)
def survey(Kz, z, lower, upper, diagonal, p, group, play, is_tied, F, least, most, middle):
    """F = Kz + D z + p for the variables in play; the least F that may rise and the greatest that may fall, per group.

    Where no equality ties them, a variable whose F is 0 may do both. `middle` is between the two ends, or at the one
    that there is. Returns how many variables are free, how many are at a bound other than 0, and the violation.
    """
    m, free, bounded = len(Kz), 0, 0
    least[:], most[:] = (np.inf, -np.inf) if is_tied else (0.0, 0.0)
    for k in range(len(play)):
        i = play[k]
        f = Kz[i % m] + diagonal[i] * z[i] + p[i]
        F[i] = f
        g = max(group[i], 0)
        rises, falls = z[i] < upper[i], z[i] > lower[i]
        if rises and f < least[g]:
            least[g] = f
        if falls and f > most[g]:
            most[g] = f
        if rises and falls:
            free += 1
        elif z[i] != 0:
            bounded += 1
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
def gap(F, z, lower, upper, diagonal, group, b, play):
    """sum_i of h_i(z_i) - min_v h_i(v), h_i(v) = 1/2 D_i v^2 + v f_i, f = F - D z + b, over the variables in play."""
    total = 0.0
    for k in range(len(play)):
        i = play[k]
        D, f = diagonal[i], F[i] - diagonal[i] * z[i]
        if len(b):
            f += b[group[i]]
        if D > 0:
            best = min(max(-f / D, lower[i]), upper[i])
        elif f == 0:
            best = z[i]
        else:
            best = lower[i] if f > 0 else upper[i]
        total += 0.5 * D * (z[i] - best) * (z[i] + best) + (z[i] - best) * f
    return total


@njit(cache=True, nogil=True)
def violators(F, z, lower, upper, group, play, least, most, floor):
    """The free variables, then those at a bound that could rise and that could fall, with scores above the floor.

    A score is how far F is on the wrong side of the other end: most - F of what may rise, F - least of what may fall.
    """
    free, up, low = np.empty_like(play), np.empty_like(play), np.empty_like(play)
    up_score, low_score = np.empty(len(play)), np.empty(len(play))
    n_free = n_up = n_low = 0
    for k in range(len(play)):
        i = play[k]
        g = max(group[i], 0)
        rises, falls = z[i] < upper[i], z[i] > lower[i]
        if rises and falls:
            free[n_free] = i
            n_free += 1
        elif rises and most[g] - F[i] > floor:
            up[n_up], up_score[n_up] = i, most[g] - F[i]
            n_up += 1
        elif falls and F[i] - least[g] > floor:
            low[n_low], low_score[n_low] = i, F[i] - least[g]
            n_low += 1
    return free[:n_free], up[:n_up], up_score[:n_up], low[:n_low], low_score[:n_low]


@njit(cache=True, nogil=True)
def part_firm(F, z, lower, upper, group, play, least, most, margin):
    """Variables that are to stay in play, those at a bound with F further than the margin on its safe side, and of
    these how many are not 0.
    """
    stay, firm = np.empty_like(play), np.empty_like(play)
    n_stay = n_firm = bounded = 0
    for i in play:
        g = max(group[i], 0)
        if (z[i] <= lower[i] and F[i] > most[g] + margin) or (z[i] >= upper[i] and F[i] < least[g] - margin):
            firm[n_firm] = i
            n_firm += 1
            bounded += z[i] != 0
        else:
            stay[n_stay] = i
            n_stay += 1
    return stay[:n_stay], firm[:n_firm], bounded


@njit(cache=True, nogil=True)
def mirror_columns(K, low, high, first, last):
    """K_ji = K_ij for the rows i from low to high and the columns j from first to last, a square at a time."""
    for i in range(low, high, 64):
        for c in range(first, last):
            row = K[c]
            for r in range(i, min(i + 64, high)):
                row[r] = K[r, c]


@alone
@njit(cache=True, parallel=True, nogil=True)
def mirror(K, low, high):
    """K_ji = K_ij for the rows i from low to high and the columns j before low."""
    if (high - low) * low < 2**20:  # threads have to be worth their while
        mirror_columns(K, low, high, 0, low)
    else:
        for t in prange((low + 63) // 64):
            mirror_columns(K, low, high, t * 64, min(t * 64 + 64, low))


@njit(cache=True, nogil=True)
def _gather_row(K, r, columns, target):
    source = K[r]
    for j in range(len(columns)):
        c = columns[j]
        target[j] = source[c] if c <= r else K[c, r]


@alone
@njit(cache=True, parallel=True, nogil=True)
def gather(K, rows, columns, out):
    """out_ij = K of the chosen rows and columns, of a symmetric K that is there left of its diagonal only."""
    if len(rows) * len(columns) < 2**18:  # threads have to be worth their while
        for i in range(len(rows)):
            _gather_row(K, rows[i], columns, out[i])
    else:
        for i in prange(len(rows)):
            _gather_row(K, rows[i], columns, out[i])


@njit(cache=True, nogil=True)
def _held_dot(K, r, columns, q):
    source, total = K[r], 0.0
    for j in range(len(columns)):
        c = columns[j]
        total += (source[c] if c <= r else K[c, r]) * q[j]
    return total


@alone
@njit(cache=True, parallel=True, nogil=True)
def held_product(K, rows, columns, q, out):
    """out_i += sum_j K_ij q_j over the chosen rows and columns, of such a K, summed in float64."""
    if len(rows) * len(columns) < 2**18:
        for i in range(len(rows)):
            out[i] += _held_dot(K, rows[i], columns, q)
    else:
        for i in prange(len(rows)):
            out[i] += _held_dot(K, rows[i], columns, q)


@njit(cache=True, nogil=True)
def sum_rows(K, rows, q, out, low):
    """out += sum_k q_k K[rows_k, low : low + len(out)], summed in float64.

    The sum is in an array of its own: the compiler then knows that it is not a part of K.
    """
    width = len(out)
    total = np.zeros(width)
    for k in range(len(rows)):
        row, weight = K[rows[k], low : low + width], q[k]
        for j in range(width):
            total[j] += weight * row[j]
    out += total


@alone
@njit(cache=True, parallel=True, nogil=True)
def add_rows(K, rows, q, out):
    """out += sum_k q_k K[rows_k], the first entries of each row, summed in float64."""
    parts = 1 if len(rows) * len(out) < 2**21 else (len(out) + 511) // 512
    width = (len(out) + parts - 1) // parts
    if parts == 1:
        sum_rows(K, rows, q, out, 0)
    else:
        for t in prange(parts):
            sum_rows(K, rows, q, out[t * width : (t + 1) * width], t * width)


@njit(cache=True, nogil=True)
def move(K, n, held, movers, holes):
    """Of `held` rows and columns keep n: those at `movers` (n or later) take the places `holes` (before n)."""
    for k in range(len(holes)):
        K[holes[k], :held] = K[movers[k], :held]
    for i in range(n):
        row = K[i]
        for k in range(len(holes)):
            row[holes[k]] = row[movers[k]]
