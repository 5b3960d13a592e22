"""A fit is all or nothing: one that fails, for whatever reason, leaves the estimator as it was."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris

import symsvm
from symsvm import RBF, SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from symsvm.data import Scaling
from symsvm.estimators.parameter_checks import PARAMETER_CHECKS

X, Y = load_iris(return_X_y=True)
X, Y = X[::3], Y[::3]
OTHER, TARGETS = X[::-1] * [1.0, -2.0, 0.5, 3.0] + 1.0, X[:, 0] - X[:, 3]

# Each estimator in the ways that it can be fitted.
MODELS = {
    "SVC": SVC(),
    "SVC-ovr": SVC(multi_class="ovr", kernel="linear"),
    "SVC-calibrated": SVC(calibration="sigmoid", random_state=0),
    "SVC-isotonic": SVC(calibration="isotonic", random_state=0, multi_class="dag"),
    "SVC-kernel": SVC(kernel=RBF(1.0), class_weight="balanced"),
    "NuSVC": NuSVC(nu=0.3),
    "SVR": SVR(),
    "NuSVR": NuSVR(),
    "OneClassSVM": OneClassSVM(),
    "LinearSVC": LinearSVC(),
    "LinearSVC-warm": LinearSVC(warm_start=True, loss="hinge"),
    "LinearSVC-squared": LinearSVC(warm_start=True, max_iter=-1),
    "LinearSVC-crammer-singer": LinearSVC(multi_class="crammer_singer", warm_start=True),
    "LinearSVC-calibrated": LinearSVC(calibration="sigmoid", random_state=0),
    "LinearSVR": LinearSVR(epsilon=0.1),
    "LinearSVR-warm": LinearSVR(warm_start=True, loss="squared_epsilon_insensitive", penalty="l1"),
}
# Values that are wrong for a parameter, in every estimator that has it.
NOT_A_SWITCH = ("no", "False", None, 1, 0.0, [])
WRONG = {
    "C": (-1.0, 0.0, np.nan, np.inf, "1", None, [1.0], True),
    "break_ties": NOT_A_SWITCH,
    "cache_size": (-1.0, np.nan, "big"),
    "calibration": ("platt", True, 3),
    "class_weight": ("equal", {0: -5.0}, {0: np.nan}, {0: 0.0}, {0: "2"}, {0: None}, {7: 1.0}, [1.0, 2.0, 3.0], 3.0),
    "coef0": (np.nan, np.inf, "0", None),
    "decision_function_shape": ("ova", None, 1),
    "degree": (0, -1, 2.5, "3", None),
    "dual": ("yes", None, 1),
    "epsilon": (-0.1, np.nan, "0.1", None),
    "fit_intercept": NOT_A_SWITCH,
    "gamma": (-1.0, 0.0, np.nan, np.inf, "wide", None),
    "intercept_scaling": (-1.0, 0.0, np.nan, "1"),
    "kernel": ("rbv", None, 3, RBF, RBF(-1.0), RBF(np.nan), lambda A, B: A @ B.T + np.arange(len(B)), lambda A, B: A),
    "loss": ("log", None, 1),
    "max_iter": (-2, 1.5, "10", None, True),
    "mode": ("CUDA", 3),
    "multi_class": ("all", None, 1),
    "nu": (0.0, 1.5, -0.5, np.nan, "0.5", None),
    "penalize_intercept": NOT_A_SWITCH,
    "penalty": ("l0", None, 2),
    "probability": ("yes", None, 1),
    "random_state": (-1, "seed", 1.5),
    "shrinking": NOT_A_SWITCH,
    "solver": ("sgd", "perceptron", 3, None, symsvm.AdaGrad),
    "stream_size": (0, -1, 2.5, "10"),
    "time_limit": (-1.0, np.nan, "1"),
    "tol": (-1e-3, 0.0, np.nan, "1e-3", None),
    "verbose": ("no", None, -1, 0.5),
    "warm_start": NOT_A_SWITCH,
}
# Predictions read these parameters: a model with a wrong one answers again when it is set right.
READ_BY_PREDICTIONS = ("break_ties", "calibration", "decision_function_shape", "kernel", "mode", "multi_class")
BAD_ROWS = {
    "nan": (np.where(np.arange(X.size).reshape(X.shape) == 7, np.nan, OTHER), None, None),
    "infinite": (np.where(np.arange(X.size).reshape(X.shape) == 7, np.inf, OTHER), None, None),
    "words": (np.full(X.shape, "word", dtype=object), None, None),
    "one dimension": (OTHER[:, 0], None, None),
    "no rows": (OTHER[:0], None, None),
    "complex": (OTHER + 1j, None, None),
    "masked": (np.ma.masked_greater(OTHER, 2.0), None, None),
    "masked targets": (OTHER, np.ma.masked_greater(Y, 1), None),
    "masked weights": (OTHER, None, np.ma.masked_greater(np.arange(len(Y)) + 1.0, 3.0)),
    "few labels": (OTHER, Y[:5], None),
    "labels of two columns": (OTHER, np.column_stack([Y, Y]), None),
    "labels that are nan": (OTHER, np.where(Y == 2, np.nan, Y), None),
    "no labels": (OTHER, "none", None),
    "weights that are nan": (OTHER, None, np.full(len(Y), np.nan)),
    "negative weights": (OTHER, None, np.full(len(Y), -1.0)),
    "few weights": (OTHER, None, np.ones(3)),
    "weights of 0": (OTHER, None, np.zeros(len(Y))),
    "weights that are words": (OTHER, None, np.full(len(Y), "w")),
}


def targets_of(model):
    return Y if hasattr(model, "class_weight") else TARGETS


@pytest.fixture(scope="module")
def fitted():
    """Each model with its fit; tests change copies of its attributes."""
    models = {name: clone(model) for name, model in MODELS.items()}
    return {name: model.fit(X, targets_of(model)) for name, model in models.items()}


def duplicate(model):
    """An estimator with the same parameters and the same fitted attributes."""
    other = object.__new__(type(model))
    vars(other).update(vars(model))
    return other


def contents(value):
    """Everything that a value holds, by value."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return {name: contents(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [contents(item) for item in value]
    if type(value).__module__.startswith("symsvm.linear") and hasattr(value, "__dict__"):
        return contents(vars(value))
    return repr(value)


