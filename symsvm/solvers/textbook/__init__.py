"""Algorithms as the source documents write them: SMO, perceptrons, Lagrangian relaxation."""

__all__ = []
