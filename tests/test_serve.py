"""The service: predictions over HTTP equal those of the model, singly, in batches, and while its file changes."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pandas
import pytest
from serving import GROUPS, MODELS, TEXTS, X, raw, serving, wait_for
from sklearn.pipeline import make_pipeline

import symsvm
from symsvm.data import Scaling
from symsvm.serve import Settings, create_app, run
from symsvm.serve.model_slot import describe
from symsvm.serve.served_model import NonFiniteDecision, ServedModel
from symsvm.serve.server import allowed_hosts


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name, make in MODELS.items():
        symsvm.save(make(), folder / f"{name}.symsvm")
    return folder


@pytest.fixture(scope="module")
def text(files):
    with serving(files / "text.symsvm") as client:
        yield client


@pytest.fixture(scope="module")
def numbers(files):
    with serving(files / "numbers.symsvm") as client:
        yield client


def model_of(files, name):
    return symsvm.load(files / f"{name}.symsvm")


# ---- predictions


@pytest.mark.parametrize("name", MODELS)
def test_a_served_model_predicts_as_the_model(files, name):
    model, served = model_of(files, name), ServedModel(model_of(files, name))
    inputs = TEXTS if served.kind == "text" else X[:, : served.n_features].tolist()
    answers = served.predict(inputs)
    result = [answers.to_dict(i) for i in range(len(answers))]
    if served.answer == "value":
        np.testing.assert_allclose([t["value"] for t in result], model.predict(inputs), rtol=1e-12)
        return
    assert [t["label"] for t in result] == model.predict(inputs).tolist()
    if served.answer == "side":
        np.testing.assert_allclose([t["decision"] for t in result], model.decision_function(inputs), atol=1e-12)
        return
    assert all(sorted(c["name"] for c in t["classes"]) == sorted(served.classes) for t in result)
    if served.calibrated:
        shares = [[{c["name"]: c["proba"] for c in t["classes"]}[k] for k in served.classes] for t in result]
        np.testing.assert_allclose(shares, model.predict_proba(inputs), atol=1e-12)
        assert all(t["proba"] == max(s) for t, s in zip(result, shares, strict=True))


@pytest.mark.parametrize("name", ["numbers", "rest", "linear", "value", "side", "text"])
def test_a_row_does_not_depend_on_its_neighbours(files, name):
    served, rng = ServedModel(model_of(files, name)), np.random.default_rng(0)
    inputs = TEXTS if served.kind == "text" else X[::7, : served.n_features].tolist()
    single = [served.predict([row]).to_dict(0) for row in inputs]
    for _ in range(5):
        order = rng.permutation(len(inputs)).tolist()
        together = served.predict([inputs[i] for i in order])
        assert [together.to_dict(i) for i in range(len(inputs))] == [single[i] for i in order]  # every bit


@pytest.mark.parametrize("name", MODELS)
def test_explanations_add_up_and_support_the_prediction(files, name):
    served = ServedModel(model_of(files, name))
    entry = TEXTS[1] if served.kind == "text" else X[60, : served.n_features].tolist()
    result, decisions = served.explain(entry, 3)
    assert decisions
    for decision in decisions:
        terms = sum(term["contribution"] for term in decision["terms"])
        assert decision["intercept"] + terms + decision["rest"] == pytest.approx(decision["decision"], abs=1e-10)
        assert len(decision["terms"]) == min(3, decision["count"])
        if served.answer == "class":
            assert decision["label"] == result["label"]
            assert decision["decision"] > 0 or served.calibrated or name == "pairs"


def test_support_vectors_are_listed_with_their_class(files):
    served = ServedModel(model_of(files, "numbers"))
    _, decisions = served.explain(X[60].tolist(), 100)
    names = np.repeat(["setosa", "versicolor", "virginica"], 50)
    for term in (term for decision in decisions for term in decision["terms"]):
        assert term["label"] == names[term["name"]]


def test_features_have_their_names(tmp_path):
    table = pandas.DataFrame(X[:, :2], columns=["length", "width"])
    model = make_pipeline(Scaling((-1, 1)), symsvm.LinearSVC()).fit(table, X[:, 2] > 3)
    symsvm.save(model, tmp_path / "model.symsvm")
    loaded = symsvm.load(tmp_path / "model.symsvm")
    served = ServedModel(loaded)
    assert loaded[0].feature_names_in_.tolist() == ["length", "width"]  # serving does not change the model
    assert describe(served)["feature_names"] == ["length", "width"]
    result, (decision,) = served.explain(X[0, :2].tolist(), 5)  # a warning would be an error here
    assert result["label"] == model.predict(table[:1])[0]
    assert {term["name"] for term in decision["terms"]} == {"length", "width"}


def test_no_finite_decision_value(files):
    served = ServedModel(model_of(files, "linear value"))
    served.estimator.coef_ = np.array([1e200, 1.0, 1.0])
    with pytest.raises(NonFiniteDecision) as caught:
        served.predict([[0.0, 0.0, 0.0], [1e200, 0.0, 0.0]])
    assert caught.value.index == 1
    scaled = ServedModel(model_of(files, "numbers"))
    scaled.model[0].scale_ = np.full(4, 1e10)
    with pytest.raises(NonFiniteDecision) as caught:
        scaled.predict([[0.0] * 4] * 200 + [[1.7e308] * 4])
    assert caught.value.index == 200


def test_a_row_where_the_kernel_is_0_has_the_intercepts_as_decision_values(files):
    model = model_of(files, "pairs")
    far = np.full((1, 4), 1e308)
    assert np.array_equal(model.decision_function(far)[0], model.intercept_)
    result = ServedModel(model).predict(far.tolist()).to_dict(0)
    assert result["label"] == model.predict(far)[0]


# ---- over HTTP


def test_post_has_the_format_of_the_earlier_services(files, text):
    model = model_of(files, "text")
    for post in [*TEXTS, "", "nothing known", "\u00fcber die Ma\u00dfen \U0001f680"]:
        result = text.post("/", json={"post_text": post}).json()
        shares = {share["name"]: share["proba"] for share in result["labels_with_probas"]}
        probabilities = model.predict_proba([post])[0]
        np.testing.assert_allclose([shares[c] for c in model.classes_.tolist()], probabilities, atol=1e-12)
        assert result["predicted_newsgroup"] == result["labels_with_probas"][0]
        assert result["predicted_newsgroup"]["name"] == model.predict([post])[0]
        assert sorted(shares.values(), reverse=True) == list(shares.values())


def test_probabilities_are_null_where_the_model_has_none(files):
    with serving(files / "plain text.symsvm") as client:
        result = client.post("/", json={"post_text": TEXTS[0]}).json()
    assert result["predicted_newsgroup"] == {"name": "sci.space", "proba": None}


def test_batches_as_json_and_as_lines(files, numbers):
    model = model_of(files, "numbers")
    result = numbers.post("/v1/predict", json={"rows": X.tolist(), "top": 2}).json()
    assert [t["label"] for t in result["predictions"]] == model.predict(X).tolist()
    assert {len(t["classes"]) for t in result["predictions"]} == {2}
    lines = "\n".join(json.dumps({"row": row, "top": 2}) for row in X.tolist())
    answer = numbers.post("/v1/predict", content=lines, headers={"content-type": "application/x-ndjson"})
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in answer.text.splitlines()] == result["predictions"]


def test_batched_requests_are_answered_like_single_ones(numbers):
    rows = X[::3].tolist()
    single = [numbers.post("/v1/predict", json={"rows": [row]}).json()["predictions"][0] for row in rows]
    before = numbers.app.state.metrics.registry.get_sample_value("symsvm_batch_rows_count")
    gate = threading.Event()
    numbers.app.state.batcher.executor.submit(gate.wait)  # the model is busy: requests are queued
    with ThreadPoolExecutor(len(rows)) as pool:
        found = [pool.submit(numbers.post, "/v1/predict", json={"rows": [row]}) for row in rows]
        waiting = numbers.app.state.metrics.registry.get_sample_value
        wait_for(lambda: waiting("symsvm_rows_waiting") == len(rows))
        gate.set()
        assert [answer.result().json()["predictions"][0] for answer in found] == single
    assert waiting("symsvm_batch_rows_count") - before <= 2  # the first request, and all others together


def test_the_model_is_described(files, numbers):
    result = numbers.get("/v1/model").json()
    model = model_of(files, "numbers")
    assert result["kernel"] == repr(model[-1].kernel_)
    assert result["labels"] == model.classes_.tolist()
    assert result["version"] == symsvm.__version__
    assert result["estimator"] == "SVC"
    assert result["parameters"]["calibration"] == "sigmoid"
    assert [step["name"] for step in result["steps"]] == ["Scaling"]  # before the estimator
    assert result["certificate"]["status"] == "optimal"
    assert len(result["certificate"]["each"]) == 3
    assert result["certificate"]["violation"] == max(c.violation for c in model[-1].certificate_)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_described_as_json(files, name):
    app, model = create_app(files / f"{name}.symsvm"), model_of(files, name)
    result = json.loads(json.dumps(app.state.slot.current.description, allow_nan=False))
    machine = model[-1] if hasattr(model, "steps") else model
    assert result["estimator"] == type(machine).__name__
    assert result["parameters"] == machine.get_params(deep=False)
    if "text" in name:
        assert result["steps"][0]["parameters"]["dtype"] == "float64"


def test_explanations_over_http(text):
    result = text.post("/v1/explain", json={"text": TEXTS[1], "terms": 1}).json()
    (decision,) = result["decisions"]
    assert decision["label"] == result["prediction"]["label"] == "sci.space"
    assert [term["name"] for term in decision["terms"]] == ["orbit"]


def test_probes_and_metrics(text):
    assert text.get("/healthz").json() == {"status": "ok"}
    assert text.get("/readyz").json()["ready"]
    text.post("/", json={"post_text": "orbit"})
    result = text.get("/metrics").text
    assert re.search(r'symsvm_requests_total\{method="POST",route="/",status="200"\} [1-9]', result)
    assert re.search(r'symsvm_model_info\{digest="[0-9a-f]{64}",estimator="LinearSVC",kind="text"\} 1.0', result)
    text.get("/an/unknown/path")
    assert "/an/unknown/path" not in text.get("/metrics").text


def test_headers(text):
    for answer in (text.get("/"), text.get("/healthz"), text.get("/none"), text.get("/assets/page.js")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers
    assert text.head("/healthz").status_code == 200
    tag = text.get("/assets/page.js").headers["etag"]
    assert text.get("/assets/page.js", headers={"if-none-match": tag}).status_code == 304


def test_pages_load_nothing_from_other_hosts(text):
    for path in ("/", "/docs", "/assets/page.js", "/assets/docs.js", "/assets/page.css"):
        answer = text.get(path)
        assert answer.status_code == 200
        assert not re.search(r"""https?://(?!www\.w3\.org)|[( "']//\w""", answer.text), path
        assert not re.search(r"<script(?![^>]*src=)|\son\w+=|style=", answer.text), path


