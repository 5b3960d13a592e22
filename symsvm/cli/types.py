"""Types: what the values of options may be: files or named sets, names, numbers."""

import difflib
import os

import click
from click.shell_completion import CompletionItem

__all__ = ["MOST", "DataFile", "Named", "Number", "Several"]

# Values of a range; a slip of the finger is no reason to fill the memory.
MOST = 10_000


class DataFile(click.ParamType):
    """The path of a file that exists, "-" for standard input, or the name of a data set."""

    name = "file"

    def convert(self, value, param, ctx):
        """The same, if there is such a file or such a set; a `StandardInput` for "-"."""
        if value == "-":
            return self._standard_input(param, ctx)
        if os.path.exists(value):
            return value
        from symsvm.io.data.registry import SETS

        name, _, part = value.partition(":")
        if name not in SETS or part not in ("", "test"):
            self.fail(
                f"there is no file {value!r}, and no data set of that name ('symsvm data' lists them).", param, ctx
            )
        return value

    def _standard_input(self, param, ctx):
        from symsvm.cli.standard_input import StandardInput

        if ctx.meta.setdefault(__name__, param) is not param:
            self.fail("standard input is one file: only one of the files can be '-'.", param, ctx)
        return StandardInput(ctx)

    def shell_complete(self, ctx, param, incomplete):
        """Files."""
        return [CompletionItem(incomplete, type="file")]


class Named(click.ParamType):
    """One of some names; what LIBSVM calls it is taken as well."""

    def __init__(self, names, aliases=None):
        self.names, self.aliases = tuple(names), aliases or {}
        self.name = "name"

    def convert(self, value, param, ctx):
        """The name that is meant."""
        found = self.aliases.get(value, value)
        if found not in self.names:
            near = difflib.get_close_matches(str(value), self.names, 1, 0.0)[0]
            self.fail(f"{value!r} is none of {', '.join(self.names)}; {near!r}?", param, ctx)
        return found

    def get_metavar(self, param, ctx=None):
        """All names."""
        return f"[{'|'.join(self.names)}]"

    def shell_complete(self, ctx, param, incomplete):
        """The names that begin so."""
        return [CompletionItem(name) for name in self.names if name.startswith(incomplete)]


class Number(click.ParamType):
    """A finite number, positive if asked, or one of some words."""

    def __init__(self, *, words=(), positive=False):
        self.words, self.positive = words, positive
        self.name = "|".join(("number", *words))

    def convert(self, value, param, ctx):
        """The number or the word."""
        if value in self.words or isinstance(value, float):
            return value
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not abs(number) < float("inf") or (self.positive and number <= 0):
            kind = "a positive number" if self.positive else "a number"
            others = f" or {' or '.join(map(repr, self.words))}" if self.words else ""
            self.fail(f"{value!r} is not {kind}{others}.", param, ctx)
        return number


class Several(click.ParamType):
    """Values of another type: 0.1,1,10 as they are, or 0.01:100:5, which is five from the first to the second.

    They are spaced as powers are, for numbers that have words for their defaults or must be positive; whole numbers and
    the others evenly.
    """

    def __init__(self, each, *, powers=True):
        self.each, self.powers = each, powers
        self.name = "values"

    def convert(self, value, param, ctx):
        """The list of values."""
        if isinstance(value, list):
            return value
        if ":" not in value:
            return [self.each.convert(item.strip(), param, ctx) for item in value.split(",")]
        parts = value.split(":")
        try:
            low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
        except (ValueError, IndexError):
            low, high, count = 0.0, 0.0, 0
        if len(parts) != 3 or not 2 <= count <= MOST or not low < high or (self.powers and low <= 0):
            self.fail(f"{value!r} is no range: write LOW:HIGH:COUNT, such as 0.01:100:5.", param, ctx)
        steps = [i / (count - 1) for i in range(count)]
        spaced = [low * (high / low) ** s if self.powers else low + (high - low) * s for s in steps]
        if self.each is click.INT:
            spaced = [int(number) if number.is_integer() else number for number in spaced]
        return [self.each.convert(repr(number), param, ctx) for number in spaced]
