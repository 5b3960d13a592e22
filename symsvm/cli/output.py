"""Output of a command: text and tables for a terminal or a pipe, one JSON document with --json, and output files."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import math
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from symsvm.cli.command_group import BadData, InvalidUsage, replace_controls

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    Precision = Literal["float64", "float32"]

__all__ = [
    "Output",
    "check_model_path",
    "check_output_path",
    "column_table",
    "file_size",
    "key_value_table",
    "load_model",
    "require_matplotlib",
    "save_model",
    "styled",
    "to_json",
]

# The least width of a column of words whose lines are folded.
_MIN_WORD_WIDTH = 12
# The width of output to a file or a pipe, unless COLUMNS is set.
_PIPE_WIDTH = 200
_MODEL_SUFFIXES = (".symsvm", ".libsvm", ".onnx")


class Output:
    """The output of one command: results go to stdout, notes and progress to stderr.

    Parameters
    ----------
    as_json : bool
        Print nothing to stdout but the document of `print_json`.
    quiet : bool
        Print results and failures only: no summary, no other notes, no progress.
    """

    def __init__(self, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet
        self.notes: list[str] = []

    @functools.cached_property
    def stdout(self) -> Console:
        """Rich's console of stdout."""
        return _console()

    @functools.cached_property
    def stderr(self) -> Console:
        """Rich's console of stderr."""
        return _console(stderr=True)

    @property
    def shows_progress(self) -> bool:
        """Whether to draw progress bars."""
        return not (self.quiet or self.as_json) and self.stderr.is_terminal

    @property
    def width(self) -> int:
        """The columns of stdout."""
        return self.stdout.width

    def show(self, *items: Any) -> None:
        """Print texts and tables of a summary, unless the output is JSON or quiet."""
        if not (self.as_json or self.quiet):
            for item in items:
                # On a terminal, lines break between words; a file or a pipe gets them whole.
                is_table = hasattr(item, "add_row")
                self.stdout.print(item, soft_wrap=not self.stdout.is_terminal and not is_table)

    def print_result(self, text: Any) -> None:
        """Print a result that was asked for, also if quiet; not if the output is JSON."""
        if not self.as_json:
            print(text)

    def note(self, text: str, *, is_failure: bool = False) -> None:
        """Print a note to stderr, once; if quiet, only those about a failure."""
        if text in self.notes:
            return
        self.notes.append(text)
        if is_failure or not self.quiet:
            self.stderr.print(styled(("note: ", "yellow"), text), soft_wrap=not self.stderr.is_terminal)

    @contextlib.contextmanager
    def warnings_as_notes(self, *, ignore: tuple[type[Warning], ...] = ()) -> Iterator[None]:
        """Print the warnings inside a `with` as notes, except for the categories to `ignore` and deprecations."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        from sklearn.exceptions import ConvergenceWarning

        for warning in caught:
            # Deprecations concern the author of the code, not the user of a command.
            if not issubclass(warning.category, (*ignore, DeprecationWarning, PendingDeprecationWarning)):
                is_failure = issubclass(warning.category, ConvergenceWarning)
                self.note(" ".join(str(warning.message).split()), is_failure=is_failure)

    def print_json(self, document: dict[str, Any]) -> None:
        """Print a document, with the notes, if the output is JSON."""
        if self.as_json:
            print(json.dumps(to_json(document | {"notes": self.notes}), indent=2, allow_nan=False))


def _console(**options: Any) -> Console:
    """Create a console that raises BrokenPipeError on a closed pipe and replaces control characters."""
    from rich.console import Console
    from rich.segment import Segment

    class SafeConsole(Console):
        def on_broken_pipe(self):
            raise BrokenPipeError

        def render(self, renderable, options=None):
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else replace_controls(text), style, control)

    # Text comes from files, and numbers are formatted already: neither is markup nor to be highlighted.
    console = SafeConsole(markup=False, highlight=False, emoji=False, **options)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PIPE_WIDTH
    return console


def to_json(value: Any) -> Any:
    """Convert NumPy's numbers and arrays to Python's, and numbers that are not finite to None.

    >>> to_json({"a": (1, float("nan"))})
    {'a': [1, None]}
    """
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if hasattr(value, "tolist"):
        return to_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


# ---- text and tables


def styled(*parts: str | tuple[str, str]) -> Text:
    """Join texts and pairs (text, style) to a line."""
    from rich.text import Text

    return Text.assemble(*parts)


def key_value_table(pairs: Iterable[tuple[str, Any]]) -> Table:
    """Lay out names and values in two columns; pairs with the value None are left out."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None:
            table.add_row(name, value if isinstance(value, Text) else str(value))
    return table


