"""Subspace minimisation: conjugate gradients over the free variables of the active set.

Near the optimum it is known which variables are at a bound, and coordinate descent is slow on the others: points that
are almost equal exchange their z in steps as small as their violation. Conjugate gradients solve for all free variables
together (More and Toraldo, On the solution of large quadratic programming problems with bound constraints, 1991).

`minimize_free_variables`, for the duals of `symsvm.linear.linear_problem`: over the z_i, i in I, that are not at a
bound nor at 0 inside the tube::

    minimise  1/2 z_I'K z_I + g'z_I,     K = X_I X_I' + s^2 1 1' + diag D_I

scaled with the diagonal. A step that leaves the bounds is projected onto them, shortened until W falls; variables that
reach a bound leave I, and conjugate gradients restart. A feature that only one point of I has adds to the diagonal of K
alone. The others are renumbered, so that the vector X_I'z is short and stays in the cache.

`minimize_free_classes`, for `symsvm.linear.crammer_singer`: over the z_im below their bounds, with sum_m z_im = 0::

    minimise  1/2 sum_m |[X s]'z_m|^2 + sum_im e_im z_im

The residuals are projected: less their mean over the free classes of each point. A step ends at the first bound; that
z_im is no longer free, and conjugate gradients restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from symsvm._lib.code_cache import njit
from symsvm.linear.rows import LOOP, add, dot

if TYPE_CHECKING:
    from symsvm._lib.types import Array
    from symsvm.linear.crammer_singer import ClassesProblem
    from symsvm.linear.linear_problem import LinearProblem

__all__ = ["minimize_free_classes", "minimize_free_variables", "restore_zero_sum"]

INNER_REDUCTION = 0.3  # conjugate gradients reduce the gradient by this factor before the bounds are checked
SHORT_STEP, MAX_SHORT_STEPS = 0.1, 2  # a step cut below this share is short; after so many the active set is wrong
MAX_WORK = 2**32  # entries to read in one call: some seconds, since time limits are checked between calls
MIN_PRODUCTS = 10  # fewer products with K are not worth the setup


@njit(**LOOP)
def _gather(data, indices, indptr, chosen, d):
    """The rows `chosen` over the features that at least two of them have, renumbered.

    Return the CSR arrays, the sum of squares over the other features of each row, and the number of features.
    """
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
            if count[feature] > 0:  # its first occurrence; its new number k is stored as -k - 1
                known += np.int32(1)
                count[feature] = -known
            values[place], features[place] = data[k], -count[feature] - 1
            place += np.uint64(1)
        begins[j + 1] = place
    return values[:place], features[:place], begins, rest, known


@njit(**LOOP)
def _multiply(arrays, s, diagonal, p, U, out):
    """Set out = K p and return p'K p."""
    U[:] = 0.0
    total = 0.0
    for i in range(len(p)):
        if p[i] != 0:
            add(arrays, i, p[i], U)
            total += p[i]
    curvature, constant = 0.0, s * s * total
    for i in range(len(p)):
        out[i] = dot(arrays, i, U) + diagonal[i] * p[i] + constant
        curvature += out[i] * p[i]
    return curvature


@njit(**LOOP)
def _length_to_bounds(z, step, low, high):
    """Return the length at which a step reaches the first bound."""
    length = np.inf
    for i in range(len(z)):
        if step[i] > 0:
            length = min(length, (high[i] - z[i]) / step[i])
        elif step[i] < 0:
            length = min(length, (low[i] - z[i]) / step[i])
    return length


@njit(**LOOP)
def _gradient(arrays, s, u, chosen, t, D, z, out):
    """Set out = g_I = X_I w + s b - t_I + D_I z_I."""
    constant = s * u[len(u) - 1]
    for j in range(len(chosen)):
        i = chosen[j]
        out[j] = dot(arrays, i, u) + constant - t[i] + D[i] * z[i]


@njit(**LOOP)
def _conjugate_gradients(arrays, s, diagonal, inverse, free, g, U, aim, most, step, r, p, image):
    """Conjugate gradients from step = 0 until |r|^2 <= aim or `most` products; r is the gradient at the end.

    Return the number of products and whether p, the last direction, has no curvature.
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
        curvature, flat = _multiply(arrays, s, diagonal, p, U, image), 0.0
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


@njit(**LOOP)
def _minimize_box(arrays, s, diagonal, inverse, z, g, low, high, m, most, share, least):
    """Minimise over low <= z <= high in place, with gradient g; return the number of products.

    It ends when the gradient of the free variables is `share` of the first, or at `least`, the level of rounding.
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
        aim = max(goal, INNER_REDUCTION * INNER_REDUCTION * size)
        done, flat = _conjugate_gradients(arrays, s, diagonal, inverse, free, g, U, aim, most - used, step, r, p, image)
        used += done
        if flat:  # W falls along p without end: go to the first bound
            length = _length_to_bounds(z, p, low, high)
            if length == np.inf:
                break
            for i in range(n):
                step[i] += length * p[i]
        first = min(1.0, _length_to_bounds(z, step, low, high))
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
            curvature = _multiply(arrays, s, diagonal, moved, U, image)
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
        if length < SHORT_STEP:
            cuts += 1
            if cuts == MAX_SHORT_STEPS:  # coordinate descent corrects the active set sooner
                break
    return used


