"""How runs of linear machines end: at tol with an optimal certificate, else with a warning, for any numbers."""

import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from symsvm import LinearSVC, LinearSVR
from symsvm.linear import Rows, solve_crammer_singer, solve_linear
from symsvm.linear.interior_point import _pseudo_inverse
from symsvm.linear.linear_problem import LinearProblem
from symsvm.linear.measure import Measure

SOLVER = sys.modules[solve_linear.__module__]
CLASSIFIERS = {
    "squared hinge": {},
    "hinge": {"loss": "hinge"},
    "hinge, free": {"loss": "hinge", "penalize_intercept": False},
    "squared hinge, free": {"penalize_intercept": False},
    "l1": {"penalty": "l1"},
    "l1, free": {"penalty": "l1", "penalize_intercept": False},
    "classes": {"multi_class": "crammer_singer"},
}
SQUARED = {"loss": "squared_epsilon_insensitive"}
REGRESSORS = {
    "insensitive": {},
    "insensitive, free": {"penalize_intercept": False},
    "squared": SQUARED,
    "squared, free": {"penalize_intercept": False, **SQUARED},
    "l1": {"penalty": "l1", **SQUARED},
}
MACHINES = [(LinearSVC, name, options) for name, options in CLASSIFIERS.items()]
MACHINES += [(LinearSVR, name, options) for name, options in REGRESSORS.items()]
NAMES = [f"{kind.__name__} {name}" for kind, name, _ in MACHINES]


def points(m, d, seed=0):
    """Points, classes 0 and 1, and targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    score = X[:, 0] + 0.5 * rng.normal(size=m)
    return X, (score > 0).astype(int), score


def fitted(kind, options, X, labels, targets, **more):
    """The fitted machine, and whether it warned; warnings other than ConvergenceWarning are errors."""
    model = kind(**options, **more)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(X, labels if kind is LinearSVC else targets)
    return model, bool(caught)


@pytest.mark.parametrize(("kind", "name", "options"), MACHINES, ids=NAMES)
def test_silence_means_an_optimal_certificate(kind, name, options):
    """Scales of points, targets and C from one end of float64 to the other: optimal or a warning, never an error."""
    X, labels, targets = points(14, 3)
    silent = 0
    for scale in (1e-150, 1e-39, 1e-3, 1.0, 1e4, 1e39, 1e150):
        for C in (1e-250, 1e-100, 1e-2, 4.355118736855686, 1e6, 1e100, 1e250):
            for unit in (1.0,) if kind is LinearSVC else (1.0, 1e-30, 1e30):
                if C * unit > 1e250:
                    continue
                model, warned = fitted(kind, options, scale * X, labels, unit * targets, C=C)
                found = model.certificate_
                assert warned or found.status == "optimal", (scale, C, unit, str(found))
                assert (model.solutions_[0].stopped == "tol") == (not warned)
                assert np.isfinite(model.coef_).all()
                silent += not warned
    assert silent >= 20


def test_variables_at_their_bounds_stay_there():
    """With every z at its bound, sum z is 0 but for rounding: no z moves off its bound for it."""
    for seed in (8, 13, 48):  # where scaling z by a factor of 1 - 1e-16 changes it
        rng = np.random.default_rng(seed)
        y = rng.permutation(np.repeat([1.0, -1.0], 6))
        costs, w = np.empty(12), rng.uniform(0.1, 3, 6)
        costs[y > 0], costs[y < 0] = w, rng.permutation(w)
        assert (y * costs).sum() != 0  # the rounding
        solution = solve_linear(1e-39 * rng.normal(size=(12, 5)), y, costs, loss="hinge", penalize_intercept=False)
        assert solution.stopped == "tol"
        assert np.array_equal(np.abs(solution.dual), costs)
        assert solution.certificate.status == "optimal"
        assert solution.certificate.violation <= 1e-12


def test_the_certificate_is_the_measure_of_the_run():
    """The last evaluation of a run and the certificate agree bit by bit, from u and z alone."""
    X, labels, targets = points(30, 4)
    for kind, name, options in MACHINES:
        if name != "classes":
            model, _ = fitted(kind, options, X, labels, targets, C=3.0)
            found, trace = model.certificate_, model.trace_
            assert found.violation in trace["violation"], name
            assert found.gap in trace["gap"], name


def test_the_status_of_a_measure():
    assert Measure(1.0, 1.0, 0.0, 0.0, 0.0).status(1e-3) == "optimal"
    assert Measure(1.0, 0.5, 0.5, 0.0, 0.0).status(1e-3) == "feasible"
    assert Measure(1.0, 1.0, 0.0, 0.0, 1e-9).status(1e-3) == "infeasible"
    assert Measure(1.0, 1.0, 0.0, 0.0, 1e-9, slack=1e-8).status(1e-3) == "optimal"
    assert Measure(np.inf, 0.0, np.inf, 0.0, 0.0).status(1e-3) == "diverged"  # inf <= tol inf
    assert Measure(1.0, 1.0, np.nan, 0.0, 0.0).status(1e-3) == "diverged"


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_a_run_without_a_finite_step_ends_at_zero(loss):
    """C X X' beyond float64, with a free intercept: the method of the first stage has no finite point."""
    X, labels, targets = points(28, 3)
    y = 2.0 * labels - 1 if loss == "hinge" else targets
    with pytest.warns(ConvergenceWarning, match=r"Scale the features"):
        solution = solve_linear(1e137 * X, y, 1e90, loss=loss, penalize_intercept=False)
    assert solution.stopped != "tol"
    assert solution.certificate.status == "feasible"
    assert np.isfinite(solution.w).all()
    assert np.isfinite(solution.b)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize(("kind", "name", "options"), MACHINES, ids=NAMES)
