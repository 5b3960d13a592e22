"""SVM_parallel: the paper's class and its promises."""

import warnings

import numpy as np
import oracles
import pytensor
import pytensor.tensor as pt
import pytest
from problems import KERNELS, overlapping
from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from symsvm import RBF, Linear, Precomputed, Sigmoid, SVM_parallel, pair_kernel
from symsvm.compiler.functions import function

PROBLEM = overlapping(m=16)
X, y, C, SIGMA = PROBLEM.X, PROBLEM.y, PROBLEM.C, 0.8


def machine(**changes):
    arguments = {"X": X, "y": y, "m": len(X), "C": C, "sigma": SIGMA, "alpha": 0.05, "random_state": 0}
    return SVM_parallel(**arguments | {"mode": "FAST_COMPILE"} | changes)


@pytest.fixture(scope="module")
def exact():
    """A machine trained to the optimum with the exact projection."""
    svm = machine(projection="exact", alpha=0.15, mode="NUMBA")
    W = svm.train_model_full(max_iters=3000)
    return svm, W


def scans(graph):
    return [node for node in {v.owner for v in ancestors([graph]) if v.owner} if isinstance(node.op, Scan)]


def test_w_is_a_reduce_inside_a_reduce():
    svm = machine()
    W = svm.build_W()
    assert W is svm.W
    (outer,) = scans(W)
    assert len([node for node in outer.op.fgraph.toposort() if isinstance(node.op, Scan)]) == 1
    assert str(pytensor.dprint(W, file="str")).count("Scan{") >= 2
    assert W.eval(mode="FAST_COMPILE") == pytest.approx(oracles.W(svm.lam.get_value(), X, y, KERNELS["rbf"][1]))


def test_training_is_the_printed_recursion():
    """W before each step, lam after the last, against loops."""
    svm = machine()
    lam = svm.lam.get_value()
    assert ((lam >= 0) & (lam < 1)).all()
    history = []
    for _ in range(5):
        history.append(oracles.W(lam, X, y, KERNELS["rbf"][1]))
        lam = oracles.step(lam, X, y, KERNELS["rbf"][1], C, 0.05)
    np.testing.assert_allclose(svm.train_model_full(max_iters=5), history, rtol=1e-12)
    np.testing.assert_allclose(svm.lam.get_value(), lam, rtol=1e-12, atol=1e-14)
    assert svm.train_model_full(max_iters=0).shape == (0,)


def test_alpha_of_the_constructor_is_used_and_an_explicit_one_overrides_it():
    svm = machine(alpha=0.02)
    start = svm.lam.get_value()
    k = KERNELS["rbf"][1]
    for update, alpha in ((svm.build_update(), 0.02), (svm.build_update(alpha=0.05), 0.05)):
        np.testing.assert_allclose(update.eval(mode="FAST_COMPILE"), oracles.step(start, X, y, k, C, alpha))
    svm.train_model_full(max_iters=1)
    np.testing.assert_allclose(svm.lam.get_value(), oracles.step(start, X, y, k, C, 0.05))


def test_beta_multiplies_lam_itself():
    svm = machine(alpha=0.02)
    lam = svm.lam.get_value()
    moved = lam - 0.02 * np.array(oracles.grad_W(lam, X, y, KERNELS["rbf"][1])) + 0.1 * lam
    expected = oracles.Pi(oracles.P(moved, y), 0.0, C)
    np.testing.assert_allclose(svm.build_update(beta=0.1).eval(mode="FAST_COMPILE"), expected)


def test_exact_projection_reaches_the_optimum_of_libsvm(exact):
    svm, W = exact
    certificate = svm.certificate(tol=1e-6)
    assert certificate.status == "optimal"
    assert certificate.gap < 1e-6
    assert (np.diff(W) <= 1e-12).all()
    peer = SVC(C=C, gamma=1 / (2 * SIGMA**2), tol=1e-9).fit(X, y)
    svm.build_b(over="free")
    np.testing.assert_allclose(svm.make_predictions_parallel(PROBLEM.Z), peer.decision_function(PROBLEM.Z), atol=1e-5)
    assert certificate.b == pytest.approx(float(svm.b.eval(mode="FAST_COMPILE")), abs=1e-8)


