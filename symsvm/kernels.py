"""Kernels: one expression `pair(x, z)` for a pair of points; all else is derived from it (Eq. 14).

    k = RBF(sigma=0.5) + 0.1 * Linear() ** 2      # an algebra: +, *, a number *, an integer **
    k(X, Z)                                       # the graph of the Gram matrix, (m, n)
    k.diag(X)                                     # the graph of k(x_i, x_i), (m,)

A hyper-parameter is a number, a shared variable or any scalar graph; `pytensor.grad` reaches it like everything else.
Kernels follow scikit-learn's rules for parameters, so that `clone` and a grid over `kernel__sigma` work.
"""

import inspect
import numbers

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import vectorize_graph

from symsvm.validation import count, is_symbolic, number

__all__ = ["RBF", "Kernel", "Laplacian", "Linear", "Polynomial", "Precomputed", "Sigmoid", "pair_kernel"]


class Kernel:
    """A kernel K(x, z) = <Phi(x), Phi(z)>, the inner product in a feature space (Eq. 14).

    A subclass stores its arguments untouched and defines `pair(x, z)`, a scalar expression of two vectors.

    Attributes
    ----------
    is_psd : True, False or None
        Whether every Gram matrix is positive semi-definite: True if that is known, False if it is known to fail for
        some points, None if nothing is known (then `symsvm.mercer` checks it on given points).
    """

    is_psd = None
    positive = ()  # names of hyper-parameters that must be positive
    structure = ()  # names of arguments that shape the graph and are never lifted to variables
    rank = 4  # how tightly its repr binds
    __array_ufunc__ = None  # so that numpy_number * kernel comes to __rmul__

    def __init__(self):
        """A kernel without hyper-parameters."""

    def pair(self, x, z):
        """Return the scalar graph K(x, z) of two vector graphs."""
        raise NotImplementedError(f"{type(self).__name__} must define pair(x, z), a scalar expression of two vectors.")

    def of(self, x, z):
        """Return `pair(x, z)`, checked to be a scalar, in the dtype of the points."""
        value = pt.as_tensor(self.pair(x, z))
        if value.ndim != 0:
            raise ValueError(
                f"{self!r} must return a scalar for a pair of points, got {value.ndim} dimension(s): "
                "reduce over the features, for example with .sum()."
            )
        return value.astype(x.dtype)

    def __call__(self, X, Z=None):
        """Return the graph of the Gram matrix K(x_i, z_j), (m, n); Z is X unless given."""
        X = pt.as_tensor(X)
        Z = X if Z is None else pt.as_tensor(Z)
        return self._over(X[:, None, :], Z[None, :, :], X.dtype, (X.shape[0], Z.shape[0]))

    def diag(self, X):
        """Return the graph of the diagonal K(x_i, x_i), (m,)."""
        X = pt.as_tensor(X)
        return self._over(X, X, X.dtype, (X.shape[0],))

    def _over(self, X, Z, dtype, shape):
        x = pt.tensor("x", dtype=dtype, shape=X.type.shape[-1:])
        z = pt.tensor("z", dtype=dtype, shape=Z.type.shape[-1:])
        K = vectorize_graph(self.of(x, z), {x: X, z: Z})
        # A kernel that leaves out x or z (a constant one, say) comes back with fewer entries.
        known = K.ndim == len(shape) and 1 not in K.type.shape
        return K if known else pt.broadcast_to(K, shape)

    def scalar(self, name, like):
        """Return the hyper-parameter `name` as a scalar graph with the dtype of the points `like`."""
        value = getattr(self, name)
        if is_symbolic(value):
            return value.astype(like.dtype)
        value = number(value, f"{name} of {type(self).__name__}", positive=name in self.positive)
        return pt.constant(np.asarray(value, dtype=like.dtype))

    def lift(self, variable):
        """Return a copy in which each number (or array) became `variable(name, value)`.

        A graph built from the copy holds no number that a user may change, so one compilation serves them all.
        """
        lifted = {}
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, Kernel):
                lifted[name] = value.lift(variable)
            elif is_symbolic(value) or name in self.structure:
                lifted[name] = value
            elif isinstance(value, np.ndarray) and value.ndim:
                lifted[name] = variable(name, value)
            else:
                lifted[name] = variable(
                    name, number(value, f"{name} of {type(self).__name__}", positive=name in self.positive)
                )
        return type(self)(**lifted)

    def check_points(self, X, name="X"):
        """Raise where the points `X` are not in the kernel's domain (any vectors are, unless a subclass says so)."""

    def __add__(self, other):
        """K1 + K2, the kernel of the concatenated features."""
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other):
        """K1 * K2, the kernel of the tensor product of the features, or c * K."""
        return Product(self, other) if isinstance(other, Kernel) else self.__rmul__(other)

    def __rmul__(self, c):
        """c * K with a number or a scalar graph c."""
        return Scale(c, self) if isinstance(c, numbers.Real) or is_symbolic(c) else NotImplemented

    def __pow__(self, n):
        """K ** n with an integer n >= 1."""
        return Power(self, n) if isinstance(n, numbers.Integral) else NotImplemented

    def get_params(self, deep=True):
        """Return the constructor's arguments by name; `deep` adds those of the kernels inside, as `k1__sigma`."""
        names = list(inspect.signature(type(self).__init__).parameters)[1:]
        params = {name: getattr(self, name) for name in names}
        if deep:
            for name, value in list(params.items()):
                if isinstance(value, Kernel):
                    params |= {f"{name}__{key}": inner for key, inner in value.get_params().items()}
        return params

    def set_params(self, **params):
        """Set arguments by name, `k1__sigma` for a kernel inside, and return self."""
        for name, value in params.items():
            head, _, rest = name.partition("__")
            own = self.get_params(deep=False)
            if head not in own or (rest and not isinstance(own[head], Kernel)):
                raise ValueError(
                    f"{name!r} is no parameter of {self!r}; it has {', '.join(self.get_params()) or 'none'}."
                )
            if rest:
                own[head].set_params(**{rest: value})
            else:
                setattr(self, head, value)
        return self

    def __sklearn_clone__(self):
        """Copy the kernel, not the shared variables in it: a clone refers to the same symbols."""
        params = self.get_params(deep=False).items()
        return type(self)(**{name: v.__sklearn_clone__() if isinstance(v, Kernel) else v for name, v in params})

    def __repr__(self):
        args = ", ".join(f"{name}={_shown(value)}" for name, value in self.get_params(deep=False).items())
        return f"{type(self).__name__}({args})"


