"""`SVM_parallel`, the class of the paper, a thin layer over the modules that implement its equations."""

from __future__ import annotations

import sys
import warnings
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.traversal import explicit_graph_inputs
from tqdm import tqdm

from symsvm._lib.validation import choice, count, dtype, number, number_or_vector, points, signs
from symsvm.compiler.functions import function, resolve_mode
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.evaluation.spectrum import lambda_max
from symsvm.kernels import RBF, Kernel
from symsvm.objectives import CSVC, Platt
from symsvm.objectives.argument_checks import check_kernel
from symsvm.objectives.certificate import certify_svc
from symsvm.objectives.dual import decision, decisions, intercept
from symsvm.objectives.losses import probability
from symsvm.solvers import ProjectedGradient, compile

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike
    from pytensor.compile.mode import Mode

    from symsvm._lib.types import Array, Graph
    from symsvm.objectives import Certificate
    from symsvm.solvers import Program

__all__ = ["SVM_parallel"]

_TILE = 256  # rows of a tile of predictions
_RISE = 1e-6  # relative increase of W in a step that is more than rounding
_FITTED = 1e-2  # largest gradient of a fit of Platt's sigmoid that counts as converged
_dtype = dtype  # the constructor's argument has the same name


class SVM_parallel:
    """A support vector machine trained by projected gradient descent on its dual (Eq. 21, 25).

    Call `build_W`, `build_update`, `train_model_full`, `build_b` and `make_predictions_parallel`, in this order.

    Parameters
    ----------
    X, y : array_like
        Points (m, d), and labels (m,) with two different values, of which the smaller becomes -1 (Eq. 4).
    m : int
        The number of points, which must agree with X.
    C : float
        The upper bound of lam, C > 0 (Eq. 17, 21).
    sigma : float, array_like (d,) or None
        The width of the RBF kernel, sigma > 0 (Eq. 33), or one for each feature; None with another `kernel`.
    alpha : float
        The step size (Eq. 25), which should be below `largest_stable_step()`.
    kernel : Kernel, optional
        A kernel in place of RBF(sigma).
    random_state : int or numpy.random.Generator, optional
        A seed or a generator for the first lam, uniform on [0, 1) as in the author's program.
    projection : {"paper", "exact"}
        "paper" applies P and then Pi (Eq. 26) and may end infeasible; "exact" projects onto the intersection.
    mode : str or Mode, optional
        The backend: "NUMBA" (default), "JAX" or another PyTensor mode.
    dtype : {"float64", "float32"}
        The type to compute in.

    Attributes
    ----------
    X, y, C, lam : SharedVariable
        The data, the bound and the multipliers.
    W, update, b : TensorVariable or None
        Graphs over them, made by `build_W`, `build_update` and `build_b`.
    A, B : float
        The parameters of Platt's sigmoid, after `make_prob_Pratt`.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
    >>> svm = SVM_parallel(X, y, 4, 1.0, 1.0, 0.5, random_state=0, projection="exact", mode="FAST_COMPILE")
    >>> W = svm.train_model_full(max_iters=100)
    >>> print(svm.certificate().status, np.sign(svm.make_predictions_parallel(X)))
    optimal [-1. -1.  1.  1.]
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        m: int,
        C: float,
        sigma: ArrayLike | None,
        alpha: float,
        *,
        kernel: Kernel | None = None,
        random_state: int | np.random.Generator | None = None,
        projection: Literal["paper", "exact"] = "paper",
        mode: str | Mode | None = None,
        dtype: Literal["float64", "float32"] = "float64",
    ) -> None:
        self.dtype = _dtype(dtype)
        X = points(X, dtype=self.dtype)
        self.m = count(m, "m", least=1)
        if self.m != len(X):
            raise ValueError(f"m={self.m} disagrees with X, which has {len(X)} points.")
        y = signs(y, m=self.m, dtype=self.dtype)
        C = number(C, "C", positive=True)
        self.alpha = number(alpha, "alpha", positive=True)
        choice(projection, "projection", ("paper", "exact"))
        self.projection: Literal["paper", "exact"] = projection
        self.mode = resolve_mode(mode)
        self.kernel = _kernel(kernel, sigma)
        self.kernel.check_points(X)
        # JAX compiles a reduce only with static shapes; Numba reuses its code if numbers are in shared variables.
        self.X, self.y = self._shared(X, "X"), self._shared(y, "y")
        self.C = self._shared(C, "C")
        self.lam = self._shared(_generator(random_state).random(self.m), "lam")
        self._lifted = self.kernel.lift(lambda name, value: self._shared(value, name))
        pair = self._lifted.checked_pair(self.X[0], self.X[0])  # raises if the kernel is not a scalar
        free = list(explicit_graph_inputs([pair]))
        if free:
            raise ValueError(f"the kernel has the free input {free[0]}: give a number or a shared variable instead.")
        self.W = self.update = self.b = cast("Graph | None", None)
        self._objective: CSVC | None = None
        self._solver: ProjectedGradient | None = None
        self._program: Program | None = None
        self._last: Array | None = None  # the points last given to make_predictions_parallel
        self._functions: dict[str, Callable[..., Any]] = {}

    def __repr__(self) -> str:
        C = float(self.C.get_value())
        return f"SVM_parallel(m={self.m}, C={C:g}, alpha={self.alpha:g}, kernel={self.kernel!r}, {self.projection!r})"

    def _shared(self, value: Any, name: str) -> Any:
        with np.errstate(over="ignore", under="ignore"):
            array = np.asarray(value, dtype=self.dtype)
        if not array.ndim and (not np.isfinite(array) or (array == 0 and value != 0)):
            raise ValueError(f"{name}={value!r} does not fit into {self.dtype}.")
        return pytensor.shared(array, name=name, shape=array.shape)

    def build_W(self) -> Graph:
        """Build the graph of the dual objective W(lam), a reduce inside a reduce (Eq. 21, 25, 31, 32).

        Returns
        -------
        TensorVariable
            W, a scalar.
        """
        self._objective = CSVC(self.lam, self.X, self.y, self.C, self._lifted)
        self.W = self._objective.value
        return self.W

    def build_update(self, alpha: float | None = None, beta: float = 0.0) -> Graph:
        """Build the graph of one step, lam(t + 1) of Eq. 25 (Eq. 22 to 26).

        Parameters
        ----------
        alpha : float, optional
            The step size, that of the constructor by default.
        beta : float
            The step adds beta lam, as in the author's program; 0 leaves it out.

        Returns
        -------
        TensorVariable
            The next lam (m,).
        """
        alpha = self.alpha if alpha is None else number(alpha, "alpha", positive=True)
        self._solver = ProjectedGradient(alpha, beta=beta, projection=self.projection)
        alpha_, beta_ = (pt.constant(np.asarray(v, dtype=self.dtype)) for v in self._solver.start())
        (update, *_), _, _ = self._solver.step(self.objective_, self.lam, alpha_, beta_)
        self.update, self._program = update, None
        return update

    def train_model_full(self, max_iters: int = 250) -> Array:
        """Take `max_iters` steps and record W (Eq. 25).

        The exact projection starts from the projection of lam. lam keeps the result of the last step, also after
        Ctrl-C. A warning names the step if alpha is at least `largest_stable_step()` or W increases; training stops
        with a warning if W is not finite.

        Parameters
        ----------
        max_iters : int
            The number of steps.

        Returns
        -------
        ndarray
            W before each step (max_iters,).
        """
        max_iters = count(max_iters, "max_iters")
        if self._solver is None:
            self.build_update()
        if self._program is None:
            self._program = cast("Program", compile(self.objective_, self._solver, mode=self.mode))
        alpha, limit = cast("Any", self._solver).alpha, self.largest_stable_step()
        if alpha >= limit:
            self._warn(f"alpha={alpha:g} is not below the largest stable step 2 / lambda_max = {limit:.4g}")
        history, steps = [], islice(self._program.steps(self._program.initial_state()), max_iters)
        # disable=None shows the bar on a terminal only.
        for _, W, _, new in tqdm(steps, total=max_iters, desc="W", disable=None, file=sys.stderr, leave=False):
            history.append(W)
            if not np.isfinite(W):
                self._warn(f"W is not finite after {len(history) - 1} steps: training stopped, see W and the kernel")
                break
            self.lam.set_value(new)
        W = np.array(history)
        rises = np.flatnonzero(np.diff(W) > _RISE * np.abs(W[:-1]))
        if len(rises) and alpha < limit:
            hint = "P then Pi is not exact: use projection='exact'" if self.projection == "paper" else "lower alpha"
            t = rises[0]
            self._warn(
                f"W rose from {W[t]:.6g} to {W[t + 1]:.6g} after step {t + 1} with alpha={alpha:g}, though it is below "
                f"the largest stable step {limit:.4g} ({hint})"
            )
        return W

    def build_b(self, over: Literal["all", "free"] = "all") -> Graph:
        """Build the graph of the intercept b (Eq. 29).

        Parameters
        ----------
        over : {"all", "free"}
            "all" averages over all m points as Eq. 29 prints it, "free" over the free support vectors, the only points
            for which Eq. 27 holds.

        Returns
        -------
        TensorVariable
            The scalar b.
        """
        choice(over, "over", ("all", "free"))
        C = self.C if over == "free" else None
        self.b = intercept(self.lam, self.X, self.y, self._lifted, C)
        self._functions.pop("b", None)
        return self.b

    def make_predict(self, x: ArrayLike) -> float:
        """Return the decision value yhat(x) of one point (Eq. 30); its sign is the class.

        Parameters
        ----------
        x : array_like
            The point (d,).

        Returns
        -------
        float
            The decision value.
        """
        if np.ndim(x) != 1:
            raise ValueError(f"x must be one point (d,), got the shape {np.shape(x)}; make_predictions takes several.")
        return float(self._predict(points(cast("ArrayLike", [x]), "x", d=self._d, dtype=self.dtype))[0])

    def make_predictions(self, X: ArrayLike) -> Array:
        """Return the decision values of points, computed one at a time (Eq. 30).

        Parameters
        ----------
        X : array_like
            Points (n, d).

        Returns
        -------
        ndarray
            The decision values (n,).
        """
        return self._predict(points(X, d=self._d, dtype=self.dtype))

    def make_predictions_parallel(self, X: ArrayLike) -> Array:
        """Return the decision values of points, a tile of them at a time: a reduce inside a map (Eq. 30).

        Parameters
        ----------
        X : array_like
            Points (n, d).

        Returns
        -------
        ndarray
            The decision values (n,).
        """
        Z = points(X, d=self._d, dtype=self.dtype)
        self.kernel.check_points(Z)
        # All tiles have one shape, so that the value of a row does not depend on the number of rows.
        padded = np.concatenate([Z, np.repeat(Z[:1], -len(Z) % _TILE, axis=0)])
        tile, b = pt.tensor("Z", dtype=self.dtype, shape=(_TILE, self._d)), pt.scalar("b", dtype=self.dtype)
        compiled = self._compiled("decisions", lambda: ([tile, b], decisions(tile, *self._model, b)))
        value = self._b()
        tiles = [np.asarray(compiled(padded[i : i + _TILE], value)) for i in range(0, len(padded), _TILE)]
        self._last = Z
        return np.concatenate(tiles)[: len(Z)]

    def make_prob_Pratt(
        self, y01: ArrayLike, alpha: float = 0.01, training_steps: int = 10000, *, yhat: ArrayLike | None = None
    ) -> Array:
        """Return P(y = 1) by Platt's sigmoid, fitted to labels 0 and 1 by gradient descent on the cross-entropy.

        Parameters
        ----------
        y01 : array_like
            The true labels 0 and 1 of the points with the decision values `yhat`, not their predictions.
        alpha : float
            The step size.
        training_steps : int
            The number of steps.
        yhat : array_like, optional
            Decision values; by default those of the points last given to `make_predictions_parallel`, else of the
            training points. Use points that were not trained on: training points give overconfident probabilities.

        Returns
        -------
        ndarray
            The probability of each point.
        """
        if yhat is None:
            yhat = self.make_predictions_parallel(self.X.get_value() if self._last is None else self._last)
        try:
            values, t = np.asarray(yhat, dtype=self.dtype), np.asarray(y01, dtype=self.dtype)
        except (TypeError, ValueError) as error:
            raise TypeError(f"y01 and yhat must be numbers: {error}.") from None
        if not np.isfinite(values).all():
            raise ValueError("yhat must be finite.")
        if t.shape != values.shape:
            raise ValueError(f"y01 must hold a label for each of the {values.shape} decision values, got {t.shape}.")
        if not np.isin(t, (0, 1)).all():
            raise ValueError("y01 must hold the labels 0 and 1; (y + 1) / 2 turns -1 and +1 into them.")
        training_steps = count(training_steps, "training_steps", least=1)
        AB = self._shared(np.zeros(2), "AB")
        fit = Platt(AB, self._shared(values, "yhat"), self._shared(t, "t"))
        program = cast("Program", compile(fit, ProjectedGradient(alpha), mode=self.mode))
        slope = np.inf
        for _, _, g, new in islice(program.steps([AB.get_value()]), training_steps):
            AB.set_value(new)
            slope = np.abs(g).max()
        self.A, self.B = map(float, AB.get_value())
        if slope > _FITTED:
            self._warn(
                f"Platt's sigmoid is not fitted after {training_steps} steps (gradient {slope:.1e}): raise alpha or "
                "training_steps"
            )
        return np.asarray(function([], probability(pt.constant(values), AB), mode="FAST_COMPILE")())

    def largest_stable_step(self) -> float:
        """Return 2 / lambda_max of the Hessian of W: a smaller exact step (Eq. 25) from a feasible lam never raises W.

        The Hessian y_i y_j K(x_i, x_j) has the eigenvalues of K, since the signs y only reflect axes. A slightly larger
        step may still converge, because the projection removes a direction; a much larger one oscillates in the box.

        Returns
        -------
        float
            The step size, infinite if K is 0.
        """
        largest = lambda_max(self._evaluator.operator(self.X.get_value()), self.m)
        return np.inf if largest == 0 else 2 / largest

    def certificate(self, tol: float = 1e-3) -> Certificate:
        """Certify the present lam in float64: gap, violation and infeasibility (Eq. 9 to 11, 17, 21).

        Parameters
        ----------
        tol : float
            The largest violation of an optimal point.

        Returns
        -------
        Certificate
            What is known about lam.
        """
        tol = number(tol, "tol", positive=True)
        X, y, lam = self.X.get_value(), self.y.get_value().astype("float64"), self.lam.get_value()
        Kq = self._evaluator.matvec(X, X, lam * y)
        return certify_svc(lam, Kq, y, float(self.C.get_value()), tol=tol, is_psd=self.kernel.is_psd)

    @property
    def objective_(self) -> CSVC:
        """The problem as an `Objective` (Eq. 21), built at the first access."""
        if self._objective is None:
            self.build_W()
        assert self._objective is not None
        return self._objective

    @property
    def program_(self) -> Program | None:
        """The `Program` that trains, None until `train_model_full` compiles it."""
        return self._program

    @property
    def _d(self) -> int:
        return self.X.get_value(borrow=True).shape[1]

    @property
    def _model(self) -> tuple[Any, Any, Any, Kernel]:
        return self.lam, self.X, self.y, self._lifted

    @cached_property
    def _evaluator(self) -> KernelEvaluator:
        """Evaluates K in float64, whatever the dtype of the training, at the present values of its hyper-parameters."""
        return KernelEvaluator(self._lifted, mode=self.mode)

    def _b(self) -> Array:
        """Return the number b; its graph in a prediction would sum over all pairs for each point."""
        if self.b is None:
            self.build_b()
        return np.asarray(self._compiled("b", lambda: ([], self.b))())

    def _predict(self, Z: Array) -> Array:
        """Return the decision values of points, one call per point."""
        self.kernel.check_points(Z)
        x, b = pt.tensor("x", dtype=self.dtype, shape=(self._d,)), pt.scalar("b", dtype=self.dtype)
        compiled, value = self._compiled("decision", lambda: ([x, b], decision(x, *self._model, b))), self._b()
        return np.array([compiled(z, value) for z in Z], dtype=self.dtype)

    def _compiled(self, name: str, build: Callable[[], tuple[list, Any]]) -> Callable[..., Any]:
        """Compile the (inputs, output) that `build` returns, once for each name."""
        if name not in self._functions:
            inputs, output = build()
            self._functions[name] = function(inputs, output, mode=self.mode)
        return self._functions[name]

    def _warn(self, message: str) -> None:
        from sklearn.exceptions import ConvergenceWarning  # here, since scikit-learn takes long to import

        warnings.warn(f"SVM_parallel: {message}.", ConvergenceWarning, stacklevel=3)


def _kernel(kernel: Kernel | None, sigma: ArrayLike | None) -> Kernel:
    """Return RBF(sigma), or a copy of the given kernel."""
    if kernel is None:
        return RBF(number_or_vector(sigma, "sigma", positive=True))
    check_kernel(kernel)
    if sigma is not None:
        raise ValueError(f"sigma={sigma!r} belongs to the default kernel: pass sigma=None with kernel={kernel!r}.")
    return kernel.__sklearn_clone__()  # later changes of the argument do not change the machine


def _generator(random_state: Any) -> np.random.Generator:
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(f"random_state must be a seed or a NumPy generator, got {random_state!r}: {error}.") from None
