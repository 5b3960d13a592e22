"""Corpus: texts and their labels; and the two of a tree of folders, one to train on and one to test on."""

import re
from typing import Any, NamedTuple

import numpy as np

from symsvm.io.data import DataError
from symsvm.io.data.errors import brief

__all__ = ["Corpora", "Corpus", "corpora_of", "decoded"]

_SIDE = re.compile(r"(?:.*[-_. ])?(train|test)", flags=re.IGNORECASE)


class Corpus(NamedTuple):
    """Texts, a list of strings, and an array with the label of each; `model.fit(*corpus)` takes both."""

    texts: list
    labels: Any


class Corpora(NamedTuple):
    """What a file or a folder holds: a corpus to train on, and one to test on where it has two (else None)."""

    train: Corpus
    test: Corpus | None


def decoded(path, data, encoding, line=None):
    """Bytes as text: in `encoding`; for None in UTF-8 where they are valid UTF-8, else in latin-1.

    >>> decoded("a.txt", "\u00e9".encode("latin-1"), None) == decoded("a.txt", "\u00e9".encode("utf-8"), None)
    True
    """
    try:
        return data.decode(encoding or "utf-8-sig")
    except UnicodeDecodeError as error:
        if encoding is None:
            return data.decode("latin-1")
        raise DataError(path, f"byte {error.start + 1} is no {encoding}: give its encoding, or None.", line) from None


def corpora_of(path, files, encoding):
    """The corpora of a tree: pairs of the parts of a file's path and its bytes, a folder a class.

    A folder around all others is left aside. Two folders whose names end in train and test are two corpora. Files
    beside the folders of the classes are no texts; neither is what is hidden.
    """
    files = sorted((parts, data) for parts, data in files if not any(map(_hidden, parts)))
    while files and len({parts[0] for parts, _ in files}) == 1 and max(len(parts) for parts, _ in files) > 2:
        files = [(parts[1:], data) for parts, data in files if len(parts) > 1]
    sides = {parts[0]: _SIDE.fullmatch(parts[0]) for parts, _ in files if len(parts) > 1}
    if len(sides) == 2 and {match and match[1].lower() for match in sides.values()} == {"train", "test"}:
        train, test = sorted(sides, key=lambda name: sides[name][1].lower(), reverse=True)
        return Corpora(*(_corpus(path, files, encoding, (side,)) for side in (train, test)))
    return Corpora(_corpus(path, files, encoding, ()), None)


def _hidden(part):
    return part.startswith(".") or part == "__MACOSX"


def _corpus(path, files, encoding, above):
    """The corpus of the files below the folders `above`."""
    at = len(above)
    here = [(parts, data) for parts, data in files if parts[:at] == above and len(parts) > at + 1]
    if not here:
        raise DataError(path, "it holds no texts: a folder for each class is expected, and a file for each text.")
    texts = [decoded(f"{path}: {brief('/'.join(parts))}", data, encoding) for parts, data in here]
    return Corpus(texts, np.array([parts[at] for parts, _ in here], dtype=np.str_))
