"""A W written as sums is read as a sum over pairs and points, and solved as an independent QP solves it."""

import numpy as np
import oracles
import pytensor
import pytensor.tensor as pt
import pytest

import symsvm
from symsvm import RBF, Decomposition, Laplacian, Linear, Objective, Polynomial, Sigmoid, pair_kernel, sum_over
from symsvm.compiler.reading import PairExpression, UnreadableError, is_readable, read
from symsvm.solvers.decomposition.dual_program import DualProgram

M, C, EPS = 40, 2.0, 0.1
RNG = np.random.default_rng(3)
X = RNG.normal(size=(M, 3))
Y = np.where(X[:, 0] + 0.5 * RNG.normal(size=M) > 0, 1.0, -1.0)
T = X[:, 0] ** 2 + 0.1 * RNG.normal(size=M)
S = RNG.uniform(0.5, 2.0, M)
FIRST, SECOND = RNG.integers(0, M, 30), RNG.integers(0, M, 30)
KERNEL = RBF(1.3)


def rbf(A, B, sigma=1.3):
    """Eq. 33 for all pairs."""
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) / (2 * sigma**2))


K, ONES = rbf(X, X), np.ones(M)
Q = np.outer(Y, Y) * K


def shared(**arrays):
    return [pytensor.shared(array, name=name) for name, array in arrays.items()]


def double(q, rows, kernel=KERNEL):
    """sum_ij q_i q_j K(x_i, x_j)."""
    return sum_over(lambda a, x: a * sum_over(lambda b, z: b * kernel.checked_pair(x, z), q, rows), q, rows)


def labels_inside(lam, y, points, pair=KERNEL.checked_pair):
    def inner(x):
        return sum_over(lambda lam_j, y_j, z: lam_j * y_j * pair(x, z), lam, y, points)

    return sum_over(lambda lam_i, y_i, x: lam_i * y_i * inner(x), lam, y, points)


def difference(a, b, c, d):
    """<phi(a) - phi(b), phi(c) - phi(d)>."""
    pair = KERNEL.checked_pair
    return pair(a, c) - pair(a, d) - pair(b, c) + pair(b, d)


