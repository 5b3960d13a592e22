"""Do gradients through a machine find wrong labels? A ranking by influence beside one by slack.

    python benchmarks/flipped_labels.py

One label in ten of the training points is flipped. The influence of a point is the derivative of the loss of clean
validation points by its penalty C_i, through the exact solution of the machine: where it is largest, less weight of the
point would help most. Its slack is max(0, 1 - y f(x)), which needs no derivative. The table has the part of the flipped
points among as many of the highest rank, the mean of five seeds.
"""

import numpy as np
import pytensor
import pytensor.tensor as pt
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from symsvm import RBF, heads
from symsvm.compiler import function

SEEDS, PART, C = 5, 0.1, 1.0


def sets():
    """Return points and labels -1 and 1, by name."""
    X, y = load_breast_cancer(return_X_y=True)
    digits, numbers = load_digits(return_X_y=True)
    return {
        "breast cancer": (StandardScaler().fit_transform(X), np.where(y > 0, 1.0, -1.0)),
        "digits, 5 to 9 or not": (digits / 16, np.where(numbers > 4, 1.0, -1.0)),
    }


def ranking():
    """Compile the slacks of the training points, and the derivatives of the validation loss by their penalties."""
    X, y, Z, t, penalties = pt.dmatrix("X"), pt.dvector("y"), pt.dmatrix("Z"), pt.dvector("t"), pt.dvector("penalties")
    kernel = RBF(pt.sqrt(X.var(axis=0).sum() / 2))
    q, b = heads.solve_machines(kernel(X), y[None], penalties, is_psd=True)
    slack = pt.maximum(0, 1 - y * (pt.dot(kernel(X), q[0]) + b[0]))
    loss = pt.softplus(-t * (pt.dot(kernel(Z, X), q[0]) + b[0])).mean()
    return function([X, y, Z, t, penalties], [slack, pytensor.grad(loss, penalties)], mode="FAST_COMPILE")


def main():
    """Print the table."""
    run = ranking()
    print(f"{'':24}{'by slack':>12}{'by influence':>14}")
    for name, (X, y) in sets().items():
        found = []
        for seed in range(SEEDS):
            rng = np.random.default_rng(seed)
            order = rng.permutation(len(X))
            train, held = np.split(order, [2 * len(X) // 3])
            flipped = rng.random(len(train)) < PART
            labels = np.where(flipped, -y[train], y[train])
            n = flipped.sum()
            ranks = run(X[train], labels, X[held], y[held], np.full(len(train), C))
            found.append([flipped[np.argsort(-rank, kind="stable")[:n]].mean() for rank in ranks])
        slack, influence = 100 * np.mean(found, axis=0)
        print(f"{name:24}{slack:10.0f} %{influence:12.0f} %")


if __name__ == "__main__":
    main()
