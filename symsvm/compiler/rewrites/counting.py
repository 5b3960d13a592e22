"""Counting: which passes fired and on how many nodes, those in the loops that another pass opened included."""

from collections import Counter
from contextlib import contextmanager
from contextvars import ContextVar

from pytensor.graph.rewriting.basic import NodeRewriter

__all__ = ["Counted", "counting"]

_FIRED = ContextVar("fired", default=None)


@contextmanager
def counting():
    """Count the passes that fire inside the block, by name."""
    token = _FIRED.set(Counter())
    try:
        yield _FIRED.get()
    finally:
        _FIRED.reset(token)


class Counted(NodeRewriter):
    """A pass that counts the nodes it replaces.

    What fires inside a pass (a loop in a loop) counts only if that pass succeeds itself: else it is thrown away.
    """

    def __init__(self, own, rewrite):
        self.own, self.rewrite = own, rewrite

    def __str__(self):
        return str(self.rewrite)

    def tracks(self):
        """The operations that the pass looks at."""
        return self.rewrite.tracks()

    def add_requirements(self, fgraph):
        """Attach what the pass needs to a graph."""
        self.rewrite.add_requirements(fgraph)

    def transform(self, fgraph, node, enforce_tracks=True):
        """Apply the pass to a node."""
        with counting() as inside:
            result = self.rewrite.transform(fgraph, node, enforce_tracks)
        total = _FIRED.get()
        if result and total is not None:
            total.update(inside)
            total[self.own] += 1
        return result
