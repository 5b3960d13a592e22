"""The settings of the service: limits, timeouts and access."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from symsvm._lib.validation import count, number

__all__ = ["Settings"]

# Defaults that depend on other settings: largest bodies held at once, largest requests that wait.
_BODIES, _REQUESTS = 16, 2


@dataclasses.dataclass(frozen=True)
class Settings:
    """Limits, timeouts and access rules of a service.

    Parameters
    ----------
    token : str or None
        The token that `Authorization: Bearer` must carry. None lets everybody in.
    hosts : sequence of str
        Values of the `Host` header that are accepted, without the port. Empty accepts every value.
    max_body : int
        Largest body of a request, in bytes.
    max_bodies : int or None
        Largest total of the bodies of all requests in progress, in bytes. Bodies of up to 1/64 `max_body` are read even
        if it is used up. None means 16 times `max_body`.
    max_rows : int
        Largest number of texts or rows in a request.
    max_waiting : int or None
        Largest number of rows that wait for the model. More are refused with status 503. None means twice `max_rows`.
    max_batch : int
        Largest number of rows that are predicted together. A text counts as one row more for each 1024 characters.
    max_connections : int
        Largest number of open connections. Requests on more are refused with status 503; beyond three times as many,
        connections are closed at once.
    max_headers : int
        Largest size of a request's headers, in bytes.
    header_timeout : float
        Seconds within which the headers of a request must arrive.
    body_timeout : float
        Seconds within which the body must arrive, and within which the client must read the response.
    keep_alive : float
        Seconds after which an idle connection is closed.
    shutdown_timeout : float
        Seconds that requests in progress have to finish after SIGTERM. What takes longer gets status 503.
    reload : float
        Seconds between two checks of the model file for changes. 0 reads the file only once.
    trusted : sequence of str
        Passed to `symsvm.load`.
    n_features : int or None
        Passed to `symsvm.load`.

    Examples
    --------
    >>> Settings(max_rows=100).max_rows
    100
    """

    token: str | None = dataclasses.field(default=None, repr=False)
    hosts: Sequence[str] = ()
    max_body: int = 4 * 2**20
    max_bodies: int | None = None
    max_rows: int = 10_000
    max_waiting: int | None = None
    max_batch: int = 256
    max_connections: int = 1000
    max_headers: int = 32 * 2**10
    header_timeout: float = 10.0
    body_timeout: float = 15.0
    keep_alive: float = 5.0
    shutdown_timeout: float = 15.0
    reload: float = 1.0
    trusted: Sequence[str] = ()
    n_features: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_body", "max_rows", "max_batch"):
            count(getattr(self, name), name, least=1)
        if self.max_bodies is None:
            object.__setattr__(self, "max_bodies", _BODIES * self.max_body)  # as frozen dataclasses do themselves
        if self.max_waiting is None:
            object.__setattr__(self, "max_waiting", _REQUESTS * max(self.max_rows, self.max_batch))
        for name in ("max_bodies", "max_waiting", "max_connections", "max_headers"):
            count(getattr(self, name), name, least=1)
        for name in ("header_timeout", "body_timeout", "keep_alive", "shutdown_timeout"):
            number(getattr(self, name), name, positive=True)
        number(self.reload, "reload")
        if self.reload < 0:
            raise ValueError(f"reload must be a number of seconds, or 0 to read the file once, got {self.reload!r}.")
        if isinstance(self.hosts, str) or not all(isinstance(host, str) and host for host in self.hosts):
            raise ValueError(f"hosts must be a list of names or addresses, got {self.hosts!r}.")
        if self.token is not None and (not isinstance(self.token, str) or not _is_token(self.token)):
            raise ValueError("token must be one or more printable ASCII characters without spaces.")
        assert self.max_bodies is not None
        assert self.max_waiting is not None
        if self.max_bodies < self.max_body:
            raise ValueError(f"max_bodies must be at least max_body, {self.max_body}, got {self.max_bodies}.")
        if self.max_waiting < self.max_batch:
            raise ValueError(f"max_waiting must be at least max_batch, {self.max_batch}, got {self.max_waiting}.")


def _is_token(text: str) -> bool:
    return text.isascii() and text.isprintable() and bool(text) and " " not in text
