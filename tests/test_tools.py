"""The tools of the Makefile: which Pythons are found, and how the end of a run is told."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parent.parent / "tools"
MINOR = sys.version_info[1]


@pytest.fixture
def runs():
    spec = importlib.util.spec_from_file_location("runs", TOOLS / "runs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]), encoding="utf-8")
    path.chmod(0o755)


def test_a_python_is_found_if_it_runs(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert runs.interpreter(MINOR) is None
    shim = tmp_path / f"python3.{MINOR}"
    program(shim, "echo not selected >&2", "exit 127")
    assert runs.interpreter(MINOR) is None
    program(shim, f'exec "{sys.executable}" "$@"')
    assert os.path.samefile(runs.interpreter(MINOR), sys.executable)


def test_a_python_of_another_version_is_not_taken(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    program(tmp_path / f"python3.{MINOR + 1}", f'exec "{sys.executable}" "$@"')
    assert runs.interpreter(MINOR + 1) is None


def test_a_python_of_pyenv_is_found_behind_a_shim_that_fails(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    name, version = f"python3.{MINOR}", f"3.{MINOR}.1"
    program(tmp_path / name, "exit 127")
    program(tmp_path / "versions" / version / "bin" / name, f'exec "{sys.executable}" "$@"')
    program(
        tmp_path / "pyenv",
        f'[ "$1 $2" = "versions --bare" ] && printf "3.9.9\\n{version}\\n{version}/envs/other\\n" && exit',
        f'[ "$1 $2" = "prefix {version}" ] && echo "{tmp_path}/versions/{version}" && exit',
        "exit 1",
    )
    assert os.path.samefile(runs.interpreter(MINOR), sys.executable)


def test_without_a_python_the_matrix_fails(tmp_path):
    line = [sys.executable, str(TOOLS / "runs.py"), "matrix"]
    env = os.environ | {"PATH": str(tmp_path)}
    ended = subprocess.run(line, capture_output=True, text=True, check=False, env=env)
    assert ended.stdout == "not found, or without venv: Python 3.11, 3.12, 3.13\n"
    assert ended.returncode == 1


def test_the_last_line_of_pytest(runs, tmp_path):
    log = tmp_path / "log"
    log.write_text("a line\n", encoding="utf-8")
    assert runs.summary(log) == "pytest did not end"
    log.write_text("==== 1 failed, 2 passed in 61.20s (0:01:01) ====\nmake: *** Error 1\n", encoding="utf-8")
    assert runs.summary(log) == "1 failed, 2 passed in 61.20s (0:01:01)"
    log.write_text("..\n2 passed in 0.12s\n", encoding="utf-8")
    assert runs.summary(log) == "2 passed in 0.12s"
