"""Report: the table of a comparison, its pictures and the findings of the seeds, in a directory."""

from pathlib import Path

import numpy as np

from symsvm.inspection.comparison.contest import contest
from symsvm.inspection.comparison.findings import findings
from symsvm.inspection.comparison.pictures import boundaries, convergences, trajectories, tubes

__all__ = ["report", "table"]

_HEAD = "| model | algorithm | P | above P* | gap | infeasibility | score | vectors | steps | seconds | MB | stopped |"

_LEGEND = """\
P is the primal objective of what an algorithm predicts with, P* the optimum of its model. Gap and infeasibility are
those of its own certificate; score is the accuracy, or R2, on a test set; vectors are the points that the prediction
needs. Seconds are those of the run, after compilation; MB what Python and NumPy held at most in the first second (what
LIBSVM and LIBLINEAR allocate by themselves is not seen).
"""


def table(entries):
    """The entries of one problem as a table in Markdown."""
    lines = [_HEAD, "|---|---|" + "--:|" * 9 + "---|"]
    for e in entries:
        vectors = "" if e.vectors is None else f"{100 * e.vectors:.0f} %"
        cells = (
            str(e.model),
            e.algorithm,
            f"{e.P:.6g}",
            f"{e.excess:.1e}",
            _number(e.gap),
            _number(e.infeasibility),
            f"{e.score:.3f}",
            vectors,
            f"{e.iterations}",
            f"{e.seconds:.3g}",
            f"{e.memory:.1f}",
            e.stopped,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _number(value):
    return "" if value is None or np.isnan(value) else f"{value:.1e}"


def report(problems, directory, *, show=print, **options):
    """Run the contest on some `Problem`s; write report.md and pictures to the directory; return the entries.

    Parameters
    ----------
    show : is given each line of the report as it is known.
    options : of `contest`.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    entries, lines = [], []

    def say(text):
        lines.append(text)
        show(text)

    say("# Every algorithm on the same problems\n")
    say(_LEGEND)
    for problem in problems:
        own = list(contest(problem, **options))
        entries += own
        kind = "classes" if problem.epsilon is None else f"values, epsilon = {problem.epsilon:g}"
        m, d = problem.X.shape
        say(f"## {problem.name}: {m} x {d}, {kind}, {problem.kernel!r}, C = {problem.C:g}\n")
        say(table(own) + "\n")
    say("## What the seeds found\n")
    for sentence in findings(entries):
        say(f"- {sentence}")
    drawn = [draw(entries, directory) for draw in (boundaries, tubes, convergences, trajectories)]
    for path in (path for paths in drawn for path in paths):
        lines.append(f"\n![{path.stem}]({path.name})")
    (directory / "report.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return entries
