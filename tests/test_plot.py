"""Plots: each function draws on the axes it is given, returns a display, and shows the right numbers."""

import subprocess
import sys

import numpy as np
import pytest
import sklearn.svm
from matplotlib import pyplot
from sklearn.datasets import load_iris, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from symsvm import (
    RBF,
    SVC,
    SVR,
    Linear,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Polynomial,
    contributions,
    plot,
)
from symsvm.inspection.plot.display import Display, find_support
from symsvm.tuning import GradientSearchCV, tune

X, Y = make_moons(80, noise=0.2, random_state=0)
IRIS, KINDS = load_iris(return_X_y=True)
KINDS = np.array(["setosa", "versicolor", "virginica"])[KINDS]
T = np.sort(np.random.default_rng(0).uniform(0, 6, 60))
S = np.sin(T) + 0.2 * np.random.default_rng(1).normal(size=60)


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def svc():
    return SVC(C=2.0).fit(X, Y)


@pytest.fixture(scope="module")
def iris():
    return SVC().fit(IRIS, KINDS)


@pytest.fixture(scope="module")
def svr():
    return SVR(epsilon=0.2).fit(T[:, None], S)


DRAW = {
    "contributions": lambda m, **ax: plot.contributions(contributions(m["svc"], X[0], by="features")[0], 1, **ax),
    "decision_boundary": lambda m, **ax: plot.decision_boundary(m["svc"], X, Y, **ax),
    "tube": lambda m, **ax: plot.tube(m["svr"], T, S, **ax),
    "convergence": lambda m, **ax: plot.convergence({"a": m["svc"], "b": m["svr"].trace_}, **ax),
    "roc": lambda m, **ax: plot.roc(m["svc"], X, Y, **ax),
    "precision_recall": lambda m, **ax: plot.precision_recall(m["svc"], X, Y, **ax),
    "gram": lambda m, **ax: plot.gram(RBF(1.0), X, Y, **ax),
    "support_vectors": lambda m, **ax: plot.support_vectors(m["svc"], X, **ax),
    "surface": lambda m, **ax: plot.surface(tune(SVC(), X, Y, {"C": [1, 10], "gamma": [0.1, 1.0]}, folds=2), **ax),
    "search_path": lambda m, **ax: plot.search_path(by_gradient(SVC(), ["C", "gamma"]), **ax),
    "widths": lambda m, **ax: plot.widths(by_gradient(SVC(kernel=RBF(np.ones(2))), ["kernel__sigma"]), **ax),
}


def by_gradient(model, over):
    """A short search by gradient."""
    return GradientSearchCV(model, over, cv=2, max_iter=2, starts=1, refit=False, n_jobs=1).fit(X, Y)


@pytest.mark.parametrize("name", DRAW)
def test_every_function_draws_and_returns_a_display(name, svc, svr):
    display = DRAW[name]({"svc": svc, "svr": svr})
    assert isinstance(display, Display)
    assert display.figure_ is display.ax_.figure
    display.figure_.canvas.draw()
    picture = np.asarray(display.figure_.canvas.buffer_rgba())[..., :3]
    assert picture.std() > 10
    assert display.ax_.get_xlabel() or name == "gram"
    again = display.plot()
    assert again is display


@pytest.mark.parametrize("name", DRAW)
def test_every_function_draws_only_on_its_axes(name, svc, svr):
    figure, (left, right) = pyplot.subplots(1, 2, layout="constrained")
    before = pyplot.get_fignums()
    display = DRAW[name]({"svc": svc, "svr": svr}, ax=right)
    assert display.ax_ is right
    assert display.figure_ is figure
    assert pyplot.get_fignums() == before
    assert not left.has_data()
    figure.canvas.draw()


def test_all_functions_are_tested():
    functions = {name for name in plot.__all__ if name[0].islower()}
    assert functions == set(DRAW)


def test_a_missing_matplotlib_is_one_sentence(svc):
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from symsvm import plot\n"
        "try:\n    plot.convergence([3.0, 2.0], 1.0)\n"
        "except ImportError as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "Pictures need matplotlib, which is not installed: pip install 'symsvm[plot]'.\n"


# ---- the decision boundary


