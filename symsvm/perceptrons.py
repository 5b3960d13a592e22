"""The perceptron: any hyperplane that separates two classes, over the points, over features of them or over a kernel.

    for each i in turn:    if y_i <theta, x_i> <= 0:    theta <- theta + y_i x_i        until no i is wrong

x_i has a last feature 1, whose weight is the intercept. Where nothing separates the classes it would go on for ever:
here it stops after `max_passes`, and looks for a proof. By Gordan's theorem either some theta has y_i <theta, x_i> > 0
for all i, or some lam >= 0 other than 0 has sum_i lam_i y_i x_i = 0: a point in the convex hulls of both classes.
"""

from dataclasses import dataclass, field

import numpy as np
import pytensor.tensor as pt
from pytensor.scan import scan
from scipy.optimize import linprog

from symsvm.compiler import function
from symsvm.sums import each
from symsvm.validation import count, points, signs

__all__ = ["Separation", "hulls_meet", "kernel_perceptron", "kernel_step", "novikoff", "perceptron", "step"]


@dataclass(frozen=True)
class Separation:
    """What a perceptron ends with.

    Attributes
    ----------
    status : `separated`, `not separable` (`proof` shows it), `not yet` (the classes can be separated, by a linear
        program, but `max_passes` came first) or `unknown` (neither was found).
    theta : the weights, the intercept last; None over a kernel.
    lam : how often each point was wrong (m,): theta = start + sum_i lam_i y_i x_i.
    mistakes, passes : their sum, and the passes over the points.
    proof : lam >= 0 of sum 1 with sum_i lam_i y_i x_i = 0 up to rounding; None unless the status is `not separable`.
    """

    status: str
    theta: np.ndarray | None = field(repr=False)
    lam: np.ndarray = field(repr=False)
    mistakes: int
    passes: int
    proof: np.ndarray | None = field(default=None, repr=False)


def step(x, y, theta):
    """theta + y x if x is on the wrong side, y <theta, x> <= 0, else theta; and whether it was."""
    wrong = y * (theta * x).sum() <= 0
    return theta + pt.switch(wrong, y, 0.0) * x, wrong.astype(theta.dtype)


def kernel_step(i, K_i, y, lam):
    """lam_i + 1 if y_i sum_j lam_j y_j (K_ij + 1) <= 0, else lam_i: `step` where only inner products are known."""
    wrong = y[i] * (lam * y * (K_i + 1)).sum() <= 0
    return pt.set_subtensor(lam[i], lam[i] + wrong), wrong.astype(lam.dtype)


def perceptron(X, y, *, features=None, start=None, max_passes=1000, mode=None):
    """Separate two classes by a hyperplane; returns a `Separation`.

    From theta = 0 it makes at most (R / gamma)^2 mistakes, R the largest |x_i| and gamma the least distance
    y_i <u, x_i> of a point to the best hyperplane through 0 with a normal u of length 1 (Novikoff 1962): each mistake
    adds gamma or more to <theta, u> and R^2 or less to |theta|^2.

    Parameters
    ----------
    X, y : the points (m, d) and two labels.
    features : Phi, an expression of one point (a vector graph) that gives its features; the point itself by default.
    start : the first theta, the intercept last; 0 by default.
    max_passes : how many passes over the points to try.
    mode : the backend.

    >>> X, y = np.array([[-1.0, 0.0], [0.5, 1.0], [2.0, 1.0]]), np.array([-1, 1, 1])
    >>> perceptron(X, y, mode="FAST_COMPILE")
    Separation(status='separated', mistakes=2, passes=2)
    """
    X, y, max_passes = _points(X, y, max_passes)
    if features is not None:
        x = pt.matrix("x", shape=X.shape)
        X = points(function([x], each(features, x), mode=mode)(X), "features(X)")
    X = np.hstack([X, np.ones((len(X), 1))])
    theta = np.zeros(X.shape[1]) if start is None else np.array(start, dtype="float64")
    if theta.shape != X.shape[1:]:
        raise ValueError(f"start must hold {X.shape[1]} weights, the intercept last, got the shape {theta.shape}.")
    a, b, t = pt.matrix("X", shape=X.shape), pt.vector("y", shape=y.shape), pt.vector("theta", shape=theta.shape)
    thetas, wrong = scan(step, sequences=[a, b], outputs_info=[t, None], return_updates=False)
    one_pass = function([t, a, b], [thetas[-1], wrong], mode=mode)
    return _passes(lambda theta: one_pass(theta, X, y), theta, y, X, max_passes, keeps=True)


