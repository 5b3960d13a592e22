"""Options: those that commands share, in sections, and the types of their values."""

import functools
import os

import click
from click.shell_completion import CompletionItem

__all__ = [
    "DataFile",
    "Named",
    "Number",
    "data_options",
    "file_argument",
    "machine_options",
    "option",
    "output_options",
    "section",
]

FORMATS = ("libsvm", "csv", "idx", "npy", "npz", "parquet")
SCALINGS = ("none", "unit", "sym", "zscore", "maxabs")
# The numbers that LIBSVM gives to machines and kernels.
TYPES = {"0": "c-svc", "1": "nu-svc", "2": "one-class", "3": "svr", "4": "nu-svr"}
KERNELS = {"0": "linear", "1": "poly", "2": "rbf", "3": "sigmoid", "4": "precomputed"}


class Option(click.Option):
    """An option that belongs to a section of the help."""

    def __init__(self, *args, section="Other", **kwargs):
        self.section = section
        super().__init__(*args, **kwargs)


def section(name):
    """A function like `click.option` for the options of one section."""
    return functools.partial(click.option, cls=Option, section=name)


option = section("Other")


class DataFile(click.ParamType):
    """The path of a file that exists, or the name of a data set."""

    name = "file"

    def convert(self, value, param, ctx):
        """The same, if there is such a file or such a set."""
        if os.path.exists(value):
            if os.path.isdir(value):
                self.fail(f"{value} is a directory, not a file.", param, ctx)
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
            import difflib

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


POSITIVE = Number(positive=True)


def file_argument(name="file", **options):
    """The argument FILE."""
    return click.argument(name, type=DataFile(), **options)


def _stacked(function, options):
    for add in reversed(options):
        function = add(function)
    return function


def data_options(function):
    """How a file is read."""
    data = section("Data")
    return _stacked(
        function,
        [
            data(
                "--labels",
                metavar="COLUMN|FILE",
                help="The labels: a column by number or name (the last unless told), an array of a .npz file, or a "
                "file of their own. LIBSVM's text has them in front.",
            ),
            data("--format", type=Named(FORMATS), help="By the file's name or its first bytes unless told."),
            data(
                "--header/--no-header",
                default=None,
                help="Whether a CSV file begins with names; told from its first two lines.",
            ),
            data("--zero-based", is_flag=True, help="The indices of LIBSVM's text count from 0."),
            data("--limit", type=click.IntRange(min=1), metavar="N", help="Take the first N rows."),
        ],
    )


def machine_options(function):
    """The machine, its kernel and its solver; LIBSVM's flags among them."""
    machine, solver = section("Machine"), section("Solver")
    types = (*TYPES.values(), "linear-svc", "linear-svr")
    return _stacked(
        function,
        [
            machine(
                "-s",
                "--type",
                "type_",
                type=Named(types, TYPES),
                help="The machine; LIBSVM's 0 to 4 too. Default: c-svc.",
            ),
            machine(
                "-t",
                "--kernel",
                type=Named((*KERNELS.values(), "laplacian"), KERNELS),
                help="The kernel; LIBSVM's 0 to 4 too. Default: rbf.",
            ),
            machine("-c", "-C", "--cost", "C", type=POSITIVE, help="The penalty C. Default: 1."),
            machine(
                "-g",
                "--gamma",
                type=Number(words=("scale", "auto"), positive=True),
                help="gamma of the kernel; scale is 1 / (d var X), auto 1 / d. Default: scale; auto, as LIBSVM has it, "
                "with a number after -s or -t.",
            ),
            machine("-d", "--degree", type=int, help="The degree of a polynomial. Default: 3."),
            machine("-r", "--coef0", type=Number(), help="The constant of a polynomial or a sigmoid. Default: 0."),
            machine("-n", "--nu", type=POSITIVE, help="nu of nu-svc, nu-svr and one-class. Default: 0.5."),
            machine("-p", "--epsilon", type=Number(), help="Half the width of a regression's tube. Default: 0.1."),
            machine(
                "--class-weight",
                "class_weight",
                multiple=True,
                metavar="LABEL=W|balanced",
                help="C of a class is W times C; as often as wanted. LIBSVM's -w1 5 -w-1 2 too.",
            ),
            machine(
                "--multi-class",
                type=Named(("ovo", "ovr", "dag", "crammer_singer")),
                help="Pairs of classes, each against the rest, a graph of pairs; crammer_singer for linear-svc.",
            ),
            machine(
                "--loss",
                type=Named(("hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive")),
                help="Of linear-svc and linear-svr.",
            ),
            machine("--penalty", type=Named(("l1", "l2")), help="Of linear-svc and linear-svr."),
            machine(
                "--scale",
                "scale",
                type=Named(SCALINGS),
                help="Scale features by the training set, to [0, 1], to [-1, 1], to mean 0 and deviation 1, or by "
                "x / max|x|; stored in the model. Default: none.",
            ),
            machine(
                "-b",
                "--probability",
                type=click.IntRange(0, 1),
                metavar="0|1",
                help="1 calibrates probabilities by cross-validation.",
            ),
            machine("--calibration", type=Named(("sigmoid", "isotonic")), help="How; with -b 1 a sigmoid."),
            solver("--solver", metavar="NAME", help="auto, or another name of symsvm.list_solvers('dual')."),
            solver("-e", "--tol", type=POSITIVE, help="The largest KKT violation. Default: 0.001 (linear: 0.0001)."),
            solver("--max-iter", type=int, help="The most iterations of a problem; -1 for no limit."),
            solver("--time-limit", type=POSITIVE, metavar="SECONDS", help="The most seconds of a problem."),
            solver("--mode", type=Named(("NUMBA", "JAX")), help="The backend. Default: NUMBA."),
            solver(
                "--seed",
                type=click.IntRange(min=0),
                default=0,
                show_default=True,
                help="Of folds and of what is random.",
            ),
            solver(
                "-m",
                "--cache-size",
                type=POSITIVE,
                metavar="MB",
                help="LIBSVM's cache; accepted, for the solver holds none.",
            ),
            solver(
                "-h",
                "--shrinking",
                type=click.IntRange(0, 1),
                metavar="0|1",
                help="LIBSVM's; accepted, for the solver shrinks where it helps.",
            ),
        ],
    )


def output_options(function):
    """How to report."""
    out = section("Output")
    return _stacked(
        function,
        [
            out("--json", "as_json", is_flag=True, help="One JSON document on stdout, nothing else there."),
            out("-q", "--quiet", is_flag=True, help="Say nothing but what went wrong."),
        ],
    )
