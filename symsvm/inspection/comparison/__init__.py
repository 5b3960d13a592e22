"""Comparison of all algorithms on the same problems by the same measures, beside scikit-learn.

`contest` runs the algorithms on a `Problem` and yields an `Entry` for each; `report` writes tables, plots and the
claims of Meoli (2021), checked against the entries. `symsvm.comparison` has the public names; the command line
uses this package.
"""

from symsvm.inspection.comparison.comparison_report import findings, report, table
from symsvm.inspection.comparison.contest import Entry, contest
from symsvm.inspection.comparison.problems import PROBLEMS, Problem, problem

__all__ = ["PROBLEMS", "Entry", "Problem", "contest", "findings", "problem", "report", "table"]
