"""Kernels that users write must be symmetric: every way to a solver refuses others, in a sentence."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import sparse
from sklearn.datasets import make_moons

import symsvm
from symsvm import RBF, Linear, Objective, pair_kernel
from symsvm.kernels import Kernel
from symsvm.objectives import CSVC, KernelDual, QuadraticProgram
from symsvm.solvers.decomposition.one_vs_one import one_vs_one
from symsvm.solvers.decomposition.solve_problem import path
from symsvm.tuning import tune


def _asymmetric(x, z):
    return x[0] * z[1] * 3 + x[0] * z[0]


class _Directed(Kernel):
    """A user's class of kernels whose expression is not symmetric."""

    def pair(self, x, z):
        return x[0] * z[1]


ASYMMETRIC = [pair_kernel(_asymmetric), _Directed(), RBF(1.0) + pair_kernel(_asymmetric), 2.0 * _Directed() * Linear()]


@pytest.mark.parametrize("kernel", ASYMMETRIC, ids=repr)
def test_a_kernel_that_is_not_symmetric_is_refused(kernel):
    X, y = make_moons(60, noise=0.2, random_state=0)
    program = QuadraticProgram.c_svc(2.0 * y - 1, C=1.0)
    sentence = (
        r"must be symmetric, K\(x, z\) = K\(z, x\), but K\(x_\d+, x_\d+\) = .* use \(K\(x, z\) \+ K\(z, x\)\) / 2\.$"
    )
    for points in (X, sparse.csr_matrix(X)):
        with pytest.raises(ValueError, match=sentence):
            symsvm.SVC(kernel=kernel).fit(points, y)
    for run in (
        lambda: symsvm.solve(KernelDual(program, X, kernel)),
        lambda: list(one_vs_one(X, y, kernel, lambda s, rows: QuadraticProgram.c_svc(s, C=1.0))),
        lambda: list(path(X, kernel, [program])),
        lambda: tune(symsvm.SVC(kernel=kernel), X, y, {"C": [1.0, 2.0]}, folds=2),
    ):
        with pytest.raises(ValueError, match=sentence):
            run()


def test_a_user_s_kernel_that_is_symmetric_is_taken():
    X, y = make_moons(60, noise=0.2, random_state=0)
    own = symsvm.SVC(kernel=pair_kernel(lambda x, z: pt.exp(-((x - z) ** 2).sum() / 2))).fit(X, y)
    named = symsvm.SVC(kernel=RBF(1.0)).fit(X, y)
    assert np.allclose(own.decision_function(X), named.decision_function(X), atol=1e-6)


# ---- a W that is written by hand, and the solvers that take any smooth W

X, Y = make_moons(40, noise=0.2, random_state=0)
LAM = pytensor.shared(np.zeros(40), name="lam")
POINTS, LABELS = pytensor.shared(X, name="X"), pytensor.shared(2.0 * Y - 1, name="y")
DIRECTED = pair_kernel(lambda x, z: pt.exp(-((x - z) ** 2).sum()) * (1 + 0.1 * (x - z).sum()))
WORDS = r"the double sum in W is not symmetric: K\(x_(\d+), x_(\d+)\) = \S+ and K\(x_\2, x_\1\) = .* write this in W"


def written(matrix):
    q = LAM * LABELS
    return Objective(0.5 * q @ matrix @ q - LAM.sum(), variable=LAM, upper=1.0, equality=(LABELS, 0))


def test_a_written_w_that_is_not_symmetric_gives_a_warning():
    with pytest.warns(UserWarning, match=WORDS) as caught:
        symsvm.solve(written(DIRECTED(POINTS, POINTS)), "projected-gradient", mode="FAST_COMPILE")
    assert caught[0].filename == __file__


def test_a_given_matrix_that_is_not_symmetric_gives_a_warning():
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    G = pytensor.shared(K, name="G")
    program = symsvm.compile(written(G), "projected-gradient", mode="FAST_COMPILE")
    found = program.run(tol=1e-6)  # a warning would be an error
    G.set_value(2 * np.tril(K, -1) + np.diag(np.diag(K)))  # (G + G') / 2 = K
    with pytest.warns(UserWarning, match=WORDS):
        same = program.run(tol=1e-6)
    assert same.certificate.W == pytest.approx(found.certificate.W, rel=1e-9)


@pytest.mark.parametrize("solver", ["accelerated-gradient", "smo"])
def test_a_dual_with_a_kernel_that_is_not_symmetric_is_refused_before_it_is_compiled(solver):
    with pytest.raises(ValueError, match="must be symmetric"):
        symsvm.compile(KernelDual(QuadraticProgram.c_svc(2.0 * Y - 1, C=1.0), X, DIRECTED), solver)


def test_points_of_which_a_kernel_is_not_symmetric_are_refused():
    with pytest.raises(ValueError, match="must be symmetric"):
        symsvm.solve(CSVC(LAM, POINTS, LABELS, 1.0, DIRECTED), "projected-gradient")
