"""The named data sets: their files, where these are, and their checksums (data only)."""

from typing import NamedTuple

__all__ = ["FILES", "SETS", "Set"]

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"


class Set(NamedTuple):
    """A data set: what it is, the files to train and to test on, and how to read them."""

    about: str
    train: tuple
    test: tuple = ()
    n_features: int | None = None
    kind: str = "dense"  # LIBSVM's text as an array; "sparse": as CSR; "idx"; "posts"


SETS = {
    "svmguide1": Set("astroparticle, 2 classes", ("svmguide1",), ("svmguide1.t",), 4),
    "svmguide2": Set("bioinformatics, 3 classes", ("svmguide2",), (), 20),
    "svmguide3": Set("vehicle, 2 classes; the test rows are all +1", ("svmguide3",), ("svmguide3.t",), 22),
    "heart_scale": Set("heart disease, 2 classes", ("heart_scale",), (), 13),
    "diabetes_scale": Set("diabetes, 2 classes", ("diabetes_scale",), (), 8),
    "a9a": Set("census income, 2 classes, sparse", ("a9a",), ("a9a.t",), 123, "sparse"),
    "abalone_scale": Set("age of abalones, regression", ("abalone_scale",), (), 8),
    "cpusmall_scale": Set("load of computers, regression", ("cpusmall_scale",), (), 12),
    "cadata_scale": Set("prices of houses in California, regression", ("cadata_scale",), (), 8),
    "housing_scale": Set("prices of houses in Boston, regression", ("housing_scale",), (), 13),
    "mnist": Set(
        "handwritten digits, 10 classes",
        ("mnist/train-images-idx3-ubyte.gz", "mnist/train-labels-idx1-ubyte.gz"),
        ("mnist/t10k-images-idx3-ubyte.gz", "mnist/t10k-labels-idx1-ubyte.gz"),
        784,
        "idx",
    ),
    "20news": Set("posts to newsgroups, 20 classes of text", ("20news-bydate.tar.gz",), (), None, "posts"),
}

# file -> (where it is, its SHA-256); where it is is None for what only its readers can make.
FILES = {
    "svmguide1": (f"{_LIBSVM}/binary/svmguide1", "2b9ab55b6236f62cee6b7739b52f9e7cb033771f39b9c22c1f1790d80ef14d7f"),
    "svmguide1.t": (
        f"{_LIBSVM}/binary/svmguide1.t",
        "f9c2fd4c725172aeb4476fc1e2327d537f7fbc2f53f49dfd073f80efbe1ba8f7",
    ),
    "svmguide3": (f"{_LIBSVM}/binary/svmguide3", "ada17021fdf508bcaac7b7adea825886478f915935eccb24470f22c806dc4508"),
    "svmguide3.t": (
        f"{_LIBSVM}/binary/svmguide3.t",
        "cee704e709725edbb8d200f5973e3bae83691aea1e15dbba121d6d8629110cd5",
    ),
    "heart_scale": (
        f"{_LIBSVM}/binary/heart_scale",
        "5defa0a4c4c5bdaf3f55ae3828310252e8565c13ee37ce279e0b86d82e7f4ce9",
    ),
    "diabetes_scale": (
        f"{_LIBSVM}/binary/diabetes_scale",
        "b1e97d6357ebdbf86826ff357093148a59f0237d57c127885a7c43868896c9c1",
    ),
    "a9a": (f"{_LIBSVM}/binary/a9a", "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906"),
    "a9a.t": (f"{_LIBSVM}/binary/a9a.t", "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9"),
    "svmguide2": (
        f"{_LIBSVM}/multiclass/svmguide2",
        "0fe7841f13956623ddc432528311453ab5bf9611c827f95b0b5fd1244ff15057",
    ),
    "abalone_scale": (
        f"{_LIBSVM}/regression/abalone_scale",
        "c7e719473d68cac81798b16c14bcdc632abf485b404882ff9e713c5d46c7750d",
    ),
    "cpusmall_scale": (
        f"{_LIBSVM}/regression/cpusmall_scale",
        "26680641a78a2ceb176a48441d0d3abc0d52616f82d0579dafc025ce84228380",
    ),
    "housing_scale": (
        f"{_LIBSVM}/regression/housing_scale",
        "bbacd2f526a038499717d5dc4b8895e6baf1e2351895b9360a84bcb31e104476",
    ),
    # Not there: the collection has it unscaled, as cadata.
    "cadata_scale": (None, "4f748287791eccb06389f4809b1863ea3aa8cc3258cf55746698cc4bdc93f751"),
    "mnist/train-images-idx3-ubyte.gz": (
        f"{_MNIST}/train-images-idx3-ubyte.gz",
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    ),
    "mnist/train-labels-idx1-ubyte.gz": (
        f"{_MNIST}/train-labels-idx1-ubyte.gz",
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    ),
    "mnist/t10k-images-idx3-ubyte.gz": (
        f"{_MNIST}/t10k-images-idx3-ubyte.gz",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    ),
    "mnist/t10k-labels-idx1-ubyte.gz": (
        f"{_MNIST}/t10k-labels-idx1-ubyte.gz",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
    "20news-bydate.tar.gz": (
        "https://ndownloader.figshare.com/files/5975967",
        "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
    ),
}
