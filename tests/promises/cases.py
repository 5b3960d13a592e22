"""Cases: an estimator, a kernel, points of some shape, scale and type, weights and numbers; drawn from a seed.

A case is a handful of names and numbers, so that one that fails is a few readable lines; `make` gives its data, `build`
its estimator, `fit` its outcome. Pytest and the campaign (tools/fuzz.py) share all of it.
"""

import dataclasses
import functools
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import symsvm
from symsvm import RBF, Laplacian, Linear, Polynomial, pair_kernel

__all__ = [
    "KERNELS",
    "MACHINES",
    "UNTIMED",
    "Case",
    "Data",
    "Outcome",
    "build",
    "draw",
    "fit",
    "make",
    "solved",
    "tame",
]

# name -> class and parameters
MACHINES = {
    "SVC": ("SVC", {}),
    "SVC ovr": ("SVC", {"multi_class": "ovr"}),
    "SVC dag": ("SVC", {"multi_class": "dag"}),
    "SVC without intercept": ("SVC", {"fit_intercept": False}),
    "SVC, penalised intercept": ("SVC", {"penalize_intercept": True, "intercept_scaling": 2.0}),
    "NuSVC": ("NuSVC", {}),
    "NuSVC ovr": ("NuSVC", {"multi_class": "ovr"}),
    "SVR": ("SVR", {}),
    "SVR without intercept": ("SVR", {"fit_intercept": False}),
    "SVR, penalised intercept": ("SVR", {"penalize_intercept": True}),
    "NuSVR": ("NuSVR", {}),
    "OneClassSVM": ("OneClassSVM", {}),
    "LinearSVC": ("LinearSVC", {}),
    "LinearSVC hinge": ("LinearSVC", {"loss": "hinge"}),
    "LinearSVC hinge, free intercept": ("LinearSVC", {"loss": "hinge", "penalize_intercept": False}),
    "LinearSVC free intercept": ("LinearSVC", {"penalize_intercept": False}),
    "LinearSVC without intercept": ("LinearSVC", {"fit_intercept": False}),
    "LinearSVC l1": ("LinearSVC", {"penalty": "l1"}),
    "LinearSVC l1, free intercept": ("LinearSVC", {"penalty": "l1", "penalize_intercept": False}),
    "LinearSVC ovo": ("LinearSVC", {"multi_class": "ovo", "loss": "hinge"}),
    "LinearSVC crammer_singer": ("LinearSVC", {"multi_class": "crammer_singer", "intercept_scaling": 2.0}),
    "LinearSVR": ("LinearSVR", {}),
    "LinearSVR free intercept": ("LinearSVR", {"penalize_intercept": False}),
    "LinearSVR squared": ("LinearSVR", {"loss": "squared_epsilon_insensitive"}),
    "LinearSVR l1": ("LinearSVR", {"loss": "squared_epsilon_insensitive", "penalty": "l1"}),
}
REGRESSORS = ("SVR", "NuSVR", "LinearSVR")


def cauchy(x, z, scale):
    """A pair function that symsvm does not have: 1 / (1 + |x - z|^2 / scale)."""
    return 1 / (1 + ((x - z) ** 2).sum() / scale)


def gram(X, Z):
    """A kernel as a function of two arrays: an RBF kernel of width 1, by differences, in NumPy."""
    X, Z = (np.asarray(a.toarray() if sparse.issparse(a) else a, dtype="float64") for a in (X, Z))
    return np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2) / 2)


# name -> the parameters of an estimator, for a width that fits the scale of the points; for `PER_FEATURE` a vector
KERNELS = {
    "linear": lambda width: {"kernel": "linear"},
    "rbf": lambda width: {"kernel": "rbf"},
    "RBF": lambda width: {"kernel": RBF(width)},
    "narrow RBF": lambda width: {"kernel": RBF(width / 20)},
    "wide RBF": lambda width: {"kernel": RBF(width * 50)},
    "laplacian": lambda width: {"kernel": Laplacian(0.5 / width)},
    "widths": lambda width: {"kernel": RBF(width)},
    "laplacian widths": lambda width: {"kernel": Laplacian.from_sigma(width.tolist())},
    "poly": lambda width: {"kernel": "poly", "degree": 3, "coef0": 1.0},
    "Polynomial": lambda width: {"kernel": Polynomial(2, gamma=0.5, coef0=1.0)},
    "sigmoid": lambda width: {"kernel": "sigmoid"},
    "sum": lambda width: {"kernel": RBF(width) + 0.1 * Linear()},
    "product": lambda width: {"kernel": RBF(0.7 * width) * Linear() + 0.5},
    "pair": lambda width: {"kernel": pair_kernel(cauchy, scale=1.7 * width**2)},
    "precomputed": lambda width: {"kernel": "precomputed"},
    "function": lambda width: {"kernel": gram},
}
PER_FEATURE = ("widths", "laplacian widths")
# What the clock ends has no bits to compare: for comparisons of bits, far from what an ordinary case takes.
UNTIMED = {"time_limit": 30.0}
SHAPES = ("plain", "columns", "outlier", "clusters", "offset", "duplicates", "constant", "grid", "separable")
LAYOUTS = ("float64", "float32", "csr", "fortran", "list", "int", "frame")
WEIGHTS = ("none", "integers", "zeros", "reals", "wide")