@pytest.mark.parametrize(
    "model",
    [SVC(C=2.0), NuSVC(nu=0.4), LinearSVC(loss="hinge"), LinearSVC(), sklearn.svm.SVC(), LogisticRegression()],
    ids=lambda model: f"{type(model).__module__.partition('.')[0]}-{type(model).__name__}",
)
def test_lines_are_at_the_margins(model):
    model.fit(X, Y)
    display = plot.decision_boundary(model, X, Y, resolution=160)
    assert display.levels == (-1.0, 0.0, 1.0)
    for level, path in zip(display.levels, display.lines_.get_paths(), strict=True):
        if len(path.vertices):
            np.testing.assert_allclose(model.decision_function(path.vertices), level, atol=5e-3)


def test_one_class_has_one_line_and_its_inside():
    model = OneClassSVM(nu=0.1, gamma=2.0).fit(X)
    display = plot.decision_boundary(model, X)
    assert display.levels == (0.0,)
    (path,) = display.lines_.get_paths()
    assert np.abs(model.decision_function(path.vertices)).max() < 0.01 * np.ptp(display.response)
    np.testing.assert_array_equal(display.labels == 1, model.predict(X) == 1)


def test_several_classes_are_regions_with_a_marker_each():
    points = IRIS[:, :2]
    model = SVC().fit(points, KINDS)
    display = plot.decision_boundary(model, points, KINDS, resolution=50)
    assert display.levels == ()
    grid = np.column_stack([display.x0.ravel(), display.x1.ravel()])
    np.testing.assert_array_equal(model.classes_[display.response.ravel()], model.predict(grid))
    assert [len(drawn.get_offsets()) for drawn in display.points_] == [50, 50, 50]
    shapes = {drawn.get_paths()[0].vertices.tobytes() for drawn in display.points_}
    assert len(shapes) == 3
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()][:3] == list(model.classes_)


def test_free_and_bounded_support_vectors_have_rings_of_their_own(svc):
    display = plot.decision_boundary(svc, X, Y)
    free, bounded = display.circles_
    q = np.abs(svc.dual_coef_[0])
    np.testing.assert_array_equal(bounded.get_offsets(), X[svc.support_[q >= 2.0 - 1e-9]])
    np.testing.assert_array_equal(free.get_offsets(), X[svc.support_[q < 2.0 - 1e-9]])
    on_margin = np.abs(svc.decision_function(np.asarray(free.get_offsets())))
    np.testing.assert_allclose(on_margin, 1.0, atol=2e-3)


def test_other_points_than_those_of_the_fit(svc):
    display = plot.decision_boundary(svc, X[:30], Y[:30])
    assert display.support.rows is None
    np.testing.assert_array_equal(display.support.vectors, svc.support_vectors_)


def test_a_plane_through_more_features(iris):
    at = IRIS.mean(axis=0)
    display = plot.decision_boundary(iris, IRIS, KINDS, features=(3, 0), at=at, resolution=20)
    assert (display.xlabel, display.ylabel) == ("$x_{4}$", "$x_{1}$")
    grid = np.tile(at, (400, 1))
    grid[:, 3], grid[:, 0] = display.x0.ravel(), display.x1.ravel()
    np.testing.assert_array_equal(iris.classes_[display.response.ravel()], iris.predict(grid))
    np.testing.assert_array_equal(display.support.vectors, iris.support_vectors_[:, [3, 0]])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_pipelines_and_searches(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"width": X[:, 0], "height": X[:, 1]})
    model = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.5, 1.0]}, cv=2).fit(frame, Y)
    display = plot.decision_boundary(model, frame, Y, features=["height", "width"], resolution=20)
    assert (display.xlabel, display.ylabel) == ("height", "width")
    final = model.best_estimator_[-1]
    np.testing.assert_array_equal(display.support.vectors, X[final.support_][:, ::-1])
    scaled = plot.decision_boundary(
        model, frame[:30], Y[:30], resolution=20
    )  # other points: transformed back to their scale
    np.testing.assert_allclose(scaled.support.vectors, X[final.support_])


