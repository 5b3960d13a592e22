"""PyTensor graphs: questions about their structure, their floating types, and a linear solver as a graph."""

__all__ = []
