"""First-order methods: a step is one graph, on every backend."""

__all__ = []
