"""The stream: its recursion against plain loops, its rate, and LinearSVC.partial_fit."""

import inspect
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import estimator_checks_generator

from symsvm import LinearSVC
from symsvm.linear import Rows, Stream

RNG = np.random.default_rng(0)
M = 400
X = RNG.normal(size=(M, 5))
Y = np.sign(X @ [1.0, -1.0, 0.5, 0.0, 0.0] + 0.3 + 0.5 * RNG.normal(size=M))
THREE = np.argmax(X[:, :3] + 0.3 * RNG.normal(size=(M, 3)), axis=1)


def streaming(**options):
    return LinearSVC(loss="hinge", **options)


def F(u, lam):
    return lam / 2 * u @ u + np.maximum(0, 1 - Y * (X @ u[:-1] + u[-1])).mean()


def test_the_sums_are_the_subgradient_steps_and_their_average():
    lam, u, average, total = 0.05, np.zeros(6), np.zeros(6), 0.0
    rows = np.column_stack([X, np.ones(M)])
    for t in range(1, 101):
        average, total = average + t * u, total + t
        x, y = rows[t - 1], Y[t - 1]
        g = lam * u - (y * x if y * (x @ u) < 1 else 0)
        u = u - 2 / (lam * (t + 1)) * g
    average, total = average + 101 * u, total + 101
    stream = Stream(5, lam)
    stream.see(Rows(X[:60], 1.0), Y[:60])
    stream.see(Rows(X[60:100], 1.0), Y[60:100])
    assert stream.t == 100
    np.testing.assert_allclose(stream.u, average / total, rtol=1e-10)
    np.testing.assert_allclose(2 / (lam * 100 * 101) * stream.V, u, rtol=1e-10)


def test_it_falls_to_the_optimum_at_its_rate():
    lam = 1 / (0.1 * M)
    exact = LinearSVC(loss="hinge", C=0.1, tol=1e-8).fit(X, Y)
    best = F(np.r_[exact.coef_[0], exact.intercept_], lam)
    stream, rows = Stream(5, lam), Rows(X, 1.0)
    G = 2 * np.sqrt((X**2).sum(axis=1) + 1).max()
    for _ in range(100):
        stream.see(rows, Y, order=RNG.permutation(M))
        assert F(stream.u, lam) - best <= 2 * G**2 / (lam * (stream.t + 1))
    assert F(stream.u, lam) == pytest.approx(best, rel=2e-3)


@pytest.mark.parametrize("labels", [Y, THREE], ids=["two", "three"])
def test_partial_fit_comes_near_fit(labels):
    model = streaming(C=0.1, stream_size=M, random_state=0)
    for _ in range(50):
        for part in np.split(np.arange(M), 4):
            model.partial_fit(X[part], labels[part], classes=np.unique(labels))
    exact = streaming(C=0.1).fit(X, labels)
    assert model.t_ == 50 * M
    assert model.coef_.shape == exact.coef_.shape
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=0.1)
    assert np.mean(model.predict(X) == exact.predict(X)) > 0.98


def test_sparse_equals_dense_and_floats_of_32_bits_are_taken():
    thin = np.where(np.abs(X) > 0.8, X, 0.0)
    dense, csr, single = (
        streaming(random_state=1).partial_fit(points, Y, classes=[-1, 1])
        for points in (thin, sparse.csr_matrix(thin), thin.astype("float32"))
    )
    np.testing.assert_allclose(dense.coef_, csr.coef_, rtol=1e-10)
    np.testing.assert_allclose(dense.coef_, single.coef_, rtol=1e-3, atol=1e-3)


def test_the_same_stream_gives_the_same_bits_and_a_copy_goes_on():
    first, second = (streaming(random_state=0).partial_fit(X, Y, classes=[-1, 1]) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    copy = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(copy.partial_fit(X, Y).coef_, second.partial_fit(X, Y).coef_)


def test_a_weight_of_zero_takes_a_point_out_of_the_loss():
    weights = np.r_[np.zeros(100), np.ones(M - 100)]
    flipped = np.r_[-Y[:100], Y[100:]]
    one, other = (streaming().partial_fit(X, y, [-1, 1], sample_weight=weights) for y in (Y, flipped))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    heavy = streaming(class_weight={1: 20.0}).partial_fit(X, Y, classes=[-1, 1])
    assert (heavy.predict(X) > 0).mean() > (one.predict(X) > 0).mean()


def test_fit_forgets_the_stream():
    model = streaming(warm_start=True).partial_fit(X, Y, classes=[-1, 1])
    with pytest.raises(AttributeError, match="not available after partial_fit, which keeps no points: use fit"):
        model.certificate_  # noqa: B018
    model.fit(X, Y)
    assert model.certificate_.status == "optimal"
    np.testing.assert_allclose(model.coef_, streaming().fit(X, Y).coef_, atol=1e-3)


def test_a_stream_goes_on_from_a_fit():
    model = streaming(C=0.1).fit(X, Y)
    before = np.r_[model.coef_[0], model.intercept_]
    model.partial_fit(X[:1], Y[:1])
    assert model.t_ == M + 1
    np.testing.assert_allclose(np.r_[model.coef_[0], model.intercept_], before, atol=0.05)
    lam = 1 / (0.1 * M)
    for _ in range(5):
        model.partial_fit(X, Y)
    assert F(np.r_[model.coef_[0], model.intercept_], lam) == pytest.approx(F(before, lam), rel=0.02)


def test_it_is_offered_where_it_holds():
    assert hasattr(streaming(), "partial_fit")
    for other in (LinearSVC(), streaming(multi_class="ovo"), streaming(penalize_intercept=False)):
        assert not hasattr(other, "partial_fit")
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'"):
        LinearSVC().partial_fit(X, Y)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="classes must be given in the first call"):
        streaming().partial_fit(X, Y)
    with pytest.raises(ValueError, match="at least two classes"):
        streaming().partial_fit(X, Y, classes=[1])
    model = streaming().partial_fit(X, Y, classes=[-1, 1])
    with pytest.raises(ValueError, match="got \\[2"):
        model.partial_fit(X[:2], [2, 1])
    with pytest.raises(ValueError, match="those of the first call"):
        model.partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(ValueError, match="needs all labels at once"):
        streaming(class_weight="balanced").partial_fit(X, Y, classes=[-1, 1])


def test_scikit_learns_checks():
    """Those that know of partial_fit; the others are run on LinearSVC as it is."""
    checks = list(estimator_checks_generator(streaming(max_iter=-1)))
    mine = [(model, check) for model, check in checks if "partial_fit" in inspect.getsource(inspect.unwrap(check.func))]
    assert len(mine) >= 3
    for model, check in mine:
        check(model)
