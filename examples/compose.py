"""Train duals that libraries lack: write W as a paper writes it, solve, and check the duality gap by hand.

    python examples/compose.py [--rows 2000]

Six duals, each a function of at most 15 lines that returns an `Objective`. They need no Gram matrix, no gradient and no
loop over points: `symsvm.solve` reads each W as a sum over pairs and a sum over points (docs/reading.md), solves it by
`Decomposition`, and certifies the result. Then NumPy computes the primal objective of the same machine, which symsvm
does not know, from the multipliers: the difference, the duality gap, is 0 only at the optimum of both.
"""

import argparse

import numpy as np
import pytensor
import pytensor.tensor as pt
from sklearn.datasets import make_moons

import symsvm
from symsvm import RBF, Objective, pair_kernel, sum_over

C, MU, NU, SIGMA = 1.0, 0.5, 0.2, 0.6
MULTIPLE = (0.2, 0.6, 2.0)  # the widths of the kernels that are combined


def shared(**arrays):
    """Return arrays as shared variables."""
    return [pytensor.shared(array, name=name) for name, array in arrays.items()]


def double_sum(q, X, kernel):
    """Return sum_i q_i sum_j q_j K(x_i, x_j)."""
    return sum_over(lambda q_i, x_i: q_i * sum_over(lambda q_j, x_j: q_j * kernel.pair(x_i, x_j), q, X), q, X)


# ---- the duals


def huberised(points, labels):
    """A hinge loss rounded off at its kink, over a mixture of Gaussians of all widths.

    With xi the slack, loss(xi) = max over 0 <= lam <= C of lam xi - mu/2 lam^2 = 0, xi^2 / (2 mu) or C xi - mu C^2 / 2.
    """
    X, y, lam = shared(X=points, y=labels, lam=np.zeros(len(labels)))
    kernel = pair_kernel(lambda x, z, scale: (1 + ((x - z) ** 2).sum() / scale) ** -1.0, scale=2.0)
    W = 0.5 * double_sum(lam * y, X, kernel) - lam.sum() + 0.5 * MU * (lam**2).sum()
    return Objective(W, variable=lam, lower=0.0, upper=C, equality=(y, 0.0))


def ranking(points, better, worse):
    """A ranking: f(x_a) >= f(x_b) + 1 for given pairs (a, b), which are the rows of the double sum."""
    X, lam = shared(X=points, lam=np.zeros(len(better)))

    def H(a, b, c, d):  # <phi(x_a) - phi(x_b), phi(x_c) - phi(x_d)>
        k = RBF(SIGMA).pair
        return k(X[a], X[c]) - k(X[a], X[d]) - k(X[b], X[c]) + k(X[b], X[d])

    def inner(a, b):
        return sum_over(lambda lam_j, c, d: lam_j * H(a, b, c, d), lam, better, worse)

    W = 0.5 * sum_over(lambda lam_i, a, b: lam_i * inner(a, b), lam, better, worse) - lam.sum()
    return Objective(W, variable=lam, lower=0.0, upper=C, is_convex=True)


def smallest_ball(points):
    """SVDD: the smallest ball around the images of the points, but for some outside (Tax and Duin 2004)."""
    X, lam = shared(X=points, lam=np.zeros(len(points)))
    kernel = RBF(SIGMA)
    W = double_sum(lam, X, kernel) - (lam * kernel.diag(X)).sum()
    upper = 1 / (NU * len(points))
    return Objective(W, variable=lam, lower=0.0, upper=upper, equality=(np.ones(len(points)), 1.0))


