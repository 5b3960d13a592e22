"""Inspection of fitted models: contributions to a decision, plots, and a comparison of algorithms.

The service and the command line import this package, and so do the public modules `symsvm.plot` and
`symsvm.comparison`; estimators and solvers do not.
"""

__all__ = []
