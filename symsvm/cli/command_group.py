"""The program `symsvm`: its commands, which are imported when they are asked for, its errors and its exit codes."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from symsvm import __version__
from symsvm._lib.interrupts import is_interrupt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "BAD_DATA",
    "COMMANDS",
    "DONE",
    "NOT_CONVERGED",
    "USAGE",
    "BadData",
    "Command",
    "Interrupted",
    "InvalidUsage",
    "Program",
    "program",
    "replace_controls",
]

_CONTROLS = {code: "?" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}

# Exit codes.
DONE, NOT_CONVERGED, USAGE, BAD_DATA = range(4)


class _Entry(NamedTuple):
    """The module of this package that defines a command, and its line in the help."""

    module: str
    summary: str


# The commands in the order of the help, which is written from here: it imports none of them.
COMMANDS = {
    "train": _Entry("train_command", "Train a machine on a file and write the model."),
    "predict": _Entry("predict_command", "Predict the points in a file."),
    "evaluate": _Entry("evaluate_command", "Report the scores of a model on a file with labels."),
    "tune": _Entry("tune_command", "Search for the best parameters by cross-validation."),
    "explain": _Entry("explain_command", "Show a model's formula, its compiled graph and its certificate."),
    "convert": _Entry("short_commands", "Write a model in another format."),
    "compare": _Entry("benchmark_commands", "Run every algorithm on the same problems."),
    "data": _Entry("data_command", "List data sets; describe, convert or scale a file."),
    "bench": _Entry("benchmark_commands", "Time a fit against scikit-learn."),
    "serve": _Entry("short_commands", "Serve a model over HTTP."),
    "warm": _Entry("warm_command", "Compile ahead what estimators use."),
    "completion": _Entry("short_commands", "Print the completion script of a shell."),
}


# ---- errors


class InvalidUsage(click.ClickException):
    """Options that do not fit each other or the data: exit code 2."""

    exit_code = USAGE


class Interrupted(click.ClickException):
    """Ctrl-C before there was a result: exit code 1."""

    exit_code = NOT_CONVERGED


class BadData(click.ClickException):
    """A file with invalid content, or one that cannot be read or written: exit code 3."""

    exit_code = BAD_DATA


def _translate(error: BaseException) -> click.ClickException | None:
    """Convert an error of the library to a `ClickException`; None for a bug, which is raised as it is."""
    from symsvm.io.data import DataError, DownloadError
    from symsvm.io.models import ModelFileError

    text = " ".join(str(error).split())
    if isinstance(error, (DataError, DownloadError, ModelFileError)):
        return BadData(text)
    if isinstance(error, OSError):
        reason = error.strerror or text
        return BadData(f"{error.filename}: {reason}." if error.filename else f"{reason}.")
    if isinstance(error, MemoryError):
        return BadData(f"the data do not fit into memory: {text or 'take fewer rows with --limit'}.")
    if isinstance(error, (ValueError, ImportError)):
        return InvalidUsage(text)
    return None


# ---- commands


class Command(click.Command):
    """A command whose help has its options in sections and examples, and which reports errors as one sentence.

    Parameters
    ----------
    examples : sequence of (str, str)
        Command lines and what they do.
    """

    def __init__(self, *args: Any, examples: Sequence[tuple[str, str]] = (), **kwargs: Any) -> None:
        self.examples = examples
        super().__init__(*args, **kwargs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; of flags that set the same parameter, such as --proba and --decision, only one may be given."""
        try:
            return self._parse(ctx, args)
        except click.NoSuchOption as error:
            from symsvm.cli.option_suggestions import explain_unknown_option

            raise click.UsageError(explain_unknown_option(self, ctx, error.option_name), ctx) from None

    def _parse(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            chosen = {}
            for parameter in self.make_parser(ctx).parse_args(list(args))[2]:
                other = chosen.setdefault(parameter.name, parameter)
                if other is not parameter:
                    raise click.UsageError(f"{other.opts[0]} and {parameter.opts[0]} exclude each other.", ctx)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors of the library become errors of the command line."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (ValueError, OSError, ImportError, MemoryError) as error:
            translated = _translate(error)
            if translated is None:
                raise
            raise translated from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by section, in the order in which the sections first appear."""
        sections = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record:
                sections.setdefault(getattr(parameter, "section", "Output"), []).append(record)
        for name, records in sections.items():
            with formatter.section(name):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if not self.examples:
            return
        with formatter.section("Examples"):
            for line, description in self.examples:
                formatter.write_text(description)
                formatter.write(f"{'':{formatter.current_indent}}  {line}\n")


class Program(click.Group):
    """The group of commands: imports a command when it is asked for, and sets the exit code of the process."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        entry = COMMANDS[cmd_name]
        command = getattr(importlib.import_module(f"symsvm.cli.{entry.module}"), cmd_name)
        command.short_help = entry.summary  # shown beside the name by shells that complete it
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names and summaries of the commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first word names; suggest the nearest name if there is none."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, 1, 0.0)[0]
            ctx.fail(f"there is no command {name!r}; did you mean {near!r}?")
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the words before the command, such as --help; a closed pipe ends the program with 0."""
        with _end_on_closed_pipe():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a closed pipe ends the program with 0."""
        with _end_on_closed_pipe():
            return super().invoke(ctx)

    def main(  # pyright: ignore[reportIncompatibleMethodOverride] (click's own overloads differ in standalone_mode)
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run, report an error on stderr (with --json also as JSON on stdout), and exit with its code."""
        args = sys.argv[1:] if args is None else list(args)
        extra["standalone_mode"] = False
        try:
            code = super().main(args, prog_name, **extra)
            if sys.stdout is not None:  # it may be closed
                sys.stdout.flush()
        except click.ClickException as error:
            code = _report(error, args)
        except (click.Abort, KeyboardInterrupt):
            code = _report(Interrupted("interrupted; nothing was written."), args)
        except BrokenPipeError:
            _discard_stdout()
            code = DONE
        except OSError as error:
            _discard_stdout()
            code = _report(BadData(f"standard output: {error.strerror}."), args)
        except SystemError as error:
            if not is_interrupt(error):
                raise
            code = _report(Interrupted("interrupted; nothing was written."), args)
        sys.exit(code if isinstance(code, int) else DONE)


@contextlib.contextmanager
def _end_on_closed_pipe() -> Iterator[None]:
    """End with exit code 0 when the reader of stdout has closed the pipe."""
    try:
        yield
    except BrokenPipeError:
        _discard_stdout()
        raise click.exceptions.Exit(DONE) from None


def _discard_stdout() -> None:
    """Discard what is still to be written to stdout, which is closed or full; Python flushes it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def replace_controls(text: str) -> str:
    r"""Replace control characters by "?": names and labels come from files, and must not control the terminal.

    >>> replace_controls("a\x1b[31mb\n")
    'a?[31mb\n'
    """
    return text.translate(_CONTROLS)


def _report(error: click.ClickException, args: Sequence[str]) -> int:
    """Print an error and return its exit code."""
    if type(error).__name__ == "NoArgsIsHelpError":  # click 8.2 and later
        click.echo(error.format_message(), err=True)
        return error.exit_code
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(error.ctx.get_usage(), err=True)
        click.echo(f"Try '{error.ctx.command_path} --help' for help.", err=True)
    color = False if os.environ.get("NO_COLOR") else None
    message = error.format_message()
    click.echo(click.style("error: ", fg="red", bold=True) + replace_controls(message), err=True, color=color)
    if "--json" in args:
        try:
            click.echo(json.dumps({"error": message, "exit_code": error.exit_code}))
        except OSError:  # stdout is closed or full; stderr has the message
            _discard_stdout()
    return error.exit_code


@click.group(cls=Program, context_settings={"max_content_width": 100}, no_args_is_help=True)
@click.version_option(__version__, message="symsvm %(version)s")
def program() -> None:
    """Train, inspect, use and deploy support vector machines.

    Training is exact: every model has a certificate of how close it is to the optimum. FILE is in LIBSVM's text
    format, CSV, IDX, NumPy's or Parquet, - for standard input, or the name of a data set ('symsvm data' lists them).

    \b
    symsvm train points.csv --scale zscore -o model.symsvm
    symsvm evaluate model.symsvm test.csv --plots pictures
    symsvm predict model.symsvm new.csv

    Exit codes: 0 done, 1 not converged or interrupted, 2 usage, 3 bad data.
    """