def minimize_free_variables(
    problem: LinearProblem,
    s: float,
    t: Array,
    z: Array,
    u: Array,
    H: Array,
    *,
    products: int,
    share: float,
    least: float,
) -> tuple[Array, int]:
    """Minimise the dual over the variables that are not at a bound; return z and the number of visits to points.

    Parameters
    ----------
    problem : the problem, of which s and t replace its own.
    z, u : the dual vector and (X'z, s sum z).
    H : the diagonal of the Hessian.
    products : the limit on the products with K.
    share : the run ends when the gradient is this share of the first.
    least : or when it is this small.
    """
    lower, upper, epsilon, rows = problem.lower, problem.upper, problem.epsilon, problem.rows
    chosen = np.flatnonzero((z > lower) & (z < upper) & ((z != 0) if epsilon > 0 else True))
    if len(chosen) == 0:
        return z, 0
    part, g = z[chosen], np.empty(len(chosen))
    low, high = lower[chosen], upper[chosen]
    _gradient(rows.arrays, s, u, chosen, t, problem.D, z, g)
    if epsilon > 0:  # the kink at 0 is a bound
        low, high = np.where(part > 0, 0.0, low), np.where(part < 0, 0.0, high)
        g += epsilon * np.sign(part)
    numbers = int((rows.arrays[2][chosen + 1] - rows.arrays[2][chosen]).sum()) if rows.sparse else len(chosen) * rows.d
    products = min(products, MAX_WORK // (numbers + 1))
    if products < MIN_PRODUCTS:
        return z, 0
    diagonal, inverse = problem.D[chosen], H[chosen]
    np.divide(1.0, inverse, out=inverse, where=inverse > 0)
    if rows.sparse:
        data, indices, indptr = rows.arrays
        *gathered, rest, m = _gather(data, indices, indptr, chosen, rows.d)
        arrays, diagonal = tuple(gathered), diagonal + rest
    else:
        arrays, m = rows.arrays[chosen], rows.d
    least = max(least, 1e-15 * (problem.unit + float(np.abs(t[chosen]).max()))) ** 2 * float(inverse.sum())
    used = _minimize_box(arrays, s, diagonal, inverse, part, g, low, high, m, products, share, least)
    z = z.copy()
    z[chosen] = part
    return z, used * len(chosen)


@njit(**LOOP)
def restore_zero_sum(z, own, bound):
    """Make sum_m z_m = 0 up to one rounding, within the bounds, by z_own, or else by the least z_m.

    A z_m that should be 0 is then exactly 0; otherwise it would not count as a variable at its bound.
    """
    others, least = 0.0, -1
    for m in range(len(z)):
        if m != own:
            others += z[m]
            if least < 0 or z[m] < z[least]:
                least = m
    if z[own] < bound:
        z[own] = min(bound, -others)
    if -others > bound or z[own] == bound:
        z[least] = min(z[least] - (others + z[own]), 0.0)


@njit(**LOOP)
def _project_gradient(G, free, out):
    """Set out = G minus its mean over the free classes of each point, 0 elsewhere; return the sum of its squares."""
    total = 0.0
    for i in range(G.shape[0]):
        count, mean = 0, 0.0
        for m in range(G.shape[1]):
            if free[i, m]:
                count += 1
                mean += G[i, m]
        mean /= max(count, 1)
        for m in range(G.shape[1]):
            out[i, m] = G[i, m] - mean if free[i, m] and count > 1 else 0.0
            total += out[i, m] * out[i, m]
    return total


@njit(**LOOP)
def _move_to_bounds(z, direction, length, bounds, y, free):
    """Move z, at most to the first bound, where a variable is no longer free; return the share of the step taken."""
    share, n, k = 1.0, z.shape[0], z.shape[1]
    for i in range(n):
        for m in range(k):
            step = length * direction[i, m]
            if step > bounds[i, m] - z[i, m]:
                share = min(share, (bounds[i, m] - z[i, m]) / step)
    for i in range(n):
        hit = False
        for m in range(k):
            step = share * length * direction[i, m]
            if free[i, m] and step != 0:
                z[i, m] += step
                if share < 1 and z[i, m] >= bounds[i, m] * (1 - 1e-15):
                    z[i, m], free[i, m], hit = bounds[i, m], False, True
        if hit:
            restore_zero_sum(z[i], y[i], bounds[i, y[i]])
    return share


def minimize_free_classes(
    problem: ClassesProblem, z: Array, *, iterations: int, share: float
) -> tuple[Array, Array, Array, bool]:
    """Minimise Crammer and Singer's dual over the z_im below their bounds, with sum_m z_im = 0.

    It ends after so many iterations, or when the residual is `share` of the first. Return u, z, f and whether that
    share was reached.
    """
    z, free = z.copy(), z < problem.bounds
    G = problem.scores(problem.combine(z)) + 1.0
    G[np.arange(len(z)), problem.y] -= 1.0
    residual, U, image = np.empty_like(z), np.empty((problem.rows.d + 1, problem.k)), G.copy()
    size = _project_gradient(G, free, residual)
    goal = max(share**2 * size, len(z) * (1e-16 * np.abs(G).max()) ** 2)
    direction = -residual
    for _ in range(iterations):
        if size <= goal:
            break
        problem.combine(direction, U)
        curvature = float(np.einsum("ij,ij->", U, U))
        if curvature <= 0:
            break
        length = size / curvature
        problem.scores(U, image)
        taken = _move_to_bounds(z, direction, length, problem.bounds, problem.y, free)
        image *= taken * length
        G += image
        before, size = size, _project_gradient(G, free, residual)
        direction *= size / before if taken == 1 else 0.0
        direction -= residual
    for i in np.flatnonzero(free.any(axis=1)):
        restore_zero_sum(z[i], problem.y[i], problem.C[i])
    u = problem.combine(z)
    return u, z, problem.scores(u), size <= goal
