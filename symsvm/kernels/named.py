"""The kernels that have a name, and `pair_kernel`, which makes a kernel from any function of a pair of points."""

# PyTensor declares its elementwise functions (pt.exp, ...) without a return type.
# pyright: reportOperatorIssue=false, reportReturnType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt

from symsvm._lib.validation import count, is_symbolic, number_or_vector
from symsvm.kernels.kernel import Kernel
from symsvm.kernels.kernel_parameters import format_parameter

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from numpy.typing import ArrayLike

    from symsvm._lib.types import Array, Graph, Scalar, ScalarOrVector

__all__ = [
    "RBF",
    "Constant",
    "Laplacian",
    "Linear",
    "PairKernel",
    "Polynomial",
    "Precomputed",
    "Sigmoid",
    "pair_kernel",
]


class Linear(Kernel):
    """The linear kernel K(x, z) = <x, z>; Phi is the identity (Eq. 002:3.2).

    Examples
    --------
    >>> float(Linear().pair(pt.constant([1.0, 2.0]), pt.constant([3.0, 4.0])).eval())
    11.0
    """

    is_psd = True

    def pair(self, x: Graph, z: Graph) -> Graph:
        return (x * z).sum()


class Constant(Kernel):
    """The constant kernel K(x, z) = c.

    K + 1 is short for K + Constant(1), and embeds a bias in the weights.

    Parameters
    ----------
    c : float or TensorVariable
        The constant; Phi is the feature sqrt(c), the same for all points.

    Examples
    --------
    >>> float((Linear() + 1.0).pair(pt.constant([1.0, 2.0]), pt.constant([3.0, 4.0])).eval())
    12.0
    """

    def __init__(self, c: Scalar = 1.0) -> None:
        self.c = c

    @property
    def is_psd(self) -> bool | None:
        """True for c >= 0; else nothing is known."""
        c: Any = self.c
        return None if is_symbolic(c) or not c >= 0 else True

    def pair(self, x: Graph, z: Graph) -> Graph:
        return self.scalar("c", x)


class RBF(Kernel):
    """The radial basis function kernel (Eq. 33; Eq. 002:3.4), with one width or with a width for each feature.

    ::

        K(x, z) = exp(-|x - z|^2 / (2 sigma^2))
        K(x, z) = exp(-1/2 sum_k ((x_k - z_k) / sigma_k)^2)

    Parameters
    ----------
    sigma : float, array_like (d,) or TensorVariable
        The width, sigma > 0, or a width for each of the d features: the kernel of width 1 of the points x / sigma.
        gamma of LIBSVM and scikit-learn is 1 / (2 sigma^2).

    Examples
    --------
    >>> RBF.from_gamma(2.0)
    RBF(sigma=0.5)
    >>> RBF(sigma=[1.0, 100.0])(np.array([[0.0, 0.0], [1.0, 100.0]])).eval().round(4).tolist()
    [[1.0, 0.3679], [0.3679, 1.0]]
    """

    is_psd = True
    positive = ("sigma",)
    per_feature = ("sigma",)

    def __init__(self, sigma: ScalarOrVector = 1.0) -> None:
        self.sigma = sigma

    @classmethod
    def from_gamma(cls, gamma: ScalarOrVector) -> Self:
        """Return the kernel with sigma = 1 / sqrt(2 gamma) (Eq. 33; Eq. 002:3.4).

        ::

            K(x, z) = exp(-gamma |x - z|^2)
            K(x, z) = exp(-sum_k gamma_k (x_k - z_k)^2)

        Parameters
        ----------
        gamma : float, array_like (d,) or TensorVariable
            The factor of the squared distance, gamma > 0, or a factor for each feature.

        Returns
        -------
        RBF
            The kernel.
        """
        if is_symbolic(gamma):
            return cls(sigma=1 / pt.sqrt(2 * gamma))
        return cls(sigma=(2 * number_or_vector(gamma, "gamma", positive=True)) ** -0.5)

    def pair(self, x: Graph, z: Graph) -> Graph:
        sigma = self.vector("sigma", x)
        if sigma.ndim:
            return pt.exp(-(((x - z) / sigma) ** 2).sum() / 2)
        return pt.exp(-((x - z) ** 2).sum() / (2 * sigma**2))


