"""Numba and JAX give the same W, gradient, update, intercept and predictions from the same graphs, for every kernel."""

import numpy as np
import oracles
import pytest
from problems import KERNELS, MODES, overlapping, precomputed

from symsvm import SVM_parallel, grad
from symsvm.compiler.functions import function

PROBLEM = overlapping(m=10)
ALPHA, LAM = 0.03, overlapping(m=10).lam


def build(kernel, X, mode):
    svm = SVM_parallel(X, PROBLEM.y, len(X), PROBLEM.C, None, ALPHA, kernel=kernel, mode=mode)
    svm.lam.set_value(LAM)
    return svm


def values(kernel, X, Z, mode):
    """Return everything the paper computes, from one function: W, grad W, lam(t + 1), b, yhat."""
    from symsvm.objectives.dual import decisions

    svm = build(kernel, X, mode)
    W, update, b = svm.build_W(), svm.build_update(), svm.build_b()
    yhat = decisions(svm._shared(Z, "Z"), svm.lam, svm.X, svm.y, svm._lifted, b)
    outputs = [W, grad(W, svm.lam), update, b, yhat]
    return [np.asarray(v) for v in function([], outputs, mode=mode)()]


# Numba compiles each kernel for ten seconds. These are like others: functions of a.b, as "polynomial", or parts of
# "composed" (|a - b|^2 and the Laplacian kernel); "rbf" is in test_equations, on both backends.
ALIKE = ("homogeneous", "sigmoid", "custom", "rbf", "laplacian")
NAMES = [pytest.param(name, marks=[pytest.mark.slow] if name in ALIKE else []) for name in (*KERNELS, "precomputed")]


@pytest.mark.parametrize("name", NAMES)
def test_backends_agree_with_each_other_and_with_loops(name):
    if name == "precomputed":
        kernel, X = precomputed(PROBLEM.X)
        k, Z = (lambda x, z: kernel.gram[int(x[0]), int(z[0])]), X[2:7]
    else:
        (kernel, k), X, Z = KERNELS[name], PROBLEM.X, PROBLEM.Z
    y, C = PROBLEM.y, PROBLEM.C
    b = oracles.intercept(LAM, X, y, k)
    expected = [
        oracles.W(LAM, X, y, k),
        oracles.grad_W(LAM, X, y, k),
        oracles.step(LAM, X, y, k, C, ALPHA),
        b,
        [oracles.decision(z, LAM, X, y, k, b) for z in Z],
    ]
    for mode in MODES:
        for value, reference in zip(values(kernel, X, Z, mode), expected, strict=True):
            np.testing.assert_allclose(value, reference, rtol=1e-10, atol=1e-10, err_msg=mode)
