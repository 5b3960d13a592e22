"""Perceptrons: passes over the points that correct each mistake, and the proof where no hyperplane separates them.

::

    for each i in turn:    if y_i <theta, x_i> <= 0:    theta <- theta + y_i x_i        until no i is wrong

x_i has a last feature 1, whose weight is the intercept. One step of a run is one pass (as in P. Schmidt,
Support Vector Machines, theory and applications, slides).

By Gordan's theorem either some theta has y_i <theta, x_i> > 0 for all i, or some lam >= 0 other than 0 has
sum_i lam_i y_i x_i = 0: a point in the convex hulls of both classes. A linear program decides which.
"""

# pyright: reportAttributeAccessIssue=false, reportGeneralTypeIssues=false
# (`PerceptronRisk` has attributes that `Objective` lacks; PyTensor's functions have no return types.)

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import vectorize_graph
from pytensor.scan.basic import scan
from scipy.optimize import linprog

from symsvm._lib.validation import count, points, signs
from symsvm.compiler.functions import function, value_and_grad
from symsvm.objectives import PerceptronRisk
from symsvm.solvers.program import Program
from symsvm.solvers.solver import Solver, SolverInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, Graph
    from symsvm.kernels import Kernel
    from symsvm.objectives import Objective
    from symsvm.objectives.perceptron_risk import Separation
    from symsvm.solvers.solution import Solution

__all__ = [
    "KernelPerceptron",
    "Perceptron",
    "SeparationProgram",
    "convex_hulls_meet",
    "fit_kernel_perceptron",
    "fit_perceptron",
    "novikoff",
]

_RANK = 1e-12  # eigenvalues of a kernel matrix below this share of the largest count as 0
_PROOF = 1e-9  # the largest entry of A'lam, A scaled to 1, that a proof may leave


class Perceptron(Solver):
    """Find any hyperplane that separates two classes, over the points or over features of them.

    From theta = 0 it makes at most (R / gamma)^2 mistakes, R the largest norm of an x_i and gamma the least distance
    y_i <u, x_i> of a point to the best hyperplane through 0 with a normal u of length 1 (Novikoff 1962): each mistake
    adds gamma or more to <theta, u> and R^2 or less to the squared norm of theta. Where no hyperplane separates the
    classes it stops after `max_iter` passes, and the certificate has a proof.

    Parameters
    ----------
    prove : bool
        Whether to look for the proof, by a linear program with one variable per point. Over a kernel that takes minutes
        for some thousand points.

    References
    ----------
    F. Rosenblatt, The perceptron, Psychological Review 65 (1958).

    Examples
    --------
    >>> import numpy as np
    >>> from symsvm.objectives import PerceptronRisk
    >>> from symsvm.solvers import solve
    >>> X, y = np.array([[-1.0, 0.0], [0.5, 1.0], [2.0, 1.0]]), np.array([-1, 1, 1])
    >>> solution = solve(PerceptronRisk(X, y), "perceptron", mode="FAST_COMPILE")
    >>> solution.w.tolist(), str(solution.certificate)
    ([1.5, 1.0, 0.0], 'optimal: separated, 2 mistakes in 2 passes')
    """

    info = SolverInfo(
        name="perceptron",
        problems=("separation",),
        backends=("numba", "jax"),
        equation="theta <- theta + y_i x_i if y_i <theta, x_i> <= 0, for each i in turn; x or Phi(x)",
        reference="Rosenblatt (1958); Novikoff (1962); P. Schmidt (slides)",
        accuracy="every point on its side, or a proof that no hyperplane separates the classes",
    )
    by_rows = True

    def __init__(self, *, prove: bool = True) -> None:
        self.prove = bool(prove)

    @property
    def structure(self) -> Hashable:
        return (type(self),)

    def program(self, objective: Objective, solver: Perceptron, **options: Any) -> SeparationProgram:
        """Return what `compile` returns.

        Parameters
        ----------
        objective : PerceptronRisk
            The problem.
        solver : Perceptron
            The solver itself.
        **options : object
            See `compile`.

        Returns
        -------
        SeparationProgram
            The program.
        """
        return SeparationProgram(objective, solver, **options)

    # The state: theta, or lam over a kernel.
    def start(self) -> tuple[float, ...]:
        return ()

    def init(self, objective: Objective, lam: Graph) -> tuple[Graph, ...]:
        return (lam,)

    def step(self, objective: Objective, v: Graph) -> Any:
        """Return the graphs of one pass.

        Parameters
        ----------
        objective : PerceptronRisk
            The problem.
        v : TensorVariable
            The present theta, or lam over a kernel.

        Returns
        -------
        tuple
            The state after the pass, the risk at v, and which points were on the wrong side during the pass.
        """
        W, _ = value_and_grad(objective.value, v)
        i, row = objective.row
        index = pt.arange(objective.m, dtype="int64")
        A = vectorize_graph(row, {i: index})  # y_i x_i, or y_i y_j (K_ij + 1), one per row
        new, wrong = scan(
            self.visit, sequences=[index, A], outputs_info=[v, None], n_steps=objective.m, return_updates=False
        )
        return (new[-1],), W, wrong

    def visit(self, i: Graph, row: Graph, v: Graph) -> tuple[Graph, Graph]:
        """Return the state after the visit of one point.

        Parameters
        ----------
        i : TensorVariable
            The index of the point.
        row : TensorVariable
            The point times its label, y_i x_i; over a kernel y_i y_j (K_ij + 1) for all j.
        v : TensorVariable
            The present theta, or lam over a kernel.

        Returns
        -------
        v : TensorVariable
            The next theta or lam: corrected if the point is on the wrong side, y_i f(x_i) <= 0.
        wrong : TensorVariable
            1 if the point is on the wrong side, else 0.
        """
        wrong = ((v * row).sum() <= 0).astype(v.dtype)
        return v + wrong * row, wrong

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.prove else 'prove=False'})"


