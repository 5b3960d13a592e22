"""A search gives the scores of independent fits, records failures, and stops when asked."""

import itertools
import os
import signal
import threading
from typing import ClassVar

import numpy as np
import pytest
from matplotlib import pyplot
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline

from symsvm import RBF, SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM, plot
from symsvm.data import Scaling
from symsvm.kernels import Precomputed
from symsvm.model_selection import shared_matrix
from symsvm.model_selection.cached_source import CachedKernelSource, RowPoints, SearchStopped
from symsvm.model_selection.grid_search import round_rows
from symsvm.model_selection.shared_matrix import BufferPool, CachedGram, is_computed_faster
from symsvm.tuning import tune

X, Y = make_moons(150, noise=0.3, random_state=0)
NAMES = np.array(["no", "yes"])[Y]
IRIS, KINDS = load_iris(return_X_y=True)
T = np.sin(3 * X[:, 0]) + X[:, 1] ** 2
K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
TWO = {"C": [0.5, 8.0], "gamma": [0.1, 2.0]}

# Estimator, points, targets, grid.
CASES = {
    "two classes": (SVC(), X, NAMES, TWO),
    "three classes": (SVC(tol=1e-6), IRIS, KINDS, {"C": [1.0, 10.0], "gamma": ["scale", 0.5]}),
    "one against the rest": (SVC(multi_class="ovr"), IRIS, KINDS, {"C": [1.0, 10.0], "class_weight": ["balanced"]}),
    "a graph of decisions": (SVC(multi_class="dag"), IRIS, KINDS, {"C": [1.0, 10.0]}),
    "nu": (NuSVC(tol=1e-6), X, Y, {"nu": [0.2, 0.6], "gamma": [0.5]}),
    "regression": (SVR(tol=1e-6), X, T, {"C": [1.0, 10.0], "epsilon": [0.1, 0.3], "gamma": [0.5]}),
    "nu regression": (NuSVR(tol=1e-6), X, T, {"C": [1.0, 10.0], "nu": [0.3, 0.6]}),
    "a kernel's parameters": (SVC(kernel=RBF(1.0) + 0.1), X, Y, {"kernel__k1__sigma": [0.3, 1.0], "C": [1.0, 9.0]}),
    "kernels": (SVC(), X, Y, [{"kernel": ["linear"], "C": [1.0, 2.0]}, {"kernel": ["rbf"], "gamma": [0.5]}]),
    "a matrix": (SVC(kernel="precomputed"), K, Y, {"C": [0.5, 8.0]}),
    "sparse points": (SVC(), sparse.csr_matrix(np.where(np.abs(X) < 0.3, 0, X)), Y, TWO),
    "float32": (SVC(), X.astype("float32"), Y, TWO),
    "an intercept in the kernel": (SVC(penalize_intercept=True), X, Y, {"C": [1.0, 2.0]}),
    "no intercept": (SVC(fit_intercept=False), X, Y, TWO),
    "linear": (LinearSVC(tol=1e-6), X, NAMES, {"C": [0.1, 1.0], "loss": ["hinge", "squared_hinge"]}),
    "linear regression": (LinearSVR(tol=1e-7), X, T, {"C": [0.1, 1.0], "epsilon": [0.0, 0.1]}),
    "scaled": (make_pipeline(Scaling("z-score"), SVC()), 9 * X + 5, Y, {"svc__C": [0.5, 8.0], "svc__gamma": [0.5]}),
    "scalings": (
        make_pipeline(Scaling(), SVC(tol=1e-6)),
        IRIS,
        KINDS,
        {"scaling__to": ["z-score", (0, 1)], "svc__C": [1.0, 10.0]},
    ),
    "scaled and linear": (make_pipeline(Scaling(), LinearSVR(tol=1e-7)), X, T, {"linearsvr__C": [0.1, 1.0]}),
}


@pytest.mark.parametrize("name", CASES)
def test_scores_are_those_of_independent_fits(name):
    estimator, points, targets, grid = CASES[name]
    tuning = tune(estimator, points, targets, grid, folds=3)
    reference = GridSearchCV(estimator, grid, cv=3, refit=False).fit(points, targets)
    independent = np.column_stack([reference.cv_results_[f"split{k}_test_score"] for k in range(3)])
    assert tuning.params == reference.cv_results_["params"]
    np.testing.assert_allclose(tuning.fold_scores, independent, atol=1e-5)
    assert (tuning.table["status"] == "done").all()
    assert np.isclose(tuning.best_score, reference.best_score_, atol=1e-5)
    assert not tuning.best_index or tuning.best_params == reference.best_params_


