"""The command line: results, reports, JSON and exit codes of each command."""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from cli_runs import run
from sklearn.pipeline import make_pipeline

import symsvm
from symsvm.cli import program
from symsvm.cli.command_group import COMMANDS
from symsvm.data import Scaling, read, write
from symsvm.tuning import GradientSearchCV, tune


def points(m=60, k=2, seed=0):
    """k classes in the plane, slightly overlapping."""
    rng = np.random.default_rng(seed)
    y = np.arange(m) % k
    angle = 2 * np.pi * y / k
    return np.column_stack([np.cos(angle), np.sin(angle)]) * 1.5 + rng.normal(size=(m, 2)), y


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A directory with data files, and models of two of them."""
    home = tmp_path_factory.mktemp("cli")
    X, y = points()
    write(home / "two.svm", X, np.where(y, 1, -1))
    X, y = points(k=3)
    names = np.array(["ant", "bee", "cow"])[y]
    with open(home / "three.csv", "w", encoding="utf-8") as file:
        file.write(
            "a,b,kind\n" + "".join(f"{u!r},{v!r},{name}\n" for (u, v), name in zip(X.tolist(), names, strict=True))
        )
    x = np.linspace(-3, 3, 50)
    write(home / "sine.csv", np.column_stack([x, np.cos(x)]), np.sin(x) + 0.05)
    run("train", home / "two.svm", "-o", home / "two.symsvm", "--scale", "sym", "-b", 1, "-q")
    run("train", home / "three.csv", "-o", home / "three.symsvm", "-q")
    return home


# ---- the program


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples(name):
    text = run(name, "--help").out
    assert text.startswith(f"Usage: symsvm {name}")
    assert "Examples:" in text
    assert f"symsvm {name}" in text.split("Examples:")[1]


def test_help_lists_the_commands_and_the_exit_codes():
    text = run("--help").out
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", text, flags=re.MULTILINE), name
    assert "0 done, 1 not converged or interrupted, 2 usage, 3 bad data" in text
    assert run("--version").out == f"symsvm {symsvm.__version__}\n"


def test_python_m_symsvm_is_the_command(home, tmp_path):
    def module(*words):
        line = [sys.executable, "-m", "symsvm", *map(str, words)]
        return subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert module("--version").stdout == run("--version").out
    for words in (["--help"], ["predict", "--help"]):
        # The usage line has the name that was typed; lines may be folded elsewhere.
        expected = run(*words).out.replace("Usage: symsvm", "Usage: python -m symsvm", 1)
        assert module(*words).stdout.split() == expected.split()
    words = "predict", home / "two.symsvm", home / "two.svm"
    ended = module(*words)
    assert (ended.returncode, ended.stdout) == (0, run(*words).out)
    ended = module("predict")
    assert ended.returncode == 2
    assert "Try 'python -m symsvm predict --help' for help." in ended.stderr


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom symsvm.cli import program\n"
        "for words in ([], *([name] for name in program.list_commands(None))):\n"
        "    try: program.main([*words, '--help'], prog_name='symsvm')\n"
        "    except SystemExit: pass\n"
        "heavy = ('numpy', 'scipy', 'sklearn', 'numba', 'pytensor', 'rich', 'matplotlib', 'fastapi')\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stderr.strip() == "[]"


def test_help_states_the_defaults_of_the_service():
    settings = pytest.importorskip("symsvm.serve.settings").Settings
    text = " ".join(run("serve", "--help").out.split())
    for name in ("max_body", "max_rows", "max_batch", "max_connections", "reload"):
        option = text.split(f"--{name.replace('_', '-')} ")[1].split(" --")[0]
        assert f"Default: {int(getattr(settings, name))}." in option


def test_completion_scripts_and_what_they_complete():
    for shell in ("bash", "zsh", "fish"):
        assert "_SYMSVM_COMPLETE" in run("completion", shell).out
    words = {"COMP_WORDS": "symsvm tr", "COMP_CWORD": "1", "_SYMSVM_COMPLETE": "bash_complete"}
    assert run(env=words).out == "plain,train\n"
    words |= {"COMP_WORDS": "symsvm train --kernel p", "COMP_CWORD": "3"}
    assert run(env=words).out == "plain,poly\nplain,precomputed\n"


# ---- train


def test_train_equals_the_fit_of_the_library(home, tmp_path):
    out = run("train", home / "three.csv", "--labels", "kind", "-c", 2, "-g", 0.5, "-o", tmp_path / "m.symsvm").out
    X, y = read(home / "three.csv", "kind")
    machine = symsvm.SVC(C=2.0, gamma=0.5).fit(X, y)
    again = symsvm.load(tmp_path / "m.symsvm")
    assert np.array_equal(again.decision_function(X), machine.decision_function(X))
    assert "three.csv: 60 points, 2 features; 3 labels: ant (20), bee (20), cow (20)" in out
    assert "SVC(C=2, multi_class=ovo, kernel=RBF(sigma=1.0), gamma=0.5)" in out
    assert re.search(r"status +optimal, all 3 problems", out)
    correct = int(np.sum(machine.predict(X) == y))
    assert re.search(rf"training accuracy +{correct}/60 = 0\.\d+", out)
    assert "m.symsvm, " in out


def test_train_reports_as_json(home):
    found = run("train", home / "two.svm", "--limit", 40, "--test", home / "two.svm", "--json").json
    assert found["data"]["rows"] == 40
    assert found["data"]["classes"] == {"-1": 20, "1": 20}
    assert found["model"]["class"] == "SVC"
    assert found["certificate"]["status"] == "optimal"
    assert found["converged"]
    assert not found["interrupted"]
    assert found["training"]["points"] == 40
    assert found["test"]["points"] == 60
    assert np.sum(found["test"]["confusion"]) == 60
    assert found["output"] is None


@pytest.mark.parametrize(
    ("flags", "machine"),
    [
        (["--type", "linear-svc", "--loss", "hinge"], "LinearSVC"),
        (["--type", "nu-svc", "--nu", 0.3], "NuSVC"),
        (["--type", "one-class", "--nu", 0.2], "OneClassSVM"),
    ],
)
def test_types(flags, machine, home):
    found = run("train", home / "two.svm", *flags, "--json").json
    assert found["model"]["class"] == machine
    assert found["converged"]


def test_a_regression(home, tmp_path):
    model = tmp_path / "s.symsvm"
    found = run("train", home / "sine.csv", "-s", 3, "-c", 10, "--epsilon", 0.01, "-o", model, "--json").json
    assert found["model"]["class"] == "SVR"
    assert found["training"]["r2"] > 0.9
    text = run("evaluate", model, home / "sine.csv").out
    assert re.search(r"R2 +0\.9", text)
    assert run("predict", model, home / "sine.csv", "--labels", -1).out.count("\n") == 50
    assert "has labels such as" in run("train", home / "sine.csv", code=2).err
    assert "no decision values" in run("predict", model, home / "sine.csv", "--decision", code=2).err


def test_a_fit_that_does_not_converge_ends_with_1(home, tmp_path):
    out = run("train", home / "two.svm", "-c", 1e4, "--max-iter", 0, "-o", tmp_path / "m.symsvm", code=1)
    assert re.search(r"status +feasible", out.out)
    assert "max_iter" in out.err
    assert symsvm.load(tmp_path / "m.symsvm").certificate_.status == "feasible"


# ---- predict and evaluate


def test_predict_gives_a_line_for_each_point(home, tmp_path):
    model, (X, y) = symsvm.load(home / "two.symsvm"), read(home / "two.svm")
    X = X.toarray()
    own = make_pipeline(Scaling((-1, 1)), symsvm.SVC(calibration="sigmoid", random_state=0)).fit(X, y)
    assert np.array_equal(model.predict_proba(X), own.predict_proba(X))
    done = run("predict", home / "two.symsvm", home / "two.svm")
    assert done.out.split() == [str(label) for label in model.predict(X)]
    assert re.fullmatch(r"Accuracy = [\d.]+% \(\d+/60\) \(classification\)\n", done.err)
    run("predict", home / "two.symsvm", home / "two.svm", "--proba", "-o", tmp_path / "out.csv", "-q")
    head, *lines = (tmp_path / "out.csv").read_text().splitlines()
    assert head == "label,p(-1),p(1)"
    assert np.array_equal([[float(v) for v in line.split(",")[1:]] for line in lines], model.predict_proba(X))
    found = run("predict", home / "two.symsvm", home / "two.svm", "--decision", "--json").json
    assert np.array_equal(np.ravel(found["decision"]), model.decision_function(X))
    assert "train it with -b 1" in run("predict", home / "three.symsvm", home / "three.csv", "--proba", code=2).err


@pytest.mark.parametrize(("name", "flags"), [("two.svm", ()), ("three.csv", ("--labels", "kind"))])
def test_standard_input_is_read_as_a_file(name, flags, home, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    content, words = (home / name).read_bytes(), ("-g", 1, *flags, "-o", tmp_path / "m.symsvm")
    assert run("train", "-", *words, stdin=content).out.startswith("standard input: 60 points, 2 features")
    found = run("predict", tmp_path / "m.symsvm", "-", "--decision", *flags, stdin=content).out
    assert os.listdir(tmp_path) == ["m.symsvm"]
    run("train", home / name, *words, "-q")
    assert found == run("predict", tmp_path / "m.symsvm", home / name, "--decision", *flags).out


def test_malformed_standard_input(home):
    bad = run("predict", home / "three.symsvm", "-", stdin="1,2\n3,x\n", code=3).err
    assert bad.startswith("error: standard input, line 2: column 2 holds 'x', which is not a number;")
    assert "standard input: its gzip stream is damaged" in run("train", "-", stdin=b"\x1f\x8b00", code=3).err
    assert "standard input: the file has no points" in run("train", "-", stdin="", code=3).err
    assert "only one of the files can be '-'" in run("train", "-", "--test", "-", stdin="", code=2).err


def test_predict_names_the_column_in_excess(home):
    assert "column 3 holds 'ant'" in run("predict", home / "three.symsvm", home / "three.csv", code=3).err
    assert run("predict", home / "three.symsvm", home / "three.csv", "--labels", "kind").out.startswith(
        "ant\nbee\ncow\n"
    )
    wide = run("predict", home / "two.symsvm", home / "sine.csv", code=3).err
    assert "sine.csv: it has 3 features, and the model was trained on 2; name the column of the labels" in wide


def test_evaluate_reports_and_draws(home, tmp_path):
    found = run("evaluate", home / "three.symsvm", home / "three.csv", "--plots", tmp_path / "p", "--json").json
    model, (X, y) = symsvm.load(home / "three.symsvm"), read(home / "three.csv", -1)
    assert found["accuracy"] == np.mean(model.predict(X) == y)
    assert set(found["areas"]) == {"ant", "bee", "cow"}
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == [
        "confusion.png",
        "precision_recall.png",
        "roc.png",
    ]
    text = run("evaluate", home / "three.symsvm", home / "three.csv").out
    assert re.search(r"class +precision +recall +f1 +points +ROC AUC +avg precision", text)
    assert "a row for each true class" in text
    narrow = run("evaluate", home / "three.symsvm", home / "three.csv", env={"COLUMNS": "40"}).out
    assert re.search(r"class +precision +recall +f1 *\n", narrow)


def test_plots_of_labels_that_look_like_mathematics(tmp_path):
    X, y = points(40)
    rows = zip(X.tolist(), np.array(["$5-$10", "$a_{b$"])[y], strict=True)
    (tmp_path / "p.csv").write_text("".join(f"{u!r},{v!r},{name}\n" for (u, v), name in rows))
    run("train", tmp_path / "p.csv", "-o", tmp_path / "m.symsvm", "-q")
    found = run("evaluate", tmp_path / "m.symsvm", tmp_path / "p.csv", "--plots", tmp_path / "pictures", "--json").json
    assert len(found["plots"]) == 3


def test_a_one_class_machine_needs_no_labels(home, tmp_path):
    X, _ = points()
    write(tmp_path / "p.csv", X)
    flags = ["-s", "one-class", "--test", tmp_path / "p.csv", "-o", tmp_path / "m.symsvm", "--json"]
    found = run("train", tmp_path / "p.csv", *flags).json
    scores = run("evaluate", tmp_path / "m.symsvm", tmp_path / "p.csv", "--json").json
    assert found["test"]["outliers"] == scores["outliers"] == found["training"]["outliers"]
    assert "accuracy" not in scores


def test_evaluate_a_one_class_machine(home, tmp_path):
    run("train", home / "two.svm", "-s", 2, "-n", 0.2, "-o", tmp_path / "m.symsvm", "-q")
    found = run("evaluate", tmp_path / "m.symsvm", home / "two.svm", "--json").json
    assert found["kind"] == "outlier"
    assert 0 < found["outlier_share"] <= 0.25
    assert 0 <= found["roc_auc"] <= 1


# ---- the other commands


def test_convert_by_the_ending(home, tmp_path):
    pytest.importorskip("onnxruntime")
    run("train", home / "two.svm", "-o", tmp_path / "m.symsvm", "-q")
    run("convert", tmp_path / "m.symsvm", tmp_path / "m.libsvm")
    run("convert", tmp_path / "m.libsvm", tmp_path / "again.symsvm", "--n-features", 2)
    run("convert", tmp_path / "m.symsvm", tmp_path / "m.onnx", "--precision", "float32")
    X = read(home / "two.svm").X
    one, other = (symsvm.load(tmp_path / name).decision_function(X) for name in ("m.symsvm", "again.symsvm"))
    assert np.allclose(one, other)
    assert "holds no scaling" in run("convert", home / "two.symsvm", tmp_path / "x.libsvm", code=2).err
    assert "the ending must be" in run("convert", home / "two.symsvm", tmp_path / "x.pkl", code=2).err


def test_explain_shows_the_formula_and_the_certificate(home, tmp_path):
    text = run("explain", home / "three.symsvm").out
    assert "As written" in text
    assert "exp(-sum((x_i - x_j)**2)" in text
    assert re.search(r"status +problem +relative gap", text)
    run("train", home / "two.svm", "-s", "linear-svc", "-o", tmp_path / "m.symsvm", "-q")
    found = run("explain", tmp_path / "m.symsvm", "-o", tmp_path / "m.txt", "--json").json
    assert found["explanation"] == (tmp_path / "m.txt").read_text()
    assert "x.w + b" in found["explanation"]
    assert "--as svg is written to a file" in run("explain", home / "three.symsvm", "--as", "svg", code=2).err


def test_explain_adds_up_a_decision(home):
    found = run(
        "explain", home / "three.symsvm", home / "three.csv", "--labels", "kind", "--row", 2, "--top", 3, "--json"
    ).json
    model, X = symsvm.load(home / "three.symsvm"), read(home / "three.csv", "kind").X
    assert found["prediction"] == model.predict(X[1:2])[0]
    assert len(found["decisions"]) == 2  # the pairs with that class
    for decision in found["decisions"]:
        terms = sum(term["contribution"] for term in decision["terms"])
        assert terms + decision["remainder"] + decision["intercept"] == pytest.approx(decision["decision"])
        for term in decision["terms"]:  # which are rows of the file, from 1 as --row is
            distance = np.sum((X[term["name"] - 1] - X[1]) ** 2)
            assert term["value"] == pytest.approx(np.exp(-distance / (2 * model.kernel_.sigma**2)))
    text = run("explain", home / "three.symsvm", home / "three.csv", "--labels", "kind", "--top", 2).out
    assert re.search(r"support vector +contribution +weight +value *\n.*\n +row \d+ ", text)
    assert "there is no row 99" in run("explain", home / "two.symsvm", home / "two.svm", "--row", 99, code=2).err


def test_tune_equals_the_search_of_the_library(home, tmp_path):
    grid = ["-c", "0.1,1,10", "-g", "0.1:1:2", "--folds", 3]
    out = ["-o", tmp_path / "m.symsvm", "--plot", tmp_path / "s.png", "--json"]
    found = run("tune", home / "two.svm", *grid, *out).json
    X, y = read(home / "two.svm")
    own = tune(symsvm.SVC(), X.toarray(), y, {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}, folds=3, random_state=0)
    assert found["best_params"] == own.best_params
    assert found["best_score"] == own.best_score
    assert np.allclose([cell["fold_scores"] for cell in found["cells"]], own.fold_scores)
    assert symsvm.load(tmp_path / "m.symsvm").C == own.best_params["C"]
    assert (tmp_path / "s.png").stat().st_size > 1000
    text = run("tune", home / "two.svm", "--log2c", "-1,3,2", "-g", 0.5, "--folds", 2, "--scale", "zscore").out
    assert "3 cells in 2 folds" in text
    assert re.search(r"best: C = \d", text)
    assert "nothing to search" in run("tune", home / "two.svm", "-c", 1, code=2).err
    assert "is not a range" in run("tune", home / "two.svm", "-c", "1:2", code=2).err


def test_tune_by_gradient_equals_the_search_of_the_library(home, tmp_path):
    grid = ["--by-gradient", "-c", "1,10", "-g", "0.3,3", "--folds", 3, "--starts", 1]
    out = ["-o", tmp_path / "m.symsvm", "--plot", tmp_path / "s.png", "--json"]
    found = run("tune", home / "two.svm", *grid, *out).json
    X, y = read(home / "two.svm")
    own = GradientSearchCV(
        symsvm.SVC(), ["C", "gamma"], cv=3, grid={"C": [1, 10], "gamma": [0.3, 3]}, starts=1, random_state=0
    ).fit(X.toarray(), y)
    assert found["best_params"] == own.best_params_
    assert found["best_loss"] == own.best_loss_
    assert (found["complete"], found["scoring"], found["folds"]) == (True, "log_loss", 3)
    assert len(found["evaluations"]) == own.n_evaluations_
    assert symsvm.load(tmp_path / "m.symsvm").C == own.best_params_["C"]
    assert (tmp_path / "s.png").stat().st_size > 1000
    text = run(
        "tune", home / "two.svm", *grid[:3], "-g", 0.5, "--folds", 2, "--scale", "zscore", "--scoring", "smooth_hinge"
    )
    assert re.search(r"best: C = \d.*, smooth_hinge 0\.", text.out)


def test_tune_finds_a_width_for_each_feature(home, tmp_path):
    words = ["--by-gradient", "--widths", "--scale", "zscore", "--folds", 2, "--starts", 1]
    text = run("tune", home / "two.svm", *words, "-o", tmp_path / "m.symsvm", "--plot", tmp_path / "w.png").out
    assert "widths, the narrowest first" in text
    model = symsvm.load(tmp_path / "m.symsvm")
    assert np.shape(model[-1].kernel.sigma) == (read(home / "two.svm")[0].shape[1],)
    assert (tmp_path / "w.png").stat().st_size > 1000


def test_bench_times_both_in_one_run(home):
    found = run("bench", home / "two.svm", "--turns", 1, "--json").json
    assert set(found["rows"]) == {"symsvm", "scikit-learn"}
    assert found["same_predictions"] == 1.0
    ratio = found["rows"]["scikit-learn"]["fit_seconds"] / found["rows"]["symsvm"]["fit_seconds"]
    assert found["times_faster"] == pytest.approx(ratio)
    assert "times" in run("bench", home / "two.svm", "--turns", 1).out


def test_a_pipe_gets_all_columns(home):
    words = ["compare", home / "two.svm", "--algorithms", "decomposition"]
    assert re.search(r"algorithm .* stopped +P *\n", run(*words, env={"COLUMNS": None}).out)  # xdist sets it
    assert re.search(r"algorithm .* score *\n", run(*words, env={"COLUMNS": "48"}).out)


def test_compare_on_a_file(home):
    arguments = ["compare", home / "two.svm", "-g", 0.5, "--algorithms", "decomposition,libsvm"]
    found = run(*arguments, "--json").json
    assert [entry["algorithm"] for entry in found["entries"]] == ["decomposition", "libsvm"]
    assert all(abs(entry["excess"]) < 1e-2 for entry in found["entries"])
    assert re.search(r"algorithm +model +above P\*", run(*arguments).out)
    assert "not one of the problems" in run("compare", "nowhere", code=2).err


def test_data_lists_describes_converts_and_scales(home, tmp_path):
    assert "astroparticle" in run("data").out
    assert run("data", "--json").json["sets"]["mnist"]["features"] == 784
    write(tmp_path / "wide.csv", np.array([[0.0, 5000.0], [1.0, 3.0], [0.5, 2.0]]), np.array([0, 1, 1]))
    described = run("data", tmp_path / "wide.csv")
    assert "3 points, 2 features" in described.out
    assert "--scale" in described.err
    run("data", home / "two.svm", "-o", tmp_path / "two.csv", "--scale", "unit")
    X, y = read(tmp_path / "two.csv", -1)
    own = read(home / "two.svm")
    assert np.array_equal(X, Scaling((0, 1)).fit_transform(own.X.toarray()))
    assert np.array_equal(y, own.y)
    run("data", home / "two.svm", "-o", tmp_path / "X.npy", "--labels-output", tmp_path / "y.npy")
    assert np.array_equal(read(tmp_path / "X.npy").X, own.X.toarray())
    like = ["--scale", "sym", "--like", home / "two.svm"]
    run("data", home / "two.svm", "--limit", 3, "-o", tmp_path / "part.csv", *like)
    assert np.array_equal(
        read(tmp_path / "part.csv", -1).X, Scaling((-1, 1)).fit(own.X.toarray()).transform(own.X.toarray()[:3])
    )


def test_texts(tmp_path):
    for label, texts in {
        "space": ["the orbit of the moon", "a rocket in orbit"],
        "sport": ["a goal", "the match"],
    }.items():
        for i, text in enumerate(texts * 3):
            (tmp_path / "corpus" / label).mkdir(parents=True, exist_ok=True)
            (tmp_path / "corpus" / label / f"{i}.txt").write_text(text)
    found = run("train", "--text", tmp_path / "corpus", "-o", tmp_path / "t.symsvm", "--json").json
    assert found["data"]["storage"] == "texts"
    assert found["model"]["before"] == ["over TF-IDF of 8 words"]
    (tmp_path / "new.txt").write_text("a rocket\nthe goal\n")
    lines = run("predict", tmp_path / "t.symsvm", tmp_path / "new.txt", "--proba").out.splitlines()
    assert run("predict", tmp_path / "t.symsvm", "-", "--proba", stdin="a rocket\nthe goal\n").out.splitlines() == lines
    assert [line.split(",")[0] for line in lines] == ["label", "space", "sport"]
    assert run("evaluate", tmp_path / "t.symsvm", tmp_path / "corpus", "--json").json["accuracy"] == 1.0
    assert "add --text" in run("train", tmp_path / "corpus", code=2).err


def test_serve_passes_its_options_to_the_service(home, monkeypatch):
    serve = pytest.importorskip("symsvm.serve")
    seen = []
    monkeypatch.setattr(serve, "run", lambda path, **options: seen.append((path, options)))
    run("serve", home / "two.symsvm", "--port", 0, "--max-rows", 5, env={"SYMSVM_TOKEN": "secret"})
    ((path, options),) = seen
    assert path == str(home / "two.symsvm")
    assert options == {"host": "127.0.0.1", "port": 0, "token": "secret", "trusted": (), "hosts": (), "max_rows": 5}


def test_stdout_is_json_only(home):
    model, file = home / "two.symsvm", home / "two.svm"
    for words in (["evaluate", model, file], ["predict", model, file], ["data", file]):
        assert run(*words, "--json").json["command"] == words[0]
    failed = run("data", home / "two.symsvm", "--json", code=3)
    assert json.loads(failed.out)["exit_code"] == 3
    usage = run("train", home / "nowhere.csv", "--json", code=2)
    assert "there is no file" in json.loads(usage.out)["error"]


def test_labels_and_names_cannot_control_the_terminal(home, tmp_path):
    path = tmp_path / "p\x1b]0;x\x07.csv"
    path.write_text("1,2,\x1b[31ma\n3,4,b\n" * 4)
    for text in (run("data", path).out, run("data", path, "--labels", 9, code=3).err):
        assert "\x1b" not in text
        assert "p?]0;x" in text
    assert "?[31ma (4)" in run("data", path).out
    assert run("data", path, "--json").json["classes"] == {"\x1b[31ma": 4, "b": 4}


def test_colours_follow_the_environment(home):
    plain = run("evaluate", home / "two.symsvm", home / "two.svm").out
    assert "\x1b" not in plain
    assert "\x1b" in run("evaluate", home / "two.symsvm", home / "two.svm", env={"FORCE_COLOR": "1"}).out
    forced = {"FORCE_COLOR": "1", "NO_COLOR": "1"}
    assert not re.search(r"\x1b\[[\d;]*3\d", run("evaluate", home / "two.symsvm", home / "two.svm", env=forced).out)


def documented():
    """The command lines of the documentation."""
    page = Path(__file__).parent.parent / "docs" / "cli.md"
    return re.findall(r"^\$ symsvm (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_the_documented_commands_parse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = documented()
    assert {line.split()[0] for line in lines} == set(COMMANDS)
    for line in lines:
        name, *words = shlex.split(line)
        for word in words:
            if not word.startswith("-") and ("." in word or word == "heart_scale"):
                (tmp_path / word).parent.mkdir(exist_ok=True)
                (tmp_path / word).touch()
        program.get_command(None, name).make_context(name, words)
