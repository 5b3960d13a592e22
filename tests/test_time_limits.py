"""Time limits: the clock is looked at in every long part of a run, its start included. No test measures time."""

import itertools
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from symsvm import KernelDual, LinearSVC, NuSVC, OneClassSVM, QuadraticProgram, solve
from symsvm.evaluation import local
from symsvm.evaluation.local import LocalKernelMatrix
from symsvm.kernels import RBF
from symsvm.linear import subspace
from symsvm.solvers.decomposition import algorithm, limited_product, small_problem
from symsvm.solvers.decomposition.limited_product import add_product_until

M = 600
X = np.random.default_rng(0).normal(size=(M, 3))
Y = np.where(X[:, 0] + X[:, 1] ** 2 > 1, 1, -1)
CLASSES = np.digitize(X[:, 0] + X[:, 1], [-1, 0, 1])


@pytest.fixture
def clock(monkeypatch):
    """A clock that is a second later each time it is read; of the problems that are not solved in one call."""
    monkeypatch.setattr(local, "SMALL_PROBLEM", 256)
    ticks = itertools.count()
    monkeypatch.setattr("time.perf_counter", lambda: float(next(ticks)))


@pytest.fixture
def own_clock(monkeypatch):
    """The same for products alone: compilers read the clock, too."""
    monkeypatch.setattr(local, "SMALL_PROBLEM", 256)
    ticks = itertools.count()
    monkeypatch.setattr(limited_product, "time", SimpleNamespace(perf_counter=lambda: float(next(ticks))))


@pytest.fixture
def small_pieces(monkeypatch):
    """Let the clock be looked at after each 50 rows of these problems."""
    monkeypatch.setattr(limited_product, "_ENTRIES", 50 * M)


def counted(matrix):
    """The numbers of rows of the products in float64, as they are asked for."""
    calls, product = [], matrix.product

    def count(q, rows, columns, out, *, exact):
        calls.append(matrix.m if rows is None else len(rows))
        product(q, rows, columns, out, exact=exact)

    matrix.product = count
    return calls


def test_a_product_ends_at_the_deadline(own_clock, small_pieces):
    matrix, d = LocalKernelMatrix(RBF(1.0), X), np.where(np.arange(M) % 3, 1.0, -1.0)
    calls, out, exact = counted(matrix), np.zeros(M), np.zeros(M)
    assert not add_product_until(matrix, d, np.arange(M), out, deadline=4.0)
    assert calls == [50] * 4 + [400] * 2  # and the rest from a sample of the columns of each sign
    matrix.product(d, None, np.arange(M), exact, exact=True)
    np.testing.assert_allclose(out[:200], exact[:200], rtol=1e-12)
    assert np.abs(out[200:] - exact[200:]).max() < 0.3 * np.abs(exact).max()


def test_a_product_in_time_has_the_same_bits(small_pieces):
    m = 2 * M  # enough for the compiled loops
    matrix, d = LocalKernelMatrix(RBF(1.0), np.vstack([X, X + 0.1])), np.linspace(-1, 2, m)
    calls, out, whole = counted(matrix), np.zeros(m), np.zeros(m)
    assert add_product_until(matrix, d, np.arange(m), out, deadline=1e300)
    assert calls == [25] * 48
    assert add_product_until(matrix, d, np.arange(m), whole, deadline=np.inf)
    assert calls[48:] == [m]
    assert out.tolist() == whole.tolist()


def test_an_estimate_is_exact_where_the_kernel_is_constant(own_clock, small_pieces):
    matrix, out = LocalKernelMatrix(RBF(1.0), np.ones((M, 2))), np.zeros(M)
    d = np.random.default_rng(1).normal(size=M)
    assert not add_product_until(matrix, d, np.arange(M), out, deadline=0.0)
    np.testing.assert_allclose(out, d.sum(), rtol=1e-5)


@pytest.mark.parametrize("model", [OneClassSVM(nu=0.5), NuSVC(nu=0.3)], ids=str)
def test_the_first_product_of_a_run_ends_at_the_time_limit(model, clock, monkeypatch):
    monkeypatch.setattr(limited_product, "_ENTRIES", 1000)
    model.set_params(time_limit=3.0)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model.fit(X, Y)
    assert np.max(model.n_iter_) == 0
    assert model.fit_status_ == 1
    assert np.isfinite(model.intercept_).all()
    assert model.certificate_.infeasibility < 1e-9
    assert model.certificate_.status == "feasible"
    assert np.isfinite(model.decision_function(X[:5])).all()


def passes(limit):
    """The passes and steps of Crammer and Singer's machine until it stops."""
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        model = LinearSVC(multi_class="crammer_singer", C=100.0, time_limit=limit, tol=1e-12, max_iter=1000)
        return model.fit(X, CLASSES).n_iter_, model


def test_crammer_singer_looks_at_the_clock_after_each_pass(clock):
    assert passes(1.5)[0] <= 2


def test_crammer_singer_has_the_same_bits_with_and_without_a_time_limit():
    (n, limited), (n_free, free) = passes(1e300), passes(None)
    assert n == n_free
    assert limited.coef_.tolist() == free.coef_.tolist()


def test_subspace_minimisation_ends_at_the_deadline(monkeypatch):
    from symsvm.linear.crammer_singer import ClassesProblem
    from symsvm.linear.solve_linear import as_rows

    problem = ClassesProblem(as_rows(X, 1.0), CLASSES, 1.0, 4)
    z = np.where(problem.bounds > 0, 0.3, -0.1)
    assert np.abs(z.sum(axis=1)).max() < 1e-12
    calls = []
    monkeypatch.setattr(problem, "combine", lambda *args, f=problem.combine: calls.append(0) or f(*args))
    ticks = itertools.count()
    monkeypatch.setattr("time.perf_counter", lambda: float(next(ticks)))
    subspace.minimize_free_classes(problem, z, iterations=50, share=1e-12, deadline=5.0)
    assert len(calls) == 7  # the first, five iterations, the last


def test_a_solution_that_is_there_is_not_given_up_for_a_time_limit(monkeypatch):
    whole, now = small_problem.minimise, [0.0]

    def late(*arguments):
        now[0] = 100.0  # the first call on a machine compiles
        return whole(*arguments)

    monkeypatch.setattr(small_problem, "minimise", late)
    monkeypatch.setattr(algorithm, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    program = QuadraticProgram.c_svc(Y[:200].astype("float64"), 1.0)
    solution = solve(KernelDual(program, X[:200], RBF(1.0)), time_limit=1.0)
    assert solution.stopped == "tol"
    assert solution.certificate.status == "optimal"
