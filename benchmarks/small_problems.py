"""Measure fits and predictions of small problems, where the time of Python counts and not that of the solver.

    python benchmarks/small_problems.py [--random 200] [--rounds 5] [--seed 0]

iris, wine, breast cancer and digits as scikit-learn ships them, standardised, and random problems of 50 to 500 points
with 2 to 20 features, 2 to 4 classes and C from 0.1 to 100, with the RBF kernel. Both libraries fit `SVC().fit` at
tol 1e-3 in one process that has fitted before; they take turns, and the least time of each counts. The last table is
`model.predict` of a single row.
"""

import argparse
import time
import warnings

import numpy as np
import sklearn.svm
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

import symsvm

NAMED = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}


def random_problem(rng):
    """Return points, labels and C of a random problem: classes around random centres that overlap."""
    m, d, k = int(rng.integers(50, 501)), int(rng.integers(2, 21)), int(rng.integers(2, 5))
    y = np.concatenate([np.arange(k), rng.integers(0, k, m - k)])
    centres = rng.uniform(0.3, 2.0) * rng.normal(size=(k, d))
    return centres[y] + rng.normal(size=(m, d)), y, float(10 ** rng.uniform(-1, 2))


def least_times(calls, rounds):
    """Return the least time of each call; they take turns."""
    times = [np.inf] * len(calls)
    for _ in range(rounds):
        for k, call in enumerate(calls):
            began = time.perf_counter()
            call()
            times[k] = min(times[k], time.perf_counter() - began)
    return times


def fit_times(X, y, C, rounds):
    """Return the least times of both fits."""
    return least_times([lambda: symsvm.SVC(C=C).fit(X, y), lambda: sklearn.svm.SVC(C=C).fit(X, y)], rounds)


def geometric_mean(ratios):
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(ratios))))


def main():
    """Print a line for each data set, and one for the random problems."""
    parser = argparse.ArgumentParser(description="Time small problems.")
    parser.add_argument("--random", type=int, default=200, help="random problems (default 200)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each library (default 5)")
    parser.add_argument("--seed", type=int, default=0, help="of the random problems (default 0)")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(args.seed)
    symsvm.SVC().fit(*random_problem(rng)[:2])  # loads the compiled code
    ratios, models = [], {}
    print("Fits of SVC, ms: symsvm, scikit-learn, ratio")
    for name, load in NAMED.items():
        X, y = load(return_X_y=True)
        X = StandardScaler().fit_transform(X)
        ours, theirs = fit_times(X, y, 1.0, 4 * args.rounds)
        ratios.append(ours / theirs)
        models[name] = X, symsvm.SVC().fit(X, y), sklearn.svm.SVC().fit(X, y)
        print(f"  {name:14}{1e3 * ours:8.2f}{1e3 * theirs:8.2f}{ratios[-1]:7.2f}")
    print(f"  geometric mean of these: {geometric_mean(ratios):.2f}")
    found = []
    for _ in range(args.random):
        ours, theirs = fit_times(*random_problem(rng), args.rounds)
        found.append((ours / theirs, ours, theirs))
    if found:
        of_random, ours, theirs = np.array(found).T
        low, high = np.quantile(of_random, [0.1, 0.9])
        print(
            f"  {len(found)} random problems: {geometric_mean(of_random):.2f} in the geometric mean, {low:.2f} to "
            f"{high:.2f} for four of five; medians {1e3 * np.median(ours):.2f} and {1e3 * np.median(theirs):.2f} ms"
        )
        print(f"  geometric mean of all: {geometric_mean([*ratios, *of_random]):.2f}")
    print("Predictions of a single row, us: symsvm, scikit-learn, ratio")
    for name, (X, ours, theirs) in models.items():
        a, b = least_times([lambda m=ours, X=X: m.predict(X[:1]), lambda m=theirs, X=X: m.predict(X[:1])], 200)
        print(f"  {name:14}{1e6 * a:8.0f}{1e6 * b:8.0f}{a / b:7.2f}")


if __name__ == "__main__":
    main()
