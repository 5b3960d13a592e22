"""Search: read, search, draw, keep: what `symsvm tune` does."""

import contextlib
import difflib
from pathlib import Path

import numpy as np

from symsvm.cli.errors import Interrupted, Refused
from symsvm.cli.findings import drawn, findings, partly, show
from symsvm.cli.inputs import read_table
from symsvm.cli.keeping import check_path, check_target, keep, size_of
from symsvm.cli.machine import REGRESSIONS, check_labels, check_texts, estimator_of, pipeline_of
from symsvm.cli.output import styled
from symsvm.cli.pictures import prepare
from symsvm.cli.summary import data_line, fitted, fitted_lines, model_line
from symsvm.cli.table import described, filled
from symsvm.cli.types import MOST

__all__ = ["Search", "powers"]

_NUMBERS = ("C", "gamma", "degree", "coef0", "nu", "epsilon")
_DATA = ("labels", "format", "header", "zero_based", "limit", "text", "text_column")
# Numbers that some kernels do not have; one value is let pass, as by LIBSVM.
_WITHOUT = {
    "gamma": ("linear", "precomputed"),
    "degree": (None, "rbf", "linear", "sigmoid", "laplacian", "precomputed"),
    "coef0": (None, "rbf", "linear", "laplacian", "precomputed"),
}
_PICTURES = (".png", ".svg", ".pdf")


