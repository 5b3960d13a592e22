"""PyTensor graphs: questions about their structure, their floating types, and a linear solver as a graph.

Nothing here is specific to support vector machines. Every package except `_lib` may import from here.
"""

__all__ = []
