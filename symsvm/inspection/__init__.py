"""Looking at models: contributions, pictures, comparisons of algorithms."""

__all__ = []
