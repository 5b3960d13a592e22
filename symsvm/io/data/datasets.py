"""Named data sets: the registry of their files, downloads with checksums, and `load`."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from symsvm._lib.validation import choice
from symsvm.io.data.array_files import read_idx
from symsvm.io.data.libsvm_data import read_libsvm
from symsvm.io.file_errors import DataError, DownloadError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["FILES", "SETS", "DataSet", "DataSetEntry", "ResumingDownloader", "data_home", "download", "load"]

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
_ATTEMPTS = 3  # of a download that was cut off
_CHUNK_BYTES = 1 << 16  # written at once
_TIMEOUTS = (10, 60)  # seconds to connect, and between two packets


class DataSetEntry(NamedTuple):
    """An entry of the registry: a description, the files to train and to test on, and how to read them."""

    about: str
    train: tuple[str, ...]
    test: tuple[str, ...] = ()
    n_features: int | None = None
    kind: str = "dense"  # a LIBSVM file as an array; "sparse": as CSR; "idx"; "posts"


SETS = {
    "svmguide1": DataSetEntry("astroparticle, 2 classes", ("svmguide1",), ("svmguide1.t",), 4),
    "svmguide2": DataSetEntry("bioinformatics, 3 classes", ("svmguide2",), (), 20),
    "svmguide3": DataSetEntry("vehicle, 2 classes; the test rows are all +1", ("svmguide3",), ("svmguide3.t",), 22),
    "heart_scale": DataSetEntry("heart disease, 2 classes", ("heart_scale",), (), 13),
    "diabetes_scale": DataSetEntry("diabetes, 2 classes", ("diabetes_scale",), (), 8),
    "a9a": DataSetEntry("census income, 2 classes, sparse", ("a9a",), ("a9a.t",), 123, "sparse"),
    "abalone_scale": DataSetEntry("age of abalones, regression", ("abalone_scale",), (), 8),
    "cpusmall_scale": DataSetEntry("CPU load of computers, regression", ("cpusmall_scale",), (), 12),
    "cadata_scale": DataSetEntry("prices of houses in California, regression", ("cadata_scale",), (), 8),
    "housing_scale": DataSetEntry("prices of houses in Boston, regression", ("housing_scale",), (), 13),
    "mnist": DataSetEntry(
        "handwritten digits, 10 classes",
        ("mnist/train-images-idx3-ubyte.gz", "mnist/train-labels-idx1-ubyte.gz"),
        ("mnist/t10k-images-idx3-ubyte.gz", "mnist/t10k-labels-idx1-ubyte.gz"),
        784,
        "idx",
    ),
    "20news": DataSetEntry("posts to newsgroups, 20 classes of text", ("20news-bydate.tar.gz",), (), None, "posts"),
}

# file -> (its address, its SHA-256); the address is None where no site has the file.
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
    # The collection has it unscaled only, as cadata.
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


# ---- loading


class DataSet(NamedTuple):
    """Training and test points with the labels of the files.

    Parameters
    ----------
    X : ndarray or csr_matrix of shape (m, d), or list of str
        The points to train on.
    y : ndarray of shape (m,)
        Their labels.
    X_test : ndarray, csr_matrix, list of str or None
        The points to test on, None where the set has no test file.
    y_test : ndarray or None
        Their labels.
    """

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray | None


def data_home() -> Path:
    """The directory of the named data sets.

    Returns
    -------
    Path
        The value of the environment variable SYMSVM_DATA, else a directory in the user's cache.
    """
    if home := os.environ.get("SYMSVM_DATA"):
        return Path(home)
    import pooch

    return Path(pooch.os_cache("symsvm"))


def load(name: str) -> DataSet:
    """Load a named data set from `data_home()`.

    A file that is missing is downloaded from the set's own site and checked.

    Parameters
    ----------
    name : str
        A name of `symsvm.data.SETS`, such as "svmguide1".

    Returns
    -------
    DataSet
        The tuple (X, y, X_test, y_test). X is an array, CSR for "a9a", pixels from 0 to 255 for "mnist", a list of
        texts for "20news".
    """
    entry = SETS[choice(name, "name", tuple(SETS))]
    train = [_locate(file) for file in entry.train]
    test = [_locate(file) for file in entry.test]
    if entry.kind == "posts":
        return _read_posts(train[0])
    return DataSet(*_read_points(train, entry), *(_read_points(test, entry) if test else (None, None)))


def _locate(file: str) -> Path:
    """The path of a file, downloaded if it is missing."""
    url, sha256 = FILES[file]
    path = data_home() / file
    if path.is_file():
        return path
    if url is None:
        raise DownloadError(
            f"{path} does not exist, and cannot be downloaded as it is: get {file.removesuffix('_scale')} from "
            f"{_LIBSVM}, scale it to [-1, 1] and write it to that file."
        )
    return download(url, sha256, path)


def _read_points(files: Sequence[Path], entry: DataSetEntry) -> tuple[Any, np.ndarray]:
    if entry.kind == "idx":
        images, labels = map(read_idx, files)
        return images.reshape(len(images), -1), labels
    X, y = read_libsvm(files[0], n_features=entry.n_features)
    return (X if entry.kind == "sparse" else X.toarray()), y


def _read_posts(path: Path) -> DataSet:
    """The texts of the folders train and test, labelled with their newsgroups."""
    parts = {"train": ([], []), "test": ([], [])}
    with tarfile.open(path) as archive:
        for member in archive:
            folder, *rest = member.name.removeprefix("./").split("/")
            part = parts.get(folder.rpartition("-")[2])
            if part is not None and len(rest) == 2 and member.isfile() and (file := archive.extractfile(member)):
                part[0].append(file.read().decode("latin-1"))
                part[1].append(rest[0])
    (X, y), (X_test, y_test) = parts.values()
    return DataSet(X, np.array(y), X_test, np.array(y_test))


# ---- downloads


def download(url: str, sha256: str, target: str | os.PathLike[str]) -> Path:
    """Download `url` to the path `target` unless it exists; only a file with the right SHA-256 gets that name."""
    target = Path(target)
    if target.is_file():
        return target
    advice = f"download it by hand to {target}, or set SYMSVM_DATA to a directory that holds it"
    try:
        import pooch
        import requests
    except ImportError:
        raise DownloadError(
            f"{target} does not exist, and downloads need pooch: pip install pooch, or {advice}."
        ) from None
    try:
        with _without_log_lines():
            downloader: Any = ResumingDownloader(target)
            pooch.retrieve(url, f"sha256:{sha256}", target.name, target.parent, downloader=downloader)
    except requests.HTTPError as error:
        response: Any = error.response
        answer = f"{response.status_code} {response.reason}".strip()
        raise DownloadError(f"{url} answered {answer!r}: {advice}.") from None
    except requests.RequestException as error:
        cut_off = isinstance(error, requests.exceptions.ChunkedEncodingError)
        reason = "the server sent fewer bytes than announced" if cut_off else "no connection"
        raise DownloadError(f"{url} could not be downloaded ({reason}): try again, or {advice}.") from None
    except ValueError:  # pooch found another checksum
        raise DataError(url, f"the download is damaged, its SHA-256 is not {sha256}: try again, or {advice}.") from None
    except OSError as error:
        raise DownloadError(f"{target} cannot be written ({error.strerror or error}): {advice}.") from None
    return target


class ResumingDownloader:
    """A downloader for pooch that stores what has arrived beside the target (.part) and requests only the rest."""

    def __init__(self, target: Path) -> None:
        self.part = Path(f"{target}.part")

    def __call__(self, url: str, output_file: str, pooch: object) -> None:
        """Download `url` to `output_file`; a server that cannot resume sends all of it again."""
        import requests

        for attempt in range(_ATTEMPTS):
            before = self._size()
            try:
                self._receive(url, before)
                break
            except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError, requests.Timeout):
                # Resume as long as each attempt brings some bytes.
                if attempt + 1 == _ATTEMPTS or self._size() <= before:
                    raise
        os.replace(self.part, output_file)

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def _receive(self, url: str, start: int) -> None:
        import requests

        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUTS) as response:
            if start and response.status_code == 416:  # no bytes are left; pooch checks the SHA-256
                return
            response.raise_for_status()
            resumed = response.status_code == 206 and response.headers.get("Content-Range", "").startswith(
                f"bytes {start}-"
            )
            start = start if resumed else 0
            length = response.headers.get("Content-Length")
            total = start + int(length) if length else None
            with open(self.part, "ab" if resumed else "wb") as file, _progress_bar(url, start, total) as bar:
                for chunk in response.iter_content(_CHUNK_BYTES):
                    file.write(chunk)
                    bar.update(len(chunk))


def _progress_bar(url: str, start: int, total: int | None) -> Any:
    from tqdm import tqdm

    name = url.rsplit("/", 1)[-1]
    return tqdm(desc=name, initial=start, total=total, unit="B", unit_scale=True, file=sys.stderr, disable=None)


@contextlib.contextmanager
def _without_log_lines() -> Iterator[None]:
    """Hide the lines that pooch logs beside the progress bar."""
    import pooch

    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
