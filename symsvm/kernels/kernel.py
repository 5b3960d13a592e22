"""Kernel: one expression for a pair of points, and all that follows from it."""

import inspect
import numbers

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors
from pytensor.tensor.basic import Nonzero
from pytensor.tensor.subtensor import AdvancedSubtensor

from symsvm._lib.validation import as_float, is_symbolic, number
from symsvm.graphs.dtypes import widen

__all__ = ["Kernel", "shown"]


class Kernel:
    """A kernel K(x, z) = <Phi(x), Phi(z)>, the inner product in a feature space (Eq. 14; Eq. 003:23).

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
        """Return `pair(x, z)`, checked to be a scalar, in the dtype of the points; a number in it costs no digit."""
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
        if any(_picks(v.owner) for v in ancestors([value], blockers=[x, z]) if v.owner is not None):
            raise ValueError(
                f"{self!r} picks entries by their values, so it cannot be evaluated for all pairs at once: "
                "write pt.switch(condition, entry, 0) in place of x[condition]."
            )
        (value,) = widen([value.astype(x.dtype)])
        return value

    def __call__(self, X, Z=None):
        """Return the graph of the Gram matrix K(x_i, z_j), (m, n); Z is X unless given."""
        X = as_float(X)
        Z = X if Z is None else as_float(Z)
        if X.ndim != 2 or Z.ndim != 2:
            raise ValueError(f"a kernel takes matrices of points (m, d), got {X.ndim} and {Z.ndim} dimension(s).")
        d, other = X.type.shape[1], Z.type.shape[1]
        if d is not None and other is not None and d != other:
            raise ValueError(f"a kernel takes points with the same features, got {d} and {other}.")
        return self._over(X[:, None, :], Z[None, :, :], X.dtype, (X.shape[0], Z.shape[0]))

    def diag(self, X):
        """Return the graph of the diagonal K(x_i, x_i), (m,)."""
        X = as_float(X)
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
        return pt.constant(np.asarray(self._number(name), dtype=like.dtype))

    def _number(self, name):
        return number(getattr(self, name), f"{name} of {self._label}", positive=name in self.positive)

    @property
    def _label(self):
        return type(self).__name__

    def lift(self, variable):
        """Return a copy in which each number (or array) became `variable(name, value)`.

        A graph built from the copy holds no number that a user may change, so one compilation serves them all.
        """

        def change(kernel, name, value):
            if is_symbolic(value):
                return value
            return variable(name, np.asarray(value) if np.ndim(value) else kernel._number(name))

        return self._changed(change)

    def symbols(self):
        """The hyper-parameters that are graphs, here and in the kernels inside."""
        found = []
        self._changed(lambda kernel, name, value: found.append(value) if is_symbolic(value) else None)
        return found

    def with_values(self, values):
        """Return a copy in which the graphs of `symbols` became these numbers, in their order."""
        values = iter(values)
        return self._changed(lambda kernel, name, value: next(values) if is_symbolic(value) else value)

    def _changed(self, change):
        """Return a copy with `change(kernel, name, value)` for each hyper-parameter that does not shape the graph."""
        changed = {}
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, Kernel):
                changed[name] = value._changed(change)
            else:
                changed[name] = value if name in self.structure else change(self, name, value)
        return type(self)(**changed)

    @property
    def key(self):
        """What tells the graph of a kernel from another's: all but its numbers."""
        parts = [type(self)]
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, Kernel):
                parts.append((name, value.key))
            elif is_symbolic(value) or name in self.structure:
                parts.append((name, value))
            else:
                parts.append((name, np.ndim(value)))
        return tuple(parts)

    def check_points(self, X, name="X"):
        """Raise where the points `X` are not in the kernel's domain, or in that of a kernel inside it."""
        for value in self.get_params(deep=False).values():
            if isinstance(value, Kernel):
                value.check_points(X, name)

    def __add__(self, other):
        """K1 + K2, the kernel of the concatenated features, or K + c, with a constant feature."""
        from symsvm.kernels.algebra import Sum  # which is made of kernels
        from symsvm.kernels.named import Constant

        if isinstance(other, numbers.Real) or is_symbolic(other):
            other = Constant(other)
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    __radd__ = __add__

    def __mul__(self, other):
        """K1 * K2, the kernel of the tensor product of the features, or c * K."""
        from symsvm.kernels.algebra import Product

        return Product(self, other) if isinstance(other, Kernel) else self.__rmul__(other)

    def __rmul__(self, c):
        """c * K with a number or a scalar graph c."""
        from symsvm.kernels.algebra import Scale

        return Scale(c, self) if isinstance(c, numbers.Real) or is_symbolic(c) else NotImplemented

    def __pow__(self, n):
        """K ** n with an integer n >= 1."""
        from symsvm.kernels.algebra import Power

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
        args = ", ".join(f"{name}={shown(value)}" for name, value in self.get_params(deep=False).items())
        return f"{type(self).__name__}({args})"


def _picks(node):
    """Whether a node selects entries by a condition, so that their number depends on values."""
    masks = isinstance(node.op, AdvancedSubtensor) and any(getattr(v, "dtype", "") == "bool" for v in node.inputs)
    return masks or isinstance(node.op, Nonzero)


def shown(value):
    """A hyper-parameter as it stands in a repr."""
    if is_symbolic(value):
        return value.name or str(value)
    if isinstance(value, np.ndarray):
        return f"array{value.shape}"
    return repr(value.item() if isinstance(value, np.generic) else value)
