"""Dialects: the flags of LIBSVM and of psvm, as the options that they mean."""

import itertools
import re

from symsvm.cli.errors import Refused
from symsvm.cli.group import Command
from symsvm.cli.options import section
from symsvm.cli.types import DataFile, Named, Number

__all__ = ["LOADED", "MachineCommand", "libsvm_gamma", "psvm_options", "settled"]

_WEIGHT = re.compile(r"-w([+-]?\d+)(?:=(.*))?")


class MachineCommand(Command):
    """A command with a machine, that takes LIBSVM's class weights, -w1 5 -w-1 2, whose flags hold the labels."""

    def parse_args(self, ctx, args):
        """Parse, the weights as --class-weight, and note whether a flag is a number of LIBSVM's."""
        args, rest = [], list(args)
        while rest:
            word = rest.pop(0)
            found = _WEIGHT.fullmatch(word)
            if word == "--":
                args += [word, *rest]
                break
            if found:
                weight = found[2] if found[2] is not None else rest.pop(0) if rest else ""
                args += ["--class-weight", f"{int(found[1])}={weight}"]
            else:
                args.append(word)
        pairs = ("".join(pair) for pair in itertools.pairwise(args))
        ctx.meta["libsvm"] = any(re.fullmatch(r"-[st][0-4]", word) for word in (*args, *pairs))
        return super().parse_args(ctx, args)


def psvm_options(function):
    """The options of psvm."""
    flag = section("psvm's flags")
    file, form = DataFile(), Named(("csv", "idx"))
    options = [
        flag("--train-attributes", type=file, help="The points to train on; its report is printed."),
        flag("--train-labels", type=file, help="Their labels."),
        flag("--test-attributes", type=file, help="The points to test with."),
        flag("--predict-attributes", type=file, help="Points whose labels are to be printed."),
        flag("--train-format", type=form, help="Of the files to train on; by the name unless told."),
        flag("--test-format", type=form, help="Of the files to test with."),
        flag("--predict-format", type=form, help="Of the file to predict."),
        flag("--linear", "psvm_kernel", flag_value="linear", help="--kernel linear."),
        flag("--polynomial", "psvm_kernel", flag_value="poly", help="--kernel poly."),
        flag("--rbf", "psvm_kernel", flag_value="rbf", help="--kernel rbf."),
        flag("--1AA", "psvm_scheme", flag_value="ovr", help="One against all: --multi-class ovr."),
        flag("--1A1", "psvm_scheme", flag_value="ovo", help="One against one: --multi-class ovo."),
        flag("--n1", "psvm_scale", flag_value="unit", help="--scale unit, [0, 1]."),
        flag("--n2", "psvm_scale", flag_value="sym", help="--scale sym, [-1, 1]."),
        flag("--nz", "psvm_scale", flag_value="zscore", help="--scale zscore."),
        flag("--kernel-degree", type=int, help="--degree; psvm's default is 2."),
        flag("--kernel-constant", type=Number(), help="--coef0; psvm's default is 0."),
        flag("--kernel-gamma", type=Number(positive=True), help="--gamma; psvm's default is 0.05."),
        flag("--model-in", metavar="MODEL", help="Load this model and do not train."),
        flag("--model-out", metavar="MODEL", help="--output."),
    ]
    for add in reversed(options):
        function = add(function)
    return function


# An option -> what it says nothing without; a named set or texts may have a test part of their own.
_COMPANIONS = {"test_labels": "test", "test_format": "test", "predict_format": "predict_attributes"}


# What a model that is loaded can do, and the options for it.
_TASKS = ("test", "test_attributes", "predict_attributes")
LOADED = (*_TASKS, "model_in", "test_labels", "test_limit", "test_format", "predict_format")
LOADED += ("format", "header", "zero_based", "text", "text_column", "as_json", "quiet")


def _check_companions(settings):
    """Refuse options that would change nothing."""
    for name, other in _COMPANIONS.items():
        if settings[name] is not None and not (settings[other] or settings.get(f"{other}_attributes")):
            raise Refused(f"--{name.replace('_', '-')} says nothing without --{other.replace('_', '-')}.")
    if settings["model_in"] is not None and not any(settings[name] for name in _TASKS):
        raise Refused("--model-in has nothing to do: add --test-attributes or --predict-attributes.")


# psvm's flag -> the option that it stands for.
_MEANT = {
    "train_attributes": "file",
    "train_labels": "labels",
    "test_attributes": "test",
    "psvm_kernel": "kernel",
    "psvm_scheme": "multi_class",
    "psvm_scale": "scale",
    "kernel_degree": "degree",
    "kernel_constant": "coef0",
    "kernel_gamma": "gamma",
    "model_out": "output",
    "train_format": "format",
}


def libsvm_gamma(settings, libsvm):
    """LIBSVM's default of gamma, 1 / d, where its numbers name the machine; None, which is ours, else."""
    return "auto" if libsvm and (settings["kernel"] or "rbf") in ("poly", "rbf", "sigmoid") else None


def settled(settings, libsvm):
    """Merge the flags of other programs into ours; their defaults are taken over where they are used.

    The key "psvm" says whether the call is one of psvm's.
    """
    settings = dict(settings)
    settings["psvm"] = bool(settings["train_attributes"] or settings["model_in"])
    _check_companions(settings)
    for name, meant in _MEANT.items():
        value = settings.pop(name)
        if value is None:
            continue
        if settings.get(meant) is not None:
            raise Refused(f"--{meant.replace('_', '-')} is given twice, in two dialects.")
        settings[meant] = value
    kernel = settings["kernel"] or "rbf"
    if settings["psvm"]:
        # psvm's polynomial is (x.z + c)^d.
        defaults = {"degree": 2 if kernel == "poly" else None, "gamma": {"rbf": 0.05, "poly": 1.0}.get(kernel)}
    else:
        defaults = {"gamma": libsvm_gamma(settings, libsvm)}
    for name, value in defaults.items():
        if settings[name] is None:
            settings[name] = value
    return settings
