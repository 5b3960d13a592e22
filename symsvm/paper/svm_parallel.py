"""SVM_parallel: the class of the paper, thin over the modules that hold the mathematics.

svm = SVM_parallel(X, y, m, C, sigma, alpha)
svm.build_W()                                 # Eq. 21, 25, 31, 32
svm.build_update()                            # Eq. 22 to 26
svm.train_model_full(max_iters=250)           # W before each step
svm.build_b()                                 # Eq. 29
svm.make_predictions_parallel(Z)              # Eq. 30
"""

import sys
import warnings
from functools import cached_property
from itertools import islice

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.traversal import explicit_graph_inputs
from tqdm import tqdm

from symsvm._lib.validation import choice, count, dtype, number, points, signs
from symsvm.compiler.functions import function, resolve_mode
from symsvm.evaluation.evaluator import KernelEvaluator
from symsvm.evaluation.spectrum import lambda_max
from symsvm.kernels import RBF, Kernel
from symsvm.objectives import CSVC, Platt
from symsvm.objectives.certificate import certify_svc
from symsvm.objectives.dual import decision, decisions, intercept
from symsvm.objectives.losses import probability
from symsvm.solvers import ProjectedGradient, compile

__all__ = ["SVM_parallel"]


class SVM_parallel:
    """A support vector machine trained by projected gradient descent on its dual (Eq. 21, 25).

    Parameters
    ----------
    X : points (m, d).
    y : labels (m,), two different values; the smaller one stands for -1 (Eq. 4).
    m : the number of points, which must agree with X.
    C : the upper bound of lam, C > 0 (Eq. 17, 21).
    sigma : the width of the RBF kernel, sigma > 0 (Eq. 33); None with another `kernel`.
    alpha : the step size (Eq. 25), to be kept below `largest_stable_step()`.
    kernel : any `Kernel` in place of RBF(sigma).
    random_state : a seed or a NumPy generator for the first lam, uniform on [0, 1) as the author's.
    projection : "paper" applies P and then Pi (Eq. 26) and may end infeasible; "exact" projects onto both at once.
    mode : the backend, "NUMBA" (default), "JAX" or another PyTensor mode.
    dtype : "float64" or "float32".

    Attributes
    ----------
    X, y, C, lam : shared variables.
    W, update, b : graphs over them, made by `build_W`, `build_update` and `build_b`.

    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0, 0, 1, 1])
    >>> svm = SVM_parallel(X, y, 4, 1.0, 1.0, 0.5, random_state=0, projection="exact", mode="FAST_COMPILE")
    >>> W = svm.train_model_full(max_iters=100)
    >>> print(svm.certificate().status, np.sign(svm.make_predictions_parallel(X)))
    optimal [-1. -1.  1.  1.]
    """

    def __init__(
        self,
        X,
        y,
        m,
        C,
        sigma,
        alpha,
        *,
        kernel=None,
        random_state=None,
        projection="paper",
        mode=None,
        dtype="float64",
    ):
        self.dtype = _dtype(dtype)
        X = points(X, dtype=self.dtype)
        self.m = count(m, "m", least=1)
        if self.m != len(X):
            raise ValueError(f"m={self.m} disagrees with X, which has {len(X)} points.")
        y = signs(y, m=self.m, dtype=self.dtype)
        C = number(C, "C", positive=True)
        self.alpha = number(alpha, "alpha", positive=True)
        self.projection = choice(projection, "projection", ("paper", "exact"))
        self.mode = resolve_mode(mode)
        self.kernel = _kernel(kernel, sigma)
        self.kernel.check_points(X)
        # Static shapes let JAX compile a reduce; numbers in shared variables let Numba reuse what it compiled.
        self.X, self.y = self._shared(X, "X"), self._shared(y, "y")
        self.C = self._shared(C, "C")
        self.lam = self._shared(_generator(random_state).random(self.m), "lam")
        self._lifted = self.kernel.lift(lambda name, value: self._shared(value, name))
        pair = self._lifted.checked_pair(self.X[0], self.X[0])  # a kernel that is no scalar says so now
        free = list(explicit_graph_inputs([pair]))
        if free:
            raise ValueError(f"the kernel has the free input {free[0]}: give a number or a shared variable instead.")
        self.W = self.update = self.b = None
        self._objective = self._solver = self._program = self._last = None
        self._functions = {}

    def __repr__(self):
        C = float(self.C.get_value())
        return f"SVM_parallel(m={self.m}, C={C:g}, alpha={self.alpha:g}, kernel={self.kernel!r}, {self.projection!r})"

    def _shared(self, value, name):
        with np.errstate(over="ignore", under="ignore"):
            given, value = value, np.asarray(value, dtype=self.dtype)
        if not value.ndim and (not np.isfinite(value) or (value == 0 and given != 0)):
            raise ValueError(f"{name}={given!r} does not fit into {self.dtype}.")
        return pytensor.shared(value, name=name, shape=value.shape)

    def build_W(self):
        """Build the dual objective W(lam), a reduce inside a reduce, and return its graph (Eq. 21, 25, 31, 32)."""
        self._objective = CSVC(self.lam, self.X, self.y, self.C, self._lifted)
        self.W = self._objective.value
        return self.W

    def build_update(self, alpha=None, beta=0.0):
        """Build one step, lam(t + 1) of Eq. 25, and return its graph (Eq. 22 to 26).

        alpha overrides the constructor's; beta multiplies lam itself, as in the author's program (0 leaves it out).
        """
        if self.W is None:
            self.build_W()
        alpha = self.alpha if alpha is None else number(alpha, "alpha", positive=True)
        self._solver = ProjectedGradient(alpha, beta=beta, projection=self.projection)
        step = (pt.constant(np.asarray(v, dtype=self.dtype)) for v in self._solver.start())
        (self.update, *_), _, _ = self._solver.step(self._objective, self.lam, *step)
        self._program = None
        return self.update

    def train_model_full(self, max_iters=250):
        """Take `max_iters` steps (Eq. 25) and return W before each of them, (max_iters,).

        The exact projection starts from the projection of lam. lam is left where the last step ended, also after
        Ctrl-C. An alpha of `largest_stable_step()` or more, or a W that rises, warns and names that step; a W that is
        not finite warns and stops.
        """
        max_iters = count(max_iters, "max_iters")
        if self.update is None:
            self.build_update()
        if self._program is None:
            self._program = compile(self._objective, self._solver, mode=self.mode)
        alpha, limit = self._solver.alpha, self.largest_stable_step()
        if alpha >= limit:
            self._warn(f"alpha={alpha:g} is not below the largest stable step 2 / lambda_max = {limit:.4g}")
        history = []
        steps = islice(self._program.steps(self._program.initial_state()), max_iters)
        # On a terminal only: disable=None asks tqdm to look.
        for _, W, _, new in tqdm(steps, total=max_iters, desc="W", disable=None, file=sys.stderr, leave=False):
            history.append(W)
            if not np.isfinite(W):
                self._warn(f"W is not finite after {len(history) - 1} steps: training stopped, see W and the kernel")
                break
            self.lam.set_value(new)
        W = np.array(history)
        rises = np.flatnonzero(np.diff(W) > 1e-6 * np.abs(W[:-1]))
        if len(rises) and alpha < limit:
            why = "P then Pi is no projection: use projection='exact'" if self.projection == "paper" else "lower alpha"
            t = rises[0]
            self._warn(
                f"W rose from {W[t]:.6g} to {W[t + 1]:.6g} after step {t + 1} with alpha={alpha:g}, though it is below "
                f"the largest stable step {limit:.4g} ({why})"
            )
        return W

    def build_b(self, over="all"):
        """Build the intercept b and return its graph (Eq. 29).

        over : "all" averages over all m points as Eq. 29 prints it, "free" over the free support vectors, for which
        alone Eq. 27 holds.
        """
        choice(over, "over", ("all", "free"))
        C = self.C if over == "free" else None
        self.b = intercept(self.lam, self.X, self.y, self._lifted, C)
        self._functions.pop("b", None)
        return self.b

    def make_predict(self, x):
        """Return the decision value yhat(x) of one point (d,) (Eq. 30); its sign is the class."""
        if np.ndim(x) != 1:
            raise ValueError(f"x must be one point (d,), got the shape {np.shape(x)}; make_predictions takes several.")
        return float(self._predict(points([x], "x", d=self._d, dtype=self.dtype))[0])

    def make_predictions(self, X):
        """Return the decision values of the rows of X, one after the other (Eq. 30)."""
        return self._predict(points(X, d=self._d, dtype=self.dtype))

    def make_predictions_parallel(self, X):
        """Return the decision values of the rows of X, `_TILE` rows at a time: a reduce inside a map (Eq. 30)."""
        Z = points(X, d=self._d, dtype=self.dtype)
        self.kernel.check_points(Z)
        # Tiles of one shape: a row's value does not depend on how many rows stand beside it.
        padded = np.concatenate([Z, np.repeat(Z[:1], -len(Z) % _TILE, axis=0)])
        tile, b = self._input("Z", (_TILE, self._d)), self._input("b", ())
        compiled = self._compiled("decisions", lambda: ([tile, b], decisions(tile, *self._model, b)))
        value = self._b()
        tiles = [np.asarray(compiled(padded[i : i + _TILE], value)) for i in range(0, len(padded), _TILE)]
        self._last = Z
        return np.concatenate(tiles)[: len(Z)]

    def make_prob_Pratt(self, y01, alpha=0.01, training_steps=10000, *, yhat=None):
        """Return P(y = 1) by Platt's sigmoid, fitted to labels 0 and 1 by gradient descent on the cross-entropy.

        Parameters
        ----------
        y01 : the true labels of the points with the decision values `yhat`; never the predictions themselves.
        alpha, training_steps : step size and number of steps.
        yhat : decision values; by default those of the points last given to `make_predictions_parallel`, else of the
            training points. Points that were not trained on give honest probabilities, training points too confident
            ones.
        """
        if yhat is None:
            yhat = self.make_predictions_parallel(self.X.get_value() if self._last is None else self._last)
        try:
            yhat, t = np.asarray(yhat, dtype=self.dtype), np.asarray(y01, dtype=self.dtype)
        except (TypeError, ValueError) as error:
            raise TypeError(f"y01 and yhat must be numbers: {error}.") from None
        if not np.isfinite(yhat).all():
            raise ValueError("yhat must be finite.")
        if t.shape != yhat.shape:
            raise ValueError(f"y01 must hold a label for each of the {yhat.shape} decision values, got {t.shape}.")
        if not np.isin(t, (0, 1)).all():
            raise ValueError("y01 must hold the labels 0 and 1; (y + 1) / 2 turns -1 and +1 into them.")
        training_steps = count(training_steps, "training_steps", least=1)
        AB = self._shared(np.zeros(2), "AB")
        fit = Platt(AB, self._shared(yhat, "yhat"), self._shared(t, "t"))
        program = compile(fit, ProjectedGradient(alpha), mode=self.mode)
        for _, _, g, new in islice(program.steps([AB.get_value()]), training_steps):
            AB.set_value(new)
            slope = np.abs(g).max()
        self.A, self.B = map(float, AB.get_value())
        if slope > 1e-2:
            self._warn(
                f"Platt's sigmoid is not fitted after {training_steps} steps (gradient {slope:.1e}): raise alpha or "
                "training_steps"
            )
        return np.asarray(function([], probability(pt.constant(yhat), AB), mode="FAST_COMPILE")())

    def largest_stable_step(self):
        """2 / lambda_max of the Hessian of W: below it no exact step of Eq. 25 raises W from a feasible point.

        The Hessian y_i y_j K(x_i, x_j) has the eigenvalues of K itself, for the signs y turn axes only. A little above
        it the steps may still settle (the projection removes a direction); far above it they jump about the box.
        """
        largest = lambda_max(self._oracle.operator(self.X.get_value()), self.m)
        return np.inf if largest == 0 else 2 / largest

    def certificate(self, tol=1e-3):
        """Certify the present lam in float64: gap, violation and infeasibility |y.lam| (Eq. 9 to 11, 17, 21)."""
        tol = number(tol, "tol", positive=True)
        X, y, lam = self.X.get_value(), self.y.get_value().astype("float64"), self.lam.get_value()
        Kq = self._oracle.matvec(X, X, lam * y)
        return certify_svc(lam, Kq, y, float(self.C.get_value()), tol=tol, is_psd=self.kernel.is_psd)

    @property
    def objective_(self):
        """The problem as an `Objective` (Eq. 21), built when it is first asked for."""
        if self._objective is None:
            self.build_W()
        return self._objective

    @property
    def program_(self):
        """The `Program` that trains, None until `train_model_full` compiles it."""
        return self._program

    @property
    def _d(self):
        return self.X.get_value(borrow=True).shape[1]

    @property
    def _model(self):
        return self.lam, self.X, self.y, self._lifted

    @cached_property
    def _oracle(self):
        """K in float64, whatever the dtype of the training, at the present values of its hyper-parameters."""
        return KernelEvaluator(self._lifted, mode=self.mode)

    def _b(self):
        """The number b: a graph would sum over all pairs again for each point."""
        if self.b is None:
            self.build_b()
        return np.asarray(self._compiled("b", lambda: ([], self.b))())

    def _predict(self, Z):
        """The decision values of points, one call a point."""
        self.kernel.check_points(Z)
        x, b = self._input("x", (self._d,)), self._input("b", ())
        compiled, value = self._compiled("decision", lambda: ([x, b], decision(x, *self._model, b))), self._b()
        return np.array([compiled(z, value) for z in Z], dtype=self.dtype)

    def _input(self, name, shape):
        return pt.tensor(name, dtype=self.dtype, shape=shape)

    def _compiled(self, name, build):
        """Compile the (inputs, output) that `build` returns, once."""
        if name not in self._functions:
            inputs, output = build()
            self._functions[name] = function(inputs, output, mode=self.mode)
        return self._functions[name]

    def _warn(self, message):
        from sklearn.exceptions import ConvergenceWarning  # here, for scikit-learn is slow to import

        warnings.warn(f"SVM_parallel: {message}.", ConvergenceWarning, stacklevel=3)


def _kernel(kernel, sigma):
    if kernel is None:
        return RBF(number(sigma, "sigma", positive=True))
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a symsvm kernel, such as RBF(sigma=1.0), got {kernel!r}.")
    if sigma is not None:
        raise ValueError(f"sigma={sigma!r} belongs to the default kernel: pass sigma=None beside kernel={kernel!r}.")
    return kernel.__sklearn_clone__()  # a change of the user's own does not reach into a trained machine


def _generator(random_state):
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(f"random_state must be a seed or a NumPy generator, got {random_state!r}: {error}.") from None


_TILE = 256  # rows of a tile of predictions
_dtype = dtype  # the constructor's argument has the same name