def test_a_function_and_its_multipliers():
    lam = np.where(np.arange(80) < 5, 1.0, 0.0)
    display = plot.decision_boundary(lambda Z: Z[:, 0] - 0.25, X, np.where(Y, 1, -1), lam)
    (circles,) = display.circles_
    np.testing.assert_array_equal(circles.get_offsets(), X[:5])
    assert {"$y = -1$", "$y = +1$"} <= {text.get_text() for text in display.ax_.get_legend().get_texts()}


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.ones((3, 3)), np.ones(3)), {}, r"got the shape \(3, 3\); choose two with features=\(0, 1\), or .* PCA"),
        ((np.ones((3, 1)), np.ones(3)), {}, r"X must have two features to be drawn, got the shape \(3, 1\)\."),
        ((np.ones((3, 3)), np.ones(3)), {"features": (0, 3)}, "features must be columns 0 to 2 of X, got 3"),
        ((np.ones((3, 3)), np.ones(3)), {"features": ("a", "b")}, "no names, got 'a'"),
        ((np.ones((3, 3)), np.ones(3)), {"features": (1, 1)}, "two different columns"),
        ((np.ones((3, 3)), np.ones(3)), {"features": (0, 1), "at": [0.0]}, "each of the 3 features"),
        ((np.ones((3, 2)), np.ones(2)), {}, "y must have one label for each of the 3 points"),
        ((np.ones((3, 2)), np.ones(3), np.ones(2)), {}, "lam must have one entry for each of the 3 points"),
    ],
)
def test_decision_boundary_rejects_invalid_arguments(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        plot.decision_boundary(lambda Z: Z[:, 0], *arguments, **options)


def test_a_regression_has_no_boundary(svr):
    with pytest.raises(TypeError, match="SVR has no classes; for a regression see symsvm.plot.tube"):
        plot.decision_boundary(svr, X)


# ---- bounds


def test_bounds_include_sample_and_class_weights():
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(X))
    weight[:5] = 0.0
    for multi_class in ("ovo", "ovr"):
        labels = Y + (X[:, 0] > 0.8)
        model = SVC(C=0.5, class_weight={0: 2.0, 1: 1.0, 2: 1.0}, multi_class=multi_class)
        model.fit(X, labels, sample_weight=weight)
        support = find_support(model, X)
        expected = 0.5 * weight[support.rows] * np.where(labels[support.rows] == 0, 2.0, 1.0)
        np.testing.assert_allclose(support.bound, expected, rtol=1e-9)
        assert support.bounded.any()
        np.testing.assert_array_equal(support.side, labels[support.rows])
    assert (support.size <= support.bound * (1 + 1e-9)).all()


def test_bounds_of_scikit_learn_estimators():
    theirs = sklearn.svm.SVC(C=2.0, class_weight={0: 0.5}).fit(X, Y)
    support = find_support(theirs, X)
    np.testing.assert_allclose(support.bound, np.where(Y[support.rows] == 0, 1.0, 2.0))
    assert np.isnan(find_support(sklearn.svm.NuSVC().fit(X, Y), X).bound).all()


def test_support_of_linear_estimators_is_on_the_wrong_side_of_the_margin():
    model = LinearSVC(loss="hinge", tol=1e-5).fit(X, Y)
    support = find_support(model, X)
    margin = np.where(Y, 1, -1) * model.decision_function(X)
    assert set(support.rows) >= set(np.flatnonzero(margin < 1 - 1e-3))
    assert margin[support.rows].max() < 1 + 1e-3
    assert support.bounded.sum() >= np.sum(margin < 1 - 1e-3)
    assert find_support(model, X + 3.0) is None


# ---- the tube


@pytest.mark.parametrize("model", [SVR(epsilon=0.2), NuSVR(nu=0.3), LinearSVR(epsilon=0.3, tol=1e-8)], ids=str)
def test_tube_is_epsilon_wide_and_holds_all_but_the_support(model):
    model.fit(T[:, None], S)
    display = plot.tube(model, T, S)
    np.testing.assert_allclose(display.response, model.predict(display.grid[:, None]))
    assert display.epsilon == getattr(model, "epsilon_", getattr(model, "epsilon", None))
    error = np.abs(S - model.predict(T[:, None]))
    outside = np.flatnonzero(error > display.epsilon + 2e-3)
    support = display.support
    assert set(outside) <= set(support.rows[support.bounded])
    np.testing.assert_allclose(error[support.rows[~support.bounded]], display.epsilon, atol=2e-3)
    edge = display.tube_.get_paths()[0].vertices
    assert edge[:, 1].max() == pytest.approx(display.response.max() + display.epsilon)