def test_an_intercept_that_is_not_unique_is_the_middle_as_in_an_independent_fit():
    rng = np.random.default_rng(51)  # after epsilon = 0, rounding leaves 5e-18 of a variable that is 0
    X = rng.normal(size=(49, 1))
    grid = {"C": [0.1], "epsilon": [0.0, 0.1], "gamma": ["scale", 1.0]}
    for y in (X[:, 0] + 0.1 * rng.normal(size=49) for _ in range(10)):
        independent = GridSearchCV(SVR(tol=1e-6), grid).fit(X, y).cv_results_["mean_test_score"]
        np.testing.assert_allclose(tune(SVR(tol=1e-6), X, y, grid).table["mean_score"], independent, atol=1e-6)
        grid_of_nu = {"C": [0.1], "nu": [0.2, 0.7]}  # totals of whole C: no variable need be free
        independent = GridSearchCV(NuSVR(tol=1e-6), grid_of_nu, cv=3).fit(X[:30], y[:30]).cv_results_["mean_test_score"]
        found = tune(NuSVR(tol=1e-6), X[:30], y[:30], grid_of_nu, folds=3).table["mean_score"]
        np.testing.assert_allclose(found, independent, atol=1e-5)


@pytest.mark.parametrize("memory", [0, 12 * 150**2, 2**30])
def test_memory_and_number_of_threads_do_not_change_scores(memory):
    runs = [tune(SVC(), X, Y, TWO, folds=3, n_jobs=n, memory=memory) for n in (1, 3)]
    reference = tune(SVC(), X, Y, TWO, folds=3)
    for run in runs:
        np.testing.assert_array_equal(run.fold_scores, reference.fold_scores)


@pytest.mark.parametrize("case", ["two classes", "three classes", "sparse", "regression"])
def test_values_that_are_computed_give_the_same_scores_with_any_number_of_threads(case, monkeypatch):
    many, classes = make_moons(600, noise=0.3, random_state=1)
    targets = many[:, 0] ** 2
    estimator, points, y = {
        "two classes": (SVC(tol=1e-6), many, classes),
        "three classes": (SVC(tol=1e-6), IRIS, KINDS),
        "sparse": (SVC(tol=1e-6), sparse.csr_matrix(many), classes),
        "regression": (SVR(tol=1e-6), many, targets),
    }[case]
    score = make_scorer(lambda y, f: float(np.abs(f).sum()), response_method="decision_function")
    scoring = {"scoring": score} if case != "regression" else {}

    def search(**options):
        return tune(estimator, points, y, TWO, folds=3, **scoring, **options).fold_scores

    cached = search()
    monkeypatch.setattr(shared_matrix, "_COMPUTED_POINTS", 100)
    monkeypatch.setattr(shared_matrix, "_COMPUTED_CLASS", 40)
    computed = [search(n_jobs=1), search(n_jobs=2), search(n_jobs=3, memory=4 * 600**2), search(memory=0)]
    for scores in computed[1:]:
        np.testing.assert_array_equal(scores, computed[0])
    np.testing.assert_allclose(computed[0], cached, rtol=1e-4)


def test_values_are_computed_where_points_are_many_and_features_few():
    many = np.zeros((3000, 5))
    assert is_computed_faster(RBF(1.0), many, 2)
    assert is_computed_faster(RBF(1.0), sparse.csr_matrix(np.zeros((3000, 900))), 2)
    assert not is_computed_faster(RBF(1.0), many[:900], 2)
    assert not is_computed_faster(RBF(1.0), many, 20)
    assert not is_computed_faster(RBF(1.0), np.zeros((3000, 500)), 2)
    assert not is_computed_faster(Precomputed(np.eye(3000)), Precomputed.points(3000), 2)


def test_the_same_search_gives_the_same_decision_values():
    """The score is a sum of decision values: threads must not change a bit of them."""
    score = make_scorer(lambda y, f: float(np.sum(f)), response_method="decision_function")
    scores = [tune(SVC(), X, Y, TWO, scoring=score, n_jobs=n).fold_scores for n in (1, 2, 2)]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[1], scores[2])


