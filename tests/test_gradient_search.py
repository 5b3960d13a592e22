"""A search by gradient: losses as from independent fits, gradients as differences, limits, interrupts, scikit-learn."""

import dataclasses
import itertools
import os
import signal

import numpy as np
import pytensor.tensor as pt
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

from symsvm import RBF, SVC, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM, Precomputed, pair_kernel
from symsvm.estimators.calibration import platt
from symsvm.model_selection.criteria import Criterion
from symsvm.model_selection.descent import coarse_grid
from symsvm.model_selection.fold_threads import FoldThreads
from symsvm.model_selection.held_out_loss import HeldOutLoss
from symsvm.model_selection.search_space import SearchSpace
from symsvm.tuning import GradientSearchCV

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 3))
VALUES = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * RNG.normal(size=60)
TARGETS = {"numbers": VALUES, "two": np.where(VALUES > 0, "yes", "no"), "three": np.digitize(VALUES, [-0.6, 0.6])}
WEIGHTS = RNG.integers(0, 4, size=60).astype("float64")
WIDTHS = np.array([0.8, 1.5, 2.5])
BOTH = ["C", "kernel__sigma"]
TUBE = ["C", "epsilon", "kernel__sigma"]


def cauchy(y, f):
    """A loss that symsvm does not have."""
    return pt.log1p((y - f) ** 2).mean()


def weighted(y, f, w):
    """One with weights."""
    return (w * pt.log1p((y - f) ** 2)).sum() / w.sum()


def scaled_rbf(x, z, sigma):
    """The RBF kernel as a pair function: it takes the tiled graphs, not the products of matrices."""
    return pt.exp(-(((x - z) / sigma) ** 2).sum() / 2)


# Estimator, parameters, targets, options.
CASES = {
    "log loss": (SVC(C=2.0, kernel=RBF(1.3)), BOTH, "two", {}),
    "gamma": (SVC(C=2.0, gamma=0.4), ["C", "gamma"], "two", {}),
    "gamma of the points": (SVC(C=2.0), ["C"], "two", {}),
    "linear": (SVC(C=0.5, kernel="linear"), ["C"], "two", {}),
    "smooth hinge": (SVC(C=2.0, kernel=RBF(1.3)), BOTH, "two", {"scoring": "smooth_hinge"}),
    "a user's loss": (SVC(C=2.0, kernel=RBF(1.3)), BOTH, "two", {"scoring": cauchy}),
    "weights": (
        SVC(C=2.0, kernel=RBF(1.3), class_weight="balanced"),
        BOTH,
        "three",
        {"weights": WEIGHTS, "scoring": weighted},
    ),
    "pairs of classes": (SVC(C=2.0, kernel=RBF(1.3)), BOTH, "three", {}),
    "each against the rest": (SVC(C=2.0, kernel=RBF(1.3), multi_class="ovr"), BOTH, "three", {}),
    "a penalised intercept": (SVC(C=2.0, kernel=RBF(1.3), penalize_intercept=True), BOTH, "two", {}),
    "no intercept": (SVC(C=2.0, kernel=RBF(1.3), fit_intercept=False), BOTH, "two", {}),
    "a pair function": (SVC(C=2.0, kernel=pair_kernel(scaled_rbf, sigma=WIDTHS)), BOTH, "two", {}),
    "a sum of kernels": (
        SVC(C=2.0, kernel=0.5 * RBF(1.3) + 0.3 * pair_kernel(scaled_rbf, sigma=WIDTHS)),
        ["C", "kernel__k1__c", "kernel__k1__k1__sigma", "kernel__k2__k1__sigma"],
        "two",
        {},
    ),
    "widths": (SVC(C=2.0, kernel=RBF(WIDTHS)), BOTH, "two", {}),
    "widths, a regression": (SVR(C=2.0, kernel=RBF(WIDTHS), epsilon=0.2), TUBE, "numbers", {}),
    "sparse points": (SVR(C=2.0, kernel=RBF(WIDTHS), epsilon=0.2), TUBE, "numbers", {"points": sparse.csr_matrix(X)}),
    "poly": (SVC(C=0.5, kernel="poly", degree=2, gamma=0.5, coef0=1.0), ["C", "gamma", "coef0"], "two", {}),
    "absolute error": (SVR(C=2.0, kernel=RBF(1.3)), TUBE, "numbers", {"scoring": "absolute_error"}),
    "weighted regression": (SVR(C=2.0, kernel=RBF(1.3)), TUBE, "numbers", {"weights": WEIGHTS}),
    "nu": (NuSVC(nu=0.4, kernel=RBF(1.3)), ["nu", "kernel__sigma"], "two", {}),
    "nu, weights": (
        NuSVC(nu=0.3, kernel=RBF(1.3), class_weight={"yes": 5.0}),
        ["nu", "kernel__sigma"],
        "two",
        {"weights": WEIGHTS},
    ),
    "nu regression": (NuSVR(nu=0.4, C=2.0, kernel=RBF(1.3)), ["C", "nu", "kernel__sigma"], "numbers", {}),
    "leave-one-out": (SVC(C=2.0, kernel=RBF(WIDTHS)), BOTH, "two", {"loo": True}),
    "leave-one-out, a pair function": (
        SVC(C=2.0, kernel=pair_kernel(scaled_rbf, sigma=1.3)),
        BOTH,
        "two",
        {"loo": True},
    ),
    "leave-one-out, pairs": (SVC(C=2.0, kernel=RBF(1.3)), BOTH, "three", {"loo": True, "scoring": "smooth_hinge"}),
    "leave-one-out, regression": (SVR(C=2.0, kernel=RBF(1.3), epsilon=0.2), TUBE, "numbers", {"loo": True}),
}


