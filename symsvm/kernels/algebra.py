"""The algebra of kernels: sums, products, multiples and powers of kernels are kernels."""

from symsvm._lib.validation import count, is_symbolic
from symsvm.kernels.kernel import Kernel, shown

__all__ = ["Power", "Product", "Scale", "Sum"]


class _Two(Kernel):
    """A kernel made of two."""

    def __init__(self, k1, k2):
        self.k1 = k1
        self.k2 = k2

    @property
    def is_psd(self):
        """True if both are (for a product by Schur's theorem); else nothing is known."""
        return True if self.k1.is_psd and self.k2.is_psd else None


class Sum(_Two):
    """K(x, z) = K1(x, z) + K2(x, z)."""

    rank = 1

    def pair(self, x, z):
        """K1(x, z) + K2(x, z)."""
        return self.k1.of(x, z) + self.k2.of(x, z)

    def __repr__(self):
        return f"{_inside(self.k1, 1)} + {_inside(self.k2, 2)}"


class Product(_Two):
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
        """As K1 for c > 0, True for c = 0; else nothing is known."""
        if is_symbolic(self.c) or not self.c >= 0:
            return None
        return self.k1.is_psd or bool(self.c == 0)

    def pair(self, x, z):
        """c K1(x, z)."""
        return self.scalar("c", x) * self.k1.of(x, z)

    def __repr__(self):
        return f"{shown(self.c)} * {_inside(self.k1, 3)}"


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

    def __repr__(self):
        return f"{_inside(self.k1, 4)} ** {self.n}"


def _inside(kernel, rank):
    """The kernel as an operand, in parentheses where it binds less tightly: + is 1, * is 2, ** is 3, a name is 4."""
    return f"({kernel!r})" if kernel.rank < rank else repr(kernel)
