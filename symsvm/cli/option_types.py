"""Types of the values of options: data files, names, numbers and lists of them."""

from __future__ import annotations

import difflib
import os
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from symsvm.cli.inputs import StandardInput

__all__ = ["MAX_VALUES", "POSITIVE", "DataFile", "Name", "Number", "ValueList"]

# The most values of a range: a mistyped count must not fill the memory.
MAX_VALUES = 10_000


class DataFile(click.ParamType):
    """The path of an existing file, "-" for standard input, or the name of a data set."""

    name = "file"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str | StandardInput:
        """Return the path or name; a `StandardInput` for "-"."""
        if value == "-":
            return self._standard_input(param, ctx)
        if os.path.exists(value):
            return value
        from symsvm.io.data import SETS

        name, _, part = value.partition(":")
        if name not in SETS or part not in ("", "test"):
            self.fail(
                f"there is no file {value!r}, and no data set of that name ('symsvm data' lists them).", param, ctx
            )
        return value

    def _standard_input(self, param: click.Parameter | None, ctx: click.Context | None) -> StandardInput:
        from symsvm.cli.inputs import StandardInput

        assert ctx is not None, "a command parses its arguments in a context"
        if ctx.meta.setdefault(__name__, param) is not param:
            self.fail("standard input can be read only once: only one of the files can be '-'.", param, ctx)
        return StandardInput(ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete file names."""
        return [CompletionItem(incomplete, type="file")]


class Name(click.ParamType):
    """One of some names, or an alias of one, such as LIBSVM's number."""

    name = "name"

    def __init__(self, names: Iterable[str], aliases: Mapping[str, str] | None = None) -> None:
        self.names, self.aliases = tuple(names), aliases or {}

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name."""
        name = self.aliases.get(value, value)
        if name not in self.names:
            near = difflib.get_close_matches(str(value), self.names, 1, 0.0)[0]
            self.fail(f"{value!r} is not one of {', '.join(self.names)}; did you mean {near!r}?", param, ctx)
        return name

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return all names for the help."""
        return f"[{'|'.join(self.names)}]"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete names."""
        return [CompletionItem(name) for name in self.names if name.startswith(incomplete)]


class Number(click.ParamType):
    """A finite number, which may have to be positive, or one of some words."""

    def __init__(self, *, words: tuple[str, ...] = (), positive: bool = False) -> None:
        self.words, self.positive = words, positive
        self.name = "number"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return the kind of value for the help, such as NUMBER|scale|auto."""
        return "|".join(("NUMBER", *self.words))

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> str | float:
        """Return the number or the word."""
        if value in self.words or isinstance(value, float):
            return value
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not abs(number) < float("inf") or (self.positive and number <= 0):
            kind = "a positive number" if self.positive else "a number"
            words = f" or {' or '.join(map(repr, self.words))}" if self.words else ""
            self.fail(f"{value!r} is not {kind}{words}.", param, ctx)
        return number


class ValueList(click.ParamType):
    """Values of another type: a list 0.1,1,10 or a range LOW:HIGH:COUNT such as 0.01:100:5.

    Parameters
    ----------
    each : click.ParamType
        The type of a value.
    is_geometric : bool
        Whether the values of a range are spaced by a factor; else they are spaced evenly.
    """

    name = "values"

    def __init__(self, each: click.ParamType, *, is_geometric: bool = True) -> None:
        self.each, self.is_geometric = each, is_geometric

    def convert(self, value: str | list, param: click.Parameter | None, ctx: click.Context | None) -> list:
        """Return the list of values."""
        if isinstance(value, list):
            return value
        if ":" not in value:
            return [self.each.convert(item.strip(), param, ctx) for item in value.split(",")]
        parts = value.split(":")
        try:
            low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
        except (ValueError, IndexError):
            low, high, count = 0.0, 0.0, 0
        if len(parts) != 3 or not 2 <= count <= MAX_VALUES or not low < high or (self.is_geometric and low <= 0):
            self.fail(f"{value!r} is not a range: write LOW:HIGH:COUNT, such as 0.01:100:5.", param, ctx)
        steps = [i / (count - 1) for i in range(count)]
        numbers = [low * (high / low) ** s if self.is_geometric else low + (high - low) * s for s in steps]
        if self.each is click.INT:
            numbers = [int(number) if number.is_integer() else number for number in numbers]
        return [self.each.convert(repr(number), param, ctx) for number in numbers]


POSITIVE = Number(positive=True)