def test_tube_of_an_estimator_without_epsilon():
    theirs = sklearn.svm.NuSVR(nu=0.3, tol=1e-6).fit(T[:, None], S)
    epsilon, error = plot.tube(theirs, T, S).epsilon, np.abs(S - theirs.predict(T[:, None]))
    assert np.sum(error > epsilon + 1e-5) <= 0.3 * 60 <= np.sum(error > epsilon - 1e-5)  # what nu means
    with pytest.raises(ValueError, match="LogisticRegression has no epsilon, half the width of a tube: give epsilon="):
        plot.tube(LogisticRegression().fit(T[:, None], S > 0), T, S)


def test_tube_needs_one_feature(svc):
    with pytest.raises(ValueError, match=r"one feature to draw a tube over, got the shape \(80, 2\); .* X\[:, \[0\]\]"):
        plot.tube(svc, X, Y)
    with pytest.raises(ValueError, match="one value for each of the 60 points, got 3"):
        plot.tube(svc, T, S[:3])


# ---- convergence


def test_values_without_a_logarithm_are_left_out():
    trace = {"iteration": np.arange(6), "W": -np.ones(6), "gap": np.array([1.0, np.nan, 0.1, np.inf, -1e-3, 0.0])}
    display = plot.convergence({"run": trace})
    (line,) = display.lines_
    np.testing.assert_array_equal(line.get_ydata(), [1.0, np.nan, 0.1, np.nan, np.nan, np.nan])
    assert display.ax_.get_yscale() == "log"
    assert "v" in [drawn.get_marker() for drawn in display.ax_.lines]  # the run ended at 0
    display.figure_.canvas.draw()


@pytest.mark.parametrize("values", [[0.0], [np.nan, np.nan], [-1.0, 0.0]])
def test_nothing_to_draw_is_no_error(values):
    trace = {"seconds": np.arange(len(values)), "gap": np.array(values)}
    display = plot.convergence(trace, y="gap")
    display.figure_.canvas.draw()


def test_values_of_W_and_an_optimum():
    display = plot.convergence({"a": [3.0, 2.0], "b": np.array([0.5, 1.5])}, 1.0)
    assert (display.x, display.y) == ("iteration", "W")
    np.testing.assert_array_equal([line.get_ydata() for line in display.lines_], [[2.0, 1.0], [0.5, 0.5]])
    best = plot.convergence({"a": [3.0, 2.0], "b": [2.5, 1.5]})  # the least W of all runs is the optimum
    np.testing.assert_array_equal(best.lines_[0].get_ydata(), [1.5, 0.5])


def test_solutions_estimators_and_several_problems(iris, svc):
    solution = svc.solutions_[0]
    display = plot.convergence({"solution": solution, "pipeline": make_pipeline(svc), "pairs": iris}, y="violation")
    assert [len(group) for group in display.curves.values()] == [1, 1, 3]
    np.testing.assert_array_equal(display.curves["solution"][0][1], solution.trace["violation"])
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["solution", "pipeline", "pairs"]


def test_convergence_rejects_invalid_arguments(svc):
    with pytest.raises(TypeError, match="got 'nothing' for 'a'"):
        plot.convergence({"a": "nothing"})
    with pytest.raises(TypeError, match="a fitted estimator"):
        plot.convergence(SVC())
    with pytest.raises(ValueError, match="the trace of 'a' has no 'gap', only iteration, W"):
        plot.convergence({"a": [1.0]}, y="gap")
    with pytest.raises(ValueError, match="empty"):
        plot.convergence({})
    with pytest.raises(ValueError, match="y must be"):
        plot.convergence(svc, y="gaps")


# ---- ROC and precision-recall curves


def test_areas_equal_those_of_scikit_learn(svc, iris):
    display = plot.roc({"one": svc, "two": LinearSVC().fit(X, Y)}, X, Y)
    assert display.curves["one"].roc_auc == pytest.approx(roc_auc_score(Y, svc.decision_function(X)))
    assert display.curves["two"].line_.axes is display.ax_
    display = plot.precision_recall(iris, IRIS, KINDS)
    assert list(display.curves) == ["setosa", "versicolor", "virginica"]
    expected = average_precision_score(KINDS == "virginica", iris.decision_function(IRIS)[:, 2])
    assert display.curves["virginica"].average_precision == pytest.approx(expected)


