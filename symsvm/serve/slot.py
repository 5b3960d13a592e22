"""ModelSlot: the model that is served, and its replacement when the file changes."""

import asyncio
import ctypes
import hashlib
import logging
import os
import stat
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from symsvm.io.models import load
from symsvm.serve.description import describe
from symsvm.serve.served import Served

__all__ = ["Loaded", "ModelSlot", "read_model"]

log = logging.getLogger("symsvm.serve")


@dataclass(frozen=True)
class Loaded:
    """A model that was read from a file: `digest` names its bytes."""

    served: Served
    digest: str
    description: dict


def read_model(path, settings):
    """Read a model file, checked but not yet tried."""
    before = _stamp(path)
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(f"{path} is no regular file")  # a pipe would be waited for, for ever
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    served = Served(load(path, trusted=settings.trusted, n_features=settings.n_features))
    if _stamp(path) != before:
        raise OSError(f"{path} changed while it was read")
    about = {"digest": digest, "loaded": datetime.now(UTC).isoformat(timespec="seconds")}
    return Loaded(served, digest, about | describe(served))


def _stamp(path):
    """What changes when a file does; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


def _give_back():
    """Give the memory of the old model back to the system: glibc keeps a tenth of the process else."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none
        if trim is not None:
            trim(0)


class ModelSlot:
    """Holds one `Loaded`, and watches the file that it is from.

    A changed file is read in a thread of its own, and tried in the thread of the predictions, which share compiled
    functions with it; then it takes the place of the old one. Requests that have begun end with the model that they
    began with. A file that cannot be read, whose trial fails or whose requests would look otherwise leaves the old
    model where it is.

    Attributes
    ----------
    current : the `Loaded` model.
    stale : whether the file has changed and was refused, or has gone.
    message : a sentence about that, without the reason, which is for the log.
    """

    def __init__(self, path, settings, metrics):
        self.path, self.settings, self.metrics = Path(os.fspath(path)), settings, metrics
        self.stale, self.message = False, None
        self._seen = _stamp(self.path)
        self.current = read_model(self.path, settings)
        self.current.served.try_out()
        metrics.serving(self.current.digest, self.current.description)

    async def watch(self, executor):
        """Look at the file again and again, until cancelled; a change counts when it has come to rest."""
        before = self._seen
        while True:
            await asyncio.sleep(self.settings.reload)
            stamp = await asyncio.to_thread(_stamp, self.path)
            if stamp == before != self._seen:
                self._seen = stamp
                await self._replace(executor)
            before = stamp

    async def _replace(self, executor):
        started = time.perf_counter()
        try:
            found = await asyncio.to_thread(read_model, self.path, self.settings)
            if found.digest == self.current.digest:
                return self._settle(False, None)
            if not found.served.replaces(self.current.served):
                raise TypeError("requests to the new model would look different: stop the service and start it again")
            await asyncio.get_running_loop().run_in_executor(executor, found.served.try_out)
        except Exception as error:  # whatever is wrong with the new file, the old model goes on
            self.metrics.reloads.labels("refused").inc()
            log.error("the changed model file is refused, the old model goes on: %s", error)
            return self._settle(True, "the model file has changed and was refused; the log says why.")
        self.current = found
        self.metrics.reloads.labels("replaced").inc()
        self.metrics.serving(found.digest, found.description)
        log.info("model %s replaces the old one after %.2f s", found.digest[:12], time.perf_counter() - started)
        self._settle(False, None)
        return await asyncio.to_thread(_give_back)

    def _settle(self, stale, message):
        self.stale, self.message = stale, message
        self.metrics.stale.set(stale)
