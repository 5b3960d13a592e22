"""Checkpoints: the point of a long run, written to a file from time to time, from which another process goes on."""

from __future__ import annotations

import hashlib
import os
import time
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from symsvm._lib.atomic_write import atomic_write
from symsvm._lib.validation import number

if TYPE_CHECKING:
    from symsvm._lib.types import Array, Path
    from symsvm.objectives import QuadraticProgram

__all__ = ["Checkpoint"]


class Checkpoint:
    """The points of the problems of a fit, in an .npz file of numbers only; it replaces the last one in one step.

    A file that is there is gone on from: its problems must be the same, with the same bounds and targets.

    Parameters
    ----------
    path : str or path-like
        The file, which ends in .npz.
    every : float
        Seconds between two of them. One is also written at the end of each problem.

    Examples
    --------
    >>> Checkpoint("run.txt")
    Traceback (most recent call last):
    ValueError: path must end in .npz, got 'run.txt'.
    """

    def __init__(self, path: Path, every: float = 60.0) -> None:
        self.path, self.every = os.fspath(path), number(every, "every")
        if not self.path.endswith(".npz"):
            raise ValueError(f"path must end in .npz, got {self.path!r}.")
        self._entries: dict[str, Array] = _read(self.path) if os.path.exists(self.path) else {}
        self._last = time.monotonic()

    def start(self, problem: int, program: QuadraticProgram) -> Array | None:
        """Return the point that a problem goes on from.

        Parameters
        ----------
        problem : int
            Its number in the fit.
        program : QuadraticProgram
            The problem.

        Returns
        -------
        array or None
            The point, None if the file has none.
        """
        self._problem, self._digest, self._n = problem, _digest(program), program.n
        if f"digest_{problem}" not in self._entries:
            return None
        if not np.array_equal(self._entries[f"digest_{problem}"], self._digest):
            raise ValueError(
                f"{self.path} is a checkpoint of another problem: other targets, weights or bounds. Give another file, "
                "or remove this one."
            )
        z = np.zeros(program.n)
        z[self._entries[f"index_{problem}"]] = self._entries[f"value_{problem}"]
        return z

    def iteration(self, problem: int = 0) -> int:
        """Return how many iterations led to the point of a problem.

        Parameters
        ----------
        problem : int
            Its number.

        Returns
        -------
        int
            The iterations, 0 if there is no point.
        """
        return int(self._entries.get(f"iteration_{problem}", 0))

    def note(self, z: Array, iteration: int, *, is_end: bool = False) -> None:
        """Write the point of the present problem, if it is time.

        Parameters
        ----------
        z : array
            The point.
        iteration : int
            The iterations of this run.
        is_end : bool
            Whether it is the last one of the problem.
        """
        if not is_end and time.monotonic() - self._last < self.every:
            return
        index = np.flatnonzero(z)
        new = {"digest": self._digest, "index": index, "value": z[index], "iteration": np.array(iteration)}
        self._entries |= {f"{name}_{self._problem}": value for name, value in new.items()}
        with atomic_write(self.path) as file:
            np.savez(file, **self._entries)  # pyright: ignore[reportArgumentType]
        self._last = time.monotonic()


def _digest(program: QuadraticProgram) -> Array:
    """A number for what a program is, without its kernel matrix."""
    found = hashlib.sha256()
    for array in (program.p, program.lower, program.upper, program.diagonal, program.group, program.total):
        found.update(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(found.digest(), "uint8")


def _read(path: str) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not a checkpoint ({error}): remove it, or give another file.") from None
