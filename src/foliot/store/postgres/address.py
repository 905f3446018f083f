"""Where a database is said to be: the first connection to it, and what to check when there is none."""

import os
import ssl
from urllib.parse import parse_qs, unquote, urlsplit

from asyncpg import exceptions as pg

from foliot.domain.errors import Unavailable
from foliot.store.postgres.connections import LOST, Connection, connect

_SETTING = "--database (or FOLIOT_DATABASE)"


async def reach(url: str) -> Connection:
    """A connection to a database that was not seen before. `Unavailable` tells where it was looked for, never the
    password: only who starts a node reads it, so it may name the place."""
    try:
        return await connect(url)
    except (*LOST, pg.PostgresError, ValueError) as error:
        raise Unavailable(_advice(url, error)) from error


def _advice(url: str, error: Exception) -> str:
    if "@" in urlsplit(url).path:  # what is taken for the host would be the user and a piece of the password
        return _unusable("it has an @ behind a /")
    place, name = _place(url), _name(url)
    said = str(error) or "no answer in time"
    match error:
        case pg.InvalidCatalogNameError():
            return f"PostgreSQL at {place} has no database {name}: create it, or name another one with {_SETTING}."
        case pg.InvalidAuthorizationSpecificationError():
            return f"PostgreSQL at {place}, database {name}: {said}. Check the user and the password in {_SETTING}."
        case pg.CannotConnectNowError() | pg.TooManyConnectionsError():
            return f"PostgreSQL at {place}, database {name}, takes no connection now: {said}. Try again shortly."
        case ssl.SSLCertVerificationError():  # a ValueError, too
            reason = error.verify_message.rstrip(".")
            return f"PostgreSQL at {place} is not trusted: {reason}. Check the host and sslrootcert in {_SETTING}."
        case FileNotFoundError() if "ssl" in urlsplit(url).query:
            return f"A file that sslrootcert, sslcert or sslkey names is not there. They are set in {_SETTING}."
        case ValueError() | pg.ClientConfigurationError():
            return _unusable(_without_secrets(url, said))
        case pg.PostgresError():
            return f"PostgreSQL at {place}, database {name}, refuses the connection: {said}. Check {_SETTING}."
    if urlsplit(url).netloc.count("@") > 1:
        return _unusable("it has more than one @")
    if isinstance(error, ConnectionError) and error.errno:
        said = os.strerror(error.errno)
    return (
        f"No PostgreSQL answers at {place} (for database {name}): {said}. "
        f"Is it running there, and is the address right? It is set with {_SETTING}."
    )


def _unusable(why: str) -> str:
    return (
        f"The database's address can not be used: {why}. Give postgresql://user:password@host:port/name with "
        f"{_SETTING}; within a part write %40 for @, %3A for :, %2F for /."
    )


def _place(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2] or parse_qs(parts.query).get("host", ["the default host"])[0]
    named_port = ":" in host.rpartition("]")[2]
    return host if named_port or host.startswith("/") else f"{host}:{parse_qs(parts.query).get('port', ['5432'])[0]}"


def _name(url: str) -> str:
    return repr(unquote(urlsplit(url).path.strip("/")) or "of the user's name")


def _without_secrets(url: str, said: str) -> str:
    """A parser may quote the part that it stumbled over, which may be a piece of the password."""
    return "it can not be taken apart" if "@" in url or "password" in url else said
