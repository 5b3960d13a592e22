"""Tables of points and labels, or of texts, from files, standard input and data sets."""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from symsvm.cli.command_group import BadData, InvalidUsage
from symsvm.cli.model_building import CLASSIFIERS, final_estimator

if TYPE_CHECKING:
    from collections.abc import Mapping

    import click

    from symsvm._lib.types import Array, Path, Points

__all__ = [
    "READER_OPTIONS",
    "StandardInput",
    "Table",
    "check_classes",
    "check_labels",
    "check_n_features",
    "densify",
    "integer_labels",
    "points_for",
    "points_to_scale",
    "read_table",
    "read_table_for",
    "read_test_table",
]

# The parameters of `read_table` that are options of the commands.
READER_OPTIONS = ("labels", "format", "header", "zero_based", "limit", "text", "text_column")
# Above this share of nonzero entries, a dense array is smaller and faster than CSR.
_MAX_DENSITY = 0.2
# The largest dense array, in bytes, that sparse points are converted to.
_MAX_DENSE_BYTES = 1 << 30


class StandardInput(os.PathLike):
    """Standard input as a file that can be read more than once: a copy, made when it is first opened.

    The copy is deleted when the context `ctx` of the command ends.
    """

    name = "standard input"

    def __init__(self, ctx: click.Context) -> None:
        self._ctx = ctx

    @functools.cached_property
    def _path(self) -> str:
        if sys.stdin is None:
            raise BadData("standard input is closed.")
        directory = self._ctx.with_resource(tempfile.TemporaryDirectory(prefix="symsvm-"))
        path = os.path.join(directory, self.name)
        with open(path, "wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        return path

    def __fspath__(self) -> str:
        return self._path

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True)
class Table:
    """Points or texts with their labels.

    Attributes
    ----------
    name : str
        The name for messages.
    X : array of shape (m, d), CSR, or list of str
        The points or the texts.
    y : array of shape (m,), or None
        The labels.
    """

    name: str
    X: Any
    y: Array | None

    def first(self, n: int | None) -> Table:
        """Return the first n rows, or all of them for None."""
        return Table(self.name, self.X[:n], None if self.y is None else self.y[:n])

    @property
    def n_rows(self) -> int:
        """The number of points or texts."""
        return len(self.X) if isinstance(self.X, list) else self.X.shape[0]

    def describe(self) -> dict[str, Any]:
        """Return the size, the storage and the labels."""
        import numpy as np

        X = self.X
        if isinstance(X, list):
            return {"name": self.name, "rows": len(X), "storage": "texts", **self._describe_labels()}
        m, d = X.shape
        entries = X.nnz if hasattr(X, "tocsr") else int(np.count_nonzero(X))
        storage = "sparse" if hasattr(X, "tocsr") else str(X.dtype)
        size = {"rows": m, "features": d, "filled": entries / max(m * d, 1), "storage": storage}
        return {"name": self.name, **size, **self._describe_labels()}

    def _describe_labels(self) -> dict[str, Any]:
        """Return the classes and their sizes, or the range of the targets."""
        import numpy as np

        y = self.y
        if y is None:
            return {}
        if y.dtype.kind == "f":
            return {"targets": {"least": y.min(), "mean": y.mean(), "greatest": y.max(), "distinct": len(np.unique(y))}}
        names, counts = np.unique(y, return_counts=True)
        return {"classes": dict(zip(names.tolist(), counts.tolist(), strict=True))}


# ---- reading


def read_table(
    file: Path,
    *,
    labels: str | Path | None = None,
    format: str | None = None,
    header: bool | None = None,
    zero_based: bool = False,
    limit: int | None = None,
    text: bool = False,
    text_column: str | None = None,
    n_features: int | None = None,
    supervised: bool = True,
    targets: bool = False,
    is_gram: bool = False,
) -> Table:
    """Read a file or a data set.

    Parameters
    ----------
    file : path
        A file, or the name of a data set.
    labels, format, header, zero_based, limit, text, text_column
        The options of the same names.
    n_features : int, optional
        Widen points in LIBSVM's format, which leaves zeros out, to this number of features.
    supervised : bool
        Whether labels are required.
    targets : bool
        Whether the labels are targets of a regression.
    is_gram : bool
        Whether the rows are those of a kernel matrix; LIBSVM's format has their numbers in front, as the feature 0.
    """
    from symsvm.io.data.data_formats import detect_format

    name = os.path.basename(file)
    if text_column is not None and not text:
        raise InvalidUsage("--text-column has no effect on points: add --text.")
    if labels is not None and not os.path.exists(file):
        raise InvalidUsage(f"{file} is a data set that includes its labels: leave out --labels.")
    if text:
        return _read_texts(file, text_column, labels)[0].first(limit)
    if os.path.isdir(file):
        raise InvalidUsage(f"{file} is a directory: for a folder of texts add --text.")
    if os.path.exists(file) and not os.path.isfile(file):
        raise BadData(
            f"{file}: it is a pipe or a device, which can be read only once: pass it on standard input, as '-'."
        )
    if not os.path.exists(file):
        found, _ = _load_set(str(file), is_text=False)
        X, y = found.X, found.y
    else:
        form = format or detect_format(file)
        zero_based = zero_based or is_gram
        X, y = _read_points(file, form, labels, supervised, header=header, zero_based=zero_based, n_features=n_features)
        X = X[:, 1:] if is_gram and form == "libsvm" else X
    if supervised and y is None:
        raise InvalidUsage(f"{file} holds no labels: give their file with --labels.")
    _check_values(file, X, y)
    if y is not None:
        y = y.astype("float64") if targets and y.dtype.kind in "biuf" else integer_labels(y)
    return Table(name, _dense_if_smaller(X), y).first(limit)


