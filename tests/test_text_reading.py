"""Corpora from folders, archives and tables; malformed ones give one sentence."""

import contextlib
import csv
import gzip
import io
import json
import os
import stat
import tarfile
import zipfile

import numpy as np
import pytest

from symsvm.data import DataError
from symsvm.io.text import corpus
from symsvm.text import read

TREE = {
    "news-train/ice/1": b"a goal on ice",
    "news-train/ice/2": b"no goal",
    "news-train/space/10": "the orbit of \u0152".encode(),
    "news-train/space/9": "a caf\u00e9 on the moon".encode("latin-1"),
    "news-test/ice/1": b"goal",
    "news-test/space/1": b"orbit",
}


def folder(path, tree):
    for name, data in tree.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def tar(path, tree, mode="w:gz", extra=()):
    with tarfile.open(path, mode) as archive:
        for name, data in tree.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for info in extra:
            archive.addfile(info)
    return path


def zipped(path, tree, extra=()):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in tree.items():
            archive.writestr(name, data)
        for info, data in extra:
            archive.writestr(info, data)
    return path


def refused(path, sentence, line=None, **options):
    with pytest.raises(DataError) as caught:
        read(path, **options)
    message = str(caught.value)
    assert sentence in message, message
    assert message.startswith(str(path))
    assert message.endswith(".")
    assert "\n" not in message
    assert caught.value.line == line


# ---- trees


@pytest.mark.parametrize("root", ["", "./", "20news/"])
def test_folders_and_archives_give_the_same_corpora(root, tmp_path):
    tree = {root + name: data for name, data in TREE.items()}
    found = [
        read(folder(tmp_path / "folder", tree)),
        read(tar(tmp_path / "a.tar.gz", tree)),
        read(tar(tmp_path / "a.tgz", dict(reversed(tree.items())))),
        read(tar(tmp_path / "a.tar", tree, "w")),
        read(str(zipped(tmp_path / "a.zip", tree))),
    ]
    for corpora in found:
        assert corpora.train.texts == ["a goal on ice", "no goal", "the orbit of \u0152", "a caf\u00e9 on the moon"]
        assert corpora.train.labels.tolist() == ["ice", "ice", "space", "space"]
        assert corpora.test.texts == ["goal", "orbit"]
        assert corpora.test.labels.tolist() == ["ice", "space"]


def test_folders_of_classes_are_one_corpus(tmp_path):
    tree = {name.removeprefix("news-train/"): data for name, data in TREE.items() if "train" in name}
    corpora = read(folder(tmp_path / "news", tree))
    assert corpora.test is None
    assert corpora.train.labels.tolist() == ["ice", "ice", "space", "space"]
    classes = read(folder(tmp_path / "rail", {"train/1": b"wheels", "bus/1": b"wheels too"}))
    assert (classes.train.labels.tolist(), classes.test) == (["bus", "train"], None)


def test_hidden_files_and_files_outside_classes_are_ignored(tmp_path):
    more = {"README": b"read", "news-train/urls.txt": b"x", "news-train/ice/.DS_Store": b"\0", "__MACOSX/ice/1": b"x"}
    corpora = read(zipped(tmp_path / "a.zip", TREE | more))
    assert [len(corpus.texts) for corpus in corpora] == [4, 2]


def test_folders_below_a_class_belong_to_it(tmp_path):
    corpora = read(folder(tmp_path / "a", {"ice/1993/1": b"goal", "ice/1994/1": b"puck", "space/1": b"orbit"}))
    assert corpora.train.labels.tolist() == ["ice", "ice", "space"]


def test_links_to_folders_and_pipes_are_skipped(tmp_path):
    path = folder(tmp_path / "a", {"ice/1": b"goal", "space/1": b"orbit"})
    (path / "ice" / "loop").symlink_to(path)
    os.mkfifo(path / "ice" / "pipe")
    assert read(path).train.texts == ["goal", "orbit"]


def test_encodings(tmp_path):
    path = folder(tmp_path / "a", {"ice/1": "\u00e9".encode("cp1252"), "space/1": "\ufeff\u00e9".encode()})
    assert read(path).train.texts == ["\u00e9", "\u00e9"]
    assert read(path, encoding="latin-1").train.texts[1] == "\u00ef\u00bb\u00bf\u00c3\u00a9"
    refused(path, "byte 1 is not valid utf-8", encoding="utf-8")
    with pytest.raises(ValueError, match="one that Python knows, or None, got 'utf-99'"):
        read(path, encoding="utf-99")


