"""Program: the group of commands, which are imported when they are asked for; one sentence for every failure."""

import contextlib
import difflib
import importlib
import json
import os
import sys

import click

from symsvm import __version__
from symsvm._lib.interrupts import is_interrupt
from symsvm.cli.errors import DONE, BadData, Interrupted, translated
from symsvm.cli.output import visible

__all__ = ["COMMANDS", "Command", "Program", "program"]

COMMANDS = (
    "train",
    "predict",
    "evaluate",
    "tune",
    "explain",
    "convert",
    "compare",
    "data",
    "bench",
    "serve",
    "completion",
)


class Command(click.Command):
    """A command whose options are shown in sections, with examples below, and whose failures are one sentence.

    `examples` are pairs of a command line and what it does.
    """

    def __init__(self, *args, examples=(), **kwargs):
        self.examples = examples
        super().__init__(*args, **kwargs)

    def parse_args(self, ctx, args):
        """Parse; of flags for one thing, such as --proba and --decision, only one may be given."""
        if not ctx.resilient_parsing:
            chosen = {}
            for parameter in self.make_parser(ctx).parse_args(list(args))[2]:
                other = chosen.setdefault(parameter.name, parameter)
                if other is not parameter:
                    raise click.UsageError(f"{other.opts[0]} and {parameter.opts[0]} exclude each other.", ctx)
        return super().parse_args(ctx, args)

    def invoke(self, ctx):
        """Run the command; what the library refuses is told in one sentence."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (ValueError, OSError, ImportError, MemoryError) as error:
            known = translated(error)
            if known is None:
                raise
            raise known from None

    def format_options(self, ctx, formatter):
        """The options, a section each in the order in which they first appear."""
        sections = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record:
                sections.setdefault(getattr(parameter, "section", "Output"), []).append(record)
        for name, records in sections.items():
            with formatter.section(name):
                formatter.write_dl(records)

    def format_epilog(self, ctx, formatter):
        """The examples."""
        if not self.examples:
            return
        with formatter.section("Examples"):
            for line, about in self.examples:
                formatter.write_text(about)
                formatter.write(f"{'':{formatter.current_indent}}  {line}\n")


class Program(click.Group):
    """The group: imports a command when it is asked for, and settles how the process ends."""

    def list_commands(self, ctx):
        """The names, in the order of a working day."""
        return list(COMMANDS)

    def get_command(self, ctx, name):
        """The command of that name, None if there is none."""
        if name not in COMMANDS:
            return None
        return importlib.import_module(f"symsvm.cli.{name}").command

    def resolve_command(self, ctx, args):
        """The command that the first word names, or the one that may have been meant."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, 1, 0.0)[0]
            ctx.fail(f"there is no command {name!r}; {near!r}?")
        return super().resolve_command(ctx, args)

    def make_context(self, *args, **extra):
        """What the words before a command say, --help among them; where nobody reads it, that is the end of it."""
        with _unread():
            return super().make_context(*args, **extra)

    def invoke(self, ctx):
        """Run a command; where nobody reads any more, that is the end of it."""
        with _unread():
            return super().invoke(ctx)

    def main(self, args=None, prog_name=None, **extra):
        """Run, report a failure on stderr (and as JSON where JSON was asked for), and exit with its code."""
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
            _close()
            code = DONE
        except OSError as error:
            _close()
            code = _report(BadData(f"standard output: {error.strerror}."), args)
        except SystemError as error:
            if not is_interrupt(error):
                raise
            code = _report(Interrupted("interrupted; nothing was written."), args)
        sys.exit(code if isinstance(code, int) else DONE)


@contextlib.contextmanager
def _unread():
    """End with 0 where nobody reads any more."""
    try:
        yield
    except BrokenPipeError:
        _close()
        raise click.exceptions.Exit(DONE) from None


def _close():
    """Send to nowhere what is left for stdout, at the exit too: it cannot be written, or who reads has had enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(error, args):
    """Say what went wrong, and return the exit code."""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(error.ctx.get_usage(), err=True)
        click.echo(f"'{error.ctx.command_path} --help' says more.", err=True)
    plain = False if os.environ.get("NO_COLOR") else None
    said = click.style("error: ", fg="red", bold=True) + visible(error.format_message())
    click.echo(said, err=True, color=plain)
    if "--json" in args:
        try:
            click.echo(json.dumps({"error": error.format_message(), "exit_code": error.exit_code}))
        except OSError:  # stderr has it
            _close()
    return error.exit_code


@click.group(cls=Program, context_settings={"max_content_width": 100}, no_args_is_help=True)
@click.version_option(__version__, message="symsvm %(version)s")
def program():
    """Train, inspect, use and ship support vector machines.

    A model is trained exactly, and says how exactly: every fit has a certificate. FILE is LIBSVM's text, CSV, IDX,
    NumPy's or Parquet, - for standard input, or the name of a data set ('symsvm data' lists them).

    \b
    symsvm train points.csv --scale zscore -o model.symsvm
    symsvm evaluate model.symsvm test.csv --plots pictures
    symsvm predict model.symsvm new.csv

    Exit codes: 0 done, 1 not converged or interrupted, 2 usage, 3 bad data.
    """