def _check_values(file: Path, X: Any, y: Array | None) -> None:
    """Raise if there are no features, or labels that are not finite; the readers accept both."""
    import numpy as np

    from symsvm.io.data import DataError

    if not X.shape[1]:
        raise DataError(file, "the file has labels and no features.")
    if y is not None and y.dtype.kind == "f" and not np.isfinite(y).all():
        raise DataError(file, f"the label of row {int(np.argmin(np.isfinite(y))) + 1} is not a finite number.")


def _read_points(
    file: Path,
    form: Any,
    labels: str | Path | None,
    supervised: bool,
    *,
    header: bool | None,
    zero_based: bool,
    n_features: int | None,
) -> Any:
    """Read (X, y) from a file; tables have their labels in the last column by default."""
    from symsvm.io import data

    column = _column(labels)
    if column is None and supervised and form in ("csv", "npy", "parquet"):
        column = -1
    if form != "libsvm":
        try:
            return data.read(file, column, format=form, header=header)
        except data.DataError as error:
            raise _add_hint(error, column) from None
    X, y = data.read(file, column, format=form, zero_based=zero_based)
    if n_features is not None and X.shape[1] < n_features:
        X.resize(X.shape[0], n_features)  # the last features are 0 in the whole file
    return X, y


def _add_hint(error: Exception, column: Any) -> Exception:
    """Return the error; if it is about a column of words, with the hint that they may be the labels."""
    text = str(error)
    if column is not None or not text.endswith("which is not a number."):
        return error
    return BadData(f"{text[:-1]}; if this is the column of the labels, name it with --labels.")


def _column(labels: str | Path | None) -> Any:
    """Return the value of --labels as the number of a column if it is one, else as it is."""
    try:
        return None if labels is None else int(labels)  # pyright: ignore[reportArgumentType] (a path raises below)
    except (TypeError, ValueError):
        return labels


def _load_set(file: str, *, is_text: bool) -> tuple[Table, Table | None]:
    """Load the training and the test part of a data set; with ":test" after its name, only the test part."""
    from symsvm.io.data import SETS, load

    name, _, part = file.partition(":")
    if (SETS[name].kind == "posts") != is_text:
        hint = "points, not texts: leave out --text" if is_text else "texts: add --text"
        raise InvalidUsage(f"{name} holds {hint}.")
    found = load(name)
    test = None if found.X_test is None else Table(f"{name}:test", found.X_test, found.y_test)
    if not part:
        return Table(name, found.X, found.y), test
    if test is None:
        raise InvalidUsage(f"{name} has no test part.")
    return test, None


@functools.lru_cache(maxsize=1)  # the training and the test part come from one reading
def _read_texts(file: Path, column: str | None, labels: str | Path | None) -> tuple[Table, Table | None]:
    """Read the training and the test part (None if there is none) of a file, a folder or a data set of texts."""
    from symsvm.io import text

    if not os.path.exists(file):
        return _load_set(str(file), is_text=True)
    columns = {"text": _column(column), "label": _column(labels)}
    found = text.read(file, **{key: value for key, value in columns.items() if value is not None})
    name = os.path.basename(os.path.normpath(file))
    return Table(name, *found.train), None if found.test is None else Table(f"{name}, test part", *found.test)


def read_test_table(file: Path | None, train: Path | None, *, limit: int | None = None, **options: Any) -> Table | None:
    """Read the test data; without `file`, the test part of the training data, None if it has none."""
    from symsvm.io import data

    if file is not None:
        return read_table(file, limit=limit, **options)
    assert train is not None, "without a test file there are training data"
    if options["text"]:
        found = _read_texts(train, options["text_column"], options["labels"])[1]
        return None if found is None else found.first(limit)
    if os.path.exists(train) or ":" in str(train) or not data.SETS[str(train)].test:
        return None
    return read_table(f"{train}:test", limit=limit, targets=options["targets"])


