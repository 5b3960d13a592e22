"""SVC and NuSVC: classifiers over a kernel, with scikit-learn's parameters and attributes."""

import itertools

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from symsvm.estimators.calibration import Calibration
from symsvm.estimators.certified import votes
from symsvm.estimators.machine import KernelMachine
from symsvm.estimators.weights import weighted_classes
from symsvm.objectives import csvc, machine_dual, nu_svc
from symsvm.solvers.one_vs_one import solve_pairs
from symsvm.validation import choice, number

__all__ = ["SVC", "NuSVC"]


class _Classifier(ClassifierMixin, KernelMachine):
    """What both classifiers do: one problem for each pair of classes, or for each class against the rest."""

    def fit(self, X, y, sample_weight=None):
        """Fit the machine to points (m, d), dense or CSR, and their labels.

        Parameters
        ----------
        sample_weight : C_i = C weight_i, or the bound weight_i of nu-SVC; a weight of 0 takes a point out.
        """
        X, y = self._checked(X, y)
        self.classes_, used, labels, self.class_weight_, weights = self._labelled(X, y, sample_weight)
        choice(self.multi_class, "multi_class", ("ovo", "ovr", "dag"))
        choice(self.decision_function_shape, "decision_function_shape", ("ovo", "ovr"))
        if self.multi_class == "ovr" and self.decision_function_shape == "ovo" and len(self.classes_) > 2:
            raise ValueError(
                "decision_function_shape='ovo' needs multi_class='ovo' or 'dag': one-vs-rest has no pairs."
            )
        if len(used) < len(y) and self.kernel == "precomputed":
            points = X[np.ix_(used, used)]
        else:
            points = X[used] if len(used) < len(y) else X
        solve = self._rest if self.multi_class == "ovr" or len(self.classes_) == 2 else self._pairs
        coef, self.intercept_, solutions = solve(points, labels, weights)
        support = np.flatnonzero(np.any(coef != 0, axis=1))
        support = support[np.argsort(labels[support], kind="stable")]  # by class, as LIBSVM does
        self._coef = coef[support]
        self._keep(X, used[support], solutions)
        self.n_support_ = np.bincount(labels[support], minlength=len(self.classes_)).astype("int32")
        self.dual_coef_ = self._laid_out(labels[support])
        if self.calibration is not None:
            self._calibration = Calibration(self.calibration, self.random_state).fit(self, X, y, sample_weight)
        return self

    def _labelled(self, X, y, sample_weight):
        """What the labels and the weights come to; see `weighted_classes`."""
        return weighted_classes(X, y, sample_weight, self.class_weight)

    def _pairs(self, X, labels, weights):
        """A problem for each pair of classes: coefficients (m, pairs), intercepts, solutions."""
        k = len(self.classes_)
        order = np.argsort(labels, kind="stable")  # the points of a class side by side
        gram = self._bind(X[np.ix_(order, order)] if self.kernel == "precomputed" else X[order], weights[order])
        coef, intercepts, solutions = np.zeros((len(labels), k * (k - 1) // 2)), [], []

        def program(signs, rows):
            return self._program(signs, weights[order[rows]])

        for _, _, rows, solution in solve_pairs(gram, labels[order], program, self._solve):
            z, intercept = self._scaled(solution)
            coef[order[rows], len(solutions)] = z
            intercepts.append(intercept)
            solutions.append(solution)
        return coef, np.array(intercepts), solutions

    def _rest(self, X, labels, weights):
        """A problem for each class against the rest, over the same points; for two classes the second's is enough."""
        gram, k = self._bind(X, weights), len(self.classes_)
        gram.keeps = k > 2  # rows of one problem's working set serve the next
        coef, intercepts, solutions = [], [], []
        for c in range(k) if k > 2 else (1,):
            solution = self._solve(self._program(np.where(labels == c, 1.0, -1.0), weights), gram)
            z, b = self._scaled(solution)
            coef.append(z)
            intercepts.append(b)
            solutions.append(solution)
        gram.kept = None
        return np.column_stack(coef), np.array(intercepts), solutions

    def _scaled(self, solution):
        """The coefficients and the intercept of a decision function."""
        return solution.lam, self._intercept_of(solution)

    # ---- layout: in pairs the first class is +1 for more than two classes, the second for two, as in scikit-learn

    def _laid_out(self, labels):
        """The coefficients as `dual_coef_`: (k - 1, support vectors) for pairs, (k, support vectors) for the rest."""
        k = len(self.classes_)
        if self.multi_class == "ovr" or k == 2:
            return np.ascontiguousarray(self._coef.T)
        self.intercept_ = -self.intercept_
        laid = np.zeros((k - 1, len(labels)))
        for column, (a, b) in enumerate(itertools.combinations(range(k), 2)):
            laid[b - 1, labels == a] = -self._coef[labels == a, column]
            laid[a, labels == b] = -self._coef[labels == b, column]
        return laid

    def _coefficients(self):
        """One column for each problem, in the signs of `intercept_`."""
        pairs = self.multi_class != "ovr" and len(self.classes_) > 2
        return -self._coef if pairs else self._coef

    # ---- decisions

    def decision_function(self, X):
        """f(x) for each point: (n,) for two classes, else (n, k), or (n, k (k - 1) / 2) with shape "ovo".

        For pairs of classes the (n, k) are votes, with the sum of the decision values, squashed, to break ties.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        return self._decide(X, self.decision_function_shape).astype(X.dtype, copy=False)

    def _decide(self, X, shape="ovr"):
        values = self._values(X, self._coefficients()) + self.intercept_
        if len(self.classes_) == 2:
            return values[:, 0]
        if self.multi_class == "ovr" or shape == "ovo":
            return values
        return votes(values, len(self.classes_))

    def predict(self, X):
        """The class of each point; with a calibration, the one of the largest probability."""
        check_is_fitted(self)
        if self.calibration is not None:
            return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        X = self._checked(X, reset=False)
        if len(self.classes_) == 2:
            return self.classes_[(self._decide(X) > 0).astype("int64")]
        if self.multi_class == "dag":
            return self.classes_[self._walk(X)]
        values = self._values(X, self._coefficients()) + self.intercept_
        if self.multi_class == "ovr":
            return self.classes_[np.argmax(values, axis=1)]
        return self.classes_[np.argmax(votes(values, len(self.classes_)), axis=1)]

    def _walk(self, X):
        """The decision directed acyclic graph: each pair rules out a class, k - 1 of them a point."""
        k = len(self.classes_)
        first, last = np.zeros(X.shape[0], dtype="int64"), np.full(X.shape[0], k - 1)
        columns = {pair: column for column, pair in enumerate(itertools.combinations(range(k), 2))}
        coef = self._coefficients()
        for _ in range(k - 1):
            for a, b in sorted(set(zip(first.tolist(), last.tolist(), strict=True))):
                here = np.flatnonzero((first == a) & (last == b))
                column = columns[a, b]
                values = self._values(X[here], coef[:, column]) + self.intercept_[column]
                last[here[values >= 0]] -= 1
                first[here[values < 0]] += 1
        return first

    @available_if(lambda self: self.calibration is not None or _say_how())
    def predict_proba(self, X):
        """The probability of each class, (n, k), from decision values calibrated by cross-validation."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        return self._calibration.probabilities(self._decide(X)).astype(X.dtype, copy=False)

    @available_if(lambda self: self.calibration is not None or _say_how())
    def predict_log_proba(self, X):
        """The logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))


def _say_how():
    raise AttributeError("probabilities need calibration='sigmoid' or calibration='isotonic'.")


class SVC(_Classifier):
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
        return csvc(signs, number(self.C, "C", positive=True) * weights, intercept=self._intercept == "free")

    def _dual(self, kernel):
        return machine_dual.csvc(kernel, self.C, intercept=self._intercept == "free")


class NuSVC(_Classifier):
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
            return nu_svc(signs, self.nu, weights)
        # Class weights mean to make classes unequal: where nu is too much for the lighter one, all of it is at bounds.
        lighter = min(weights[signs > 0], weights[signs < 0], key=np.sum)
        # In units of the lighter class's weights: tol is a difference of sums of them.
        return nu_svc(signs, min(self.nu, 2 * lighter.sum() / weights.sum()), weights / lighter.mean())

    def _dual(self, kernel):
        return machine_dual.nu_svc(kernel, self.nu)

    def _scaled(self, solution):
        """With the multipliers (b_+, b_-) of the classes: b = (b_+ + b_-) / 2, rho = (b_- - b_+) / 2.

        Where class weights put every point of a class at its bound, its side of the margin is wherever one likes: the
        border goes through the best of its points, and the margin is the other class's.
        """
        plus, minus = solution.b
        program, z = solution.program, solution.lam
        reached = np.abs(z) >= (program.upper - program.lower) * (1 - 1e-9)
        full = [bool(reached[program.group == g].all()) for g in (0, 1)]
        if self.class_weight is not None and full[0] != full[1]:
            b, rho = (plus if full[0] else minus), minus - plus
        else:
            b, rho = (plus + minus) / 2, (minus - plus) / 2
        rho = rho if rho > 0 else 1.0
        return z / rho, b / rho
