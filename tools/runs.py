"""Run `make test` many times: with each Python that is found, or again and again with one.

    python tools/runs.py matrix       # Python 3.11, 3.12, 3.13 and newer ones
    python tools/runs.py repeat 10    # by turns with warm and with empty caches

One line a run, as soon as it is finished; its output is in out/. The exit code is 1 if a run failed. ARGS, in the
environment or on the command line of `make matrix` and `make repeat`, are further arguments for pytest.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out"
EXPECTED = range(11, 14)  # minor versions of Python 3 that are named where they are not found
NEWER = range(14, 30)  # and those that are used where they are
PACKAGES = {"PyTensor": "pytensor", "Numba": "numba", "JAX": "jax", "SciPy": "scipy", "scikit-learn": "scikit-learn"}
VERSIONS = f"""
import platform
from importlib.metadata import version
print("Python " + platform.python_version(), *(f"{{n}} {{version(p)}}" for n, p in {PACKAGES}.items()), sep=", ")
"""


def make(target, log, *settings, env=None):
    """Run a target of the Makefile, its output at the end of a log; the exit code."""
    line = ["make", "--no-print-directory", target, *settings]
    with open(log, "a", encoding="utf-8") as file:
        return subprocess.run(line, cwd=ROOT, env=env, stdout=file, stderr=file, check=False).returncode


def summary(log):
    """The last line of pytest: '3 passed in 0.12s'."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    found = [line.strip("= ") for line in lines if re.search(r"\bin \d+\.\d+s\b", line)]
    return found[-1] if found else "pytest did not end"


def fresh(name):
    """An empty log in out/."""
    OUT.mkdir(exist_ok=True)
    log = OUT / name
    log.write_text("", encoding="utf-8")
    return log


# ---- the Pythons


def answer(*line):
    """What a command prints, stripped; None where there is no such command, or it fails."""
    try:
        ended = subprocess.run(line, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return ended.stdout.strip() if ended.returncode == 0 else None


def interpreter(minor):
    """The path of a Python 3.`minor` that runs, None if there is none: that in PATH, else the newest of pyenv.

    A file in PATH is not enough: pyenv's shims are there for versions that are not selected, and fail.
    """
    name = f"python3.{minor}"
    candidates = [name]
    versions = (answer("pyenv", "versions", "--bare") or "").split()
    of_pyenv = sorted((v for v in versions if re.fullmatch(rf"3\.{minor}\.\d+", v)), key=lambda v: int(v.split(".")[2]))
    for version in reversed(of_pyenv):
        if prefix := answer("pyenv", "prefix", version):
            candidates.append(str(Path(prefix, "bin", name)))
    code = "import ensurepip, sys, venv; print(sys.executable, sys.version_info[1])"
    for candidate in candidates:
        path, _, found = (answer(candidate, "-c", code) or "").rpartition(" ")
        if found == str(minor):
            return path
    return None


def matrix():
    """Run the tests with each Python, in environments of their own; whether all passed."""
    found = {minor: path for minor in (*EXPECTED, *NEWER) if (path := interpreter(minor))}
    failed = not found
    for minor, path in found.items():
        venv, log = Path(".venvs", f"3.{minor}"), fresh(f"matrix-3.{minor}.log")
        settings = f"VENV={venv}", f"PYTHON={path}"
        if code := make("env", log, *settings):
            line = f"Python 3.{minor}: the environment cannot be made"
        else:
            code = make("test", log, *settings)
            line = f"{answer(ROOT / venv / 'bin' / 'python', '-c', VERSIONS)}: {summary(log)}"
        print(f"{line} ({'FAILED, ' if code else ''}{log.relative_to(ROOT)})", flush=True)
        failed |= code != 0
    if missing := [f"3.{minor}" for minor in EXPECTED if minor not in found]:
        print(f"not found, or without venv: Python {', '.join(missing)}", flush=True)
    return not failed


# ---- again and again


def repeat(times):
    """Run the tests so many times; whether all passed.

    A warm run has the user's caches, a cold one an empty home directory and no code that Numba has kept.
    """
    failed = 0
    for number in range(1, times + 1):
        log, cold = fresh(f"repeat-{number:02}.log"), number % 2 == 0
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:  # a browser may still be closing
            empty = {"HOME": home, "XDG_CACHE_HOME": f"{home}/.cache", "NUMBA_CACHE_DIR": f"{home}/numba"}
            start = time.monotonic()
            code = make("test", log, env=os.environ | empty if cold else None)
            seconds = time.monotonic() - start
        mark = f"FAILED, {log.relative_to(ROOT)}" if code else "ok"
        print(f"run {number:2} {'cold' if cold else 'warm'} {seconds:6.0f} s: {summary(log)} ({mark})", flush=True)
        failed += code != 0
    print(f"{times - failed} of {times} runs passed", flush=True)
    return not failed


def main():
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Run `make test` with each Python, or many times.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("matrix")
    commands.add_parser("repeat").add_argument("times", type=int, help="how many runs")
    given = parser.parse_args()
    passed = matrix() if given.command == "matrix" else repeat(given.times)
    sys.exit(not passed)


if __name__ == "__main__":
    main()
