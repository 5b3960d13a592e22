"""The face of a box: the z_i of a dual between their bounds, solved for together.

Near the optimum it is known which z_i are at a bound, or at 0 inside the tube, and what is slow is the rest: points
that are almost the same take each other's z in steps as small as their violation. For the others, i in I,

    minimise  1/2 z_I'K z_I + g'z_I,     K = X_I X_I' + s^2 1 1' + diag D_I,

by conjugate gradients scaled with the diagonal. A step that leaves the bounds is drawn back to them, all at once if
that descends, else less of it; who is at a bound then leaves the face, and the gradients begin anew (More and Toraldo,
On the solution of large quadratic programming problems with bound constraints, 1991).

A feature that only one point of the face has adds to the diagonal of K alone. The others are numbered anew, so that
the vector X_I'z is short and stays near the processor.
"""

import numpy as np
from numba import njit

from symsvm.linear.rows import FAST, add, dot

__all__ = ["face_step"]

LOOSE = 0.3  # the share of the gradient that is left before a step is compared with the bounds
SHORT, CUTS = 0.1, 2  # shares of steps that are cut at bounds, and how many such there may be
WORK = 2**32  # numbers that may be read at once: some seconds, in which nobody looks at the clock
_LOOP = {"cache": True, "nogil": True, **FAST}


@njit(**_LOOP)
def _gathered(data, indices, indptr, chosen, d):
    """The rows `chosen` over the features that at least two of them have, the rest's squares, how many features."""
    count, size = np.zeros(d, dtype=np.int32), np.uint64(0)
    for i in chosen:
        size += indptr[i + 1] - indptr[i]
        for k in range(indptr[i], indptr[i + 1]):
            count[indices[k]] += 1
    values, features = np.empty(size, dtype=data.dtype), np.empty(size, dtype=np.uint32)
    begins, rest = np.zeros(len(chosen) + 1, dtype=np.uint64), np.zeros(len(chosen))
    known, place = np.int32(0), np.uint64(0)
    for j in range(len(chosen)):
        i = chosen[j]
        for k in range(indptr[i], indptr[i + 1]):
            feature = indices[k]
            if count[feature] == 1:
                rest[j] += float(data[k]) * float(data[k])
                continue
            if count[feature] > 0:  # seen for the first time: its number, as -1, -2, ...
                known += np.int32(1)
                count[feature] = -known
            values[place], features[place] = data[k], -count[feature] - 1
            place += np.uint64(1)
        begins[j + 1] = place
    return values[:place], features[:place], begins, rest, known


@njit(**_LOOP)
def _times(parts, s, diagonal, p, U, out):
    """out = K p, and p'K p."""
    U[:] = 0.0
    total = 0.0
    for i in range(len(p)):
        if p[i] != 0:
            add(parts, i, p[i], U)
            total += p[i]
    curvature, constant = 0.0, s * s * total
    for i in range(len(p)):
        out[i] = dot(parts, i, U) + diagonal[i] * p[i] + constant
        curvature += out[i] * p[i]
    return curvature


@njit(**_LOOP)
def _room(z, step, low, high):
    """The length of a step at which the first bound is met."""
    length = np.inf
    for i in range(len(z)):
        if step[i] > 0:
            length = min(length, (high[i] - z[i]) / step[i])
        elif step[i] < 0:
            length = min(length, (low[i] - z[i]) / step[i])
    return length


@njit(**_LOOP)
def _gradient(parts, s, u, chosen, t, D, z, out):
    """g_I = X_I w + s b - t_I + D_I z_I."""
    constant = s * u[len(u) - 1]
    for j in range(len(chosen)):
        i = chosen[j]
        out[j] = dot(parts, i, u) + constant - t[i] + D[i] * z[i]


@njit(**_LOOP)
def _conjugate(parts, s, diagonal, inverse, free, g, U, aim, most, step, r, p, image):
    """Conjugate gradients from step = 0 until |r|^2 <= aim, or so many products; return their number.

    And whether p, the last direction, has no curvature. r is the gradient at the end.
    """
    size = 0.0
    for i in range(len(g)):
        step[i] = 0.0
        r[i] = g[i] if free[i] else 0.0
        p[i] = -inverse[i] * r[i]
        size -= r[i] * p[i]
    for used in range(most):
        if size <= aim:
            return used, False
        curvature, flat = _times(parts, s, diagonal, p, U, image), 0.0
        for i in range(len(p)):
            if p[i] != 0:
                flat += p[i] * p[i] / inverse[i]
        if curvature <= 1e-14 * flat:
            return used + 1, True
        length, before, size = size / curvature, size, 0.0
        for i in range(len(g)):
            step[i] += length * p[i]
            r[i] += length * image[i]
            if free[i]:
                size += inverse[i] * r[i] * r[i]
        for i in range(len(g)):
            if free[i]:
                p[i] = size / before * p[i] - inverse[i] * r[i]
    return most, False


