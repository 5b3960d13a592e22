"""A search over C and gamma with 5 folds beside GridSearchCV of scikit-learn, in one run.

    SYMSVM_DATA=DIRECTORY python benchmarks/tuning.py [--turns 3] [--jobs 2] [--sets svmguide1 synthetic] [--cluster]

Two searches over the RBF kernel: 5 x 5 cells, 125 fits, on svmguide1 scaled to [-1, 1], and 4 x 3 cells, 60 fits, on
6000 synthetic points of 20 features. `symsvm.tuning.tune` and symsvm's `GridSearchCV` run in threads, `GridSearchCV`
over scikit-learn's SVC (LIBSVM) and over symsvm's in processes, with the same folds and tolerance. They take turns, and
the best turn of each counts. The first call is listed separately: symsvm loads its compiled loops (and compiles them if
they are not in the cache), scikit-learn starts processes. The last lines compare mean scores cell by cell, and say
whether all bits are the same with one thread.

With `--cluster` the contestants are `tune` in threads, `tune` over as many workers of a local Dask cluster, of one
thread each, and `GridSearchCV` over symsvm's SVC, in processes and on the same cluster by joblib.
"""

import argparse
import contextlib
import time

import joblib
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC as LIBSVM

from symsvm import SVC, data, tuning
from symsvm.data import Scaling, data_home
from symsvm.tuning import tune


def svmguide1():
    """Return points, labels and a grid."""
    points, labels = data.read(data_home() / "svmguide1")[:2]
    X = Scaling((-1, 1)).fit_transform(points.toarray() if hasattr(points, "toarray") else points)
    return X, labels, {"C": [2.0**k for k in (-1, 2, 5, 8, 11)], "gamma": [2.0**k for k in (-7, -5, -3, -1, 1)]}


def synthetic():
    """Return points, labels and a grid."""
    X, y = make_classification(6000, 20, n_informative=10, flip_y=0.05, random_state=0)
    X = Scaling("z-score").fit_transform(X)
    return X, y, {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.02, 0.05, 0.1]}


SETS = {"svmguide1": svmguide1, "synthetic": synthetic}


def timed(work):
    """Return the seconds of the work and its result."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def compare(name, turns, jobs):
    """Print the times and the differences for one set."""
    X, labels, grid = SETS[name]()

    def search(estimator, jobs):
        found = GridSearchCV(estimator, grid, n_jobs=jobs, refit=False).fit(X, labels)
        return found.cv_results_["mean_test_score"]

    def table(jobs):
        return tune(SVC(), X, labels, grid, n_jobs=jobs).table

    def shared(jobs):
        found = tuning.GridSearchCV(SVC(), grid, n_jobs=jobs, refit=False).fit(X, labels)
        assert found.engine_ == "shared"
        return found.cv_results_["mean_test_score"]

    runs = {
        "tune": lambda: table(jobs)["mean_score"],
        "tune, one thread": lambda: table(1)["mean_score"],
        "halving": lambda: tune(SVC(), X, labels, grid, n_jobs=jobs, search="halving").best_score,
        "symsvm's GridSearchCV": lambda: shared(jobs),
        "GridSearchCV over symsvm.SVC": lambda: search(SVC(), jobs),
        "GridSearchCV": lambda: search(LIBSVM(), jobs),
    }
    first = {name: timed(run) for name, run in runs.items()}
    best = dict.fromkeys(runs, np.inf)
    for _ in range(turns):
        for key, run in runs.items():
            best[key] = min(best[key], timed(run)[0])
    ours, alone, theirs = (first[key][1] for key in ("tune", "tune, one thread", "GridSearchCV"))
    scores = first["GridSearchCV over symsvm.SVC"][1]
    print(f"\n{name}, {len(X)} points, {len(ours)} cells in 5 folds, {jobs} jobs; seconds")
    print(f"{'':34}{'first call':>12}{'best of ' + str(turns):>12}{'tune is':>11}")
    for key in runs:
        print(f"{key:34}{first[key][0]:12.2f}{best[key]:12.2f}{best[key] / best['tune']:9.2f} x")
    print(f"largest difference of mean scores: {np.abs(ours - theirs).max():.1e} from scikit-learn,", end=" ")
    print(f"{np.abs(ours - scores).max():.1e} from GridSearchCV over symsvm; the same bits with one thread:", end=" ")
    print(np.array_equal(ours, alone))
    found = first["symsvm's GridSearchCV"][1]
    print(f"symsvm's GridSearchCV: {np.abs(found - theirs).max():.1e} from scikit-learn")
    print(f"best score: {ours.max():.4f}, scikit-learn {theirs.max():.4f}, halving {first['halving'][1]:.4f}")


def compare_clusters(name, turns, jobs):
    """Print the times of searches on a local cluster beside those of threads and processes, for one set."""
    import distributed

    X, labels, grid = SETS[name]()

    def search(backend):
        with joblib.parallel_config(backend) if backend else contextlib.nullcontext():
            found = GridSearchCV(SVC(), grid, n_jobs=None if backend else jobs, refit=False).fit(X, labels)
        return found.cv_results_["mean_test_score"]

    options = {"n_workers": jobs, "threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        runs = {
            "tune, threads": lambda: tune(SVC(), X, labels, grid, n_jobs=jobs).table["mean_score"],
            "tune, Dask": lambda: tune(SVC(), X, labels, grid, client=client).table["mean_score"],
            "GridSearchCV, processes": lambda: search(None),
            "GridSearchCV, Dask": lambda: search("dask"),
        }
        scores = {key: run() for key, run in runs.items()}  # compiles, and starts processes
        best = dict.fromkeys(runs, np.inf)
        for _ in range(turns):
            for key, run in runs.items():
                best[key] = min(best[key], timed(run)[0])
    least = min(best["tune, threads"], best["GridSearchCV, processes"])
    ours = scores["tune, threads"]
    print(f"\n{name}, {len(X)} points, {len(ours)} cells in 5 folds, symsvm.SVC, {jobs} jobs or workers of one thread")
    print(f"{'':34}{'best of ' + str(turns):>12}{'of the best without a cluster':>32}{'scores':>12}")
    for key in runs:
        same = "the same" if np.array_equal(scores[key], ours) else f"{np.abs(scores[key] - ours).max():.1e}"
        print(f"{key:34}{best[key]:12.2f}{best[key] / least:30.2f} x{same:>12}")


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cluster", action="store_true")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    args = parser.parse_args()
    for name in args.sets:
        (compare_clusters if args.cluster else compare)(name, args.turns, args.jobs)


if __name__ == "__main__":
    main()