def test_points_whose_squares_overflow_are_refused(kind, name, options, layout):
    X, labels, targets = points(20, 3)
    X[3, 1] = 1e308
    with pytest.raises(ValueError, match=r"X has entries of up to 1e\+308, .* Scale the features"):
        fitted(kind, options, layout(X), labels, targets)
    Rows(layout(np.minimum(X, 3e38).astype("float32")))  # its squares are computed in float64


@pytest.mark.parametrize("options", REGRESSORS.values(), ids=list(REGRESSORS))
def test_targets_whose_loss_overflows_are_refused(options):
    X, labels, _ = points(20, 3)
    with pytest.raises(ValueError, match=r"y has targets of up to 1e\+308, .* exceeds .* Scale the targets"):
        fitted(LinearSVR, options, X, labels, np.full(20, 1e308))


@pytest.mark.parametrize("C", [1e308, 1e-320])
@pytest.mark.parametrize(("kind", "name", "options"), MACHINES, ids=NAMES)
def test_costs_beyond_float64_are_refused(kind, name, options, C):
    X, labels, targets = points(20, 3)
    with pytest.raises(ValueError, match=r"C, times the weight of a point, .*must"):
        fitted(kind, options, X, labels, 10 * targets, C=C)


def test_a_matrix_that_is_not_finite_ends_the_refinement():
    """One entry of 1e150 beside C = 1e10: equations of the active set that overflow are not solved."""
    X, labels, targets = points(17, 3)
    X[3, 1] = 1e153
    for kind, name, options in MACHINES:
        model, warned = fitted(kind, options, X, labels, targets, C=1e10)
        assert warned or model.certificate_.status == "optimal", name