@pytest.mark.parametrize(
    "folds", [4, StratifiedKFold(3, shuffle=True, random_state=1), ShuffleSplit(2, random_state=0), "pairs"], ids=str
)
def test_folds_are_scikit_learns(folds):
    folds = list(KFold(3).split(X)) if isinstance(folds, str) else folds
    reference = GridSearchCV(SVC(), TWO, cv=folds, refit=False).fit(X, Y)
    scores = tune(SVC(), X, Y, TWO, folds=folds).table["mean_score"]
    np.testing.assert_allclose(scores, reference.cv_results_["mean_test_score"], atol=1e-12)


def test_folds_may_be_masks():
    rows = list(KFold(3).split(X))
    masks = [tuple(np.isin(np.arange(len(X)), part) for part in pair) for pair in rows]
    scores = [tune(SVC(), X, Y, TWO, folds=folds).fold_scores for folds in (rows, masks)]
    np.testing.assert_array_equal(*scores)


def test_a_source_over_a_cached_gram_matrix_gives_the_same_fit():
    kernel, train, test = RBF(1.0), np.arange(0, 150, 2), np.arange(1, 150, 2)
    gram = CachedGram(kernel, X, BufferPool().take(150))
    source = CachedKernelSource(gram, train, lambda: False)
    model = SVC(kernel=kernel, tol=1e-8)
    cached = model.with_source(source).fit(RowPoints(train), Y[train])
    model.fit(X[train], Y[train])
    np.testing.assert_array_equal(cached.support_, model.support_)
    values = cached.decision_function(RowPoints(test))
    np.testing.assert_allclose(values, model.decision_function(X[test]), atol=1e-7)
    np.testing.assert_array_equal(clone(cached).fit(X, Y).predict(X), SVC(kernel=kernel, tol=1e-8).fit(X, Y).predict(X))
    with pytest.raises(SearchStopped):
        model.with_source(CachedKernelSource(gram, train, lambda: True)).fit(RowPoints(train), Y[train])


def test_a_random_state_shuffles_the_folds():
    grid, shuffled = {"C": [1.0]}, StratifiedKFold(3, shuffle=True, random_state=7)
    ours = tune(SVC(), X, Y, grid, folds=3, random_state=7).fold_scores
    np.testing.assert_array_equal(ours, tune(SVC(), X, Y, grid, folds=shuffled).fold_scores)


@pytest.mark.parametrize(
    "scoring", ["roc_auc", "f1", make_scorer(mean_absolute_error, greater_is_better=False)], ids=str
)
def test_scorers(scoring):
    reference = GridSearchCV(SVC(), TWO, cv=3, scoring=scoring, refit=False).fit(X, Y)
    scores = tune(SVC(), X, Y, TWO, folds=3, scoring=scoring).table["mean_score"]
    np.testing.assert_allclose(scores, reference.cv_results_["mean_test_score"], atol=1e-9)


def test_a_scoring_function_receives_the_points_and_the_estimator():
    def score(model, points, targets):
        assert points.shape[1] == 2
        return -float(model.n_support_.sum()) + model.score(points, targets)

    assert tune(SVC(), X, Y, {"C": [0.1, 10.0]}, scoring=score).best_params == {"C": 10.0}


def test_one_class_needs_a_scoring():
    with pytest.raises(TypeError, match="OneClassSVM has no score of its own: give scoring"):
        tune(OneClassSVM(), X, None, {"nu": [0.1]})
    tuning = tune(
        OneClassSVM(), X, None, {"nu": [0.1, 0.5]}, scoring=lambda model, points: np.mean(model.predict(points) == 1)
    )
    assert tuning.best_params == {"nu": 0.1}
    inliers = np.where(Y == 1, 1, -1)
    assert np.isfinite(tune(OneClassSVM(), X, inliers, {"nu": [0.1]}, scoring="accuracy").best_score)


class Spy(TransformerMixin, BaseEstimator):
    """Records the number of points of each fit."""

    seen: ClassVar[list] = []

    def fit(self, X, y=None):
        self.seen.append(len(X))
        return self

    def transform(self, X):
        return X