class Search:
    """One call of `symsvm tune`."""

    def __init__(self, settings, output):
        self.output = output
        self.kind = settings["type_"] or ("linear-svc" if settings["text"] else "c-svc")
        if self.kind == "one-class":
            raise Refused("one-class has no labels to score with: tune another --type.")
        self.settings = settings | {"type_": self.kind}
        if settings["plot"] and Path(settings["plot"]).suffix not in _PICTURES:
            raise Refused(f"--plot must end in {', '.join(_PICTURES)}, got {settings['plot']!r}.")
        check_path(settings["plot"])
        if settings["plot"]:
            prepare()
        scaled = settings["scale"] not in (None, "none")
        check_texts(settings["text"], self.kind, scaled)
        check_target(settings["output"], scaled=scaled, linear=self.kind.startswith("linear"))

    def run(self):
        """Search and report; say whether the search was whole and the model, if one is kept, converged."""
        from symsvm.model_selection import tune

        s, output = self.settings, self.output
        _check_scoring(s["scoring"])
        table = read_table(
            s["file"],
            targets=self.kind in REGRESSIONS,
            is_gram=s["kernel"] == "precomputed",
            **{name: s[name] for name in _DATA},
        )
        check_labels(table, self.kind)
        cells, fixed = self._grid()
        firsts = {name: values[0] for name, values in cells.items()}  # what is not the machine's is refused
        model = pipeline_of(estimator_of(s | dict.fromkeys(_NUMBERS) | fixed | firsts, table.y), s["scale"], s["text"])
        prefix = f"{model.steps[-1][0]}__" if hasattr(model, "steps") else ""
        fill = s["scale"] not in (None, "none", "maxabs")
        X = filled(table.X, f"--scale {s['scale']}") if fill else table.X
        options = {"folds": s["folds"], "scoring": s["scoring"], "search": s["search"], "n_jobs": s["jobs"]}
        with self._drawing() as progress, output.heeding(ignore=_shortfalls()):
            named = {prefix + name: values for name, values in cells.items()}
            tuning = tune(model, X, table.y, named, random_state=s["seed"], progress=progress, **options)
        if not tuning.is_complete and not np.isfinite(tuning.table["mean_score"]).any():
            raise Interrupted(partly(tuning, prefix))
        document = {"command": "tune", "data": described(table), **findings(tuning, prefix)}
        output.show(data_line(document["data"]))
        show(document, output)
        if s["plot"]:
            document["plot"] = drawn(tuning, list(cells), prefix, s["plot"])
            output.show(f"drawn: {s['plot']}")
        converged = self._kept(tuning, document) if s["output"] else True
        if not tuning.is_complete:
            output.note("interrupted: the best is that of the cells that were judged by then.", wrong=True)
        output.finish(document)
        return tuning.is_complete and converged

    def _grid(self):
        """The lists of the numbers that are searched over, and the numbers that are not."""
        s = self.settings
        given = {name: s[name] for name in _NUMBERS if s[name] is not None}
        for name, flag in (("C", "log2c"), ("gamma", "log2g")):
            if s[flag] is not None:
                if name in given:
                    raise Refused(f"{name} is given twice, also by --{flag}.")
                given[name] = powers(s[flag], flag)
        if not given:
            by_nu = self.kind == "nu-svc"
            given = {"nu": [0.1, 0.2, 0.3, 0.4, 0.5]} if by_nu else {"C": [0.1, 1.0, 10.0, 100.0, 1000.0]}
            if not self.kind.startswith("linear") and s["kernel"] not in ("linear", "precomputed"):
                given["gamma"] = [0.001, 0.01, 0.1, 1.0, 10.0]
        if s["default_gamma"] is not None:
            given.setdefault("gamma", [s["default_gamma"]])
        searched = {name: values for name, values in given.items() if len(values) > 1}
        fixed = {name: values[0] for name, values in given.items() if len(values) == 1}
        for name in searched:
            if not self.kind.startswith("linear") and s["kernel"] in _WITHOUT.get(name, ()):
                raise Refused(
                    f"--{name} means nothing to the {s['kernel'] or 'rbf'} kernel: give it one value or none."
                )
        if not searched:
            raise Refused("there is nothing to search: give several values, such as -c 0.1,1,10.")
        return searched, fixed

    @contextlib.contextmanager
    def _drawing(self):
        if not self.output.draws:
            yield None
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("fits"),
            MofNCompleteColumn(),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[best]}"),
        )
        with Progress(*columns, console=self.output.aside, transient=True) as bar:
            task, best = bar.add_task("", best=""), [-np.inf]

            def progress(step):
                best[0] = max(best[0], step.score)
                bar.update(task, completed=step.done, total=step.total, best=f"best fold {best[0]:.4f}")

            yield progress

    def _kept(self, tuning, document):
        """Fit the best parameters to all points, keep the model and show it; say whether it converged."""
        with self.output.heeding():
            model = tuning.refit()
        keep(model, self.settings["output"], rescue=True)
        document |= {"output": self.settings["output"], "refit": fitted(model)}
        refit = document["refit"]
        self.output.show("", model_line(refit["model"]), "", fitted_lines(refit))
        self.output.show("", styled("written to ", (document["output"], "bold"), f", {size_of(document['output'])}"))
        return refit["certificate"]["converged"] == refit["certificate"]["problems"]


def _shortfalls():
    """Fits that end short of their tolerance are told in the table."""
    from sklearn.exceptions import ConvergenceWarning

    return (ConvergenceWarning,)


def powers(text, flag):
    """The powers of 2 of grid.py's BEGIN,END,STEP.

    >>> powers("-1,3,2", "log2c")
    [0.5, 2.0, 8.0]
    """
    try:
        begin, end, step = map(float, text.split(","))
        count = int((end - begin) / step + 1e-9) + 1
        found = [2.0 ** (begin + i * step) for i in range(count if count <= MOST else 0)]
    except (ValueError, ZeroDivisionError, OverflowError):
        found = []
    if not found or not min(found) > 0:
        raise Refused(f"--{flag} must be BEGIN,END,STEP, such as -5,15,2, got {text!r}.")
    return found


def _check_scoring(name):
    from sklearn.metrics import get_scorer_names

    if name is not None and name not in get_scorer_names():
        near = ", ".join(difflib.get_close_matches(name, get_scorer_names(), 3, 0.0))
        raise Refused(f"--scoring must be a score of scikit-learn's, got {name!r}; {near}?")