@dataclass(frozen=True)
class Case:
    """All that a problem is made from; the defaults are the simplest one."""

    seed: int = 0
    machine: str = "SVC"
    kernel: str = "rbf"
    m: int = 20
    d: int = 2
    classes: int = 2
    shape: str = "plain"
    far: float = 0.0
    layout: str = "float64"
    log_scale: float = 0.0
    weights: str = "none"
    class_weight: str | None = None
    names: str = "integers"
    log_C: float = 0.0
    nu: float = 0.3
    epsilon: float = 0.1
    log_target: float = 0.0
    tol: float = 1e-3
    solver: str = "auto"
    mode: str | None = None
    max_iter: int | None = None

    @property
    def family(self):
        """The class of the estimator."""
        return MACHINES[self.machine][0]

    @property
    def is_linear(self):
        """Whether it is one of the linear machines, without a kernel."""
        return self.family.startswith("Linear")

    @property
    def classifies(self):
        """Whether its labels are classes."""
        return self.family.endswith("SVC")

    def but(self, **changes):
        """The case with some of its fields changed."""
        return dataclasses.replace(self, **changes)

    def __str__(self):
        default = Case()
        fields = [(f.name, getattr(self, f.name)) for f in dataclasses.fields(self)]
        return "Case(" + ", ".join(f"{n}={v!r}" for n, v in fields if v != getattr(default, n)) + ")"


class Data(NamedTuple):
    """The points as the estimator gets them, as the float64 numbers that they are, and further points Z."""

    X: Any
    dense: np.ndarray
    y: Any
    weight: Any
    Z: Any
    dense_Z: np.ndarray


def tame(rng, machines=None, kernels=None):
    """A random case whose numbers are of ordinary size."""
    return draw(rng, machines, kernels, wild=False)


def draw(rng, machines=None, kernels=None, wild=True):
    """A random case; without `wild`, one whose numbers are of ordinary size."""
    machine = str(rng.choice(machines or list(MACHINES)))
    family = MACHINES[machine][0]
    far, extreme = float(rng.choice([1.0, 3.0, 6.0, 8.0, 10.0])), wild and rng.random() < 0.15
    log_scale = 0.0 if rng.random() < 0.6 else float(rng.uniform(-5, 5))
    if extreme:
        log_scale = float(rng.uniform(-150, 150))
    layout = str(rng.choice(LAYOUTS, p=[0.4, 0.15, 0.2, 0.05, 0.05, 0.1, 0.05]))
    return Case(
        seed=int(rng.integers(2**31)),
        machine=machine,
        kernel="linear" if family.startswith("Linear") else str(rng.choice(kernels or list(KERNELS))),
        m=int(rng.integers(5, 61)),
        d=int(rng.integers(1, 6)),
        classes=int(rng.choice([2, 2, 2, 3, 4])) if family.endswith("SVC") else 2,
        shape=str(rng.choice(SHAPES)),
        far=far if wild else min(far, 3.0),
        layout=layout,
        log_scale=round(log_scale if wild else log_scale / 5, 3),
        weights=str(rng.choice(WEIGHTS, p=[0.4, 0.15, 0.15, 0.2, 0.1])),
        class_weight=[None, "balanced", "dict"][int(rng.choice(3, p=[0.7, 0.2, 0.1]))]
        if family.endswith("SVC")
        else None,
        names=str(rng.choice(["integers", "texts", "signs"])),
        log_C=round(float(rng.uniform(-4, 4) if wild else rng.uniform(-2, 2)), 3),
        nu=round(float(rng.uniform(0.05, 0.6)), 3),
        epsilon=float(rng.choice([0.0, 0.01, 0.1, 0.5])),
        log_target=round(float(rng.uniform(-20, 20)), 3) if extreme and rng.random() < 0.3 else 0.0,
        tol=float(rng.choice([1e-3, 1e-4, 1e-6])),
    )


@functools.lru_cache(maxsize=8)
def make(case):
    """The data of a case."""
    rng = np.random.default_rng(case.seed)
    m, d = case.m, case.d
    labels = rng.permutation(np.arange(m) % case.classes)
    centres = rng.normal(size=(case.classes, d)) * (8.0 if case.shape == "separable" else 0.8)
    X = rng.normal(size=(m, d)) + centres[labels]
    Z = rng.normal(size=(17, d)) + centres[rng.integers(case.classes, size=17)]
    X, Z = _shaped(case, X, Z, rng)
    targets = (np.sin(X[:, 0]) + 0.3 * rng.normal(size=m)) * 10.0**case.log_target
    X, Z = X * 10.0**case.log_scale, Z * 10.0**case.log_scale
    y = None if case.family == "OneClassSVM" else labels if case.classifies else targets
    if case.classifies:
        names = {"integers": np.arange, "texts": lambda k: np.array(list("abcdefg"))[:k], "signs": _signs}
        y = names[case.names](case.classes)[labels]
    weight = _weights(case, labels, rng)
    with np.errstate(over="ignore"):  # a value too large for float32 is a case
        X, Z = (_laid_out(case.layout, A) for A in (X, Z))
    dense, dense_Z = (np.asarray(A.toarray() if sparse.issparse(A) else A, dtype="float64") for A in (X, Z))
    if not np.isfinite(dense_Z).all():
        Z, dense_Z = X, dense  # a refusal of X, or none, is what is looked for
    if case.kernel == "precomputed":
        with np.errstate(all="ignore"):
            X, Z = dense @ dense.T + 1.0, dense_Z @ dense.T + 1.0
        X, Z = (_laid_out("float64" if case.layout in ("csr", "int") else case.layout, A) for A in (X, Z))
        dense, dense_Z = (np.asarray(A, dtype="float64") for A in (X, Z))
    return Data(X, dense, y, weight, Z, dense_Z)


