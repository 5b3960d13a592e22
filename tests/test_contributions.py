"""Contributions add up to the decision value, for every estimator, and equal the terms of the equation."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sparse
import sklearn.svm
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from symsvm import RBF, SVC, SVR, Linear, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from symsvm.data import Scaling
from symsvm.inspection.contributions import contributions
from symsvm.text import classifier

X, y = load_iris(return_X_y=True)
X, y = X[::3], y[::3]
TWO = y > 0
NAMES = np.array(["setosa", "versicolor", "virginica"])[y]
x = X[30] + 0.1


def product(A, B):
    return A @ B.T + 1.0


# name: (model, targets, decisions)
MODELS = {
    "two classes": (SVC(), TWO, 1),
    "pairs": (SVC(kernel=RBF(1.0) + 0.1 * Linear()), NAMES, 3),
    "dag": (SVC(multi_class="dag"), NAMES, 3),
    "each against the rest": (SVC(multi_class="ovr", calibration="sigmoid", random_state=0), NAMES, 3),
    "linear kernel": (SVC(kernel="linear"), NAMES, 3),
    "a function": (SVC(kernel=product), TWO, 1),
    "nu": (NuSVC(nu=0.2), NAMES, 3),
    "regression": (SVR(), X[:, 0], 1),
    "nu regression": (NuSVR(), X[:, 0], 1),
    "one class": (OneClassSVM(nu=0.3), None, 1),
    "linear, two classes": (LinearSVC(random_state=0, calibration="isotonic"), TWO, 1),
    "linear": (LinearSVC(random_state=0, calibration="sigmoid"), NAMES, 3),
    "linear, pairs": (LinearSVC(random_state=0, multi_class="ovo"), NAMES, 3),
    "linear, together": (LinearSVC(random_state=0, multi_class="crammer_singer"), NAMES, 3),
    "linear regression": (LinearSVR(random_state=0), X[:, 0], 1),
}


def fit(name, *steps):
    model, targets, _ = MODELS[name]
    return make_pipeline(*steps, model).fit(X, targets) if steps else model.fit(X, targets)


def decisions(model, x):
    """Return the decision values of each binary problem, by the public methods."""
    final = model[-1] if hasattr(model, "steps") else model
    if not hasattr(model, "decision_function"):
        return model.predict([x])
    if isinstance(final, SVC | NuSVC) and final.multi_class != "ovr" and len(final.classes_) > 2:
        final.set_params(decision_function_shape="ovo")
        values = model.decision_function([x])[0]
        final.set_params(decision_function_shape="ovr")
        return values
    return np.ravel(model.decision_function([x]))


def check_sum(found):
    total = found.intercept + found.contributions.sum()
    assert abs(total - found.decision) < 1e-10 * max(1.0, np.abs(found.contributions).sum())
    assert np.array_equal(found.contributions, found.weights * found.values)
    assert (np.diff(np.abs(found.contributions)) <= 0).all()
    shown = sum(term.contribution for term in found.top(3))
    assert np.isclose(found.intercept + shown + found.remainder(3), found.decision, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("steps", [(), (Scaling(),)], ids=["estimator", "pipeline"])
def test_terms_add_up(name, steps):
    model = fit(name, *steps)
    found = contributions(model, x)
    assert len(found) == MODELS[name][2]
    for one in found:
        check_sum(one)
    if name != "linear, pairs":  # whose decision_function returns votes
        assert np.allclose([one.decision for one in found], decisions(model, x), rtol=0, atol=1e-10)


def test_terms_of_features_are_weights_times_values():
    model = fit("linear")
    for c, found in enumerate(contributions(model, x)):
        assert found.label == model.classes_[c]
        assert found.against is None
        assert found.by == "features"
        assert sorted(found.names.tolist()) == ["x0", "x1", "x2", "x3"]
        for name, weight, value, contribution in found.top(4):
            j = int(name[1:])
            assert (weight, value) == (model.coef_[c, j], x[j])
            assert contribution == weight * value
        assert found.probability == model.predict_proba([x])[0, c]


def test_terms_of_support_vectors_are_q_times_K():
    model = SVC(kernel=RBF(0.7), C=3.0).fit(X, TWO)
    (found,) = contributions(model, x)
    assert (found.label, found.against, found.by, found.probability) == (True, False, "support vectors", None)
    q = dict(zip(model.support_.tolist(), model.dual_coef_[0].tolist(), strict=True))
    assert len(found) == len(q)
    for row, weight, value, _ in found.top(len(found)):
        assert weight == q[row]
        assert np.isclose(value, np.exp(-np.sum((X[row] - x) ** 2) / (2 * 0.7**2)), rtol=1e-12)


def test_pairs_vote_for_their_label():
    model = SVC().fit(X, NAMES)
    found = contributions(model, x)
    assert [(one.label, one.against) for one in found] == list(itertools.combinations(model.classes_.tolist(), 2))
    wins = [one.label if one.decision >= 0 else one.against for one in found]
    assert max(set(wins), key=wins.count) == model.predict([x])[0]
    assert {one.probability for one in found} == {None}
    own = contributions(model, x, label="virginica")
    assert [(one.label, one.against) for one in own] == [("setosa", "virginica"), ("versicolor", "virginica")]


def test_a_linear_kernel_has_both_kinds_of_terms():
    model = SVC(kernel="linear").fit(X, TWO)
    ((a,), (b,)) = contributions(model, x), contributions(model, x, by="support vectors")
    assert (a.by, b.by) == ("features", "support vectors")
    check_sum(b)
    assert np.isclose(a.contributions.sum(), b.contributions.sum())


def test_precomputed_matrices():
    gram = X @ X.T
    model = SVC(kernel="precomputed").fit(gram, TWO)
    (found,) = contributions(model, [(X @ x).tolist()])
    check_sum(found)
    assert found.decision == model.decision_function([X @ x])[0]


def test_words_of_a_text_model():
    texts = ["the orbit of the moon", "a rocket in orbit", "the goal of the match", "a match on ice"] * 2
    model = classifier().fit(texts, ["space", "space", "sport", "sport"] * 2)
    (found,) = contributions(model, "a match, a goal and a rocket")
    check_sum(found)
    assert {term.name for term in found.top() if term.contribution > 0} == {"match", "goal"}
    assert [term.name for term in found.top() if term.contribution < 0] == ["rocket"]
    assert found.probability == model.predict_proba(["a match, a goal and a rocket"])[0, 1]
    assert found.decision == model.decision_function(["a match, a goal and a rocket"])[0]
    (nothing,) = contributions(model, ["unknown"])
    assert (len(nothing), nothing.top(), nothing.remainder(), nothing.decision) == (0, [], 0.0, nothing.intercept)


def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    calibrated = LinearSVC(calibration="sigmoid", random_state=0)
    for model in (calibrated, LinearSVR(), SVC(kernel="linear"), make_pipeline(StandardScaler(), LinearSVC())):
        (found,) = contributions(model.fit(table, TWO), table[:1])
        check_sum(found)
        assert sorted(found.names.tolist()) == ["a", "b", "c", "d"]


def test_sparse_points_and_float32():
    rows = sparse.csr_matrix(np.where(X > 3, X, 0.0))
    for model in (LinearSVC(), SVC(), SVC(kernel="linear")):
        found = contributions(model.fit(rows, TWO), rows[:1])[0]
        check_sum(found)
        assert found.decision == model.decision_function(rows[:1])[0]
    check_sum(contributions(SVC().fit(X.astype("float32"), TWO), x.astype("float32"))[0])
    dense = contributions(LinearSVC().fit(X, TWO), [0.0, 1.0, 0.0, 2.0])[0]
    assert sorted(dense.names.tolist()) == ["x1", "x3"]


def test_invalid_arguments():
    model = SVC().fit(X, NAMES)
    with pytest.raises(ValueError, match="x must be one point, got 50"):
        contributions(model, X)
    with pytest.raises(ValueError, match="4 features"):
        contributions(model, x[:3])
    with pytest.raises(ValueError, match="label must be one of 'setosa', 'versicolor', 'virginica', got 'rose'"):
        contributions(model, x, label="rose")
    with pytest.raises(ValueError, match="label must be left out, since the model has no classes, got 1"):
        contributions(SVR().fit(X, y), x, label=1)
    with pytest.raises(ValueError, match="by='features' needs a kernel that is a product over the features"):
        contributions(SVC(kernel="poly").fit(X, NAMES), x, by="features")
    with pytest.raises(ValueError, match="by='support vectors' needs an estimator with a kernel; LinearSVC stores"):
        contributions(LinearSVC().fit(X, y), x, by="support vectors")
    with pytest.raises(TypeError, match="an estimator of symsvm, got SVC of sklearn"):
        contributions(sklearn.svm.SVC().fit(X, y), x)
    with pytest.raises(TypeError, match="got a string: the model is not a text model"):
        contributions(model, "goal")
    with pytest.raises(TypeError, match="x must be one string"):
        contributions(classifier(), x)
    with pytest.raises(NotFittedError):
        contributions(SVC(), x)
    with pytest.raises(TypeError, match="n must be an integer"):
        contributions(model, x)[0].top("all")
