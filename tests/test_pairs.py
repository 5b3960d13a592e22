"""Pairs of classes that several threads solve at a time: the same bits, warnings in order, interrupts."""

import signal
import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from symsvm import RBF, SVC, QuadraticProgram
from symsvm._lib import threads
from symsvm.solvers.decomposition.one_vs_one import one_vs_one

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 5, 2000)
X = RNG.normal(size=(2000, 3)) + 1.2 * np.eye(5)[LABELS][:, :3]


@pytest.fixture(autouse=True)
def three_cores(monkeypatch):
    monkeypatch.setattr(threads._LOCAL, "cores", 3, raising=False)


def test_several_pairs_at_a_time_have_the_bits_of_one_after_another():
    model = SVC(C=3.0).fit(X, LABELS)
    seen = []
    in_turn = SVC(C=3.0)
    with in_turn.watching(lambda info: seen.append(info.problem)):
        in_turn.fit(X, LABELS)
    assert seen == sorted(seen)  # who watches sees one problem after another
    for name in ("dual_coef_", "intercept_", "support_", "n_iter_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(in_turn, name))
    for one, other in zip(model.solutions_, in_turn.solutions_, strict=True):
        for name in ("W", "violation", "rows"):
            np.testing.assert_array_equal(one.trace[name], other.trace[name])


def test_one_vs_one_yields_pairs_in_order():
    found = list(one_vs_one(X, LABELS, RBF(1.0), lambda y, rows: QuadraticProgram.c_svc(y, 3.0)))
    assert [(a, b) for a, b, *_ in found] == [(a, b) for a in range(5) for b in range(a + 1, 5)]
    for a, b, rows, solution in found:
        assert set(LABELS[rows]) == {a, b}
        assert solution.certificate.status == "optimal"


def test_each_pair_that_stops_short_warns_once_and_points_at_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SVC(C=100.0, tol=1e-14, max_iter=2).fit(X, LABELS)
    assert 1 <= len(caught) <= 10
    assert {(w.category, w.filename) for w in caught} == {(ConvergenceWarning, __file__)}


def test_an_interrupt_ends_all_pairs_with_a_feasible_model(monkeypatch):
    """The interrupt comes while the pairs are solved, between two iterations of the calling thread."""
    from symsvm.solvers.decomposition import algorithm

    iterate, main = algorithm._iterate, threads.threading.main_thread()
    calls = []

    def interrupted(state, limits, began, trace):
        if threads.threading.current_thread() is main and not calls:
            calls.append(None)
            callback = limits.callback

            def raise_signal(info):
                signal.raise_signal(signal.SIGINT)
                return callback(info)

            object.__setattr__(limits, "callback", raise_signal)
        return iterate(state, limits, began, trace)

    monkeypatch.setattr(algorithm, "_iterate", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupt") as caught:
        model = SVC(C=100.0).fit(X, LABELS)
    assert len(caught) == 1
    assert "interrupt" in {solution.stopped for solution in model.solutions_}
    assert {solution.certificate.status for solution in model.solutions_} <= {"optimal", "feasible"}
    assert model.predict(X[:5]).shape == (5,)


def test_an_error_of_one_pair_is_that_of_the_fit(monkeypatch):
    module = sys.modules["symsvm.solvers.decomposition.one_vs_one"]  # a function has the name of its module
    solve = module._at_once

    def broken(solution, n):
        def fails(k):
            if k == 3:
                raise ValueError("the fourth pair")
            return solution(k)

        return solve(fails, n)

    monkeypatch.setattr(module, "_at_once", broken)
    with pytest.raises(ValueError, match="the fourth pair"):
        SVC().fit(X, LABELS)
