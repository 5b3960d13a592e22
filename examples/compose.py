"""Train a kernel and a dual of your own: write them as in a paper, solve, and check the duality gap.

    python examples/compose.py

Take the dual of the paper (Eq. 21) and add a quadratic term,

    minimise W(lam) = -sum_i lam_i + 1/2 sum_ij lam_i lam_j y_i y_j K(x_i, x_j) + mu/2 sum_i lam_i^2
    subject to 0 <= lam_i <= C, y.lam = 0.

It is the dual of an SVM whose hinge loss is rounded off at its kink (the Huberised hinge): with xi the slack,

    loss(xi) = max over 0 <= lam <= C of  lam xi - mu/2 lam^2  =  0,  xi^2 / (2 mu)  or  C xi - mu C^2 / 2.

symsvm has neither this loss nor the kernel below; it needs only W and the feasible set.
"""

import argparse

import numpy as np
import pytensor
from sklearn.datasets import load_iris

import symsvm
from symsvm import sum_over
from symsvm.data import signs, standardise
from symsvm.evaluation.evaluator import KernelEvaluator

C, MU = 1.0, 0.5


def rational_quadratic(x, z, scale):
    """Return K(x, z) for one pair: a mixture of Gaussians of all widths."""
    return (1 + ((x - z) ** 2).sum() / (2 * scale)) ** -1.0


def build_W(lam, X, y, kernel):
    """Return W: the double sum of Eq. 21, and the new quadratic term."""

    def inner(x_i):
        return sum_over(lambda lam_j, y_j, x_j: lam_j * y_j * kernel.pair(x_i, x_j), lam, y, X)

    double_sum = sum_over(lambda lam_i, y_i, x_i: lam_i * y_i * inner(x_i), lam, y, X)
    return -lam.sum() + 0.5 * double_sum + 0.5 * MU * (lam**2).sum()


def primal(lam, b, y, Kq):
    """Return the primal value, 1/2 |theta|^2 + the sum of the Huberised hinge loss, in NumPy."""
    xi = np.maximum(0, 1 - y * (Kq + b))
    loss = np.where(xi <= MU * C, xi**2 / (2 * MU), C * xi - MU * C**2 / 2)
    return 0.5 * (lam * y) @ Kq + loss.sum()


def main():
    """Train on two species of iris, compare the dual value with the primal one, and return the gap."""
    parser = argparse.ArgumentParser(description="Train a dual that symsvm does not have.")
    parser.add_argument("--mode", default="NUMBA", help="the backend, NUMBA (default) or JAX")
    parser.add_argument(
        "--rows", type=int, default=100, help="the number of training points, at most 100 (default 100)"
    )
    args = parser.parse_args()

    iris = load_iris()
    rows = np.flatnonzero(iris.target > 0)
    rows = np.random.default_rng(0).permutation(rows)[: args.rows]
    (points,), labels = standardise(iris.data[rows]), signs(iris.target[rows])

    kernel = symsvm.pair_kernel(rational_quadratic, scale=2.0)
    X = pytensor.shared(points, name="X", shape=points.shape)
    y = pytensor.shared(labels, name="y", shape=labels.shape)
    lam = pytensor.shared(np.zeros(len(labels)), name="lam", shape=labels.shape)

    objective = symsvm.Objective(
        build_W(lam, X, y, kernel), variable=lam, lower=0.0, upper=C, equality=(y, 0.0), is_convex=True
    )
    print(objective)
    solution = symsvm.solve(objective, mode=args.mode, tol=1e-6, max_iter=5000)
    print(f"{solution.n_iter} steps, stopped by {solution.stopped}")
    print(solution.certificate)

    Kq = KernelEvaluator(kernel, mode=args.mode).matvec(points, points, solution.lam * labels)
    value = primal(solution.lam, solution.b, labels, Kq)
    print(f"primal by hand {value:.8f}, dual {-solution.W:.8f}, gap {value + solution.W:.2e}")
    print(f"accuracy on the training points {np.mean(np.sign(Kq + solution.b) == labels):.1%}")
    return value + solution.W


if __name__ == "__main__":
    main()
