"""Kernels: one pair expression, and everything that is derived from it."""

import numpy as np
import oracles
import pytensor
import pytensor.tensor as pt
import pytest
from problems import KERNELS, MODES, precomputed
from sklearn.base import clone

from symsvm import RBF, Kernel, Laplacian, Linear, Polynomial, Precomputed, Sigmoid, mercer, pair_kernel, sum_over
from symsvm.compiler.functions import function

RNG = np.random.default_rng(5)
X, Z = RNG.normal(size=(6, 3)), RNG.normal(size=(4, 3))


def value(graph):
    return np.asarray(function([], graph, mode="FAST_COMPILE")())


@pytest.mark.parametrize("mode", MODES)
def test_gram_and_diagonal_equal_loops(mode):
    """All kernels in one function a backend."""
    names = list(KERNELS)
    graphs = [graph for name in names for graph in (KERNELS[name][0](X, Z), KERNELS[name][0].diag(X))]
    values = iter(function([], graphs, mode=mode)())
    for name in names:
        k = KERNELS[name][1]
        np.testing.assert_allclose(next(values), oracles.gram(X, Z, k), rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(next(values), [k(x, x) for x in X], rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_reach_points_and_hyper_parameters(name):
    """Central differences of a weighted sum of the Gram matrix, for X and for every number in the kernel."""
    hyper = []

    def shared(label, number):
        hyper.append(pytensor.shared(np.asarray(number, dtype="float64"), name=label))
        return hyper[-1]

    kernel = KERNELS[name][0].lift(shared)
    points, weights = pytensor.shared(X.copy(), name="X"), RNG.normal(size=(6, 4))
    total = (kernel(points, Z) * weights).sum()
    variables = [points, *hyper]
    evaluate = function([], total, mode="FAST_COMPILE")
    gradients = function([], pytensor.grad(total, variables), mode="FAST_COMPILE")()
    for variable, gradient in zip(variables, gradients, strict=True):
        at, numeric = variable.get_value(), np.zeros_like(gradient)
        for index in np.ndindex(np.shape(gradient)):
            h = np.zeros_like(gradient)
            h[index] = 1e-6
            variable.set_value(at + h)
            plus = evaluate()
            variable.set_value(at - h)
            numeric[index] = (plus - evaluate()) / 2e-6
        variable.set_value(at)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6, err_msg=str(variable))


@pytest.mark.parametrize("sigma", [0.7, pytensor.shared(0.7, name="sigma"), pt.exp(pt.constant(np.log(0.7)))])
def test_hyper_parameters_are_numbers_shared_or_symbolic(sigma):
    np.testing.assert_allclose(value(RBF(sigma)(X, Z)), value(RBF(0.7)(X, Z)))


def test_rbf_from_gamma():
    gamma = pytensor.shared(0.3)
    expected = oracles.gram(X, Z, lambda x, z: np.exp(-0.3 * ((x - z) ** 2).sum()))
    np.testing.assert_allclose(value(RBF.from_gamma(0.3)(X, Z)), expected)
    np.testing.assert_allclose(value(RBF.from_gamma(gamma)(X, Z)), expected)


def test_algebra():
    k1, k2 = KERNELS["rbf"], KERNELS["polynomial"]
    K1, K2 = oracles.gram(X, Z, k1[1]), oracles.gram(X, Z, k2[1])
    c = pytensor.shared(3.0, name="c")
    for kernel, expected in [
        (k1[0] + k2[0], K1 + K2),
        (k1[0] * k2[0], K1 * K2),
        (2 * k1[0], 2 * K1),
        (k1[0] * np.float64(2), 2 * K1),
        (c * k1[0], 3 * K1),
        (k1[0] ** 3, K1**3),
        (2 * (k1[0] + k2[0]) ** 2 * k1[0], 2 * (K1 + K2) ** 2 * K1),
        (k1[0] + 1, K1 + 1),
        (0.5 + k1[0], K1 + 0.5),
    ]:
        np.testing.assert_allclose(value(kernel(X, Z)), expected, err_msg=repr(kernel))
    with pytest.raises(TypeError):
        k1[0] + "1"
    with pytest.raises(TypeError):
        k1[0] ** 0.5
    with pytest.raises(ValueError, match="exponent of a kernel must be at least 1"):
        (k1[0] ** 0)(X)


def test_repr_reads_as_it_is_written():
    kernel = 0.5 * (RBF(sigma=2.0) + Linear()) ** 2 * Laplacian(gamma=1.0)
    assert repr(kernel) == "0.5 * (RBF(sigma=2.0) + Linear()) ** 2 * Laplacian(gamma=1.0)"
    assert repr(eval(repr(kernel))) == repr(kernel)
    assert repr(RBF(sigma=pytensor.shared(1.0, name="s"))) == "RBF(sigma=s)"
    assert repr((Linear() ** 2) ** 3) == "(Linear() ** 2) ** 3"


def test_constant_and_one_sided_kernels_fill_the_matrix():
    assert value(pair_kernel(lambda x, z: pt.constant(2.0))(X, Z)).shape == (6, 4)
    assert value(pair_kernel(lambda x, z: z[0])(X, Z)).shape == (6, 4)
    assert value(pair_kernel(lambda x, z: pt.constant(2.0)).diag(X)).shape == (6,)


def test_float32_points_stay_float32():
    for kernel, _ in KERNELS.values():
        assert kernel(X.astype("float32"), Z.astype("float32")).dtype == "float32"


def test_integers_are_points_too():
    grid = np.array([[0, 0], [1, 1], [2, 0]])
    for points in (grid, grid.tolist()):
        np.testing.assert_allclose(value(RBF(0.5)(points)), value(RBF(0.5)(grid.astype(float))))
    assert value(sum_over(lambda i: 0.5 * i, np.arange(4))) == 3.0


def test_points_that_do_not_fit():
    with pytest.raises(ValueError, match="same features, got 3 and 1"):
        RBF()(X, Z[:, :1])
    with pytest.raises(ValueError, match="takes matrices of points"):
        RBF()(X[0])


def test_vector_hyper_parameters():
    scales = np.array([1.0, 2.0, 3.0])
    kernel = pair_kernel(lambda x, z, scales: pt.exp(-(((x - z) / scales) ** 2).sum()), scales=scales)
    np.testing.assert_allclose(value(kernel(X, Z)), value(RBF(0.5**0.5)(X / scales, Z / scales)))
    np.testing.assert_allclose(value(kernel.lift(lambda name, v: pytensor.shared(v))(X, Z)), value(kernel(X, Z)))


def test_precomputed_is_its_matrix():
    kernel, points = precomputed(X)
    np.testing.assert_array_equal(value(kernel(points)), kernel.gram)
    np.testing.assert_array_equal(value(kernel.diag(points)), np.diag(kernel.gram))
    new = RNG.normal(size=(2, 6))
    np.testing.assert_array_equal(value(Precomputed(new)(Precomputed.points(2), points)), new)
    for bad in (points + 1, points - 1, points + 0.5, np.hstack([points, points])):
        with pytest.raises(ValueError, match="must be a column of indices"):
            kernel.check_points(bad)
    with pytest.raises(ValueError, match="gram of Precomputed must be a matrix"):
        Precomputed(np.ones(3)).check_points(points)


def test_parameters_follow_scikit_learn():
    kernel = RBF(sigma=2.0) + 0.5 * Polynomial(degree=2)
    assert set(kernel.get_params()) >= {"k1", "k2", "k1__sigma", "k2__c", "k2__k1__degree"}
    kernel.set_params(k1__sigma=3.0, k2__k1__degree=4)
    copy = clone(kernel)
    assert copy is not kernel
    assert copy.k1 is not kernel.k1
    assert repr(copy) == repr(kernel)
    assert (copy.k1.sigma, copy.k2.k1.degree) == (3.0, 4)
    for wrong in ("gamma", "k1__gamma", "k2__c__x"):
        with pytest.raises(ValueError, match="is not a parameter of"):
            kernel.set_params(**{wrong: 1.0})
    sigma = pytensor.shared(1.0)
    assert clone(RBF(sigma)).sigma is sigma
    custom = KERNELS["custom"][0]
    assert clone(custom).get_params() == custom.get_params()
    marker = object()
    assert RBF(sigma=marker).sigma is marker  # the constructor stores its arguments untouched


def test_lift_leaves_no_number_in_the_graph_but_the_structure():
    lifted = []
    kernel = (2.0 * Polynomial(degree=3, gamma=0.5, coef0=1.0) + KERNELS["custom"][0]).lift(
        lambda name, number: lifted.append((name, number)) or pytensor.shared(number, name=name)
    )
    assert lifted == [("c", 2.0), ("gamma", 0.5), ("coef0", 1.0), ("scale", 1.7)]
    assert kernel.k1.k1.degree == 3
    repeat = pair_kernel(lambda x, z, n: sum((x * z).sum() for _ in range(n)), n=2)
    np.testing.assert_allclose(value(repeat(X, Z)), 2 * X @ Z.T)  # an integer may shape the graph
    assert repeat.lift(None).n == 2


@pytest.mark.parametrize(
    ("kernel", "known"),
    [
        (Linear(), True),
        (RBF(), True),
        (Laplacian(), True),
        (Sigmoid(), False),
        (Polynomial(coef0=1.0), True),
        (Polynomial(coef0=-1.0), False),
        (Polynomial(coef0=pytensor.shared(1.0)), None),
        (Precomputed(np.eye(2)), None),
        (pair_kernel(lambda x, z: x.sum()), None),
        (RBF() + Linear(), True),
        (RBF() + Sigmoid(), None),
        (2.0 * RBF(), True),
        (-2.0 * RBF(), None),
        (pytensor.shared(2.0) * RBF(), None),
        (RBF() ** 2 * Linear(), True),
        (Sigmoid() ** 2, None),
    ],
)
def test_is_psd_says_what_is_known(kernel, known):
    assert kernel.is_psd is known


def test_mercer_agrees_with_what_is_known():
    for name, (kernel, k) in KERNELS.items():
        check = mercer(kernel, X, mode="FAST_COMPILE")
        eigenvalues = np.linalg.eigvalsh(oracles.gram(X, X, k))
        assert check.smallest == pytest.approx(eigenvalues[0], abs=1e-10), name
        assert check.largest == pytest.approx(eigenvalues[-1]), name
        if kernel.is_psd:
            assert check.is_psd
    assert not mercer(Sigmoid(gamma=1.0, coef0=-2.0), X, mode="FAST_COMPILE").is_psd
    lopsided = mercer(pair_kernel(lambda x, z: (x * z).sum() + x[0] - z[0]), X, mode="FAST_COMPILE")
    assert not lopsided.is_symmetric
    assert not lopsided.is_psd
    with pytest.raises(ValueError, match="not finite on these points"):
        mercer(Precomputed(np.full((6, 6), np.nan)), Precomputed.points(6), mode="FAST_COMPILE")
    with pytest.raises(TypeError, match="kernel must be a symsvm kernel"):
        mercer("rbf", X)
    # Rank-deficient matrices have eigenvalues of rounding size below 0.
    assert mercer(Linear(), np.ones((40, 3)), mode="FAST_COMPILE").is_psd


def test_bad_kernels_say_what_is_wrong():
    for kernel, message in [
        (RBF(sigma=0.0), "sigma of RBF must be positive, got 0.0"),
        (RBF(sigma=-1), "sigma of RBF must be positive, got -1"),
        (RBF(sigma=np.nan), "sigma of RBF must be finite"),
        (Laplacian(gamma=-1.0), "gamma of Laplacian must be positive"),
        (Polynomial(degree=0), "degree of Polynomial must be at least 1"),
        (pair_kernel(lambda x, z: x * z), "must return a scalar for a pair of points, got 1 dimension"),
    ]:
        with pytest.raises(ValueError, match=message):
            kernel(X)
    with pytest.raises(TypeError, match="sigma of RBF must be a number, got 'wide'"):
        RBF(sigma="wide")(X)
    with pytest.raises(TypeError, match="degree of Polynomial must be an integer"):
        Polynomial(degree=2.5)(X)
    with pytest.raises(ValueError, match="gamma must be positive"):
        RBF.from_gamma(0)
    with pytest.raises(TypeError, match="fn must be a function of two points"):
        pair_kernel(3)
    with pytest.raises(ValueError, match="'pair' cannot name a hyper-parameter"):
        pair_kernel(lambda x, z, pair: x.sum(), pair=1.0)
    with pytest.raises(NotImplementedError, match="must define pair"):
        Kernel()(X)


def test_a_pair_expression_whose_length_depends_on_values_says_what_to_write_instead():
    kernel = pair_kernel(lambda x, z: x[x > 0].sum() * z.sum())
    with pytest.raises(ValueError, match=r"selects entries by their values.*pt\.switch\(condition, entry, 0\)"):
        kernel(X, Z)