def folds_of(y):
    """Three folds."""
    kind = KFold(3) if y.dtype.kind == "f" else StratifiedKFold(3)
    return list(kind.split(X, y))


def held_out_loss(estimator, over, kind, *, scoring=None, weights=None, loo=False, points=X, tol=1e-10, workers=1):
    """Return the loss as a function of parameters, in threads that the caller closes."""
    y, given = TARGETS[kind], getattr(estimator, "gamma", None) == "scale" and isinstance(estimator.kernel, str)
    space = SearchSpace(estimator, over, gamma=0.4 if given and estimator.kernel != "linear" else None)
    criterion = Criterion(scoring, is_classifier=kind != "numbers", is_weighted=weights is not None)
    folds = None if loo else folds_of(y)
    return HeldOutLoss(space, points, y, weights, folds, criterion, FoldThreads(workers), memory=2**30, tol=tol)


# Cases that compile loops of their own for the gradients of a kernel.
COMPILED = ("a sum", "a penalised", "a pair")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name.startswith(COMPILED) else name for name in CASES],
)
def test_the_gradient_is_that_of_differences(name):
    estimator, over, kind, options = CASES[name]
    loss = held_out_loss(estimator, over, kind, **options)
    space = loss.space
    x, h = space.x_of({}), 1e-5
    found = loss(space.params_of(x))
    assert found.status == "done"
    by_x, differences = space.gradient(found.params, found.gradient), []
    for step in np.eye(space.n) * h:
        above, below = (loss(space.params_of(x + s), gradient=False).loss for s in (step, -step))
        differences.append((above - below) / (2 * h))
    assert np.abs(by_x - differences).max() < 2e-7 * max(np.abs(differences).max(), 1e-2)
    again = loss(space.params_of(x))
    assert again.loss == pytest.approx(found.loss, rel=1e-10)
    loss.close()


def pair_losses(model, Z, y):
    """The labels and the decision values of each pair of classes on its own points."""
    values = model.set_params(decision_function_shape="ovo").decision_function(Z).reshape(len(y), -1)
    k = len(model.classes_)
    for column, (a, b) in enumerate(itertools.combinations(range(k), 2)):
        here = np.isin(y, model.classes_[[a, b]])
        sign = 1.0 if k == 2 else -1.0  # the first class of a pair is positive for scikit-learn
        yield (a, b), np.where(y[here] == model.classes_[b], 1.0, -1.0), sign * values[here, column]


