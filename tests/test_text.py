"""Text models: the vectoriser equals scikit-learn's bit for bit; round trips through files; malformed files."""

import io
import json
import os
import tarfile
import zipfile

import numpy as np
import pytest
from datasets import missing, reason
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC as Theirs

import symsvm
from symsvm import SVC, LinearSVC
from symsvm.data import data_home
from symsvm.files import ModelFileError
from symsvm.text import Tfidf, classifier, is_text, read

TEXTS = [
    "The orbit of the moon, and the rocket's orbit",
    "A rocket flew to the moon \u2013 na\u00efve caf\u00e9",
    "The match had one goal; a goal on ice",
    "Ice, puck and stick: the match",
    "A motor with two wheels",
    "wheels wheels wheels and a motor",
] * 4
LABELS = np.array(["space", "space", "sport", "sport", "cars", "cars"] * 4)
OTHERS = ["the goal of a rocket", "", "nothing known here", "wheels on ice " * 30]
PARAMS = {
    "default": {},
    "sublinear": {"sublinear_tf": True, "stop_words": "english"},
    "pairs": {"ngram_range": (1, 2), "norm": "l1", "stop_words": ["the", "and"]},
    "letters": {"analyzer": "char_wb", "ngram_range": (2, 4), "strip_accents": "unicode", "max_features": 30},
    "plain": {"use_idf": False, "norm": None, "binary": True, "lowercase": False},
    "float32": {"dtype": np.float32, "smooth_idf": False, "max_features": 7, "token_pattern": r"(?u)\b\w+\b"},
}


@pytest.fixture(scope="module")
def model():
    return classifier().fit(TEXTS, LABELS)


def same(A, B):
    assert type(A) is type(B)
    assert A.shape == B.shape
    for part in ("data", "indices", "indptr"):
        a, b = getattr(A, part), getattr(B, part)
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)


@pytest.mark.parametrize("name", PARAMS)
def test_the_vectoriser_equals_scikit_learn(name):
    ours, theirs = Tfidf(**PARAMS[name]), TfidfVectorizer(**PARAMS[name])
    same(ours.fit_transform(TEXTS), theirs.fit_transform(TEXTS))
    for texts in (TEXTS, OTHERS, OTHERS[:1]):
        same(ours.transform(texts), theirs.transform(texts))
    assert ours.get_params() == theirs.get_params()
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()


def test_the_words_are_those_of_the_last_fit():
    tfidf = Tfidf().fit(["one two"])
    assert tfidf.get_feature_names_out() is tfidf.get_feature_names_out()
    assert tfidf.fit(["three"]).get_feature_names_out().tolist() == ["three"]


def test_not_a_list_of_texts(model):
    with pytest.raises(ValueError, match="put it into a list"):
        model.predict("one text")
    with pytest.raises(NotFittedError):
        classifier().predict(["a text"])
    with pytest.raises(NotFittedError):
        Tfidf().get_feature_names_out()


def test_classifier(model):
    assert model.predict(["a rocket to the moon", "goal", "two wheels"]).tolist() == ["space", "sport", "cars"]
    p = model.predict_proba(OTHERS)
    assert p.shape == (4, 3)
    assert np.allclose(p.sum(axis=1), 1)
    alone = np.concatenate([model.predict_proba([text]) for text in OTHERS])
    assert np.array_equal(alone, p)
    bare = classifier(C=2.0, calibration=None, sublinear_tf=False, min_df=2)
    assert (bare["svm"].C, bare["tfidf"].min_df, bare["tfidf"].sublinear_tf) == (2.0, 2, False)
    assert not hasattr(bare, "predict_proba")
    again = clone(model).fit(TEXTS, LABELS)
    assert np.array_equal(again.predict_proba(OTHERS), p)


def test_is_text(model):
    assert is_text(model)
    assert is_text(make_pipeline(TfidfVectorizer(), SVC()))
    assert not is_text(make_pipeline(MaxAbsScaler(), SVC()))
    assert not is_text(model["svm"])


# ---- files


@pytest.mark.parametrize("name", PARAMS)
@pytest.mark.parametrize("kind", [Tfidf, TfidfVectorizer])
def test_round_trip(kind, name, tmp_path):
    model = make_pipeline(kind(**PARAMS[name]), MaxAbsScaler(), LinearSVC(random_state=0)).fit(TEXTS, LABELS)
    symsvm.save(model, tmp_path / "m.symsvm")
    again = symsvm.load(tmp_path / "m.symsvm")
    assert [type(step) for _, step in again.steps] == [type(step) for _, step in model.steps]
    assert again[0].get_params() == model[0].get_params()
    assert again[0].vocabulary_ == model[0].vocabulary_
    same(again[0].transform(OTHERS), model[0].transform(OTHERS))
    assert np.array_equal(again.decision_function(OTHERS), model.decision_function(OTHERS))
    symsvm.save(again, tmp_path / "n.symsvm")
    assert (tmp_path / "n.symsvm").read_bytes() == (tmp_path / "m.symsvm").read_bytes()


