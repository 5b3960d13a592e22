"""Quadratic programming by a general interior-point method: the independent reference."""

__all__ = []
