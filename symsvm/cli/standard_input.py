"""StandardInput: what comes in on stdin, as a file that may be read more than once."""

import functools
import os
import shutil
import sys
import tempfile

from symsvm.cli.errors import BadData

__all__ = ["StandardInput"]


class StandardInput(os.PathLike):
    """A copy of stdin, made when it is first asked for and kept while a command runs; sentences call it by its name."""

    name = "standard input"

    def __init__(self, ctx):
        self._ctx = ctx

    @functools.cached_property
    def _path(self):
        if sys.stdin is None:
            raise BadData("standard input is closed.")
        directory = self._ctx.with_resource(tempfile.TemporaryDirectory(prefix="symsvm-"))
        path = os.path.join(directory, self.name)
        with open(path, "wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        return path

    def __fspath__(self):
        return self._path

    def __str__(self):
        return self.name
