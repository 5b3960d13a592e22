"""The linear solvers beside scikit-learn's LinearSVC and LinearSVR (LIBLINEAR), in one run.

    SYMSVM_DATA=DIRECTORY python benchmarks/linear.py [--rows NAME ...] [--turns 2]

Both get the same points (CSR or dense), C and tolerance (1e-4, the default of scikit-learn), and the best turn of each
counts. Both run in one thread, except for matrix products. P of each result is evaluated in float64. `to theirs` is the
time at which the run of symsvm, which evaluates P from time to time, first reached the P of scikit-learn (nan: a model
ended more than 1e-9 above it); `ratio` is the time of scikit-learn divided by it. `P` is the relative excess of
scikit-learn's P, summed over the models.
"""

import argparse
import tarfile
import time
import warnings
from collections import namedtuple

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC, LinearSVR

from symsvm.data import data_home
from symsvm.linear import Rows, solve_crammer_singer, solve_linear

EPSILON = 0.1
Row = namedtuple("Row", "name X Y C loss penalty")  # Y: one vector a model


def narrow(X):
    """Return a CSR matrix with 32-bit indices, which scikit-learn needs."""
    X = X.tocsr()
    X.indices, X.indptr = X.indices.astype("int32"), X.indptr.astype("int32")
    return X


def a9a():
    """Return a9a: sparse, 32561 x 123."""
    X, y = load_svmlight_file(str(data_home() / "a9a"))
    return narrow(X), y


def news():
    """Return 20 newsgroups as TF-IDF, 11314 x 130107, and the group of each post."""
    texts, groups = [], []
    with tarfile.open(data_home() / "20news-bydate.tar.gz") as archive:
        for member in archive:
            if member.isfile() and "train" in member.name:
                texts.append(archive.extractfile(member).read().decode("latin-1"))
                groups.append(member.name.split("/")[-2])
    return narrow(TfidfVectorizer(sublinear_tf=True).fit_transform(texts)), np.unique(groups, return_inverse=True)[1]


