"""`sslmode=verify-full` to PostgreSQL, and the word of warning where something weaker is used over a network.

The PostgreSQL of the test run may be built without TLS, so a door that speaks it, as PostgreSQL does, stands in front.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from foliot.domain.errors import Unavailable
from foliot.main.database_transit import warn_of_open_transit
from foliot.main.stores import make_store, migrate_store
from tests.main.certificates import Authority

SSL_REQUEST = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"


class TlsDoor:
    """In front of the server at an address; takes only connections that ask for TLS."""

    def __init__(self, url: str, pair: tuple[Path, Path]) -> None:
        self._address = urlsplit(url)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*pair)
        self.secured = 0
        self._inside: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]

    def url(self, query: str) -> str:
        user = self._address.username or "postgres"
        return f"postgresql://{user}@127.0.0.1:{self._port}{self._address.path}?{query}"

    async def close(self) -> None:
        """Once everybody who came in has gone."""
        self._server.close()
        while self._inside:
            await asyncio.wait(self._inside)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        me = asyncio.current_task()
        assert me is not None
        self._inside.add(me)
        me.add_done_callback(self._inside.discard)
        inner = await asyncio.open_connection(self._address.hostname, self._address.port)
        ways: list[asyncio.Task[None]] = []
        try:
            if await reader.readexactly(8) == SSL_REQUEST:
                writer.write(b"S")
                await writer.drain()
                await writer.start_tls(self._context)
                self.secured += 1
                ways = [asyncio.create_task(_copy(*way)) for way in ((reader, inner[1]), (inner[0], writer))]
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except OSError:  # who does not trust the certificate goes
            pass
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for each in (writer, inner[1]):
                each.close()
                with contextlib.suppress(OSError):
                    await each.wait_closed()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        target.write(data)
        await target.drain()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "ours")


@pytest.fixture
async def door(database_url: str, authority: Authority, request: pytest.FixtureRequest) -> AsyncIterator[TlsDoor]:
    """Its certificate has the name that the parameter gives, else the right one."""
    door = TlsDoor(database_url, authority.node(getattr(request, "param", "127.0.0.1")))
    await door.open()
    yield door
    await door.close()


async def test_a_store_works_over_verify_full(door: TlsDoor, authority: Authority) -> None:
    url = door.url(f"sslmode=verify-full&sslrootcert={authority.file}")
    await migrate_store(url)
    store = make_store(url)
    await store.open()
    await store.close()
    assert door.secured >= 2


@pytest.mark.parametrize("door", ["elsewhere.example"], indirect=True)
async def test_a_server_of_another_name_is_refused(door: TlsDoor, authority: Authority) -> None:
    with pytest.raises(Unavailable, match="is not trusted: IP address mismatch"):
        await migrate_store(door.url(f"sslmode=verify-full&sslrootcert={authority.file}"))


async def test_a_server_that_another_authority_vouches_for_is_refused(door: TlsDoor, tmp_path: Path) -> None:
    other = Authority(tmp_path, "theirs")
    with pytest.raises(Unavailable, match=r"is not trusted: (unable to get local issuer|self.signed)"):
        await migrate_store(door.url(f"sslmode=verify-full&sslrootcert={other.file}"))


async def test_a_server_without_tls_is_refused(database_url: str, authority: Authority) -> None:
    with pytest.raises(Unavailable):
        await migrate_store(f"{database_url}?sslmode=verify-full&sslrootcert={authority.file}")


async def test_an_authority_that_is_not_there_is_told(database_url: str) -> None:
    with pytest.raises(Unavailable, match="sslrootcert"):
        await migrate_store(f"{database_url}?sslmode=verify-full&sslrootcert=no-such.pem")


@pytest.mark.parametrize(
    ("url", "environ", "mode"),
    [
        ("postgresql://me:secret@db.example/foliot", {}, "prefer"),
        ("postgresql://me:secret@db.example/foliot?sslmode=require", {}, "require"),
        ("postgresql://me:secret@db.example/foliot?sslmode=verify-ca", {}, "verify-ca"),
        ("postgresql://me:secret@db.example/foliot", {"PGSSLMODE": "disable"}, "disable"),
        ("postgresql://me:secret@127.0.0.1,db.example:5433/foliot", {}, "prefer"),
        ("postgresql://me:secret@[2001:db8::1]:5432/foliot", {}, "prefer"),
        ("postgresql:///foliot?host=db.example&password=secret", {}, "prefer"),
        ("postgresql:///foliot", {"PGHOST": "db.example"}, "prefer"),
    ],
)
def test_a_database_elsewhere_that_is_not_fully_checked_is_warned_of(
    url: str, environ: dict[str, str], mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "foliot"):
        warn_of_open_transit(url, environ)
    (told,) = caplog.messages
    assert f"sslmode is {mode}:" in told
    assert "sslmode=verify-full&sslrootcert=" in told
    assert "secret" not in told


@pytest.mark.parametrize(
    ("url", "environ"),
    [
        ("sqlite:///foliot.db", {}),
        ("postgresql://me@db.example/foliot?sslmode=verify-full&sslrootcert=ca.pem", {}),
        ("postgresql://me@db.example/foliot", {"PGSSLMODE": "verify-full"}),
        ("postgresql://me@127.0.0.1/foliot", {}),
        ("postgresql://me@localhost:5433/foliot", {}),
        ("postgresql://me@[::1]:5432/foliot", {}),
        ("postgresql:///foliot", {}),
        ("postgresql:///foliot?host=/var/run/postgresql", {}),
        ("postgresql://%2Fvar%2Frun%2Fpostgresql/foliot", {}),
    ],
)
def test_of_others_it_is_not(url: str, environ: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "foliot"):
        warn_of_open_transit(url, environ)
    assert caplog.messages == []
