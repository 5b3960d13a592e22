"""20 newsgroups by date: accuracy, times, memory and the model file, beside scikit-learn in one run.

    SYMSVM_DATA=DIRECTORY python benchmarks/newsgroups.py [--posts 1000] [--choose]

Posts are used as they are in the archive, with headers. Models are trained on its train folder and tested on its test
folder. The first table has the same vectors for both: TfidfVectorizer of scikit-learn, then LinearSVC of scikit-learn
or of symsvm. The second table has complete models with probabilities: `symsvm.text.classifier()`, and
CalibratedClassifierCV of scikit-learn (five folds, one sigmoid for each class, as in symsvm). Then a new process loads
the model file, measures its memory and predicts test posts one by one. `--choose` prints the cross-validation over the
train folder by which the defaults were chosen.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

VECTORISERS = {
    "defaults": {},
    "sublinear tf": {"sublinear_tf": True},
    "sublinear tf, English stop words": {"sublinear_tf": True, "stop_words": "english"},
}
OTHERS = {  # worse by cross-validation, or better by less than 0.1 percentage points
    "sublinear tf, words of two posts": {"sublinear_tf": True, "min_df": 2},
    "sublinear tf, pairs of words too": {"sublinear_tf": True, "min_df": 2, "ngram_range": (1, 2)},
    "sublinear tf, words of one letter": {"sublinear_tf": True, "token_pattern": r"(?u)\b\w+\b"},
}


def timed(work):
    """Return the result of the work and its seconds."""
    began = time.perf_counter()
    return work(), time.perf_counter() - began


def same_vectors(train, test):
    """Print the table of both estimators on the same vectors."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.svm import LinearSVC as Theirs

    from symsvm import LinearSVC

    print(f"{'':34}{'':8}{'':9}{'seconds of a fit':>20}{'test accuracy':>19}")
    print(f"{'vectoriser':34}{'words':>8}{'vectors':>9}" + 2 * f"{'symsvm':>10}{'sklearn':>10}")
    for name, params in VECTORISERS.items():
        tfidf = TfidfVectorizer(**params)
        X, vectors = timed(lambda tfidf=tfidf: tfidf.fit_transform(train.texts))
        Z = tfidf.transform(test.texts)
        ours, fit_ours = timed(lambda X=X: LinearSVC(random_state=0).fit(X, train.labels))
        theirs, fit_theirs = timed(lambda X=X: Theirs(random_state=0).fit(X, train.labels))
        times = f"{vectors:9.2f}{fit_ours:10.2f}{fit_theirs:10.2f}"
        right = f"{ours.score(Z, test.labels):10.4f}{theirs.score(Z, test.labels):10.4f}"
        print(f"{name:34}{X.shape[1]:8}{times}{right}", flush=True)


def choose(train):
    """Print the accuracy by cross-validation with three folds of the training posts."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.model_selection import StratifiedKFold

    from symsvm import LinearSVC

    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(train.texts, train.labels))
    grid, texts = (0.5, 1.0, 2.0), np.array(train.texts, dtype=object)
    print(f"{'vectoriser':34}" + "".join(f"{f'C = {C:g}':>10}" for C in grid))
    for name, params in (VECTORISERS | OTHERS).items():
        right = np.zeros(len(grid))
        for a, b in folds:
            tfidf = TfidfVectorizer(**params)
            X, Z = tfidf.fit_transform(texts[a]), tfidf.transform(texts[b])
            fits = [LinearSVC(C=C, random_state=0).fit(X, train.labels[a]) for C in grid]
            right += [model.score(Z, train.labels[b]) / len(folds) for model in fits]
        print(f"{name:34}" + "".join(f"{r:10.4f}" for r in right), flush=True)


def with_probabilities(train, test):
    """Print the table of both models with probabilities; return the models."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.metrics import log_loss
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC as Theirs

    from symsvm.text import classifier

    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    peer = CalibratedClassifierCV(Theirs(random_state=0), cv=folds, ensemble=False)
    models = {"symsvm": classifier(), "scikit-learn": make_pipeline(TfidfVectorizer(sublinear_tf=True), peer)}
    print(f"\n{'with probabilities':34}{'fit':>8}{'accuracy':>12}{'log loss':>10}")
    for name, model in models.items():
        _, seconds = timed(lambda model=model: model.fit(*train))
        p = model.predict_proba(test.texts)
        accuracy = np.mean(model.classes_[p.argmax(axis=1)] == test.labels)
        print(f"{name:34}{seconds:6.1f} s{accuracy:12.4f}{log_loss(test.labels, p):10.4f}", flush=True)
    return models


def latency(predict, posts):
    """Return the median and the 99th percentile of the time of one post, after some to warm up, as text."""
    for post in posts[:50]:
        predict(post)
    seconds = [timed(lambda post=post: predict(post))[1] for post in posts]
    return f"{1e3 * np.median(seconds):8.2f} ms median{1e3 * np.quantile(seconds, 0.99):8.2f} ms p99"


def memory():
    """Return the resident memory of this process in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def in_service(path, posts):
    """Load a model in this process and print the time and memory."""
    start = memory()
    from symsvm import load
    from symsvm.inspection.contributions import contributions

    imported = memory()
    model, seconds = timed(lambda: load(path))
    model.predict_proba(["a post"])
    loaded = memory()
    posts = json.loads(Path(posts).read_text())
    print(f"\nin a new process: load {seconds:.2f} s")
    print(f"memory: {start:.0f} MB of Python and NumPy, {imported:.0f} with the libraries, {loaded:.0f} with the model")
    print(f"predict_proba of one post       {latency(lambda post: model.predict_proba([post]), posts)}")
    print(f"contributions, all classes      {latency(lambda post: contributions(model, post), posts)}")
    print(f"memory after these              {memory():8.0f} MB")


def main():
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--posts", type=int, default=1000, help="the number of posts that are predicted one by one (default 1000)"
    )
    parser.add_argument("--choose", action="store_true", help="cross-validate vectorisers and C on the train folder")
    parser.add_argument("--service", nargs=2, metavar=("MODEL", "POSTS"), help="measure a model file in this process")
    args = parser.parse_args()
    if args.service:
        return in_service(*args.service)

    import symsvm
    from symsvm.data import data_home
    from symsvm.text import read

    (train, test), seconds = timed(lambda: read(data_home() / "20news-bydate.tar.gz"))
    print(f"{len(train.texts)} posts to train on, {len(test.texts)} to test on, read in {seconds:.1f} s\n")
    if args.choose:
        return choose(train)
    few = slice(None, None, 100)  # compiles loops before the measurement
    symsvm.text.classifier(calibration=None).fit(train.texts[few], train.labels[few])
    same_vectors(train, test)
    models = with_probabilities(train, test)
    posts = test.texts[:: max(1, len(test.texts) // args.posts)][: args.posts]
    for name, model in models.items():
        print(f"one post, {name:22}{latency(lambda post, model=model: model.predict_proba([post]), posts)}", flush=True)
    print(f"peak memory of the training process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    with tempfile.TemporaryDirectory() as directory:
        path, given = Path(directory, "news.symsvm"), Path(directory, "posts.json")
        symsvm.save(models["symsvm"], path)
        given.write_text(json.dumps(posts))
        print(f"model file {path.stat().st_size / 1e6:.1f} MB", flush=True)
        subprocess.run([sys.executable, __file__, "--service", str(path), str(given)], check=True)


if __name__ == "__main__":
    main()
