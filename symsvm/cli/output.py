"""Output: what a command says, to a person on a terminal, to a file, or as one JSON document to a machine."""

import contextlib
import functools
import json
import math
import os
import warnings

__all__ = ["Output", "facts", "grid", "plain", "styled", "visible"]

# Letters that a folded column of words has at least.
_WORD = 12
_CONTROLS = {code: "?" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
# Columns of a file or a pipe, which no terminal narrows.
_WIDE = 200


class Output:
    """Where a command reports: stdout for results, stderr for notes and progress.

    Parameters
    ----------
    as_json : nothing goes to stdout but the document of `finish`.
    quiet : nothing is shown beside the answers to questions and what went wrong: no summary, no other notes, no
        progress.
    """

    def __init__(self, as_json=False, quiet=False):
        self.as_json, self.quiet, self.notes = as_json, quiet, []

    @functools.cached_property
    def console(self):
        """Rich's console of stdout."""
        return _console()

    @functools.cached_property
    def aside(self):
        """Rich's console of stderr."""
        return _console(stderr=True)

    @property
    def draws(self):
        """Whether progress is to be drawn."""
        return not (self.quiet or self.as_json) and self.aside.is_terminal

    @property
    def width(self):
        """Columns of stdout."""
        return self.console.width

    def show(self, *what):
        """Print texts and tables, unless it is to be JSON or quiet."""
        if not (self.as_json or self.quiet):
            for each in what:
                # A terminal gets lines that end between words; a file or a pipe gets them whole.
                self.console.print(each, soft_wrap=not self.console.is_terminal and not _is_table(each))

    def answer(self, text):
        """Print what was asked for, and nothing else, also where it is to be quiet."""
        if not self.as_json:
            print(text)

    def note(self, text, *, wrong=False):
        """Say something beside the result, once; what went wrong also where it is to be quiet."""
        if text in self.notes:
            return
        self.notes.append(text)
        if wrong or not self.quiet:
            self.aside.print(styled(("note: ", "yellow"), text), soft_wrap=not self.aside.is_terminal)

    @contextlib.contextmanager
    def heeding(self, *, ignore=()):
        """Turn warnings into notes; the categories to `ignore` are told by the result itself."""
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            yield
        from sklearn.exceptions import ConvergenceWarning

        for warning in found:
            # Deprecations are for whoever writes the code that is warned of.
            if not issubclass(warning.category, (*ignore, DeprecationWarning, PendingDeprecationWarning)):
                wrong = issubclass(warning.category, ConvergenceWarning)
                self.note(" ".join(str(warning.message).split()), wrong=wrong)

    def finish(self, document):
        """Print the document where JSON is wanted."""
        if self.as_json:
            document = plain(document | {"notes": self.notes})
            print(json.dumps(document, indent=2, allow_nan=False))


def _is_table(value):
    return hasattr(value, "add_row")


def _console(**options):
    from rich.console import Console as Rich
    from rich.segment import Segment

    class Console(Rich):
        """Rich's, which leaves a pipe that nobody reads to the program, and shows no text that steers a terminal."""

        def on_broken_pipe(self):
            raise BrokenPipeError

        def render(self, renderable, options=None):
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else visible(text), style, control)

    # Text comes from files and from numbers that are formatted already: it is neither markup nor to be coloured.
    console = Console(markup=False, highlight=False, emoji=False, **options)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDE
    return console


def visible(text):
    r"""A text whose control characters do nothing to a terminal: names and labels come from files of others.

    >>> visible("a\x1b[31mb\n")
    'a?[31mb\n'
    """
    return text.translate(_CONTROLS)


def plain(value):
    """A value as JSON has it: NumPy's numbers and arrays as Python's, what is not finite as null.

    >>> plain({"a": (1, float("nan"))})
    {'a': [1, None]}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def styled(*parts):
    """A line of texts and pairs (text, style)."""
    from rich.text import Text

    return Text.assemble(*parts)


def facts(pairs):
    """Names and what is to be said of them, two columns."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None:
            table.add_row(name, value if isinstance(value, Text) else str(value))
    return table


def grid(names, rows, *, width, left=1, title=None):
    """A table with a head; the first `left` columns are words, the others numbers.

    Words are folded where the table is wider than `width`; where that is not enough, the last columns are left out.
    """
    from rich import box
    from rich.table import Table

    rows = [list(map(str, row)) for row in rows]
    sizes = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    least = [min(size, _WORD) if i < left else size for i, size in enumerate(sizes)]
    shown = len(names)
    while shown > left + 1 and sum(least[:shown]) + 2 * shown > width:
        shown -= 1
    table = Table(
        box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", padding=(0, 1, 0, 0), pad_edge=False
    )
    for i, name in enumerate(names[:shown]):
        table.add_column(name, justify="left" if i < left else "right", overflow="fold", no_wrap=i >= left)
    for row in rows:
        table.add_row(*row[:shown])
    return table