def answers(model):
    """The bits of everything that a model answers."""
    found = [model.predict(OTHER)]
    for name in ("decision_function", "predict_proba", "score_samples"):
        if hasattr(model, name):
            found.append(getattr(model, name)(OTHER))
    return b"".join(np.ascontiguousarray(values).tobytes() for values in found)


class unchanged:
    """Check that a block raises one of these errors and changes nothing of a model."""

    def __init__(self, model, errors, sets=()):
        self.model, self.errors, self.sets = model, errors, dict(sets)
        self.right = {name: getattr(model, name) for name in self.sets}

    def __enter__(self):
        self.before, self.contents = dict(vars(self.model)), contents(vars(self.model))
        self.answers = answers(self.model)
        self.model.set_params(**self.sets)

    def __exit__(self, kind, error, traceback):
        assert kind is not None, f"{self.sets} raised nothing"
        if not issubclass(kind, self.errors):
            return False
        assert vars(self.model).keys() == self.before.keys() | self.sets.keys()
        for name, value in vars(self.model).items():
            assert value is self.before[name] or name in self.sets, name
        if not set(self.sets) & set(READ_BY_PREDICTIONS):
            assert answers(self.model) == self.answers
        self.model.set_params(**self.right)
        assert answers(self.model) == self.answers
        assert contents(vars(self.model)) == self.contents
        self.error = error
        return True


def test_every_parameter_has_a_check_and_wrong_values():
    for model in MODELS.values():
        names = set(model.get_params(deep=False))
        assert names <= set(PARAMETER_CHECKS) | set(getattr(type(model), "_choices", {}))
        assert names <= set(WRONG)


@pytest.mark.parametrize("name", MODELS)
def test_a_refit_with_a_wrong_parameter_names_it_and_changes_nothing(fitted, name):
    for parameter in MODELS[name].get_params(deep=False):
        for value in WRONG[parameter]:
            if parameter == "C" and value == np.inf and type(MODELS[name]) in (symsvm.SVC, symsvm.SVR):
                continue  # a hard margin
            model = duplicate(fitted[name])
            check = unchanged(model, (TypeError, ValueError), {parameter: value})
            with check:
                model.fit(OTHER, targets_of(model)[::-1])
            message = str(check.error)
            named = parameter in message or repr(value) in message
            named |= parameter == "kernel" and ("matrix" in message or "sigma" in message)
            assert named, message
            assert message.endswith((".", "?")), message


