"""`symsvm tune --by-gradient`: hyper-parameters that minimise a held-out loss, by its gradient."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symsvm.cli.command_group import InvalidUsage
from symsvm.cli.inputs import READER_OPTIONS, check_labels, points_to_scale, read_table
from symsvm.cli.interruptible_fit import progress_bar
from symsvm.cli.model_building import REGRESSIONS, build_model
from symsvm.cli.output import (
    check_model_path,
    check_output_path,
    column_table,
    file_size,
    require_matplotlib,
    save_model,
    styled,
)
from symsvm.cli.reports import data_line, describe_fit, fit_table, has_converged, model_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from symsvm.cli.output import Output
    from symsvm.model_selection import GradientSearchCV

__all__ = ["GradientTuning"]

# What is searched for each type of machine, and what is with each kernel.
_MACHINES = {"c-svc": ("C",), "svr": ("C", "epsilon"), "nu-svc": ("nu",), "nu-svr": ("C", "nu")}
_KERNELS = {None: ("gamma",), "rbf": ("gamma",), "laplacian": ("gamma",), "poly": ("gamma",), "sigmoid": ("gamma",)}
# Searched only where several values are given.
_OPTIONAL = {"poly": ("coef0",), "sigmoid": ("coef0",)}
_NUMBERS = ("C", "gamma", "degree", "coef0", "nu", "epsilon")
# Features of which the widths are listed.
_MAX_FEATURES = 10


class GradientTuning:
    """One call of `symsvm tune --by-gradient`.

    Parameters
    ----------
    settings : mapping
        The options of the command.
    output : Output
        Where it reports to.
    plot_suffixes : tuple of str
        The formats of plots.
    """

    def __init__(self, settings: Mapping[str, Any], output: Output, plot_suffixes: tuple[str, ...]) -> None:
        self.output, self.kind = output, settings["type_"] or "c-svc"
        self.settings = {**settings, "type_": self.kind}
        if self.kind not in _MACHINES or settings["text"]:
            raise InvalidUsage("--by-gradient is for machines with a kernel: c-svc, nu-svc, svr and nu-svr.")
        if settings["kernel"] == "precomputed":
            raise InvalidUsage("--by-gradient needs a kernel with an expression, not a precomputed matrix.")
        if settings["log2c"] is not None or settings["log2g"] is not None:
            raise InvalidUsage("--by-gradient starts at values of -c and -g: leave out --log2c and --log2g.")
        if settings["widths"] and settings["kernel"] not in (None, "rbf"):
            raise InvalidUsage(f"--widths needs the rbf kernel, got --kernel {settings['kernel']}.")
        names = ("squared_error", "absolute_error") if self.kind in REGRESSIONS else ("log_loss", "smooth_hinge")
        if settings["scoring"] not in (None, *names):
            raise InvalidUsage(f"--scoring by gradient must be {' or '.join(names)}, got {settings['scoring']!r}.")
        if settings["plot"] and Path(settings["plot"]).suffix not in plot_suffixes:
            raise InvalidUsage(f"--plot must end in {', '.join(plot_suffixes)}, got {settings['plot']!r}.")
        check_output_path(settings["plot"])
        if settings["plot"]:
            require_matplotlib()
        check_model_path(settings["output"], is_scaled=settings["scale"] not in (None, "none"), is_linear=False)
        self.over, self.grid, self.fixed = self._parameters()

    def run(self) -> bool:
        """Search and report; return whether the search and the model, if one is written, converged."""
        import numpy as np

        from symsvm.kernels import RBF
        from symsvm.model_selection import GradientSearchCV

        s, output = self.settings, self.output
        table = read_table(s["file"], targets=self.kind in REGRESSIONS, **{name: s[name] for name in READER_OPTIONS})
        check_labels(table, self.kind)
        model = build_model({**s, **dict.fromkeys(_NUMBERS), **self.fixed}, table.y)
        y: Any = table.y
        steps, X = None, points_to_scale(table.X, s["scale"])
        if hasattr(model, "steps"):
            steps, model = model.steps[0], model.steps[-1][1]
            X = steps[1].fit_transform(X)
        over, grid = list(self.over), dict(self.grid)
        if s["widths"]:
            model.set_params(kernel=RBF(np.ones(X.shape[1])))
            over[over.index("gamma")] = "kernel__sigma"
            if "gamma" in grid:
                grid["kernel__sigma"] = [np.full(X.shape[1], (2 * gamma) ** -0.5) for gamma in grid.pop("gamma")]
        began = time.perf_counter()
        with self._show_progress() as progress, output.warnings_as_notes():
            search = GradientSearchCV(
                model,
                over,
                cv=s["folds"],
                scoring=s["scoring"],
                grid=_full_grid(model, over, grid, X, y) if grid else None,
                starts=s["starts"],
                refit=False,
                random_state=s["seed"],
                progress=progress,
                n_jobs=s["jobs"],
            ).fit(X, y)
        document: dict[str, Any] = {"command": "tune", "data": table.describe(), **_describe(search)}
        document["seconds"] = time.perf_counter() - began
        output.show(data_line(document["data"]))
        _show_search(document, output)
        if s["plot"]:
            _draw(search, s["plot"], is_widths=s["widths"])
            document["plot"] = s["plot"]
            output.show(f"drawn: {s['plot']}")
        converged = self._write(search, model, steps, X, y, document) if s["output"] else True
        output.print_json(document)
        return document["complete"] and converged

    def _parameters(self) -> tuple[list[str], dict[str, list], dict[str, Any]]:
        """Return what is searched, the values of the starting grid, and the parameters that have one value."""
        s, kernel = self.settings, self.settings["kernel"]
        given = {name: s[name] for name in _NUMBERS if s[name] is not None}
        own = (*_MACHINES[self.kind], *_KERNELS.get(kernel, ()))
        grid = {name: list(values) for name, values in given.items() if len(values) > 1}
        fixed = {name: values[0] for name, values in given.items() if len(values) == 1}
        if "degree" in grid:
            raise InvalidUsage(
                "--degree is an integer, which has no derivative: give it one value, or leave out --by-gradient."
            )
        for name, values in grid.items():
            if name not in (*own, *_OPTIONAL.get(kernel, ())):
                raise InvalidUsage(f"--{name} has no effect on this machine and kernel: give it one value or none.")
            if any(isinstance(value, str) for value in values):
                raise InvalidUsage(f"--{name} must have numbers to start at, got {', '.join(map(str, values))}.")
        if s["widths"] and "gamma" in fixed:
            raise InvalidUsage(
                "--widths searches a width for each feature: give --gamma several values to start at, or none."
            )
        over = [name for name in own if name not in fixed]
        over += [name for name in grid if name not in over]
        if not over:
            raise InvalidUsage("there is nothing to search: leave out an option that fixes a parameter.")
        return over, grid, fixed

    @contextlib.contextmanager
    def _show_progress(self) -> Iterator[Callable[[Any], None] | None]:
        if not self.output.shows_progress:
            yield None
            return
        with progress_bar("evaluations", self.output) as bar:
            task = bar.add_task("", total=None, status="")

            def progress(step: Any) -> None:
                bar.update(task, completed=step.done, status=f"best loss {step.best:.5g}")

            yield progress

    def _write(self, search: Any, model: Any, steps: Any, X: Any, y: Any, document: dict[str, Any]) -> bool:
        """Train with the best parameters on all points and write the model; return whether it converged."""
        from sklearn.base import clone
        from sklearn.pipeline import Pipeline

        path, show = self.settings["output"], self.output.show
        best: Any = clone(model)
        best.set_params(**search.best_params_)
        with self.output.warnings_as_notes():
            best.fit(X, y)
        if steps is not None:
            best = Pipeline([steps, (type(best).__name__.lower(), best)])
        save_model(best, path, has_fallback=True)
        refit = describe_fit(best)
        document |= {"output": path, "refit": refit}
        show("", model_line(refit["model"]), "", fit_table(refit))
        show("", styled("written to ", (path, "bold"), f", {file_size(path)}"))
        return has_converged(refit)


def _full_grid(model: Any, over: list[str], grid: dict[str, list], X: Any, y: Any) -> dict[str, list]:
    """The given values of the grid, and the default ones of the other parameters."""
    from symsvm.model_selection.descent import coarse_grid
    from symsvm.model_selection.search_space import SearchSpace

    known = {"gamma"} & set(over) and isinstance(model.gamma, str)
    axes: dict[str, list] = {}
    for cell in coarse_grid(SearchSpace(model, over, gamma=1.0 if known else None), X, y):
        for name, value in cell.items():
            values = axes.setdefault(name, [])
            if not any(value is other or (not hasattr(value, "shape") and value == other) for other in values):
                values.append(value)
    return axes | grid


# ---- the report


def _describe(search: GradientSearchCV) -> dict[str, Any]:
    """Return the best parameters and all evaluations."""
    import numpy as np

    results = search.cv_results_
    evaluations = [
        {
            "params": {name: _plain(value) for name, value in params.items()},
            "loss": -float(score) if np.isfinite(score) else None,
            "stage": int(stage),
            "seconds": float(seconds),
            "status": str(status),
        }
        for params, score, stage, seconds, status in zip(
            results["params"],
            results["mean_test_score"],
            results["stage"],
            results["seconds"],
            results["status"],
            strict=True,
        )
    ]
    return {
        "best_params": {name: _plain(value) for name, value in search.best_params_.items()},
        "best_loss": search.best_loss_,
        "scoring": search.scoring_,
        "folds": search.n_splits_,
        "status": search.status_,
        "complete": search.status_ in ("converged", "max_iter"),
        "evaluations": evaluations,
    }


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else float(value)


def _show_search(report: Mapping[str, Any], output: Output) -> None:
    """Print the best of the grid and of each start, and the best parameters."""
    found = report["evaluations"]
    names = [name for name, value in report["best_params"].items() if not isinstance(value, list)]
    rows = []
    for stage in sorted({e["stage"] for e in found}):
        members = [e for e in found if e["stage"] == stage]
        scored = [e for e in members if e["loss"] is not None]
        best = min(scored, key=lambda e: e["loss"]) if scored else None
        loss = "" if best is None else f"{best['loss']:.5g}"
        values = [f"{best['params'][name]:.4g}" if best else "" for name in names]
        seconds = f"{sum(e['seconds'] for e in members):.3g}"
        rows.append(("grid" if stage == 0 else f"start {stage}", *values, loss, str(len(members)), seconds))
    title = f"{len(found)} evaluations in {report['folds']} folds, {report['seconds']:.3g} s"
    heads = ["best of", *names, report["scoring"], "evaluations", "seconds"]
    output.show(column_table(heads, rows, left=1, title=title, width=output.width))
    best = ", ".join(f"{name} = {report['best_params'][name]:.6g}" for name in names)
    output.show(styled(("best: ", "bold"), (best, "bold green"), f", {report['scoring']} {report['best_loss']:.5g}"))
    for value in report["best_params"].values():
        if isinstance(value, list):
            order = sorted(range(len(value)), key=value.__getitem__)
            shown = ", ".join(f"{k + 1}: {value[k]:.3g}" for k in order[:_MAX_FEATURES])
            more = f", and {len(value) - _MAX_FEATURES} wider ones" if len(value) > _MAX_FEATURES else ""
            output.show(f"widths, the narrowest first (they matter most): {shown}{more}")


def _draw(search: Any, path: str, *, is_widths: bool) -> None:
    """Draw the widths of the features, or else the path over the grid's surface."""
    from symsvm.inspection import plot

    display = plot.widths(search) if is_widths else plot.search_path(search)
    display.figure_.savefig(path, dpi=120, bbox_inches="tight")