def test_steps_are_fitted_to_training_points_once_a_fold():
    Spy.seen.clear()
    tune(make_pipeline(Spy(), SVC()), X, Y, {"svc__C": [1.0, 2.0], "svc__gamma": [0.1, 1.0]}, n_jobs=1)
    assert Spy.seen == [120] * 5


def test_a_failed_cell_is_recorded():
    y = np.where(np.arange(150) < 30, 1, 0)  # nu is at most 0.4
    tuning = tune(NuSVC(), X, y, {"nu": [0.1, 0.9], "gamma": [100.0]})
    assert tuning.table["status"].tolist()[0] == "done"
    assert tuning.table["status"][1].startswith("failed: nu must be at most 0.4")
    assert np.isnan(tuning.table["mean_score"][1])
    assert tuning.best_params["nu"] == 0.1
    assert "1 failed" in repr(tuning)
    statuses = tune(SVC(), X, Y, {"gamma": [-1.0, 1.0]}).table["status"]
    assert statuses[0].startswith("failed: gamma must be positive")
    assert statuses[1] == "done"


def test_if_all_cells_fail_the_first_error_is_raised():
    with pytest.raises(ValueError, match="C must be positive"):
        tune(SVC(), X, Y, {"C": [-1.0, 0.0]})
    with pytest.raises(ValueError, match="to must be"):
        tune(make_pipeline(Scaling("nonsense"), SVC()), X, Y, {"svc__C": [1.0]})


def test_a_nu_without_a_margin_has_its_own_status():
    points, labels = make_moons(60, noise=0.4, random_state=0)
    tuning = tune(NuSVC(kernel="linear", tol=1e-6), points, labels, {"nu": [0.1, 0.9]}, folds=3)
    assert tuning.table["status"].tolist() == ["no margin", "done"]
    with pytest.warns(ConvergenceWarning, match=r"nu=0.1 is too small .* does not separate the classes"):
        model = NuSVC(kernel="linear", nu=0.1, tol=1e-6).fit(points, labels)
    assert np.abs(model.decision_function(points)).max() < 1e-6  # what rounding leaves is not made large


def test_a_fit_that_does_not_converge_has_its_own_status():
    tuning = tune(SVC(max_iter=1, tol=1e-9), IRIS, KINDS > 1, {"C": [1e4]})
    assert tuning.table["status"].tolist() == ["not converged"]
    assert np.isfinite(tuning.best_score)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("how", ["true", "interrupt"])
def test_a_stopped_search_returns_partial_results(n_jobs, how):
    """After a stop no fit begins; at most one fit of each thread was running and still gets a score."""
    received = threading.Event()

    def handle(*_):
        received.set()
        raise KeyboardInterrupt

    def progress(step):
        if step.done == 3:
            if how == "true":
                return True
            os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C does; it reaches the main thread
            assert received.wait(600)
        return False

    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0, 2.0, 4.0]}
    before = signal.signal(signal.SIGINT, handle)
    try:
        tuning = tune(SVC(), X, Y, grid, folds=3, n_jobs=n_jobs, progress=progress)
        assert signal.getsignal(signal.SIGINT) is handle  # tune leaves the handler as it was
    finally:
        signal.signal(signal.SIGINT, before)
    scored = np.isfinite(tuning.fold_scores).sum()
    assert 3 <= scored < 3 + n_jobs
    assert not tuning.is_complete
    assert "interrupted" in repr(tuning)
    assert set(tuning.table["status"]) <= {"done", "interrupted", "not run"}
    assert "not run" in tuning.table["status"]


def test_an_interrupt_stops_the_search_before_the_next_fit():
    """The handler itself stops the search: the exception that it raises may arrive late."""
    received, begun = threading.Event(), []

    def score(model, points, targets):
        begun.append(received.is_set())
        if len(begun) == 1:
            os.kill(os.getpid(), signal.SIGINT)
            assert received.wait(600)
        return 0.0

    before = signal.signal(signal.SIGINT, lambda *_: received.set())  # one that raises nothing
    try:
        tuning = tune(SVC(), X, Y, {"C": [0.1, 1.0, 10.0]}, folds=3, n_jobs=2, scoring=score)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not tuning.is_complete
    assert sum(begun) <= 1  # the fit that the other thread had begun


