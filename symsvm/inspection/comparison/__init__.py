"""The comparison: every algorithm on the same problems, judged by one yardstick, beside scikit-learn."""

from symsvm.inspection.comparison.contest import Entry, contest
from symsvm.inspection.comparison.findings import findings
from symsvm.inspection.comparison.problems import PROBLEMS, Problem, problem
from symsvm.inspection.comparison.report import report, table

__all__ = ["PROBLEMS", "Entry", "Problem", "contest", "findings", "problem", "report", "table"]