class Linear(Kernel):
    """The linear kernel K(x, z) = <x, z>; Phi is the identity.

    >>> float(Linear().pair(pt.constant([1.0, 2.0]), pt.constant([3.0, 4.0])).eval())
    11.0
    """

    is_psd = True

    def pair(self, x, z):
        """<x, z>."""
        return (x * z).sum()


class RBF(Kernel):
    """The radial basis function K(x, z) = exp(-|x - z|^2 / (2 sigma^2)) (Eq. 33).

    Parameters
    ----------
    sigma : the width, sigma > 0; LIBSVM's and scikit-learn's gamma is 1 / (2 sigma^2).

    >>> RBF.from_gamma(2.0)
    RBF(sigma=0.5)
    """

    is_psd = True
    positive = ("sigma",)

    def __init__(self, sigma=1.0):
        self.sigma = sigma

    @classmethod
    def from_gamma(cls, gamma):
        """exp(-gamma |x - z|^2), that is sigma = 1 / sqrt(2 gamma) (Eq. 33)."""
        if is_symbolic(gamma):
            return cls(sigma=1 / pt.sqrt(2 * gamma))
        return cls(sigma=(2 * number(gamma, "gamma", positive=True)) ** -0.5)

    def pair(self, x, z):
        """exp(-|x - z|^2 / (2 sigma^2)) (Eq. 33)."""
        sigma = self.scalar("sigma", x)
        return pt.exp(-((x - z) ** 2).sum() / (2 * sigma**2))