def test_round_trip_of_probabilities_and_of_a_kernel(model, tmp_path):
    kernel = make_pipeline(Tfidf(), SVC(calibration="sigmoid", random_state=0)).fit(TEXTS, LABELS)
    for one in (model, kernel):
        symsvm.save(one, tmp_path / "m.symsvm")
        again = symsvm.load(tmp_path / "m.symsvm")
        assert np.array_equal(again.predict_proba(OTHERS), one.predict_proba(OTHERS))
        assert [c.status for c in again[-1].certificate_] == [c.status for c in one[-1].certificate_]
        assert np.array_equal(again.fit(TEXTS, LABELS).predict_proba(OTHERS), one.predict_proba(OTHERS))


def test_the_vocabulary_is_an_array(model, tmp_path):
    symsvm.save(model, tmp_path / "m.symsvm")
    with zipfile.ZipFile(tmp_path / "m.symsvm") as archive:
        assert b"orbit" not in archive.read("model.json")
        assert b"orbit\n" in archive.read("0.vocabulary.npy")


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"tokenizer": str.split, "token_pattern": None}, "tokenizer of a vectoriser in a file must be one of None"),
        ({"preprocessor": str.lower}, "preprocessor of a vectoriser"),
        ({"analyzer": str.split}, "analyzer of a vectoriser"),
        ({"token_pattern": r"(\w+)+s"}, "token_pattern of a vectoriser"),
        ({"vocabulary": ["moon", "goal", "motor"]}, "vocabulary of a vectoriser"),
        ({"ngram_range": (1, 17)}, "ngram_range must be two integers from 1 to 16"),
    ],
)
def test_parameters_that_a_file_cannot_hold(params, sentence, tmp_path):
    with pytest.raises(ModelFileError, match=sentence) as caught:
        symsvm.save(Tfidf(**params).fit(TEXTS), tmp_path / "m.symsvm")
    assert caught.value.__suppress_context__
    assert os.listdir(tmp_path) == []


def test_other_formats_refuse_texts(model, tmp_path):
    pytest.importorskip("onnx")
    for name in ("m.libsvm", "m.onnx"):
        with pytest.raises(ModelFileError, match=r"\.$"):
            symsvm.save(model, tmp_path / name)
    assert os.listdir(tmp_path) == []


@pytest.fixture(scope="module")
def parts(model, tmp_path_factory):
    """The head and the arrays of a good file."""
    path = tmp_path_factory.mktemp("good") / "m.symsvm"
    symsvm.save(model, path)
    with zipfile.ZipFile(path) as archive:
        head = json.loads(archive.read("model.json"))
    with np.load(path) as arrays:
        return head, {name: arrays[name] for name in arrays.files if name != "model.json"}


def _words(text):
    return np.frombuffer(text, dtype=np.uint8)


ARRAYS = {
    "0.vocabulary": (
        ("twice", lambda a: _words(b"a\nb\na"), "must hold different words"),
        ("empty", lambda a: a[:0], "none of them empty"),
        ("an empty word", lambda a: _words(b"a\n\nb"), "none of them empty"),
        ("no UTF-8", lambda a: _words(b"a\n\xff"), "'utf-8' codec"),
        ("numbers", lambda a: a.astype("float64"), "vocabulary must be bytes"),
        ("a matrix", lambda a: a[None], "vocabulary must be bytes"),
        ("a word more", lambda a: np.append(a, _words(b"\nzz")), "finite numbers of type float64"),
    ),
    "0.idf": (
        ("short", lambda a: a[:-1], "finite numbers of type float64"),
        ("nan", lambda a: np.where(a > a.mean(), np.nan, a), "finite numbers of type float64"),
        ("integers", lambda a: a.astype("int64"), "finite numbers of type float64"),
        ("float32", lambda a: a.astype("float32"), "finite numbers of type float64"),
    ),
}
HEADS = (
    (("params", "token_pattern"), r"(\w+)+x", "token_pattern of a vectoriser in a file must be one of"),
    (("params", "tokenizer"), {"$import": "os:system"}, "if you trust that code"),
    (("params", "analyzer"), "wordy", "analyzer of a vectoriser"),
    (("params", "encoding"), "idna", "encoding of a vectoriser"),
    (("params", "input"), "filename", "input of a vectoriser"),
    (("params", "lowercase"), 1, "lowercase of a vectoriser"),
    (("params", "dtype"), "object", "dtype of a vectoriser"),
    (("params", "ngram_range"), {"$tuple": [1, 10**9]}, "ngram_range must be two integers from 1 to 16"),
    (("params", "ngram_range"), {"$tuple": [0, 1]}, "ngram_range must be at least 1"),
    (("params", "ngram_range"), 3, "malformed"),
    (("params", "stop_words"), [1], "stop_words must be None, 'english' or a list of words"),
    (("params", "max_df"), "all", "max_df must be a number"),
    (("params", "max_features"), -1, "max_features must be at least 1"),
    (("params", "norm"), KeyError, "malformed: 'norm'"),
    (("params", "extra"), 1, "has no parameter 'extra'"),
    (("params", "use_idf"), False, "its attributes must be vocabulary, and idf if use_idf is set"),
    (("fitted", "idf"), KeyError, "its attributes must be vocabulary, and idf if use_idf is set"),
    (("fitted", "vocabulary"), {"$array": "1.intercept_"}, "vocabulary must be bytes"),
    (("fitted", "transform"), 1, "its attributes must be vocabulary, and idf if use_idf is set"),
    (("class",), "CountVectorizer", "malformed"),
)


