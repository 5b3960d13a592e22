"""Progress: a bar that shows how far a run is from its tolerance."""

import math
import sys

__all__ = ["Progress"]


class Progress:
    """A bar on the way from the first violation to tol, both as logarithms, with the gap and the support vectors.

    It is drawn on a terminal only.
    """

    def __init__(self, tol):
        from tqdm import tqdm

        layout = "{desc} {percentage:3.0f}% |{bar}| {elapsed}{postfix}"
        self._bar = tqdm(total=1.0, desc="symsvm", bar_format=layout, file=sys.stderr, disable=None, leave=True)
        self._tol, self._first = tol, None

    def show(self, info):
        """Draw an `Info`."""
        if self._first is None:
            self._first = max(info.violation, 2 * self._tol)
        way = math.log(self._first / max(info.violation, self._tol)) / math.log(self._first / self._tol)
        self._bar.n = max(self._bar.n, min(1.0, way))
        text = [f"iteration {info.iteration}", f"violation {info.violation:.1e}"]
        if info.gap is not None:
            text.append(f"gap {info.gap:.1e}")
        if info.free is not None:
            text.append(f"{info.free + info.bounded} support vectors")
        self._bar.set_postfix_str(", ".join(text))

    def close(self):
        """Leave the bar as it is."""
        self._bar.close()
