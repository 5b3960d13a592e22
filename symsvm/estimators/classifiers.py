"""SVC and NuSVC: classifiers over a kernel, with scikit-learn's parameters and attributes."""

import numpy as np

from symsvm._lib.validation import number
from symsvm.estimators.classifier import Classifier
from symsvm.objectives import QuadraticProgram
from symsvm.objectives.machine_dual import MachineDual
from symsvm.solvers.convergence import warn_convergence

__all__ = ["SVC", "NuSVC"]


class SVC(Classifier):
    """C-support vector classification (Eq. 16, 21), with scikit-learn's interface and a certificate.

        minimise 1/2 |w|^2 + sum_i C_i max(0, 1 - y_i (w.Phi(x_i) + b))

    Parameters
    ----------
    C : the penalty; C_i = C times class weight times sample weight.
    kernel : "rbf", "linear", "poly", "sigmoid", "laplacian", "precomputed", a function K(X, Z) that returns a matrix,
        or any symsvm kernel, such as `RBF(0.5) + 0.1 * Linear()`; its parameters are `kernel__sigma` and so on.
    degree, gamma, coef0 : of kernels named by a string, as in scikit-learn; gamma "scale" is 1 / (d var X).
    tol : the largest KKT violation, as LIBSVM means it, in float64.
    class_weight : a dict from class to weight, or "balanced".
    max_iter, time_limit : the most outer iterations of the solver (-1 for no limit) and the most seconds of a problem.
    multi_class : "ovo" (pairs of classes), "dag" (the same, with k - 1 decisions a point) or "ovr" (one against rest).
    decision_function_shape : "ovr" (n, k) or "ovo" (n, pairs).
    break_ties : of scikit-learn; ties of votes are always broken by the decision values, so it changes nothing.
    calibration : None, "sigmoid" or "isotonic": probabilities by cross-validation.
    fit_intercept, penalize_intercept, intercept_scaling : b free, as the weight of a constant feature, or none.
    random_state : the seed of the calibration's folds.
    solver : "auto" (which is "decomposition"), another name of `symsvm.list_solvers("dual")`, or a solver object.
    mode : the backend, "NUMBA" or "JAX".
    shrinking, cache_size : of scikit-learn; this solver shrinks where it helps and has no cache: they change nothing.

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, classes_, class_weight_, n_iter_, fit_status_,
    shape_fit_ : as in scikit-learn. dual_coef_ is q = y lam at the support vectors.
    certificate_, trace_ : how good the fit is, in float64, and how it came about.

    >>> X, y = np.array([[-1.0], [-0.5], [0.5], [1.0]]), np.array(["no", "no", "yes", "yes"])
    >>> model = SVC(kernel="linear", C=10.0).fit(X, y)
    >>> model.predict([[0.2]]).tolist(), model.support_.tolist(), model.certificate_.status
    (['yes'], [1, 2], 'optimal')
    """

    def __init__(
        self,
        C=1.0,
        kernel="rbf",
        *,
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        verbose=False,
        max_iter=-1,
        decision_function_shape="ovr",
        break_ties=False,
        random_state=None,
        multi_class="ovo",
        calibration=None,
        fit_intercept=True,
        penalize_intercept=False,
        intercept_scaling=1.0,
        time_limit=None,
        solver="auto",
        mode=None,
    ):
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
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.intercept_scaling = intercept_scaling
        self.time_limit = time_limit
        self.solver = solver
        self.mode = mode

    def _program(self, signs, weights):
        return QuadraticProgram.c_svc(
            signs, number(self.C, "C", positive=True) * weights, intercept=self.intercept_mode == "free"
        )

    def _dual(self, kernel):
        return MachineDual.c_svc(kernel, self.C, intercept=self.intercept_mode == "free")


class NuSVC(Classifier):
    """nu-support vector classification: nu bounds the part of margin errors above and of support vectors below.

    Parameters
    ----------
    nu : in (0, 1], at most twice the part of the smaller class (by weight) of each pair of classes.
    class_weight : bounds in proportion, as of `SVC`. Where they make nu more than the lighter class of a pair allows,
        the largest nu that is feasible takes its place: every point of that class is a margin error then.
    The others are those of `SVC`.

    Attributes
    ----------
    As of `SVC`; `dual_coef_` and `intercept_` are divided by rho, as LIBSVM does, so that margins are at 1 and -1.

    Where nu is less than the part of margin errors that no w can avoid, the optimum is w = 0 with the margin rho = 0,
    and nothing tells the classes apart (Crisp and Burges, A geometric interpretation of nu-SVM classifiers, 1999). A
    fit says so in a warning; its numbers are what rounding leaves.
    """

    def __init__(
        self,
        *,
        nu=0.5,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        verbose=False,
        max_iter=-1,
        decision_function_shape="ovr",
        break_ties=False,
        random_state=None,
        multi_class="ovo",
        calibration=None,
        time_limit=None,
        solver="auto",
        mode=None,
    ):
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
        self.time_limit = time_limit
        self.solver = solver
        self.mode = mode

    def _program(self, signs, weights):
        if self.class_weight is None:
            return QuadraticProgram.nu_svc(signs, self.nu, weights)
        # Class weights mean to make classes unequal: where nu is too much for the lighter one, all of it is at bounds.
        lighter = min(weights[signs > 0], weights[signs < 0], key=np.sum)
        # In units of the lighter class's weights: tol is a difference of sums of them.
        return QuadraticProgram.nu_svc(signs, min(self.nu, 2 * lighter.sum() / weights.sum()), weights / lighter.mean())

    def _dual(self, kernel):
        return MachineDual.nu_svc(kernel, self.nu)

    def _scaled(self, solution):
        """The coefficients and the intercept of f / rho; of f where the margin is nothing to divide by."""
        b, rho = self._margin(solution)
        rho = rho if _is_known(rho, solution) else 1.0
        return solution.lam / rho, b / rho

    def _margin(self, solution):
        """With the multipliers (b_+, b_-) of the classes: b = (b_+ + b_-) / 2, rho = (b_- - b_+) / 2.

        Where class weights put every point of a class at its bound, its side of the margin is wherever one likes: the
        border goes through the best of its points, and the margin is the other class's.
        """
        plus, minus = solution.b
        program, z = solution.program, solution.lam
        reached = np.abs(z) >= (program.upper - program.lower) * (1 - 1e-9)
        full = [bool(reached[program.group == g].all()) for g in (0, 1)]
        if self.class_weight is not None and full[0] != full[1]:
            return (plus if full[0] else minus), minus - plus
        return (plus + minus) / 2, (minus - plus) / 2

    def lacks_margin(self):
        """Whether a problem of the fit has ended at its optimum, and nothing tells its classes apart there."""
        ended = [solution for solution in self.solutions_ if solution.stopped == "tol"]
        return any(not _is_known(self._margin(solution)[1], solution) for solution in ended)

    def _keep(self, X, support, solutions):
        super()._keep(X, support, solutions)
        if self.lacks_margin():
            warn_convergence(
                f"nu={self.nu:g} is too small for these points and this kernel: at the optimum the margin is 0, as far "
                f"as tol={self.tol:g} tells, and nothing tells classes apart. Take a larger nu, or another kernel."
            )


def _is_known(rho, solution):
    """Whether a margin is more than the violation that is left, which the multipliers are known to."""
    return rho > solution.trace["violation"][-1]
