"""Vectorisers: TF-IDF with its words, as plain values and back.

The words are one array of bytes, UTF-8 with a line break between two, in the order of the columns: a hundred thousand
are read in a few hundredths of a second. Nothing in a file is run, so that there are no functions among the parameters;
a regular expression is a small program too, and one that was made for it takes for ever: only known ones are accepted.
"""

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer

from symsvm._lib.validation import count, number
from symsvm.io.text import Tfidf

__all__ = ["VECTORISERS", "vectoriser_of", "vectoriser_state"]

VECTORISERS = {"Tfidf": Tfidf, "TfidfVectorizer": TfidfVectorizer}

# Without alternatives and nested repetition: time is proportional to the text.
_PATTERNS = (r"(?u)\b\w\w+\b", r"(?u)\b\w+\b", r"\b\w\w+\b", r"\b\w+\b", r"\w+", r"\S+", r"[a-zA-Z]+")
_LONGEST = 16  # n-gram
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


def vectoriser_state(vectoriser):
    """The parameters and the fitted attributes of a vectoriser; a ValueError says what a file cannot hold."""
    params = vectoriser.get_params(deep=False)
    params["dtype"] = np.dtype(params["dtype"]).name
    params["ngram_range"] = tuple(params["ngram_range"])
    _check_params(params)
    words = sorted(vectoriser.vocabulary_, key=vectoriser.vocabulary_.get)
    if sorted(vectoriser.vocabulary_.values()) != list(range(len(words))) or any("\n" in word for word in words):
        raise ValueError("vocabulary_ must number the words 0, 1, ..., and a word has no line break in it")
    fitted = {"vocabulary": np.frombuffer("\n".join(words).encode("utf-8", "surrogatepass"), dtype=np.uint8)}
    if vectoriser.use_idf:
        fitted["idf"] = vectoriser.idf_
    return {"params": params, "fitted": fitted}


def vectoriser_of(name, params, fitted):
    """The vectoriser of a state; a ValueError says what is wrong with it."""
    _check_params(params)
    vectoriser = VECTORISERS[name](**params | {"dtype": np.dtype(params["dtype"]).type})
    vectoriser.vocabulary_ = _vocabulary(fitted["vocabulary"])
    vectoriser.fixed_vocabulary_ = False
    d = len(vectoriser.vocabulary_)
    if set(fitted) != {"vocabulary"} | ({"idf"} if params["use_idf"] else set()):
        raise ValueError("its attributes must be vocabulary, and idf if use_idf says so")
    weighting = {key: params[key] for key in ("norm", "use_idf", "smooth_idf", "sublinear_tf")}
    vectoriser._tfidf = TfidfTransformer(**weighting)
    vectoriser._tfidf.n_features_in_ = d
    if params["use_idf"]:
        idf = fitted["idf"]
        fine = isinstance(idf, np.ndarray) and idf.shape == (d,) and idf.dtype == params["dtype"]
        if not (fine and np.isfinite(idf).all()):
            raise ValueError(f"idf must be {d} finite numbers of type {params['dtype']}")
        vectoriser.idf_ = idf
    return vectoriser


def _vocabulary(text):
    """Words to columns."""
    if not isinstance(text, np.ndarray) or text.dtype != np.uint8 or text.ndim != 1:
        raise ValueError("vocabulary must be bytes")
    words = text.tobytes().decode("utf-8", "surrogatepass").split("\n")
    vocabulary = dict(zip(words, range(len(words)), strict=True))
    if len(vocabulary) != len(words) or "" in vocabulary:
        raise ValueError("vocabulary must hold different words, none of them empty")
    return vocabulary


def _check_params(params):
    for name, allowed in _CHOICES.items():
        value = params[name]
        if not any(type(value) is type(one) and value == one for one in allowed):
            shown = ", ".join(map(repr, allowed))
            raise ValueError(f"{name} of a vectoriser in a file must be one of {shown}, got {str(value)[:80]!r}")
    words = params["stop_words"]
    if not (words in (None, "english") or (isinstance(words, list) and all(isinstance(word, str) for word in words))):
        raise ValueError("stop_words must be None, 'english' or a list of words")
    low, high = params["ngram_range"]
    if not 1 <= count(low, "ngram_range", least=1) <= count(high, "ngram_range", least=1) <= _LONGEST:
        raise ValueError(f"ngram_range must be two integers from 1 to {_LONGEST}, got {params['ngram_range']!r}")
    for name in ("min_df", "max_df"):
        number(params[name], name)
    if params["max_features"] is not None:
        count(params["max_features"], "max_features", least=1)
    unknown = set(params) - {*_CHOICES, "stop_words", "ngram_range", "min_df", "max_df", "max_features"}
    if unknown:
        raise ValueError(f"a vectoriser has no parameter {str(min(unknown))[:80]!r}")
