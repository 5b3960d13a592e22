"""Train the SVM of the paper on real data, equation by equation, and plot the result.

    python examples/run.py [--mode JAX]

The data are two features of scikit-learn's breast cancer set, so that the decision function can be drawn.
"""

import argparse
import time
import warnings
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from symsvm import SVM_parallel, plot
from symsvm.data import signs, standardise

matplotlib.use("Agg")
FEATURES = ("worst radius", "worst concave points")
C, SIGMA = 1.0, 1.0


def data():
    """Return standardised training and test points of two features, and their labels -1, +1."""
    bunch = load_breast_cancer()
    columns = [list(bunch.feature_names).index(name) for name in FEATURES]
    X, X_test, y, y_test = train_test_split(bunch.data[:, columns], signs(bunch.target), train_size=150, random_state=0)
    return *standardise(X, X_test), y, y_test


def optimum(X, y):
    """Return W* by LIBSVM, an independent solver: -sum lam + 1/2 q.Kq at its solution."""
    peer = SVC(C=C, gamma=1 / (2 * SIGMA**2), tol=1e-8).fit(X, y)
    q = peer.dual_coef_[0]
    S = peer.support_vectors_
    K = np.exp(-((S[:, None] - S[None]) ** 2).sum(-1) / (2 * SIGMA**2))
    return 0.5 * q @ K @ q - np.abs(q).sum()


def main():
    """Train with both projections, print the results, and write a plot."""
    parser = argparse.ArgumentParser(description="Train the paper's SVM on real data, equation by equation.")
    parser.add_argument("--mode", default="NUMBA", help="the backend, NUMBA (default) or JAX")
    parser.add_argument("--steps", type=int, default=5000, help="the number of gradient steps (default 5000)")
    parser.add_argument(
        "--out", type=Path, default=Path("out/run.png"), help="the file of the plot (default out/run.png)"
    )
    args = parser.parse_args()

    X, X_test, y, y_test = data()
    m = len(X)
    print(f"Data     breast cancer, {' and '.join(FEATURES)}: m = {m} training points, {len(X_test)} test points")
    print(f"Eq. 33   K(x, z) = exp(-|x - z|^2 / (2 sigma^2)), sigma = {SIGMA:g}")
    print("Eq. 21   minimise W(lam) = -sum lam_i + 1/2 sum_ij lam_i lam_j y_i y_j K(x_i, x_j)")
    print(f"         subject to y.lam = 0, 0 <= lam_i <= C = {C:g}")

    W_star = optimum(X, y)
    histories = {}
    for projection in ("paper", "exact"):
        svm = SVM_parallel(X, y, m, C, SIGMA, 0.01, random_state=0, projection=projection, mode=args.mode)
        alpha = 0.95 * svm.largest_stable_step()
        svm.build_update(alpha=alpha)
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate is printed
            first = svm.train_model_full(max_iters=1)  # compiles
            compiled = time.perf_counter()
            rest = svm.train_model_full(max_iters=args.steps - 1)
        trained = time.perf_counter()
        W = histories[f"{projection} projection"] = np.concatenate([first, rest])
        print(f"\nProjection: {'P, then Pi (Eq. 26)' if projection == 'paper' else 'onto both sets at once, exact'}")
        print(f"Eq. 25   {args.steps} steps, alpha = {alpha:.4g} (stable below {svm.largest_stable_step():.4g})")
        print(f"         W = {W[0]:.4f} at the start, {W[-1]:.6f} before the last step; W* = {W_star:.6f} by LIBSVM")
        print(f"         {svm.certificate()}")
        for over, name in (("all", "over all m, as printed"), ("free", "over the free support vectors")):
            b = float(svm.build_b(over).eval())
            accuracy = np.mean(np.sign(svm.make_predictions_parallel(X_test)) == y_test)
            print(f"Eq. 29   b = {b:+.4f} {name};  Eq. 30: {accuracy:.1%} of the test points are right")
        print(
            f"Time     {compiled - began:.1f} s for the first step (compiles), {trained - compiled:.1f} s for the rest"
        )

    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    plot.convergence(histories, W_star, ax=axes[0])
    plot.decision_boundary(svm.make_predictions_parallel, X, y, svm.lam.get_value(), ax=axes[1])
    axes[1].set(xlabel=f"{FEATURES[0]} (standardised)", ylabel=f"{FEATURES[1]} (standardised)")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(args.out, dpi=130)
    print(f"\nPlot     {args.out}")


if __name__ == "__main__":
    main()