@pytest.mark.parametrize("kind", ["two", "three"])
def test_the_log_loss_is_that_of_independent_fits(kind):
    estimator, y = SVC(C=2.0, kernel=RBF(1.3), tol=1e-8), TARGETS[kind]
    pooled = {}
    for train, test in folds_of(y):
        model = clone(estimator).fit(X[train], y[train])
        for key, signs, f in pair_losses(model, X[test], y[test]):
            pooled.setdefault(key, []).append((signs, f))
    total, n = 0.0, 0
    for pieces in pooled.values():
        signs, f = (np.concatenate(part) for part in zip(*pieces, strict=True))
        A, B = platt(f, (signs > 0).astype(float), np.ones(len(f)))
        above, below = (signs > 0).sum(), (signs < 0).sum()
        t = np.where(signs > 0, (above + 1) / (above + 2), 1 / (below + 2))
        p = 1 / (1 + np.exp(A * f + B))
        total, n = total - (t * np.log(p) + (1 - t) * np.log(1 - p)).sum(), n + len(f)
    found = held_out_loss(estimator, BOTH, kind)({"C": 2.0, "kernel__sigma": 1.3}, gradient=False)
    assert found.loss == pytest.approx(total / n, rel=1e-8)


def test_the_error_of_a_regression_is_that_of_independent_fits():
    estimator, y = SVR(C=2.0, kernel=RBF(1.3), tol=1e-9), TARGETS["numbers"]
    scores = cross_val_score(estimator, X, y, cv=KFold(3), scoring="neg_mean_squared_error")
    found = held_out_loss(estimator, TUBE, "numbers")({"C": 2.0, "kernel__sigma": 1.3, "epsilon": 0.1})
    assert found.loss == pytest.approx(-scores.mean(), rel=1e-7)


@pytest.mark.parametrize("estimator", [SVC(C=0.8, kernel=RBF(1.3)), SVR(C=0.8, kernel=RBF(1.3), epsilon=0.2)])
def test_leave_one_out_is_that_of_refits_where_no_other_variable_reaches_a_bound(estimator):
    y = TARGETS["two" if is_classifier(estimator) else "numbers"]
    estimator = clone(estimator).set_params(tol=1e-10)
    loss = held_out_loss(estimator, BOTH, "two" if is_classifier(estimator) else "numbers", loo=True)
    values, seen = [], []
    loss.criterion = lambda groups: (seen.append(groups[0][1]), (0.0, [np.zeros(len(groups[0][1]))]))[1]
    loss({"C": 0.8, "kernel__sigma": 1.3}, gradient=False)
    whole, same = estimator.fit(X, y), []
    z = whole.solutions_[0].z
    upper = np.abs(whole.solutions_[0].program.upper - whole.solutions_[0].program.lower)
    kinds = np.where(z == 0, 0, np.where(np.abs(z) >= upper * (1 - 1e-9), 2, 1)).reshape(-1, 60)
    for i in range(60):
        rest = np.delete(np.arange(60), i)
        model = clone(estimator).fit(X[rest], y[rest])
        w = model.solutions_[0].z
        others = np.where(w == 0, 0, np.where(np.abs(w) >= 0.8 * (1 - 1e-9), 2, 1)).reshape(-1, 59)
        same.append(np.array_equal(others, np.delete(kinds, i, axis=1)))
        decide = model.decision_function if is_classifier(estimator) else model.predict
        values.append(decide(X[[i]])[0])
    same, values = np.array(same), np.array(values)
    assert same.sum() >= 10
    assert np.abs(seen[0] - values)[same].max() < 1e-7
    assert np.corrcoef(seen[0], values)[0, 1] > 0.99


def test_without_a_matrix_in_memory_the_loss_is_the_same():
    found = []
    for memory in (2**30, 0):
        loss = held_out_loss(*CASES["widths, a regression"][:3])
        loss = HeldOutLoss(
            loss.space, X, loss.y, None, loss.folds, loss.criterion, FoldThreads(1), memory=memory, tol=1e-10
        )
        found.append(loss(loss.space.params_of(loss.space.x_of({}))))
    assert found[1].loss == pytest.approx(found[0].loss, rel=1e-10)
    for name, value in found[0].gradient.items():
        assert found[1].gradient[name] == pytest.approx(value, rel=1e-6)


