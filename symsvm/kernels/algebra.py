"""The algebra of kernels: sums, products, multiples and powers of kernels are kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symsvm._lib.validation import count, is_symbolic
from symsvm.kernels.kernel import Kernel
from symsvm.kernels.kernel_parameters import format_parameter

if TYPE_CHECKING:
    from symsvm._lib.types import Graph, Scalar

__all__ = ["Power", "Product", "Scale", "Sum"]


class _BinaryKernel(Kernel):
    """A kernel composed of two kernels."""

    def __init__(self, k1: Kernel, k2: Kernel) -> None:
        self.k1 = k1
        self.k2 = k2

    @property
    def is_psd(self) -> bool | None:
        """True if both are (for a product by Schur's theorem); else nothing is known."""
        return True if self.k1.is_psd and self.k2.is_psd else None


class Sum(_BinaryKernel):
    """K(x, z) = K1(x, z) + K2(x, z)."""

    precedence = 1

    def pair(self, x: Graph, z: Graph) -> Graph:
        return self.k1.checked_pair(x, z) + self.k2.checked_pair(x, z)

    def __repr__(self) -> str:
        return f"{_operand(self.k1, 1)} + {_operand(self.k2, 2)}"


class Product(_BinaryKernel):
    """K(x, z) = K1(x, z) K2(x, z)."""

    precedence = 2

    def pair(self, x: Graph, z: Graph) -> Graph:
        return self.k1.checked_pair(x, z) * self.k2.checked_pair(x, z)

    def __repr__(self) -> str:
        return f"{_operand(self.k1, 2)} * {_operand(self.k2, 3)}"


class Scale(Kernel):
    """K(x, z) = c K1(x, z)."""

    precedence = 2

    def __init__(self, c: Scalar, k1: Kernel) -> None:
        self.c = c
        self.k1 = k1

    @property
    def is_psd(self) -> bool | None:
        """As K1 for c > 0, True for c = 0; else nothing is known."""
        c: Any = self.c
        if is_symbolic(c) or not c >= 0:
            return None
        return self.k1.is_psd or bool(c == 0)

    def pair(self, x: Graph, z: Graph) -> Graph:
        return self.scalar("c", x) * self.k1.checked_pair(x, z)

    def __repr__(self) -> str:
        return f"{format_parameter(self.c)} * {_operand(self.k1, 3)}"


class Power(Kernel):
    """K(x, z) = K1(x, z)^n with an integer n >= 1."""

    structure = ("n",)
    precedence = 3

    def __init__(self, k1: Kernel, n: int) -> None:
        self.k1 = k1
        self.n = n

    @property
    def is_psd(self) -> bool | None:
        """True if K1 is (Schur's product theorem); else nothing is known."""
        return True if self.k1.is_psd else None

    def pair(self, x: Graph, z: Graph) -> Graph:
        return self.k1.checked_pair(x, z) ** count(self.n, "the exponent of a kernel", least=1)

    def __repr__(self) -> str:
        return f"{_operand(self.k1, 4)} ** {self.n}"


def _operand(kernel: Kernel, precedence: int) -> str:
    """Return the kernel as an operand, in parentheses if it binds less tightly than the operator needs."""
    return f"({kernel!r})" if kernel.precedence < precedence else repr(kernel)
