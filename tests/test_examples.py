"""The examples run on small inputs, and their claims hold."""

import ast
import importlib.util
import sys
import warnings
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from datasets import missing, reason, use

from symsvm import SVM_parallel
from symsvm.data import DataSet, load, signs, standardise

ROOT = Path(__file__).parent.parent


def script(name):
    """Import a script by its path."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, ROOT / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_compose_closes_the_gaps_of_six_duals(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["compose.py", "--rows", "60"])
    gaps = script("examples/compose.py").main()
    assert 0 <= gaps.pop("many kernels") < 1e-4
    assert len(gaps) == 5
    assert all(-1e-10 < gap < 1e-6 for gap in gaps.values()), gaps
    out = capsys.readouterr().out
    assert out.count("optimal: W = ") == 6
    assert out.count(": Decomposition(") == 5
    assert " 0 of which rise" in out


def test_the_cluster_example_loses_a_worker_and_no_bit(monkeypatch, capsys):
    pytest.importorskip("distributed")
    monkeypatch.setattr(sys, "argv", ["cluster.py", "--points", "2800"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of Dask's own connections, in its threads
        same, lost = script("examples/cluster.py").main()
    assert same
    assert lost >= 1
    assert "certificate: optimal" in capsys.readouterr().out


def test_the_duals_of_compose_are_short():
    tree = ast.parse((ROOT / "examples/compose.py").read_text(encoding="utf-8"))
    lines = {f.name: f.end_lineno - f.lineno + 1 for f in tree.body if isinstance(f, ast.FunctionDef)}
    duals = ("huberised", "ranking", "smallest_ball", "uncertain", "many_tasks", "many_kernels")
    assert max(lines[name] for name in duals) <= 15


def test_deep_svm_trains_through_each_head(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("SYMSVM_DATA", str(tmp_path))
    options = ["--rows", "200", "--seeds", "1", "--epochs", "12", "--mode", "FAST_COMPILE"]
    monkeypatch.setattr(sys, "argv", ["deep_svm.py", *options])
    example = script("examples/deep_svm.py")
    monkeypatch.setattr(example, "HIDDEN", 32)
    found = example.main()
    assert set(found) == {"softmax", "squared hinge", "exact layer"}
    own, svc = found["exact layer"][0]
    assert own < 20  # percent; 90 by chance
    assert svc < 20
    out = capsys.readouterr().out
    assert "digits of scikit-learn (no mnist in SYMSVM_DATA): 200 images to train on, 597 to test" in out
    assert out.count(" ms\n") == 3
    assert "SVC on pixels" in out


def test_few_shot_fits_each_head_to_episodes(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("SYMSVM_DATA", str(tmp_path))
    options = ["--seeds", "2", "--episodes", "3", "--tests", "5", "--mode", "FAST_COMPILE"]
    monkeypatch.setattr(sys, "argv", ["few_shot.py", *options])
    found = script("examples/few_shot.py").main()
    assert set(found) == {(head, shots) for head in ("prototypes", "ridge", "SVM") for shots in (1, 5)}
    assert all(len(accuracies) == 2 for accuracies in found.values())
    assert min(found[head, 5].mean() for head in ("prototypes", "ridge", "SVM")) > 70  # percent; 20 by chance
    assert "SVM of pixels" in capsys.readouterr().out


def test_run_prints_the_equations_and_draws(monkeypatch, capsys, tmp_path):
    picture = tmp_path / "out" / "run.png"
    monkeypatch.setattr(sys, "argv", ["run.py", "--steps", "3", "--out", str(picture)])
    script("examples/run.py").main()
    out = capsys.readouterr().out
    for text in ("Eq. 33", "Eq. 21", "Eq. 25", "Eq. 29", "Eq. 30", "W*", "infeasible", "Time"):
        assert text in out
    image = matplotlib.image.imread(picture)
    assert image.shape[0] > 400
    assert image.std() > 0.05


def small(name):
    """Return a set in the form of the paper's data sets, but small."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(30, 4)), rng.normal(size=(9, 4))
    return DataSet(X, np.where(X[:, 0] > 0, 1.0, -1.0), Z, np.ones(9))


def test_paper_tables_prints_both_tables(monkeypatch, capsys):
    tables = script("examples/paper_tables.py")
    monkeypatch.setattr(tables, "load", small)
    monkeypatch.setattr(tables, "APPLICATIONS", tuple(app._replace(steps=2) for app in tables.APPLICATIONS[:1]))
    monkeypatch.setattr(sys, "argv", ["paper_tables.py", "--seeds", "2"])
    tables.main()
    out = capsys.readouterr().out
    assert "9 of 9" in out
    assert out.count("projection, alpha = ") == 4
    assert "the largest stable step" in out
    assert "What these numbers do not show" in out


def twenty_steps():
    """Compare twenty steps as printed in the paper, on svmguide3 from one start, with the recursion in NumPy."""
    starts = script("benchmarks/paper_starts.py")
    data = load("svmguide3")
    X, Z = standardise(data.X, data.X_test)
    y = signs(data.y)
    svm = SVM_parallel(X, y, len(X), 128.0, 2.0, 0.01, random_state=0)
    svm.train_model_full(max_iters=20)
    lam, K = np.random.default_rng(0).random((len(X), 1)), starts.rbf(X, X, 2.0)
    for _ in range(20):
        lam = starts.step(lam, K, y, 128.0, 0.01)
    np.testing.assert_allclose(svm.lam.get_value(), lam[:, 0], rtol=1e-8, atol=1e-9)
    return svm, Z


def test_steps_as_printed_equal_the_recursion(monkeypatch, tmp_path):
    use("small", "svmguide3", tmp_path, monkeypatch)
    svm, Z = twenty_steps()
    assert (svm.make_predictions_parallel(Z) > 0).mean() > 0.8  # all of class +1


@pytest.mark.skipif(bool(missing("svmguide3")), reason=reason(missing("svmguide3")))
def test_vehicle_of_table_2_is_reproduced():
    svm, Z = twenty_steps()
    assert (svm.make_predictions_parallel(Z) > 0).sum() == 36  # of 41, all of class +1
    assert svm.certificate().infeasibility > 0.1
