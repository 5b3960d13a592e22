"""Pipeline: texts to TF-IDF to a linear machine with calibrated probabilities."""

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline

from symsvm.estimators import LinearSVC
from symsvm.io.text.tfidf import Tfidf

__all__ = ["classifier", "is_text"]


def classifier(C=1.0, *, calibration="sigmoid", random_state=0, **vectoriser):
    """A pipeline of `Tfidf` and `LinearSVC` with probabilities, to be fitted to texts and labels.

    Parameters
    ----------
    C, calibration, random_state : of the `LinearSVC`; its other parameters are `set_params(svm__...)`.
    vectoriser : parameters of `Tfidf`, such as stop_words="english" or ngram_range=(1, 2); sublinear_tf is True unless
        given.

    >>> texts = ["the orbit of the moon", "a rocket in orbit", "the goal of the match", "a match on ice"] * 2
    >>> model = classifier().fit(texts, ["space", "space", "sport", "sport"] * 2)
    >>> model.predict(["the rocket", "no goal"]).tolist(), model.predict_proba(["orbit"]).shape
    (['space', 'sport'], (1, 2))
    """
    tfidf = Tfidf(**{"sublinear_tf": True} | vectoriser)
    return Pipeline([("tfidf", tfidf), ("svm", LinearSVC(C=C, calibration=calibration, random_state=random_state))])


def is_text(model):
    """Say whether a model takes texts: a pipeline that begins with a TF-IDF vectoriser.

    >>> is_text(classifier()), is_text(LinearSVC())
    (True, False)
    """
    return isinstance(model, Pipeline) and isinstance(model.steps[0][1], TfidfVectorizer)