def column_table(
    names: Sequence[str], rows: Iterable[Sequence[Any]], *, width: int, left: int = 1, title: str | None = None
) -> Table:
    """Lay out rows below a head; the first `left` columns are words, the others numbers.

    If the table is wider than `width`, words are folded; if that is not enough, the last columns are left out.
    """
    from rich import box
    from rich.table import Table

    cells = [list(map(str, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    least = [min(column, _MIN_WORD_WIDTH) if i < left else column for i, column in enumerate(widths)]
    n_columns = len(names)
    while n_columns > left + 1 and sum(least[:n_columns]) + 2 * n_columns > width:
        n_columns -= 1
    table = Table(
        box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", padding=(0, 1, 0, 0), pad_edge=False
    )
    for i, name in enumerate(names[:n_columns]):
        table.add_column(name, justify="left" if i < left else "right", overflow="fold", no_wrap=i >= left)
    for row in cells:
        table.add_row(*row[:n_columns])
    return table


# ---- output files


def check_output_path(path: str | Path | None) -> None:
    """Raise, before any work, if a file cannot be written to a path."""
    if path is None:
        return
    if path == "-":
        raise InvalidUsage("'-' is not an output file: leave out -o to print to stdout.")
    path = Path(path)
    if path.is_dir():
        raise InvalidUsage(f"{path} is a directory: give the name of a file.")
    if not path.parent.is_dir():
        raise InvalidUsage(f"{path}: there is no directory {path.parent}.")
    if not os.access(path.parent, os.W_OK):
        raise BadData(f"{path}: the directory {path.parent} cannot be written to.")


def check_model_path(path: str | None, *, is_scaled: bool = False, is_linear: bool = False) -> None:
    """Raise, before any work, if a model of this kind cannot be written to a path."""
    if path is None:
        return
    suffix = Path(path).suffix
    if suffix not in _MODEL_SUFFIXES:
        *others, last = _MODEL_SUFFIXES
        raise InvalidUsage(f"{path}: the ending must be {', '.join(others)} or {last}, got {suffix or 'none'!r}.")
    if suffix == ".libsvm" and (is_scaled or is_linear):
        limit = "no scaling" if is_scaled else "kernel machines only"
        raise InvalidUsage(f"{path}: LIBSVM's model file holds {limit}: write .symsvm, or convert that to .onnx.")
    if suffix == ".onnx" and importlib.util.find_spec("onnx") is None:
        raise InvalidUsage(f"{path}: writing ONNX needs onnx, which is not installed: pip install 'symsvm[onnx]'.")
    check_output_path(path)


def save_model(model: Any, path: str, *, has_fallback: bool = False, precision: Precision | None = None) -> None:
    """Write a model; a failure leaves a file that was there unchanged.

    With `has_fallback`, a model that the format cannot hold is written to a .symsvm file, so that a long training is
    not lost; the error names that file.
    """
    from symsvm.io.models import ModelFileError, save

    try:
        save(model, path, precision=precision)
    except ModelFileError as error:
        elsewhere = _save_fallback(model, Path(path)) if has_fallback else ""
        raise InvalidUsage(f"{error}{elsewhere}") from None  # the model is valid; the format cannot hold it
    except OSError as error:
        old = "; the existing file is unchanged" if os.path.exists(path) else ""
        raise BadData(f"{path}: the model could not be written ({error.strerror}){old}.") from None


def _save_fallback(model: Any, path: Path) -> str:
    """Write a model to a .symsvm file of the same name, unless there is one, and return a sentence about it."""
    from symsvm.io.models import save

    other = path.with_suffix(".symsvm")
    if path.suffix == ".symsvm" or other.exists():
        return ""
    save(model, other)
    return f" The model was written to {other} instead."


def load_model(path: str, trusted: Sequence[str] = (), n_features: int | None = None) -> Any:
    """Read a model."""
    from symsvm.io.models import load

    return load(path, trusted=trusted, n_features=n_features)


def file_size(path: str) -> str:
    """Return the size of a file as text."""
    size = os.path.getsize(path)
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"


def require_matplotlib() -> None:
    """Set up Matplotlib to draw to files; raise, before any work, if it is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise InvalidUsage("plots need matplotlib, which is not installed: pip install 'symsvm[plot]'.")
    import matplotlib as mpl

    mpl.use("Agg")