def test_token(files):
    with serving(files / "text.symsvm", token="sesame") as client:
        for method, path in [("POST", "/"), ("POST", "/v1/predict"), ("GET", "/v1/model"), ("GET", "/metrics")]:
            for given in (None, "Bearer wrong", "Basic sesame", "sesame", ""):
                headers = {} if given is None else {"authorization": given}
                answer = client.request(method, path, headers=headers)
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"] == "Bearer"
                assert answer.json()["error"]["field"] == "authorization"
        headers = {"authorization": "Bearer sesame"}
        assert client.post("/", json={"post_text": "orbit"}, headers=headers).status_code == 200
        for path in ("/", "/docs", "/healthz", "/readyz", "/openapi.json"):
            assert client.get(path).status_code == 200
        paths = client.get("/openapi.json").json()["paths"]
        assert paths["/v1/model"]["get"]["security"]
        assert "security" not in paths["/healthz"]["get"]
        result = [set(operation["responses"]) for methods in paths.values() for operation in methods.values()]
        assert all("431" in statuses and "421" not in statuses for statuses in result)  # any host is accepted


def test_hosts(files):
    """A page whose name points to the address of the service (DNS rebinding) gets nothing from it."""
    with serving(files / "text.symsvm", hosts=allowed_hosts("127.0.0.1", None, ["news.example"])) as client:
        for host in ("127.0.0.1", "localhost:8000", "LOCALHOST", "[::1]:8000", "News.Example"):
            assert client.post("/", json={"post_text": "orbit"}, headers={"host": host}).status_code == 200, host
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8000", "", "\u00ff"):
            for path in ("/", "/v1/model", "/healthz"):
                answer = client.get(path, headers={"host": host.encode("latin-1")})
                assert answer.status_code == 421, host
                assert answer.json()["error"]["field"] == "host"
        two = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
        assert raw(client, two).startswith(b"HTTP/1.1 421 ")
        assert raw(client, b"GET /healthz HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")
        paths = client.get("/openapi.json").json()["paths"]
        assert all("421" in operation["responses"] for methods in paths.values() for operation in methods.values())