def uncertain(points, labels, widths):
    """Points that are known up to a Gaussian of width s_i: K is the cosine between two such densities."""
    X, y, s, lam = shared(X=points, y=labels, s=widths, lam=np.zeros(len(labels)))
    half = points.shape[1] / 2

    def K(x, s_i, z, s_j):
        total = s_i**2 + s_j**2
        return (2 * s_i * s_j / total) ** half * pt.exp(-((x - z) ** 2).sum() / (2 * total))

    def inner(x, s_i):
        return sum_over(lambda lam_j, y_j, z, s_j: lam_j * y_j * K(x, s_i, z, s_j), lam, y, X, s)

    W = 0.5 * sum_over(lambda lam_i, y_i, x, s_i: lam_i * y_i * inner(x, s_i), lam, y, X, s) - lam.sum()
    return Objective(W, variable=lam, lower=0.0, upper=C, equality=(y, 0.0), is_convex=True)


def many_tasks(points, labels, task, B):
    """Several related tasks: K(x, z) times B[task, task'], a matrix of similarities with the factor R.R' = B."""
    X, y, R, lam = shared(X=points, y=labels, R=np.linalg.cholesky(B), lam=np.zeros(len(labels)))

    def H(x, t, z, u):
        return RBF(SIGMA).pair(x, z) * (R[t] * R[u]).sum()

    def inner(x, t):
        return sum_over(lambda lam_j, y_j, z, u: lam_j * y_j * H(x, t, z, u), lam, y, X, task)

    W = 0.5 * sum_over(lambda lam_i, y_i, x, t: lam_i * y_i * inner(x, t), lam, y, X, task) - lam.sum()
    return Objective(W, variable=lam, lower=0.0, upper=C, is_convex=True)


def many_kernels(points, labels, weight):
    """Several kernels with the weights d, a shared variable: sum_k d_k K_k(x, z)."""
    X, y, lam = shared(X=points, y=labels, lam=np.zeros(len(labels)))
    W = -lam.sum() + 0.5 * sum(weight[k] * double_sum(lam * y, X, RBF(s)) for k, s in enumerate(MULTIPLE))
    return Objective(W, variable=lam, lower=0.0, upper=C, equality=(y, 0.0))


def learn_weights(points, labels, rounds=100, tol=1e-4):
    """Alternate between lam and the weights d of the kernels, d >= 0 with sum 1; return both and the objectives.

    The primal is sum_k |w_k|^2 / (2 d_k) + the hinge losses. Given d, a run finds w; given w, the best d is
    d_k = |w_k| / sum_l |w_l|, with |w_k|^2 = 2 d_k^2 S_k and S_k = 1/2 q.K_k q. Neither half can raise the primal. Its
    distance from that of the best d is at most max_k S_k - sum_k d_k S_k.
    """
    (weight,) = shared(d=np.full(len(MULTIPLE), 1 / len(MULTIPLE)))
    program = symsvm.compile(many_kernels(points, labels, weight), "auto")
    grams, solution, values = [gaussian(points, points, s) for s in MULTIPLE], None, []
    for _ in range(rounds):
        solution, d = program.run(solution, tol=1e-6), weight.get_value()
        q = solution.lam * labels
        S = np.array([0.5 * q @ (K @ q) for K in grams])
        values.append(-solution.W)
        if S.max() - d @ S <= tol * values[-1]:
            break
        weight.set_value(d * np.sqrt(S) / (d @ np.sqrt(S)))
    return solution, d, np.array(values), S.max() - d @ S


# ---- primal objectives by hand, in NumPy


def gaussian(X, Z, sigma):
    """Return the matrix of exp(-|x - z|^2 / (2 sigma^2))."""
    return np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2) / (2 * sigma**2))


def hinge_primal(K, q, margins):
    """Return 1/2 |theta|^2 + C sum_i max(0, 1 - margin_i), with theta of the coefficients q."""
    return 0.5 * q @ K @ q + C * np.maximum(0, 1 - margins).sum()


def huberised_primal(X, y, solution):
    """Return the primal objective of `huberised`."""
    K, q = 1 / (1 + ((X[:, None] - X[None]) ** 2).sum(axis=2) / 2.0), solution.lam * y
    xi = np.maximum(0, 1 - y * (K @ q + solution.b))
    return 0.5 * q @ K @ q + np.where(xi <= MU * C, xi**2 / (2 * MU), C * xi - MU * C**2 / 2).sum()