def test_the_printed_projection_ends_infeasible_and_says_so():
    svm = machine(alpha=0.15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svm.train_model_full(max_iters=500)
    certificate = svm.certificate()
    assert certificate.status == "infeasible"
    assert certificate.infeasibility > 1e-2
    assert certificate.gap is None


def test_predictions_agree_with_each_other_and_with_loops(exact):
    svm, _ = exact
    svm.build_b()
    lam, k = svm.lam.get_value(), KERNELS["rbf"][1]
    b = oracles.intercept(lam, X, y, k)
    expected = [oracles.decision(z, lam, X, y, k, b) for z in PROBLEM.Z]
    np.testing.assert_allclose(svm.make_predictions(PROBLEM.Z), expected)
    np.testing.assert_allclose(svm.make_predictions_parallel(PROBLEM.Z), expected)
    assert svm.make_predict(PROBLEM.Z[0]) == pytest.approx(expected[0])


def test_b_without_free_support_vectors_is_the_middle_of_what_is_admitted():
    svm = machine(X=[[-1.0], [1.0]], y=[-1, 1], m=2, C=0.1, sigma=None, kernel=Linear())
    svm.lam.set_value(np.array([0.1, 0.1]))
    # lam = C for both: f(-1) >= -1 and f(1) <= 1 with theta = 0.2 admit -0.8 <= b <= 0.8.
    assert float(svm.build_b(over="free").eval(mode="FAST_COMPILE")) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(ValueError, match="over must be one of 'all', 'free', got 'some'"):
        svm.build_b(over="some")


@pytest.mark.parametrize("mode", ["NUMBA", "JAX"])
def test_platt_probabilities_minimise_the_cross_entropy(mode):
    rng = np.random.default_rng(0)
    yhat = 2 * rng.normal(size=200)
    t = (rng.random(200) < 1 / (1 + np.exp(-1.5 * yhat + 0.4))).astype(float)
    svm = machine(mode=mode)
    prob = svm.make_prob_Pratt(t, alpha=0.5, training_steps=2000, yhat=yhat)
    p = 1 / (1 + np.exp(svm.A * yhat + svm.B))
    np.testing.assert_allclose(prob, p)
    # Stationary: the residuals are orthogonal to 1 and to yhat.
    assert abs(np.mean(p - t)) < 1e-6
    assert abs(np.mean((p - t) * yhat)) < 1e-6
    assert svm.A < 0


def test_platt_uses_the_last_predictions_else_the_training_points():
    svm = machine(projection="exact")
    svm.train_model_full(50)
    on_training = svm.make_prob_Pratt((y + 1) / 2, alpha=1.0, training_steps=500)
    assert on_training.shape == y.shape
    yhat = svm.make_predictions_parallel(PROBLEM.Z)
    yhat *= 0  # the user's own copy
    t = np.array([0, 1, 0, 1, 1])
    assert svm.make_prob_Pratt(t, alpha=1.0, training_steps=500).shape == (5,)
    assert svm.A != 0
    before = svm.make_prob_Pratt(t, alpha=1.0, training_steps=500)
    svm.lam.set_value(np.zeros(len(X)))  # predictions follow lam
    assert np.ptp(svm.make_prob_Pratt(t, alpha=1.0, training_steps=500)) < np.ptp(before)
    with pytest.warns(ConvergenceWarning, match="Platt's sigmoid is not fitted after 1 steps"):
        svm.make_prob_Pratt(t, training_steps=1, yhat=[9.0, -9.0, 9.0, -9.0, -9.0])
    with pytest.raises(ValueError, match=r"y01 must hold a label for each of the \(5,\) decision values, got \(16,\)"):
        svm.make_prob_Pratt((y + 1) / 2)
    with pytest.raises(ValueError, match="y01 must hold the labels 0 and 1"):
        svm.make_prob_Pratt([-1, 1, -1, 1, 1])


def test_a_large_alpha_warns_and_names_the_largest_stable_step():
    svm = machine()
    K = oracles.gram(X, X, KERNELS["rbf"][1])
    limit = svm.largest_stable_step()
    assert limit == pytest.approx(2 / np.linalg.eigvalsh(K)[-1], rel=2e-3)
    svm.build_update(alpha=1.5 * limit)
    with pytest.warns(ConvergenceWarning, match=f"not below the largest stable step 2 / lambda_max = {limit:.4g}"):
        svm.train_model_full(max_iters=2)


def test_a_rising_w_warns():
    # beta pushes lam away from the minimum, whatever alpha is.
    svm = machine(alpha=1e-3)
    svm.build_update(beta=0.5)
    with pytest.warns(ConvergenceWarning, match=r"W rose from .* to .* after step .* largest stable step"):
        svm.train_model_full(max_iters=4)


def test_the_same_seed_gives_the_same_start_and_the_same_bits():
    first, second = machine(), machine()
    np.testing.assert_array_equal(first.lam.get_value(), second.lam.get_value())
    np.testing.assert_array_equal(first.train_model_full(3), second.train_model_full(3))
    assert (machine(random_state=1).lam.get_value() != machine().lam.get_value()).any()


def test_metamorphic_relations(exact):
    """Permuted rows permute lam; flipped labels flip b; scaling points and sigma together changes nothing."""
    svm, _ = exact
    lam = svm.lam.get_value()
    order = np.random.default_rng(0).permutation(len(X))
    for changes, same_lam, sign in [
        ({"X": X[order], "y": y[order]}, lam[order], 1),
        ({"y": -y}, lam, -1),
        ({"X": 3 * X, "sigma": 3 * SIGMA}, lam, 1),
    ]:
        other = machine(projection="exact", alpha=0.15, mode="NUMBA", **changes)
        other.train_model_full(max_iters=3000)
        np.testing.assert_allclose(other.lam.get_value(), same_lam, atol=1e-5)
        assert other.certificate().b == pytest.approx(sign * svm.certificate().b, abs=1e-5)


# On Numba and JAX float32 is in test_program.
@pytest.mark.parametrize("mode", ["FAST_COMPILE", pytest.param("NUMBA", marks=pytest.mark.slow)])
def test_float32(mode):
    svm = machine(dtype="float32", projection="exact", alpha=0.15, mode=mode)
    W = svm.train_model_full(max_iters=400)
    assert svm.W.dtype == svm.update.dtype == "float32"
    assert svm.lam.get_value().dtype == np.float32
    certificate = svm.certificate(tol=1e-3)
    assert certificate.status == "optimal"  # judged in float64
    assert W[-1] == pytest.approx(certificate.W, rel=1e-5)
    assert svm.make_predictions_parallel(PROBLEM.Z).dtype == np.float32


def test_an_indefinite_kernel_is_at_best_stationary():
    svm = machine(sigma=None, kernel=Sigmoid(gamma=0.05), projection="exact", alpha=0.5)
    svm.train_model_full(max_iters=300)
    assert svm.certificate(tol=1e-2).status in ("stationary", "feasible")
    assert svm.certificate(tol=10.0).status == "stationary"


BAD = [
    ({"X": X[0]}, ValueError, r"X must have two dimensions \(points, features\), got the shape \(3,\)"),
    ({"X": np.empty((0, 3))}, ValueError, "X must hold at least one point"),
    ({"X": np.where(X == X[3, 1], np.nan, X)}, ValueError, r"X must be finite, got nan at index \(3, 1\)"),
    ({"X": np.where(X == X[0, 0], np.inf, X)}, ValueError, r"X must be finite, got inf at index \(0, 0\)"),
    ({"X": [["a"]]}, TypeError, "X must be a numeric array"),
    ({"X": X + 1j}, TypeError, "X must be a numeric array.* complex128 is not real"),
    ({"m": 15}, ValueError, "m=15 disagrees with X, which has 16 points"),
    ({"m": 16.0}, TypeError, "m must be an integer, got 16.0"),
    ({"y": y[:5]}, ValueError, "y must have one label for each of the m=16 points, got 5"),
    ({"y": y[:, None]}, ValueError, "y must have one dimension"),
    ({"y": np.arange(16) % 3}, ValueError, "y must hold two different labels, got 3: 0, 1, 2"),
    ({"y": np.ones(16)}, ValueError, "y must hold two different labels, got 1: 1.0"),
    ({"y": np.where(y > 0, np.nan, y)}, ValueError, "y must be finite"),
    ({"C": 0}, ValueError, "C must be positive, got 0"),
    ({"C": np.inf}, ValueError, "C must be finite"),
    ({"C": "2"}, TypeError, "C must be a number, got '2'"),
    ({"sigma": -0.3}, ValueError, "sigma must be positive, got -0.3"),
    ({"sigma": None}, TypeError, "sigma must be a number, got None"),
    ({"alpha": 0.0}, ValueError, "alpha must be positive"),
    ({"projection": "none"}, ValueError, "projection must be one of 'paper', 'exact', got 'none'"),
    ({"dtype": "float16"}, ValueError, "dtype must be one of 'float64', 'float32', got 'float16'"),
    ({"dtype": "real"}, ValueError, "dtype must be one of"),
    ({"dtype": "float32", "C": 1e39}, ValueError, r"C=1e\+39 does not fit into float32"),
    ({"dtype": "float32", "C": 1e-50}, ValueError, "C=1e-50 does not fit into float32"),
    ({"dtype": "float32", "X": 1e39 * X}, ValueError, "X must be finite"),
    ({"C": 10**400}, ValueError, "C must be finite"),
    ({"y": [None, 1] * 8}, TypeError, "y must hold labels that can be compared"),
    ({"random_state": -1}, ValueError, "random_state must be a seed or a NumPy generator, got -1"),
    ({"projection": np.array(["exact"])}, ValueError, "projection must be one of"),
    ({"mode": "PYTORCH"}, ValueError, "mode must be one of NUMBA"),
    ({"kernel": pair_kernel(lambda x, z: None), "sigma": None}, TypeError, "must return a scalar expression"),
    ({"kernel": RBF(pt.dscalar("s")), "sigma": None}, ValueError, "the kernel has the free input s"),
    ({"mode": "GPU"}, ValueError, "mode must be one of NUMBA"),
    ({"kernel": RBF(1.0)}, ValueError, "sigma=0.8 belongs to the default kernel: pass sigma=None"),
    ({"kernel": "rbf", "sigma": None}, TypeError, "kernel must be a symsvm kernel"),
    ({"kernel": RBF(sigma=-1), "sigma": None}, ValueError, "sigma of RBF must be positive"),
    ({"kernel": pair_kernel(lambda x, z: x - z), "sigma": None}, ValueError, "must return a scalar for a pair"),
]


@pytest.mark.parametrize(("changes", "error", "message"), BAD)
def test_bad_input_is_one_sentence_before_anything_compiles(changes, error, message, monkeypatch):
    monkeypatch.setattr("pytensor.function", lambda *a, **k: pytest.fail("compiled before the input was checked"))
    with pytest.raises(error, match=message) as caught:
        machine(**changes)
    assert str(caught.value).endswith(".")


def test_bad_points_to_predict():
    svm = machine()
    with pytest.raises(ValueError, match="X must have 3 features as the training points have, got 2"):
        svm.make_predictions(X[:, :2])
    with pytest.raises(ValueError, match="x must be one point .* make_predictions takes several"):
        svm.make_predict(X)
    with pytest.raises(ValueError, match="x must have 3 features as the training points have, got 2"):
        svm.make_predict(X[0, :2])
    with pytest.raises(ValueError, match="X must have two dimensions"):
        svm.make_predictions_parallel(X[0])
    with pytest.raises(ValueError, match="max_iters must be at least 0"):
        svm.train_model_full(-1)


def test_symbolic_hyper_parameters_stay_connected():
    """W of a kernel with a shared sigma can be differentiated by it."""
    sigma = pytensor.shared(SIGMA, name="sigma")
    svm = machine(sigma=None, kernel=RBF(sigma))
    gradient = pytensor.grad(svm.build_W(), sigma)
    value = function([], [svm.W, gradient], mode="FAST_COMPILE")
    h = 1e-6
    sigma.set_value(SIGMA + h)
    above = value()[0]
    sigma.set_value(SIGMA - h)
    below = value()[0]
    sigma.set_value(SIGMA)
    assert value()[1] == pytest.approx((above - below) / (2 * h), rel=1e-6)


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
def test_the_whole_machine_on_jax(dtype):
    """Everything a user calls, on the other backend and in both types, against Numba in float64."""
    numba, jax = (
        machine(projection="exact", alpha=0.15, mode=mode, dtype=kind)
        for mode, kind in (("NUMBA", "float64"), ("JAX", dtype))
    )
    tolerance = 1e-10 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(jax.train_model_full(200), numba.train_model_full(200), rtol=tolerance, atol=tolerance)
    assert jax.largest_stable_step() == pytest.approx(numba.largest_stable_step(), rel=tolerance)
    assert jax.certificate().W == pytest.approx(numba.certificate().W, rel=tolerance)
    for over in ("all", "free"):
        numba.build_b(over), jax.build_b(over)
        expected = numba.make_predictions_parallel(PROBLEM.Z)
        for values in (jax.make_predictions_parallel(PROBLEM.Z), jax.make_predictions(PROBLEM.Z)):
            assert values.dtype == dtype
            assert values.flags.writeable
            np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance)
        assert jax.make_predict(PROBLEM.Z[0]) == pytest.approx(expected[0], abs=tolerance)


