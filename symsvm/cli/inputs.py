"""Inputs: tables from a file or a named set, as a machine takes them."""

import functools
import os

import numpy as np

from symsvm.cli.errors import BadData, Refused
from symsvm.cli.machine import machine_of
from symsvm.cli.standard_input import StandardInput
from symsvm.cli.table import Table, filled, settled, whole

__all__ = ["check_width", "fitting", "held_out_table", "read_table", "table_for"]


def read_table(
    file,
    *,
    labels=None,
    format=None,
    header=None,
    zero_based=False,
    limit=None,
    text=False,
    text_column=None,
    n_features=None,
    supervised=True,
    targets=False,
    is_gram=False,
):
    """Read a file or a named data set.

    Parameters
    ----------
    n_features : what LIBSVM's text, which leaves zeros out, is widened to.
    supervised, targets : whether there have to be labels, and whether they are a regression's targets.
    is_gram : whether the rows are a kernel's; LIBSVM's text has their numbers in front, as the feature 0.
    """
    from symsvm.io import data

    name = os.path.basename(file)
    if text_column is not None and not text:
        raise Refused("--text-column belongs to texts: add --text.")
    if labels is not None and not os.path.exists(file):
        raise Refused(f"{file} is a data set and has its labels: leave out --labels.")
    if text:
        return _texts(file, text_column, labels)[0].first(limit)
    if os.path.isdir(file):
        raise Refused(f"{file} is a directory: for a folder of texts add --text.")
    if os.path.exists(file) and not os.path.isfile(file):
        raise BadData(f"{file}: it is a pipe or a device, and files are read more than once: give it on stdin, as '-'.")
    if not os.path.exists(file):
        found, _ = _named(file, texts=False)
        X, y = found.X, found.y
    else:
        form = format or data.formats.format_of(file)
        X, y = _read(
            file, form, labels, supervised, header=header, zero_based=zero_based or is_gram, n_features=n_features
        )
        X = X[:, 1:] if is_gram and form == "libsvm" else X
    if supervised and y is None:
        raise Refused(f"{file} holds no labels: name their file with --labels.")
    _check(file, X, y)
    if y is not None:
        y = y.astype("float64") if targets and y.dtype.kind in "biuf" else whole(y)
    return Table(name, settled(X), y).first(limit)


def _check(file, X, y):
    """What the readers leave to those who use the labels."""
    from symsvm.io.data import DataError

    if not X.shape[1]:
        raise DataError(file, "it holds labels and no features.")
    if y is not None and y.dtype.kind == "f" and not np.isfinite(y).all():
        raise DataError(file, f"the label of row {int(np.argmin(np.isfinite(y))) + 1} is nan or an infinity.")


def _read(file, form, labels, supervised, *, n_features, **options):
    from symsvm.io import data

    labels = _column(labels)
    if labels is None and supervised and form in ("csv", "npy", "parquet"):
        labels = -1
    if form != "libsvm":
        try:
            return data.read(file, labels, format=form, header=options["header"])
        except data.DataError as error:
            raise _hinted(error, labels) from None
    X, y = data.read(file, labels, format=form, zero_based=options["zero_based"])
    if n_features is not None and X.shape[1] < n_features:
        X.resize(X.shape[0], n_features)  # the file's last features are all 0
    return X, y


def _hinted(error, labels):
    """The error; where a column of words was read as points, with what to do if it is the labels."""
    said = str(error)
    if labels is not None or not said.endswith("which is not a number."):
        return error
    return BadData(f"{said[:-1]}; if these are the labels, name their column with --labels.")


def _column(labels):
    """What --labels says: the number of a column, or a name, of a column or of a file."""
    if labels is None:
        return None
    try:
        return int(labels)
    except ValueError:
        return labels


def _named(file, *, texts):
    """A named set as (training part, test part or None); with ":test" behind its name, the test part alone."""
    from symsvm.io.data import SETS, load

    name, _, part = file.partition(":")
    if (SETS[name].kind == "posts") != texts:
        hint = "points, not texts: leave out --text" if texts else "texts: add --text"
        raise Refused(f"{name} holds {hint}.")
    found = load(name)
    test = None if found.X_test is None else Table(f"{name}:test", found.X_test, found.y_test)
    if not part:
        return Table(name, found.X, found.y), test
    if test is None:
        raise Refused(f"{name} has no test part.")
    return test, None


@functools.lru_cache(maxsize=1)  # what one reading finds is asked for twice, to train on and to test with
def _texts(file, column, labels):
    """The texts to train on and to test with (None if there are none) of a file, a folder or a named set."""
    from symsvm.io import text

    if not os.path.exists(file):
        return _named(file, texts=True)
    columns = {"text": _column(column), "label": _column(labels)}
    found = text.read(file, **{key: value for key, value in columns.items() if value is not None})
    name = os.path.basename(os.path.normpath(file))
    return Table(name, *found.train), None if found.test is None else Table(f"{name}, test part", *found.test)


def held_out_table(file, train, *, limit=None, **options):
    """Read points or texts to test with; without `file`, the test part of what was trained on, None if it has none."""
    from symsvm.io import data

    if file is not None:
        return read_table(file, limit=limit, **options)
    if options["text"]:
        found = _texts(train, options["text_column"], options["labels"])[1]
        return None if found is None else found.first(limit)
    if os.path.exists(train) or ":" in train or not data.SETS[train].test:
        return None
    return read_table(f"{train}:test", limit=limit, targets=options["targets"])


def table_for(model, file, data, *, supervised):
    """Read a file for a fitted model, which knows whether it takes texts; `data` are the options of the reader."""
    from symsvm.io.text import is_text

    if is_text(model):
        if not supervised and (isinstance(file, StandardInput) or file.endswith(".txt")):
            with open(file, encoding="utf-8", errors="replace") as lines:
                return Table(os.path.basename(file), lines.read().splitlines(), None).first(data["limit"])
        return read_table(file, **(data | {"text": True}))
    is_gram = getattr(machine_of(model), "kernel", None) == "precomputed"
    targets = not hasattr(machine_of(model), "classes_") and not hasattr(machine_of(model), "offset_")
    known = {"n_features": model.n_features_in_, "supervised": supervised, "targets": targets, "is_gram": is_gram}
    return read_table(file, **data, **known)


def check_width(table, d):
    """Refuse points that have other features than the d of the training points."""
    found = table.X.shape[1]
    if found != d:
        hint = "; name the column of the labels with --labels" if found == d + 1 else ""
        raise BadData(f"{table.name}: it has {found} features, and the model was trained on {d}{hint}.")


def fitting(model, table):
    """The points of a table as a fitted model takes them, which has to know their features."""
    from symsvm.io.data import Scaling

    if isinstance(table.X, list):
        return table.X
    check_width(table, model.n_features_in_)
    first = model[0] if hasattr(model, "steps") else None
    keeps = first is None or (isinstance(first, Scaling) and first.to == "max-abs")
    return table.X if keeps else filled(table.X, "the model's scaling")
