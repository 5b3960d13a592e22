"""Algorithms as textbooks write them: SMO, perceptrons, Lagrangian relaxation."""

__all__ = []
