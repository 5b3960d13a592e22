"""Every fenced Python block in the documentation runs, with warnings as errors: a scope a block."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
HINT = "np.dot() is faster on contiguous arrays"  # Numba's, when it compiles; ignored in pyproject.toml as well
RUN = """
import json, sys
for number, block in enumerate(json.load(sys.stdin)):
    exec(compile(block, f"block {number}", "exec"), {"__name__": "__main__"})
"""


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


# A minute and more where nothing is compiled yet: below, its blocks share what the other pages compile.
@pytest.mark.slow
def test_the_readme_runs_in_a_fresh_process(tmp_path):
    run = subprocess.run(
        [sys.executable, "-W", "error", "-W", f"ignore:{HINT}", "-c", RUN],
        input=json.dumps(blocks(ROOT / "README.md")),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, block in enumerate(blocks(page)):
        if "import optuna" in block and importlib.util.find_spec("optuna") is None:
            continue  # an extra of the tests alone
        exec(compile(block, f"{page.name}, block {number}", "exec"), {"__name__": "__main__"})
    plt.close("all")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_point_to_files(page):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readmes_commands_are_make_targets():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(
        r"(?:`|^    )make (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert {"run", "test", "env"} <= set(commands)
    for command in commands:
        assert re.search(rf"^{command}:", makefile, flags=re.MULTILINE), command


def test_every_promise_names_its_tests():
    """Each section of docs/promises.md links a file of tests/promises, and each such file is linked."""
    text = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    linked = [set(re.findall(r"promises/(test_\w+\.py)", section)) for section in text.split("\n## ")[1:]]
    assert all(linked), "a promise without a test"
    files = {path.name for path in (ROOT / "tests" / "promises").glob("test_*.py")}
    assert set().union(*linked) == files