@pytest.mark.parametrize("name", MODELS)
def test_a_first_fit_that_fails_leaves_an_estimator_without_a_fit(name):
    model = clone(MODELS[name])
    before = dict(vars(model))
    for points, y, weights in BAD_ROWS.values():
        if y is not None and isinstance(model, OneClassSVM):
            continue
        with pytest.raises((TypeError, ValueError)):
            _fit(model, points, y, weights)
        assert vars(model) == before


def _fit(model, points, y, weights):
    y = targets_of(model)[: len(points)] if y is None else None if isinstance(y, str) else y
    return model.fit(points, y, sample_weight=weights)


@pytest.mark.parametrize("name", MODELS)
def test_a_refit_to_bad_data_changes_nothing(fitted, name):
    for points, y, weights in BAD_ROWS.values():
        model = duplicate(fitted[name])
        if y is not None and isinstance(model, OneClassSVM):
            continue
        with unchanged(model, (TypeError, ValueError)):
            _fit(model, points, y, weights)


class Broken(Exception):
    pass


def solver_names(model):
    """The functions that a fit of this model calls to solve its problems."""
    if hasattr(model, "kernel"):
        return ["symsvm.estimators.kernel_source.solve_dual"]
    if isinstance(model, LinearSVR):
        return ["symsvm.estimators.linear_estimator.solve_linear"]
    return [f"symsvm.estimators.linear_classifier.{name}" for name in ("solve_linear", "solve_crammer_singer")]


