"""Text corpora, and a TF-IDF classifier for them.

    corpora = read("20news-bydate.tar.gz")            # corpora.train, corpora.test: texts and their labels
    model = classifier().fit(*corpora.train)          # TF-IDF and a linear SVM with probabilities, as a pipeline
    model.predict_proba(["a post about orbits"])      # symsvm.save(model, "news.symsvm") stores all of it

`corpus` reads, `text_pipeline` has the classifier. `io.models` and packages below `io` import from here; the public
names are also in `symsvm.text`.
"""

from symsvm.io.text.corpus import Corpora, Corpus, read
from symsvm.io.text.text_pipeline import Tfidf, classifier, is_text

__all__ = ["Corpora", "Corpus", "Tfidf", "classifier", "is_text", "read"]