def test_a_row_does_not_depend_on_the_rows_beside_it(exact):
    svm, _ = exact
    svm.build_b()
    many = np.random.default_rng(1).normal(size=(300, 3))
    together = svm.make_predictions_parallel(many)
    np.testing.assert_array_equal(svm.make_predictions_parallel(many[37:38]), together[37:38])
    np.testing.assert_array_equal(svm.make_predictions_parallel(many[200:]), together[200:])


def test_small_c_with_unbalanced_classes_ends_feasible():
    labels = np.where(np.arange(16) < 4, 1, -1)
    for bound in (1e-2, 1e-4, 1e-8):
        svm = machine(y=labels, C=bound, projection="exact", alpha=0.2)
        W = svm.train_model_full(max_iters=40)  # a rising W would warn, and warnings are errors
        assert (np.diff(W) <= 1e-12 * bound).all()
        assert svm.certificate().status == "optimal"


def test_what_is_changed_by_set_value_is_seen():
    svm = machine(sigma=None, kernel=Linear())
    before, b = svm.largest_stable_step(), float(svm.build_b().eval(mode="FAST_COMPILE"))
    svm.X.set_value(10 * X)
    assert svm.largest_stable_step() == pytest.approx(before / 100)
    svm.lam.set_value(np.zeros(len(X)))
    np.testing.assert_allclose(svm.make_predictions_parallel(PROBLEM.Z), y.mean())
    assert b != y.mean()