def kernel_perceptron(X, y, kernel, *, max_passes=1000, mode=None):
    """Separate two classes in the feature space of a kernel; returns a `Separation` whose lam is the model.

        f(x) = sum_i lam_i y_i (K(x_i, x) + 1)

    The matrix of the kernel is held. Parameters as those of `perceptron`, which it equals for the linear kernel.
    """
    X, y, max_passes = _points(X, y, max_passes)
    kernel.check_points(X)
    x = pt.matrix("x", shape=X.shape)
    K = np.asarray(function([x], kernel(x), mode=mode)(X))
    a, b, lam = pt.matrix("K", shape=K.shape), pt.vector("y", shape=y.shape), pt.vector("lam", shape=y.shape)
    index = pt.lvector("i", shape=y.shape)
    lams, wrong = scan(
        lambda i, K_i, lam, y: kernel_step(i, K_i, y, lam),
        sequences=[index, a],
        outputs_info=[lam, None],
        non_sequences=[b],
        return_updates=False,
    )
    one_pass = function([lam, index, a, b], [lams[-1], wrong], mode=mode)
    turns = np.arange(len(y))

    def inner():
        values, vectors = np.linalg.eigh(K + 1)
        kept = values > 1e-12 * values[-1]
        return vectors[:, kept] * np.sqrt(values[kept])

    return _passes(lambda lam: one_pass(lam, turns, K, y), np.zeros(len(y)), y, inner, max_passes, keeps=False)


def novikoff(theta, X, y):
    """(R / gamma)^2 with the gamma of this theta (the intercept last), which must separate; see `perceptron`."""
    X, y, _ = _points(X, y, 1)
    X = np.hstack([X, np.ones((len(X), 1))])
    gamma = float((y * (X @ theta)).min() / np.linalg.norm(theta))
    if gamma <= 0:
        raise ValueError("theta must separate the classes, and a point is on the wrong side.")
    return float((X**2).sum(axis=1).max()) / gamma**2


def hulls_meet(X, y):
    """lam >= 0 of sum 1 with sum_i lam_i y_i x_i = 0, False if a linear program finds none, None if it cannot say."""
    A = (y[:, None] * X).T / np.abs(X).max(initial=1e-300)
    limits = np.r_[np.zeros(len(A)), 1.0]
    found = linprog(np.zeros(len(y)), A_eq=np.vstack([A, np.ones(len(y))]), b_eq=limits, bounds=(0, None))
    if found.status == 2:
        return False
    proves = found.status == 0 and np.abs(A @ np.maximum(found.x, 0)).max() <= 1e-9
    return np.maximum(found.x, 0) if proves else None


def _passes(one_pass, state, y, X, max_passes, *, keeps):
    """Passes until none is wrong; X, or a function that makes it, is what a proof is about."""
    lam = np.zeros(len(y))
    for passes in range(1, max_passes + 1):
        state, wrong = (np.asarray(v) for v in one_pass(state))
        lam += wrong
        if not wrong.any():
            return Separation("separated", state if keeps else None, lam, int(lam.sum()), passes)
    proof = hulls_meet(X() if callable(X) else X, y)
    status = "unknown" if proof is None else "not yet" if proof is False else "not separable"
    proof = proof if isinstance(proof, np.ndarray) else None
    return Separation(status, state if keeps else None, lam, int(lam.sum()), max_passes, proof)


def _points(X, y, max_passes):
    X = points(X)
    return X, signs(y, m=len(X)), count(max_passes, "max_passes", least=1)