def _signs(k):
    return 1.0 - 2.0 * np.arange(k)


def _shaped(case, X, Z, rng):
    """The points with what makes a problem hard."""
    (m, d), far, shape = X.shape, 10.0**case.far, case.shape
    if shape == "columns":
        by = 10.0 ** rng.uniform(-case.far / 2, case.far / 2, d)
        X, Z = X * by, Z * by
    elif shape == "outlier":
        X[rng.integers(m)] += far * rng.normal(size=d)
    elif shape == "clusters":
        X[: m // 2] += far
        Z[:8] += far
    elif shape == "offset":
        X, Z = X + far, Z + far
    elif shape == "duplicates":
        X = X[rng.integers(max(1, m // 3), size=m)]
    elif shape == "constant":
        X[:, rng.integers(d)] = rng.choice([0.0, 1.0, far])
    elif shape == "grid":
        X, Z = np.round(X), np.round(Z)
    return X, Z


def _weights(case, labels, rng):
    m, kind = len(labels), case.weights
    if kind == "none":
        return None
    weight = {
        "integers": lambda: rng.integers(0, 4, m).astype("float64"),
        "zeros": lambda: rng.integers(0, 2, m).astype("float64"),
        "reals": lambda: rng.uniform(0.1, 3.0, m),
        "wide": lambda: 10.0 ** rng.uniform(-4, 4, m),
    }[kind]()
    for c in range(case.classes):  # two of each class count
        here = np.flatnonzero(labels == c)[:2]
        weight[here] = np.maximum(weight[here], 1.0)
    return weight


def _laid_out(layout, A):
    """The points in the type and order of a layout."""
    if layout == "csr":
        A = np.where(np.abs(A) < 0.3 * np.abs(A).mean(), 0.0, A)
        return sparse.csr_matrix(A)
    if layout == "int":
        scale = np.abs(A).max(initial=1.0)
        return np.round(A if scale < 2**50 else A / scale * 1000).astype("int64")
    if layout == "frame":
        import pandas

        return pandas.DataFrame(A, columns=[f"c{j}" for j in range(A.shape[1])])
    if layout == "list":
        return A.tolist()
    return np.asfortranarray(A) if layout == "fortran" else A.astype(layout)


def build(case, **changes):
    """The estimator of a case, not fitted."""
    family, parameters = MACHINES[case.machine]
    parameters = dict(parameters)
    if not case.is_linear:
        width = 10.0**case.log_scale
        if case.kernel in PER_FEATURE:
            width = width * np.array([1.0, 0.3, 4.0, 1.7, 0.9])[np.arange(case.d) % 5]
        parameters |= KERNELS[case.kernel](width) | {"solver": case.solver, "mode": case.mode}
    if case.family not in ("NuSVC", "OneClassSVM"):
        parameters["C"] = 10.0**case.log_C
    if case.family in ("NuSVC", "NuSVR", "OneClassSVM"):
        parameters["nu"] = case.nu
    if case.family in ("SVR", "LinearSVR"):
        parameters["epsilon"] = case.epsilon * 10.0**case.log_target
    if case.class_weight is not None:
        y = make(case).y
        parameters["class_weight"] = "balanced" if case.class_weight == "balanced" else {np.unique(y)[0].item(): 2.5}
    if case.max_iter is not None:
        parameters["max_iter"] = case.max_iter
    parameters |= {"tol": case.tol, "time_limit": 0.5} | changes
    return getattr(symsvm, family)(**parameters)


class Outcome(NamedTuple):
    """A fitted model, or the refusal; the warnings on the way."""

    model: Any
    refusal: Exception | None
    warnings: tuple

    @property
    def converged(self):
        """Whether the fit was silent: no ConvergenceWarning."""
        return not any(w.category.__name__ == "ConvergenceWarning" for w in self.warnings)


_SOLVED = [0]


def solved():
    """How many fits there were in this process."""
    return _SOLVED[0]


def fit(model, X, y, weight):
    """Fit and say how it ended; a refusal is a ValueError or a TypeError, other errors are errors of the test."""
    _SOLVED[0] += 1
    arguments = {} if weight is None else {"sample_weight": weight}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, y, **arguments)
        except (ValueError, TypeError) as error:
            return Outcome(None, error, tuple(caught))
    return Outcome(model, None, tuple(caught))