def read_table_for(model: Any, file: Path, options: Mapping[str, Any], *, supervised: bool) -> Table:
    """Read a file for a fitted model of points or of texts; `options` are those of the command."""
    from symsvm.io.text import is_text

    if is_text(model):
        if not supervised and (isinstance(file, StandardInput) or str(file).endswith(".txt")):
            with open(file, encoding="utf-8", errors="replace") as lines:
                return Table(os.path.basename(file), lines.read().splitlines(), None).first(options["limit"])
        return read_table(file, **{**options, "text": True})
    estimator = final_estimator(model)
    return read_table(
        file,
        **options,
        n_features=model.n_features_in_,
        supervised=supervised,
        targets=not hasattr(estimator, "classes_") and not hasattr(estimator, "offset_"),
        is_gram=getattr(estimator, "kernel", None) == "precomputed",
    )


# ---- conversions


def integer_labels(y: Array) -> Array:
    """Return labels that are whole numbers as integers: LIBSVM's format has only floats, and 1.0 means 1.

    >>> import numpy as np
    >>> integer_labels(np.array([1.0, -1.0])).tolist(), integer_labels(np.array([0.5])).tolist()
    ([1, -1], [0.5])
    """
    import numpy as np

    if y.dtype.kind == "f" and np.isfinite(y).all() and np.abs(y).max(initial=0.0) < 2**53 and (y == np.rint(y)).all():
        return y.astype("int64")
    return y


def _dense_if_smaller(X: Any) -> Points:
    """Return CSR as an array if that is smaller."""
    if hasattr(X, "tocsr") and X.nnz > _MAX_DENSITY * X.shape[0] * X.shape[1] and _dense_bytes(X) <= _MAX_DENSE_BYTES:
        return X.toarray()
    return X


def _dense_bytes(X: Any) -> int:
    return 8 * X.shape[0] * X.shape[1]


def densify(X: Any, reason: str) -> Array:
    """Return points as an array; raise if that is too large. The error begins with `reason`, what needs the array."""
    if not hasattr(X, "tocsr"):
        return X
    if _dense_bytes(X) > _MAX_DENSE_BYTES:
        size = f"{_dense_bytes(X) / 2**30:.1f} GiB"
        raise InvalidUsage(f"{reason} makes sparse points dense, which needs {size} here: use --scale maxabs.")
    return X.toarray()


def points_to_scale(X: Any, scale: str | None) -> Any:
    """Return points as the option --scale takes them: dense, if it makes zeros nonzero."""
    return X if scale in (None, "none", "maxabs") else densify(X, f"--scale {scale}")


def points_for(model: Any, table: Table) -> Any:
    """Return the points of a table as a fitted model takes them; raise if they have other features."""
    from symsvm.io.data import Scaling

    if isinstance(table.X, list):
        return table.X
    check_n_features(table, model.n_features_in_)
    first = model[0] if hasattr(model, "steps") else None
    keeps_zeros = first is None or (isinstance(first, Scaling) and first.to == "max-abs")
    return table.X if keeps_zeros else densify(table.X, "the model's scaling")


# ---- checks


def check_n_features(table: Table, n_features: int) -> None:
    """Raise if points have another number of features than the training points."""
    found = table.X.shape[1]
    if found != n_features:
        hint = "; name the column of the labels with --labels" if found == n_features + 1 else ""
        raise BadData(f"{table.name}: it has {found} features, and the model was trained on {n_features}{hint}.")


def check_labels(table: Table, kind: str) -> None:
    """Raise if a machine of the option --type cannot be trained on the labels."""
    import numpy as np

    y = table.y
    assert y is not None, "tables of supervised machines have labels"
    if kind in CLASSIFIERS:
        if y.dtype.kind == "f":
            # Floats do not distinguish integers from 2^53 on.
            first = y[np.argmax((y != np.rint(y)) | (np.abs(y) >= 2**53))]
            raise InvalidUsage(
                f"{table.name} has labels such as {first:g}, which are not classes: for a regression use --type svr."
            )
        if len(np.unique(y)) < 2:
            raise BadData(f"{table.name}: all {len(y)} points are of the class {y[0]}, and a classifier needs two.")
    elif kind != "one-class" and y.dtype.kind not in "fiub":
        raise BadData(f"{table.name}: the labels are words such as {str(y[0])!r}, and a regression needs numbers.")


def check_classes(table: Table, classes: Any) -> None:
    """Raise if one of the labels and a model's classes are words and the other numbers, or if labels are fractions."""
    import numpy as np

    y, classes = np.asarray(table.y), integer_labels(np.asarray(classes))
    if (y.dtype.kind in "biu") != (classes.dtype.kind in "biu"):
        label = y[np.argmax(y != np.rint(y))] if y.dtype.kind == "f" else y[0]
        raise BadData(
            f"{table.name}: it has labels such as {str(label)!r}, and the model has classes such as "
            f"{str(classes[0])!r}; name the right column with --labels."
        )