class Polynomial(Kernel):
    """The polynomial kernel K(x, z) = (gamma <x, z> + coef0)^degree; homogeneous with coef0 = 0.

    Parameters
    ----------
    degree : the integer exponent, at least 1.
    gamma, coef0 : the scale, gamma > 0, and the constant; positive semi-definite for coef0 >= 0.
    """

    positive = ("gamma",)
    structure = ("degree",)

    def __init__(self, degree=3, gamma=1.0, coef0=0.0):
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    @property
    def is_psd(self):
        """True for coef0 >= 0 (all coefficients of the expansion are then non-negative)."""
        return None if is_symbolic(self.coef0) else bool(self.coef0 >= 0)

    def pair(self, x, z):
        """(gamma <x, z> + coef0)^degree."""
        degree = count(self.degree, "degree of Polynomial", least=1)
        return (self.scalar("gamma", x) * (x * z).sum() + self.scalar("coef0", x)) ** degree


class Sigmoid(Kernel):
    """The sigmoid kernel K(x, z) = tanh(gamma <x, z> + coef0), which is not positive semi-definite."""

    is_psd = False

    def __init__(self, gamma=1.0, coef0=0.0):
        self.gamma = gamma
        self.coef0 = coef0

    def pair(self, x, z):
        """tanh(gamma <x, z> + coef0)."""
        return pt.tanh(self.scalar("gamma", x) * (x * z).sum() + self.scalar("coef0", x))


class Laplacian(Kernel):
    """The Laplacian kernel K(x, z) = exp(-gamma |x - z|_1), gamma > 0."""

    is_psd = True
    positive = ("gamma",)

    def __init__(self, gamma=1.0):
        self.gamma = gamma

    def pair(self, x, z):
        """exp(-gamma |x - z|_1)."""
        return pt.exp(-self.scalar("gamma", x) * pt.abs(x - z).sum())


class Precomputed(Kernel):
    """A kernel on a finite set, given by its Gram matrix: K(i, j) = gram[i, j].

    Its points are indices, one a row: `Precomputed.points(m)` for all m. For new points set `gram` to the matrix of
    new against old points; the first index then runs over the new ones.

    >>> K = Precomputed(np.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> K(Precomputed.points(2)).eval().tolist()
    [[2.0, 1.0], [1.0, 3.0]]
    """

    def __init__(self, gram):
        self.gram = gram

    @staticmethod
    def points(m):
        """Return the points 0, 1, ..., m - 1 as a column."""
        return np.arange(m, dtype="float64")[:, None]

    def pair(self, x, z):
        """gram[i, j] for x = (i,) and z = (j,)."""
        return pt.as_tensor(self.gram)[x[0].astype("int64"), z[0].astype("int64")]

    def check_points(self, X, name="X"):
        """Raise unless X is a column of indices into `gram`."""
        shape = self.gram.type.shape if is_symbolic(self.gram) else np.shape(self.gram)
        if len(shape) != 2:
            raise ValueError(f"gram of Precomputed must be a matrix, got {len(shape)} dimension(s).")
        known = [n for n in shape if n is not None]
        if X.shape[1] != 1 or (X != np.floor(X)).any() or X.min() < 0 or (known and X.max() >= min(known)):
            raise ValueError(
                f"{name} must be a column of indices into the precomputed gram of shape {tuple(shape)}: "
                "use Precomputed.points(m)."
            )


class _PairKernel(Kernel):
    """What `pair_kernel` makes: K(x, z) = fn(x, z, **hyper_parameters)."""

    def __init__(self, fn, **hyper_parameters):
        self.fn = fn
        self.__dict__.update(hyper_parameters)
        self._names = tuple(hyper_parameters)

    @property
    def structure(self):
        """The function itself, and integers: a function may use one to shape its graph."""
        return ("fn", *(name for name in self._names if isinstance(getattr(self, name), numbers.Integral)))

    def get_params(self, deep=True):
        return {"fn": self.fn} | {name: getattr(self, name) for name in self._names}

    def pair(self, x, z):
        hyper = {n: getattr(self, n) if n in self.structure else self.scalar(n, x) for n in self._names}
        return self.fn(x, z, **hyper)

    def __repr__(self):
        args = [getattr(self.fn, "__name__", repr(self.fn))]
        return f"pair_kernel({', '.join(args + [f'{n}={_shown(getattr(self, n))}' for n in self._names])})"


