"""The kernel classifiers SVC and NuSVC, with scikit-learn's parameters and attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from symsvm.estimators.kernel_classifier import KernelClassifier
from symsvm.objectives import QuadraticProgram
from symsvm.objectives.machine_duals import c_svc_dual, nu_svc_dual
from symsvm.solvers.convergence import warn_convergence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytensor.compile.mode import Mode

    from symsvm.estimators.kernel_estimator import KernelLike

__all__ = ["SVC", "NuSVC"]

# The share of a box that counts as reached: rounding may leave a variable just below its bound.
_AT_BOUND = 1 - 1e-9


class SVC(KernelClassifier):
    """C-support vector classification (Eq. 16, 21), with scikit-learn's interface and a certificate.

    The problem, for two classes y = -1 and 1, is::

        minimise 1/2 |w|^2 + sum_i C_i max(0, 1 - y_i (w.Phi(x_i) + b))

    Parameters
    ----------
    C : float, default=1.0
        The penalty; C_i = C times class weight times sample weight. `np.inf` is the hard margin, which the points must
        have.
    kernel : str, Kernel or callable, default="rbf"
        A name ("linear", "poly", "rbf", "sigmoid", "laplacian" or "precomputed"), a symsvm kernel such as
        `RBF(0.5) + 0.1 * Linear()`, whose parameters are `kernel__k1__sigma` and so on, or a function K(X, Z)
        that returns a matrix.
    degree : int, default=3
        The degree of the kernel "poly".
    gamma : float or {"scale", "auto"}, default="scale"
        The factor in the kernels "rbf", "poly", "sigmoid" and "laplacian"; "scale" is 1 / (d var X), "auto" is
        1 / d.
    coef0 : float, default=0.0
        The constant in the kernels "poly" and "sigmoid".
    shrinking : bool, default=True
        Accepted as in scikit-learn, without effect: the solver always shrinks where it helps.
    tol : float, default=1e-3
        The largest KKT violation to accept, as LIBSVM defines it, in float64.
    cache_size : float, default=200
        Accepted as in scikit-learn, without effect: there is no kernel cache.
    class_weight : dict or "balanced", optional
        The weight of each class, 1 for classes that a dict does not name; "balanced" gives all classes the same
        total weight.
    verbose : bool or int, default=False
        Whether to draw a progress bar on a terminal, and to print a line for each problem elsewhere.
    max_iter : int, default=-1
        The most outer iterations of the solver for each problem; -1 for no limit.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        The shape of `decision_function` for k > 2 classes: (n, k), or (n, k (k - 1) / 2) for pairs of classes.
    break_ties : bool, default=False
        Whether `predict` breaks ties of votes by the sums of the decision values; otherwise the first of the classes
        with the most votes is predicted.
    random_state : int or RandomState, optional
        The seed of the calibration's folds.
    multi_class : {"ovo", "ovr", "dag"}, default="ovo"
        One problem for each pair of classes ("ovo"; "dag" is the same with k - 1 decisions a point), or for
        each class against the rest ("ovr").
    calibration : {"sigmoid", "isotonic"}, optional
        The method that fits probabilities to decision values by cross-validation; no probabilities by default.
    probability : bool, default="deprecated"
        Deprecated as in scikit-learn 1.9, with its FutureWarning: True fits the probabilities of
        `calibration="sigmoid"`, but `predict` stays as it is without them.
    fit_intercept : bool, default=True
        Whether there is an intercept b.
    penalize_intercept : bool, default=False
        Whether b is the weight of a constant feature, penalised like w; otherwise it is free.
    intercept_scaling : float, default=1.0
        The constant feature of a penalised intercept.
    time_limit : float, optional
        The most seconds for each problem.
    solver : str or solver, default="auto"
        A name from `symsvm.list_solvers("dual")`, "auto" for "decomposition", or a solver object.
    mode : str or Mode, optional
        The backend: "NUMBA" (the default), "JAX" or another PyTensor mode.

    Attributes
    ----------
    support_ : array of shape (n_SV,)
        The indices of the support vectors, by class.
    support_vectors_ : array or CSR of shape (n_SV, d)
        The support vectors; empty for a precomputed kernel and for functions.
    n_support_ : array of shape (k,)
        The number of support vectors of each class.
    dual_coef_ : array of shape (k - 1, n_SV)
        q = y lam at the support vectors, divided into rows as LIBSVM does; (k, n_SV) for one-vs-rest.
    intercept_ : array of shape (problems,)
        The intercepts b.
    classes_ : array of shape (k,)
        The classes, in order.
    class_weight_ : array of shape (k,)
        The weight of each class.
    n_iter_ : array of shape (problems,)
        The number of outer iterations of each problem.
    fit_status_ : int
        0 if the violation is at most `tol`, 1 if the fit stopped before.
    shape_fit_ : tuple
        The shape of the training points.
    certificate_ : Certificate or list
        The optimality of the fit in float64: primal, dual, gap, violation and status.
    trace_ : dict or list
        Arrays of the fields of `Info`, an entry for each iteration.

    Examples
    --------
    >>> X, y = np.array([[-1.0], [-0.5], [0.5], [1.0]]), np.array(["no", "no", "yes", "yes"])
    >>> model = SVC(kernel="linear", C=10.0).fit(X, y)
    >>> model.predict([[0.2]]).tolist(), model.support_.tolist(), model.certificate_.status
    (['yes'], [1, 2], 'optimal')
    """

    def __init__(
        self,
        C: float = 1.0,
        kernel: KernelLike = "rbf",
        *,
        degree: int = 3,
        gamma: float | Literal["scale", "auto"] = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        verbose: bool | int = False,
        max_iter: int = -1,
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        random_state: int | np.random.RandomState | None = None,
        multi_class: Literal["ovo", "ovr", "dag"] = "ovo",
        calibration: Literal["sigmoid", "isotonic"] | None = None,
        probability: bool | Literal["deprecated"] = "deprecated",
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        intercept_scaling: float = 1.0,
        time_limit: float | None = None,
        solver: Any = "auto",
        mode: str | Mode | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.multi_class = multi_class
        self.calibration = calibration
        self.probability = probability
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.intercept_scaling = intercept_scaling
        self.time_limit = time_limit
        self.solver = solver
        self.mode = mode

    _has_hard_margin = True

    def _dual(self, kernel):
        return c_svc_dual(kernel, intercept=self.intercept_mode == "free")

    def _program(self, y, weights):
        C = self.finite_C * weights
        return QuadraticProgram.c_svc(y, C, intercept=self.intercept_mode == "free")


class NuSVC(KernelClassifier):
    """Nu-support vector classification, with scikit-learn's interface and a certificate.

    nu is an upper bound on the share of margin errors and a lower bound on that of support vectors. If nu is less than
    the share of margin errors that no w can avoid, the optimum is w = 0 with the margin rho = 0, and the decision
    function does not separate the classes (Crisp and Burges, A geometric interpretation of nu-SVM classifiers, 1999).
    A fit then warns; its decision values are rounding errors.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1], and at most twice the share of the smaller class (by weight) of each pair of classes.
    kernel : str, Kernel or callable, default="rbf"
        A name ("linear", "poly", "rbf", "sigmoid", "laplacian" or "precomputed"), a symsvm kernel such as
        `RBF(0.5) + 0.1 * Linear()`, whose parameters are `kernel__k1__sigma` and so on, or a function K(X, Z)
        that returns a matrix.
    degree : int, default=3
        The degree of the kernel "poly".
    gamma : float or {"scale", "auto"}, default="scale"
        The factor in the kernels "rbf", "poly", "sigmoid" and "laplacian"; "scale" is 1 / (d var X), "auto" is
        1 / d.
    coef0 : float, default=0.0
        The constant in the kernels "poly" and "sigmoid".
    shrinking : bool, default=True
        Accepted as in scikit-learn, without effect: the solver always shrinks where it helps.
    tol : float, default=1e-3
        The largest KKT violation to accept, as LIBSVM defines it, in float64.
    cache_size : float, default=200
        Accepted as in scikit-learn, without effect: there is no kernel cache.
    class_weight : dict or "balanced", optional
        The weight of each class, as for `SVC`, in proportion to which the bounds are. Where nu is more than the
        lighter class of a pair then allows, the largest feasible nu is used: every point of that class is a
        margin error.
    verbose : bool or int, default=False
        Whether to draw a progress bar on a terminal, and to print a line for each problem elsewhere.
    max_iter : int, default=-1
        The most outer iterations of the solver for each problem; -1 for no limit.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        The shape of `decision_function` for k > 2 classes: (n, k), or (n, k (k - 1) / 2) for pairs of classes.
    break_ties : bool, default=False
        Whether `predict` breaks ties of votes by the sums of the decision values; otherwise the first of the classes
        with the most votes is predicted.
    random_state : int or RandomState, optional
        The seed of the calibration's folds.
    multi_class : {"ovo", "ovr", "dag"}, default="ovo"
        One problem for each pair of classes ("ovo"; "dag" is the same with k - 1 decisions a point), or for
        each class against the rest ("ovr").
    calibration : {"sigmoid", "isotonic"}, optional
        The method that fits probabilities to decision values by cross-validation; no probabilities by default.
    probability : bool, default="deprecated"
        Deprecated as in scikit-learn 1.9, with its FutureWarning: True fits the probabilities of
        `calibration="sigmoid"`, but `predict` stays as it is without them.
    time_limit : float, optional
        The most seconds for each problem.
    solver : str or solver, default="auto"
        A name from `symsvm.list_solvers("dual")`, "auto" for "decomposition", or a solver object.
    mode : str or Mode, optional
        The backend: "NUMBA" (the default), "JAX" or another PyTensor mode.

    Attributes
    ----------
    support_ : array of shape (n_SV,)
        The indices of the support vectors, by class.
    support_vectors_ : array or CSR of shape (n_SV, d)
        The support vectors; empty for a precomputed kernel and for functions.
    n_support_ : array of shape (k,)
        The number of support vectors of each class.
    dual_coef_ : array of shape (k - 1, n_SV)
        q / rho at the support vectors, as LIBSVM does, so that margins are at -1 and 1; layout as in `SVC`.
    intercept_ : array of shape (problems,)
        The intercepts b / rho.
    classes_ : array of shape (k,)
        The classes, in order.
    class_weight_ : array of shape (k,)
        The weight of each class.
    n_iter_ : array of shape (problems,)
        The number of outer iterations of each problem.
    fit_status_ : int
        0 if the violation is at most `tol`, 1 if the fit stopped before.
    shape_fit_ : tuple
        The shape of the training points.
    certificate_ : Certificate or list
        The optimality of the fit in float64: primal, dual, gap, violation and status.
    trace_ : dict or list
        Arrays of the fields of `Info`, an entry for each iteration.
    """

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: float | Literal["scale", "auto"] = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        verbose: bool | int = False,
        max_iter: int = -1,
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        random_state: int | np.random.RandomState | None = None,
        multi_class: Literal["ovo", "ovr", "dag"] = "ovo",
        calibration: Literal["sigmoid", "isotonic"] | None = None,
        probability: bool | Literal["deprecated"] = "deprecated",
        time_limit: float | None = None,
        solver: Any = "auto",
        mode: str | Mode | None = None,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.multi_class = multi_class
        self.calibration = calibration
        self.probability = probability
        self.time_limit = time_limit
        self.solver = solver
        self.mode = mode

    single_class_note = "specified nu is infeasible: "

    def _dual(self, kernel):
        return nu_svc_dual(kernel)

    def _program(self, y, weights):
        if self.class_weight is None:
            return QuadraticProgram.nu_svc(y, self.nu, weights)
        # Class weights make classes unequal on purpose: where nu is infeasible, all of the lighter class is at bounds.
        classes = weights[y > 0], weights[y < 0]
        nu = min(self.nu, 2 * min(map(np.sum, classes)) / weights.sum())
        # In units of a class's weight: tol is a difference of sums of them. The mean of the points' weights would be
        # another one if a point of weight 2 were there twice.
        weights = weights / self.class_weight_[self.class_weight_ > 0].min()
        return QuadraticProgram.nu_svc(y, nu, weights)

    def _decision_terms(self, solution):
        """The coefficients and the intercept of f / rho; those of f where rho is 0 to the accuracy of the fit."""
        b, rho = self._margin(solution)
        rho = rho if _exceeds_violation(rho, solution) else 1.0
        return solution.z / rho, b / rho

    def _margin(self, solution):
        """From the multipliers (b_+, b_-) of the classes: b = (b_+ + b_-) / 2, rho = (b_- - b_+) / 2.

        Where class weights put every point of one class at its bound, the multiplier of that class is not unique: the
        boundary then passes through the best of its points, and rho is the multiplier's distance to the other class.
        """
        plus, minus = solution.b
        if self.class_weight is not None:
            if solution.program is None:  # read from a file
                raise AttributeError("the margin of class weights needs the variables of the fit: fit the model again.")
            program, z = solution.program, solution.z
            reached = np.abs(z) >= (program.upper - program.lower) * _AT_BOUND
            full = [bool(reached[program.group == g].all()) for g in (0, 1)]
            if full[0] != full[1]:
                return (plus if full[0] else minus), minus - plus
        return (plus + minus) / 2, (minus - plus) / 2

    def lacks_margin(self) -> bool:
        """Whether a problem of the fit converged to the margin 0, where the classes are not separated.

        Returns
        -------
        bool
            True if nu is too small for one of the problems.
        """
        converged = [solution for solution in self.solutions_ if solution.stopped == "tol"]
        return any(not _exceeds_violation(self._margin(solution)[1], solution) for solution in converged)

    def _store(self, X, support, solutions):
        super()._store(X, support, solutions)
        if self.lacks_margin():
            warn_convergence(
                f"nu={self.nu:g} is too small for these points and this kernel: the margin at the optimum is 0 within "
                f"tol={self.tol:g}, so the decision function does not separate the classes. Use a larger nu or another "
                "kernel."
            )


def _exceeds_violation(rho, solution):
    """Whether a margin is larger than the remaining violation, to which the multipliers are known."""
    return rho > solution.trace["violation"][-1]
