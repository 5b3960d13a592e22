"""Canvas: what all pictures share: axes, legends, colours that everybody can tell apart, markers that need none."""

import numpy as np

__all__ = ["INK", "Display", "area", "colour", "dash", "dense", "machine_of", "marker", "names_of", "parameter"]

# Okabe and Ito's colours (Color Universal Design, 2008), without black; after them three more, which markers help.
_COLOURS = (
    "#D55E00",
    "#0072B2",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#7F7F7F",
    "#832DB6",
    "#A96B59",
    "#F0E442",
)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_AREAS = {"s": 0.8, "D": 0.75, "P": 1.3, "X": 1.3, "*": 1.9}
_DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
INK = "#222222"


def colour(i):
    """The colour of the i-th class or line."""
    return _COLOURS[i % len(_COLOURS)]


def marker(i):
    """The marker of the i-th class; colours and markers repeat after different numbers of classes."""
    return _MARKERS[i % len(_MARKERS)]


def area(i):
    """The area of the i-th marker that makes all look alike in size, in units of a circle's."""
    return _AREAS.get(marker(i), 1.0)


def dash(i):
    """The line style of the i-th line."""
    return _DASHES[i % len(_DASHES)]


class Display:
    """A picture: `plot` draws it and sets `ax_` and `figure_`."""

    def _begin(self, ax, **options):
        """The axes to draw on, new ones unless given."""
        if ax is None:
            try:
                from matplotlib import pyplot
            except ImportError:
                raise ImportError(
                    "Pictures need matplotlib, which is not installed: pip install 'symsvm[plot]'."
                ) from None
            ax = pyplot.subplots(layout="constrained", **options)[1]
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _end(self, *, beside=False):
        """Leave two spines, and a legend where something has a label: inside, or beside the axes."""
        self.ax_.spines[["top", "right"]].set_visible(False)
        if self.ax_.get_legend_handles_labels()[0]:
            place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0} if beside else {}
            self.ax_.legend(frameon=False, fontsize="small", **place)
        return self


def machine_of(estimator):
    """The machine inside a search or a pipeline, and the steps before it (None without any)."""
    estimator = getattr(estimator, "best_estimator_", estimator)
    if hasattr(estimator, "steps"):
        return machine_of(estimator[-1])[0], estimator[:-1] if len(estimator) > 1 else None
    return estimator, None


def parameter(machine, name):
    """A parameter that a machine was made with, None if it has none of this name (scikit-learn sets others to 0)."""
    return machine.get_params(deep=False).get(name) if hasattr(machine, "get_params") else None


def names_of(X):
    """The names of a data frame's columns, None for an array."""
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def dense(X):
    """X as an array of floats, (m, d)."""
    X = np.asarray(X.toarray() if hasattr(X, "tocsr") else X, dtype="float64")
    if X.ndim != 2 or 0 in X.shape:
        hint = "; reshape one feature with X.reshape(-1, 1)" if X.ndim == 1 else ""
        raise ValueError(f"X must have two dimensions (points, features), got the shape {X.shape}{hint}.")
    return X
