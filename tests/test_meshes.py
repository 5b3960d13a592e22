"""Meshes of JAX devices: the same numbers as on one device, one all-gather a step, two processes, clear errors."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

import symsvm
from symsvm import CSVC, RBF
from symsvm.compiler import function, kernel_matvec, resolve_mode
from symsvm.objectives.dual import decisions

SCRIPT = Path(__file__).parent / "mesh_runs.py"
ONE = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("rows",))


def run(*lines):
    """What processes print that run side by side, one for each line of arguments."""
    env = {**os.environ, "PYTHONWARNINGS": "ignore", "PYTENSOR_FLAGS": "cxx=,blas__ldflags="}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": env}
    with contextlib.ExitStack() as stack:
        processes = [subprocess.Popen([sys.executable, str(SCRIPT), *line], **options) for line in lines]
        for process in processes:
            stack.enter_context(process)
            stack.callback(process.kill)
        printed = [process.communicate(timeout=200) for process in processes]
    for process, (_, errors) in zip(processes, printed, strict=True):
        assert process.returncode == 0, errors
    return [json.loads(out.splitlines()[-1]) for out, _ in printed]  # Gloo prints lines of its own


@pytest.fixture(scope="module")
def four():
    """What a process with four virtual devices found, by case."""
    return run(["two axes", "fewer rows than devices", "stored"])[0]


@pytest.fixture(scope="module")
def more():
    """The cases of `four` that take longer."""
    return run(["rbf", "laplacian", "linear", "tiled", "regression", "float32"])[0]


def check_graphs(found):
    assert max(found["differences"]) < 1e-12
    assert found["sent"] == {"all-gather": 1}  # W and its gradient have one product


def check_run(found, rows):
    assert found["difference"] < 1e-12
    assert found["n_iter"][0] == found["n_iter"][1] > 3
    assert found["status"] == "optimal"
    assert found["sent"] == [{}, {"all-gather": 1}]
    assert found["rows"] == rows


@pytest.fixture
def objective():
    lam = pytensor.shared(np.zeros(6), name="lam")
    X = np.random.default_rng(0).normal(size=(6, 2))
    return CSVC(lam, pytensor.shared(X, name="X"), pytensor.shared(np.sign(X[:, 0]), name="y"), 1.0, RBF(1.0))


@pytest.mark.parametrize("case", ["two axes", "fewer rows than devices"])
def test_values_gradients_products_and_predictions_equal_one_device(four, case):
    check_graphs(four[case])


@pytest.mark.slow
@pytest.mark.parametrize("case", ["rbf", "laplacian", "linear"])
def test_other_kernels_equal_one_device(more, case):
    check_graphs(more[case])


def test_fista_equals_one_device_with_one_all_gather_a_step(four):
    check_run(four["stored"], [26] * 4)  # 103 rows: the last device repeats one


@pytest.mark.slow
def test_tiles_regressions_and_float32(more):
    check_run(more["tiled"], [])
    check_run(more["regression"], [26] * 4)
    assert more["float32"]["status"] == "optimal"
    assert more["float32"]["difference"] < 1e-5
    assert more["float32"]["sent"] == [{}, {"all-gather": 1}]


def test_explain_says_where_the_rows_are(objective):
    box = symsvm.Objective(objective.value, objective.variable, 0.0, 1.0)
    text = str(symsvm.explain(symsvm.compile(box, "auto", mode="JAX", mesh=ONE)))
    assert "its rows spread over 1 device" in text
    assert "JAX on a mesh of 1 rows" in text


def test_two_processes_find_what_one_finds():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    first, second = run(*(["--rank", str(rank), str(port)] for rank in (0, 1)))
    assert first == second
    assert (first["processes"], first["devices"], first["status"]) == (2, 4, "optimal")
    assert first["error"] == "time_limit cannot end a run in 2 processes, whose clocks differ: pass max_iter."
    points = np.random.default_rng(53).normal(size=(53, 3))
    labels = np.where(points[:, 0] + 0.5 * points[:, 1] ** 2 > 0.3, 1.0, -1.0)
    model = symsvm.SVC(kernel=RBF(1.0), tol=1e-5, fit_intercept=False).fit(points, labels)
    lam = np.zeros(53)
    lam[model.support_] = np.abs(model.dual_coef_[0])
    np.testing.assert_allclose(first["lam"], lam, atol=5e-3)


def test_a_mode_can_have_a_mesh(objective):
    mode = resolve_mode("JAX", ONE)
    data = objective.X.get_value(), objective.y.get_value(), 6, 1.0, 1.0, 0.1
    W = [symsvm.SVM_parallel(*data, mode=each, random_state=0).build_W() for each in (mode, "JAX")]
    np.testing.assert_allclose(function([], W[0], mode=mode)(), function([], W[1], mode="JAX")(), rtol=1e-13, atol=0)


def test_no_rows_have_no_predictions(objective):
    Z = pt.dmatrix("Z")
    f = decisions(Z, objective.variable, objective.X, objective.y, RBF(1.0))
    assert np.asarray(function([Z], f, mode="JAX", mesh=ONE)(np.zeros((0, 2)))).shape == (0,)


def test_errors_name_the_mesh(objective):
    lam = pt.dvector("lam")
    empty = jax.sharding.Mesh(np.array([]), ("rows",))
    with pytest.raises(ValueError, match="mesh is for mode='JAX' only, and mode is None: pass mode='JAX'"):
        symsvm.compile(objective, "auto", mesh=ONE)
    with pytest.raises(ValueError, match="mesh is for mode='JAX' only, and mode is 'NUMBA'"):
        function([lam], kernel_matvec(RBF(1.0), objective.X, objective.X, lam), mode="NUMBA", mesh=ONE)
    with pytest.raises(TypeError, match=r"mesh must be a jax.sharding.Mesh, such as .*, got 4"):
        symsvm.solve(objective, mode="JAX", mesh=4)
    with pytest.raises(ValueError, match="mesh must have at least one device and one axis"):
        symsvm.solve(objective, mode="JAX", mesh=empty)
    for solver in ("decomposition", "smo", "qp"):
        with pytest.raises(ValueError, match="mesh is for solvers whose steps multiply by a kernel matrix"):
            symsvm.compile(objective, solver, mode="JAX", mesh=ONE)
    with pytest.raises(ValueError, match="mesh has nothing to spread"):
        symsvm.solve(symsvm.Objective(((lam - 1) ** 2).sum(), lam), mode="JAX", mesh=ONE, start=np.zeros(3))
    with pytest.raises(ValueError, match="mesh has nothing to spread"):
        function([lam], lam.sum(), mode="JAX", mesh=ONE)