class Polynomial(Kernel):
    """The polynomial kernel K(x, z) = (gamma <x, z> + coef0)^degree; homogeneous with coef0 = 0 (Eq. 002:3.3).

    Parameters
    ----------
    degree : int
        The exponent, at least 1.
    gamma : float or TensorVariable
        The scale, gamma > 0.
    coef0 : float or TensorVariable
        The constant; the kernel is positive semi-definite for coef0 >= 0.
    """

    positive = ("gamma",)
    structure = ("degree",)

    def __init__(self, degree: int = 3, gamma: Scalar = 1.0, coef0: Scalar = 0.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    @property
    def is_psd(self) -> bool | None:
        """True for coef0 >= 0 (then no coefficient of the expansion is negative), else False; None for a symbol."""
        coef0: Any = self.coef0
        return None if is_symbolic(coef0) else bool(coef0 >= 0)

    def pair(self, x: Graph, z: Graph) -> Graph:
        degree = count(self.degree, "degree of Polynomial", least=1)
        return (self.scalar("gamma", x) * (x * z).sum() + self.scalar("coef0", x)) ** degree


class Sigmoid(Kernel):
    """The sigmoid kernel K(x, z) = tanh(gamma <x, z> + coef0), which is not positive semi-definite.

    Parameters
    ----------
    gamma : float or TensorVariable
        The scale.
    coef0 : float or TensorVariable
        The constant.
    """

    is_psd = False

    def __init__(self, gamma: Scalar = 1.0, coef0: Scalar = 0.0) -> None:
        self.gamma = gamma
        self.coef0 = coef0

    def pair(self, x: Graph, z: Graph) -> Graph:
        return pt.tanh(self.scalar("gamma", x) * (x * z).sum() + self.scalar("coef0", x))


class Laplacian(Kernel):
    """The Laplacian kernel, with the sum of absolute differences as distance.

    ::

        K(x, z) = exp(-gamma |x - z|_1)
        K(x, z) = exp(-sum_k gamma_k |x_k - z_k|)

    Parameters
    ----------
    gamma : float, array_like (d,) or TensorVariable
        The factor of the distance, gamma > 0, or a factor for each of the d features: 1 / sigma_k of a width sigma_k.

    Examples
    --------
    >>> Laplacian.from_sigma([2.0, 0.5])
    Laplacian(gamma=[0.5, 2.0])
    """

    is_psd = True
    positive = ("gamma",)
    per_feature = ("gamma",)

    def __init__(self, gamma: ScalarOrVector = 1.0) -> None:
        self.gamma = gamma

    @classmethod
    def from_sigma(cls, sigma: ScalarOrVector) -> Self:
        """Return the kernel with gamma = 1 / sigma.

        ::

            K(x, z) = exp(-sum_k |x_k - z_k| / sigma_k)

        Parameters
        ----------
        sigma : float, array_like (d,) or TensorVariable
            The width, sigma > 0, or a width for each feature.

        Returns
        -------
        Laplacian
            The kernel.
        """
        if is_symbolic(sigma):
            return cls(gamma=1 / sigma)
        return cls(gamma=1 / number_or_vector(sigma, "sigma", positive=True))

    def pair(self, x: Graph, z: Graph) -> Graph:
        gamma = self.vector("gamma", x)
        if gamma.ndim:
            return pt.exp(-(gamma * pt.abs(x - z)).sum())
        return pt.exp(-gamma * pt.abs(x - z).sum())


class Precomputed(Kernel):
    """A kernel on a finite set, given by its Gram matrix: K(i, j) = gram[i, j].

    Its points are indices, one per row: `Precomputed.points(m)` for all m. To predict new points, pass the matrix of
    all points, old and new, and train on the indices of the old ones.

    Parameters
    ----------
    gram : array_like or TensorVariable
        The Gram matrix (m, m).

    Examples
    --------
    >>> K = Precomputed(np.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> K(Precomputed.points(2)).eval().tolist()
    [[2.0, 1.0], [1.0, 3.0]]
    """

    def __init__(self, gram: ArrayLike | Graph) -> None:
        self.gram = gram

    @staticmethod
    def points(m: int) -> Array:
        """Return the points 0, 1, ..., m - 1 as a column.

        Parameters
        ----------
        m : int
            The number of points.

        Returns
        -------
        ndarray
            The points (m, 1).
        """
        return np.arange(m, dtype="float64")[:, None]

    def pair(self, x: Graph, z: Graph) -> Graph:
        return pt.as_tensor(self.gram)[x[0].astype("int64"), z[0].astype("int64")]

    def check_points(self, X: Any, name: str = "X") -> None:
        # The domain: a column of indices into `gram`.
        gram: Any = self.gram
        shape = gram.type.shape if is_symbolic(gram) else np.shape(gram)
        if len(shape) != 2:
            raise ValueError(f"gram of Precomputed must be a matrix, got {len(shape)} dimension(s).")
        known = [n for n in shape if n is not None]
        if X.shape[1] != 1 or (X != np.floor(X)).any() or X.min() < 0 or (known and X.max() >= min(known)):
            raise ValueError(
                f"{name} must be a column of indices into the precomputed gram of shape {tuple(shape)}: "
                "use Precomputed.points(m)."
            )


class PairKernel(Kernel):
    """The kernel that `pair_kernel` returns: K(x, z) = fn(x, z, **hyper_parameters)."""

    def __init__(self, fn: Callable[..., Any], **hyper_parameters: Any) -> None:
        self.fn = fn
        self.__dict__.update(hyper_parameters)
        self._names = tuple(hyper_parameters)

    @property
    def structure(self) -> tuple[str, ...]:
        """The function itself and all integers, since a function may use an integer to shape its graph."""
        return ("fn", *(name for name in self._names if isinstance(getattr(self, name), numbers.Integral)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"fn": self.fn} | {name: getattr(self, name) for name in self._names}

    def pair(self, x: Graph, z: Graph) -> Graph:
        return self.fn(x, z, **{name: self._argument(name, x) for name in self._names})

    def _argument(self, name: str, x: Graph) -> Any:
        """Return an integer unchanged, an array as a tensor, another number as a scalar graph."""
        value = getattr(self, name)
        if name in self.structure:
            return value
        return self.scalar(name, x) if is_symbolic(value) or not np.ndim(value) else pt.as_tensor(value).astype(x.dtype)

    @property
    def _label(self) -> str:
        return "pair_kernel"

    def __repr__(self) -> str:
        args = [getattr(self.fn, "__name__", repr(self.fn))]
        return f"pair_kernel({', '.join(args + [f'{n}={format_parameter(getattr(self, n))}' for n in self._names])})"


def pair_kernel(fn: Callable[..., Any], **hyper_parameters: ArrayLike | Graph) -> PairKernel:
    """Make a kernel from any PyTensor expression of one pair, K(x, z) = fn(x, z, \\*\\*hyper_parameters).

    Parameters
    ----------
    fn : callable
        A function of two vector graphs and the hyper-parameters that returns a scalar graph.
    **hyper_parameters : float, int, array_like or TensorVariable
        Passed to `fn` by name: an integer unchanged, since it may shape the graph; all else as graphs.

    Returns
    -------
    PairKernel
        The kernel. Its hyper-parameters are attributes.

    Examples
    --------
    >>> cosine = pair_kernel(lambda x, z: (x * z).sum() / pt.sqrt((x**2).sum() * (z**2).sum()))
    >>> cosine(np.array([[3.0, 4.0], [4.0, 3.0]])).eval().round(2).tolist()
    [[1.0, 0.96], [0.96, 1.0]]
    """
    if not callable(fn):
        raise TypeError(f"fn must be a function of two points, fn(x, z, ...), got {fn!r}.")
    clash = [name for name in hyper_parameters if name.startswith("_") or hasattr(PairKernel, name)]
    if clash:
        raise ValueError(f"{clash[0]!r} cannot name a hyper-parameter: kernels have an attribute of that name.")
    return PairKernel(fn, **hyper_parameters)
