"""Run scikit-learn's own tests of its support vector machines on the estimators of symsvm.

    python tools/sklearn_tests.py [-k EXPRESSION] [--verbose]

The tests are those of the installed scikit-learn (`sklearn/svm/tests/test_svm.py` and `test_sparse.py`); nothing of
them is in this repository. They are imported while a copy of the module `sklearn.svm` that has the estimators of symsvm
stands in its place. What fails must be named in docs/moving.md, with the reason, and no more than 5 % may fail.
"""

import argparse
import contextlib
import io
import re
import sys
import types
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = ("sklearn.svm.tests.test_svm", "sklearn.svm.tests.test_sparse")
NAMES = ("SVC", "SVR", "LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM")
LEAST = 0.95  # the share of tests that pass


def copied_module():
    """A copy of the module `sklearn.svm` with the estimators of symsvm in the place of its own."""
    import sklearn.svm

    import symsvm

    copy = types.ModuleType(sklearn.svm.__name__, sklearn.svm.__doc__)
    vars(copy).update(vars(sklearn.svm))
    vars(copy).update({name: getattr(symsvm, name) for name in NAMES})
    return copy


@contextlib.contextmanager
def in_place(copy):
    """Let imports find the copy."""
    import sklearn

    own = sklearn.svm
    sys.modules["sklearn.svm"] = sklearn.svm = copy
    try:
        yield
    finally:
        sys.modules["sklearn.svm"] = sklearn.svm = own


class Results:
    """A plugin of pytest that counts the tests by their outcome, and keeps the failures."""

    def __init__(self):
        self.counts, self.failures = Counter(), {}

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.rpartition("::")[2]
        if report.failed and name not in self.failures:
            self.failures[name] = report.longreprtext
            self.counts["failed"] += 1
        elif report.skipped:
            self.counts["skipped"] += 1
        elif report.when == "call" and report.passed:
            self.counts["passed"] += 1


def run(expression="", *, is_verbose=False):
    """Run the tests whose names match; return the exit code of pytest and the results."""
    results, options = Results(), ["-q", "-p", "no:cacheprovider", "-c", str(Path(__file__).with_suffix(".ini"))]
    options += ["-k", expression] if expression else []
    out = sys.stdout if is_verbose else io.StringIO()
    with in_place(copied_module()), contextlib.redirect_stdout(out):
        code = pytest.main([*options, "--pyargs", *MODULES], plugins=[results])
    if not results.counts:
        sys.exit(f"error: no test has run.\n{out.getvalue() if isinstance(out, io.StringIO) else ''}")
    return code, results


def documented(failures):
    """Which tests docs/moving.md names."""
    text = (ROOT / "docs" / "moving.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`(test_\w+)`", text))
    return {name for name in failures if name.partition("[")[0] in names}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-k", dest="expression", default="", help="run the tests whose names match, as in pytest")
    parser.add_argument("--verbose", action="store_true", help="print what pytest prints")
    options = parser.parse_args()
    _, results = run(options.expression, is_verbose=options.verbose)
    passed, failed = results.counts["passed"], results.counts["failed"]
    known = documented(results.failures)
    for name, text in sorted(results.failures.items()):
        lines = [line for line in text.splitlines() if line.startswith("E ")]
        print(f"{'failed' if name in known else 'FAILED'} {name}\n    {(lines or ['E  ?'])[0][1:].strip()}")
    share = passed / (passed + failed)
    print(f"{passed} of {passed + failed} tests pass: {100 * share:.1f} %; {results.counts['skipped']} skipped")
    new = results.failures.keys() - known
    if new:
        print(f"not in docs/moving.md: {', '.join(sorted(new))}")
    sys.exit(int(bool(new) or (share < LEAST and not options.expression)))


if __name__ == "__main__":
    main()