def test_archives_with_paths_outside(tmp_path):
    for name in ("../evil/1", "/etc/passwd", "ice/../../1"):
        refused(tar(tmp_path / "a.tar.gz", {name: b"x"}), "is not a path inside the archive")
        refused(zipped(tmp_path / "a.zip", {name: b"x"}), "is not a path inside the archive")
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
        info = tarfile.TarInfo("news-train/ice/3")
        info.type, info.linkname = kind, "/etc/passwd"
        refused(tar(tmp_path / "a.tar.gz", TREE, extra=[info]), "'news-train/ice/3' is a link or a device")
    link = zipfile.ZipInfo("news-train/ice/3")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    refused(zipped(tmp_path / "a.zip", TREE, [(link, "/etc/passwd")]), "is a link, which is not followed")


def test_archives_that_unpack_to_too_much(tmp_path, monkeypatch):
    bomb = {f"ice/{i}": bytes(1 << 20) for i in range(40)}
    refused(tar(tmp_path / "a.tar.gz", bomb), "unpacks to more than 200 times")
    refused(zipped(tmp_path / "a.zip", bomb), "unpacks to more than 200 times")
    monkeypatch.setattr(corpus, "_MAX_TEXT_BYTES", 8)
    path = folder(tmp_path / "a", {"ice/1": b"123456789", "space/1": b""})
    for wrapped in (path, tar(tmp_path / "b.tar", {"ice/1": b"123456789"}, "w")):
        refused(wrapped, "'ice/1' has 9 bytes; a text has at most")
    monkeypatch.setattr(corpus, "_MAX_TEXT_BYTES", 100)
    monkeypatch.setattr(corpus, "_MAX_TOTAL_BYTES", 10)
    refused(folder(path, {"ice/2": b"12"}), "the limit of a corpus")


