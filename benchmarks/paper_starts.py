"""The effect of the random start on Table 2: the recursion of the paper (Eq. 25) from many starts, in NumPy.

    python benchmarks/paper_starts.py [--starts 2000]

The Gram matrix is computed once, and all starts are the columns of one matrix, so that thousands of starts are cheap.
Except for reading the data it shares no code with symsvm, so it is an independent check of `SVM_parallel`: the first
columns have the seeds of `examples/paper_tables.py`. Reads svmguide1 and svmguide3 from the directory in SYMSVM_DATA.
"""

import argparse

import numpy as np
from sklearn.svm import SVC

from symsvm.data import load, signs, standardise

# title, name, C, sigma, steps, correct answers or per cent in the paper
APPLICATIONS = (("Astroparticle", "svmguide1", 2.0, 0.30, 15, 96.1), ("Vehicle", "svmguide3", 128.0, 2.0, 20, 95.1))


def rbf(X, Z, sigma):
    """Return K(x_i, z_j) (Eq. 33)."""
    squared = (X**2).sum(1)[:, None] + (Z**2).sum(1)[None] - 2 * X @ Z.T
    return np.exp(-np.maximum(squared, 0) / (2 * sigma**2))


def step(lam, K, y, C, alpha):
    """Return one step of Eq. 25 for every column of lam."""
    lam = lam - alpha * (y[:, None] * (K @ (y[:, None] * lam)) - 1)
    lam = lam - y[:, None] * (y @ lam) / len(y)
    return np.clip(lam, 0, C)


def unstable_step():
    """Print the range of W on astroparticle with sigma = 1, where alpha = 0.01 is above 2 / lambda_max."""
    data = load("svmguide1")
    (X,), y = standardise(data.X), signs(data.y)
    K = rbf(X, X, 1.0)
    lam, W = np.random.default_rng(0).random((len(y), 1)), []
    for _ in range(200):
        lam = step(lam, K, y, 2.0, 0.01)
        q = y[:, None] * lam
        W.append(float(0.5 * (q * (K @ q)).sum() - lam.sum()))
    print(
        f"Astroparticle with sigma = 1: 2 / lambda_max = {2 / np.linalg.eigvalsh(K)[-1]:.4g}; with alpha = 0.01, W is "
        f"between {min(W[-100:]):.3g} and {max(W[-100:]):.3g} in steps 101 to 200"
    )


def main():
    """Print, for each application and step size, accuracy, |y.lam| and W over the starts."""
    parser = argparse.ArgumentParser(description="The paper's recursion from many random starts.")
    parser.add_argument("--starts", type=int, default=2000, help="the number of starts (default 2000)")
    starts = parser.parse_args().starts
    for title, name, C, sigma, steps, published in APPLICATIONS:
        data = load(name)
        X, X_test = standardise(data.X, data.X_test)
        y, y_test = signs(data.y), np.where(data.y_test == data.y.max(), 1, -1)
        K, K_test = rbf(X, X, sigma), rbf(X_test, X, sigma)
        peer = SVC(C=C, gamma=1 / (2 * sigma**2), tol=1e-6).fit(X, y)
        q = np.zeros(len(y))
        q[peer.support_] = peer.dual_coef_[0]
        print(
            f"{title}: {(y > 0).sum()} of {len(y)} training rows in +1; 2 / lambda_max = "
            f"{2 / np.linalg.eigvalsh(K)[-1]:.4g}; LIBSVM on the same data: "
            f"{100 * peer.score(X_test, y_test):.1f} %, W = {0.5 * q @ K @ q - np.abs(q).sum():.1f}"
        )
        for alpha in (0.01, 0.001):
            lam = np.column_stack([np.random.default_rng(seed).random(len(y)) for seed in range(starts)])
            for _ in range(steps):
                lam = step(lam, K, y, C, alpha)
            q = y[:, None] * lam
            Kq = K @ q
            b = (y[:, None] - Kq).mean(axis=0)
            right = (np.sign(K_test @ q + b) == y_test[:, None]).mean(axis=0) * 100
            outside = np.abs(y @ lam)
            W = 0.5 * (q * Kq).sum(axis=0) - lam.sum(axis=0)
            reached = (right >= published - 0.05).mean()
            print(
                f"  alpha = {alpha:<6g}{starts} starts: accuracy {right.min():.1f} to {right.max():.1f} %, median "
                f"{np.median(right):.1f}; the paper's {published} % or more in {reached:.1%} of them; seeds 0, 1, 2: "
                f"{', '.join(f'{v:.1f}' for v in right[:3])}\n"
                f"  {'':14}|y.lam| {outside.min():.2g} to {outside.max():.2g}; W {W.min():.0f} to {W.max():.0f}"
            )
    unstable_step()


if __name__ == "__main__":
    main()
