"""The comparison: every algorithm on the same problems, judged by one yardstick, beside scikit-learn."""

from symsvm.comparison.contest import Entry, contest
from symsvm.comparison.findings import findings
from symsvm.comparison.problems import PROBLEMS, Problem, problem
from symsvm.comparison.report import report, table

__all__ = ["PROBLEMS", "Entry", "Problem", "contest", "findings", "problem", "report", "table"]