def cases():
    """name -> (W, variable, lower, upper, equality, the same as (Q, p) for a QP solver)."""
    lam, both, few = shared(lam=np.zeros(M), pair=np.zeros(2 * M), rank=np.zeros(30))
    y, t, s, points = shared(y=Y, t=T, s=S, X=X)
    i, j = shared(i=FIRST, j=SECOND)
    q, alpha, primed = lam * y, both[:M], both[M:]
    ranks = rbf(X[FIRST], X[FIRST]) - rbf(X[FIRST], X[SECOND]) - rbf(X[SECOND], X[FIRST]) + rbf(X[SECOND], X[SECOND])
    squares = S[:, None] ** 2 + S**2
    widths = (2 * np.outer(S, S) / squares) ** 1.5 * np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / squares)
    classes = np.stack([Y > 0, Y < 0]).astype("float64")
    given = pytensor.shared(X @ X.T + np.eye(M), name="G")
    stacked = np.block([[K, -K], [-K, K]])
    sides, feature = np.repeat([1.0, -1.0], M), np.column_stack([X, np.sin(X)])

    def wide(l, y_i, x, s_i):
        def pair(l_j, y_j, z, s_j):
            squares = s_i**2 + s_j**2  # the overlap of two Gaussians in three dimensions
            return l_j * y_j * (2 * s_i * s_j / squares) ** 1.5 * pt.exp(-((x - z) ** 2).sum() / squares)

        return l * y_i * sum_over(pair, lam, y, points, s)

    def by_index(l, a, b):
        return l * sum_over(lambda l_j, c, d: l_j * difference(points[a], points[b], points[c], points[d]), few, i, j)

    two = 0.3 * RBF(1.0) + 0.7 * Linear()
    return {
        "C-SVC": (0.5 * double(q, points) - lam.sum(), lam, 0, C, (y, 0), (Q, -ONES)),
        "labels inside": (0.5 * labels_inside(lam, y, points) - lam.sum(), lam, 0, C, (y, 0), (Q, -ONES)),
        "outer": (0.5 * (pt.outer(q, q) * KERNEL(points)).sum() - lam.sum(), lam, 0, C, (y, 0), (Q, -ONES)),
        "matrix": (0.5 * q @ KERNEL(points, points) @ q - lam.sum(), lam, 0, C, (y, 0), (Q, -ONES)),
        "divided": ((0.5 * double(q, points) - lam.sum()) / M, lam, 0, C, (y, 0), (Q / M, -ONES / M)),
        "times 3": (3 * (0.5 * double(q, points) - lam.sum()) + 7.0, lam, 0, C, (y, 0), (3 * Q, -3 * ONES)),
        "C of a point": (0.5 * double(q, points) - lam.sum(), lam, 0, C * s, (y, 0), (Q, -ONES)),
        "squared hinge": (
            0.5 * double(q, points) - lam.sum() + (lam**2 / (4 * s)).sum(),
            *(lam, 0, 1e3, (y, 0), (Q + np.diag(1 / (2 * S)), -ONES)),
        ),
        "bias added": (
            0.5 * double(q, points) + 0.5 * q.sum() ** 2 - lam.sum(),
            *(lam, 0, C, None, (Q + np.outer(Y, Y), -ONES)),
        ),
        "bias in K": (
            0.5 * labels_inside(lam, y, points, lambda x, z: KERNEL.checked_pair(x, z) + 1) - lam.sum(),
            *(lam, 0, C, None, (Q + np.outer(Y, Y), -ONES)),
        ),
        "SVR, |beta|": (
            0.5 * double(lam, points) - (t * lam).sum() + EPS * pt.abs(lam).sum(),
            *(lam, -C, C, (ONES, 0), None),
        ),
        "SVR, stacked": (
            0.5 * double(alpha - primed, points) - (t * (alpha - primed)).sum() + EPS * both.sum(),
            *(both, 0, C, (sides, 0), (stacked, np.concatenate([EPS - T, EPS + T]))),
        ),
        "nu-SVC": (0.5 * double(q, points), lam, 0, 1, (classes, np.array([4.0, 4.0])), (Q, 0 * ONES)),
        "one class": (0.5 * double(lam, points), lam, 0, 1, (ONES, 0.4 * M), (K, 0 * ONES)),
        "SVDD": (double(lam, points) - (lam * KERNEL.diag(points)).sum(), lam, 0, 0.1, (ONES, 1), (2 * K, -ONES)),
        "ranking": (0.5 * sum_over(by_index, few, i, j) - few.sum(), few, 0, C, None, (ranks, -np.ones(30))),
        "ridge": (
            0.5 * double(lam, points) - (t * lam).sum() + 0.05 * (lam**2).sum(),
            *(lam, -np.inf, np.inf, None, (K + 0.1 * np.eye(M), -T)),
        ),
        "LS-SVM": (
            0.5 * double(q, points) - lam.sum() + 0.05 * (lam**2).sum(),
            *(lam, -np.inf, np.inf, (y, 0), (Q + 0.1 * np.eye(M), -ONES)),
        ),
        "two kernels": (
            0.5 * double(q, points, two) - lam.sum(),
            *(lam, 0, C, (y, 0), (np.outer(Y, Y) * (0.3 * rbf(X, X, 1.0) + 0.7 * X @ X.T), -ONES)),
        ),
        "widths": (
            0.5 * sum_over(wide, lam, y, points, s) - lam.sum(),
            *(lam, 0, C, (y, 0), (np.outer(Y, Y) * widths, -ONES)),
        ),
        "given matrix": (
            0.5 * q @ given @ q - lam.sum(),
            *(lam, 0, C, (y, 0), (np.outer(Y, Y) * (X @ X.T + np.eye(M)), -ONES)),
        ),
        "weights": (
            0.5 * (pt.dot(points.T, q) ** 2).sum() - lam.sum(),
            *(lam, 0, C, (y, 0), (np.outer(Y, Y) * (X @ X.T), -ONES)),
        ),
        "features": (
            0.5 * double(q, pt.concatenate([points, pt.sin(points)], axis=1), Linear()) - lam.sum(),
            *(lam, 0, C, (y, 0), (np.outer(Y, Y) * (feature @ feature.T), -ONES)),
        ),
        "factors": (
            0.5 * double(lam * s, points) - lam.sum(),
            *(lam, 0, C, (ONES, 0.3 * M), (np.outer(S, S) * K, -ONES)),
        ),
        "factors, free": (0.5 * double(lam * s, points) - lam.sum(), lam, 0, C, None, (np.outer(S, S) * K, -ONES)),
    }


