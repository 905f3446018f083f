"""TLS as a client speaks it: whom it trusts, and the certificate that it shows.

Certificates are renewed while programs run, so what is made of files is made anew when they change.
"""

import logging
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from foliot.domain.errors import FoliotError

T = TypeVar("T")
Stamp = tuple[tuple[int, int, int] | None, ...]

_log = logging.getLogger("foliot.tls")


class UnusableFiles(FoliotError):
    """Certificates or a key that can not be used; the message names the files and what is wrong with them."""


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """PEM files. Without `ca_file` those are trusted whom the system trusts."""

    ca_file: str = ""
    client_cert: str = ""
    client_key: str = ""


def find_trust(environ: Mapping[str, str] = os.environ) -> Trust:
    """What a program that says nothing else trusts and shows."""
    return Trust(
        ca_file=environ.get("FOLIOT_CA_FILE", ""),
        client_cert=environ.get("FOLIOT_CLIENT_CERT", ""),
        client_key=environ.get("FOLIOT_CLIENT_KEY", ""),
    )


class Reloaded(Generic[T]):
    """What `make` makes of files. `current` looks at the files, and where one has changed makes it anew; where the new
    ones can not be used the log tells once, and the old value stays. The first ones must be good: raises
    `UnusableFiles`."""

    def __init__(self, files: Sequence[str], make: Callable[[], T]) -> None:
        self._files = tuple(filter(None, files))
        self._make = make
        self._stamp = self._look()
        self._value = self._try()

    def current(self) -> T:
        found = self._look()
        if found != self._stamp:
            self._stamp = found
            try:
                self._value = self._try()
                _log.info("%s changed: what is there now is used from the next connection on", " or ".join(self._files))
            except UnusableFiles as error:
                _log.error("%s. What was there before stays in use", error)
        return self._value

    def _try(self) -> T:
        try:
            return self._make()
        except (OSError, ValueError) as error:  # ssl's errors are among these
            raise UnusableFiles(f"{' and '.join(self._files)} can not be used: {_reason(error)}") from None

    def _look(self) -> Stamp:
        return tuple(map(_stamp, self._files))


class ClientTls:
    """What a connection to an `https` address needs. Raises `UnusableFiles` where the first files are no good."""

    def __init__(self, trust: Trust) -> None:
        self._files: Reloaded[ssl.SSLContext] | None = None
        if trust != Trust():
            files = (trust.ca_file, trust.client_cert, trust.client_key)
            self._files = Reloaded(files, lambda: _client_context(trust))

    @property
    def context(self) -> ssl.SSLContext | None:
        """None where the system's certificates are trusted and none is shown: every client library's default."""
        return None if self._files is None else self._files.current()


def tls_for(url: str, trust: Trust | None = None) -> ClientTls | None:
    """For a node at `url`; None where that is not reached over TLS."""
    if not url.lower().startswith("https:"):
        return None
    return ClientTls(find_trust() if trust is None else trust)


def load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Like the library's, but never asks a terminal for a password."""
    context.load_cert_chain(certificate, key, password=_no_password)


def _client_context(trust: Trust) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=trust.ca_file or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if trust.client_cert:
        load_pair(context, trust.client_cert, trust.client_key or trust.client_cert)
    return context


def _no_password() -> str:
    raise ValueError("the key is encrypted; give one that is not, readable by its user only")


def _stamp(file: str) -> tuple[int, int, int] | None:
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _reason(error: Exception) -> str:
    match error:
        case ssl.SSLError(reason="KEY_VALUES_MISMATCH"):
            return "the key is not that of the certificate"
        case ssl.SSLError():
            return "one of them is not PEM, or not what it is to be"
        case OSError(errno=int(number)):
            return os.strerror(number).lower()
        case _:
            return str(error)
