"""`explain`: a problem, the passes applied to it and how it runs, as text, as a picture or as a page.

`graph_reader` reads a PyTensor graph as the terms a person would write, and `formula` writes terms as lines of text.
`execution_plan` says what a run computes once and what a step repeats, `explanation_report` collects all of it, and
`rendering` writes it. Everything here is imported lazily: by `symsvm.explain`, the estimators and the command line.
"""

from __future__ import annotations

from typing import Any, Literal

from symsvm._lib.validation import choice
from symsvm.explanation.explanation_report import make_report
from symsvm.explanation.rendering import render_html, render_svg, render_text

__all__ = ["explain"]

_RENDERERS = {"text": render_text, "svg": render_svg, "html": render_html}


def explain(x: Any, format: Literal["text", "svg", "html"] = "text") -> str:
    """Explain a problem: its equations, its graph before and after the passes, and what a run stores and repeats.

    Nothing is compiled or run.

    Parameters
    ----------
    x : Objective, Program, SVM_parallel or estimator
        What to explain: an `Objective`, a `Program`, an `SVM_parallel`, an estimator with a kernel (for its dual
        problem), or any object with a `program_` or an `objective_`.
    format : {"text", "svg", "html"}, default "text"
        The form of the explanation: "svg" is a picture of the graph before and after the passes, "html" a page with
        the picture and the text that loads no external resources.

    Returns
    -------
    str
        The explanation.

    Examples
    --------
    >>> import pytensor.tensor as pt
    >>> from symsvm import Objective, sum_over
    >>> lam = pt.dvector("lam")
    >>> print(explain(Objective(sum_over(lambda lam_i: lam_i**2, lam), variable=lam)).partition("Read as")[0])
    Objective(W of lam, 0 <= lam <= inf)
    <BLANKLINE>
    As written
      W = sum over the rows (lam_i) of
        lam_i**2
    <BLANKLINE>
    <BLANKLINE>
    """
    choice(format, "format", ("text", "svg", "html"))
    return _RENDERERS[format](make_report(x))