# ---- reload


def test_reload_loses_no_request(files, tmp_path):
    path = tmp_path / "model.symsvm"
    path.write_bytes((files / "text.symsvm").read_bytes())
    other = MODELS["text"]().fit(TEXTS * 3, [group.upper() for group in GROUPS] * 3)
    with serving(path, reload=0.02) as client:
        seen, stop = [], threading.Event()

        def ask():
            while not stop.is_set():
                seen.append(client.post("/v1/predict", json={"texts": [TEXTS[0]]}))

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            for model in (other, model_of(files, "text"), other):
                before = client.get("/readyz").json()["model"]
                symsvm.save(model, path)
                wait_for(lambda before=before: client.get("/readyz").json()["model"] != before)
        finally:
            stop.set()
            thread.join()
        digests = {answer.json()["model"]: answer.json()["predictions"][0]["label"] for answer in seen}
        assert {answer.status_code for answer in seen} == {200}
        assert set(digests.values()) == {"sci.space", "SCI.SPACE"}
        assert client.get("/v1/model").json()["labels"] == sorted({group.upper() for group in GROUPS})


@pytest.mark.parametrize("damage", ["cut", "other kind", "gone"])
def test_a_bad_file_leaves_the_model_as_it_is(files, tmp_path, damage, caplog):
    path, good = tmp_path / "model.symsvm", (files / "text.symsvm").read_bytes()
    path.write_bytes(good)
    with serving(path, reload=0.02) as client:
        before = client.get("/readyz").json()
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(good[: len(good) // 2] if damage == "cut" else (files / "numbers.symsvm").read_bytes())
        wait_for(lambda: client.get("/readyz").json()["stale"])
        after = client.get("/readyz").json()
        assert after["ready"]
        assert after["model"] == before["model"]
        assert str(tmp_path) not in after["message"]
        assert "is refused" in caplog.text
        result = client.get("/metrics").text
        assert 'symsvm_model_reloads_total{result="refused"} 1.0' in result
        assert "symsvm_model_stale 1.0" in result
        assert client.post("/", json={"post_text": "orbit"}).status_code == 200
        path.write_bytes(good)
        wait_for(lambda: not client.get("/readyz").json()["stale"])


# ---- start and stop


def test_a_file_that_cannot_be_served_is_refused_at_once(tmp_path):
    (tmp_path / "bad.symsvm").write_bytes(b"no model")
    with pytest.raises(symsvm.files.ModelFileError):
        create_app(tmp_path / "bad.symsvm")
    with pytest.raises(FileNotFoundError):
        create_app(tmp_path / "none.symsvm")
    os.mkfifo(tmp_path / "pipe.symsvm")
    with pytest.raises(OSError, match="not a regular file"):
        create_app(tmp_path / "pipe.symsvm")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_body", 0),
        ("max_rows", 1.5),
        ("body_timeout", 0),
        ("reload", -1),
        ("token", ""),
        ("token", "a b"),
        ("hosts", "a"),
    ],
)
def test_settings_are_checked(name, value):
    with pytest.raises((TypeError, ValueError), match=name):
        Settings(**{name: value})


