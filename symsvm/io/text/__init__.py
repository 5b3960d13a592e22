"""Text: corpora in, a TF-IDF classifier out.

corpora = read("20news-bydate.tar.gz")            # corpora.train, corpora.test: texts and their labels
model = classifier().fit(*corpora.train)          # TF-IDF and a linear machine with probabilities, as a pipeline
model.predict_proba(["a post about orbits"])      # symsvm.save(model, "news.symsvm") stores all of it
"""

from symsvm.io.text.corpus import Corpora, Corpus
from symsvm.io.text.pipeline import classifier, is_text
from symsvm.io.text.reading import read
from symsvm.io.text.tfidf import Tfidf

__all__ = ["Corpora", "Corpus", "Tfidf", "classifier", "is_text", "read"]
