"""Options that commands share, in sections of the help; LIBSVM's flags are among them."""

from __future__ import annotations

import functools
import itertools
import re
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from symsvm.cli.command_group import Command, InvalidUsage
from symsvm.cli.option_types import POSITIVE, DataFile, Name, Number, ValueList

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

__all__ = [
    "SCALINGS",
    "MachineCommand",
    "Option",
    "add_options",
    "data_options",
    "default_gamma",
    "file_argument",
    "machine_options",
    "model_argument",
    "output_options",
    "refuse_given",
    "section",
]

FORMATS = ("libsvm", "csv", "idx", "npy", "npz", "parquet")
SCALINGS = ("none", "unit", "sym", "zscore", "maxabs")
# LIBSVM's numbers of machines and kernels.
TYPES = {"0": "c-svc", "1": "nu-svc", "2": "one-class", "3": "svr", "4": "nu-svr"}
KERNELS = {"0": "linear", "1": "poly", "2": "rbf", "3": "sigmoid", "4": "precomputed"}
# LIBSVM's class weights: -w1 5, -w-1 2, -w1=5.
_CLASS_WEIGHT = re.compile(r"-w([+-]?\d+)(?:=(.*))?")


# ---- how options are declared


class Option(click.Option):
    """An option that belongs to a section of the help."""

    def __init__(self, *args: Any, section: str = "Output", **kwargs: Any) -> None:
        self.section = section
        super().__init__(*args, **kwargs)


def section(name: str) -> Callable[..., Decorator]:
    """Return a function like `click.option` for the options of one section."""
    return functools.partial(click.option, cls=Option, section=name)


def add_options(function: Callable[..., Any], options: Sequence[Decorator]) -> Callable[..., Any]:
    """Decorate a command with options, in the order of the help."""
    for option in reversed(options):
        function = option(function)
    return function


def refuse_given(ctx: click.Context, names: Collection[str], reason: str) -> None:
    """Raise if one of these parameters is on the command line, where it would have no effect."""
    for parameter in ctx.command.params:
        assert parameter.name is not None, "parameters of commands have names"
        flag_value = getattr(parameter, "flag_value", None)
        # Of several flags that set one parameter, only the one that was given.
        is_other_flag = isinstance(flag_value, str) and flag_value != ctx.params.get(parameter.name)
        source = ctx.get_parameter_source(parameter.name)
        if parameter.name in names and source is ParameterSource.COMMANDLINE and not is_other_flag:
            shown = parameter.opts[-1] if isinstance(parameter, click.Option) else parameter.name.upper()
            raise InvalidUsage(f"{reason}: leave out {shown}.")


# ---- options of several commands


def file_argument(name: str = "file", **options: Any) -> Decorator:
    """Declare the argument FILE."""
    return click.argument(name, type=DataFile(), **options)


def model_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare the argument MODEL and the options for reading it."""
    data = section("Data")
    return add_options(
        function,
        [
            click.argument("model", type=click.Path(exists=True, dir_okay=False)),
            data(
                "--n-features",
                type=click.IntRange(min=1),
                metavar="N",
                help="Number of features of a .libsvm model, whose file does not store it.",
            ),
            data(
                "--trust",
                multiple=True,
                metavar="MODULE:NAME",
                help="Your own function or class that a .symsvm model may import. Repeatable.",
            ),
        ],
    )


def data_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare the options for reading FILE."""
    data = section("Data")
    return add_options(
        function,
        [
            data(
                "--labels",
                metavar="COLUMN|FILE",
                help="The labels: number or name of a column, name of an array in a .npz file, or a separate file. "
                "Default, where labels are needed: the last column. LIBSVM's format has them first in each line.",
            ),
            data("--format", type=Name(FORMATS), help="Format of FILE. Default: by its name or its first bytes."),
            data(
                "--header/--no-header",
                default=None,
                help="Whether the first line of a CSV file holds names. Default: detected from its first two lines.",
            ),
            data("--zero-based", is_flag=True, help="Indices in LIBSVM's format start at 0."),
            data(
                "--text",
                is_flag=True,
                help="FILE holds texts: a folder with one subfolder per class, an archive of one, CSV or JSON lines.",
            ),
            data("--text-column", metavar="NAME", help="Column or key of the texts in a table. Default: text."),
            data("--limit", type=click.IntRange(min=1), metavar="N", help="Read only the first N rows."),
        ],
    )


