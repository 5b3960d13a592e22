"""Whole problems by a general interior-point method, as the independent reference."""

__all__ = []
