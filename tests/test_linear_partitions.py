"""Linear machines over partitions: the optimum of one process, the same bits whoever holds them, also after a loss."""

import itertools

import numpy as np
import pytest
from engines import OneProcess, local_cluster
from scipy import sparse

import symsvm
from symsvm import LinearSVC, LinearSVR
from symsvm.distributed import Team, spread
from symsvm.distributed.team import Part
from symsvm.linear import solve_linear
from symsvm.linear.linear_problem import LOSSES
from symsvm.linear.partition import LinearPartition
from symsvm.linear.partitioned_problem import PartitionedPoints, PartitionedProblem
from symsvm.linear.solve_partitioned import solve_partitioned

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 5)) * (RNG.random((240, 5)) < 0.7)
SCORE = X[:, 0] - X[:, -1] + RNG.normal(size=240)
Y, TARGETS = np.where(SCORE > 0.3, 1.0, -1.0), 2 * SCORE + 1
KINDS = np.digitize(SCORE, [-0.5, 0.7])
WEIGHTS = RNG.integers(0, 3, 240).astype(float)
CUTS = (0, 60, 60, 130, 131, 240)  # one block is empty, one has a single point
INTERCEPTS = {"penalised": {}, "free": {"penalize_intercept": False}, "none": {"intercept": False}}


def solve(engine, points, y, loss, kind, tol=1e-7, weights=WEIGHTS):
    """Solve over the blocks of `CUTS`, one part for each."""
    blocks = [(points[a:b], y[a:b], weights[a:b]) for a, b in itertools.pairwise(CUTS)]
    s = 0.0 if kind == "none" else 1.0
    parts = [Part(LinearPartition, ([block], s, loss.endswith("hinge"), "a block")) for block in blocks]
    team = Team(engine, parts)
    labels = loss.endswith("hinge")
    sides = (np.array([-1.0, 1.0]),) * 2 if labels else (None, None)
    problem = PartitionedProblem(
        PartitionedPoints(team),
        *sides,
        np.full(2, 0.5),
        s=s,
        loss=loss,
        epsilon=0.0 if labels else 0.1,
        free=kind == "free",
    )
    return solve_partitioned(problem, tol=tol)


def bits(solution):
    return solution.w.tobytes(), solution.b, solution.n_iter, repr(solution.certificate)


@pytest.mark.parametrize("kind", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_that_of_one_process_whoever_holds_the_points(loss, kind):
    y = Y if loss.endswith("hinge") else TARGETS
    one = solve(OneProcess(["a"]), X, y, loss, kind)
    assert one.certificate.status == "optimal"
    assert bits(solve(OneProcess("abc"), X, y, loss, kind)) == bits(one)
    used = WEIGHTS > 0
    epsilon = 0.0 if loss.endswith("hinge") else 0.1
    alone = solve_linear(
        X[used], y[used], 0.5 * WEIGHTS[used], loss=loss, epsilon=epsilon, tol=1e-9, **INTERCEPTS[kind]
    )
    np.testing.assert_allclose(one.w, alone.w, atol=1e-5)
    np.testing.assert_allclose(one.intercept, alone.intercept, atol=1e-5)
    assert one.certificate.primal == pytest.approx(alone.certificate.primal, rel=1e-6)
    assert one.certificate.gap <= 1e-7 * one.certificate.primal
    for name in ("primal", "dual", "gap", "violation"):  # of these weights and the dual vector of one process
        assert np.isfinite(getattr(one.certificate, name))


@pytest.mark.parametrize(("loss", "kind"), [("hinge", "free"), ("squared_hinge", "penalised")])
def test_a_lost_worker_changes_no_bit(loss, kind):
    whole = OneProcess("ab")
    expected = bits(solve(whole, X, Y, loss, kind))
    n_calls = next(whole.calls)
    for lose_after in (1, 3, *RNG.integers(4, n_calls, 5)):  # the first calls are for what the parts are
        engine = OneProcess("ab", lose_after)
        assert bits(solve(engine, X, Y, loss, kind)) == expected
        assert len(engine.names) == 1
        assert engine.made > len(CUTS) - 1


@pytest.mark.parametrize("kind", ["penalised", pytest.param("free", marks=pytest.mark.slow)])
@pytest.mark.parametrize("loss", LOSSES)
def test_many_features_take_conjugate_gradients(loss, kind):
    column = sparse.csr_matrix((X[:, 0], (np.arange(240), np.zeros(240, int))), shape=(240, 1100))
    points = sparse.random(240, 1100, 0.02, "csr", random_state=0) + column
    y = Y if loss.endswith("hinge") else TARGETS
    found = solve(OneProcess("ab"), points, y, loss, kind, tol=1e-6)
    epsilon = 0.0 if loss.endswith("hinge") else 0.1
    used = WEIGHTS > 0
    alone = solve_linear(
        points[used], y[used], 0.5 * WEIGHTS[used], loss=loss, epsilon=epsilon, tol=1e-8, **INTERCEPTS[kind]
    )
    assert found.certificate.status == "optimal"
    assert found.algorithm == ("newton" if loss.startswith("squared") else "proximal newton")
    assert found.certificate.primal == pytest.approx(alone.certificate.primal, rel=2e-6)
    np.testing.assert_allclose(found.w, alone.w, atol=1e-3)


# ---- collections of Dask


@pytest.fixture(scope="module")
def client():
    with local_cluster() as client:
        yield client


def chunked(values, size=70):
    import dask.array as da

    return da.from_array(values, chunks=(size, *values.shape[1:]))


def test_classifiers_take_collections(client):
    points = chunked(X)
    csr = points.map_blocks(sparse.csr_matrix)
    for y, options in (
        (Y > 0, {"loss": "hinge"}),
        (KINDS, {"class_weight": "balanced"}),
        (KINDS, {"multi_class": "ovo"}),
    ):
        alone = LinearSVC(tol=1e-7, max_iter=20_000, **options).fit(X, y, WEIGHTS)
        model = LinearSVC(tol=1e-7, **options).fit(points, chunked(y, 50), WEIGHTS)
        np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-5)
        np.testing.assert_allclose(model.intercept_, alone.intercept_, atol=1e-5)
        assert model.classes_.tolist() == alone.classes_.tolist()
        assert model.n_samples_fit_ == (WEIGHTS > 0).sum()
        assert model.traffic_["lost"] == 0
        certificates = np.atleast_1d(model.certificate_)
        assert {certificate.status for certificate in certificates} == {"optimal"}
        values, labels = model.decision_function(points), model.predict(csr)
        assert values.chunks[0] == labels.chunks[0] == points.chunks[0]
        np.testing.assert_array_equal(values.compute(), model.decision_function(X))
        np.testing.assert_array_equal(labels.compute(), model.predict(X))
        again = LinearSVC(tol=1e-7, **options).fit(csr, chunked(y), chunked(WEIGHTS, 100))
        np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-9)


