"""Options: those that commands share, in sections, and the types of their values."""

import functools

import click
from click.core import ParameterSource

from symsvm.cli.errors import Refused
from symsvm.cli.types import DataFile, Named, Number, Several

__all__ = [
    "POSITIVE",
    "SCALINGS",
    "Option",
    "data_options",
    "file_argument",
    "machine_options",
    "model_argument",
    "output_options",
    "refuse_given",
    "section",
]

FORMATS = ("libsvm", "csv", "idx", "npy", "npz", "parquet")
SCALINGS = ("none", "unit", "sym", "zscore", "maxabs")
# The numbers that LIBSVM gives to machines and kernels.
TYPES = {"0": "c-svc", "1": "nu-svc", "2": "one-class", "3": "svr", "4": "nu-svr"}
KERNELS = {"0": "linear", "1": "poly", "2": "rbf", "3": "sigmoid", "4": "precomputed"}


class Option(click.Option):
    """An option that belongs to a section of the help."""

    def __init__(self, *args, section="Output", **kwargs):
        self.section = section
        super().__init__(*args, **kwargs)


def section(name):
    """A function like `click.option` for the options of one section."""
    return functools.partial(click.option, cls=Option, section=name)


POSITIVE = Number(positive=True)


def file_argument(name="file", **options):
    """The argument FILE."""
    return click.argument(name, type=DataFile(), **options)


def model_argument(function):
    """The argument MODEL, and what is needed to read some of them."""
    data = section("Data")
    options = [
        click.argument("model", type=click.Path(exists=True, dir_okay=False)),
        data(
            "--n-features",
            type=click.IntRange(min=1),
            metavar="N",
            help="The features of a .libsvm model, which does not say.",
        ),
        data("--trust", multiple=True, metavar="MODULE:NAME", help="Code of your own that a .symsvm model may import."),
    ]
    return _stacked(function, options)


def refuse_given(ctx, names, why):
    """Refuse options, of these names, that are on the command line and would change nothing."""
    for option in ctx.command.params:
        value, word = ctx.params.get(option.name), getattr(option, "flag_value", None)
        of_others = isinstance(word, str) and word != value  # one of several flags for the same thing
        source = ctx.get_parameter_source(option.name)
        if option.name in names and source is ParameterSource.COMMANDLINE and not of_others:
            said = option.opts[-1] if isinstance(option, click.Option) else option.name.upper()
            raise Refused(f"{why}: leave out {said}.")


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
            data(
                "--text",
                is_flag=True,
                help="FILE holds texts: a folder of folders, an archive of one, CSV or JSON lines.",
            ),
            data("--text-column", metavar="NAME", help="The column or key of the texts in a table. Default: text."),
            data("--limit", type=click.IntRange(min=1), metavar="N", help="Take the first N rows."),
        ],
    )


def machine_options(function=None, *, several=False):
    """The machine, its kernel and its solver, LIBSVM's flags among them; `several` values of a number make a grid."""
    if function is None:
        return functools.partial(machine_options, several=several)
    machine, solver = section("Machine"), section("Solver")
    types = (*TYPES.values(), "linear-svc", "linear-svr")
    numbers = {"C": POSITIVE, "gamma": Number(words=("scale", "auto"), positive=True), "degree": click.INT}
    numbers |= {"coef0": Number(), "nu": POSITIVE, "epsilon": Number()}
    if several:
        even = ("degree", "coef0", "nu", "epsilon")
        numbers = {name: Several(each, powers=name not in even) for name, each in numbers.items()}
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
            machine("-c", "-C", "--cost", "C", type=numbers["C"], help="The penalty C. Default: 1."),
            machine(
                "-g",
                "--gamma",
                type=numbers["gamma"],
                help="gamma of the kernel; scale is 1 / (d var X), auto 1 / d. Default: scale; auto, as LIBSVM has it, "
                "with a number after -s or -t.",
            ),
            machine("-d", "--degree", type=numbers["degree"], help="The degree of a polynomial. Default: 3."),
            machine(
                "-r", "--coef0", type=numbers["coef0"], help="The constant of a polynomial or a sigmoid. Default: 0."
            ),
            machine("-n", "--nu", type=numbers["nu"], help="nu of nu-svc, nu-svr and one-class. Default: 0.5."),
            machine(
                "-p", "--epsilon", type=numbers["epsilon"], help="Half the width of a regression's tube. Default: 0.1."
            ),
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
