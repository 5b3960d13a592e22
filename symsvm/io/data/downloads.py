"""Downloads through pooch: checked by SHA-256, resumed where they were cut off, with a bar on a terminal."""

import contextlib
import logging
import os
import sys
from pathlib import Path

from symsvm.io.data.errors import DataError

__all__ = ["DownloadError", "Resumed", "download"]

_ATTEMPTS = 3
_PIECE = 1 << 16


class DownloadError(OSError):
    """A file that could not be downloaded: from where, why, and what to do."""


def download(url, sha256, target):
    """Download `url` to the path `target`, unless it is there; only a file with the right SHA-256 gets that name."""
    target = Path(target)
    if target.is_file():
        return target
    help_ = f"download it by hand to {target}, or set SYMSVM_DATA to a directory that holds it"
    try:
        import pooch
        import requests
    except ImportError:
        raise DownloadError(
            f"{target} does not exist, and downloads need pooch: pip install pooch, or {help_}."
        ) from None
    try:
        with _quiet():
            pooch.retrieve(url, f"sha256:{sha256}", target.name, target.parent, downloader=Resumed(target))
    except requests.HTTPError as error:
        answer = f"{error.response.status_code} {error.response.reason}".strip()
        raise DownloadError(f"{url} answered {answer!r}: {help_}.") from None
    except requests.RequestException as error:
        reason = "it sent less than it promised" if _cut(error) else "offline?"
        raise DownloadError(f"{url} could not be downloaded ({reason}): try again, or {help_}.") from None
    except ValueError:  # pooch compared the checksums
        raise DataError(
            url, f"what arrived is damaged, for its SHA-256 is not {sha256}: try again, or {help_}."
        ) from None
    except OSError as error:
        raise DownloadError(f"{target} cannot be written ({error.strerror or error}): {help_}.") from None
    return target


class Resumed:
    """A downloader for pooch that keeps what has arrived beside the target (.part) and asks for the rest only."""

    def __init__(self, target):
        self.part = Path(f"{target}.part")

    def __call__(self, url, output_file, pooch):
        """Download `url` to `output_file`; a server that cannot resume sends all of it again."""
        import requests

        for attempt in range(_ATTEMPTS):
            before = self._there()
            try:
                self._receive(url, before)
                break
            except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError, requests.Timeout):
                # Go on where it broke off, as long as each attempt brings something.
                if attempt + 1 == _ATTEMPTS or self._there() <= before:
                    raise
        os.replace(self.part, output_file)

    def _there(self):
        return self.part.stat().st_size if self.part.is_file() else 0

    def _receive(self, url, start):
        import requests

        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        with requests.get(url, headers=headers, stream=True, timeout=(10, 60)) as response:
            if start and response.status_code == 416:  # nothing follows: all is there, as the checksum will tell
                return
            response.raise_for_status()
            resumed = response.status_code == 206 and response.headers.get("Content-Range", "").startswith(
                f"bytes {start}-"
            )
            start = start if resumed else 0
            length = response.headers.get("Content-Length")
            total = start + int(length) if length else None
            with open(self.part, "ab" if resumed else "wb") as file, _bar(url, start, total) as bar:
                for piece in response.iter_content(_PIECE):
                    file.write(piece)
                    bar.update(len(piece))


def _bar(url, start, total):
    from tqdm import tqdm

    name = url.rsplit("/", 1)[-1]
    return tqdm(desc=name, initial=start, total=total, unit="B", unit_scale=True, file=sys.stderr, disable=None)


def _cut(error):
    """Say whether a connection that stood broke off."""
    import requests

    return isinstance(error, requests.exceptions.ChunkedEncodingError)


@contextlib.contextmanager
def _quiet():
    """Without the lines that pooch logs beside the bar."""
    import pooch

    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
