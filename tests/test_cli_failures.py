"""Errors of the command line: one sentence, the exit code, no traceback, and existing files unchanged."""

import importlib.util
import os
import re
import resource
import signal
import subprocess
import sys

import click
import numpy as np
import pytest
from cli_runs import run
from test_data_malformed import CORPUS
from test_files_malformed import ARRAY as MEMBER
from test_files_malformed import ARRAYS, HEADS, TEXTS, changed, members, packed, text  # noqa: F401 (two are fixtures)

import symsvm
from symsvm.cli.command_group import COMMANDS, program
from symsvm.cli.option_suggestions import SYNONYMS
from symsvm.cli.tune_command import describe_partial
from symsvm.data import write
from symsvm.estimators.calibration import Calibration
from symsvm.solvers.decomposition import algorithm
from symsvm.solvers.decomposition.state import State
from symsvm.tuning import Tuning


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A directory with points and a model of them."""
    home = tmp_path_factory.mktemp("good")
    rng = np.random.default_rng(0)
    y = np.where(np.arange(80) % 2, 1, -1)
    write(home / "p.svm", rng.normal(size=(80, 2)) + 0.5 * y[:, None], y)
    run("train", home / "p.svm", "-o", home / "m.symsvm", "-q")
    return home


def one_sentence(failed, path):
    """stderr is one line that names the file."""
    assert failed.out == ""
    assert failed.err.startswith(f"error: {path}")
    assert failed.err.endswith(".\n")
    assert failed.err.count("\n") == 1


@pytest.mark.parametrize("case", CORPUS)
def test_malformed_data(case, good, tmp_path):
    name, content, _ = CORPUS[case]
    path = tmp_path / name
    path.write_bytes(content)
    labels = [] if name.startswith("p.svm") else ["--labels", 0]
    if name.startswith("p.idx"):
        write(tmp_path / "labels.idx", np.zeros(2, dtype="uint8"))
        labels = ["--labels", tmp_path / "labels.idx"]
    if name == "p.npz":
        labels = []
    for words in (["train", path, *labels], ["predict", good / "m.symsvm", path], ["data", path, "--unlabelled"]):
        failed = run(*words, code=3)
        one_sentence(failed, path)
        assert "line " in failed.err or "line" not in CORPUS[case][2]


@pytest.mark.parametrize("name", [*HEADS, *ARRAYS])
def test_malformed_models(name, good, members, tmp_path):  # noqa: F811
    if name in HEADS:
        keys, value, _ = HEADS[name]
        members = members | {"model.json": changed(members["model.json"], *keys, to=value)}
    else:
        members = members | {MEMBER: ARRAYS[name][0]()}
    path = packed(tmp_path / "m.symsvm", members)
    one_sentence(run("predict", path, good / "p.svm", code=3), path)


@pytest.mark.parametrize("name", TEXTS)
def test_malformed_texts_of_models(name, good, text, tmp_path):  # noqa: F811
    path = tmp_path / "m.libsvm"
    path.write_bytes(TEXTS[name][0](text))
    failed = run("convert", path, tmp_path / "o.symsvm", code=3)
    one_sentence(failed, path)
    assert ", line " in failed.err or name == "tiny gamma"


def test_usage(good, tmp_path):
    points = good / "p.svm"
    for words, sentence in (
        (["train"], "there is no FILE"),
        (["train", "nowhere.csv"], "there is no file 'nowhere.csv'"),
        (["train", points, "--kernel", "rbff"], "did you mean 'rbf'?"),
        (["train", points, "-c", -1], "'-1' is not a positive number"),
        (["train", points, "--nu", 0.5], "--nu does not belong to --type c-svc"),
        (["train", points, "-s", "svr", "-w1", 5], "--class-weight does not belong to --type svr"),
        (["train", points, "--solver", "smoo"], "'smo'"),
        (["train", points, "-o", tmp_path / "m.pkl"], "the ending must be"),
        (["train", points, "-o", tmp_path / "no" / "m.symsvm"], "there is no directory"),
        (["train", points, "-o", points / "m.symsvm"], "there is no directory"),
        (["train", points, "-o", tmp_path / "m.libsvm", "--scale", "sym"], "holds no scaling"),
        (["data", points, "--scale", "sym"], "-o OTHER"),
        (["data", points, "-o", tmp_path / "no" / "p.csv"], "there is no directory"),
        (["data", points, "-o", tmp_path / "p.npy", "--labels-output", tmp_path / "p.npy"], "is given twice"),
        (["train", "svmguide1", "--labels", 3], "leave out --labels"),
        (["train", points, "--text-column", "a"], "add --text"),
        (["train", points, "--test-labels", points], "--test-labels has no effect without --test"),
        (["train", points, "--model-in", good / "m.symsvm"], "leave out FILE"),
        (["train", "--model-in", good / "m.symsvm", "--test", points, "-c", 5], "trains none: leave out --cost"),
        (["train", "--model-in", good / "m.symsvm", "--test", points, "--rbf"], "trains none: leave out --rbf"),
        (["train", "--model-in", good / "m.symsvm"], "--model-in alone does nothing"),
        (["train", points, "--linear", "--rbf"], "--linear and --rbf exclude each other"),
        (["train", points, "--test-limit", 5], "--test-limit has no effect without --test"),
        (["explain", good / "m.symsvm", "--row", 2], "leave out --row"),
        (["data", "--limit", 2], "leave out --limit"),
        (["predict", good / "m.symsvm", points, "--proba", "--decision"], "exclude each other"),
        (["tune", points, "-s", "linear-svc", "-g", "1,2"], "--gamma does not belong to --type linear-svc"),
        (["tune", points, "-c", "1,2", "--plot", tmp_path / "no" / "s.png"], "there is no directory"),
        (["tune", points, "-c", "1:2:99999999999"], "is not a range"),
        (["tune", points, "--log2c", "0,2000,1000"], "must be BEGIN,END,STEP"),
        (["tune", points, "--log2c", "0,1,1e-300"], "must be BEGIN,END,STEP"),
        (["tune", points, "-t", 0, "-g", "1,2"], "--gamma has no effect on the linear kernel"),
        (["tune", points, "-d", "1,2"], "--degree has no effect on the rbf kernel"),
        (["tune", points, "-c", "1,2", "--scoring", "f1_marco"], "'f1_marco'; did you mean one of f1_macro"),
        (["tune", tmp_path, "--text", "--scale", "sym"], "leave out --type and --scale"),
        (["tune", points, "-c", "1,2", "--widths"], "belong to --by-gradient: leave out --widths"),
        (["tune", points, "--by-gradient", "--search", "grid"], "a search of its own: leave out --search"),
        (["tune", points, "--by-gradient", "-s", "one-class"], "for machines with a kernel"),
        (["tune", points, "--by-gradient", "-s", "linear-svc"], "for machines with a kernel"),
        (["tune", points, "--by-gradient", "-t", "precomputed"], "needs a kernel with an expression"),
        (["tune", points, "--by-gradient", "-c", "1", "-g", "1"], "there is nothing to search"),
        (["tune", points, "--by-gradient", "-t", "poly", "-d", "2,3"], "an integer, which has no derivative"),
        (["tune", points, "--by-gradient", "-r", "1,2"], "--coef0 has no effect on this machine and kernel"),
        (["tune", points, "--by-gradient", "--log2c", "1,3,1"], "leave out --log2c and --log2g"),
        (["tune", points, "--by-gradient", "--scoring", "f1"], "must be log_loss or smooth_hinge, got 'f1'"),
        (["tune", points, "--by-gradient", "--widths", "-t", "poly"], "--widths needs the rbf kernel"),
        (["tune", points, "--by-gradient", "--widths", "-g", "1"], "give --gamma several values"),
        (["tune", points, "--by-gradient", "--plot", tmp_path / "s.bmp"], "--plot must end in"),
        (["predict", good / "m.symsvm", points, "-o", tmp_path / "no" / "out"], "there is no directory"),
        (["predict", good / "m.symsvm", points, "-o", "-"], "'-' is not an output file"),
        (
            ["compare", points, "--algorithms", "qp,qqp"],
            "no algorithm 'qqp' for these problems; there are decomposition,",
        ),
        (["completion"], "Missing argument '[bash|zsh|fish]'."),
        (["trian"], "there is no command 'trian'; did you mean 'train'?"),
        (["train", points, "--C", "3"], "there is no option '--C'; did you mean '--cost'?"),
        (["train", points, "--gama", "3"], "there is no option '--gama'; did you mean '--gamma'"),
        (["train", points, "--max_iter", "3"], "did you mean '--max-iter'?"),
        (["train", points, "--epochs", "3"], "did you mean '--max-iter'?"),
        (["train", points, "--normalize"], "did you mean '--scale'?"),
        (["train", points, "--random-state=3"], "did you mean '--seed'?"),
        (["tune", points, "--cv", "3"], "did you mean '--folds'?"),
        (["train", points, "--zzz"], "there is no option '--zzz'; 'symsvm train --help' lists them."),
    ):
        failed = run(*words, code=2)
        assert sentence in failed.err, failed.err
        assert "Traceback" not in failed.err
        assert failed.out == ""


def test_every_synonym_is_of_an_option_that_there_is():
    known = {}
    for name in COMMANDS:
        command = program.get_command(click.Context(program), name)
        known |= {each.name: each for each in command.params if isinstance(each, click.Option)}
    assert set(SYNONYMS) <= set(known)


def test_without_a_command_there_is_the_help():
    ended = run(code=2)
    assert ended.err.startswith("Usage: symsvm [OPTIONS] COMMAND")
    assert "error:" not in ended.err
    assert "train " in ended.err


def test_data_that_cannot_be_learned_from(tmp_path):
    write(tmp_path / "one.svm", np.ones((5, 2)), np.ones(5))
    assert "all 5 points are of the class 1" in run("train", tmp_path / "one.svm", code=3).err
    (tmp_path / "huge.svm").write_text("1e300 1:1\n-1 1:2\n")
    assert "labels such as 1e+300, which are not classes" in run("train", tmp_path / "huge.svm", code=2).err
    (tmp_path / "words.csv").write_text("1,a\n2,b\n")
    os.mkfifo(tmp_path / "pipe.csv")
    one_sentence(run("train", tmp_path / "pipe.csv", code=3), tmp_path / "pipe.csv")
    assert "are words such as 'a'" in run("train", tmp_path / "words.csv", "-s", "svr", code=3).err


def test_labels_of_another_kind_than_the_models(good, tmp_path):
    (tmp_path / "words.csv").write_text("1,2,a\n2,1,b\n")
    model, words = good / "m.symsvm", tmp_path / "words.csv"
    for failed in (
        run("evaluate", model, words, code=3),
        run("train", good / "p.svm", "--test", words, code=3),
        run("train", "--model-in", model, "--test-attributes", words, code=3),
    ):
        assert failed.err.startswith("error: words.csv: it has labels such as 'a', and the model has classes such as '")
        assert failed.out == ""
    (tmp_path / "half.csv").write_text("1,2,1\n2,1,0.5\n")
    failed = run("evaluate", model, tmp_path / "half.csv", code=3)
    assert failed.err.startswith("error: half.csv: it has labels such as '0.5', and the model has classes such as '-1'")
    assert "if this is the column of the labels, name it with --labels" in run("predict", model, words, code=3).err
    assert run("predict", model, words, "--labels", 2).out.count("\n") == 2


def test_a_search_reports_why_cells_failed(good):
    found = run("tune", good / "p.svm", "-s", "nu-svc", "-n", "0.5,1.5", "-v", 2)
    assert "note: 1 of 2 cells failed; the first: nu must be above 0 and at most 1" in found.err
    assert re.search(r"1\.5 .* failed *$", found.out, re.MULTILINE)


def test_plots_without_matplotlib_are_refused_before_the_work(good, tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "matplotlib" else found(name))
    calls = (
        ("evaluate", good / "m.symsvm", good / "p.svm", "--plots", tmp_path / "p"),
        ("tune", good / "p.svm", "-c", "1,10", "--plot", tmp_path / "p.png"),
        ("compare", "sine", "--to", tmp_path / "p"),
    )
    for call in calls:
        failed = run(*call, code=2)
        assert failed.err == "error: plots need matplotlib, which is not installed: pip install 'symsvm[plot]'.\n"
        assert not failed.out
        assert not list(tmp_path.iterdir())


def test_psvms_model_in_is_a_classifier(good, tmp_path):
    run("train", good / "p.svm", "-s", "svr", "-o", tmp_path / "r.symsvm", "-q")
    failed = run("train", "--model-in", tmp_path / "r.symsvm", "--test-attributes", good / "p.svm", code=2)
    assert "is not a classifier" in failed.err


def test_an_interrupt_without_a_result_is_a_json_document_too(good, monkeypatch):
    def cut(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("symsvm.cli.data_command.read_table", cut)
    failed = run("data", good / "p.svm", "--json", code=1)
    assert failed.json == {"error": "interrupted; nothing was written.", "exit_code": 1}


def test_a_full_disk_leaves_the_old_model(good, tmp_path):
    path = tmp_path / "m.symsvm"
    path.write_bytes((good / "m.symsvm").read_bytes())
    before, (soft, hard) = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # writing fails as on a full disk
    try:
        failed = run("train", good / "p.svm", "-c", 7, "-o", path, code=3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "could not be written" in failed.err
    assert "the existing file is unchanged" in failed.err
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m.symsvm"]


# Ctrl-C comes in the middle of the second step of a solver: the first problem has taken one.
INTERRUPTED = """
import os, signal, sys
from symsvm.cli import main
from symsvm.solvers.decomposition import algorithm
from symsvm.solvers.decomposition.state import State