# ---- the search


def quick(estimator=None, over=BOTH, **options):
    """A search over a few cells."""
    estimator = SVC(kernel=RBF(1.0)) if estimator is None else estimator
    grid = {"C": [1.0, 10.0], "kernel__sigma": [0.7, 2.0]} if over is BOTH else None
    return GradientSearchCV(estimator, over, **{"cv": 3, "grid": grid, "n_jobs": 1, **options})


def test_the_search_finds_the_optimum_of_a_fine_grid():
    search = quick().fit(X, TARGETS["two"])
    loss = held_out_loss(SVC(kernel=RBF(1.0)), BOTH, "two", tol=1e-6)
    fine = [
        loss({"C": C, "kernel__sigma": s}, gradient=False).loss
        for s in np.exp(np.linspace(np.log(0.3), np.log(30), 10))
        for C in np.exp(np.linspace(np.log(0.1), np.log(3000), 10))
    ]
    assert search.best_loss_ < min(fine) * 1.005
    assert search.status_ == "converged"
    grid = search.cv_results_["mean_test_score"][search.cv_results_["stage"] == 0]
    assert search.best_score_ > grid.max()
    assert len(grid) == 4


def test_the_prior_holds_widths_together():
    y = TARGETS["numbers"]
    spreads = []
    for prior in (None, 1.0, 0.1):
        search = GradientSearchCV(
            SVR(kernel=RBF(np.ones(3))), TUBE, cv=3, prior=prior, n_jobs=1, starts=1, max_iter=10
        ).fit(X, y)
        sigma = search.best_params_["kernel__sigma"]
        assert sigma.shape == (3,)
        spreads.append(np.log(sigma).std())
        if prior == 1.0:
            assert np.argmin(sigma) == 1  # the targets are a sine of the second feature
    assert spreads[0] > spreads[1] > spreads[2] > 0


@pytest.mark.parametrize("name", ["pairs of classes", "nu regression", "leave-one-out, regression", "sparse points"])
def test_the_same_search_gives_the_same_bits(name):
    estimator, over, kind, options = CASES[name]
    cv = "loo" if options.get("loo") else 3
    found = []
    for jobs in (1, 2, 1):
        search = GradientSearchCV(estimator, over, cv=cv, n_jobs=jobs, random_state=0, max_iter=3, starts=1)
        found.append(search.fit(options.get("points", X), TARGETS[kind]))
    for other in found[1:]:
        for key, value in found[0].best_params_.items():
            assert np.array_equal(value, other.best_params_[key])
        assert np.array_equal(found[0].cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])


def test_it_is_an_estimator_after_the_rules_of_scikit_learn():
    search = quick(scoring="smooth_hinge", max_iter=2, random_state=0)
    twin = clone(search)
    assert twin.get_params()["over"] == BOTH
    assert twin.get_params()["estimator__C"] == 1.0
    search.fit(X, TARGETS["two"], sample_weight=WEIGHTS)
    model = SVC(kernel=RBF(1.0)).set_params(**search.best_params_).fit(X, TARGETS["two"], sample_weight=WEIGHTS)
    assert np.array_equal(search.predict(X), model.predict(X))
    assert np.array_equal(search.decision_function(X), model.decision_function(X))
    assert search.score(X, TARGETS["two"]) == model.score(X, TARGETS["two"])
    assert search.classes_.tolist() == ["no", "yes"]
    assert (search.n_features_in_, search.n_splits_) == (3, 3)
    assert is_classifier(search)
    assert is_regressor(GradientSearchCV(SVR(), ["C"]))
    results = search.cv_results_
    assert results["params"][search.best_index_] == search.best_params_
    assert results["mean_test_score"][search.best_index_] == search.best_score_
    assert results["rank_test_score"].min() == 1
    assert len(results["param_C"]) == search.n_evaluations_
    assert not hasattr(search, "predict_proba")
    assert not hasattr(GradientSearchCV(SVR(), ["C"]), "decision_function")
    assert hasattr(GradientSearchCV(SVC(calibration="sigmoid"), ["C"]), "predict_proba")