def written(path, head, arrays):
    from symsvm.io.models.archive import write_archive

    with open(path, "wb") as file:
        write_archive(file, head, arrays)
    return path


def refused(path, sentence):
    with pytest.raises(ModelFileError) as caught:
        symsvm.load(path)
    message = str(caught.value)
    assert sentence in message, message
    assert message.startswith(f"{path}: ")
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < 600 + len(str(path))
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("array", "change", "sentence"),
    [
        pytest.param(array, change, sentence, id=f"{array} {name}")
        for array, cases in ARRAYS.items()
        for name, change, sentence in cases
    ],
)
def test_malformed_arrays(array, change, sentence, parts, tmp_path):
    head, arrays = parts
    refused(written(tmp_path / "m.symsvm", head, arrays | {array: change(arrays[array])}), sentence)


@pytest.mark.parametrize(("keys", "value", "sentence"), HEADS)
def test_malformed_heads(keys, value, sentence, parts, tmp_path):
    head = json.loads(json.dumps(parts[0]))
    place = head["steps"][0]
    for key in keys[:-1]:
        place = place[key]
    if value is KeyError:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    refused(written(tmp_path / "m.symsvm", head, parts[1]), sentence)


def test_malformed_pipelines(parts, tmp_path):
    head, arrays = parts
    machine = head["steps"][1]
    turned = head | {"steps": [machine, head["steps"][0]]}
    refused(written(tmp_path / "m.symsvm", turned, arrays), "the last one must be an estimator")
    twice = head | {"steps": [head["steps"][0], *head["steps"]], "pipeline": ["a", "b", "c"]}
    refused(written(tmp_path / "m.symsvm", twice, arrays), "a vectoriser must be the first step")
    words = arrays["0.vocabulary"].tobytes().split(b"\n")[:-1]
    fewer = {"0.vocabulary": _words(b"\n".join(words)), "0.idf": arrays["0.idf"][:-1]}
    refused(written(tmp_path / "m.symsvm", head, arrays | fewer), "must have the same number of features")


def of_newsgroups(path, least, tmp_path):
    """Read the archive, train, compare the score with scikit-learn, save and load."""
    train, test = read(path)
    model = classifier().fit(*train)
    accuracy = model.score(*test)
    assert accuracy >= least
    X, Z = model["tfidf"].transform(train.texts), model["tfidf"].transform(test.texts)
    assert abs(Theirs(random_state=0).fit(X, train.labels).score(Z, test.labels) - accuracy) < 0.005
    symsvm.save(model, tmp_path / "news.symsvm")
    again = symsvm.load(tmp_path / "news.symsvm")
    assert np.array_equal(again.predict_proba(test.texts[:200]), model.predict_proba(test.texts[:200]))


def test_small_newsgroups(tmp_path):
    """An archive like that of 20 newsgroups by date, of four groups whose posts share most of their words."""
    rng = np.random.default_rng(0)
    with tarfile.open(tmp_path / "20news-bydate.tar.gz", "w:gz") as archive:
        for number in range(200):
            group = number % 4
            words = [f"common{i}" for i in rng.integers(0, 50, 30)] + [f"of{group}x{i}" for i in rng.integers(0, 20, 5)]
            post = " ".join(words).encode()
            part = "train" if number < 120 else "test"
            member = tarfile.TarInfo(f"20news-bydate-{part}/group.{group}/{number}")
            member.size = len(post)
            archive.addfile(member, io.BytesIO(post))
    of_newsgroups(tmp_path / "20news-bydate.tar.gz", 0.95, tmp_path)


@pytest.mark.slow(reason="half a minute")
@pytest.mark.skipif(bool(missing("20news")), reason=reason(missing("20news")))
def test_20_newsgroups(tmp_path):
    of_newsgroups(data_home() / "20news-bydate.tar.gz", 0.855, tmp_path)