@pytest.mark.parametrize("error", [Broken, MemoryError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("last", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", MODELS)
def test_an_error_in_the_solver_changes_nothing(fitted, name, last, error, monkeypatch):
    """Of the first problem of the fit or of its last one, before the solver has begun and after it has ended."""
    model = duplicate(fitted[name])
    for path in solver_names(model):
        module, _, function = path.rpartition(".")
        monkeypatch.setattr(path, _failing(getattr(sys.modules[module], function), len(model.solutions_), last, error))
    with unchanged(model, error):
        model.fit(OTHER, targets_of(model)[::-1])


def _failing(solve, n_problems, last, error):
    calls = []

    def failing(*args, **options):
        calls.append(None)
        if not last:
            raise error
        solution = solve(*args, **options)
        if len(calls) >= n_problems:
            raise error
        return solution

    return failing


@pytest.mark.filterwarnings("ignore:.*interrupt")
@pytest.mark.parametrize("name", MODELS)
def test_a_callback_that_raises_changes_nothing(fitted, name):
    model = duplicate(fitted[name])

    def fail(info):
        raise Broken

    with model.watching(fail), unchanged(model, Broken):
        model.fit(OTHER, targets_of(model)[::-1])


FILES = tuple(str(Path(symsvm.__file__).parent / name) for name in ("estimators", "_lib/transactions"))


@pytest.mark.parametrize("error", [Broken, KeyboardInterrupt])
@pytest.mark.parametrize("name", MODELS)
def test_an_error_at_any_line_of_a_fit_changes_nothing(fitted, name, error):
    """Raised by a trace function at a line of an estimator's own modules, from the first line to the last."""
    seen = []

    def count_lines(frame, event, _):
        if frame.f_code.co_filename.startswith(FILES):
            if event == "line":
                seen.append((frame.f_code.co_name, frame.f_lineno))
                if len(seen) == stop:
                    raise error
            return count_lines
        return None

    model, stop = duplicate(fitted[name]), 0
    _traced(count_lines, model)
    total = len(seen)
    assert total > 40
    expected = answers(model)
    for stop in np.unique(np.linspace(1, total, 25).astype(int)).tolist():
        seen.clear()
        model = duplicate(fitted[name])
        before, state = contents(vars(model)), dict(vars(model))
        with pytest.raises(error):
            _traced(count_lines, model)
        if stop == total:  # the line that returns the estimator: the new model is complete
            assert answers(model) == expected
        else:
            assert {n: id(v) for n, v in vars(model).items()} == {n: id(v) for n, v in state.items()}, seen[-1]
            assert contents(vars(model)) == before, seen[-1]


def _traced(trace, model):
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        model.fit(OTHER, targets_of(model)[::-1])
    finally:
        sys.settrace(before)


STREAMS = {"class_weight": WRONG["class_weight"] + ("balanced",), "C": (-1.0,), "fit_intercept": ("no",)}
STREAMS |= {"stream_size": (0,), "intercept_scaling": (0.0,), "random_state": ("seed",)}


@pytest.mark.parametrize("begin", ["fit", "partial_fit"])
def test_a_partial_fit_that_fails_changes_nothing(begin, monkeypatch):
    model = LinearSVC(loss="hinge", random_state=0)
    fit = {"fit": model.fit, "partial_fit": lambda X, y: model.partial_fit(X, y, classes=[0, 1, 2])}[begin]
    fit(X, Y)
    for parameter, values in STREAMS.items():
        for value in values:
            with unchanged(model, (TypeError, ValueError), {parameter: value}):
                model.partial_fit(OTHER, Y)
    for points, y, weights in BAD_ROWS.values():
        with unchanged(model, (TypeError, ValueError)):
            model.partial_fit(
                points, Y[: len(points)] if y is None else None if isinstance(y, str) else y, None, weights
            )
    with unchanged(model, ValueError):
        model.partial_fit(OTHER, Y + 1)
    with unchanged(model, ValueError):
        model.partial_fit(OTHER, Y, classes=[0, 1])
    see, calls = symsvm.linear.Stream.see, []

    def interrupted(stream, *args):
        see(stream, *args)
        calls.append(None)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(symsvm.linear.Stream, "see", interrupted)
    with unchanged(model, KeyboardInterrupt):
        model.partial_fit(OTHER, Y)
    monkeypatch.undo()
    expected = LinearSVC(loss="hinge", random_state=0)
    if begin == "fit":
        expected.fit(X, Y).partial_fit(OTHER, Y)
    else:
        expected.partial_fit(X, Y, classes=[0, 1, 2]).partial_fit(OTHER, Y)
    assert answers(model.partial_fit(OTHER, Y)) == answers(expected)


@pytest.mark.parametrize("make", [SVC, LinearSVC])
def test_a_calibration_that_fails_changes_nothing(make):
    model = make(random_state=0).fit(X, Y)
    for method, points, y in [("platt", X, Y), ("sigmoid", X, Y[:5]), ("sigmoid", X, np.arange(len(Y)))]:
        with unchanged(model, (TypeError, ValueError)):
            model.calibrate(points, y, method)


def test_a_scaling_that_fails_changes_nothing():
    scaling = Scaling((1, 2)).fit(X)
    before, values = dict(vars(scaling)), scaling.transform(OTHER)
    too_large = np.array([[1e308, 0.0], [-1e308, 1.0]])
    for points in (too_large, sparse.csr_matrix(X[:, :2]), np.full((2, 3), np.nan), np.ma.masked_less(X, 1.0)):
        with pytest.raises(ValueError, match="X"):
            scaling.fit(points)
        assert vars(scaling) == before
    assert np.array_equal(scaling.transform(OTHER), values)


def test_a_fit_replaces_a_model_at_once():
    """While a fit runs, the model that it replaces still answers."""
    model = SVC().fit(X, Y)
    before, seen = answers(model), []

    def observe(info):
        seen.append(answers(model))

    with model.watching(observe):
        model.fit(OTHER, Y[::-1])
    assert set(seen) == {before}
    assert answers(model) == answers(SVC().fit(OTHER, Y[::-1]))


def test_a_fit_keeps_what_is_changed_while_it_runs():
    model = SVC()
    with model.watching(lambda info: vars(model).update(tol=0.5, mine="mine") or False):
        model.fit(X, Y)
    assert (model.tol, model.mine) == (0.5, "mine")


@pytest.mark.parametrize("value", [np.True_, np.False_])
@pytest.mark.parametrize("make", [SVC, SVR, LinearSVC, LinearSVR])
def test_booleans_of_numpy_are_booleans(make, value):
    model = make(fit_intercept=value)
    expected = make(fit_intercept=bool(value))
    assert answers(model.fit(X, targets_of(model))) == answers(expected.fit(X, targets_of(model)))
