"""The tools of the Makefile: which Pythons are found, how the end of a run is told, how a broken promise is kept."""

import importlib.util
import json
import multiprocessing
import os
import queue
import subprocess
import sys
import time
from pathlib import Path

import pytest

TOOLS = Path(__file__).parent.parent / "tools"
MINOR = sys.version_info[1]


def tool(name):
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def runs():
    return tool("runs")


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


@pytest.fixture
def fuzz(tmp_path, monkeypatch):
    module = tool("fuzz")
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.setattr(module, "OUT", tmp_path)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def broken_promise(fuzz, monkeypatch):
    """Put a promise in place that more than 10 points break; return a case."""
    from cases import Case, draw
    from promise import Promise, demand

    def check(case, figures):
        figures.note("points", case.m, case)
        demand(case.m <= 10, f"{case.m} points are more than 10")

    promise = Promise("few points", check, draw)
    monkeypatch.setattr(fuzz, "promises", lambda: {promise.name: promise})
    return Case(m=40, layout="csr")


def test_a_broken_promise_is_kept_small_and_tried_again(fuzz, tmp_path, monkeypatch, capsys):
    fuzz.promises()  # the path of its modules
    case = broken_promise(fuzz, monkeypatch)
    results, kept_in = queue.SimpleQueue(), tmp_path / "5"
    kept_in.mkdir()
    fuzz.work(0, 5, time.time() + 0.2, [], results, multiprocessing.Value("q"))
    tried, _, broken, kinds, figures, _ = results.get()
    assert 0 < broken["few points"] < tried["few points"]
    assert [kind for _, kind in kinds] == ["# points are more than #"]
    kept = sorted(kept_in.glob("few-points-0-*.json"))
    assert len(kept) == fuzz.KEPT
    assert json.loads(kept[0].read_text())["case"]["m"] < 16  # made smaller while it broke
    assert fuzz.report(5, 0.2, [(tried, tried, broken, kinds, figures, [])]) == broken["few points"]
    assert not fuzz.again(kept[0])
    fuzz.write(kept[0], "few points", case.but(m=8), "it broke once", 5)
    assert fuzz.again(kept[0])
    assert capsys.readouterr().out.endswith("then: it broke once\n  now:  it holds\n")


def test_a_campaign_ends_with_its_number_of_problems(fuzz, tmp_path, monkeypatch):
    fuzz.promises()
    from cases import fit
    from promise import Promise

    def check(case, figures):
        fit(Refusing(), None, None, None)

    monkeypatch.setattr(fuzz, "promises", lambda: {"three problems": Promise("three problems", check)})
    results, done = queue.SimpleQueue(), multiprocessing.Value("q")
    (tmp_path / "5").mkdir()
    fuzz.work(0, 5, time.time() + 60, [], results, done, 3)
    _, problems, *_ = results.get()
    assert problems["three problems"] == done.value == 3


class Refusing:
    def fit(self, X, y):
        raise ValueError("no data")


def test_the_seed_gives_the_same_cases(fuzz):
    promises = fuzz.promises()
    for name, promise in promises.items():
        one, two = (promise.sample(fuzz.random_state(1, 0, name, 3)) for _ in range(2))
        assert one == two
        assert one != promise.sample(fuzz.random_state(2, 0, name, 3))
