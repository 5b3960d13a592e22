"""Types: what the values of options may be: files or named sets, names, numbers."""

import difflib
import os

import click
from click.shell_completion import CompletionItem

__all__ = ["DataFile", "Named", "Number"]


class DataFile(click.ParamType):
    """The path of a file that exists, or the name of a data set."""

    name = "file"

    def convert(self, value, param, ctx):
        """The same, if there is such a file or such a set."""
        if os.path.exists(value):
            return value
        from symsvm.data.registry import SETS

        if value not in SETS:
            self.fail(
                f"there is no file {value!r}, and no data set of that name ('symsvm data' lists them).", param, ctx
            )
        return value

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
