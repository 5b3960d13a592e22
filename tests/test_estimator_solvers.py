"""Kernel estimators with other solvers of duals: they reach the optimum, or end feasible and with a warning."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

import symsvm
from symsvm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from symsvm.compiler import functions

X, Y = make_moons(24, noise=0.2, random_state=0)
MODELS = {
    "SVC": (SVC(), Y),
    "NuSVC": (NuSVC(nu=0.4), Y),
    "NuSVC-weights": (NuSVC(nu=0.4, class_weight={0: 3.0}), Y),
    "NuSVC-pairs": (NuSVC(nu=0.3), np.arange(24) // 8),
    "SVR": (SVR(), X[:, 0] * 2),
    "NuSVR": (NuSVR(), X[:, 0] * 2),
    "OneClassSVM": (OneClassSVM(), None),
}
# Symbolic steps take seconds to compile, on Numba half a minute: one estimator of each kind.
CASES = [
    *((name, "qp", None) for name in MODELS),
    *((name, "projected-gradient", "JAX") for name in ("NuSVC", "NuSVR")),
    *(pytest.param(name, "projected-gradient", None, marks=pytest.mark.slow) for name in ("NuSVC", "NuSVR")),
]


@pytest.mark.parametrize(("name", "solver", "mode"), CASES)
def test_estimators_agree_with_their_default_solver(name, solver, mode):
    model, y = MODELS[name]
    params = {**model.get_params(), "tol": 1e-5}
    other = params | {"solver": solver, "mode": mode}
    expected, found = type(model)(**params).fit(X, y), type(model)(**other).fit(X, y)
    for one, other in zip(expected.solutions_, found.solutions_, strict=True):
        assert other.certificate.status in ("optimal", "stationary")
        assert other.certificate.W == pytest.approx(one.certificate.W, rel=1e-4, abs=1e-6)
    values = [m.decision_function(X) if hasattr(m, "decision_function") else m.predict(X) for m in (expected, found)]
    assert np.allclose(*values, atol=2e-2 * np.abs(values[0]).max())


def test_another_number_of_points_compiles_nothing(monkeypatch):
    """The graphs of a regression, two variables for a point, do not contain the number of points."""
    NuSVR(solver="projected-gradient", mode="JAX").fit(X, X[:, 0])
    compiled = []
    original = functions._compile
    monkeypatch.setattr(functions, "_compile", lambda *args: compiled.append(args) or original(*args))
    NuSVR(solver="projected-gradient", mode="JAX", C=2.0).fit(X[:-3], X[:-3, 0])
    assert not compiled


@pytest.mark.parametrize("name", MODELS)
def test_a_run_cut_short_is_feasible_and_warns(name):
    model, y = MODELS[name]
    with pytest.warns(ConvergenceWarning):
        found = type(model)(**model.get_params() | {"solver": "qp", "max_iter": 1}).fit(X, y)
    assert found.fit_status_ == 1
    assert all(solution.certificate.infeasibility < 1e-8 for solution in found.solutions_)


def test_the_margin_of_a_model_from_a_file(tmp_path):
    for weight in (None, {0: 3.0}):
        model = NuSVC(nu=0.4, class_weight=weight, solver="qp").fit(X, Y)
        symsvm.save(model, tmp_path / "m.symsvm")
        read = symsvm.load(tmp_path / "m.symsvm")
        if weight is None:
            assert read.lacks_margin() == model.lacks_margin()
        else:
            with pytest.raises(AttributeError, match="fit the model again"):
                read.lacks_margin()