class KernelPerceptron(Perceptron):
    """Separate two classes in the feature space of a kernel; lam counts the mistakes, and is the model.

    ::

        f(x) = sum_i lam_i y_i (K(x_i, x) + 1)

    It is `Perceptron` over Phi(x) and a last feature 1, and makes the same mistakes. The kernel matrix is stored.

    Parameters
    ----------
    prove : bool
        See `Perceptron`.

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
        reference="Aizerman, Braverman and Rozonoer (1964); P. Schmidt (slides)",
        accuracy="every point on its side, or a proof that no hyperplane in the kernel's space separates the classes",
    )

    def visit(self, i: Graph, row: Graph, v: Graph) -> tuple[Graph, Graph]:
        wrong = ((v * row).sum() <= 0).astype(v.dtype)
        return pt.set_subtensor(v[i], v[i] + wrong), wrong


class SeparationProgram(Program):
    """A `PerceptronRisk` and a perceptron; `compile` makes one."""

    warns = False  # that no hyperplane was found is a result: the certificate has the proof

    def __init__(self, objective: Objective, solver: Perceptron, *, dtype: str | None = None, **options: Any) -> None:
        if dtype not in (None, "float64"):
            raise ValueError(f"{solver!r} counts its mistakes in float64: leave dtype out, got {dtype!r}.")
        super().__init__(objective, solver, **options)
        self._prove = solver.prove

    def run(self, start: ArrayLike | None = None, **options: Any) -> Solution:
        """Pass over the points until none is wrong, `max_iter` + 1 times at most; see `Program.run`.

        If a point is still wrong at the end, the certificate has a proof that nothing separates the classes, or says
        that something does. The linear program for that is solved when the certificate is first read.
        """
        solution = super().run(start, **options)
        if solution.stopped == "tol" or not self._prove:
            return solution
        return replace(solution, certify=lambda: self._decide_separability(solution.certificate))

    def _decide_separability(self, certificate: Any) -> Separation:
        proof = convex_hulls_meet(self._signed_points())
        if proof is None or proof is False:
            return replace(certificate, separable=None if proof is None else True)
        return replace(certificate, status="infeasible", separable=False, proof=proof)

    def _signed_points(self) -> Array:
        """y_i x_i, one per row; over a kernel some x_i that have its inner products."""
        i, row = self.objective.row
        A = np.asarray(function([], vectorize_graph(row, {i: pt.arange(self.objective.m)}), mode="FAST_COMPILE")())
        if self.objective.kernel is None:
            return A
        values, vectors = np.linalg.eigh((A + A.T) / 2)
        positive = values > _RANK * values[-1]
        return vectors[:, positive] * np.sqrt(values[positive])


def convex_hulls_meet(A: Array) -> Array | bool | None:
    """Return lam >= 0 of sum 1 with A'lam = 0, False if a linear program finds none, None if it cannot decide.

    >>> convex_hulls_meet(np.array([[1.0, 1.0], [-2.0, -1.0], [3.0, 1.0]])) is not False
    True
    """
    A = A.T / np.abs(A).max(initial=1e-300)
    m = A.shape[1]
    limits = np.r_[np.zeros(len(A)), 1.0]
    found = linprog(np.zeros(m), A_eq=np.vstack([A, np.ones(m)]), b_eq=limits, bounds=(0, None))
    if found.status == 2:  # infeasible
        return False
    proves = found.status == 0 and np.abs(A @ np.maximum(found.x, 0)).max() <= _PROOF
    return np.maximum(found.x, 0) if proves else None


def fit_perceptron(
    X: ArrayLike,
    y: ArrayLike,
    *,
    features: Callable[[Graph], Graph] | None = None,
    start: ArrayLike | None = None,
    max_passes: int = 1000,
    mode: Any = None,
) -> Separation:
    """Separate two classes by a hyperplane; see `symsvm.solvers.Perceptron`.

    Parameters
    ----------
    X : array_like
        The points (m, d).
    y : array_like
        Two labels, one per point.
    features : callable, optional
        Phi, an expression of one point (a vector graph) that gives its features; the point itself by default.
    start : array_like, optional
        The first theta, the intercept last; 0 by default.
    max_passes : int
        The limit on the passes over the points.
    mode : str or Mode, optional
        The backend: "NUMBA" (default), "JAX" or another PyTensor mode.

    Returns
    -------
    Separation
        The hyperplane, or the proof that there is none.

    Examples
    --------
    >>> X, y = np.array([[-1.0, 0.0], [0.5, 1.0], [2.0, 1.0]]), np.array([-1, 1, 1])
    >>> print(fit_perceptron(X, y, mode="FAST_COMPILE"))
    optimal: separated, 2 mistakes in 2 passes
    """
    risk = PerceptronRisk(X, y, features=features)
    n = len(risk.variable.get_value(borrow=True))
    if start is not None and np.shape(start) != (n,):
        raise ValueError(f"start must hold {n} weights, the intercept last, got the shape {np.shape(start)}.")
    return _fit(Perceptron(), risk, start, max_passes, mode)


def fit_kernel_perceptron(
    X: ArrayLike, y: ArrayLike, kernel: Kernel, *, max_passes: int = 1000, mode: Any = None
) -> Separation:
    """Separate two classes in the feature space of a kernel; see `symsvm.solvers.KernelPerceptron`.

    ::

        f(x) = sum_i lam_i y_i (K(x_i, x) + 1)

    For the linear kernel it equals `fit_perceptron`.

    Parameters
    ----------
    X : array_like
        The points (m, d).
    y : array_like
        Two labels, one per point.
    kernel : Kernel
        The kernel K.
    max_passes : int
        The limit on the passes over the points.
    mode : str or Mode, optional
        The backend: "NUMBA" (default), "JAX" or another PyTensor mode.

    Returns
    -------
    Separation
        The result; its lam is the model.
    """
    return _fit(KernelPerceptron(), PerceptronRisk(X, y, kernel=kernel), None, max_passes, mode)


def _fit(solver: Perceptron, risk: PerceptronRisk, start: ArrayLike | None, max_passes: int, mode: Any) -> Any:
    most = count(max_passes, "max_passes", least=1) - 1
    return SeparationProgram(risk, solver, mode=mode).run(start, max_iter=most).certificate


def novikoff(theta: ArrayLike, X: ArrayLike, y: ArrayLike) -> float:
    """Return (R / gamma)^2 with the gamma of this theta (the intercept last), which must separate; see `Perceptron`."""
    X = points(X)
    y = signs(y, m=len(X))
    X = np.hstack([X, np.ones((len(X), 1))])
    theta = np.asarray(theta)
    gamma = float((y * (X @ theta)).min() / np.linalg.norm(theta))
    if gamma <= 0:
        raise ValueError("theta must separate the classes, and a point is on the wrong side.")
    return float((X**2).sum(axis=1).max()) / gamma**2
