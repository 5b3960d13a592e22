"""First-order methods: solvers whose step is one graph of W and its gradient, on every backend."""

__all__ = []
