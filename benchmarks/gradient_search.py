"""A search by gradient beside a grid: held-out errors and times, where it helps and where it does not.

    SYMSVM_DATA=DIRECTORY python benchmarks/gradient_search.py [--sets housing,heart] [--splits 5] [--jobs 2] [--cost]

For each set and split, a third of the points is held out. On the others, with the same five folds:

- grid: `tune` over 5 x 5 values of C and gamma, and of 3 of epsilon for regressions (75 cells);
- numbers: `GradientSearchCV` over C, the width of the RBF kernel, and epsilon;
- widths: the same with a width for each feature.

Each search refits its estimator. Errors are those of the third held out: of a regression the root of the mean squared
error divided by the standard deviation of the targets; of a classifier the share of wrong classes in percent, and the
log loss of the same parameters with `calibration="sigmoid"`. Times are seconds of search and refit, and their ratio to
the grid's. The last column counts the splits in which the widths have a smaller error than the grid.

With `--cost`: the processor time of one evaluation, the median of 9 at points near one another, as a part of that of
the five fits by the estimator itself: the loss alone, with its gradient by two or three numbers, and by the widths.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold

from symsvm import RBF, SVC, SVR, data
from symsvm.data import Scaling, data_home
from symsvm.model_selection.criteria import Criterion
from symsvm.model_selection.fold_threads import FoldThreads
from symsvm.model_selection.held_out_loss import HeldOutLoss
from symsvm.model_selection.search_space import SearchSpace
from symsvm.tuning import GradientSearchCV, tune

# name -> (file, or None for scikit-learn's digits; the most points; whether it is a regression)
SETS = {
    "housing": ("housing_scale", 506, True),
    "cpusmall": ("cpusmall_scale", 1000, True),
    "cadata": ("cadata_scale", 1000, True),
    "diabetes": ("diabetes_scale", 768, False),
    "heart": ("heart_scale", 270, False),
    "svmguide3": ("svmguide3", 1000, False),
    "digits": (None, 900, False),
}
GRID = {"C": [0.1, 1.0, 10.0, 100.0, 1000.0], "gamma": [2.0**k for k in (-7, -5, -3, -1, 1)]}
TUBES = {"epsilon": [0.02, 0.1, 0.3]}


def points_of(name):
    """The points and the targets of a set, in an order that is the same in every run."""
    file, most, is_regression = SETS[name]
    if file is None:
        X, y = load_digits(return_X_y=True)
        X = Scaling((0, 1)).fit_transform(X)
    else:
        X, y = data.read(data_home() / file)[:2]
        X = X.toarray() if hasattr(X, "toarray") else X
    rows = np.random.default_rng(0).permutation(len(y))[:most]
    X, y = X[rows], y[rows]
    return X, (y - y.mean()) / y.std() if is_regression else y


def searches(X, y, is_regression, jobs, **options):
    """The three searches, functions that return the best parameters and a fitted model."""
    make, width = (SVR if is_regression else SVC), np.sqrt(X.var(axis=0).sum())
    over = ["C", "epsilon", "kernel__sigma"] if is_regression else ["C", "kernel__sigma"]

    def grid():
        cells = GRID | TUBES if is_regression else GRID
        scoring = "neg_mean_squared_error" if is_regression else None
        tuning = tune(make(), X, y, cells, random_state=0, scoring=scoring, n_jobs=jobs)
        return tuning.best_params, tuning.best_estimator

    def by_gradient(sigma):
        search = GradientSearchCV(make(kernel=RBF(sigma)), over, random_state=0, n_jobs=jobs, **options).fit(X, y)
        return search.best_params_ | {"kernel": RBF(search.best_params_["kernel__sigma"])}, search.best_estimator_

    return {
        "grid": grid,
        "numbers": lambda: by_gradient(width),
        "widths": lambda: by_gradient(np.full(X.shape[1], width)),
    }


def errors(params, model, train, test, is_regression):
    """The held-out error, and of a classifier the log loss."""
    (X, y), (Z, t) = train, test
    if is_regression:
        return [np.sqrt(np.mean((model.predict(Z) - t) ** 2))]
    kernel = {"kernel": params["kernel"]} if "kernel" in params else {"gamma": params["gamma"]}
    calibrated = SVC(C=params["C"], calibration="sigmoid", random_state=0, **kernel).fit(X, y)
    return [100 * np.mean(model.predict(Z) != t), log_loss(t, calibrated.predict_proba(Z), labels=calibrated.classes_)]


def cost(name):
    """Print the times of evaluations as parts of the time of the fits."""
    X, y = points_of(name)
    is_regression, width = SETS[name][2], np.sqrt(X.var(axis=0).sum())
    make, over = (SVR, ["C", "epsilon", "kernel__sigma"]) if is_regression else (SVC, ["C", "kernel__sigma"])
    kind = KFold if is_regression else StratifiedKFold
    folds = list(kind(5, shuffle=True, random_state=0).split(X, y))
    estimator = make(C=10.0, kernel=RBF(width))
    jitter = np.random.default_rng(0).normal(scale=0.05, size=(10, 2 + len(X[0])))

    def fits(k):
        model = clone(estimator).set_params(C=10.0 * np.exp(jitter[k, 0]), kernel__sigma=width * np.exp(jitter[k, 1]))
        for train, _ in folds:
            model.fit(X[train], y[train])

    def evaluation(sigma, gradient):
        space = SearchSpace(make(C=10.0, kernel=RBF(sigma)), over)
        criterion = Criterion(None, is_classifier=not is_regression)
        options = {"memory": 2.0**31, "tol": 1e-6}
        loss, x = HeldOutLoss(space, X, y, None, folds, criterion, FoldThreads(1), **options), space.x_of({})
        return lambda k: loss(space.params_of(x + jitter[k, : space.n]), gradient=gradient)

    wide = np.full(X.shape[1], width)
    works = [fits, evaluation(width, False), evaluation(width, True), evaluation(wide, True)]
    with FoldThreads(1):
        times = np.array([[timed(work, k) for work in works] for k in range(10)])
    first, *others = np.median(times[1:], axis=0)
    print(f"{name:10}{len(y):8}{X.shape[1]:6}{1e3 * first:12.1f} ms" + "".join(f"{t / first:10.2f} x" for t in others))


def timed(work, k):
    """Return the seconds of processor time of the work."""
    began = time.process_time()
    work(k)
    return time.process_time() - began


def main():
    """Print a row for each set."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--starts", type=int, default=2)
    parser.add_argument("--prior", type=float, default=1.0, help="of the widths; 0 for none")
    parser.add_argument("--scoring", help="the loss of the searches by gradient")
    parser.add_argument("--cost", action="store_true")
    args = parser.parse_args()
    if args.cost:
        print(f"{'set':10}{'points':>8}{'d':>6}{'five fits':>15}{'loss':>12}{'numbers':>12}{'widths':>12}")
        for name in args.sets.split(","):
            cost(name)
        return
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(
        f"{args.splits} splits, a third held out: error, log loss of classifiers, seconds and their ratio to the grid's"
    )
    print(f"{'set':10}{'points':>8}{'grid':>26}{'numbers':>34}{'widths':>34}  widths better in")
    for name in args.sets.split(","):
        X, y = points_of(name)
        is_regression = SETS[name][2]
        found = {kind: [] for kind in ("grid", "numbers", "widths")}
        options = {"starts": args.starts, "prior": args.prior or None, "scoring": args.scoring}
        for search in searches(X[:150], y[:150], is_regression, args.jobs, **options | {"starts": 1}).values():
            search()  # loads compiled loops
        for seed in range(args.splits):
            order = np.random.default_rng(seed).permutation(len(y))
            train, test = order[: 2 * len(y) // 3], order[2 * len(y) // 3 :]
            for kind, search in searches(X[train], y[train], is_regression, args.jobs, **options).items():
                began = time.perf_counter()
                params, model = search()
                seconds = time.perf_counter() - began
                row = errors(params, model, (X[train], y[train]), (X[test], y[test]), is_regression)
                found[kind].append([*row, seconds])
        cells = []
        base = np.mean(found["grid"], axis=0)[-1]
        for kind, rows in found.items():
            *values, seconds = np.mean(rows, axis=0)
            text = f"{values[0]:.1f} %" if not is_regression else f"{values[0]:.3f}"
            text += "" if is_regression else f" {values[1]:.3f}"
            cells.append(f"{text}  {seconds:6.2f} s" + ("" if kind == "grid" else f" ({seconds / base:4.1f} x)"))
        better = sum(w[0] < g[0] for w, g in zip(found["widths"], found["grid"], strict=True))
        print(f"{name:10}{len(y):8}{cells[0]:>26}{cells[1]:>34}{cells[2]:>34}  {better} of {args.splits}", flush=True)


if __name__ == "__main__":
    main()
