"""Searches with scikit-learn's interface and the engine of `tune`: the same results, and everything around them."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.model_selection as theirs
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import DataConversionWarning, FitFailedWarning
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GroupKFold, RepeatedStratifiedKFold, ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from symsvm import RBF, SVC, SVR, LinearSVC, NuSVC, OneClassSVM
from symsvm.tuning import GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV, tune

X, Y = make_moons(150, noise=0.3, random_state=0)
IRIS, KINDS = load_iris(return_X_y=True)
FOUR = {"C": [1.0, 10.0], "gamma": [0.1, 1.0]}
EXACT = SVC(tol=1e-6)


def searches():
    yield GridSearchCV(SVC(), {"C": [0.5, 2.0]}, cv=2)
    yield RandomizedSearchCV(SVR(), {"C": [0.5, 2.0]}, n_iter=2, cv=2)
    yield HalvingGridSearchCV(SVC(), {"C": [0.5, 2.0]}, cv=2, min_resources="smallest", random_state=0)


def checks():
    for search in searches():
        for estimator, check in estimator_checks_generator(search, mark="skip"):
            name = check.func.__name__ if hasattr(check, "func") else str(check)
            if name != "check_array_api_input":
                yield pytest.param(estimator, check, id=f"{type(search).__name__}-{name}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("search", "check"), list(checks()))
def test_scikit_learns_checks(search, check):
    check(search)


def same_results(ours, reference, atol=1e-9):
    """Compare the columns of `cv_results_`, but for times, which must be there and positive."""
    assert list(ours) == list(reference)
    for name, column in reference.items():
        if name == "params":
            assert ours[name] == column
        elif "_time" in name:
            assert (ours[name] >= 0).all()
            assert ours[name].shape == column.shape
        else:
            assert ours[name].dtype == column.dtype, name
            assert type(ours[name]) is type(column)
            if column.dtype.kind == "f" and not name.startswith("param_"):
                np.testing.assert_allclose(ours[name], column, atol=atol, err_msg=name)
            else:
                np.testing.assert_array_equal(np.ma.getmaskarray(ours[name]), np.ma.getmaskarray(column))
                assert np.ma.allequal(ours[name], column), name


SEARCHES = {
    "classes": (EXACT, FOUR, {}, X, Y),
    "three classes": (EXACT, FOUR, {"return_train_score": True}, IRIS, KINDS),
    "several scorers": (EXACT, FOUR, {"scoring": ["roc_auc", "f1"], "refit": "f1"}, X, Y),
    "scorers by name": (EXACT, FOUR, {"scoring": {"a": "accuracy", "b": "roc_auc"}, "refit": False}, X, Y),
    "a scorer": (
        SVR(tol=1e-6),
        FOUR,
        {"scoring": make_scorer(mean_absolute_error, greater_is_better=False)},
        X,
        X[:, 1],
    ),
    "several grids": (EXACT, [{"kernel": ["linear"], "C": [1, 10]}, {"gamma": [0.5], "C": [1.0]}], {}, X, Y),
    "kernel objects": (SVC(kernel=RBF(1.0), tol=1e-6), {"kernel__sigma": [0.5, 2.0], "C": [1.0]}, {}, X, Y),
    "kernels": (EXACT, {"kernel": [RBF(1.0), "linear"]}, {}, X, Y),
    "a pipeline": (make_pipeline(StandardScaler(), EXACT), {"svc__C": [1.0, 10.0]}, {}, X, Y),
    "a frame": (EXACT, FOUR, {}, pd.DataFrame(X, columns=["a", "b"]), pd.Series(Y)),
    "CSR": (EXACT, FOUR, {}, sparse.csr_matrix(X), Y),
    "class weights": (SVC(class_weight={0: 1.0, 1: 3.0}, tol=1e-6), FOUR | {"gamma": ["scale"]}, {}, X, Y),
    "linear": (LinearSVC(tol=1e-8), {"C": [0.1, 1.0]}, {"return_train_score": True}, IRIS, KINDS),
    "shuffled": (EXACT, FOUR, {"cv": ShuffleSplit(3, train_size=0.4, random_state=0)}, X, Y),
    "repeated": (EXACT, FOUR, {"cv": RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)}, X, Y),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_results_are_scikit_learns(name):
    estimator, grid, options, points, y = SEARCHES[name]
    options = {"cv": 3} | options
    ours = GridSearchCV(estimator, grid, **options).fit(points, y)
    reference = theirs.GridSearchCV(estimator, grid, **options).fit(points, y)
    assert ours.engine_ == "shared"
    same_results(ours.cv_results_, reference.cv_results_)
    attributes = {name for name in vars(reference) if name.endswith("_") and not name.startswith("_")}
    assert attributes <= set(vars(ours)) - {"engine_"}
    assert (ours.n_splits_, ours.multimetric_) == (reference.n_splits_, reference.multimetric_)
    if options.get("refit") is not False:
        assert (ours.best_params_, ours.best_index_) == (reference.best_params_, reference.best_index_)
        assert ours.best_score_ == pytest.approx(reference.best_score_, abs=1e-9)
        np.testing.assert_array_equal(ours.predict(points), reference.predict(points))
        assert ours.score(points, y) == pytest.approx(reference.score(points, y), abs=1e-12)
    pd.DataFrame(ours.cv_results_)


def test_groups_and_weights():
    groups, weights = np.arange(len(Y)) % 5, np.random.default_rng(0).uniform(0.1, 3.0, len(Y))
    weights[::7] = 0.0
    grid = {"C": [0.5, 5.0]}  # gamma="scale", which weights change
    for estimator in (EXACT, SVC(class_weight="balanced", tol=1e-6), LinearSVC(tol=1e-8)):
        ours = GridSearchCV(estimator, grid, cv=GroupKFold(5)).fit(X, Y, groups=groups, sample_weight=weights)
        assert ours.engine_ == "shared"
        for i, C in enumerate(grid["C"]):
            for k, (train, test) in enumerate(GroupKFold(5).split(X, Y, groups)):
                model = clone(estimator).set_params(C=C).fit(X[train], Y[train], sample_weight=weights[train])
                score = model.score(X[test], Y[test], sample_weight=weights[test])
                assert ours.cv_results_[f"split{k}_test_score"][i] == pytest.approx(score, abs=1e-9)
        best = clone(estimator).set_params(**ours.best_params_).fit(X, Y, sample_weight=weights)
        np.testing.assert_array_equal(ours.predict(X), best.predict(X))


@pytest.mark.parametrize("options", [{}, {"aggressive_elimination": True, "max_resources": 90}, {"min_resources": 50}])
def test_halving_has_the_candidates_and_the_points_of_scikit_learn(options):
    points, y = make_moons(400, noise=0.3, random_state=1)
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1, 1.0]}
    options = {"random_state": 0, "cv": 3} | options
    ours = HalvingGridSearchCV(EXACT, grid, **options).fit(points, y)
    reference = theirs.HalvingGridSearchCV(EXACT, grid, **options).fit(points, y)
    assert ours.engine_ == "shared"
    same_results(ours.cv_results_, reference.cv_results_)
    names = ("n_resources", "n_candidates", "n_iterations", "n_possible_iterations", "n_required_iterations")
    for name in (*names, "n_remaining_candidates", "min_resources", "max_resources", "best_params", "best_score"):
        assert getattr(ours, f"{name}_") == pytest.approx(getattr(reference, f"{name}_")), name


def test_random_candidates_are_those_of_scikit_learn():
    distributions = {"C": stats.loguniform(0.1, 100), "gamma": [0.1, 1.0]}
    options = {"n_iter": 6, "random_state": 3, "cv": 3}
    ours = RandomizedSearchCV(EXACT, distributions, **options).fit(X, Y)
    reference = theirs.RandomizedSearchCV(EXACT, distributions, **options).fit(X, Y)
    assert ours.engine_ == "shared"
    same_results(ours.cv_results_, reference.cv_results_)


def test_the_number_of_threads_does_not_matter():
    one, two = (GridSearchCV(SVC(), FOUR, n_jobs=n).fit(X, Y).cv_results_ for n in (1, 2))
    np.testing.assert_array_equal(one["mean_test_score"], two["mean_test_score"])
    np.testing.assert_array_equal(tune(SVC(), X, Y, FOUR).table["mean_score"], one["mean_test_score"])


def test_a_search_inside_a_search():
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 10.0]}, cv=3)
    reference = theirs.GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 10.0]}, cv=3)
    np.testing.assert_array_equal(cross_val_score(search, X, Y, cv=3), cross_val_score(reference, X, Y, cv=3))
    assert CalibratedClassifierCV(search, cv=2).fit(X, Y).predict_proba(X).shape == (150, 2)


# ---- where scikit-learn's own fits run


def by_points(model, points, y):
    return float(points[:, 0].sum())


class Quiet:
    def setup(self, estimator, context): ...
    def teardown(self, estimator, context): ...
    def on_fit_task_begin(self, estimator, context): ...
    def on_fit_task_end(self, estimator, context): ...


@pytest.mark.parametrize(
    ("estimator", "options", "params", "reason"),
    [
        (LogisticRegression(), {}, {}, "none of symsvm's machines"),
        (SVC(calibration="sigmoid", random_state=0), {}, {}, "does not share"),
        (SVC(kernel=lambda A, B: A @ B.T), {}, {}, "does not share"),
        (SVC(), {"scoring": by_points}, {}, "scoring is a function of the points"),
        (make_pipeline(SVC()), {}, {"svc__sample_weight": np.ones(150)}, "arguments for steps of a pipeline"),
        (SVC(), {"scoring": "matthews_corrcoef"}, {"sample_weight": np.ones(150)}, "not known to take weights"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
@pytest.mark.filterwarnings("ignore:The scoring:UserWarning")
def test_other_searches_are_scikit_learns_own(estimator, options, params, reason):
    name = "svc__C" if hasattr(estimator, "steps") else "C"
    ours = GridSearchCV(estimator, {name: [1.0, 10.0]}, cv=2, **options).fit(X, Y, **params)
    reference = theirs.GridSearchCV(estimator, {name: [1.0, 10.0]}, cv=2, **options).fit(X, Y, **params)
    assert ours.engine_.startswith("scikit-learn, since ")
    assert reason in ours.engine_
    np.testing.assert_array_equal(ours.cv_results_["mean_test_score"], reference.cv_results_["mean_test_score"])


def test_callbacks_and_a_resource_that_is_a_parameter():
    if hasattr(SVC(), "set_callbacks"):
        assert "callbacks" in GridSearchCV(SVC().set_callbacks(Quiet()), {"C": [1.0]}, cv=2).fit(X, Y).engine_
    options = {"resource": "max_iter", "max_resources": 30, "min_resources": 10, "cv": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = HalvingGridSearchCV(SVC(), {"C": [1.0, 2.0, 3.0]}, **options).fit(X, Y)
    assert "resource of halving" in search.engine_
    assert search.n_resources_ == [10, 30]


# ---- errors


def test_fits_that_fail():
    grid = {"nu": [0.3, 0.9]}
    unequal = np.where(np.arange(150) < 45, 0, 1)
    with pytest.warns(FitFailedWarning, match="5 fits failed out of a total of 10; their scores are -1"):
        search = GridSearchCV(NuSVC(), grid, error_score=-1, refit=False).fit(X, unequal)
    assert search.cv_results_["mean_test_score"][1] == -1
    assert search.cv_results_["rank_test_score"].tolist() == [1, 2]
    with pytest.warns(FitFailedWarning), pytest.warns(UserWarning, match="test scores are non-finite"):
        assert np.isnan(GridSearchCV(NuSVC(), grid, refit=False).fit(X, unequal).cv_results_["mean_test_score"][1])
    with pytest.raises(ValueError, match="nu must be at most"):
        GridSearchCV(NuSVC(), grid, error_score="raise").fit(X, unequal)
    with pytest.raises(ValueError, match="All the 5 fits failed, 5 with: nu must be at most"):
        GridSearchCV(NuSVC(), {"nu": [0.9]}).fit(X, unequal)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="Invalid parameter 'gama'"):
        GridSearchCV(SVC(), {"gama": [1.0]}).fit(X, Y)
    with pytest.raises(ValueError, match="refit must be set to a scorer key"):
        GridSearchCV(SVC(), FOUR, scoring=["f1", "roc_auc"], refit=True).fit(X, Y)
    with pytest.raises(TypeError, match="best_index_"):
        GridSearchCV(SVC(), FOUR, refit=lambda results: 0.5).fit(X, Y)
    with pytest.raises(IndexError, match="best_index_"):
        GridSearchCV(SVC(), FOUR, refit=lambda results: 99).fit(X, Y)
    with pytest.raises(ValueError, match="min_resources_=100 is greater than max_resources_=50"):
        HalvingGridSearchCV(SVC(), FOUR, min_resources=100, max_resources=50).fit(X, Y)
    with pytest.warns(DataConversionWarning):
        GridSearchCV(SVC(), {"C": [1.0]}, cv=2).fit(X, Y[:, None])


def test_a_function_chooses_the_best():
    search = GridSearchCV(SVC(), FOUR, refit=lambda results: 3).fit(X, Y)
    assert search.best_params_ == {"C": 10.0, "gamma": 1.0}
    assert not hasattr(search, "best_score_")


def test_one_class_needs_a_scoring_and_no_labels():
    inside = make_scorer(lambda y, found: float(np.mean(found > 0)))
    labels = np.ones(len(X))
    search = GridSearchCV(OneClassSVM(), {"nu": [0.1, 0.5]}, scoring=inside, cv=3).fit(X, labels)
    assert search.engine_ == "shared"
    assert search.best_params_ == {"nu": 0.1}


def test_verbose(capsys):
    GridSearchCV(SVC(), {"C": [1.0, 2.0]}, cv=2, verbose=2, refit=False).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Fitting 2 folds for each of 2 candidates, totalling 4 fits"
    assert len(lines) == 5


def test_the_table_of_tune_is_a_frame():
    tuning = tune(SVC(), X, Y, FOUR, folds=3)
    frame = pd.DataFrame(tuning.table)
    np.testing.assert_array_equal(frame[["split0_score", "split1_score", "split2_score"]], tuning.fold_scores)
