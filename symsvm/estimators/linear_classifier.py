"""LinearSVC: classification by a linear machine, for many points or features, with scikit-learn's interface."""

import functools
import itertools

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from symsvm._lib.validation import choice, count, number
from symsvm.estimators.base import votes
from symsvm.estimators.calibration import CalibratedClassifier
from symsvm.estimators.linear_machine import LinearMachine
from symsvm.estimators.weights import class_weights, sample_weights, weighted_classes
from symsvm.linear import Stream, solve_crammer_singer, solve_linear

__all__ = ["LinearSVC"]


def _can_stream(machine):
    """Whether `partial_fit` is there: for the hinge loss, each class against the rest, the intercept as a weight."""
    wanted = {"loss": "hinge", "penalty": "l2", "multi_class": "ovr", "penalize_intercept": True, "calibration": None}
    for name, value in wanted.items():
        if getattr(machine, name) != value:
            raise AttributeError(f"partial_fit needs {name}={value!r}, got {getattr(machine, name)!r}.")
    return True


class LinearSVC(CalibratedClassifier, ClassifierMixin, LinearMachine):
    """Linear support vector classification for large problems, with liblinear's problem and a certificate.

        minimise R(w, b) + sum_i C_i loss(y_i (x_i.w + b)),    loss(t) = max(0, 1 - t)^2 or max(0, 1 - t)

    Parameters
    ----------
    penalty : "l2", R = 1/2 |w|^2, or "l1", R = |w|_1 (with the squared hinge).
    loss : "squared_hinge" or "hinge".
    C, class_weight : C_i = C times class weight times sample weight.
    tol : bounds the violation and the relative gap; see `symsvm.linear.solve_linear`.
    multi_class : "ovr" (each class against the rest), "ovo" (pairs of classes, votes) or "crammer_singer".
    fit_intercept, penalize_intercept, intercept_scaling : b is the weight of a constant feature, penalised as w is, as
        in liblinear; or free; or left out.
    calibration : None, "sigmoid" or "isotonic": probabilities by cross-validation.
    max_iter, time_limit : the most passes (-1 for no limit) and the most seconds of a problem.
    warm_start : begin at the weights of the last fit.
    dual : of scikit-learn; the algorithm is chosen by loss and shape whatever it is.
    stream_size : N, how many points `partial_fit` is to see in all; by default as many as in its first call.

    Attributes
    ----------
    coef_ (k, d), or (1, d) for two classes, intercept_, classes_, n_iter_ : as in scikit-learn.
    certificate_, trace_ : how good the fit is, in float64, and how it came about.
    """

    def __init__(
        self,
        penalty="l2",
        loss="squared_hinge",
        *,
        dual="auto",
        tol=1e-4,
        C=1.0,
        multi_class="ovr",
        fit_intercept=True,
        intercept_scaling=1.0,
        penalize_intercept=True,
        class_weight=None,
        verbose=0,
        random_state=None,
        max_iter=1000,
        calibration=None,
        time_limit=None,
        warm_start=False,
        stream_size=None,
    ):
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.penalize_intercept = penalize_intercept
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.calibration = calibration
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.stream_size = stream_size

    def fit(self, X, y, sample_weight=None):
        """Fit the machine to points (m, d), dense or CSR, and their labels."""
        self.__dict__.pop("streams_", None)
        self.__dict__.pop("n_samples_fit_", None)
        X, y = self.check_points(X, y)
        self.classes_, used, labels, _, weights = weighted_classes(X, y, sample_weight, self.class_weight)
        choice(self.multi_class, "multi_class", ("ovr", "ovo", "crammer_singer"))
        choice(self.loss, "loss", ("squared_hinge", "hinge"))
        points = X[used] if len(used) < len(y) else X
        C = number(self.C, "C", positive=True) * weights
        start = getattr(self, "solutions_", None) or None if self.warm_start else None
        fit = {"crammer_singer": self._together, "ovo": self._pairs}.get(self.multi_class, self._rest)
        fit = self._rest if len(self.classes_) == 2 and self.multi_class == "ovo" else fit
        self._begin_fit()
        solutions, coef, intercept = fit(points, labels, C, start)
        # Products with CSR points read the columns of coef_, and would copy it into that order for every one of them.
        order = "F" if hasattr(X, "tocsr") else "C"
        self.coef_ = np.asarray(np.atleast_2d(coef), order=order)
        self.intercept_ = np.atleast_1d(intercept).astype("float64")
        self.n_samples_fit_ = len(used)
        self._keep(solutions)
        if self.calibration is not None:
            self.calibrate(X, y, sample_weight=sample_weight)
        return self

    @available_if(_can_stream)
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Go on with some more points of a stream, (m, d), dense or CSR, none of which is kept.

        One averaged stochastic subgradient step a point, in random order (see `symsvm.linear.stochastic`), towards the
        machine that `fit` would find on N points like these, N = `stream_size`; the same points may come again. There
        is no certificate: nobody has seen all points. A stream after `fit` goes on from there, as if it had seen those
        points; `fit` after a stream forgets it.

        Parameters
        ----------
        classes : all classes that there will be; needed in the first call, unless it comes after `fit`.
        sample_weight : of the losses of these points.
        """
        first, seen = not hasattr(self, "streams_"), getattr(self, "n_samples_fit_", 0)
        X, y = self.check_points(X, y, reset=first and not seen)
        check_classification_targets(y)
        if first and not seen:
            if classes is None:
                raise ValueError("classes must be given in the first call of partial_fit: all that there will be.")
            self.classes_ = np.unique(classes)
            if len(self.classes_) < 2:
                raise ValueError(f"classes must hold at least two classes, got {len(self.classes_)} class.")
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes must be those of the first call, {self.classes_.tolist()}, got {classes!r}.")
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y must hold labels of the first call's classes, got {unknown[:3].tolist()} as well.")
        labels = np.searchsorted(self.classes_, y)
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' needs all labels at once: give partial_fit a dict of weights.")
        weights = sample_weights(sample_weight, X)
        weights = weights * class_weights(self.class_weight, self.classes_, labels, weights)[labels]
        seed = 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))
        rows, one = self._rows(X), len(self.classes_) == 2
        if first:
            self._begin(rows, seen)
        order = np.random.default_rng((seed, self.streams_[0].t)).permutation(len(y))
        for c, stream in enumerate(self.streams_):
            stream.see(rows, np.where(labels == c + one, 1.0, -1.0), weights, order)
        u = np.stack([stream.u for stream in self.streams_])
        self.coef_, self.intercept_ = u[:, :-1], rows.s * u[:, -1]
        self.t_ = self.streams_[0].t
        return self

    def _begin(self, rows, seen):
        """The streams, one a weight vector, from nothing or from a fit to so many points."""
        N = seen or rows.n if self.stream_size is None else count(self.stream_size, "stream_size", least=1)
        lam = 1 / (number(self.C, "C", positive=True) * N)
        starts = [None] * (1 if len(self.classes_) == 2 else len(self.classes_))
        if seen:
            starts = np.column_stack([self.coef_, self.intercept_ / (rows.s or 1.0)])
        self.streams_ = [Stream(rows.d, lam, u, seen) for u in starts]
        self.solutions_, self.n_iter_ = [], 1

    def _solve(self, rows, signs, C, start):
        """Solve the next problem of the fit."""
        options = self._options() | self._intercept_options() | {"loss": self.loss, "penalty": self.penalty}
        return self._watching.solve(functools.partial(solve_linear, rows, signs, C, start=start, **options))

    def _rest(self, X, labels, C, start):
        rows, k = self._rows(X), len(self.classes_)
        solutions = []
        for c in range(1, 2) if k == 2 else range(k):
            signs = np.where(labels == c, 1.0, -1.0)
            before = start[len(solutions)] if start is not None and len(start) > len(solutions) else None
            solutions.append(self._solve(rows, signs, C, before))
        return solutions, [s.w for s in solutions], [s.intercept for s in solutions]

    def _pairs(self, X, labels, C, start):
        solutions = []
        for a, b in itertools.combinations(range(len(self.classes_)), 2):
            here = np.flatnonzero((labels == a) | (labels == b))
            signs = np.where(labels[here] == a, 1.0, -1.0)
            before = start[len(solutions)] if start is not None and len(start) > len(solutions) else None
            solutions.append(self._solve(X[here], signs, C[here], before))
        return solutions, [s.w for s in solutions], [s.intercept for s in solutions]

    def _together(self, X, labels, C, start):
        if self.penalty != "l2" or not self.penalize_intercept:
            raise ValueError("multi_class='crammer_singer' needs penalty='l2' and penalize_intercept=True.")
        options = self._options() | {"intercept": bool(self.fit_intercept), "intercept_scaling": self.intercept_scaling}
        options["start"] = None if start is None else start[0]
        solution = self._watching.solve(functools.partial(solve_crammer_singer, X, labels, C, **options))
        w, b = solution.w.T, np.broadcast_to(solution.intercept, len(self.classes_))
        if len(self.classes_) == 2:
            return [solution], w[1] - w[0], [b[1] - b[0]]
        return [solution], w, b

    def decision_function(self, X):
        """x.w + b for each point: (n,) for two classes, else (n, k); votes for pairs of classes."""
        check_is_fitted(self)
        return self.decide(self.check_points(X, reset=False))

    def decide(self, X):
        """The decision values of checked points."""
        values = self.expansion(X)
        k = len(self.classes_)
        if k == 2:
            return values[:, 0]
        if self.multi_class != "ovo":
            return values
        return votes(values, k).astype(X.dtype, copy=False)

    def predict(self, X):
        """The class of each point; with a calibration, the one of the largest probability."""
        check_is_fitted(self)
        if self.calibration is not None:
            return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        values = self.decide(self.check_points(X, reset=False))
        return self.classes_[(values > 0).astype("int64") if values.ndim == 1 else np.argmax(values, axis=1)]

    @available_if(lambda self: self.calibration is not None)
    def predict_proba(self, X):
        """The probability of each class, (n, k), from decision values calibrated by cross-validation."""
        check_is_fitted(self)
        X = self.check_points(X, reset=False)
        return self.calibration_.probabilities(self.decide(X)).astype(X.dtype, copy=False)