def test_curves_of_one_class_and_of_missing_classes(iris):
    model = OneClassSVM(nu=0.1).fit(IRIS[:50])
    display = plot.roc(model, IRIS, np.where(KINDS == "setosa", 1, -1))
    assert display.curves["OneClassSVM"].roc_auc > 0.9
    assert list(plot.roc(iris, IRIS[50:], KINDS[50:]).curves) == ["versicolor", "virginica"]


def test_curves_reject_invalid_arguments(svc, svr):
    with pytest.raises(ValueError, match="hold two classes"):
        plot.roc(svc, X, np.ones(80))
    with pytest.raises(TypeError, match="decision_function, and SVR has none"):
        plot.roc(svr, X, Y)
    with pytest.raises(ValueError, match="decision_function_shape='ovr'"):
        plot.roc(SVC(decision_function_shape="ovo").fit(IRIS, KINDS), IRIS, KINDS)
    with pytest.raises(ValueError, match="empty"):
        plot.roc({}, X, Y)


# ---- the Gram matrix


def test_gram_is_ordered_by_class_and_complete(iris):
    shuffled = np.random.default_rng(0).permutation(150)
    points, kinds = IRIS[shuffled], KINDS[shuffled]
    display = plot.gram(RBF(1.0), points, kinds)
    assert (kinds[display.order] == np.sort(kinds)).all()
    assert sorted(display.order) == list(range(150))
    ordered = points[display.order]
    expected = np.exp(-((ordered[:, None] - ordered[None]) ** 2).sum(-1) / 2)
    np.testing.assert_allclose(display.K, expected, atol=1e-12)
    np.testing.assert_array_equal(display.image_.get_array(), display.K)
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["setosa", "versicolor", "virginica"]


def test_gram_of_kernels_functions_names_and_estimators(iris):
    K = plot.gram(Linear(), X, Y).K
    np.testing.assert_allclose(plot.gram(lambda A, B: A @ B.T, X, Y).K, K, atol=1e-12)
    np.testing.assert_allclose(plot.gram("precomputed", X @ X.T, Y).K, K, atol=1e-12)
    np.testing.assert_allclose(plot.gram("linear", X, Y).K, K, atol=1e-12)
    fitted = plot.gram(make_pipeline(StandardScaler(), SVC(kernel=Linear())).fit(X, Y), X, Y)
    Z = StandardScaler().fit_transform(X)[fitted.order]
    np.testing.assert_allclose(fitted.K, Z @ Z.T, atol=1e-12)
    assert plot.gram(iris, IRIS).K.shape == (150, 150)
    signed = plot.gram(Linear(), X)
    assert signed.image_.norm.vmin == -signed.image_.norm.vmax


def test_gram_rejects_invalid_arguments():
    with pytest.raises(TypeError, match="kernel must be a symsvm kernel"):
        plot.gram(3, X)
    with pytest.raises(ValueError, match="one label for each of the 80 points"):
        plot.gram(Linear(), X, Y[:3])
    with pytest.raises(ValueError, match=r"10001 points, more than a picture shows: draw a sample"):
        plot.gram(Linear(), np.zeros((10_001, 1)))
    with pytest.raises(ValueError, match="finite"):
        plot.gram(lambda A, B: A @ B.T * np.nan, X)
    with pytest.raises(ValueError, match="square"):
        plot.gram("precomputed", X)


# ---- support vectors


def test_areas_are_proportional_to_coefficients(svc):
    display = plot.support_vectors(svc, X)
    assert display.kind == "plane"
    areas = np.concatenate([drawn.get_sizes() for drawn in display.marks_])
    places = np.concatenate([drawn.get_offsets() for drawn in display.marks_])
    q = {tuple(x): abs(c) for x, c in zip(svc.support_vectors_, svc.dual_coef_[0], strict=True)}
    sizes = np.array([q[tuple(place)] for place in places])
    large = areas > 4
    np.testing.assert_allclose(areas[large] / areas.max(), sizes[large] / sizes.max())