@njit(**_LOOP)
def _descend(parts, s, diagonal, inverse, z, g, low, high, m, most, share, least):
    """Minimise over low <= z <= high, in place, with gradient g; return the number of products.

    It ends when the gradient within the face is a share of the first, or at the least that rounding leaves.
    """
    n, used, cuts = len(z), 0, 0
    free = inverse > 0
    U, image, moved, step, p, r = np.zeros(m), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    goal = -1.0
    while used < most:
        size = 0.0
        for i in range(n):
            if free[i]:
                size += inverse[i] * g[i] * g[i]
        if goal < 0:
            goal = max(share * share * size, least)
        if size <= goal:
            break
        aim = max(goal, LOOSE * LOOSE * size)
        done, flat = _conjugate(parts, s, diagonal, inverse, free, g, U, aim, most - used, step, r, p, image)
        used += done
        if flat:  # as far as the bounds let it
            length = _room(z, p, low, high)
            if length == np.inf:
                break
            for i in range(n):
                step[i] += length * p[i]
        first = min(1.0, _room(z, step, low, high))
        if first == 1.0 and not flat:
            for i in range(n):
                z[i] += step[i]
                g[i] = r[i]
            continue
        length, slope, curvature = 1.0, 0.0, 0.0
        while True:
            slope = 0.0
            for i in range(n):
                moved[i] = min(max(z[i] + length * step[i], low[i]), high[i]) - z[i]
                slope += g[i] * moved[i]
            curvature = _times(parts, s, diagonal, moved, U, image)
            used += 1
            if slope + 0.5 * curvature <= 0.1 * slope or length <= first:
                break
            length = max(0.4 * length, first)
        for i in range(n):
            if free[i]:
                to, near = z[i] + length * step[i], 1e-15 * (abs(z[i]) + abs(length * step[i]))
                z[i] = low[i] if to <= low[i] + near else (high[i] if to >= high[i] - near else to)
                free[i] = low[i] < z[i] < high[i]
                g[i] += image[i]
        if length < SHORT:
            cuts += 1
            if cuts == CUTS:  # another face than the optimum's, which passes find sooner
                break
    return used


def face_step(problem, s, t, z, u, H, *, products, share, least):
    """z after a descent on its face by so many products with K, or until the gradient is a share of the first.

    And the number of visits to points that were made for it. u = (X'z, s sum z); t replaces the problem's own.
    """
    lower, upper, epsilon, rows = problem.lower, problem.upper, problem.epsilon, problem.rows
    chosen = np.flatnonzero((z > lower) & (z < upper) & ((z != 0) if epsilon > 0 else True))
    if len(chosen) == 0:
        return z, 0
    part, g = z[chosen], np.empty(len(chosen))
    low, high = lower[chosen], upper[chosen]
    _gradient(rows.parts, s, u, chosen, t, problem.D, z, g)
    if epsilon > 0:  # the kink at 0 is a bound
        low, high = np.where(part > 0, 0.0, low), np.where(part < 0, 0.0, high)
        g += epsilon * np.sign(part)
    numbers = int((rows.parts[2][chosen + 1] - rows.parts[2][chosen]).sum()) if rows.sparse else len(chosen) * rows.d
    products = min(products, WORK // (numbers + 1))
    if products < 10:
        return z, 0
    diagonal, inverse = problem.D[chosen], H[chosen]
    np.divide(1.0, inverse, out=inverse, where=inverse > 0)
    if rows.sparse:
        *parts, rest, m = _gathered(*rows.parts, chosen, rows.d)
        parts, diagonal = tuple(parts), diagonal + rest
    else:
        parts, m = rows.parts[chosen], rows.d
    least = max(least, 1e-15 * (problem.unit + float(np.abs(t[chosen]).max()))) ** 2 * float(inverse.sum())
    used = _descend(parts, s, diagonal, inverse, part, g, low, high, m, products, share, least)
    z = z.copy()
    z[chosen] = part
    return z, used * len(chosen)
