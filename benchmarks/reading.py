"""Readers of data files beside those of scikit-learn, pandas, polars and NumPy, in one run.

    SYMSVM_DATA=DIRECTORY python benchmarks/reading.py [--turns 7]

The readers take turns, and the best turn of each counts; loops are compiled and memory is touched before. `ratio` is
the time of a reader divided by that of symsvm. The tables are random, with 5 digits, which is common, and with the 17
that float64 needs.
"""

import argparse
import gzip
import struct
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas
import polars
from sklearn.datasets import load_svmlight_file

from symsvm.data import data_home, read, write


def seconds(readers, path, turns):
    """Return the best time of each reader; the readers take turns."""
    best = dict.fromkeys(readers, np.inf)
    for turn in range(turns + 1):
        for name, reader in readers.items():
            start = time.perf_counter()
            reader(path)
            if turn:
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def plain_idx(path):
    """Read IDX in a few lines of NumPy."""
    with gzip.open(path) as file:
        m = struct.unpack(">4I", file.read(16))[1]
        return np.frombuffer(file.read(), dtype="uint8").reshape(m, -1)


def table(path, digits):
    """Write a random table of 20000 points with 30 features and labels; return its path."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20000, 30))
    write(path, X.round(5) if digits == 5 else X, rng.integers(0, 2, 20000), header=[f"x{j}" for j in range(31)])
    return path


def main():
    """Print a line for each file and reader."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=7)
    turns = parser.parse_args().turns
    np.ones(1 << 27)  # the first access to a page is slow
    tables = {
        "symsvm": lambda path: read(path, -1),
        "pandas": lambda path: pandas.read_csv(path).to_numpy(),
        "polars": lambda path: polars.read_csv(path).to_numpy(),
        "NumPy": lambda path: np.loadtxt(path, delimiter=",", skiprows=1),
    }
    text = {"symsvm": read, "scikit-learn": lambda path: load_svmlight_file(str(path))}
    images = {"symsvm": read, "gzip and frombuffer": plain_idx}
    with tempfile.TemporaryDirectory() as folder:
        cases = [(data_home() / name, text) for name in ("a9a", "cadata_scale", "svmguide3")]
        cases += [(data_home() / "mnist" / "train-images-idx3-ubyte.gz", images)]
        cases += [(table(Path(folder) / f"{digits} digits.csv", digits), tables) for digits in (5, 17)]
        print(f"{'file':28} {'MB':>6}  {'reader':20} {'ms':>8} {'ratio':>6}")
        for path, readers in cases:
            if not path.is_file():
                print(f"{path.name:28} is skipped: it is not in {path.parent}")
                continue
            best = seconds(readers, path, turns)
            for name, spent in best.items():
                size = path.stat().st_size / 1e6
                print(f"{path.name:28} {size:6.1f}  {name:20} {1e3 * spent:8.1f} {spent / best['symsvm']:6.1f}")


if __name__ == "__main__":
    main()
