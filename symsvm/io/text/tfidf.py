"""Tfidf: scikit-learn's TfidfVectorizer with a transform that one text does not wait for."""

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.sparsefuncs_fast import inplace_csr_row_normalize_l1, inplace_csr_row_normalize_l2
from sklearn.utils.validation import check_is_fitted

__all__ = ["Tfidf"]

_NORMALISE = {None: None, "l1": inplace_csr_row_normalize_l1, "l2": inplace_csr_row_normalize_l2}


class Tfidf(TfidfVectorizer):
    """TF-IDF vectors of texts: parameters, attributes and every bit are those of scikit-learn's `TfidfVectorizer`.

        x_j = tf(j) idf_j / |x|,    tf = count or 1 + ln(count),    idf_j = 1 + ln((1 + m) / (1 + m_j))

    for word j, in m_j of the m texts that it was fitted to. Only `transform` is written anew: what scikit-learn checks
    of the counts on the way, which are its own, takes it longer than the rest of a short text.

    >>> tfidf = Tfidf().fit(["to be or not", "to see"])
    >>> tfidf.transform(["to be"]).toarray().round(2).tolist()
    [[0.81, 0.0, 0.0, 0.0, 0.58]]
    """

    def transform(self, raw_documents):
        """The vectors of texts, a CSR matrix with a row each."""
        check_is_fitted(self)
        if self.norm not in _NORMALISE or np.dtype(self.dtype) not in ("float32", "float64"):
            return super().transform(raw_documents)
        if isinstance(raw_documents, str):
            raise ValueError("texts must be a list of strings, got one string: put it into a list.")
        _, X = self._count_vocab(raw_documents, fixed_vocab=True)
        if self.binary:
            X.data.fill(1)
        if self.sublinear_tf:
            np.log(X.data, out=X.data)
            X.data += 1.0
        if self.use_idf:
            X.data *= self.idf_[X.indices]
        if self.norm is not None:
            _NORMALISE[self.norm](X)
        return X

    def get_feature_names_out(self, input_features=None):
        """The words, in the order of the columns; made once, for there are many."""
        if getattr(self, "_words", (None,))[0] is not getattr(self, "vocabulary_", self):
            words = super().get_feature_names_out(input_features)
            words.flags.writeable = False
            self._words = self.vocabulary_, words
        return self._words[1]
