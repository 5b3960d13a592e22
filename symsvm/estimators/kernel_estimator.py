"""KernelEstimator: what the five kernel estimators share: the kernel, the weights, the solver, the decision values."""

import difflib
import functools

import numpy as np
from sklearn.utils.validation import validate_data

from symsvm._lib.validation import choice, number
from symsvm.estimators.base import CertifiedEstimator
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.evaluation.local import LocalKernelMatrix
from symsvm.kernels import RBF, Kernel, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from symsvm.objectives import KernelDual
from symsvm.solvers import Decomposition, QuadraticProgramming, compile
from symsvm.solvers.decomposition.dual_program import solve_dual
from symsvm.solvers.registry import choose_solver

__all__ = ["KernelEstimator"]

KERNELS = ("linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed")


class KernelEstimator(CertifiedEstimator):
    """A support vector machine over a kernel, after scikit-learn's rules; see `SVC` for the parameters."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    # ---- the kernel

    def kernel_for(self, X, weights):
        """The kernel with its numbers for these points; None where X, or what a function made of it, is the matrix."""
        kernel = self.kernel
        if isinstance(kernel, Kernel):
            defaults = {"degree": 3, "gamma": "scale", "coef0": 0.0}
            changed = [name for name, value in defaults.items() if getattr(self, name, value) != value]
            if changed:
                raise ValueError(f"{changed[0]} belongs to kernels named by a string; {kernel!r} has its own.")
            return kernel
        if callable(kernel) or kernel == "precomputed":
            return None
        if kernel not in KERNELS:
            near = difflib.get_close_matches(str(kernel), KERNELS, 1, 0.0)[0]
            raise ValueError(
                f"kernel must be a Kernel, a function or one of {', '.join(KERNELS)}, got {kernel!r}; {near!r}?"
            )
        if kernel == "linear":
            return Linear()
        gamma = self._gamma_of(X, weights)
        if kernel == "rbf":
            return RBF.from_gamma(gamma)
        if kernel == "laplacian":
            return Laplacian(gamma=gamma)
        if kernel == "poly":
            return Polynomial(degree=self.degree, gamma=gamma, coef0=self.coef0)
        return Sigmoid(gamma=gamma, coef0=self.coef0)

    def _gamma_of(self, X, weights):
        """gamma, "auto" is 1 / d and "scale" 1 / (d var X), with the variance of all entries, rows weighted."""
        if not isinstance(self.gamma, str):
            return number(self.gamma, "gamma", positive=True)
        choice(self.gamma, "gamma", ("scale", "auto"))
        if self.gamma == "auto":
            return 1.0 / X.shape[1]
        total = weights.sum() * X.shape[1]
        if hasattr(X, "tocsr"):
            squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
            mean, square = weights @ np.asarray(X.sum(axis=1)).ravel() / total, weights @ squares / total
            variance = square - mean**2
        else:
            mean = weights @ X.sum(axis=1, dtype="float64") / total
            variance = weights @ ((X - mean) ** 2).sum(axis=1, dtype="float64") / total
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0

    # ---- the data

    def check_points(self, *data, **options):
        """X, or X and y, after scikit-learn's checks."""
        fitting = options.get("reset", True)
        options |= {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
        checked = validate_data(self, *data, **options)
        X = checked[0] if len(data) > 1 else checked
        if self.kernel == "precomputed" and fitting and X.shape[0] != X.shape[1]:
            raise ValueError(f"Precomputed matrix must be a square matrix between the points, got {X.shape}.")
        return checked

    def bind(self, X, weights):
        """Settle the kernel and return the `LocalKernelMatrix` of the points; a fit begins."""
        self._begin_fit()
        self.kernel_ = self.kernel_for(X, weights)
        if self.kernel_ is not None:
            points = X.astype("float64") if X.dtype != np.float64 else X
            self.kernel_.check_points(points)
            return LocalKernelMatrix(self._embedded(self.kernel_), points, mode=self.mode)
        K = X if self.kernel == "precomputed" else self.kernel(X, X)
        K = np.asarray(K.toarray() if hasattr(K, "tocsr") else K, dtype="float64")
        if K.shape != (X.shape[0], X.shape[0]):
            raise ValueError(f"kernel(X, X) must be a matrix between {X.shape[0]} points, got the shape {K.shape}.")
        if not np.allclose(K, K.T, rtol=1e-6, atol=1e-8 * np.abs(K).max(initial=0.0)):
            raise ValueError("the precomputed matrix must be symmetric: K(x, z) = K(z, x).")
        return LocalKernelMatrix(self._embedded(Precomputed(K)), Precomputed.points(len(K)), mode=self.mode)

    @property
    def intercept_mode(self):
        """How the intercept takes part: "free" (an equality of the dual), "embedded" (in the kernel) or "none"."""
        if not getattr(self, "fit_intercept", True):
            return "none"
        return "embedded" if getattr(self, "penalize_intercept", False) else "free"

    def _embedded(self, kernel):
        """The kernel with the constant feature that a penalised intercept is the weight of."""
        if self.intercept_mode != "embedded":
            return kernel
        constant = number(self.intercept_scaling, "intercept_scaling", positive=True) ** 2
        if isinstance(kernel, Precomputed):
            return Precomputed(kernel.gram + constant)
        return kernel + constant

    def _intercept_of(self, solution):
        """b, from the multiplier of the equality or from the weight of the constant feature."""
        if self.intercept_mode == "embedded":
            return number(self.intercept_scaling, "intercept_scaling") ** 2 * float(solution.lam.sum())
        return 0.0 if solution.b is None else solution.b

    # ---- the solver

    def _solve(self, program, gram, reuse=None):
        """Solve one program with the solver that was asked for; `reuse` hands on the working set of the fast one."""
        solver = choose_solver(self.solver, KernelDual.problem)
        limits = {"max_iter": None if self.max_iter == -1 else self.max_iter, "time_limit": self.time_limit}
        if isinstance(solver, Decomposition):
            limits |= {"is_psd": gram.kernel.is_psd, "verbose": int(self.verbose), "reuse": reuse, **solver.options}
            return self._watching.solve(functools.partial(solve_dual, program, gram, tol=self.tol, **limits))
        limits["max_iter"] = 100_000 if limits["max_iter"] is None else limits["max_iter"]
        X = gram.X.toarray() if hasattr(gram.X, "tocsr") else gram.X
        program = compile(KernelDual(program, X, gram.kernel), solver, mode=self.mode)
        alone = isinstance(solver, QuadraticProgramming)
        return self._watching.solve(functools.partial(program.run, tol=self.tol, **limits), alone=alone)

    def _keep(self, X, support, solutions):
        """Keep support vectors and what the solutions say; certificates are computed when they are read."""
        self._end_fit()
        self.support_ = support.astype("int32")
        self.support_vectors_ = X[support] if self.kernel_ is not None else np.empty((0, 0))
        # A copy: X may be changed later, and a function that meets the same array twice may round otherwise (A A').
        self.X_fit_ = X.copy() if callable(self.kernel) and self.kernel_ is None else None
        self.solutions_ = solutions
        self.fit_status_ = int(any(s.stopped != "tol" for s in solutions))
        self.n_iter_ = np.array([s.n_iter for s in solutions], dtype="int32")
        self.shape_fit_ = X.shape

    # ---- the decision values

    def expansion(self, X, coef):
        """sum_j K(x_i, v_j) coef_j over the support vectors, (n,) or one column for each of coef's."""
        if self.kernel_ is not None:
            if not len(coef):
                return np.zeros((X.shape[0], *coef.shape[1:]))
            return KernelEvaluator(self.kernel_, mode=self.mode).matvec(X.astype("float64"), self._vectors(), coef)
        if self.kernel == "precomputed":
            if X.shape[1] != self.shape_fit_[0]:
                raise ValueError(f"X must have a column for each of the {self.shape_fit_[0]} training points.")
            return X[:, self.support_] @ coef
        return np.asarray(self.kernel(X, self.X_fit_))[:, self.support_] @ coef

    def _vectors(self):
        V = self.support_vectors_
        return V if V.dtype == np.float64 else V.astype("float64")

    @property
    def coef_(self):
        """The weights w of a linear kernel, (problems, d)."""
        if self.kernel != "linear" and not isinstance(self.kernel, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        return self.decision_coef_.T @ self.support_vectors_

    @property
    def objective_(self):
        """The dual problem of the machine in symbols, over lam, X and y, for points of weight 1."""
        kernel = self.kernel_ if getattr(self, "kernel_", None) is not None else self.kernel
        if not isinstance(kernel, Kernel):
            raise AttributeError("objective_ needs a kernel with an expression: fit first, or give a Kernel object.")
        return self._dual(self._embedded(kernel))

    def explain(self, format="text"):
        """The dual problem of the machine and what the compiler makes of it: see `symsvm.explain`."""
        from symsvm.explanation import explain

        return explain(self, format=format)
