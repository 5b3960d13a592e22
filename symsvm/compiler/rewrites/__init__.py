"""The passes, each a registered PyTensor rewrite; `symsvm.compiler.lifting` runs them."""

__all__ = []
