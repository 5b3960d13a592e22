"""Build the source distribution and the wheel, look into them, and try the wheel in an empty environment.

    python tools/package.py

Needs the package `build`. What was built stays in dist/; one line a check, one sentence where one fails.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
# The source distribution contains these, and all files below the folders.
FOLDERS = ".github", "symsvm", "benchmarks", "docs", "examples", "tests", "tools"
FILES = (
    ".ci/run",
    ".gitignore",
    ".pre-commit-config.yaml",
    "CHANGELOG.md",
    "CITATION.cff",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "MANIFEST.in",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "pyproject.toml",
)


def require(holds, sentence):
    """End with a sentence where something does not hold."""
    if not holds:
        sys.exit(f"error: {sentence}")


def run(sentence, *line, **options):
    """Run a command; where it fails, what it printed and a sentence."""
    line = [str(word) for word in line]
    ended = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    require(ended.returncode == 0, f"{sentence}: {' '.join(line)} ended with code {ended.returncode}.\n{ended.stdout}")


def build(folder, *options):
    """Build into a folder. setuptools would pack what an earlier build has left in build/."""
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    run("the package cannot be built", sys.executable, "-m", "build", *options, "--outdir", folder, ROOT)
    shutil.rmtree(ROOT / "build", ignore_errors=True)


def only(folder, pattern):
    """The one file of a folder that has such a name."""
    found = list(folder.glob(pattern))
    require(len(found) == 1, f"{folder} has {len(found)} files {pattern}, not one.")
    return found[0]


def files_below(folder):
    """The names of the source files below a folder of the tree, relative to the tree."""
    files = (path for path in (ROOT / folder).rglob("*") if path.is_file())
    return {path.relative_to(ROOT).as_posix() for path in files if path.parent.name != "__pycache__"}


def contents(wheel):
    """The files of a wheel by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def difference(found, expected):
    """What two sets do not share, as words."""
    return f"missing are {sorted(expected - found)}, too many are {sorted(found - expected)}"


def check_wheel(wheel, version):
    """The wheel has the source files of the package, bit for bit, and beside them metadata with the licence."""
    held, metadata = contents(wheel), f"symsvm-{version}.dist-info/"
    package = {name for name in held if not name.startswith(metadata)}
    expected = files_below("symsvm")
    require(package == expected, f"{wheel.name}: {difference(package, expected)}.")
    for name in sorted(expected):
        require(held[name] == (ROOT / name).read_bytes(), f"{wheel.name}: {name} is not the file of the source tree.")
    licence = held.get(f"{metadata}licenses/LICENSE")
    require(licence == (ROOT / "LICENSE").read_bytes(), f"{wheel.name} does not have the file LICENSE.")
    return f"the wheel has the {len(expected)} files of symsvm/, the licence, and nothing else"


def check_sdist(sdist, version):
    """The source distribution has the whole tree."""
    with tarfile.open(sdist) as archive:
        found = {m.name.removeprefix(f"symsvm-{version}/") for m in archive.getmembers() if m.isfile()}
    expected = set(FILES).union(*map(files_below, FOLDERS))
    require(expected <= found, f"{sdist.name}: missing are {sorted(expected - found)}.")
    return f"the source distribution has the {len(expected)} files of the source tree"


def check_same(wheel, other):
    """The wheel that was built from the source distribution is the one from the source tree."""
    first, second = contents(wheel), contents(other)
    require(first.keys() == second.keys(), f"the sdist builds another wheel: {difference(set(first), set(second))}.")
    changed = sorted(name for name in first if first[name] != second[name])
    require(not changed, f"the sdist builds a wheel with other {changed}.")
    return "the wheel from the source distribution is the wheel from the source tree"


def main():
    """Build, look, install, try."""
    source = (ROOT / "symsvm" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', source, flags=re.MULTILINE)
    require(found, "symsvm/__init__.py has no line with __version__.")
    version = found[1]
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        build(DIST)  # the source distribution, and the wheel from it
        build(folder, "--wheel")  # the wheel from the tree
        wheel, sdist = only(DIST, "*.whl"), only(DIST, "*.tar.gz")
        print(f"ok: {check_wheel(wheel, version)}", flush=True)
        print(f"ok: {check_sdist(sdist, version)}", flush=True)
        print(f"ok: {check_same(wheel, only(folder, '*.whl'))}", flush=True)
        # Neither a module path nor an environment that is active may lead back to the source tree.
        clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
        python = folder / "venv" / "bin" / "python"
        run("there is no environment", sys.executable, "-m", "venv", folder / "venv", env=clean)
        install = python, "-m", "pip", "install", "--quiet", f"{wheel}[serve]"
        run("the wheel cannot be installed", *install, cwd=folder, env=clean)
        print("ok: the wheel is installed in an empty environment", flush=True)
        line = [python, "-I", ROOT / "tools" / "installed.py", version]
        sys.exit(subprocess.run(line, cwd=folder, env=clean, check=False).returncode)


if __name__ == "__main__":
    main()
