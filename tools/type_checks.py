"""Check types with pyright: the package and typical code of users are clean, and common mistakes are found.

    python tools/type_checks.py

`tools/typing/usage.py` must have no error, `tools/typing/mistakes.py` one in each line that ends with `# mistake` and
no other. The exit code is 1 if anything differs.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def errors(*paths):
    """The errors that pyright finds in files or folders, as (file, line, message); all of the package by default."""
    project = [] if paths else ["--project", "pyproject.toml"]
    line = [sys.executable, "-m", "pyright", "--outputjson", *project, *paths]
    ended = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        report = json.loads(ended.stdout)
        found = report["generalDiagnostics"]
    except (ValueError, KeyError):
        raise SystemExit(f"pyright failed: {ended.stdout}{ended.stderr}") from None
    if not report["summary"]["filesAnalyzed"]:
        raise SystemExit(f"pyright read no file: {ended.stderr}")
    return [
        (str(Path(e["file"]).relative_to(ROOT)), e["range"]["start"]["line"] + 1, e["message"].splitlines()[0])
        for e in found
        if e["severity"] == "error"
    ]


def main():
    """Check, report, and return the exit code."""
    unexpected = [*errors(), *errors("tools/typing/usage.py")]
    mistakes = ROOT / "tools" / "typing" / "mistakes.py"
    lines = mistakes.read_text(encoding="utf-8").splitlines()
    marked = {number for number, text in enumerate(lines, 1) if text.endswith("# mistake")}
    found = errors("tools/typing/mistakes.py")
    unexpected += [error for error in found if error[1] not in marked]
    missed = marked - {line for _, line, _ in found}
    for file, line, message in unexpected:
        print(f"{file}:{line}: {message}")
    for line in sorted(missed):
        print(f"tools/typing/mistakes.py:{line}: pyright finds no mistake in {lines[line - 1].strip()!r}")
    print(f"{len(unexpected)} errors, {len(marked) - len(missed)} of {len(marked)} mistakes found")
    return 1 if unexpected or missed else 0


if __name__ == "__main__":
    sys.exit(main())
