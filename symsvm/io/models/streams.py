"""Streams: where `partial_fit` stands, to a file and back."""

import numpy as np

from symsvm._lib.validation import count, number
from symsvm.linear import Stream

__all__ = ["stream_of", "stream_state"]


def stream_state(stream):
    """The numbers of a stream, with which it goes on as if nothing had been."""
    return {"lam": stream.lam, "t": stream.t, "H": stream.H, "V": stream.V, "U": stream.U}


def stream_of(state, d):
    """The stream of d features with these numbers."""
    stream = Stream(d, number(state["lam"], "lam", positive=True))
    stream.t, stream.H = count(state["t"], "t"), number(state["H"], "H")
    stream.V, stream.U = state["V"], state["U"]
    for array in (stream.V, stream.U):
        if array.shape != (d + 1,) or array.dtype != "float64" or not np.isfinite(array).all():
            raise ValueError(f"a stream must have {d + 1} finite numbers")
    return stream