def synthetic():
    """Return a synthetic set: dense, 100000 x 20."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 20))
    score = X @ rng.normal(size=20) + 2 * rng.normal(size=len(X))
    return X, np.where(score > 0, 1.0, -1.0), score


def rows():
    """Return the functions that make the rows of the table, by name."""
    kinds = [("squared_hinge", "l2"), ("hinge", "l2"), ("squared_hinge", "l1")]

    def of_a9a(loss, penalty, C):
        X, y = a9a()
        return Row(f"a9a, {loss}, {penalty}, C = {C:g}", X, [y], C, loss, penalty)

    def of_dense(loss, penalty, C):
        X, y, t = synthetic()
        return Row(f"dense, {loss}, {penalty}, C = {C:g}", X, [y if "hinge" in loss else t], C, loss, penalty)

    def of_news(loss, penalty, C, models):
        X, group = news()
        Y = [np.where(group == k, 1.0, -1.0) for k in range(models)]
        return Row(f"20 newsgroups, {models} models, {loss}, {penalty}, C = {C:g}", X, Y, C, loss, penalty)

    table = {}
    for loss, penalty in kinds:
        for C in (0.01, 1.0):
            table[f"a9a {loss} {penalty} {C:g}"] = lambda a=loss, b=penalty, c=C: of_a9a(a, b, c)
            table[f"dense {loss} {penalty} {C:g}"] = lambda a=loss, b=penalty, c=C: of_dense(a, b, c)
        models = 20 if penalty == "l2" else 2
        table[f"news {loss} {penalty}"] = lambda a=loss, b=penalty, m=models: of_news(a, b, 1.0, m)
    for loss in ("epsilon_insensitive", "squared_epsilon_insensitive"):
        table[f"dense {loss}"] = lambda a=loss: of_dense(a, "l2", 0.01)
    return table


def primal(row, y, w, b):
    """Return P by its definition."""
    f = row.X @ w + b
    xi = np.maximum(0, 1 - y * f) if "hinge" in row.loss else np.maximum(0, np.abs(y - f) - EPSILON)
    xi = xi**2 if row.loss.startswith("squared") else xi
    R = 0.5 * (w @ w + b * b) if row.penalty == "l2" else np.abs(w).sum() + abs(b)
    return R + row.C * xi.sum()


def theirs(row):
    """Return the seconds, and the P of each model, of scikit-learn."""
    began, models = time.perf_counter(), []
    for y in row.Y:
        if "hinge" in row.loss:
            dual = True if row.loss == "hinge" else (False if row.penalty == "l1" else "auto")
            model = LinearSVC(C=row.C, loss=row.loss, penalty=row.penalty, dual=dual, random_state=0)
        else:
            model = LinearSVR(C=row.C, loss=row.loss, epsilon=EPSILON, dual="auto", random_state=0)
        models.append(model.fit(row.X, y))
    seconds = time.perf_counter() - began
    found = zip(models, row.Y, strict=True)
    return seconds, [primal(row, y, m.coef_.ravel(), float(np.ravel(m.intercept_)[0])) for m, y in found]


def ours(row, targets):
    """Return the seconds, those until each P reached its target, the P of each model, and the algorithm."""
    began = time.perf_counter()
    points, solutions, spent = Rows(row.X, 1.0), [], []
    shared = time.perf_counter() - began
    options = {"loss": row.loss, "penalty": row.penalty, "epsilon": EPSILON}
    for y in row.Y:
        start = time.perf_counter()
        solutions.append(solve_linear(points, y, row.C, **options))
        spent.append(time.perf_counter() - start)
    reached = shared
    for solution, target, whole in zip(solutions, targets, spent, strict=True):
        P = solution.trace["gap"] - solution.trace["W"]
        there = np.flatnonzero(P <= target * (1 + 1e-9))
        reached += whole - solution.trace["seconds"][-1] + solution.trace["seconds"][there[0]] if len(there) else np.nan
    values = [primal(row, y, s.w, s.intercept) for s, y in zip(solutions, row.Y, strict=True)]
    return shared + sum(spent), reached, values, solutions[0].algorithm


def classes(turns):
    """Print the row of the Crammer-Singer SVM on the first four groups."""
    X, group = news()
    X, group = X[group < 4], group[group < 4]
    solve_crammer_singer(X[:50], np.arange(50) % 2, 1.0)

    def value(w, b):
        F = X @ w + b
        E = F + 1
        E[np.arange(len(group)), group] -= 1
        return 0.5 * (np.sum(w**2) + np.sum(b**2)) + np.sum(E.max(axis=1) - F[np.arange(len(group)), group])

    best = np.full(3, np.inf)
    for _ in range(turns):
        began = time.perf_counter()
        model = LinearSVC(multi_class="crammer_singer", random_state=0).fit(X, group)
        middle = time.perf_counter()
        solution = solve_crammer_singer(X, group, 1.0)
        whole, target = time.perf_counter() - middle, value(model.coef_.T, model.intercept_)
        there = np.flatnonzero(solution.trace["gap"] - solution.trace["W"] <= target * (1 + 1e-9))
        seconds = solution.trace["seconds"]
        reached = whole - seconds[-1] + seconds[there[0]] if len(there) else np.nan
        best = np.fmin(best, [whole, reached, middle - began])
    own = value(solution.w, solution.b)
    times = f"{best[0]:9.3f}{best[1]:11.3f}{best[2]:11.3f}{best[2] / best[1]:8.2f}"
    print(f"{'20 newsgroups, 4 classes, Crammer-Singer':62}{times}{(target - own) / own:10.1e}  {solution.algorithm}")


def main():
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", nargs="*", default=None, help="the first letters of the names of rows (default all)")
    parser.add_argument("--turns", type=int, default=2)
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # both may stop at their iteration limits; the table shows P
    wanted = [n for n in rows() if args.rows is None or any(n.startswith(r) for r in args.rows)]
    print(f"{'':62}{'symsvm s':>9}{'to theirs':>11}{'sklearn s':>11}{'ratio':>8}{'P':>10}")
    for name in wanted:
        row = rows()[name]()
        first = [max(1, np.flatnonzero(y > 0)[0], np.flatnonzero(y < 0)[0]) + 1 for y in row.Y]
        few = max(1200 if "news" in name else 200, first[0])  # compiles loops before the measurement
        solve_linear(row.X[:few], row.Y[0][:few], row.C, loss=row.loss, penalty=row.penalty, epsilon=EPSILON)
        runs = [theirs(row) for _ in range(args.turns)]
        seconds, targets = min(run[0] for run in runs), runs[0][1]  # the seed is fixed: every turn has the same P
        mine = [ours(row, targets) for _ in range(args.turns)]
        whole, reached = min(run[0] for run in mine), min(run[1] for run in mine)
        worse = (sum(targets) - sum(mine[0][2])) / sum(mine[0][2])
        times = f"{whole:9.3f}{reached:11.3f}{seconds:11.3f}{seconds / reached:8.2f}"
        print(f"{row.name:62}{times}{worse:10.1e}  {mine[0][3]}", flush=True)
    if args.rows is None or "classes" in args.rows:
        classes(args.turns)


if __name__ == "__main__":
    main()
