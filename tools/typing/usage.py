"""Typical code of users: pyright finds nothing here; see `tools/type_checks.py`."""

import numpy as np
import pytensor.tensor as pt

import symsvm
from symsvm import RBF, SVC, Linear, LinearSVC, QuadraticProgram, data, pair_kernel, plot, sum_over, tuning
from symsvm.data import Scaling, read
from symsvm.solvers import Decomposition, Info

X = np.zeros((4, 2))
y = np.array([1, 1, -1, -1])

model = SVC(C=10.0, kernel=RBF(sigma=20.0) + 1e-4 * Linear(), tol=1e-4, class_weight="balanced").fit(X, y)
accuracy: float = model.score(X, y)
labels: np.ndarray = model.predict(X)
values: np.ndarray = model.decision_function(X)
scaled = Scaling("z-score").fit_transform(X)
LinearSVC(loss="hinge", C=1.0).fit(X, y).predict(X)
SVC(kernel="rbf", gamma="scale").set_params(C=2.0)

kernel = pair_kernel(lambda x, z, scale: pt.exp(-((x - z) ** 2).sum() / scale), scale=2.0)
lam, labels_, points = pt.dvector("lam"), pt.dvector("y"), pt.dmatrix("X")
W = 0.5 * sum_over(
    lambda l, t, x: l * t * sum_over(lambda k, s, z: k * s * kernel.pair(x, z), lam, labels_, points),
    lam,
    labels_,
    points,
)
objective = symsvm.Objective(W, variable=lam, lower=0, upper=1.0, equality=(labels_, 0))
program = symsvm.compile(objective, "accelerated-gradient")


def watch(info: Info) -> bool:
    """Stop after a second."""
    return info.seconds > 1.0


dual = symsvm.KernelDual(QuadraticProgram.c_svc(y, C=1.0), X, RBF(1.0))
solution = symsvm.solve(dual, Decomposition(seed=1), tol=1e-6, callback=watch)
gap = solution.certificate.gap
print(symsvm.explain(objective), gap, solution.stopped, solution.lam.sum())

table = read("points.csv")
found = tuning.tune(SVC(), X, y, {"C": [0.1, 1.0]}, folds=3)
plot.decision_boundary(model, X, y)
symsvm.save(model, "model.symsvm")
symsvm.load("model.symsvm").predict(X)
data.load("svmguide1")
symsvm.serve.run("model.symsvm", port=8000)
symsvm.estimators.OneClassSVM(nu=0.1).fit(X).score_samples(X)
with model.watching(watch):
    model.fit(X, y)
