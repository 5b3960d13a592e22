"""A classifier of texts: TF-IDF vectors and a linear SVM with calibrated probabilities, in a pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.utils.sparsefuncs_fast import inplace_csr_row_normalize_l1, inplace_csr_row_normalize_l2
from sklearn.utils.validation import check_is_fitted

from symsvm.estimators import LinearSVC

if TYPE_CHECKING:
    from collections.abc import Iterable

    from symsvm._lib.types import Array

__all__ = ["Tfidf", "classifier", "is_text"]

_NORMALISE = {"l1": inplace_csr_row_normalize_l1, "l2": inplace_csr_row_normalize_l2}


class Tfidf(TfidfVectorizer):
    """TF-IDF vectors of texts, bit for bit those of scikit-learn's `TfidfVectorizer`.

    For word j, in m_j of the m texts of the fit, ::

        x_j = tf(j) idf_j / |x|,    tf = count or 1 + ln(count),    idf_j = 1 + ln((1 + m) / (1 + m_j))

    Only `transform` differs: it does not validate the matrix of counts, which takes most of the time for a short text.

    Parameters
    ----------
    input, encoding, decode_error : str
        How texts are given, and how bytes are decoded.
    strip_accents : {"ascii", "unicode"}, optional
        How accents are removed.
    lowercase : bool
        Whether texts are converted to lower case.
    preprocessor, tokenizer : callable, optional
        Functions to use instead of the built-in steps; a model file cannot hold them.
    analyzer : {"word", "char", "char_wb"} or callable
        What the n-grams are made of.
    stop_words : "english" or list of str, optional
        Words to leave out.
    token_pattern : str
        The regular expression of a word.
    ngram_range : tuple of int
        The shortest and the longest n-gram.
    max_df, min_df : int or float
        The largest and the smallest number (or share) of texts that a word may be in.
    max_features : int, optional
        The number of words to keep, the most frequent ones.
    vocabulary : mapping or iterable, optional
        A fixed vocabulary.
    binary : bool
        Whether counts above 0 become 1.
    dtype : dtype
        The type of the vectors.
    norm : {"l1", "l2"}, optional
        The norm that the vectors are divided by.
    use_idf, smooth_idf, sublinear_tf : bool
        Whether to weight by idf, to add 1 to the numbers of texts in it, and to use 1 + ln(count).

    Attributes
    ----------
    vocabulary_ : dict
        The column of each word.
    idf_ : ndarray of shape (words,)
        The weight of each word.

    Examples
    --------
    >>> tfidf = Tfidf().fit(["to be or not", "to see"])
    >>> tfidf.transform(["to be"]).toarray().round(2).tolist()
    [[0.81, 0.0, 0.0, 0.0, 0.58]]
    """

    def transform(self, raw_documents: Iterable[str]) -> Any:
        """Compute the vectors of texts.

        Parameters
        ----------
        raw_documents : iterable of str
            The texts.

        Returns
        -------
        csr_matrix of shape (n, words)
            The vectors, one a row.
        """
        check_is_fitted(self)
        if self.norm not in (None, "l1", "l2") or np.dtype(self.dtype) not in ("float32", "float64"):
            return super().transform(raw_documents)
        if isinstance(raw_documents, str):
            raise ValueError("texts must be a list of strings, got one string: put it into a list.")
        X: Any = CountVectorizer.transform(self, raw_documents)
        if self.sublinear_tf:
            np.log(X.data, out=X.data)
            X.data += 1.0
        if self.use_idf:
            X.data *= self.idf_[X.indices]
        if self.norm is not None:
            _NORMALISE[self.norm](X)
        return X

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """Return the words in the order of the columns; the array is made once and read-only.

        Parameters
        ----------
        input_features : None
            Not used.

        Returns
        -------
        ndarray of str
            The words.
        """
        if getattr(self, "_words", (None,))[0] is not getattr(self, "vocabulary_", self):
            words = super().get_feature_names_out(input_features)
            words.flags.writeable = False
            self._words = self.vocabulary_, words
        return self._words[1]


def classifier(
    C: float = 1.0,
    *,
    calibration: Literal["sigmoid", "isotonic"] | None = "sigmoid",
    random_state: int | np.random.RandomState | None = 0,
    **vectoriser: Any,
) -> Pipeline:
    """Make a pipeline of `Tfidf` and `LinearSVC` with probabilities, to be fitted to texts and labels.

    Parameters
    ----------
    C : float
        The parameter of `LinearSVC`; its other parameters can be set with ``set_params(svm__...)``.
    calibration : {"sigmoid", "isotonic"} or None
        The parameter of `LinearSVC`; None for no probabilities.
    random_state : int, RandomState or None
        The parameter of `LinearSVC`.
    **vectoriser : dict
        Parameters of `Tfidf`, such as stop_words="english" or ngram_range=(1, 2); sublinear_tf is True unless given.

    Returns
    -------
    Pipeline
        The steps "tfidf" and "svm".

    Examples
    --------
    >>> texts = ["the orbit of the moon", "a rocket in orbit", "the goal of the match", "a match on ice"] * 2
    >>> model = classifier().fit(texts, ["space", "space", "sport", "sport"] * 2)
    >>> model.predict(["the rocket", "no goal"]).tolist(), model.predict_proba(["orbit"]).shape
    (['space', 'sport'], (1, 2))
    """
    params: dict[str, Any] = {"sublinear_tf": True} | vectoriser
    tfidf = Tfidf(**params)
    return Pipeline([("tfidf", tfidf), ("svm", LinearSVC(C=C, calibration=calibration, random_state=random_state))])


def is_text(model: object) -> bool:
    """Whether a model takes texts: a pipeline that begins with a TF-IDF vectoriser.

    Parameters
    ----------
    model : object
        The model.

    Returns
    -------
    bool
        True for a pipeline of texts.

    Examples
    --------
    >>> is_text(classifier()), is_text(LinearSVC())
    (True, False)
    """
    return isinstance(model, Pipeline) and isinstance(model.steps[0][1], TfidfVectorizer)
