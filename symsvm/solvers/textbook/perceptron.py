"""The perceptrons: pass over the points, and correct each mistake (seed 004).

    for each i in turn:    if y_i <theta, x_i> <= 0:    theta <- theta + y_i x_i        until no i is wrong

x_i has a last feature 1, whose weight is the intercept. A step of a run is one pass.
"""

import pytensor.tensor as pt
from pytensor.graph.replace import vectorize_graph
from pytensor.scan import scan

from symsvm.compiler.functions import value_and_grad
from symsvm.solvers.solver_info import SolverInfo
from symsvm.solvers.textbook.separation_program import SeparationProgram

__all__ = ["KernelPerceptron", "Perceptron"]


class Perceptron:
    """Separate two classes by a hyperplane, over the points or over features of them: any that does.

    From theta = 0 it makes at most (R / gamma)^2 mistakes, R the largest |x_i| and gamma the least distance
    y_i <u, x_i> of a point to the best hyperplane through 0 with a normal u of length 1 (Novikoff 1962): each mistake
    adds gamma or more to <theta, u> and R^2 or less to |theta|^2. Where nothing separates the classes it would go on
    for ever: it stops after `max_iter` passes, and the certificate has a proof.

    Parameters
    ----------
    prove : whether to look for the proof, by a linear program with a variable a point; over a kernel that takes minutes
        for some thousand points.

    References
    ----------
    F. Rosenblatt, The perceptron, Psychological Review 65 (1958).

    >>> import numpy as np
    >>> from symsvm.objectives import PerceptronRisk
    >>> from symsvm.solvers import solve
    >>> X, y = np.array([[-1.0, 0.0], [0.5, 1.0], [2.0, 1.0]]), np.array([-1, 1, 1])
    >>> solution = solve(PerceptronRisk(X, y), "perceptron", mode="FAST_COMPILE")
    >>> solution.lam.tolist(), str(solution.certificate)
    ([1.5, 1.0, 0.0], 'optimal: separated, 2 mistakes in 2 passes')
    """

    info = SolverInfo(
        name="perceptron",
        problems=("separation",),
        backends=("numba", "jax"),
        equation="theta <- theta + y_i x_i if y_i <theta, x_i> <= 0, for each i in turn; x or Phi(x)",
        reference="seed 004; Rosenblatt (1958), Novikoff (1962)",
        accuracy="every point on its side, or a proof that no hyperplane does it",
    )
    by_rows = True

    def __init__(self, *, prove=True):
        self.prove = bool(prove)

    @property
    def structure(self):
        """What its graphs depend on: nothing but the algorithm."""
        return (type(self),)

    def program(self, objective, solver, **options):
        """What `compile` returns."""
        return SeparationProgram(objective, solver, **options)

    def start(self):
        """Return the numbers of the state: none."""
        return ()

    def init(self, objective, v):
        """The graphs of the vectors of the state: theta alone, or lam."""
        return (v,)

    def step(self, objective, v):
        """The graphs of v after a pass, of the risk at the present v, and of who was on the wrong side in the pass."""
        W, _ = value_and_grad(objective.value, v)
        i, row = objective.row
        index = pt.arange(objective.m, dtype="int64")
        A = vectorize_graph(row, {i: index})  # y_i x_i, or y_i y_j (K_ij + 1), a row each
        new, wrong = scan(
            self.visit, sequences=[index, A], outputs_info=[v, None], n_steps=objective.m, return_updates=False
        )
        return (new[-1],), W, wrong

    def visit(self, i, row, theta):
        """theta + y x if x is on the wrong side, y <theta, x> <= 0, else theta; and whether it was. `row` is y x."""
        wrong = ((theta * row).sum() <= 0).astype(theta.dtype)
        return theta + wrong * row, wrong

    def __repr__(self):
        return f"{type(self).__name__}({'' if self.prove else 'prove=False'})"


class KernelPerceptron(Perceptron):
    """Separate two classes in the feature space of a kernel: lam counts the mistakes, and is the model.

        f(x) = sum_i lam_i y_i (K(x_i, x) + 1)

    It is `Perceptron` over Phi(x) and a last feature 1, and makes the same mistakes. The matrix of the kernel is held.

    References
    ----------
    M. Aizerman, E. Braverman, L. Rozonoer, Theoretical foundations of the potential function method in pattern
    recognition learning, Automation and Remote Control 25 (1964).
    """

    info = SolverInfo(
        name="kernel-perceptron",
        problems=("kernel-separation",),
        backends=("numba", "jax"),
        equation="lam_i <- lam_i + 1 if y_i sum_j lam_j y_j (K_ij + 1) <= 0, for each i in turn",
        reference="seed 004; Aizerman, Braverman and Rozonoer (1964)",
        accuracy="every point on its side, or a proof that nothing in the kernel's space does it",
    )

    def visit(self, i, row, lam):
        """lam_i + 1 if y_i f(x_i) <= 0, else lam_i; and whether it was. `row` is y_i y_j (K_ij + 1) over all j."""
        wrong = ((lam * row).sum() <= 0).astype(lam.dtype)
        return pt.set_subtensor(lam[i], lam[i] + wrong), wrong