CASES = cases()


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_is_solved_as_by_an_independent_solver(name):
    W, v, lower, upper, equality, reference = CASES[name]
    objective = Objective(W, variable=v, lower=lower, upper=upper, equality=equality, is_convex=True)
    program = symsvm.compile(objective, "auto")
    assert isinstance(program, DualProgram)
    solution = program.run(tol=1e-8)
    assert solution.certificate.status == "optimal"
    assert 0 <= solution.certificate.gap + 1e-12 < 1e-6
    if reference is None:  # |beta| is the sum of two variables
        H, p = CASES["SVR, stacked"][-1]
        upper, lower, equality = C, 0.0, CASES["SVR, stacked"][-2]
    else:
        H, p = reference
    rows = () if equality is None else (Y if equality[0] is CASES["C-SVC"][-2][0] else equality[0], equality[1])
    x = oracles.qp(H, p, lower, C * S if name == "C of a point" else upper, *rows)
    best = 0.5 * x @ H @ x + p @ x + (7.0 if name == "times 3" else 0.0)
    assert solution.W == pytest.approx(best, rel=1e-8, abs=1e-9)


# ---- what is not read


def test_what_only_looks_quadratic_is_told_apart():
    lam, y, points, s = shared(lam=np.zeros(M), y=Y, X=X, s=S)
    csvc = 0.5 * double(lam * y, points) - lam.sum()
    one = {"variable": lam, "upper": C}
    for W, words in (
        (csvc + 1e-9 * pt.maximum(lam, 0.1).sum(), "maximum of lam is not smooth"),
        (csvc * lam.sum(), "multiplies 3 entries of lam at different points"),
        (csvc + pt.sin(lam.sum()), "sin of an expression in the variable"),
        (csvc + pt.log(pt.exp(lam).sum()), "log of an expression in the variable"),
        ((lam**2).sum(), "no sum over pairs"),
        (csvc + (lam[:-1] * lam[1:] * s[1:]).sum(), "a double sum of W is over all of lam|different"),
    ):
        objective = Objective(W, **one)
        with pytest.raises(UnreadableError, match=words):
            read(objective)
        assert not is_readable(objective)
        with pytest.raises(TypeError, match=f"{words}.*Use 'accelerated-gradient'"):
            symsvm.compile(objective, Decomposition())
    # A cubic term, however small, is no part of a quadratic program.
    assert read(Objective(csvc, **one)).smooth == []
    assert len(read(Objective(csvc + 1e-9 * (lam**3).sum(), **one)).smooth) == 1


def test_numbers_that_contradict_a_reading_stop_it():
    lam, y, points = shared(lam=np.zeros(M), y=Y, X=X)
    askew = sum_over(
        lambda a, x: a * sum_over(lambda b, z: b * pt.exp(-((x - 2 * z) ** 2).sum()), lam, points), lam, points
    )
    with pytest.raises(TypeError, match="not symmetric: write .K.x, z. . K.z, x.. / 2"):
        symsvm.solve(Objective(askew - lam.sum(), variable=lam, upper=C))
    indefinite = 0.5 * double(lam * y, points, Sigmoid(gamma=1.0, coef0=1.0)) - lam.sum()
    assert symsvm.solve(Objective(indefinite, variable=lam, upper=0.1)).certificate.status == "stationary"
    with pytest.raises(ValueError, match="is_convex=True, but W has a negative curvature"):
        symsvm.solve(Objective(-indefinite, variable=lam, upper=0.1, is_convex=True))
    number, short = shared(c=np.asarray(-2.0), Z=X[1:])
    with pytest.raises(ValueError, match="factor of the double sum in W must be positive, got -4"):
        symsvm.solve(Objective(number * double(lam, points), variable=lam, upper=C))
    uneven = sum_over(lambda a, x: a * sum_over(lambda b, z: b * (x * z).sum(), lam, short), lam, points)
    with pytest.raises(ValueError, match="same number of rows, got .39, 40."):
        symsvm.solve(Objective(uneven, variable=lam, upper=C))


# ---- proofs