def test_a_search_without_scores_has_no_best_cell():
    tuning = tune(SVC(), X, Y, TWO, n_jobs=1, progress=lambda step: True)
    with pytest.raises(ValueError, match="no cell of the grid has a score in all folds"):
        tuning.best_params  # noqa: B018


def test_progress_and_the_table():
    steps = []
    tuning = tune(SVC(), X, Y, TWO, folds=3, progress=steps.append)
    assert [step.done for step in steps] == list(range(1, 13))
    assert steps[0].total == 12
    table = tuning.table
    assert list(table) == [
        "C",
        "gamma",
        "mean_score",
        "std_score",
        *[f"split{k}_score" for k in range(3)],
        "seconds",
        "points",
        "status",
    ]
    assert table["C"].tolist() == [0.5, 0.5, 8.0, 8.0]
    assert (table["points"] == 150).all()
    np.testing.assert_allclose(table["mean_score"], tuning.fold_scores.mean(axis=1))
    model = tuning.best_estimator
    assert model is tuning.best_estimator
    assert model.C == tuning.best_params["C"]
    np.testing.assert_array_equal(model.predict(X), SVC(**tuning.best_params).fit(X, Y).predict(X))


def test_halving_drops_cells_and_ends_on_all_points():
    points, labels = make_moons(600, noise=0.25, random_state=1)
    grid = {"C": [0.01, 1.0, 10.0], "gamma": [0.001, 1.0, 10.0]}
    tuning = tune(SVC(), points, labels, grid, folds=3, search="halving")
    counts = dict(zip(*np.unique(tuning.table["points"], return_counts=True), strict=True))
    assert counts == {200: 6, 600: 3}
    whole = tune(SVC(), points, labels, grid, folds=3)
    last = tuning.table["points"] == 600
    np.testing.assert_array_equal(tuning.table["mean_score"][last], whole.table["mean_score"][last])
    assert last[tuning.best_index]
    assert tuning.best_score == whole.best_score
    with pytest.raises(ValueError, match="halving"):
        tune(SVC(), points, labels, grid, search="halving", folds=list(KFold(3).split(points)))


def test_rounds_have_points_of_every_class():
    y = np.where(np.arange(2000) < 12, 1, 0)
    rounds = round_rows(9, 2000, y, 5, 3, 0)
    assert len(rounds[-1]) == 2000
    assert all((y[rows] == 1).sum() >= 5 for rows in rounds)
    assert all(np.isin(a, b).all() for a, b in itertools.pairwise(rounds))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grid": {"D": [1.0]}}, "Invalid parameter 'D'"),
        ({"grid": {"C": 1.0}}, "grid must be a dict"),
        ({"grid": {"C": []}}, "grid must be a dict"),
        ({"search": "random"}, "search must be one of 'grid', 'halving'"),
        ({"n_jobs": 0}, "n_jobs must be at least 1"),
        ({"estimator": "svc"}, "estimator must have fit"),
        ({"y": Y[:-1]}, "inconsistent numbers of samples"),
        ({"progress": 3}, "progress must be a function"),
    ],
    ids=str,
)
def test_bad_arguments(options, message):
    given = {"estimator": SVC(), "X": X, "y": Y, "grid": TWO} | options
    with pytest.raises((TypeError, ValueError), match=message):
        tune(**given)


def test_the_surface_shows_the_scores():
    tuning = tune(SVC(), X, Y, {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}, folds=3)
    display = plot.surface(tuning)
    assert display.scores.shape == (2, 3)
    assert display.ax_.get_xscale() == "log"
    np.testing.assert_array_equal(display.scores.T.ravel(), tuning.table["mean_score"])
    assert [values[k] for values, k in zip(display.values, display.best, strict=True)] == [
        tuning.best_params["C"],
        tuning.best_params["gamma"],
    ]
    ax = pyplot.figure().add_subplot()
    curve = plot.surface(tuning, parameters=["C"], ax=ax)
    assert curve.ax_ is ax
    assert curve.scores[curve.best] == tuning.best_score
    names = plot.surface(tune(SVC(), X, Y, {"kernel": ["rbf", "linear"]}, folds=3))
    assert [label.get_text() for label in names.ax_.get_xticklabels()] == ["rbf", "linear"]
    with pytest.raises(ValueError, match="parameters must be one or two of C, gamma"):
        plot.surface(tuning, parameters=["nu"])
    pyplot.close("all")
