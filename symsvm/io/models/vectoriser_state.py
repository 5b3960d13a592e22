"""The state of fitted TF-IDF vectorisers as plain values, and back.

The vocabulary is one array of bytes, UTF-8 with a line break between two words, in the order of the columns: a hundred
thousand words are read in a few hundredths of a second. A file runs no code, so no parameter may be a function. A
regular expression may take exponential time on a short text, so only known ones are accepted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from symsvm._lib.validation import count, number
from symsvm.io.text import Tfidf

__all__ = ["VECTORISERS", "vectoriser_from_state", "vectoriser_state"]

VECTORISERS = {"Tfidf": Tfidf, "TfidfVectorizer": TfidfVectorizer}

# They have no alternatives and no nested repetition: time is proportional to the length of a text.
_PATTERNS = (r"(?u)\b\w\w+\b", r"(?u)\b\w+\b", r"\b\w\w+\b", r"\b\w+\b", r"\w+", r"\S+", r"[a-zA-Z]+")
_MAX_NGRAM = 16
_SWITCH = (True, False)
_CHOICES = {
    "input": ("content",),
    "encoding": ("utf-8", "latin-1", "ascii", "cp1252"),
    "decode_error": ("strict", "ignore", "replace"),
    "strip_accents": (None, "ascii", "unicode"),
    "lowercase": _SWITCH,
    "preprocessor": (None,),
    "tokenizer": (None,),
    "analyzer": ("word", "char", "char_wb"),
    "token_pattern": _PATTERNS,
    "vocabulary": (None,),
    "binary": _SWITCH,
    "dtype": ("float32", "float64"),
    "norm": (None, "l1", "l2"),
    "use_idf": _SWITCH,
    "smooth_idf": _SWITCH,
    "sublinear_tf": _SWITCH,
}


def vectoriser_state(vectoriser: TfidfVectorizer) -> dict[str, Any]:
    """The parameters and the fitted attributes of a vectoriser; a ValueError names what a file cannot hold."""
    params = vectoriser.get_params(deep=False)
    params["dtype"] = np.dtype(params["dtype"]).name
    params["ngram_range"] = tuple(params["ngram_range"])
    _check_params(params)
    words = sorted(vectoriser.vocabulary_, key=vectoriser.vocabulary_.__getitem__)
    if sorted(vectoriser.vocabulary_.values()) != list(range(len(words))) or any("\n" in word for word in words):
        raise ValueError("vocabulary_ must number the words 0, 1, ..., and no word may have a line break")
    fitted: dict[str, Any] = {
        "vocabulary": np.frombuffer("\n".join(words).encode("utf-8", "surrogatepass"), dtype=np.uint8)
    }
    if vectoriser.use_idf:
        fitted["idf"] = vectoriser.idf_
    return {"params": params, "fitted": fitted}


def vectoriser_from_state(name: str, params: dict[str, Any], fitted: dict[str, Any]) -> TfidfVectorizer:
    """The vectoriser of a state; a ValueError says what is wrong with it."""
    _check_params(params)
    dtype, lowercase = params["dtype"], params["lowercase"]
    vectoriser = VECTORISERS[name](**params | {"dtype": np.dtype(dtype).type})
    vocabulary = _read_vocabulary(fitted["vocabulary"])
    if set(fitted) != {"vocabulary"} | ({"idf"} if params["use_idf"] else set()):
        raise ValueError("its attributes must be vocabulary, and idf if use_idf is set")
    if params["use_idf"]:
        idf, d = fitted["idf"], len(vocabulary)
        valid = isinstance(idf, np.ndarray) and idf.shape == (d,) and idf.dtype == dtype
        if not (valid and np.isfinite(idf).all()):
            raise ValueError(f"idf must be {d} finite numbers of type {dtype}")
        vectoriser.vocabulary_ = vocabulary
        vectoriser.idf_ = idf
    else:
        # Without idf a fit computes no weights; lowercase=False skips a warning about capitals among the words.
        vectoriser.set_params(vocabulary=vocabulary, lowercase=False).fit([""])
        vectoriser.set_params(vocabulary=None, lowercase=lowercase)
    vectoriser.fixed_vocabulary_ = False
    return vectoriser


def _read_vocabulary(text: Any) -> dict[str, int]:
    """The column of each word."""
    if not isinstance(text, np.ndarray) or text.dtype != np.uint8 or text.ndim != 1:
        raise ValueError("vocabulary must be bytes")
    words = text.tobytes().decode("utf-8", "surrogatepass").split("\n")
    vocabulary = dict(zip(words, range(len(words)), strict=True))
    if len(vocabulary) != len(words) or "" in vocabulary:
        raise ValueError("vocabulary must hold different words, none of them empty")
    return vocabulary


def _check_params(params: dict[str, Any]) -> None:
    for name, allowed in _CHOICES.items():
        value = params[name]
        if not any(type(value) is type(one) and value == one for one in allowed):
            known = ", ".join(map(repr, allowed))
            raise ValueError(f"{name} of a vectoriser in a file must be one of {known}, got {str(value)[:80]!r}")
    words = params["stop_words"]
    if not (words in (None, "english") or (isinstance(words, list) and all(isinstance(word, str) for word in words))):
        raise ValueError("stop_words must be None, 'english' or a list of words")
    low, high = params["ngram_range"]
    if not 1 <= count(low, "ngram_range", least=1) <= count(high, "ngram_range", least=1) <= _MAX_NGRAM:
        raise ValueError(f"ngram_range must be two integers from 1 to {_MAX_NGRAM}, got {params['ngram_range']!r}")
    for name in ("min_df", "max_df"):
        number(params[name], name)
    if params["max_features"] is not None:
        count(params["max_features"], "max_features", least=1)
    unknown = set(params) - {*_CHOICES, "stop_words", "ngram_range", "min_df", "max_df", "max_features"}
    if unknown:
        raise ValueError(f"a vectoriser has no parameter {str(min(unknown))[:80]!r}")