algorithm._SMALL = 0  # the loop, not the one call of small problems
solve, steps = State.solve_working_set, []

def interrupted(self, *arguments):
    steps.append(0)
    if len(steps) == 2:
        os.kill(os.getpid(), signal.SIGINT)
    return solve(self, *arguments)

State.solve_working_set = interrupted
main()
"""


def test_ctrl_c_keeps_the_feasible_model(tmp_path):
    rng = np.random.default_rng(0)
    write(tmp_path / "hard.svm", rng.normal(size=(90, 2)), rng.integers(0, 3, size=90))
    flags = [tmp_path / "hard.svm", "-b", "1", "-o", tmp_path / "m.symsvm"]
    command = [sys.executable, "-c", INTERRUPTED, "train", *map(str, flags)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert ended.returncode == 1, ended.stderr
    assert "interrupted: the model, feasible but not optimal, without probabilities, is in" in ended.stderr
    assert "Traceback" not in ended.stderr
    model = symsvm.load(tmp_path / "m.symsvm")
    assert [c.status for c in model.certificate_] == ["optimal", "feasible", "feasible"]
    assert [s.stopped for s in model.solutions_] == ["tol", "interrupt", "interrupt"]
    assert all(c.infeasibility < 1e-6 for c in model.certificate_)
    assert model.calibration is None
    assert len(model.predict(np.zeros((2, 2)))) == 2


def three_classes(path):
    rng = np.random.default_rng(0)
    write(path, rng.normal(size=(60, 2)), np.arange(60) % 3)
    return path


def interrupting(monkeypatch, owner, name):
    """Send SIGINT to the process before the first call of a method."""
    whole, calls = getattr(owner, name), []

    def interrupted(*arguments, **options):
        calls.append(0)
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return whole(*arguments, **options)

    monkeypatch.setattr(owner, name, interrupted)


SEVERAL = {
    "folds": ["train", "-v", 3],
    "bench": ["bench", "--turns", 1],
    "compare": ["compare", "-p", 0.1, "--algorithms", "decomposition"],
}


@pytest.mark.parametrize("name", SEVERAL)
def test_ctrl_c_ends_all_of_several_fits(name, tmp_path, monkeypatch):
    monkeypatch.setattr(algorithm, "_SMALL", 0)  # the loop, not the one call of small problems
    interrupting(monkeypatch, State, "solve_working_set")
    ended = run(*SEVERAL[name], three_classes(tmp_path / "p.svm"), code=1)
    assert ended.err.endswith("interrupted; nothing was written.\n")
    assert ended.out == ""


def test_ctrl_c_in_a_linear_machine(tmp_path, monkeypatch):
    interrupting(monkeypatch, symsvm.LinearSVC, "_options")
    points, path = three_classes(tmp_path / "p.svm"), tmp_path / "m.symsvm"
    ended = run("train", points, "-s", "linear-svc", "--loss", "hinge", "-c", 100, "-e", 1e-14, "-o", path, code=1)
    assert "interrupted: the model, feasible but not optimal, is in" in ended.err
    assert [solution.stopped for solution in symsvm.load(path).solutions_] == ["callback"] * 3


def test_ctrl_c_that_compiled_code_turns_into_another_error(good, monkeypatch):
    def cut(*_, **__):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            signal.pause()
        except BaseException as error:
            raise SystemError("returned a result with an exception set") from error

    monkeypatch.setattr(symsvm.SVC, "predict", cut)
    for words in (["predict", good / "m.symsvm"], ["bench"]):
        assert run(*words, good / "p.svm", code=1).err.strip() == "error: interrupted; nothing was written."


def test_ctrl_c_before_the_first_point(tmp_path, monkeypatch):
    interrupting(monkeypatch, symsvm.SVC, "_program")
    ended = run("train", three_classes(tmp_path / "p.svm"), "-o", tmp_path / "m.symsvm", code=1)
    assert "feasible but not optimal" in ended.err
    model = symsvm.load(tmp_path / "m.symsvm")
    assert [c.infeasibility for c in model.certificate_] == [0.0] * 3
    interrupting(monkeypatch, symsvm.SVC, "_program")
    ended = run("train", tmp_path / "p.svm", "-o", tmp_path / "m.symsvm", "-q", code=1)
    assert "interrupted: the model, feasible but not optimal, is in" in ended.err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_in_the_calibration(tmp_path, monkeypatch):
    interrupting(monkeypatch, Calibration, "fit")
    ended = run("train", three_classes(tmp_path / "p.svm"), "-b", 1, "-o", tmp_path / "m.symsvm", code=1)
    assert "interrupted: the model, optimal, without probabilities, is in" in ended.err
    assert symsvm.load(tmp_path / "m.symsvm").calibration is None


def test_an_interrupted_search_reports_its_progress():
    tuning = Tuning(symsvm.SVC(), None, None, [{"svc__C": 1.0}, {"svc__C": 2.0}, {"svc__C": 3.0}], 3, None)
    assert (
        describe_partial(tuning, "svc__") == "interrupted before any cell was scored in all folds; nothing was written."
    )
    tuning.fold_scores[:] = [[0.5, 0.7, np.nan], [0.6, 0.8, np.nan], [0.9, np.nan, np.nan]]
    assert "; in 2 of 3 folds the best is C = 2 with 0.7000; nothing was written." in describe_partial(tuning, "svc__")


MAIN = "from symsvm.cli import main; main()"


@pytest.mark.parametrize("words", [["completion", "bash"], ["--help"], ["train", "--limit", "0", "--json"]])
def test_a_pipe_that_closes_is_quiet(words):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        command = [sys.executable, "-c", MAIN, *words]
        ended = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, check=False, timeout=100)
    refused = "--json" in words
    assert b"Traceback" not in ended.stderr
    assert bool(ended.stderr) == refused
    assert ended.returncode == 2 * refused


def test_an_output_that_is_full_or_closed(tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    command = [sys.executable, "-c", MAIN, "--help"]
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, timeout=100)
    assert (ended.returncode, ended.stderr) == (3, b"error: standard output: No space left on device.\n")
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    ended = subprocess.run(shell, stderr=subprocess.PIPE, check=False, timeout=100)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_pipe_or_a_device_is_written_to_and_not_replaced(good, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    run("predict", good / "m.symsvm", good / "p.svm", "-o", path, "-q")
    assert os.read(reading, 1 << 16).count(b"\n") == 80
    os.close(reading)
    assert path.is_fifo()


def test_a_model_that_its_format_cannot_hold_is_written_elsewhere(tmp_path):
    (tmp_path / "words.csv").write_text("1,a\n2,b\n3,a\n4,b\n")
    failed = run("train", tmp_path / "words.csv", "-o", tmp_path / "m.libsvm", code=2)
    assert f"The model was written to {tmp_path / 'm.symsvm'} instead." in failed.err
    assert symsvm.load(tmp_path / "m.symsvm").classes_.tolist() == ["a", "b"]


def test_a_bad_test_file_is_reported_before_the_work(good, tmp_path):
    write(tmp_path / "wide.csv", np.ones((2, 3)), np.array([1, -1]))
    failed = run("train", good / "p.svm", "--test", tmp_path / "wide.csv", "-o", tmp_path / "m.symsvm", code=3)
    assert "it has 3 features, and the model was trained on 2" in failed.err
    assert not (tmp_path / "m.symsvm").exists()