def test_a_port_that_is_taken(files, text):
    with pytest.raises(OSError, match="choose another"):
        run(files / "text.symsvm", port=text.base_url.port)


def test_requests_end_before_the_service(files):
    with serving(files / "text.symsvm") as client, ThreadPoolExecutor(1) as pool:
        gate = threading.Event()
        client.app.state.batcher.executor.submit(gate.wait)
        found = pool.submit(client.post, "/", json={"post_text": "orbit"})
        sample = client.app.state.metrics.registry.get_sample_value
        wait_for(lambda: sample("symsvm_rows_waiting") == 1)
        client.server.should_exit = True
        wait_for(lambda: not client.server.servers[0].is_serving())
        gate.set()
        assert found.result().json()["predicted_newsgroup"]["name"] == "sci.space"


@pytest.mark.slow
def test_a_process_ends_with_sigterm(files):
    """In a process of its own, which takes seconds to start; hence slow."""
    code = "import sys; from symsvm.serve import run; run(sys.argv[1], port=0)"
    command = [sys.executable, "-W", "error", "-c", code, str(files / "text.symsvm")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        port = int(re.search(r"127\.0\.0\.1:(\d+)/", process.stderr.readline())[1])
        assert httpx.post(f"http://127.0.0.1:{port}/", json={"post_text": "orbit"}, timeout=30).status_code == 200
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stderr.read().rstrip().endswith("stopped")
