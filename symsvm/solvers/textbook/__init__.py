"""The algorithms of the source documents, as they write them."""

__all__ = []
