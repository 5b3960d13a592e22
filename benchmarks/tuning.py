"""A search over C and gamma with 5 folds beside GridSearchCV of scikit-learn, in one run.

    SYMSVM_DATA=DIRECTORY python benchmarks/tuning.py [--turns 3] [--jobs 2]

5 x 5 cells in 5 folds, 125 fits over the RBF kernel, on svmguide1 scaled to [-1, 1]: `symsvm.tuning.tune` with threads,
`GridSearchCV` over scikit-learn's SVC (LIBSVM) with processes, the same folds and tolerance. They take turns, and the
best turn of each counts. The first call is listed separately: symsvm loads its compiled loops (and compiles them if
they are not in the cache), scikit-learn starts processes. The last lines compare mean scores cell by cell, and time
`GridSearchCV` over symsvm's SVC in one process.
"""

import argparse
import time

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC as LIBSVM

from symsvm import SVC, data
from symsvm.data import Scaling, data_home
from symsvm.tuning import tune

GRID = {"C": [2.0**k for k in (-1, 2, 5, 8, 11)], "gamma": [2.0**k for k in (-7, -5, -3, -1, 1)]}


def timed(work):
    """Return the seconds of the work and its result."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def main():
    """Print the times and the differences."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    points, labels = data.read(data_home() / "svmguide1")[:2]
    X = Scaling((-1, 1)).fit_transform(points.toarray() if hasattr(points, "toarray") else points)
    runs = {
        "tune": lambda: tune(SVC(), X, labels, GRID, n_jobs=args.jobs).table["mean_score"],
        "halving": lambda: tune(SVC(), X, labels, GRID, n_jobs=args.jobs, search="halving").best_score,
        "GridSearchCV": lambda: search(LIBSVM(), X, labels, args.jobs),
    }
    first = {name: timed(run) for name, run in runs.items()}
    best = dict.fromkeys(runs, np.inf)
    for _ in range(args.turns):
        for name, run in runs.items():
            best[name] = min(best[name], timed(run)[0])
    single, scores = timed(lambda: search(SVC(), X, labels, 1))
    ours, theirs = first["tune"][1], first["GridSearchCV"][1]
    print(f"svmguide1, {len(X)} points, {len(ours)} cells in 5 folds, {args.jobs} jobs; seconds")
    print(f"{'':34}{'first call':>12}{'best of ' + str(args.turns):>12}{'ratio':>8}")
    for name in runs:
        ratio = best["GridSearchCV"] / best[name]
        print(f"{name:34}{first[name][0]:12.2f}{best[name]:12.2f}{ratio:8.2f}")
    print(f"{'GridSearchCV, symsvm, 1 process':34}{'':12}{single:12.2f}{best['GridSearchCV'] / single:8.2f}")
    print(f"largest difference of mean scores: {np.abs(ours - theirs).max():.1e} from scikit-learn,", end=" ")
    print(f"{np.abs(ours - scores).max():.1e} from GridSearchCV over symsvm")
    print(f"best score: {ours.max():.4f}, scikit-learn {theirs.max():.4f}, halving {first['halving'][1]:.4f}")


def search(estimator, X, y, jobs):
    """Return the mean scores of GridSearchCV."""
    return GridSearchCV(estimator, GRID, n_jobs=jobs, refit=False).fit(X, y).cv_results_["mean_test_score"]


if __name__ == "__main__":
    main()
