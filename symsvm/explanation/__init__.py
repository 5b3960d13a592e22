"""explain: a problem, what the passes made of it and how it runs, as text, as a picture or as a page.

A graph is read as the terms a person would write (`terms`, `reading`), and written as a few lines of formulas
(`formula`); `report` gathers what there is to say, and `text`, `picture` and `page` say it.
"""

from symsvm._lib.validation import choice
from symsvm.explanation.page import page
from symsvm.explanation.picture import svg
from symsvm.explanation.report import report
from symsvm.explanation.text import text

__all__ = ["explain"]


def explain(x, format="text"):
    """Explain a problem: its equations, the graph as written and after the passes, and what a run holds and repeats.

    Nothing is compiled or run.

    Parameters
    ----------
    x : an `Objective`, a `Program`, an `SVM_parallel`, an estimator over a kernel (for its dual problem), or
        anything with a `program_` or an `objective_`.
    format : "text", "svg" (a picture of the graph before and after) or "html" (a page with both, which loads nothing).
        The pictures are drawn here: they need no other program.

    >>> import pytensor.tensor as pt
    >>> from symsvm import Objective, sum_over
    >>> lam = pt.dvector("lam")
    >>> print(explain(Objective(sum_over(lambda lam_i: lam_i**2, lam), variable=lam)).partition("Passes")[0])
    Objective(W of lam, 0 <= lam <= inf)
    <BLANKLINE>
    As written
      W = sum over the rows (lam_i) of
        lam_i**2
    <BLANKLINE>
    <BLANKLINE>
    """
    choice(format, "format", ("text", "svg", "html"))
    return {"text": text, "svg": svg, "html": page}[format](report(x))