def test_archives_that_are_damaged(tmp_path):
    path = tar(tmp_path / "a.tar.gz", TREE)
    good = path.read_bytes()
    for cut in (1, 20, len(good) // 2, len(good) - 12):
        path.write_bytes(good[:cut])
        refused(path, "damaged")
    path.write_bytes(b"")
    refused(path, "this is not a tar archive")
    plain = tar(tmp_path / "a.tar", TREE, "w")
    plain.write_bytes(plain.read_bytes()[:700])
    refused(plain, "this is not a tar archive, or a damaged one")
    path = zipped(tmp_path / "a.zip", TREE)
    good = path.read_bytes()
    path.write_bytes(good[: len(good) // 2])
    refused(path, "this is not a zip archive, or a damaged one")
    secret = bytearray(good)
    secret[good.index(b"PK\3\4") + 6] |= 1  # the flag of an encrypted member, in both of its headers
    secret[good.index(b"PK\1\2") + 8] |= 1
    path.write_bytes(secret)
    refused(path, "encrypted")


@pytest.mark.parametrize("ending", [".tar", ".zip"])
def test_any_byte_may_be_wrong(ending, tmp_path):
    """Any changed byte gives a corpus or one sentence."""
    make = tar if ending == ".tar" else zipped
    path = make(tmp_path / f"a{ending}", TREE, *(["w"] if ending == ".tar" else []))
    good, rng = path.read_bytes().rstrip(b"\0") + bytes(1024), np.random.default_rng(0)
    for _ in range(150):
        at = int(rng.integers(len(good)))
        path.write_bytes(good[:at] + bytes([int(rng.integers(256))]) + good[at + 1 :])
        with contextlib.suppress(DataError):
            assert read(path).train.texts


def test_no_texts(tmp_path):
    refused(folder(tmp_path / "a", {"1": b"x"}), "use a folder for each class, with a file for each text")
    refused(tar(tmp_path / "a.tar.gz", {}), "there are no texts")
    (tmp_path / "a.docx").write_bytes(b"x")
    refused(tmp_path / "a.docx", "whose name ends in .tar, .tar.gz, .tgz, .zip, .csv")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none.tar.gz")


# ---- tables

ROWS = [("a goal, on\nice", "ice"), ('the "orbit"', "space"), ("caf\u00e9", "ice"), ("", "space")]


def table(path, rows, **options):
    out = io.StringIO(newline="")
    csv.writer(out, **options).writerows(rows)
    data = out.getvalue().encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize(
    ("name", "delimiter"), [("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t"), ("a.csv.gz", ","), ("a.csv", "\t")]
)
def test_csv(name, delimiter, tmp_path):
    path = table(tmp_path / name, [("text", "label"), *ROWS], delimiter=delimiter)
    corpora = read(path)
    assert list(zip(corpora.train.texts, corpora.train.labels.tolist(), strict=True)) == ROWS
    assert corpora.test is None


def test_csv_columns(tmp_path):
    path = table(tmp_path / "a.csv", [("id", "body", "group"), (1, "goal", "ice"), (2, "orbit", "space")])
    assert read(path, text="body", label="group").train.texts == ["goal", "orbit"]
    refused(path, "there is no column 'text'; its columns are 'id', 'body', 'group'", 1)
    bare = table(tmp_path / "b.csv", [("ice", "goal"), ("space", "orbit")])
    texts, labels = read(bare, text=1, label=0).train
    assert (texts, labels.tolist()) == (["goal", "orbit"], ["ice", "space"])
    refused(bare, "there is no column 5", 1, text=5, label=0)
    with pytest.raises(TypeError, match="two names, or two numbers"):
        read(bare, text=1, label="label")


def test_malformed_csv(tmp_path):
    path = tmp_path / "a.csv"
    for text, sentence, line in (
        (b"", "the file is empty", None),
        (b"text,label\n", "the file has no texts", None),
        (b'text,label\n"a\nb",ice\nc\n', "the line has 1 columns, the first line has 2", 4),
        (b"text,label\na,ice\nb,\n", "the label must be a string or an integer, got ''", 3),
        (b'text,label\na,ice\n"b,ice\n', "the line is not valid CSV", 3),
        (b'text,label\n"a"b,ice\n', "the line is not valid CSV", 2),
        (b"text,label\na\rb,ice\n", "the line is not valid CSV", 2),
    ):
        path.write_bytes(text)
        refused(path, sentence, line)
    path.write_bytes("text,label\n\u00e9,ice\n".encode("latin-1"))
    assert read(path).train.texts == ["\u00e9"]
    refused(path, "byte 1 is not valid utf-8", 2, encoding="utf-8")


def test_long_fields_do_not_change_the_global_limit(tmp_path):
    before = csv.field_size_limit()
    path = table(tmp_path / "a.csv", [("text", "label"), ("x" * 300_000, "ice")])
    assert len(read(path).train.texts[0]) == 300_000
    assert csv.field_size_limit() == before


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.jsonl.gz"])
def test_jsonl(name, tmp_path):
    data = "\n\n".join(json.dumps({"text": text, "label": label, "n": 1}) for text, label in ROWS).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    corpora = read(tmp_path / name)
    assert list(zip(corpora.train.texts, corpora.train.labels.tolist(), strict=True)) == ROWS


def test_jsonl_labels_may_be_integers(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"t": "goal", "y": 2}\n{"t": "orbit", "y": 1}\n')
    labels = read(tmp_path / "a.jsonl", text="t", label="y").train.labels
    assert (labels.dtype.kind, labels.tolist()) == ("i", [2, 1])


def test_malformed_jsonl(tmp_path):
    path, good = tmp_path / "a.jsonl", '{"text": "goal", "label": "ice"}\n'
    for line, sentence in (
        ("{", "the line is not valid JSON"),
        ("[" * 100_000, "the line is not valid JSON"),
        ("[1]", "the line must be a JSON object, got a list"),
        ('{"label": "ice"}', "there is no key 'text'; its keys are ['label']"),
        ('{"text": 1, "label": "ice"}', "'text' must be a string, got a int"),
        ('{"text": "a", "label": null}', "the label must be a string or an integer, got None"),
        ('{"text": "a", "label": 1}', "must be a string in all lines or an integer in all"),
        ('{"text": "a", "label": true}', "the label must be a string or an integer, got True"),
    ):
        path.write_text(good + line)
        refused(path, sentence, 2)
    path.write_text(f'{{"text": "a", "label": {2**70}}}')
    refused(path, "is not a 64-bit integer", 1)
    path.write_text("\n")
    refused(path, "the file has no texts")
