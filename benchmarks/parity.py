"""The estimators beside those of scikit-learn: dual objectives, predictions and scores on real data.

    SYMSVM_DATA=DIRECTORY python benchmarks/parity.py

Both are fitted with tol 1e-5. W is the dual objective that both minimise, evaluated in float64 and summed over pairs of
classes; "worse" is (W - W of scikit-learn) / |W of scikit-learn|, expected to be at most 1e-6. Predictions are compared
where the decision of scikit-learn is not a tie.
"""

import time
import warnings

import numpy as np
import sklearn.svm
from sklearn.datasets import load_digits, load_iris, load_svmlight_file

import symsvm
from symsvm import QuadraticProgram
from symsvm.data import data_home
from symsvm.evaluation.local import LocalKernelMatrix

CLASSES = ("svmguide1", "svmguide2", "svmguide3", "heart_scale", "diabetes_scale", "iris", "digits")
TARGETS = ("cpusmall_scale", "abalone_scale", "housing_scale")


def data(name):
    """Return a data set with standardised columns."""
    if name in ("iris", "digits"):
        X, y = (load_iris if name == "iris" else load_digits)(return_X_y=True)
    else:
        X, y = load_svmlight_file(str(data_home() / name))
        X = X.toarray()
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return X, (y - y.mean()) / y.std() if name in TARGETS else y


def objective(model, X, y, gamma):
    """Return the sum of the dual objectives of a fitted model."""
    gram, total = LocalKernelMatrix(symsvm.RBF.from_gamma(gamma), X), 0.0
    if isinstance(model, sklearn.svm.SVR | symsvm.SVR):
        beta = np.bincount(model.support_, model.dual_coef_[0], len(y))
        problems = [
            (
                np.arange(len(y)),
                np.concatenate([np.maximum(beta, 0), np.minimum(beta, 0)]),
                QuadraticProgram.svr(y, 1.0, 0.1),
            )
        ]
    else:
        problems = list(class_pairs(model, y))
    for rows, z, program in problems:
        beta = program.weights(z)
        support, Kz = np.flatnonzero(beta), np.zeros(len(rows))
        gram.submatrix(rows).product(beta[support], None, support, Kz, exact=True)
        total += program.value(Kz, z)
    return total


def class_pairs(model, y):
    """Yield (rows, z, program) for each pair of classes, from `dual_coef_`."""
    k, ends = len(model.classes_), np.append(0, np.cumsum(model.n_support_))
    for a in range(k):
        for b in range(a + 1, k):
            beta = np.zeros(len(y))
            for this, other in ((a, b - 1), (b, a)):
                part = slice(ends[this], ends[this + 1])
                beta[model.support_[part]] = model.dual_coef_[other, part]
            rows = np.flatnonzero(np.isin(y, model.classes_[[a, b]]))
            first = -1.0 if k == 2 else 1.0
            signs = np.where(y[rows] == model.classes_[a], first, -first)
            yield rows, beta[rows], QuadraticProgram.c_svc(signs, 1.0)


def main():
    """Print the table."""
    warnings.simplefilter("ignore")
    print(f"{'':16}{'W':>16} {'worse':>9} {'score':>8} {'theirs':>8} {'differ':>7} {'seconds':>8} {'theirs':>8}")
    for name in CLASSES + TARGETS:
        X, y = data(name)
        kind = "SVR" if name in TARGETS else "SVC"
        models, seconds = [], []
        gamma = 1 / (X.shape[1] * X.var())
        for module in (symsvm, sklearn.svm):
            getattr(module, kind)(tol=1e-5).fit(X, y)
            began = time.perf_counter()
            models.append(getattr(module, kind)(tol=1e-5).fit(X, y))
            seconds.append(time.perf_counter() - began)
        ours, theirs = models
        W, V = (objective(model, X, y, gamma) for model in models)
        if kind == "SVC":
            votes = theirs.decision_function(X).reshape(len(X), -1)
            top = np.sort(votes, axis=1)
            clear = np.abs(votes[:, 0]) > 1e-3 if votes.shape[1] == 1 else top[:, -1] - top[:, -2] > 1e-3
            differ = int(np.sum((ours.predict(X) != theirs.predict(X)) & clear))
        else:
            differ = float(np.abs(ours.predict(X) - theirs.predict(X)).max())
        figures = f"{ours.score(X, y):8.4f} {theirs.score(X, y):8.4f} {differ:7.2g} {seconds[0]:8.3f} {seconds[1]:8.3f}"
        print(f"{name:16}{W:16.6f} {(W - V) / abs(V):9.1e} {figures}", flush=True)


if __name__ == "__main__":
    main()