def test_regressors_take_data_frames(client):
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("abcde")).assign(y=TARGETS, w=WEIGHTS)
    collection = frames.from_pandas(table, npartitions=3)
    points = collection[list("abcde")]
    model = LinearSVR(epsilon=0.1, tol=1e-7).fit(points, collection["y"], collection["w"])
    alone = LinearSVR(epsilon=0.1, tol=1e-7, max_iter=20_000).fit(table[list("abcde")], TARGETS, WEIGHTS)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-5)
    assert model.feature_names_in_.tolist() == list("abcde")
    np.testing.assert_allclose(model.predict(points).compute(), alone.predict(table[list("abcde")]), atol=1e-5)


def test_errors_name_what_is_wrong(client):
    points, labels = chunked(X), chunked(Y)
    wrong = X.copy()
    wrong[100, 2] = np.nan
    for X_, y_, model, error in (
        (chunked(wrong), labels, LinearSVC(), "X must be finite, .* It is in partition 1"),
        (points, chunked(np.ones(240)), LinearSVC(), "y must hold at least two classes with a positive weight, got 1"),
        (points, chunked(Y[:200]), LinearSVC(), "y has 200 entries, and X has 240 rows"),
        (
            points,
            chunked(np.where(Y > 0, np.nan, Y)),
            LinearSVR(),
            r"y must be finite, got NaN or infinity \(partition",
        ),
        (points, labels, LinearSVC(penalty="l1"), "penalty='l1' does not run over partitions"),
        (points, labels, LinearSVC(multi_class="crammer_singer"), "'crammer_singer' does not run over partitions"),
        (points, labels, LinearSVC(calibration="sigmoid"), "calibration does not run over partitions"),
    ):
        with pytest.raises(ValueError, match=error):
            model.fit(X_, y_)
        assert not hasattr(model, "coef_")
    with pytest.raises(ValueError, match="sample_weight must be finite and not negative"):
        LinearSVC().fit(points, labels, -WEIGHTS)


def test_workers_read_their_own_rows(tmp_path):
    np.save(tmp_path / "X.npy", X)
    text = tmp_path / "points.libsvm"
    symsvm.data.write(text, sparse.csr_matrix(X), Y)
    alone = LinearSVC(tol=1e-7).fit(X, Y)
    engine = OneProcess("ab")
    mapped = spread(np.load(tmp_path / "X.npy", mmap_mode="r"), engine)
    model = LinearSVC(tol=1e-7).fit(mapped, Y)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-5)
    np.testing.assert_array_equal(model.predict(mapped), model.predict(X))
    assert model.score(mapped, Y) == model.score(X, Y)
    of_file = LinearSVC(tol=1e-7).fit(spread(str(text), engine), None)
    np.testing.assert_allclose(of_file.coef_, alone.coef_, atol=1e-5)
    with pytest.raises(ValueError, match="y must be given: no labels come with these points"):
        LinearSVC().fit(mapped, None)


def test_without_a_client_collections_come_into_memory(monkeypatch):
    pytest.importorskip("dask")
    monkeypatch.setattr("symsvm.estimators.spread_source.active_client", lambda: None)
    model = LinearSVC().fit(chunked(X), chunked(Y))
    np.testing.assert_array_equal(model.coef_, LinearSVC().fit(X, Y).coef_)
