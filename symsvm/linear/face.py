"""The face of a point: Crammer and Singer's z that are below their bounds, solved for together.

Near the optimum the bounds that hold are known, and what is slow is the rest: points that are almost the same take
each other's z in steps as small as their violation. For all z_im below their bounds, with sum_m z_im = 0,

    minimise  1/2 sum_m |[X s]'z_m|^2 + sum_im e_im z_im

by conjugate gradients, whose residuals have their mean over the free classes of each point taken off. A step ends at
the first bound; that z_im leaves the face, and the gradients begin anew (More and Toraldo, On the solution of large
quadratic programming problems with bound constraints, 1991).
"""

import numpy as np
from numba import njit

from symsvm.linear.rows import FAST

__all__ = ["close", "face_descent"]

_LOOP = {"cache": True, "nogil": True, **FAST}


@njit(**_LOOP)
def close(z, own, bound):
    """sum_m z_m = 0 up to one rounding, bounds kept: z_own is what the others leave, else the least z takes the rest.

    What should be 0 is 0 then: a rounding there would count as a point that is not at its bound.
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


@njit(**_LOOP)
def _projected(G, free, out):
    """out = G where free, less its mean over the free classes of each point; the sum of its squares."""
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


@njit(**_LOOP)
def _moved(z, direction, length, bounds, y, free):
    """Move z, at most to the first bound, where `free` ends; return the share of the length that was left."""
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
            close(z[i], y[i], bounds[i, y[i]])
    return share


def face_descent(problem, z, *, iterations, share):
    """Descend on the face of z for so many iterations, or until the residual is a share of the first; return u, z, f.

    And whether that share was reached.
    """
    z, free = z.copy(), z < problem.bounds
    G = problem.scores(problem.combined(z)) + 1.0
    G[np.arange(len(z)), problem.y] -= 1.0
    residual, U, image = np.empty_like(z), np.empty((problem.rows.d + 1, problem.k)), G.copy()
    size = _projected(G, free, residual)
    goal = max(share**2 * size, len(z) * (1e-16 * np.abs(G).max()) ** 2)
    direction = -residual
    for _ in range(iterations):
        if size <= goal:
            break
        problem.combined(direction, U)
        curvature = float(np.einsum("ij,ij->", U, U))
        if curvature <= 0:
            break
        length = size / curvature
        problem.scores(U, image)
        taken = _moved(z, direction, length, problem.bounds, problem.y, free)
        image *= taken * length
        G += image
        before, size = size, _projected(G, free, residual)
        direction *= size / before if taken == 1 else 0.0
        direction -= residual
    for i in np.flatnonzero(free.any(axis=1)):
        close(z[i], problem.y[i], problem.C[i])
    u = problem.combined(z)
    return u, z, problem.scores(u), size <= goal