@pytest.mark.parametrize(
    ("kernel", "proven"),
    [
        (Linear(), True),
        (RBF(0.7) + 2.0 * Linear() * RBF(1.0) ** 2 + 1.0, True),
        (Laplacian(gamma=0.5), True),
        (Polynomial(degree=3, gamma=0.5, coef0=1.0), True),
        (pair_kernel(lambda x, z: 1 / (1 + ((x - z) ** 2).sum())), True),
        (pair_kernel(lambda x, z, scale: pt.exp(-pt.sqrt(((x - z) ** 2).sum() + 1e-9) / scale), scale=2.0), True),
        (pair_kernel(lambda x, z, w: pt.exp(-(w * (x - z) ** 2).sum()), w=np.array([1.0, 2.0, 3.0])), True),
        (pair_kernel(lambda x, z, w: pt.exp(-(w * (x - z) ** 2).sum()), w=np.array([1.0, -2.0, 3.0])), None),
        (pair_kernel(lambda x, z: pt.exp(-((x - 2 * z) ** 2).sum())), None),
        (pair_kernel(lambda x, z: pt.exp(((x - z) ** 2).sum())), None),
        (pair_kernel(lambda x, z: -((x - z) ** 2).sum()), None),
        (Polynomial(degree=3, gamma=0.5, coef0=-1.0), None),
        (-1.0 * RBF(1.0), None),
        (Sigmoid(), None),
    ],
    ids=str,
)
def test_positive_semi_definite_by_proof(kernel, proven):
    values = []
    kernel.lift(lambda name, value: values.append(np.asarray(value, dtype="float64")))
    assert PairExpression.of_kernel(kernel).is_psd(values) is proven
    if proven:
        assert symsvm.mercer(kernel, X, mode="FAST_COMPILE").is_psd


def test_a_proven_kernel_makes_an_optimum():
    lam, y, points = shared(lam=np.zeros(M), y=Y, X=X)
    W = 0.5 * double(lam * y, points) - lam.sum()
    assert symsvm.solve(Objective(W, variable=lam, upper=C, equality=(y, 0))).certificate.status == "optimal"


# ---- runs


def test_one_reading_serves_all_data_and_numbers():
    lam, y, points = pt.dvector("lam"), pt.dvector("y"), pt.dmatrix("X")
    price, sigma = pt.dscalar("C"), pt.dscalar("sigma")
    W = 0.5 * double(lam * y, points, RBF(sigma)) - lam.sum()
    program = symsvm.compile(Objective(W, variable=lam, upper=price, equality=(y, 0)), "auto")
    for m, value, width in ((M, 2.0, 1.3), (25, 5.0, 0.6)):
        solution = program.run(X=X[:m], y=Y[:m], C=value, sigma=width, tol=1e-8)
        dual = symsvm.KernelDual(symsvm.QuadraticProgram.c_svc(Y[:m], value), X[:m], RBF(width))
        expected = symsvm.solve(dual, tol=1e-8)
        np.testing.assert_allclose(solution.lam, expected.lam, atol=1e-8)
        np.testing.assert_allclose(solution.z, expected.z, atol=1e-8)
        assert solution.b == pytest.approx(expected.b, abs=1e-8)
    other = Objective(0.5 * double(lam * y, points, RBF(0.9)) - lam.sum(), variable=lam, upper=7.0, equality=(y, 0))
    again = Objective(0.5 * double(lam * y, points, RBF(0.4)) - lam.sum(), variable=lam, upper=3.0, equality=(y, 0))
    assert read(other).pairs.expression is read(again).pairs.expression


def test_a_solution_decides_at_other_points():
    W, lam, *_ = CASES["divided"]
    y = CASES["divided"][4][0]
    Z = RNG.normal(size=(7, 3))
    solution = symsvm.solve(Objective(W, variable=lam, upper=C, equality=(y, 0)), tol=1e-10)
    exact = symsvm.SVC(C=C, kernel=KERNEL, tol=1e-10).fit(X, Y)
    np.testing.assert_allclose(solution.decision_function(Z), exact.decision_function(Z), atol=1e-7)
    W, lam, *_ = CASES["ranking"]
    ranked = symsvm.solve(Objective(W, variable=lam, upper=C, is_convex=True), tol=1e-8)
    ranks = ranked.decision_function(FIRST, SECOND)
    free = (ranked.lam > 1e-6) & (ranked.lam < C - 1e-6)
    np.testing.assert_allclose(ranks[free], 1.0, atol=1e-6)
    with pytest.raises(TypeError, match="takes rows of 2 array.s."):
        ranked.decision_function(FIRST)
    with pytest.raises(AttributeError, match="weights of a primal"):
        _ = ranked.w


def test_certificates_are_in_the_units_of_w():
    W, lam, _, _, (y, _), _ = CASES["divided"]
    objective = Objective(W, variable=lam, upper=C, equality=(y, 0))
    fast = symsvm.solve(objective, tol=1e-6)
    slow = symsvm.solve(objective, "accelerated-gradient", mode="JAX", tol=1e-6)
    assert (fast.certificate.status, slow.certificate.status) == ("optimal", "stationary")
    assert fast.W == pytest.approx(slow.W, rel=1e-6)
    assert fast.b == pytest.approx(slow.b, abs=1e-5)
