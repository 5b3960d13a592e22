"""`argmin`: gradients of solutions against central differences, and what it refuses or warns of."""

import warnings

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from gradient_cases import KERNELS, MACHINES, Gradients, Report
from scipy.sparse import random as random_csr

import symsvm.jax
from symsvm import CSVC, RBF, KernelDual, Laplacian, Linear, Objective, Polynomial, QuadraticProgram, argmin
from symsvm.implicit import GradientWarning, last_adjoint
from symsvm.implicit.symmetric_system import solve_symmetric
from symsvm.objectives import machine_duals

PLAIN = "FAST_COMPILE"


@pytest.mark.parametrize(
    ("machine", "kernel"),
    [
        (machine, kernel)
        for machine in MACHINES
        for kernel in KERNELS
        if kernel == "rbf" or (machine != "logistic" and (kernel != "widths" or machine in ("csvc", "nusvr")))
    ],
)
def test_gradients_are_those_of_central_differences(machine, kernel):
    gradients, report = Gradients(machine, kernel), Report()
    for seed in range(3):
        gradients.compare(np.random.default_rng([seed, 2]), report)
    assert not report.broken
    assert report.compared >= len(gradients.names), report


@pytest.mark.parametrize(
    ("machine", "kernel", "mode"),
    [
        ("csvc", "rbf", "NUMBA"),
        ("svr", "rbf", "JAX"),
        pytest.param("svr", "rbf", "NUMBA", marks=pytest.mark.slow),
        pytest.param("csvc", "rbf", "JAX", marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore:Skipping .* as JAX tracing would remove it")
def test_backends_have_the_same_gradients(machine, kernel, mode):
    gradients, plain, report = Gradients(machine, kernel, mode), Gradients(machine, kernel), Report()
    rng = np.random.default_rng(5)
    data, tail = gradients.problem(rng)
    order = [*data.values(), *tail]
    for one, other in zip(gradients.gradient(*order), plain.gradient(*order), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    gradients.compare(rng, report)
    assert not report.broken


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_of_random_problems(kernel, record_property):
    """2000 problems over all machines and kernels, with copies of points, weights of 0 and empty free sets."""
    report = Report()
    for machine in MACHINES:
        gradients = Gradients(machine, kernel)
        for seed in range(2000 // (len(MACHINES) * len(KERNELS)) + 1):
            gradients.compare(np.random.default_rng([seed, 7]), report)
    print(kernel, report)
    assert not report.broken
    assert report.compared > 4 * (report.kinks + report.doubtful + report.infeasible)


# ---- kernels over features that are a graph


def blob(m=30, d=3, seed=0):
    """Points, labels of both classes, and random factors of a loss."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=m) > 0, 1.0, -1.0), rng.normal(size=m)


def csvc(kernel, features, C=2.0):
    lam, y = pt.dvector("lam"), pt.dvector("y")
    q = lam * y
    W = 0.5 * q @ kernel(features, features) @ q - lam.sum()
    return Objective(W, lam, upper=C, equality=(y, 0.0), is_convex=True), y


def differences(f, x, h=1e-5):
    """The gradient of f at x by central differences of four points."""
    out = np.empty(x.size)
    for k in range(x.size):
        e = np.zeros(x.size)
        e[k] = h
        e = e.reshape(x.shape)
        out[k] = (f(x - 2 * e) - 8 * f(x - e) + 8 * f(x + e) - f(x + 2 * e)) / (12 * h)
    return out.reshape(x.shape)


@pytest.mark.parametrize("layer", ["widths", "network"])
def test_features_before_the_kernel(layer):
    X, labels, r = blob()
    points, theta = pt.dmatrix("X"), pt.dvector("w") if layer == "widths" else pt.dmatrix("W1")
    value = np.array([0.7, 1.5, 3.0]) if layer == "widths" else np.random.default_rng(1).normal(size=(3, 4))
    features = points / theta if layer == "widths" else pt.tanh(points @ theta)
    objective, y = csvc(RBF(1.0), features)
    lam, b = argmin(objective)
    loss = (lam * r).sum() + b
    f = pytensor.function([points, y, theta], [loss, pytensor.grad(loss, theta)], mode=PLAIN)
    expected = differences(lambda t: f(X, labels, t)[0], value)
    np.testing.assert_allclose(f(X, labels, value)[1], expected, rtol=1e-7, atol=1e-8 * np.abs(expected).max())


def test_an_input_may_be_given_as_a_graph():
    X, labels, r = blob()
    points, raw, theta = pt.dmatrix("X"), pt.dmatrix("raw"), pt.dmatrix("W1")
    objective, y = csvc(RBF(1.0), points)
    lam, b = argmin(objective, X=pt.tanh(raw @ theta), y=labels)
    loss = (lam * r).sum() + b
    f = pytensor.function([raw, theta], [loss, pytensor.grad(loss, theta)], mode=PLAIN)
    value = np.random.default_rng(1).normal(size=(3, 2))
    expected = differences(lambda t: f(X, t)[0], value)
    np.testing.assert_allclose(f(X, value)[1], expected, rtol=1e-7, atol=1e-8 * np.abs(expected).max())
    del y


def test_a_loss_of_decisions_over_a_linear_kernel():
    """A has a kernel, but f does not depend on it: the gradient exists and no warning is given."""
    X, labels, r = blob(m=40)
    points, C = pt.dmatrix("X"), pt.dscalar("C")
    objective, y = csvc(Linear(), points, C)
    lam, b = argmin(objective)
    loss = ((points @ (points.T @ (lam * y)) + b) * r).sum()
    f = pytensor.function([points, y, C], [loss, *pytensor.grad(loss, [points, C])], mode=PLAIN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, by_points, by_C = f(X, labels, 0.3)
    assert last_adjoint(lam).is_determined
    expected = differences(lambda x: f(x, labels, 0.3)[0], X)
    np.testing.assert_allclose(by_points, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())
    # Four free variables fix w and b in three dimensions, whatever C is.
    assert abs(by_C) < 1e-9
    assert abs(differences(lambda c: f(X, labels, float(c[0]))[0], np.array([0.3]))) < 1e-8


# ---- sparse points


@pytest.mark.parametrize("mode", [PLAIN, pytest.param("NUMBA", marks=pytest.mark.slow)])
def test_sparse_points_have_the_gradients_of_dense_ones(mode):
    X = random_csr(50, 12, density=0.3, random_state=0, format="csr")
    rng = np.random.default_rng(0)
    labels, r = np.where(X.toarray()[:, 0] + 0.2 * rng.normal(size=50) > 0.1, 1.0, -1.0), rng.normal(size=50)
    sigma, gamma = pt.dscalar("sigma"), pt.dscalar("gamma")
    objective = machine_duals.c_svc_dual(RBF(sigma) + Laplacian(sigma) * Polynomial(2, gamma, 1.0))
    C, y = pt.dvector("C"), pt.dvector("y")
    found = []
    for points in (X, X.toarray()):
        lam, b = argmin(objective, X=points, y=y, C=C)
        loss = (lam * r).sum() + b
        f = pytensor.function([C, y, sigma, gamma], pytensor.grad(loss, [C, sigma, gamma]), mode=mode)
        found.append(f(np.full(50, 3.0), labels, 0.7, 0.9))
    for sparse, dense in zip(*found, strict=True):
        np.testing.assert_allclose(sparse, dense, rtol=1e-9, atol=1e-12)


def test_widths_of_sparse_points():
    X = random_csr(50, 6, density=0.7, random_state=1, format="csr")
    rng = np.random.default_rng(0)
    labels, r = np.where(X.toarray()[:, 0] + 0.2 * rng.normal(size=50) > 0.1, 1.0, -1.0), rng.normal(size=50)
    points, width = pt.dmatrix("X"), pt.dvector("width")
    objective, y = csvc(RBF(1.0), points / width)
    found = []
    for given in (X, X.toarray()):
        lam, b = argmin(objective, X=given)
        loss = (lam * r).sum() + b
        found.append(
            pytensor.function([y, width], pytensor.grad(loss, width), mode=PLAIN)(labels, np.linspace(0.3, 1, 6))
        )
    np.testing.assert_allclose(*found, rtol=1e-9)


def test_features_that_mix_sparse_points_are_refused():
    points, width = pt.dmatrix("X"), pt.dscalar("width")
    objective, _ = csvc(RBF(width), points - points.mean(axis=0))
    lam, _ = argmin(objective, X=random_csr(20, 6, density=0.3, random_state=1, format="csr"))
    with pytest.raises(TypeError, match="computed row by row"):
        pytensor.grad(lam.sum(), width)


# ---- JAX and PyTorch


def test_jax_differentiates_a_solution():
    jax = pytest.importorskip("jax")
    X, labels, r = blob()
    lam, points, y, C, sigma = pt.dvector("lam"), pt.dmatrix("X"), pt.dvector("y"), pt.dscalar("C"), pt.dscalar("sigma")
    objective = CSVC(lam, points, y, C, RBF(sigma))
    solution, b = argmin(objective)
    loss = (solution * r).sum() + b
    plain = pytensor.function([points, y, C, sigma], [loss, *pytensor.grad(loss, [points, C, sigma])], mode=PLAIN)
    expected = plain(X, labels, 2.0, 1.2)
    solve = symsvm.jax.argmin(objective, mode=PLAIN)

    def of(points, C, sigma):
        found, b = solve(X=points, y=labels, C=C, sigma=sigma)
        return found @ r + b

    value, gradient = jax.jit(jax.value_and_grad(of, argnums=(0, 1, 2)))(X, 2.0, 1.2)
    tolerance = 1e-9 if jax.config.jax_enable_x64 else 2e-6
    for one, other in zip((value, *gradient), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max())
    several = jax.vmap(lambda sigma: of(X, 2.0, sigma))(np.array([1.0, 1.2]))
    np.testing.assert_allclose(several[1], expected[0], rtol=1e-6)
    with pytest.raises(NotImplementedError, match="no second derivatives"):
        jax.grad(jax.grad(lambda sigma: of(X, 2.0, sigma)))(1.2)
    with pytest.raises(TypeError, match="'sigma' is missing"):
        solve(X=X, y=labels, C=1.0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_torch_differentiates_a_solution(dtype):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make torch")
    import symsvm.torch

    X, labels, r = blob()
    lam, points, y, C = pt.dvector("lam"), pt.dmatrix("X"), pt.dvector("y"), pt.dscalar("C")
    objective = CSVC(lam, points, y, C, RBF(1.2))
    solution, b = argmin(objective)
    loss = (solution * r).sum() + b
    plain = pytensor.function([points, y, C], [loss, *pytensor.grad(loss, [points, C])], mode=PLAIN)
    expected = plain(X, labels, 2.0)
    of_type = {"dtype": getattr(torch, dtype), "requires_grad": True}
    inputs = torch.tensor(X, **of_type), torch.tensor(2.0, **of_type)
    found, b = symsvm.torch.argmin(objective, mode=PLAIN)(X=inputs[0], y=torch.tensor(labels), C=inputs[1])
    value = found @ torch.tensor(r, dtype=found.dtype) + b
    value.backward()
    tolerance = 1e-9 if dtype == "float64" else 1e-5
    for one, other in zip((value.detach(), *(x.grad for x in inputs)), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max())


# ---- what a gradient rests on


def test_what_a_gradient_rests_on():
    X, labels, r = blob()
    points, C = pt.dmatrix("X"), pt.dscalar("C")
    objective, y = csvc(RBF(1.0), points, C)
    lam, b = argmin(objective)
    assert last_adjoint(lam) is None
    f = pytensor.function([points, y, C], [lam, pytensor.grad((lam * r).sum() + b, C)], mode=PLAIN)
    v, _ = f(X, labels, 2.0)
    found = last_adjoint(b)
    assert found.n_free == np.count_nonzero((v > 0) & (v < 2.0)) > 0
    assert 0 < found.margin <= 1
    assert found.complementarity > 0
    assert found.is_determined
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    free = (v > 0) & (v < 2.0)
    condition = np.linalg.cond(K[np.ix_(free, free)], 1)
    assert condition / 10 <= found.condition <= 1.01 * condition  # a lower estimate, by LAPACK


def test_a_free_variable_that_is_not_determined_is_warned_of():
    """Two copies of a point share a multiplier: their difference is not determined, their sum is."""
    X, labels, _ = blob(m=20)
    X, labels = np.concatenate([X, X]), np.concatenate([labels, labels])
    points, C, r = pt.dmatrix("X"), pt.dscalar("C"), pt.dvector("r")
    objective, y = csvc(RBF(1.0), points, C)
    lam, _ = argmin(objective)
    f = pytensor.function([points, y, C, r], pytensor.grad((lam * r).sum(), C), mode=PLAIN)
    one_copy = np.concatenate([np.ones(20), np.zeros(20)])
    with pytest.warns(GradientWarning, match="does not determine|has no derivative"):
        f(X, labels, 2.0, one_copy)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(X, labels, 2.0, np.ones(40))


def test_a_run_that_stopped_short_has_no_gradient():
    X, labels, r = blob()
    points, C = pt.dmatrix("X"), pt.dscalar("C")
    objective, y = csvc(RBF(0.5), points, C)
    lam, _ = argmin(objective, max_iter=0)
    f = pytensor.function([points, y, C], pytensor.grad((lam * r[0]).sum(), C), mode=PLAIN)
    with pytest.warns(Warning, match="stopped"), pytest.raises(ValueError, match="needs a solution"):
        f(X, labels, 100.0)


def test_what_is_refused():
    points, C = pt.dmatrix("X"), pt.dscalar("C")
    objective, y = csvc(RBF(1.0), points, C)
    with pytest.raises(TypeError, match="must be a symsvm Objective"):
        argmin(3)
    with pytest.raises(TypeError, match="no input 'Z'"):
        argmin(objective, Z=np.ones(3))
    with pytest.raises(ValueError, match="tol"):
        argmin(objective, tol=-1.0)
    with pytest.raises(TypeError, match="KernelDual has its numbers"):
        argmin(KernelDual(QuadraticProgram.c_svc(np.array([1.0, -1.0]), 1.0), np.eye(2), RBF(1.0)))
    lam, _ = argmin(objective)
    with pytest.raises(TypeError, match="that argmin returned"):
        last_adjoint(C)
    with pytest.raises(NotImplementedError, match="no second derivatives"):
        pytensor.grad(pytensor.grad(lam.sum(), C), C)
    del y


@pytest.mark.parametrize("n", [1, 5, 60])
def test_the_symmetric_system(n):
    rng = np.random.default_rng(n)
    root = rng.normal(size=(n, n))
    E = (np.arange(n)[:, None] % 2 == np.arange(min(n, 2))).astype("float64")
    A, r, s = root @ root.T + np.eye(n), rng.normal(size=n), rng.normal(size=E.shape[1])
    u, w, condition, is_determined = solve_symmetric(A.copy(), E, r, s)
    np.testing.assert_allclose(A @ u + E @ w, r, atol=1e-10 * n)
    np.testing.assert_allclose(E.T @ u, s, atol=1e-10 * n)
    assert is_determined
    assert condition >= 1 - 1e-12


def test_the_least_solution_of_a_singular_system():
    a = np.array([[1.0, 2.0, 0.0]])
    A, r = a.T @ a, np.array([1.0, 2.0, 0.0])
    u, _, condition, is_determined = solve_symmetric(A.copy(), np.zeros((3, 0)), r, np.zeros(0))
    np.testing.assert_allclose(A @ u, r, atol=1e-12)
    assert is_determined
    assert condition > 1e12
    *_, is_determined = solve_symmetric(A.copy(), np.zeros((3, 0)), np.array([0.0, 0.0, 1.0]), np.zeros(0))
    assert not is_determined
