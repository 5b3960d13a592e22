"""Work on several processes: engines, teams, the bits of one process, faults, collections, checkpoints."""

import functools
import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from cli_runs import run
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from symsvm import SVC, SVR, NuSVC, NuSVR, OneClassSVM, load, save
from symsvm.distributed import (
    ClusterError,
    DaskEngine,
    Part,
    ProcessEngine,
    RayEngine,
    Team,
    WorkerLostError,
    dask_engine,
    spread,
)
from symsvm.distributed import team as team_module
from symsvm.distributed.host import software
from symsvm.distributed.spread_matrix import SpreadKernelMatrix
from symsvm.distributed.spread_points import SpreadPoints
from symsvm.evaluation import LocalKernelMatrix
from symsvm.io.data.libsvm_data import write_libsvm
from symsvm.kernels import RBF, Laplacian, Linear

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

M = 2800  # more than what is solved as one working set


def points(m=M, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=m) > 0, 1, -1)


def sparse_points(m=M, d=300, seed=1):
    X = sparse.random(m, d, 0.05, "csr", random_state=seed)
    score = np.asarray(X[:, : d // 2].sum(axis=1)).ravel()
    return X, np.where(score > np.median(score), 1, -1)


@pytest.fixture(scope="module")
def pool():
    with ProcessEngine(4, threads=1) as engine:
        yield engine


@pytest.fixture(scope="module")
def cluster():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as cluster:
            yield cluster


@pytest.fixture
def client(cluster):
    with warnings.catch_warnings(), distributed.Client(cluster) as client:
        warnings.simplefilter("ignore")
        client.wait_for_workers(2, timeout=30)
        yield client


class Some:
    """An engine with some of the workers of another."""

    def __init__(self, engine, count):
        self._engine, self._count = engine, count
        self.spawn = engine.spawn

    def workers(self):
        return dict(list(self._engine.workers().items())[: self._count])

    def close(self):
        """The other one is closed elsewhere."""


def as_dense(array):
    return array.toarray() if hasattr(array, "tocsr") else array


def assert_same_bits(model, other):
    for name in ("support_", "dual_coef_", "intercept_", "n_iter_"):
        np.testing.assert_array_equal(*(as_dense(getattr(each, name)) for each in (model, other)), err_msg=name)
    for one, two in zip(model.solutions_, other.solutions_, strict=True):
        np.testing.assert_array_equal(one.z, two.z)


# ---- engines and teams


def test_an_engine_makes_objects_calls_them_and_forgets_them(pool, client):
    with DaskEngine(client) as dask_engine:
        for engine in (pool, dask_engine):
            worker, threads = next(iter(engine.workers().items()))
            assert threads == 1
            actor = engine.spawn(worker, list, [3, 1, 3]).result()
            first, second = actor.call("count", 3), actor.call("index", 1)
            assert (second.result(), first.result()) == (1, 2)
            with pytest.raises(ValueError, match="is not in list"):
                actor.call("index", 5).result()
            with pytest.raises(TypeError):
                engine.spawn(worker, list, 1, 2, 3).result()
            actor.discard()
            with pytest.raises(WorkerLostError):
                engine.spawn("nobody", list).result()
    assert len(client.scheduler_info(n_workers=-1)["workers"]) == 2  # the user's client stays


def test_a_team_makes_lost_objects_again_and_repeats_the_call():
    log = []

    def restore(k, call):
        for value in log:
            call("append", value)

    with ProcessEngine(2, threads=1) as engine:
        team = Team(engine, [Part(list), Part(list, ([0],))], restore)
        team.call("append", 7)
        log.append(7)
        lost = engine.pid(team.places[0])
        os.kill(lost, signal.SIGKILL)
        assert team.call("count", 7) == [1, 1]
        assert team.places == ["process-1", "process-1"]
        assert team.traffic.lost == 1
        pids = [engine.pid(worker) for worker in engine.workers()]
    for pid in (lost, *pids):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_worker_that_hangs_counts_as_lost_and_one_that_joins_late_is_used():
    with ProcessEngine(1, threads=1, silence=2.0) as engine:
        team = Team(engine, [Part(list, ([5],))])
        pid = engine.pid(team.places[0])
        os.kill(pid, signal.SIGSTOP)
        thread = threading.Thread(target=lambda: (time.sleep(0.5), engine.add()))
        thread.start()
        assert team.call("index", 5) == [0]
        assert team.places == ["process-1"]
        thread.join()
        os.kill(pid, signal.SIGCONT)  # it comes back, and is asked nothing
        assert team.call("count", 5) == [1]


def test_no_worker_is_one_sentence(monkeypatch):
    monkeypatch.setattr(team_module, "_PATIENCE", 0.2)
    X, y = points()
    with ProcessEngine(1, threads=1) as engine:
        model = SVC()
        die = kill_in(1, lambda: os.kill(engine.pid("process-0"), signal.SIGKILL))
        with model.watching(die), pytest.raises(ClusterError, match=r"no worker is left for part 0 of 1: start wor"):
            model.fit(spread(X, engine), y)
        assert not hasattr(model, "support_")
        with pytest.raises(ClusterError, match="no worker answers"):
            model.fit(spread(X, engine), y)


def test_workers_must_compute_as_the_caller_does(pool, monkeypatch):
    here = software()
    monkeypatch.setattr(team_module, "software", lambda: here._replace(symsvm="0.0"))
    with pytest.raises(
        ClusterError, match=r"other versions of symsvm, NumPy and Numba .*: install the same everywhere"
    ):
        Team(pool, [Part(list)])
    monkeypatch.setattr(team_module, "software", lambda: here._replace(processor="z80"))
    with pytest.warns(RuntimeWarning, match=r"another processor .* last bits"):
        Team(pool, [Part(list)]).close()


# ---- the bits of one process

X, Y = points()
S, SY = sparse_points()
WEIGHTS = np.random.default_rng(2).random(M) * (np.arange(M) % 13 > 0)
CASES = {
    "dense": (lambda: SVC(gamma=0.1), X, Y, None),
    "sparse": (lambda: SVC(gamma=0.1), S, SY, None),
    "weights": (lambda: SVC(C=3.0), X, Y, WEIGHTS),
    "svr": (lambda: SVR(C=2.0), X, X[:, 0] ** 2, None),
    "nu-svc": (lambda: NuSVC(nu=0.3), X, Y, None),
    "nu-svr": (lambda: NuSVR(nu=0.3), X, X[:, 0] ** 2, None),
    "one-class": (lambda: OneClassSVM(nu=0.1), X, None, None),
    "float32": (lambda: SVC(kernel="poly", gamma=0.1), X.astype("float32"), Y, None),
}


@pytest.mark.parametrize("case", CASES)
def test_the_bits_of_one_process(pool, case):
    make, data, y, weights = CASES[case]
    alone = make().fit(data, y, sample_weight=weights)
    for workers in (1, 2, 3, 4) if case == "dense" else (3,):
        model = make().fit(spread(data, Some(pool, workers), rows=M // 7), y, sample_weight=weights)
        assert_same_bits(alone, model)
    for name in ("status", "gap", "primal", "violation"):  # the points are loaded again for it
        assert getattr(model.certificate_, name) == getattr(alone.certificate_, name)
    assert "_source" not in vars(model)
    np.testing.assert_array_equal(model.predict(data[:50]), alone.predict(data[:50]))


@functools.cache
def one_process():
    """A model of the dense points by one process."""
    return SVC().fit(X, Y)


@pytest.mark.parametrize("data", [X, S], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernel", [RBF(2.0) + 0.1 * Linear(), Laplacian(gamma=0.1)], ids=["sum", "laplacian"])
def test_a_spread_matrix_has_the_bits_of_a_local_one(pool, kernel, data):
    collection = spread(data, pool, rows=500)
    points = SpreadPoints(collection.connect, collection.blocks)
    local, apart = LocalKernelMatrix(kernel, data), SpreadKernelMatrix(kernel, points)
    rng = np.random.default_rng(0)
    rows, columns, q = rng.permutation(M)[:300], rng.permutation(M)[:400], rng.normal(size=400)
    for dtype in ("float32", "float64"):
        blocks = np.empty((2, 300, 410), dtype)
        for matrix, block in zip((local, apart), blocks, strict=True):
            matrix.block(rows, columns, block)
        np.testing.assert_array_equal(*blocks[:, :, :400])
        for some in (rows, None):
            totals = np.ones((2, M if some is None else 300))
            for matrix, total in zip((local, apart), totals, strict=True):
                matrix.product(q, some, columns, total, exact=dtype == "float64")
            np.testing.assert_array_equal(*totals)
    np.testing.assert_array_equal(local.diagonal(rows), apart.diagonal(rows))
    points.close()


def test_pairs_of_classes_agree_with_one_process(pool):
    y = Y + 2 * (X[:, 3] > 0)
    alone, model = SVC().fit(X, y), SVC().fit(spread(X, pool), y)
    # One process keeps blocks of K in memory, and adds them in another order.
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=5e-3)
    assert [certificate.status for certificate in model.certificate_] == ["optimal"] * 3
    rest = SVC(multi_class="ovr").fit(spread(X, pool), y)
    np.testing.assert_allclose(
        rest.decision_function(X), SVC(multi_class="ovr").fit(X, y).decision_function(X), atol=5e-3
    )


def test_few_points_are_solved_by_the_caller(pool):
    assert_same_bits(SVC().fit(X[:300], Y[:300]), SVC().fit(spread(X[:300], pool), Y[:300]))


def test_ray_gives_the_same_bits_and_replaces_a_worker():
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'symsvm[ray]'")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        with RayEngine(2) as engine:
            model = SVC()
            with model.watching(kill_in(3, lambda: ray.kill(next(iter(engine.actors)).handle))):
                model.fit(spread(X, engine), Y)
            assert_same_bits(one_process(), model)
            assert model.traffic_["lost"] == 1
            assert not engine.actors
    finally:
        ray.shutdown()


# ---- faults in a fit


def kill_in(round_, kill):
    return lambda info: kill() if info.iteration == round_ else None


@pytest.mark.parametrize("round_", [1, 5])
def test_a_worker_that_is_killed_changes_no_bit(round_):
    alone, model = one_process(), SVC()
    with ProcessEngine(2, threads=1) as engine:
        with model.watching(kill_in(round_, lambda: os.kill(engine.pid("process-1"), signal.SIGKILL))):
            model.fit(spread(X, engine), Y)
        assert list(engine.workers()) == ["process-0"]
    assert_same_bits(alone, model)


def test_a_dask_worker_that_is_killed_changes_no_bit(client):
    alone, model = one_process(), SVC()
    pids = client.run(os.getpid)
    dX = da.from_array(X, chunks=(500, 8)).persist()
    with model.watching(kill_in(3, lambda: os.kill(next(iter(pids.values())), signal.SIGKILL))):
        model.fit(dX, da.from_array(Y, chunks=700))
    assert_same_bits(alone, model)


def test_a_scheduler_that_dies_is_one_sentence(monkeypatch):
    monkeypatch.setattr(dask_engine, "_SCHEDULER", 1.0)
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"}
    cluster = distributed.LocalCluster(n_workers=1, **options)
    model = SVC()
    sentence = pytest.raises(ClusterError, match="the Dask scheduler does not answer: start it again")
    with DaskEngine(cluster.scheduler_address) as engine, model.watching(kill_in(2, cluster.close)), sentence:
        model.fit(spread(X, engine), Y)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_dask_worker_that_is_killed_at_any_round_changes_no_bit(client, seed):
    rng = np.random.default_rng(seed)
    make, data, y, weights = list(CASES.values())[seed % 4]
    alone, model = make().fit(data, y, sample_weight=weights), make()
    pids = list(client.run(os.getpid).values())
    round_, victim = rng.integers(0, np.max(alone.n_iter_)), pids[rng.integers(len(pids))]
    collection = da.from_array(data, chunks=(400, data.shape[1])) if data is not S else None
    with model.watching(kill_in(round_, lambda: os.kill(victim, signal.SIGKILL))):
        if collection is None:
            with DaskEngine(client) as engine:
                model.fit(spread(data, engine), y, sample_weight=weights)
        else:
            model.fit(collection, y, sample_weight=weights)
    assert_same_bits(alone, model)


def test_ctrl_c_leaves_a_feasible_model_and_workers_that_answer(pool):
    model = SVC(C=100.0)
    interrupt = kill_in(3, lambda: signal.raise_signal(signal.SIGINT))
    with model.watching(interrupt), pytest.warns(ConvergenceWarning, match="interrupt"):
        model.fit(spread(X, pool), Y)
    assert model.solutions_[0].stopped == "interrupt"
    assert model.certificate_.infeasibility < 1e-10
    assert_same_bits(one_process(), SVC().fit(spread(X, pool), Y))


def test_limits_end_a_fit(pool):
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = SVC(max_iter=2).fit(spread(X, pool), Y)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        assert_same_bits(SVC(max_iter=2).fit(X, Y), model)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        assert NuSVC(nu=0.5, time_limit=1e-9).fit(spread(X, pool), Y).solutions_[0].stopped == "time_limit"


# ---- partitions


def test_partitions_are_checked_before_any_work(pool):
    bad = X.copy()
    bad[1234, 3] = np.nan
    with pytest.raises(ValueError, match=r"X must be finite, got NaN or infinity in row 1234 \(partition 3\)"):
        SVC().fit(spread(bad, pool, rows=400), Y)
    with pytest.raises(TypeError, match="engine must be a DaskEngine, ProcessEngine or RayEngine, got 'tcp://a:1'"):
        spread(X, "tcp://a:1")
    with pytest.raises(ValueError, match="got 2800 and 5"):
        SVC().fit(spread(X, pool), Y[:5])
    with pytest.raises(ValueError, match="y must hold at least two"):
        SVC().fit(spread(X, pool), np.ones(M, int))
    with pytest.raises(ValueError, match="calibration needs folds of arrays in memory"):
        SVC(calibration="sigmoid").fit(spread(X, pool), Y)
    with pytest.raises(ValueError, match="solver must be 'decomposition'"):
        SVC(solver="smo").fit(spread(X, pool), Y)
    with pytest.raises(ValueError, match="kernel must be a name or a Kernel"):
        SVC(kernel="precomputed").fit(spread(X, pool), Y)
    with pytest.raises(ValueError, match="SVC needs labels or targets y"):
        SVC().fit(spread(X, pool))


def test_partitions_may_be_empty_or_of_one_class(client):
    order = np.argsort(Y, kind="stable")
    blocks = [X[order][:0], X[order][:900], X[order][900:1000], X[order][1000:]]
    dX = da.concatenate([da.from_array(block, chunks=block.shape) for block in blocks if len(block)])
    alone = SVC().fit(X[order], Y[order])
    assert_same_bits(alone, SVC().fit(dX, Y[order]))
    unknown = dX[dX[:, 0] < 1e9]  # the rows of a block are not known
    assert_same_bits(alone, SVC().fit(unknown, Y[order]))
    empty = dd.from_map(lambda block: __import__("pandas").DataFrame(block), blocks)
    assert_same_bits(alone, SVC().fit(empty, Y[order]))


# ---- collections


def test_dask_arrays(client, tmp_path):
    dX, dy = da.from_array(X, chunks=(600, 5)), da.from_array(Y, chunks=900)
    model = SVC().fit(dX, dy, sample_weight=da.from_array(WEIGHTS, chunks=800))
    alone = SVC().fit(X, Y, sample_weight=WEIGHTS)
    assert_same_bits(alone, model)
    found = model.predict(dX)
    assert isinstance(found, da.Array)
    np.testing.assert_array_equal(found.compute(), alone.predict(X))
    np.testing.assert_array_equal(model.decision_function(dX).compute(), alone.decision_function(X))
    assert model.score(dX, dy) == alone.score(X, Y)
    save(model, tmp_path / "model.symsvm")
    np.testing.assert_array_equal(load(tmp_path / "model.symsvm").predict(X), alone.predict(X))
    assert [key for key in client.run(lambda dask_worker: list(dask_worker.state.actors)).values() if key] == []


def test_persisted_blocks_stay_where_they_are(client):
    dX = da.from_array(X, chunks=(350, 8)).persist()
    distributed.wait(dX)
    before = {key: set(workers) for key, workers in client.who_has(dX).items()}
    assert_same_bits(SVR().fit(X, X[:, 0]), model := SVR().fit(dX, dX[:, 0]))
    assert {key: set(workers) for key, workers in client.who_has(dX).items()} == before
    assert model.score(dX, dX[:, 0]) == pytest.approx(model.score(X, X[:, 0]))


def test_data_frames_keep_their_names_and_index(client):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdefgh"), index=np.arange(M) + 10)
    model = SVC().fit(dd.from_pandas(frame, npartitions=3), dd.from_pandas(pandas.Series(Y), npartitions=2))
    alone = SVC().fit(frame, Y)
    assert_same_bits(alone, model)
    assert model.feature_names_in_.tolist() == list("abcdefgh")
    found = model.predict(dd.from_pandas(frame, npartitions=3)).compute()
    assert found.index.tolist() == frame.index.tolist()
    np.testing.assert_array_equal(found.to_numpy(), alone.predict(frame))
    values = OneClassSVM(nu=0.1).fit(dd.from_pandas(frame, npartitions=3))
    np.testing.assert_array_equal(
        values.score_samples(dd.from_pandas(frame, npartitions=3)).compute(), values.score_samples(frame)
    )


def test_memory_maps_and_files_are_read_by_the_workers(pool, tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = spread(np.load(tmp_path / "X.npy", mmap_mode="r"), pool)
    assert all(type(block.data).__name__ == "MappedRows" for block in mapped.blocks(pool))
    alone = one_process()
    assert_same_bits(alone, SVC().fit(mapped, Y))
    assert_same_bits(alone, model := SVC().fit(spread(str(tmp_path / "X.npy"), pool), Y))
    np.testing.assert_array_equal(model.predict(mapped), alone.predict(X))
    assert model.score(mapped, Y) == alone.score(X, Y)
    write_libsvm(tmp_path / "train", S, SY)
    alone, model = SVC(gamma=0.1).fit(S, SY), SVC(gamma=0.1).fit(spread(str(tmp_path / "train"), pool))
    assert_same_bits(alone, model)


def test_the_command_line_trains_on_a_cluster(cluster, tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdefgh")).assign(label=Y)
    frame.to_parquet(tmp_path / "data.parquet")
    model = str(tmp_path / "model.symsvm")
    found = run("train", tmp_path / "data.parquet", "--scheduler", cluster.scheduler_address, "-o", model)
    assert "optimal" in found.out
    assert "2800 points, 8 features" in found.out
    alone = one_process()
    np.testing.assert_array_equal(load(model).dual_coef_, alone.dual_coef_)
    given = "train", tmp_path / "data.parquet", "--scheduler"
    assert "--scale needs all points in one place" in run(*given, "tcp://x:1", "--scale", "unit", code=2).err
    write_libsvm(tmp_path / "train", S, SY)
    found = run("train", tmp_path / "train", *given[2:], cluster.scheduler_address, "-g", 0.1, "--json").json
    assert found["support_vectors"] == len(SVC(gamma=0.1).fit(S, SY).support_)


# ---- checkpoints


def test_another_process_goes_on_from_a_checkpoint(pool, tmp_path):
    path, model = tmp_path / "run.npz", SVC(C=10.0, max_iter=6)
    with model.checkpointing(path, every=0.0), pytest.warns(ConvergenceWarning):
        model.fit(spread(X, pool), Y)
    with np.load(path, allow_pickle=False) as file:
        assert file["iteration_0"] == 6
        z = np.zeros(M)
        z[file["index_0"]] = file["value_0"]
    np.testing.assert_array_equal(z, model.solutions_[0].z)
    whole, rest = SVC(C=10.0).fit(X, Y), SVC(C=10.0)
    with rest.checkpointing(path):
        rest.fit(spread(X, pool), Y)
    assert rest.n_iter_[0] < whole.n_iter_[0]
    assert rest.solutions_[0].W == pytest.approx(whole.solutions_[0].W, rel=1e-6)
    with rest.checkpointing(path), pytest.raises(ValueError, match="is a checkpoint of another problem"):
        rest.fit(X, -Y)
    path.write_bytes(b"PK")
    with pytest.raises(ValueError, match="is not a checkpoint"), rest.checkpointing(path):
        pass