def test_without_refit_there_is_no_model():
    search = quick(refit=False, max_iter=1).fit(X, TARGETS["two"])
    assert not hasattr(search, "best_estimator_")
    with pytest.raises(AttributeError, match="refit=False"):
        search.predict(X)


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"max_evaluations": 6}, "max_evaluations"),
        ({"progress": lambda step: step.done == 6}, "callback"),
        ({"time_limit": 1e-9}, "time_limit"),
    ],
)
def test_a_budget_returns_the_best_so_far(options, status):
    with pytest.warns(ConvergenceWarning, match="best of . evaluations"):
        search = quick(**options).fit(X, TARGETS["two"])
    assert search.status_ == status
    assert search.n_evaluations_ == (1 if status == "time_limit" else 6)
    losses = -search.cv_results_["mean_test_score"]
    assert search.best_loss_ == losses[search.cv_results_["stage"] == (0 if status == "time_limit" else 1)].min()
    assert search.best_estimator_.certificate_.status == "optimal"


def test_too_few_iterations_are_said():
    assert quick(max_iter=1, starts=1, tol=1e-12).fit(X, TARGETS["two"]).status_ == "max_iter"


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_ends_a_search_with_the_best_so_far(jobs):
    def interrupt(step):
        if step.done == 5:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.warns(ConvergenceWarning, match="Ctrl-C"):
        search = quick(progress=interrupt, n_jobs=jobs).fit(X, TARGETS["two"])
    assert search.status_ == "interrupted"
    assert 5 <= search.n_evaluations_ <= 6
    assert search.best_estimator_.certificate_.status == "optimal"


