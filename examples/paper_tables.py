"""Reproduce Table 1 and Table 2 of the paper, and say what their numbers do not show.

    python examples/paper_tables.py              ten seeds
    python examples/paper_tables.py --seeds 1    one seed

Reads svmguide1 and svmguide3 from the directory in the environment variable SYMSVM_DATA.
"""

import argparse
import time
import warnings
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from symsvm import SVM_parallel
from symsvm.data import load, signs, standardise


class Application(NamedTuple):
    """A row of the paper's tables."""

    title: str
    name: str
    C: float
    gamma: float  # for LIBSVM, Table 1
    libsvm: float  # accuracy in per cent, Table 1
    sigma: float  # for SVM_parallel, Table 2
    steps: int
    time: str
    accuracy: float


APPLICATIONS = (
    Application("Astroparticle", "svmguide1", 2.0, 2.0, 96.9, 0.30, 15, "1 h 7 min 18 s", 96.1),
    Application("Vehicle", "svmguide3", 128.0, 0.125, 87.8, 2.0, 20, "14 min 54 s", 95.1),
)


def per_cent(yhat, y):
    """Return the accuracy of decision values in per cent."""
    return 100 * float(np.mean(np.sign(yhat) == y))


def table_1():
    """Print Table 1: the data sets, and LIBSVM on features scaled to [-1, 1]."""
    print("Table 1: the data sets, and LIBSVM (scikit-learn's SVC) on features scaled to [-1, 1]\n")
    print(
        f"{'':14}{'train':>6}{'test':>6}{'features':>9}{'C':>7}{'gamma':>7}{'paper %':>9}{'here %':>8}  test rows in +1"
    )
    for app in APPLICATIONS:
        data = load(app.name)
        scale = MinMaxScaler((-1, 1)).fit(data.X)
        model = SVC(C=app.C, gamma=app.gamma).fit(scale.transform(data.X), data.y)
        here = 100 * model.score(scale.transform(data.X_test), data.y_test)
        positive = f"{int((data.y_test == data.y.max()).sum())} of {len(data.y_test)}"
        print(
            f"{app.title:14}{len(data.X):6}{len(data.X_test):6}{data.X.shape[1]:9}{app.C:7g}{app.gamma:7g}"
            f"{app.libsvm:9.1f}{here:8.1f}  {positive}"
        )


def table_2(seeds):
    """Print Table 2: SVM_parallel on standardised features, over seeds, step sizes and projections."""
    print("\nTable 2: SVM_parallel on standardised features; accuracy on the test set in per cent")
    for app in APPLICATIONS:
        data = load(app.name)
        X, X_test = standardise(data.X, data.X_test)
        # The label of class +1 is that of the training file: a test file may have one class only.
        y, y_test = signs(data.y), np.where(data.y_test == data.y.max(), 1, -1)
        print(
            f"\n{app.title}: C = {app.C:g}, sigma = {app.sigma:g} (gamma = {1 / (2 * app.sigma**2):.3g}), "
            f"{app.steps} steps"
            f"\n  {'':34}{'min':>7}{'median':>8}{'max':>7}{'|y.lam|':>11}{'gap':>10}{'seconds':>9}"
            f"\n  {'the paper (one run, GTX 980 Ti)':34}{app.accuracy:22.1f}{'':21}{app.time:>16}"
        )
        for projection in ("paper", "exact"):
            svm = SVM_parallel(X, y, len(X), app.C, app.sigma, 0.01, projection=projection)
            svm.build_b()
            for alpha in (0.01, 0.001):
                svm.build_update(alpha=alpha)
                runs = [run(svm, seed, app.steps, X_test, y_test) for seed in range(seeds)]
                accuracy, outside, gap, seconds = map(np.array, zip(*runs, strict=True))
                label = f"{projection} projection, alpha = {alpha:g}"
                worst = "none" if np.isnan(gap).any() else f"{gap.max():.3g}"
                print(
                    f"  {label:34}{accuracy.min():7.1f}{np.median(accuracy):8.1f}"
                    f"{accuracy.max():7.1f}{outside.max():11.1e}{worst:>10}{np.median(seconds):9.1f}"
                )
        print(f"  the largest stable step 2 / lambda_max is {svm.largest_stable_step():.4g}")


def run(svm, seed, steps, X_test, y_test):
    """Train from one random start; return accuracy, |y.lam|, the duality gap (NaN if infeasible) and seconds."""
    svm.lam.set_value(np.random.default_rng(seed).random(svm.m))
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is printed
        svm.train_model_full(max_iters=steps)
    seconds = time.perf_counter() - began
    certificate = svm.certificate()
    gap = np.nan if certificate.gap is None else certificate.gap
    return per_cent(svm.make_predictions_parallel(X_test), y_test), certificate.infeasibility, gap, seconds


NOTES = """
What these numbers do not show
- The text gives alpha = 0.001, but the author's program never read it: its steps were 0.01. On astroparticle, 0.001
  does not reach the published accuracy from any start (benchmarks/paper_starts.py tries 2000).
- lam starts at random, uniform on [0, 1), without a seed: an accuracy is one draw from the range above. The published
  95.1 % on vehicle is 39 of 41 rows, which one start in fifty reaches with alpha = 0.01.
- All 41 vehicle test rows are of class +1: the constant answer +1 scores 100 %, so 95.1 % is no evidence.
- |y.lam| is the violation of the equality of Eq. 21, which must be 0: P and then Pi (Eq. 26) do not end feasible, and
  an infeasible point has no duality gap. The exact projection ends feasible at the same cost per step.
- 15 or 20 steps end far from the optimum, where the gap would be 0: the classifier is stopped early, not trained.
- Table 1 scales features to [-1, 1], Table 2 standardises them, and sigma = 0.30 is gamma = 5.56, not the 2.0 of
  Table 1: the two rows compare different models, not different solvers.
- The files have 22 features where Table 1 counts 21; the last one is 0 in every row.
"""


def main():
    """Print both tables and the notes."""
    parser = argparse.ArgumentParser(description="Reproduce Table 1 and Table 2 of the paper.")
    parser.add_argument("--seeds", type=int, default=10, help="the number of random starts (default 10)")
    args = parser.parse_args()
    table_1()
    table_2(args.seeds)
    print(NOTES)


if __name__ == "__main__":
    main()
