"""The base class of kernels: `pair(x, z)` defines one, and its Gram matrix and diagonal are derived from it."""

from __future__ import annotations

import functools
import inspect
import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors
from pytensor.tensor.basic import Nonzero
from pytensor.tensor.subtensor import AdvancedSubtensor

from symsvm._lib.validation import as_float, is_symbolic, number, number_or_vector
from symsvm.graphs.dtypes import widen
from symsvm.kernels.kernel_parameters import (
    check_length,
    format_parameter,
    is_same_parameter,
    known_shape,
    shared_vector,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence
    from typing import Self

    from numpy.typing import ArrayLike
    from pytensor.graph.basic import Apply

    from symsvm._lib.types import Graph, Points, Scalar

__all__ = ["Kernel"]


class Kernel:
    """A kernel K(x, z) = <Phi(x), Phi(z)>, the inner product in a feature space (Eq. 14; Eq. 003:23).

    A subclass stores its arguments unchanged and defines `pair(x, z)`, a scalar expression of two vectors.

    Attributes
    ----------
    is_psd : bool or None
        True if every Gram matrix is known to be positive semi-definite, False if it is known not to be for some
        points, None if nothing is known. Then `symsvm.mercer` checks given points.
    """

    is_psd: bool | None = None
    positive: Sequence[str] = ()  # names of hyper-parameters that must be positive
    per_feature: Sequence[str] = ()  # names of hyper-parameters that may be vectors, a number for each feature
    structure: Sequence[str] = ()  # names of arguments that shape the graph and are never lifted to variables
    precedence = 4  # of the operator in its repr: + is 1, * is 2, ** is 3, a name is 4
    __array_ufunc__ = None  # NumPy leaves numpy_number * kernel to __rmul__

    def __init__(self) -> None:
        """Create a kernel without hyper-parameters."""

    def pair(self, x: Graph, z: Graph) -> Graph:
        """Return the scalar graph K(x, z) of two vector graphs.

        Parameters
        ----------
        x, z : TensorVariable
            Two points, vectors (d,).

        Returns
        -------
        TensorVariable
            K(x, z), a scalar.
        """
        raise NotImplementedError(f"{type(self).__name__} must define pair(x, z), a scalar expression of two vectors.")

    def checked_pair(self, x: Any, z: Any) -> Graph:
        """Return `pair(x, z)` in the dtype of the points, after checking that it is a scalar.

        Python numbers in the expression count as float64, not as the float32 that PyTensor gives them.

        Parameters
        ----------
        x, z : TensorVariable or array_like
            Two points, vectors (d,).

        Returns
        -------
        TensorVariable
            K(x, z), a scalar.
        """
        x, z = as_float(x), as_float(z)
        value = self.pair(x, z)
        try:
            value = pt.as_tensor(value)
        except (TypeError, ValueError, NotImplementedError):
            raise TypeError(f"{self!r} must return a scalar expression for a pair of points, got {value!r}.") from None
        if value.ndim != 0:
            raise ValueError(
                f"{self!r} must return a scalar for a pair of points, got {value.ndim} dimension(s): "
                "reduce over the features, for example with .sum()."
            )
        if any(_selects_by_value(v.owner) for v in ancestors([value], blockers=[x, z]) if v.owner is not None):
            raise ValueError(
                f"{self!r} selects entries by their values, so it cannot be evaluated for all pairs at once: "
                "write pt.switch(condition, entry, 0) in place of x[condition]."
            )
        (value,) = widen([value.astype(x.dtype)])
        return value

    def __call__(self, X: Any, Z: Any = None) -> Graph:
        """Return the graph of the Gram matrix K(x_i, z_j), (m, n); Z is X by default."""
        X = as_float(X)
        Z = X if Z is None else as_float(Z)
        if X.ndim != 2 or Z.ndim != 2:
            raise ValueError(f"a kernel takes matrices of points (m, d), got {X.ndim} and {Z.ndim} dimension(s).")
        d, other = X.type.shape[1], Z.type.shape[1]
        if d is not None and other is not None and d != other:
            raise ValueError(f"a kernel takes points with the same features, got {d} and {other}.")
        return self._vectorize(X[:, None, :], Z[None, :, :], X.dtype, (X.shape[0], Z.shape[0]))

    def diag(self, X: Any) -> Graph:
        """Return the graph of the diagonal K(x_i, x_i).

        Parameters
        ----------
        X : TensorVariable or array_like
            Points (m, d).

        Returns
        -------
        TensorVariable
            The vector (m,).
        """
        X = as_float(X)
        return self._vectorize(X, X, X.dtype, (X.shape[0],))

    def _vectorize(self, X: Graph, Z: Graph, dtype: str, shape: tuple) -> Graph:
        """Evaluate `pair` over the last axis of X and Z, broadcast against each other."""
        x = pt.tensor("x", dtype=dtype, shape=X.type.shape[-1:])
        z = pt.tensor("z", dtype=dtype, shape=Z.type.shape[-1:])
        K: Any = vectorize_graph(self.checked_pair(x, z), {x: X, z: Z})
        # A kernel that does not depend on x or on z (such as Constant) gives a graph with fewer entries.
        is_full = K.ndim == len(shape) and 1 not in K.type.shape
        return K if is_full else pt.broadcast_to(K, shape)

    def scalar(self, name: str, like: Graph) -> Graph:
        """Return the hyper-parameter `name` as a scalar graph.

        Parameters
        ----------
        name : str
            The name of the hyper-parameter.
        like : TensorVariable
            Points, whose dtype the result has.

        Returns
        -------
        TensorVariable
            The scalar.
        """
        value = getattr(self, name)
        if is_symbolic(value):
            return value.astype(like.dtype)
        return pt.constant(np.asarray(self._number(name), dtype=like.dtype))

    def vector(self, name: str, x: Graph) -> Graph:
        """Return the hyper-parameter `name`, a number or a number for each feature, as a graph.

        Parameters
        ----------
        name : str
            The name of the hyper-parameter, one of `per_feature`.
        x : TensorVariable
            A point (d,), whose dtype the result has.

        Returns
        -------
        TensorVariable
            A scalar or a vector (d,).
        """
        value = getattr(self, name)
        if is_symbolic(value) and value.ndim > 1:
            raise ValueError(f"{name} of {self._label} must be a number or a vector, got {value.ndim} dimensions.")
        if is_symbolic(value):
            check_length(f"{name} of {self._label}", value.type.shape, x.type.shape[-1])
            return value.astype(x.dtype)
        array = np.asarray(self._checked(name), dtype=x.dtype)
        check_length(f"{name} of {self._label}", array.shape, x.type.shape[-1])
        return shared_vector(array, name) if array.ndim else pt.constant(array)

    def _number(self, name: str) -> float:
        return number(getattr(self, name), f"{name} of {self._label}", positive=name in self.positive)

    def _checked(self, name: str) -> Any:
        """The value of a hyper-parameter that is no graph: a number, or an array where it may be one."""
        value = getattr(self, name)
        if name in self.per_feature:
            return number_or_vector(value, f"{name} of {self._label}", positive=name in self.positive)
        return np.asarray(value) if np.ndim(value) else self._number(name)

    @property
    def _label(self) -> str:
        return type(self).__name__

    def lift(self, variable: Callable[[str, Any], Any]) -> Self:
        """Return a copy in which `variable(name, value)` replaces each number or array.

        A graph of the copy contains no number that a user may change, so one compilation serves all values.

        Parameters
        ----------
        variable : callable
            Called with the name and the value of a hyper-parameter, returns what replaces the value.

        Returns
        -------
        Kernel
            The copy.
        """

        def replace(kernel: Kernel, name: str, value: Any) -> Any:
            if is_symbolic(value):
                return value
            return variable(name, kernel._checked(name))

        return self._map_parameters(replace)

    def symbols(self) -> list[Graph]:
        """Return the hyper-parameters that are graphs, also those of the kernels inside.

        Returns
        -------
        list of TensorVariable
            The graphs, in the order that `with_values` uses.
        """
        found = []
        self._map_parameters(lambda kernel, name, value: found.append(value) if is_symbolic(value) else None)
        return found

    def with_values(self, values: Iterable[ArrayLike]) -> Self:
        """Return a copy with numbers in place of its `symbols`.

        Parameters
        ----------
        values : iterable of array_like
            A value for each of `symbols`, in their order.

        Returns
        -------
        Kernel
            The copy.
        """
        values = iter(values)
        return self._map_parameters(lambda kernel, name, value: next(values) if is_symbolic(value) else value)

    def _map_parameters(self, replace: Callable[[Kernel, str, Any], Any]) -> Self:
        """Return a copy with `replace(kernel, name, value)` for each hyper-parameter that does not shape the graph."""
        params = {}
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, Kernel):
                params[name] = value._map_parameters(replace)
            else:
                params[name] = value if name in self.structure else replace(self, name, value)
        return type(self)(**params)

    @property
    def key(self) -> Hashable:
        """The structure of the graph without its numbers: kernels with equal keys share a compilation."""
        parts: list[Hashable] = [type(self)]
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, Kernel):
                parts.append((name, value.key))
            elif is_symbolic(value) or name in self.structure:
                parts.append((name, value))
            else:
                parts.append((name, np.ndim(value)))
        return tuple(parts)

    def check_points(self, X: Points, name: str = "X") -> None:
        """Raise ValueError if points are outside the domain of the kernel or of a kernel inside it.

        Parameters
        ----------
        X : ndarray or CSR matrix
            Points (m, d).
        name : str
            The name of `X` in the message.
        """
        for value in self.get_params(deep=False).values():
            if isinstance(value, Kernel):
                value.check_points(X, name)
        shape: Any = X.shape
        self.check_features(shape[1])

    def check_features(self, d: int | None) -> None:
        """Raise ValueError if a vector of the kernel, or of one inside it, has not one number for each feature.

        Parameters
        ----------
        d : int or None
            The number of features; None if it is not known.
        """
        for key, value in self.get_params(deep=False).items():
            if isinstance(value, Kernel):
                value.check_features(d)
            elif key in self.per_feature:
                shape = np.shape(self._checked(key)) if not is_symbolic(value) else known_shape(value)
                check_length(f"{key} of {self._label}", shape, d)

    def __add__(self, other: Kernel | Scalar) -> Kernel:
        """K1 + K2, the kernel of the concatenated features, or K + c, with a constant feature."""
        from symsvm.kernels.algebra import Sum  # here, since these modules import this one
        from symsvm.kernels.named import Constant

        if isinstance(other, numbers.Real) or is_symbolic(other):
            other = Constant(other)  # pyright: ignore[reportArgumentType]  (float is a numbers.Real at run time only)
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    __radd__ = __add__

    def __mul__(self, other: Kernel | Scalar) -> Kernel:
        """K1 * K2, the kernel of the tensor product of the features, or c * K."""
        from symsvm.kernels.algebra import Product

        return Product(self, other) if isinstance(other, Kernel) else self.__rmul__(other)

    def __rmul__(self, c: Scalar) -> Kernel:
        """c * K with a number or a scalar graph c."""
        from symsvm.kernels.algebra import Scale

        return Scale(c, self) if isinstance(c, numbers.Real) or is_symbolic(c) else NotImplemented

    def __pow__(self, n: int) -> Kernel:
        """K ** n with an integer n >= 1."""
        from symsvm.kernels.algebra import Power

        return Power(self, n) if isinstance(n, numbers.Integral) else NotImplemented

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments by name.

        Parameters
        ----------
        deep : bool
            Whether to add the arguments of the kernels inside, as `k1__sigma`.

        Returns
        -------
        dict
            Values by name.
        """
        params = {name: getattr(self, name) for name in _parameter_names(type(self))}
        if deep:
            for name, value in list(params.items()):
                if isinstance(value, Kernel):
                    params |= {f"{name}__{key}": inner for key, inner in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set arguments by name.

        Parameters
        ----------
        **params : object
            New values; `k1__sigma` is the sigma of the kernel `k1` inside this one.

        Returns
        -------
        Kernel
            This kernel.
        """
        for name, value in params.items():
            head, _, rest = name.partition("__")
            own = self.get_params(deep=False)
            if head not in own or (rest and not isinstance(own[head], Kernel)):
                raise ValueError(
                    f"{name!r} is not a parameter of {self!r}; it has {', '.join(self.get_params()) or 'none'}."
                )
            if rest:
                own[head].set_params(**{rest: value})
            else:
                setattr(self, head, value)
        return self

    def __sklearn_clone__(self) -> Self:
        """Copy the kernel, but not the shared variables in it: a clone refers to the same symbols."""
        params = self.get_params(deep=False).items()
        return type(self)(**{name: v.__sklearn_clone__() if isinstance(v, Kernel) else v for name, v in params})

    def __eq__(self, other: object) -> bool:
        """Whether the other is a kernel of the same class with the same hyper-parameters; symbols are the same object.

        A list and an array of the same numbers are the same widths.
        """
        if type(other) is not type(self):
            return NotImplemented
        own, others = self.get_params(deep=False), other.get_params(deep=False)
        return own.keys() == others.keys() and all(
            is_same_parameter(value, others[name]) for name, value in own.items()
        )

    def __hash__(self) -> int:
        # Kernels are mutable: equal ones have equal hashes whatever their numbers become.
        return hash(type(self))

    def __repr__(self) -> str:
        args = ", ".join(f"{name}={format_parameter(value)}" for name, value in self.get_params(deep=False).items())
        return f"{type(self).__name__}({args})"


def _selects_by_value(node: Apply) -> bool:
    """Whether a node selects entries by a condition: the length of its result depends on values."""
    masks = isinstance(node.op, AdvancedSubtensor) and any(getattr(v, "dtype", "") == "bool" for v in node.inputs)
    return masks or isinstance(node.op, Nonzero)


@functools.cache
def _parameter_names(kernel: type) -> tuple[str, ...]:
    """The names of the constructor's arguments."""
    return tuple(inspect.signature(kernel.__init__).parameters)[1:]
