"""The fast exact solver: a decomposition over working sets."""

__all__ = []
