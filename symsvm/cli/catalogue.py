"""Catalogue: the named sets as a table, a file described, a file written anew."""

import os

import numpy as np

from symsvm.cli.errors import Refused
from symsvm.cli.inputs import read_table
from symsvm.cli.keeping import check_path
from symsvm.cli.machine import SCALES
from symsvm.cli.output import facts, grid
from symsvm.cli.summary import data_line
from symsvm.cli.table import described, filled

__all__ = ["listed", "portrayed", "rewritten", "warned"]


def listed(out):
    """Show the named sets, and whether their files are here."""
    from symsvm.io.data import SETS, data_home

    home, rows, sets = data_home(), [], {}
    for name, entry in SETS.items():
        here = all((home / file).is_file() for file in (*entry.train, *entry.test))
        rows.append((name, entry.about, entry.n_features or "", "yes" if entry.test else "", "yes" if here else ""))
        sets[name] = {"about": entry.about, "features": entry.n_features, "test": bool(entry.test), "here": here}
    out.show(grid(["name", "what", "features", "test part", "here"], rows, left=2, width=out.width))
    out.show(f"What is not here is downloaded to {home} when it is first asked for.")
    out.finish({"command": "data", "home": str(home), "sets": sets})


def portrayed(out, file, options):
    """Show what is in a file: its size, its labels, its columns, and what to look out for."""
    found, warnings, lines = _portrait(file, options)
    out.show(data_line(found), "", facts(lines))
    for text in warnings:
        out.note(text)
    out.finish({"command": "data", **found, "warnings": warnings})


def _portrait(file, options):
    table = read_table(file, **options)
    if isinstance(table.X, list):
        lengths = np.array([len(text) for text in table.X])
        lines = [("length", f"{lengths.min()} to {lengths.max()} characters, mean {lengths.mean():.0f}")]
        return described(table), [], lines
    found, (low, high) = described(table), _ranges(table.X)
    constant = int(np.sum(low == high))
    found |= {"least": low.min(), "greatest": high.max(), "constant_features": constant}
    if os.path.exists(file):
        from symsvm.io.data.formats import format_of

        found["format"] = options.get("format") or format_of(file)
    lines = [("format", found.get("format")), ("held as", found["storage"])]
    lines.append(("not zero", f"{100 * found['filled']:.4g} % of the entries"))
    lines.append(("values", f"from {low.min():g} to {high.max():g}"))
    lines.append(("constant features", str(constant) if constant else None))
    if "targets" in found:
        lines.append(("targets", f"{found['targets']['distinct']} different ones"))
    return found, warned(found, low, high), lines


def _ranges(X):
    """The least and the greatest entry of each column."""
    if hasattr(X, "tocsr"):
        return X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
    return X.min(axis=0), X.max(axis=0)


def warned(found, low, high):
    """Sentences about what makes machines slow or bad: scales that differ, constant features, rare classes."""
    sentences, spread = [], (high - np.asarray(low, dtype="float64"))[low < high]
    if len(spread) and spread.max() > 20 * spread.min():
        sentences.append(
            f"the widest feature spans {spread.max():.3g}, the narrowest {spread.min():.3g}: a kernel sees the wide "
            "ones only; train with --scale zscore or sym (maxabs for sparse points)."
        )
    elif len(spread) and max(abs(low.min()), abs(high.max())) > 100:
        sentences.append("values are large, which makes training slow: train with --scale unit or zscore.")
    if found["constant_features"]:
        sentences.append(f"{found['constant_features']} of {found['features']} features are the same in every row.")
    counts = list(found.get("classes", {}).values())
    if len(counts) == 1:
        sentences.append("all rows have the same label: a classifier needs two.")
    elif 1 < len(counts) <= 100 and max(counts) > 10 * min(counts):
        sentences.append("the classes are far from equal in size: look at --class-weight balanced.")
    return sentences


def rewritten(out, file, options, output, labels_output, scale, like):
    """Write the points of a file to another one, scaled if asked."""
    from symsvm.io.data import Scaling, write

    check_path(output)
    check_path(labels_output)
    if labels_output is not None and os.path.realpath(labels_output) == os.path.realpath(output):
        raise Refused(f"{output} is named twice: --labels-output must be a file of its own.")
    table = read_table(file, **options)
    X, y, scaling = table.X, table.y, None
    if scale != "none":
        source = table if like is None else read_table(like, **(options | {"limit": None}))
        fill = (lambda points: points) if scale == "maxabs" else (lambda points: filled(points, f"--scale {scale}"))
        scaling = Scaling(SCALES[scale]).fit(fill(source.X))
        X = scaling.transform(fill(X))
    if labels_output is not None:
        if y is None:
            raise Refused("there are no labels for --labels-output.")
        if y.dtype.kind not in "biuf":
            raise Refused(f"the labels are words such as {str(y[0])!r}: --labels-output holds numbers; leave it out.")
        write(labels_output, y.reshape(-1, 1))
        y = None
    try:
        write(output, X, y)
    except ValueError:
        if not hasattr(X, "tocsr"):
            raise
        write(output, filled(X, "the format"), y)  # one that holds no sparse points
    document = {"command": "data", **described(table), "output": output, "labels_output": labels_output, "scale": scale}
    out.show(
        data_line(document), f"written to {output}" + (f", the labels to {labels_output}" if labels_output else "")
    )
    out.finish(document)