def machine_options(function: Callable[..., Any] | None = None, *, has_lists: bool = False) -> Callable[..., Any]:
    """Declare the options of the machine, its kernel and its solver; with `has_lists`, numbers take several values."""
    if function is None:
        return functools.partial(machine_options, has_lists=has_lists)
    machine, solver = section("Machine"), section("Solver")
    types = (*TYPES.values(), "linear-svc", "linear-svr")
    numbers: dict[str, click.ParamType] = {
        "C": POSITIVE,
        "gamma": Number(words=("scale", "auto"), positive=True),
        "degree": click.INT,
        "coef0": Number(),
        "nu": POSITIVE,
        "epsilon": Number(),
    }
    if has_lists:
        numbers = {name: ValueList(each, is_geometric=name in ("C", "gamma")) for name, each in numbers.items()}
    return add_options(
        function,
        [
            machine(
                "-s",
                "--type",
                "type_",
                type=Name(types, TYPES),
                help="Type of machine; LIBSVM's numbers 0 to 4 are accepted. Default: c-svc.",
            ),
            machine(
                "-t",
                "--kernel",
                type=Name((*KERNELS.values(), "laplacian"), KERNELS),
                help="Kernel; LIBSVM's numbers 0 to 4 are accepted. Default: rbf.",
            ),
            machine("-c", "-C", "--cost", "C", type=numbers["C"], help="Penalty C of the errors. Default: 1."),
            machine(
                "-g",
                "--gamma",
                type=numbers["gamma"],
                help="gamma of the kernel; scale is 1 / (d var X), auto is 1 / d, for d features. Default: scale; with "
                "a number after -s or -t auto, as in LIBSVM.",
            ),
            machine("-d", "--degree", type=numbers["degree"], help="Degree of the poly kernel. Default: 3."),
            machine(
                "-r", "--coef0", type=numbers["coef0"], help="Constant of the poly and sigmoid kernels. Default: 0."
            ),
            machine("-n", "--nu", type=numbers["nu"], help="nu of nu-svc, nu-svr and one-class. Default: 0.5."),
            machine(
                "-p",
                "--epsilon",
                type=numbers["epsilon"],
                help="Half the width of the tube of svr and linear-svr: smaller errors are not penalised. Default: 0.1 "
                "(linear-svr: 0).",
            ),
            machine(
                "--class-weight",
                "class_weight",
                multiple=True,
                metavar="LABEL=W|balanced",
                help="Multiply C of a class by W; repeatable. LIBSVM's -w1 5 -w-1 2 is accepted. balanced weights "
                "classes inversely to their size.",
            ),
            machine(
                "--multi-class",
                type=Name(("ovo", "ovr", "dag", "crammer_singer")),
                help="Scheme for more than two classes. ovo: one against one; ovr: one against the rest; dag: a "
                "decision graph over the pairs; crammer_singer: one joint problem (linear-svc only). Default: ovo "
                "(linear-svc: ovr).",
            ),
            machine(
                "--loss",
                type=Name(("hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive")),
                help="Loss of linear-svc (default: squared_hinge) and linear-svr (default: epsilon_insensitive).",
            ),
            machine("--penalty", type=Name(("l1", "l2")), help="Penalty of linear-svc and linear-svr. Default: l2."),
            machine(
                "--scale",
                "scale",
                type=Name(SCALINGS),
                help="Scale features by the training set; the scaling is stored in the model. unit: to [0, 1]; sym: to "
                "[-1, 1]; zscore: to mean 0 and standard deviation 1; maxabs: divide by max|x|, which keeps zeros. "
                "Default: none.",
            ),
            machine(
                "-b",
                "--probability",
                type=click.IntRange(0, 1),
                metavar="0|1",
                help="1 calibrates probabilities by cross-validation.",
            ),
            machine(
                "--calibration",
                type=Name(("sigmoid", "isotonic")),
                help="Calibrate probabilities by this method. Default with -b 1: sigmoid.",
            ),
            solver(
                "--solver",
                metavar="NAME",
                help="Solver of kernel machines, one of symsvm.list_solvers('dual'). Default: auto, the fastest.",
            ),
            solver(
                "-e",
                "--tol",
                type=POSITIVE,
                help="Stop when the largest KKT violation is below this. Default: 0.001 (linear machines: 0.0001).",
            ),
            solver(
                "--max-iter",
                type=int,
                metavar="N",
                help="Maximum number of iterations per problem; -1 for no limit. Default: -1 (linear machines: 1000).",
            ),
            solver(
                "--time-limit", type=POSITIVE, metavar="SECONDS", help="Maximum time per problem. Default: no limit."
            ),
            solver("--mode", type=Name(("NUMBA", "JAX")), help="Backend. Default: NUMBA."),
            solver(
                "--seed",
                type=click.IntRange(min=0),
                metavar="N",
                default=0,
                show_default=True,
                help="Seed of the folds and of randomised solvers.",
            ),
            solver(
                "-m",
                "--cache-size",
                type=POSITIVE,
                metavar="MB",
                help="Accepted as in LIBSVM; no effect, because the solver has no row cache.",
            ),
            solver(
                "-h",
                "--shrinking",
                type=click.IntRange(0, 1),
                metavar="0|1",
                help="Accepted as in LIBSVM; no effect, because the solver decides when to shrink.",
            ),
        ],
    )


def output_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Declare the options for reporting."""
    output = section("Output")
    return add_options(
        function,
        [
            output("--json", "as_json", is_flag=True, help="Print one JSON document to stdout, and nothing else."),
            output("-q", "--quiet", is_flag=True, help="Print only results and failures."),
        ],
    )


# ---- LIBSVM's flags


class MachineCommand(Command):
    """A command with `machine_options` that accepts LIBSVM's class weights, -w1 5 -w-1 2."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, with -wLABEL as --class-weight, and record in `ctx.meta` whether LIBSVM's numbers are used."""
        words, rest = [], list(args)
        while rest:
            word = rest.pop(0)
            match = _CLASS_WEIGHT.fullmatch(word)
            if word == "--":
                words += [word, *rest]
                break
            if match:
                weight = match[2] if match[2] is not None else rest.pop(0) if rest else ""
                words += ["--class-weight", f"{int(match[1])}={weight}"]
            else:
                words.append(word)
        joined = ("".join(pair) for pair in itertools.pairwise(words))
        ctx.meta["libsvm"] = any(re.fullmatch(r"-[st][0-4]", word) for word in (*words, *joined))
        return super().parse_args(ctx, words)


def default_gamma(settings: Mapping[str, Any], is_libsvm: bool) -> str | None:
    """Return LIBSVM's default of gamma, "auto", if its numbers name the machine; else None, the estimator's default."""
    return "auto" if is_libsvm and (settings["kernel"] or "rbf") in ("poly", "rbf", "sigmoid") else None