def pair_kernel(fn, **hyper_parameters):
    """Make a kernel from any PyTensor expression of one pair, K(x, z) = fn(x, z, **hyper_parameters).

    >>> cosine = pair_kernel(lambda x, z: (x * z).sum() / pt.sqrt((x**2).sum() * (z**2).sum()))
    >>> cosine(np.array([[3.0, 4.0], [4.0, 3.0]])).eval().round(2).tolist()
    [[1.0, 0.96], [0.96, 1.0]]
    """
    if not callable(fn):
        raise TypeError(f"fn must be a function of two points, fn(x, z, ...), got {fn!r}.")
    clash = [name for name in hyper_parameters if name.startswith("_") or hasattr(_PairKernel, name)]
    if clash:
        raise ValueError(f"{clash[0]!r} cannot name a hyper-parameter: kernels have an attribute of that name.")
    return _PairKernel(fn, **hyper_parameters)


class Sum(Kernel):
    """K(x, z) = K1(x, z) + K2(x, z)."""

    rank = 1

    def __init__(self, k1, k2):
        self.k1 = k1
        self.k2 = k2

    @property
    def is_psd(self):
        """True if both are; else nothing is known."""
        return True if self.k1.is_psd and self.k2.is_psd else None

    def pair(self, x, z):
        """K1(x, z) + K2(x, z)."""
        return self.k1.of(x, z) + self.k2.of(x, z)

    def check_points(self, X, name="X"):
        """Both kernels see the points."""
        self.k1.check_points(X, name)
        self.k2.check_points(X, name)

    def __repr__(self):
        return f"{_inside(self.k1, 1)} + {_inside(self.k2, 2)}"


class Product(Sum):
    """K(x, z) = K1(x, z) K2(x, z)."""

    rank = 2

    def pair(self, x, z):
        """K1(x, z) K2(x, z)."""
        return self.k1.of(x, z) * self.k2.of(x, z)

    def __repr__(self):
        return f"{_inside(self.k1, 2)} * {_inside(self.k2, 3)}"


class Scale(Kernel):
    """K(x, z) = c K1(x, z)."""

    rank = 2

    def __init__(self, c, k1):
        self.c = c
        self.k1 = k1

    @property
    def is_psd(self):
        """As K1 for c >= 0; else nothing is known."""
        return None if is_symbolic(self.c) or self.c < 0 else self.k1.is_psd

    def pair(self, x, z):
        """c K1(x, z)."""
        return self.scalar("c", x) * self.k1.of(x, z)

    def check_points(self, X, name="X"):
        """As K1."""
        self.k1.check_points(X, name)

    def __repr__(self):
        return f"{_shown(self.c)} * {_inside(self.k1, 3)}"


class Power(Kernel):
    """K(x, z) = K1(x, z)^n with an integer n >= 1."""

    structure = ("n",)
    rank = 3

    def __init__(self, k1, n):
        self.k1 = k1
        self.n = n

    @property
    def is_psd(self):
        """True if K1 is (Schur's product theorem); else nothing is known."""
        return True if self.k1.is_psd else None

    def pair(self, x, z):
        """K1(x, z)^n."""
        return self.k1.of(x, z) ** count(self.n, "the exponent of a kernel", least=1)

    def check_points(self, X, name="X"):
        """As K1."""
        self.k1.check_points(X, name)

    def __repr__(self):
        return f"{_inside(self.k1, 4)} ** {self.n}"


def _inside(kernel, rank):
    """The kernel as an operand, in parentheses where it binds less tightly: + is 1, * is 2, ** is 3, a name is 4."""
    return f"({kernel!r})" if kernel.rank < rank else repr(kernel)


def _shown(value):
    if is_symbolic(value):
        return value.name or str(value)
    if isinstance(value, np.ndarray):
        return f"array{value.shape}"
    return repr(value.item() if isinstance(value, np.generic) else value)