@pytest.mark.parametrize("loss", ["squared_hinge", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("C", [1e-165, 1e-288])
def test_tiny_costs_do_not_underflow(loss, C):
    """W = -D and P in rational arithmetic, where z^2 is less than float64 has."""
    X, labels, targets = points(9, 2)
    y = 2.0 * labels - 1 if loss == "squared_hinge" else targets
    problem = LinearProblem(Rows(X, 1.0), y, C, loss=loss)
    z = 0.75 * 2 * C * y  # within the bounds: C is so small that z = 2 C y is optimal
    u = problem.rows.transposed(z)
    measure, _ = problem.measure(u, z)
    t, a, w = ([Fraction(float(x)) for x in each] for each in (y, z, u))
    A = [[*map(Fraction, map(float, row)), Fraction(1)] for row in X]
    f = [sum(x * c for x, c in zip(row, w, strict=True)) for row in A]
    half = sum(c * c for c in w) / 2
    dual = sum(ti * ai - ai * ai / (4 * Fraction(C)) for ti, ai in zip(t, a, strict=True)) - half
    r = [ti - fi for ti, fi in zip(t, f, strict=True)]
    primal = half + sum(Fraction(C) * ri * ri for ri in r)
    np.testing.assert_allclose([measure.dual, measure.primal], [float(dual), float(primal)], rtol=1e-12)
    np.testing.assert_allclose(measure.gap, float(primal - dual), rtol=1e-9)


def clocked(monkeypatch, calls):
    """Let the clock of a run jump past any limit after so many readings."""
    readings = iter(range(10**9))
    monkeypatch.setattr(SOLVER.time, "perf_counter", lambda: 0.0 if next(readings) < calls else 1e9)


@pytest.mark.parametrize("machine", ["hinge", "squared_hinge", "epsilon_insensitive", "classes"])
def test_bits_do_not_depend_on_the_clock(monkeypatch, machine):
    """A run ends at the time limit with a warning, or as it would without one.

    The limit may also end the passes of Crammer and Singer at a point that is already within tol: it is refined too.
    """
    X, labels, targets = points(25, 3, seed=1)

    def solve(**limits):
        if machine == "classes":
            return solve_crammer_singer(X, labels + (targets > 1), 10.0, tol=1e-2, **limits)
        y = targets if machine.startswith("epsilon") else 2.0 * labels - 1
        return solve_linear(X, y, 10.0, loss=machine, tol=1e-2, **limits)

    whole = solve()
    assert "refinement" in whole.algorithm
    ends = set()
    for calls in range(len(whole.trace["W"]) + 3):
        with warnings.catch_warnings(record=True) as caught, monkeypatch.context() as patch:
            warnings.simplefilter("always")
            clocked(patch, calls)
            limited = solve(time_limit=1.0)
        ends.add(limited.stopped)
        assert bool(caught) == (limited.stopped == "time_limit")
        if limited.stopped == "tol" and machine == "classes":
            np.testing.assert_allclose(limited.w, whole.w, rtol=1e-9, atol=1e-9)
        elif limited.stopped == "tol":
            assert np.array_equal(limited.w, whole.w)
            assert np.array_equal(limited.b, whole.b)
            assert np.array_equal(limited.dual, whole.dual)
    assert ends == {"tol"} if len(whole.trace["W"]) < 3 else "tol" in ends


@pytest.mark.parametrize("free", [True, False])
def test_equations_of_many_points_are_solved_in_the_span_of_their_features(free):
    """The pseudo-inverse of K for more points than features, copies among them, against that of the whole matrix."""
    rng = np.random.default_rng(0)
    for layout, d in ((np.asarray, 3), (sparse.csr_matrix, 3), (np.asarray, 40)):
        X = np.round(rng.normal(size=(30, d)), 1)
        X[10:20] = X[:10]
        problem = LinearProblem(Rows(layout(X), 2.0), np.ones(30), 1.0, loss="epsilon_insensitive", free=free)
        inside, r = np.arange(25), rng.normal(size=26)
        K = np.zeros((26, 26))
        K[:25, :25] = X[:25] @ X[:25].T + (0.0 if free else 4.0)
        if free:
            K[25, :25] = K[:25, 25] = 2.0
        np.testing.assert_allclose(_pseudo_inverse(problem, inside)(r), np.linalg.pinv(K, rcond=1e-13) @ r, atol=1e-9)


@pytest.mark.parametrize(("scale", "C"), [(1e38, 1e-83), (1e-40, 1e90)])
@pytest.mark.parametrize("kind", [LinearSVC, LinearSVR])
def test_weights_beyond_float32_predict_float32_points(kind, scale, C):
    """Weights that float32 does not have are not rounded to 0 or infinity: the values are those of float64 points."""
    X, labels, targets = points(20, 2)
    X32 = (scale * X / np.abs(X).max()).astype("float32")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = kind(C=C, fit_intercept=False).fit(X32, labels if kind is LinearSVC else targets)
    values = getattr(model, "decision_function", model.predict)
    assert (np.abs(model.coef_) < 1e-44).any() or (np.abs(model.coef_) > 1e39).any()
    np.testing.assert_allclose(values(X32), values(X32.astype("float64")), rtol=1e-5)
    np.testing.assert_allclose(values(X32), X32.astype("float64") @ np.ravel(model.coef_), rtol=1e-5, atol=1e-300)


def test_infinite_points_and_targets_are_refused_without_other_warnings():
    X, labels, targets = points(20, 2)
    X[1], X[2] = np.inf, -np.inf
    with pytest.raises(ValueError, match="infinity"):
        fitted(LinearSVC, {}, X.astype("float32"), labels, targets)
    with pytest.raises(ValueError, match="y must be finite|y contains NaN"):
        fitted(LinearSVR, {}, X[3:], None, [None] * 17)
