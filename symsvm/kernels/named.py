"""The kernels with a name, and `pair_kernel` for those without."""

import numbers

import numpy as np
import pytensor.tensor as pt

from symsvm._lib.validation import count, is_symbolic, number
from symsvm.kernels.kernel import Kernel, shown

__all__ = ["RBF", "Constant", "Laplacian", "Linear", "Polynomial", "Precomputed", "Sigmoid", "pair_kernel"]


class Linear(Kernel):
    """The linear kernel K(x, z) = <x, z>; Phi is the identity (Eq. 002:3.2).

    >>> float(Linear().pair(pt.constant([1.0, 2.0]), pt.constant([3.0, 4.0])).eval())
    11.0
    """

    is_psd = True

    def pair(self, x, z):
        """<x, z>."""
        return (x * z).sum()


class Constant(Kernel):
    """The constant kernel K(x, z) = c; K + 1 is short for K + Constant(1), and embeds a bias in the weights.

    Parameters
    ----------
    c : the constant; Phi is the feature sqrt(c), the same for all points.

    >>> float((Linear() + 1.0).pair(pt.constant([1.0, 2.0]), pt.constant([3.0, 4.0])).eval())
    12.0
    """

    def __init__(self, c=1.0):
        self.c = c

    @property
    def is_psd(self):
        """True for c >= 0; else nothing is known."""
        return None if is_symbolic(self.c) or not self.c >= 0 else True

    def pair(self, x, z):
        """c."""
        return self.scalar("c", x)


class RBF(Kernel):
    """The radial basis function K(x, z) = exp(-|x - z|^2 / (2 sigma^2)) (Eq. 33; Eq. 002:3.4).

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
        """exp(-gamma |x - z|^2), that is sigma = 1 / sqrt(2 gamma) (Eq. 33; Eq. 002:3.4)."""
        if is_symbolic(gamma):
            return cls(sigma=1 / pt.sqrt(2 * gamma))
        return cls(sigma=(2 * number(gamma, "gamma", positive=True)) ** -0.5)

    def pair(self, x, z):
        """exp(-|x - z|^2 / (2 sigma^2)) (Eq. 33)."""
        sigma = self.scalar("sigma", x)
        return pt.exp(-((x - z) ** 2).sum() / (2 * sigma**2))


class Polynomial(Kernel):
    """The polynomial kernel K(x, z) = (gamma <x, z> + coef0)^degree; homogeneous with coef0 = 0 (Eq. 002:3.3).

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

    Its points are indices, one a row: `Precomputed.points(m)` for all m. To predict new points, give the matrix of all
    points, old and new, and train on the indices of the old ones.

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
        return self.fn(x, z, **{name: self._argument(name, x) for name in self._names})

    def _argument(self, name, x):
        """An integer as it is, an array as a tensor, a number as a scalar."""
        value = getattr(self, name)
        if name in self.structure:
            return value
        return self.scalar(name, x) if is_symbolic(value) or not np.ndim(value) else pt.as_tensor(value).astype(x.dtype)

    @property
    def _label(self):
        return "pair_kernel"

    def __repr__(self):
        args = [getattr(self.fn, "__name__", repr(self.fn))]
        return f"pair_kernel({', '.join(args + [f'{n}={shown(getattr(self, n))}' for n in self._names])})"


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
