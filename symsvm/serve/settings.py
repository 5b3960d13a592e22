"""Settings: the limits of the service, and who may use it."""

import dataclasses

from symsvm._lib.validation import count, number

__all__ = ["Settings"]

_COUNTS = ("max_bodies", "max_waiting", "max_connections", "max_headers")
_SECONDS = ("header_timeout", "body_timeout", "keep_alive", "shutdown_timeout")


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a service allows.

    Attributes
    ----------
    token : what `Authorization: Bearer` must say, None for everybody.
    hosts : what `Host` may say, without the port; empty for anything.
    max_body : bytes of a request's body.
    max_bodies : bytes of the bodies of all requests that are being answered; None for 16 times `max_body`.
    max_rows : texts or rows of a request.
    max_waiting : rows that may wait for the model, what comes on top is sent away with 503; None for twice `max_rows`.
    max_batch : rows that are predicted together; a text counts once more for each 1024 characters.
    max_connections : open connections.
    max_headers : bytes of a request's headers.
    header_timeout, body_timeout : seconds until a request's headers, and then its body, must be there; a response must
        be taken in the seconds of a body.
    keep_alive : seconds that an idle connection is kept.
    shutdown_timeout : seconds that requests have to end after SIGTERM.
    reload : seconds between two looks at the model file, 0 to read it only once.
    trusted, n_features : of `symsvm.load`.

    >>> Settings(max_rows=100).max_rows
    100
    """

    token: str | None = dataclasses.field(default=None, repr=False)
    hosts: tuple = ()
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
    trusted: tuple = ()
    n_features: int | None = None

    def __post_init__(self):
        for name in ("max_body", "max_rows", "max_batch"):
            count(getattr(self, name), name, least=1)
        for name, most in (("max_bodies", 16 * self.max_body), ("max_waiting", 2 * max(self.max_rows, self.max_batch))):
            if getattr(self, name) is None:
                object.__setattr__(self, name, most)  # as frozen dataclasses do themselves
        for name in _COUNTS:
            count(getattr(self, name), name, least=1)
        for name in _SECONDS:
            number(getattr(self, name), name, positive=True)
        number(self.reload, "reload")
        if self.reload < 0:
            raise ValueError(f"reload must be a number of seconds, 0 for never, got {self.reload!r}.")
        if isinstance(self.hosts, str) or not all(isinstance(host, str) and host for host in self.hosts):
            raise ValueError(f"hosts must be a list of names or addresses, got {self.hosts!r}.")
        if self.token is not None and (not isinstance(self.token, str) or not _is_token(self.token)):
            raise ValueError("token must be one or more printable ASCII characters without spaces.")
        if self.max_bodies < self.max_body:
            raise ValueError(f"max_bodies must be at least max_body, {self.max_body}, got {self.max_bodies}.")
        if self.max_waiting < self.max_batch:
            raise ValueError(f"max_waiting must be at least max_batch, {self.max_batch}, got {self.max_waiting}.")


def _is_token(text):
    return text.isascii() and text.isprintable() and bool(text) and " " not in text