def test_coefficients_are_sorted_with_their_bound(iris):
    display = plot.support_vectors(iris)
    assert display.kind == "coefficients"
    heights = np.concatenate([[bar.get_height() for bar in bars] for bars in display.marks_])
    np.testing.assert_allclose(heights, np.sort(np.abs(iris.dual_coef_).max(axis=0))[::-1])
    assert "$C$ = 1" in [text.get_text() for text in display.ax_.texts]
    assert f"{len(iris.support_)} support vectors of $m = 150$ points" in display.ax_.get_xlabel()


def test_the_largest_vectors_as_pictures(iris):
    display = plot.support_vectors(iris, image_shape=(2, 2), n=6)
    assert display.kind == "pictures"
    assert len(display.marks_) == 6
    largest = np.abs(iris.dual_coef_).sum(axis=0).argmax()
    np.testing.assert_allclose(display.image_.get_array()[:2, :2].ravel(), iris.support_vectors_[largest])
    colours = SVC(kernel=Polynomial(degree=1)).fit(np.tile(X, 6), Y)
    assert plot.support_vectors(colours, image_shape=(2, 2, 3), n=3).image_.get_array().shape[2] == 3


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(),
        LinearSVC(multi_class="crammer_singer", C=0.1),
        NuSVC(nu=0.2),
        SVC(kernel="linear", solver="accelerated-gradient", mode="JAX"),
        OneClassSVM(),
        sklearn.svm.SVC(),
    ],
    ids=lambda model: f"{type(model).__module__.partition('.')[0]}-{type(model).__name__}",
)
def test_every_estimator_has_support_vectors_to_draw(model):
    scaled = StandardScaler().fit_transform(IRIS)
    display = plot.support_vectors(model.fit(scaled, KINDS), scaled)
    assert display.support.size.min() > 0
    display.figure_.canvas.draw()


def test_support_vectors_rejects_invalid_arguments(svc, iris):
    with pytest.raises(ValueError, match="LinearSVC has no support vectors to draw; .* needs the training points, X"):
        plot.support_vectors(LinearSVC().fit(X, Y))
    with pytest.raises(ValueError, match=r"image_shape=\(3, 3\) must hold the features of a vector, .* of 2 features"):
        plot.support_vectors(svc, image_shape=(3, 3))
    with pytest.raises(ValueError, match="kind='plane' needs points of two features"):
        plot.support_vectors(iris, kind="plane")
    with pytest.raises(ValueError, match="kind must be"):
        plot.support_vectors(iris, kind="bars")


# ---- searches by gradient


def test_the_path_goes_from_the_grid_to_the_best():
    search = by_gradient(SVC(), ["C", "gamma"])
    display = plot.search_path(search)
    (line,) = display.lines_
    path = np.column_stack(line.get_data())
    assert path[-1] == pytest.approx([search.best_params_[name] for name in ("C", "gamma")])
    first = search.cv_results_["params"][np.argmin(np.where(search.cv_results_["stage"] == 0, display.losses, np.inf))]
    assert path[0] == pytest.approx([first["C"], first["gamma"]])
    assert display.mesh_.get_array().size == 16
    assert display.ax_.get_xscale() == display.ax_.get_yscale() == "log"
    curve = plot.search_path(search, parameters=["C"])
    assert curve.ax_.get_ylabel() == "held-out log loss"
    with pytest.raises(ValueError, match="one or two of C, gamma"):
        plot.search_path(search, parameters=["sigma"])


def test_bars_are_in_the_order_of_the_widths():
    kernel = RBF(np.array([2.0, 0.5]))
    display = plot.widths(SVC(kernel=kernel + 0.1).fit(X, Y), feature_names=["wide", "narrow"])
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["narrow", "wide"]
    assert [bar.get_width() for bar in display.bars_] == [2.0, 0.5]
    scaled = plot.widths(SVC(kernel=kernel).fit(X, Y), X)
    assert [bar.get_width() for bar in scaled.bars_] == pytest.approx(sorted(X.std(axis=0) / [2.0, 0.5], reverse=True))
    with pytest.raises(ValueError, match="no width for each feature"):
        plot.widths(SVC(kernel=RBF(1.0)).fit(X, Y))
    with pytest.raises(ValueError, match="must have 2 names, got 1"):
        plot.widths(SVC(kernel=kernel), feature_names=["one"])
