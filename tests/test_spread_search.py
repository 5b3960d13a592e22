"""Searches over workers: the scores of one process, also after a loss; scikit-learn's search on the same cluster."""

import joblib
import numpy as np
import pytest
from engines import OneProcess, local_cluster
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline

from symsvm import SVC, LinearSVC
from symsvm.data import Scaling
from symsvm.distributed import ClusterError
from symsvm.model_selection import spread_search
from symsvm.tuning import tune

X, Y = make_moons(150, noise=0.3, random_state=0)
IRIS, KINDS = load_iris(return_X_y=True)
CASES = {
    "kernels": (SVC(), X, Y, {"C": [0.5, 8.0], "gamma": [0.1, 1.0, 9.0]}),
    "pairs": (SVC(), IRIS, KINDS, {"C": [1.0, 10.0], "gamma": ["scale", 0.5]}),
    "linear": (LinearSVC(), X, Y, {"C": [0.1, 1.0]}),
    "a pipeline": (make_pipeline(Scaling("z-score"), SVC()), X, Y, {"svc__C": [0.5, 8.0], "svc__gamma": [0.5]}),
}


def columns(tuning):
    return tuning.fold_scores.tolist(), tuning.table["status"].tolist(), tuning.best_params


@pytest.mark.parametrize("case", CASES)
def test_scores_are_those_of_one_process_whoever_runs_the_fits(case):
    alone = columns(tune(*CASES[case], n_jobs=1))
    for names in ("a", "abc"):
        assert columns(tune(*CASES[case], client=OneProcess(names))) == alone


def test_matrices_that_are_computed_again_give_the_same_scores():
    alone = columns(tune(*CASES["kernels"], n_jobs=1, search="halving", random_state=0))
    found = tune(*CASES["kernels"], client=OneProcess("ab"), search="halving", random_state=0)
    assert columns(found) == alone
    assert columns(tune(*CASES["kernels"], client=OneProcess("ab"), memory=1)) == columns(tune(*CASES["kernels"]))


@pytest.mark.parametrize("lose_after", [1, 3, 6])
def test_fits_of_a_lost_worker_are_run_by_another(lose_after):
    engine = OneProcess("ab", lose_after)
    assert columns(tune(*CASES["kernels"], client=engine)) == columns(tune(*CASES["kernels"], n_jobs=1))
    assert len(engine.names) == 1


def test_failures_are_recorded_and_progress_stops_a_search():
    grid = {"C": [1.0, -1.0]}
    found = tune(SVC(), X, Y, grid, client=OneProcess("ab"))
    assert found.table["status"].tolist() == tune(SVC(), X, Y, grid).table["status"].tolist()
    with pytest.raises(ValueError, match="C must be"):
        tune(SVC(), X, Y, {"C": [-1.0]}, client=OneProcess("ab"))
    seen = []

    def progress(step):
        seen.append(step)
        return len(seen) == 2

    stopped = tune(*CASES["kernels"], client=OneProcess("a"), progress=progress)
    assert not stopped.is_complete
    assert len(seen) < 30


def test_bad_arguments(monkeypatch):
    with pytest.raises(ValueError, match="n_jobs counts threads of this process, and client has workers"):
        tune(SVC(), X, Y, {"C": [1.0]}, client=OneProcess("a"), n_jobs=2)
    with pytest.raises(
        TypeError, match=r"client must be a distributed.Client, the address of a scheduler or an engine"
    ):
        tune(SVC(), X, Y, {"C": [1.0]}, client=3)
    monkeypatch.setattr(spread_search, "_PATIENCE", 0.2)
    with pytest.raises(ClusterError, match="no worker answers: start workers"):
        tune(SVC(), X, Y, {"C": [1.0]}, client=OneProcess(""))


def test_dask_runs_our_search_and_scikit_learns():
    estimator, points, labels, grid = CASES["kernels"]
    with local_cluster() as client:
        assert columns(tune(*CASES["kernels"], client=client)) == columns(tune(*CASES["kernels"], n_jobs=1))
        with joblib.parallel_config("dask"):
            spread = GridSearchCV(estimator, grid, refit=False).fit(points, labels)
            pairs = OneVsOneClassifier(SVC(), n_jobs=2).fit(IRIS, KINDS)
    alone = GridSearchCV(estimator, grid, refit=False).fit(points, labels)
    np.testing.assert_array_equal(spread.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])
    values = OneVsOneClassifier(SVC()).fit(IRIS, KINDS).decision_function(IRIS)
    np.testing.assert_array_equal(pairs.decision_function(IRIS), values)