def test_a_kernel_that_is_not_finite_stops_the_training():
    svm = machine(sigma=None, kernel=pair_kernel(lambda x, z: pt.log((x * z).sum())))
    lam = svm.lam.get_value()
    with pytest.warns(ConvergenceWarning, match="W is not finite after 0 steps"):
        svm.train_model_full(5)
    np.testing.assert_array_equal(svm.lam.get_value(), lam)
    assert svm.certificate().status == "diverged"


def test_new_points_with_a_precomputed_kernel():
    """The matrix of all points; training on some of the indices."""
    everything = np.vstack([X, PROBLEM.Z])
    kernel = Precomputed(oracles.gram(everything, everything, KERNELS["rbf"][1]))
    indices = Precomputed.points(len(everything))
    svm, plain = machine(X=indices[:16], sigma=None, kernel=kernel), machine()
    np.testing.assert_allclose(svm.train_model_full(5), plain.train_model_full(5))
    np.testing.assert_allclose(svm.make_predictions_parallel(indices[16:]), plain.make_predictions_parallel(PROBLEM.Z))
    with pytest.raises(ValueError, match="must be a column of indices"):
        svm.make_predictions_parallel([[99.0]])


def test_repr_says_what_it_is():
    assert repr(machine()) == "SVM_parallel(m=16, C=1.5, alpha=0.05, kernel=RBF(sigma=0.8), 'paper')"


def test_shared_variables_are_the_machine():
    svm = machine()
    svm.build_W()
    svm.lam.set_value(np.zeros(len(X)))
    assert svm.W.eval(mode="FAST_COMPILE") == 0.0
    assert pt.as_tensor(svm.C).eval(mode="FAST_COMPILE") == C