def ranking_primal(X, better, worse, solution):
    """Return the primal objective of `ranking`, from coefficients of the points."""
    lam, m = solution.lam, len(X)
    q = np.bincount(better, lam, m) - np.bincount(worse, lam, m)
    K = gaussian(X, X, SIGMA)
    f = K @ q
    return hinge_primal(K, q, f[better] - f[worse])


def ball_primal(X, solution):
    """Return R^2 + sum_i max(0, |phi(x_i) - centre|^2 - R^2) / (nu m), with R^2 from b."""
    K, lam = gaussian(X, X, SIGMA), solution.lam
    size = lam @ K @ lam
    radius = solution.b + size
    return radius + np.maximum(0, np.diag(K) - 2 * K @ lam + size - radius).sum() / (NU * len(X))


def uncertain_primal(X, y, s, solution):
    """Return the primal objective of `uncertain`."""
    total, q = s[:, None] ** 2 + s**2, solution.lam * y
    K = (2 * np.outer(s, s) / total) ** (X.shape[1] / 2)
    K = K * np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / (2 * total))
    return hinge_primal(K, q, y * (K @ q + solution.b))


def tasks_primal(X, y, task, B, solution):
    """Return the primal objective of `many_tasks`."""
    K, q = gaussian(X, X, SIGMA) * B[np.ix_(task, task)], solution.lam * y
    return hinge_primal(K, q, y * (K @ q))


def data(m):
    """Return two moons with labels, widths and tasks, and pairs of points in the order of a hidden score."""
    rng = np.random.default_rng(0)
    X, y = make_moons(m, noise=0.25, random_state=0)
    a, b = rng.integers(0, m, (2, m))
    score = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=m)
    better, worse = np.where(score[a] > score[b], a, b), np.where(score[a] > score[b], b, a)
    apart = better != worse
    return X, 2.0 * y - 1, rng.uniform(0.2, 0.8, m), rng.integers(0, 3, m), better[apart], worse[apart]


def main():
    """Solve every dual, print its certificate and the gap by hand; return the relative gaps by name."""
    parser = argparse.ArgumentParser(description="Train duals that libraries lack.")
    parser.add_argument("--rows", type=int, default=2000, help="the number of points (default 2000)")
    m = parser.parse_args().rows
    X, y, s, task, better, worse = data(m)
    B = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    problems = {
        "Huberised hinge": (huberised(X, y), lambda found: huberised_primal(X, y, found)),
        "ranking": (ranking(X, better, worse), lambda found: ranking_primal(X, better, worse, found)),
        "SVDD": (smallest_ball(X), lambda found: ball_primal(X, found)),
        "uncertain points": (uncertain(X, y, s), lambda found: uncertain_primal(X, y, s, found)),
        "many tasks": (many_tasks(X, y, task, B), lambda found: tasks_primal(X, y, task, B, found)),
    }
    gaps = {}
    for name, (objective, primal) in problems.items():
        program = symsvm.compile(objective, "auto")
        solution = program.run(tol=1e-6)
        by_hand = primal(solution)
        gaps[name] = (by_hand + solution.W) / abs(by_hand)
        print(f"{name}: {program.solver!r}\n  {solution.certificate}")
        print(f"  primal by hand {by_hand:.9g}, dual {-solution.W:.9g}, relative gap {gaps[name]:.1e}")
    solution, d, values, gap = learn_weights(X, y)
    gaps["many kernels"] = gap / values[-1]
    rises = int((np.diff(values) > 0).sum())
    print(f"many kernels: {values[0]:.9g} falls to {values[-1]:.9g} in {len(values)} rounds, {rises} of which rise")
    print(f"  {solution.certificate}")
    print(f"  weights {np.round(d, 4)} of widths {MULTIPLE}, relative gap to the best ones {gaps['many kernels']:.1e}")
    return gaps


if __name__ == "__main__":
    main()
