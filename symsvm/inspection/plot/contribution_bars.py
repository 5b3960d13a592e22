"""`ContributionsDisplay`: the terms of a decision as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm._lib.validation import count
from symsvm.inspection.plot.display import INK, Display, series_colour

if TYPE_CHECKING:
    from typing import Self

    from matplotlib.axes import Axes

    from symsvm._lib.types import Array
    from symsvm.inspection.contributions import Contributions

__all__ = ["ContributionsDisplay", "contributions"]


class ContributionsDisplay(Display):
    """The largest terms of a decision as bars, and the sum of the others.

    Parameters
    ----------
    names : list of str
        The names of the terms.
    terms : array of shape (n,)
        The terms, the largest first; the last one may be the sum of the others.
    title : str
        What they add up to.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
        The bars, the largest at the top.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    """

    bars_: Any

    def __init__(self, *, names: list[str], terms: Array, title: str) -> None:
        self.names, self.terms, self.title = names, terms, title

    @classmethod
    def from_contributions(cls, found: Contributions, n: int = 10, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the terms of a decision.

        Parameters
        ----------
        found, n, ax, **kwargs : object
            As in `symsvm.plot.contributions`.

        Returns
        -------
        ContributionsDisplay
            The display.
        """
        if not hasattr(found, "top"):
            raise TypeError(
                f"found must be an element of what symsvm.contributions(model, X) returns, got {type(found).__name__}: "
                "pass symsvm.contributions(model, X)[0], for example."
            )
        top = found.top(count(n, "n", least=1))
        prefix = "" if found.by == "features" else "training point "
        names, terms = [f"{prefix}{term.name}" for term in top], [term.contribution for term in top]
        if len(found) > len(top):
            names.append(f"{len(found) - len(top)} others")
            terms.append(found.remainder(n))
        against = "" if found.against is None else f", not {found.against}"
        title = "" if found.label is None else f"{found.label}{against}: "
        title += f"{found.decision:.4g} = {found.intercept:.4g} + the sum of the bars"
        return cls(names=names, terms=np.array(terms), title=title).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to draw on; a new figure by default.
        **kwargs : dict
            Options of `Axes.barh`.

        Returns
        -------
        ContributionsDisplay
            The display itself.
        """
        n = len(self.terms)
        ax = self._open_axes(ax, figsize=(5.6, 1.0 + 0.26 * n))
        style: dict[str, Any] = {"color": [series_colour(int(term > 0)) for term in self.terms], "height": 0.72}
        self.bars_ = ax.barh(np.arange(n), self.terms, **(style | kwargs))
        ax.axvline(0.0, color=INK, linewidth=0.8)
        ax.set_yticks(np.arange(n), self.names)
        ax.set_ylim(n - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel("contribution to the decision value")
        ax.set_title(self.title, fontsize="medium")
        self._finish()
        return self


def contributions(found: Contributions, n: int = 10, *, ax: Axes | None = None, **kwargs: Any) -> ContributionsDisplay:
    """Draw the terms of a decision: bars to the right speak for its class, bars to the left against it.

    Parameters
    ----------
    found : Contributions
        One of those that `symsvm.contributions` returns.
    n : int, default=10
        The number of terms that have bars of their own; one more is the sum of the others.
    ax : matplotlib Axes, optional
        The axes to draw on; a new figure by default.
    **kwargs : dict
        Options of `Axes.barh`.

    Returns
    -------
    ContributionsDisplay
        The display.
    """
    return ContributionsDisplay.from_contributions(found, n, ax=ax, **kwargs)