def test_ctrl_c_before_the_first_evaluation_is_raised(monkeypatch):
    def interrupted(self, params, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(HeldOutLoss, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        quick().fit(X, TARGETS["two"])


def test_fits_that_stop_short_have_no_loss():
    with pytest.raises(ValueError, match="no evaluation of the search has a held-out loss.*max_iter"):
        quick(SVC(kernel=RBF(1.0), max_iter=0)).fit(X, TARGETS["two"])
    loss = held_out_loss(NuSVC(nu=0.05, kernel="linear"), ["nu"], "two", tol=1e-6)
    found = loss({"nu": 0.02})
    assert (found.loss, found.gradient) == (np.inf, None)
    assert "nu is too small" in found.status
    assert np.isfinite(loss({"nu": 0.5}).loss)  # and the next one is as if nothing had been
    assert "nu must be at most" in loss({"nu": 0.999}).status
    loss = held_out_loss(SVC(kernel="poly", degree=2, gamma=1.0), ["gamma"], "two", tol=1e-3)
    assert "not finite" in loss({"gamma": 1e200}).status
    assert np.isfinite(loss({"gamma": 0.1}).loss)


def test_a_search_goes_around_parameters_that_fail(monkeypatch):
    evaluate = HeldOutLoss.__call__

    def fails_above(self, params, **options):
        found = evaluate(self, params, **options)
        return dataclasses.replace(found, loss=np.inf, gradient=None) if params["C"] > 4 else found

    free = quick(starts=1).fit(X, TARGETS["two"])
    assert free.best_params_["C"] > 4
    monkeypatch.setattr(HeldOutLoss, "__call__", fails_above)
    search = quick(starts=1).fit(X, TARGETS["two"])
    grid = search.cv_results_["mean_test_score"][search.cv_results_["stage"] == 0].max()
    assert search.best_score_ > grid
    assert search.best_params_["C"] <= 4


@pytest.mark.parametrize(
    ("estimator", "over", "options", "message"),
    [
        (OneClassSVM(), ["nu"], {}, "OneClassSVM has no labels"),
        (LinearSVC(), ["C"], {}, "takes SVC, SVR, NuSVC or NuSVR, got LinearSVC"),
        (SVC(kernel="precomputed"), ["C"], {}, "needs a kernel with an expression"),
        (SVC(kernel=Precomputed(np.eye(60))), ["kernel__gram"], {}, "must be a number or a vector"),
        (SVC(solver="projected-gradient"), ["C"], {}, "leave out solver and mode"),
        (SVC(), [], {}, "names no parameter"),
        (SVC(), ["gama"], {}, "no number of this estimator. Did you mean 'gamma'"),
        (SVC(kernel="poly"), ["degree"], {}, "an integer, which has no derivative"),
        (SVC(kernel="linear"), ["gamma"], {}, "no effect on the linear kernel"),
        (SVC(), ["C", "C"], {}, "names 'C' twice"),
        (SVR(epsilon=0.0), ["epsilon"], {}, "epsilon must be positive to have a logarithm"),
        (SVC(), {"C": (2.0, 1.0)}, {}, "low < high"),
        (SVC(), {"C": (0.0, 1.0)}, {}, "range of C must be positive"),
        (NuSVC(), {"nu": (0.1, 1.5)}, {}, "between 0 and 1"),
        (SVC(), ["C"], {"scoring": "accuracy"}, "scoring of a classifier must be 'log_loss' or 'smooth_hinge'"),
        (SVC(), ["C"], {"scoring": lambda y, f: y - f}, "must return a scalar graph"),
        (SVC(), ["C"], {"scoring": lambda y: y}, "got one of 1 arguments"),
        (SVC(), ["C"], {"grid": {"gamma": [1.0]}}, "grid names 'gamma'"),
        (SVC(), {"C": (0.1, 10.0)}, {"grid": {"C": [100.0]}}, "outside the range"),
        (SVC(), ["C"], {"cv": "five"}, "cv must be"),
        (NuSVC(), ["nu"], {"cv": "loo"}, "cv='loo' is for SVC and SVR"),
        (SVC(), ["C"], {"prior": -1.0}, "prior must be positive"),
        (SVC(), ["C"], {"starts": 0}, "starts must be at least 1"),
        (SVC(), ["C"], {"progress": 1}, "progress must be a function"),
        (SVC(tol=-1), ["C"], {}, "tol must be positive"),
        (SVC(kernel=RBF(1.0) + 0.1), ["kernel__k1__sigma"], {"points": sparse.csr_matrix(X)}, "over sparse points"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_cannot_be_searched_is_refused(estimator, over, options, message):
    points = options.pop("points", X)
    y = TARGETS["numbers" if isinstance(estimator, SVR) else "two"]
    with pytest.raises((TypeError, ValueError), match=message):
        GradientSearchCV(estimator, over, n_jobs=1, **options).fit(points, y)


def test_weights_need_a_loss_that_sees_them():
    with pytest.raises(ValueError, match="does not see the weights"):
        quick(scoring=cauchy).fit(X, TARGETS["two"], sample_weight=WEIGHTS)


def test_a_range_bounds_the_search():
    search = quick(over={"C": (0.5, 2.0), "kernel__sigma": None}, grid={"C": [1.0], "kernel__sigma": [1.0]})
    C = search.fit(X, TARGETS["two"]).cv_results_["param_C"]
    assert C.min() >= 0.5
    assert C.max() <= 2.0


def test_coordinates_of_numbers():
    kernel = 0.5 * RBF(1.0) + pair_kernel(scaled_rbf, sigma=-2.0)
    names = ["nu", "kernel__k1__c", "kernel__k1__k1__sigma", "kernel__k2__sigma"]
    space = SearchSpace(NuSVC(nu=0.3, kernel=kernel), names)
    assert [c.scale for c in space.coordinates] == ["logit", "log", "log", "linear"]
    x = space.x_of({})
    assert x == pytest.approx([np.log(0.3 / 0.7), np.log(0.5), 0.0, -2.0])
    assert space.params_of(x)["nu"] == pytest.approx(0.3)


def test_the_default_grid_is_in_the_scale_of_the_data():
    space = SearchSpace(SVR(kernel=RBF(np.array([1.0, 1.0, 4.0]))), TUBE)
    cells = coarse_grid(space, 100 * X, 1000 * VALUES)
    assert len(cells) == 16
    sigma = np.array([cell["kernel__sigma"] for cell in cells])
    assert np.allclose(sigma[:, 2] / sigma[:, 0], 4)
    assert 100 < np.exp(np.log(sigma).mean()) < 400
    assert {cell["epsilon"] for cell in cells} == {0.1 * np.std(1000 * VALUES)}
