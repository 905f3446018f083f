"""Notices go out through the real Apprise, to a real server, and nowhere else."""

import asyncio
import logging
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from foliot.alerts import BadChannel, Sender, Words
from foliot.alerts.guard import Guard, guarded
from foliot.alerts.sender import without_secrets
from foliot.outbound import AllowList
from tests.alerts.receiver import Receiver

WORDS = Words(title="Jobs of mail/send fail", body="Since noon.\nLook.", tone="failure")


@asynccontextmanager
async def sender(allow: str = "", seconds: float = 15) -> AsyncIterator[Sender]:
    made = Sender(AllowList.parse(allow), seconds=seconds)
    yield made
    made.close()


async def test_a_notice_arrives_with_its_title_and_its_words(receiver: Receiver) -> None:
    async with sender(receiver.allow) as out:
        assert await out.send(receiver.url, WORDS) is None
    (notice,) = receiver.notices
    assert (notice["title"], notice["message"], notice["type"]) == (WORDS.title, WORDS.body, "failure")


async def test_an_address_that_nobody_allowed_is_not_called(receiver: Receiver) -> None:
    async with sender() as out:
        told = await out.send(receiver.url, WORDS)
    assert told == (
        f"localhost:{receiver.port} leads to a loopback address; the node's operator can allow it: http_allow"
    )
    assert receiver.notices == []


async def test_a_redirect_to_an_address_that_nobody_allowed_is_not_followed(receiver: Receiver) -> None:
    other = Receiver()
    receiver.goes_to, receiver.statuses = f"http://127.0.0.1:{other.port}/", [307]
    try:
        async with sender(receiver.allow) as out:
            told = await out.send(f"{receiver.url}?redirect=yes", WORDS)
    finally:
        other.close()
    assert told is not None
    assert f"127.0.0.1:{other.port} leads to a loopback address" in told
    assert len(receiver.notices) == 1
    assert other.notices == []


async def test_why_a_service_refused_is_told_without_the_secrets_of_the_address(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    receiver.statuses = [401]
    async with sender(receiver.allow) as out:
        told = await out.send(f"json://ann:hunter2secret@localhost:{receiver.port}/token-abcdef", WORDS)
    assert told is not None
    assert "401" in told
    assert "hunter2secret" not in told + caplog.text
    assert "token-abcdef" not in told + caplog.text


async def test_a_service_that_does_not_answer_is_given_up(free_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        async with sender(f"localhost:{port}", seconds=0.2) as out:
            assert await out.send(f"json://localhost:{port}/", WORDS) == "no answer within 0.2 s"
            silent.accept()[0].close()
    async with sender(f"localhost:{free_port}") as out:
        assert "connection" in (await out.send(f"json://localhost:{free_port}/", WORDS) or "").lower()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("slack", "is no Apprise URL"),
        ("://x", "is no Apprise URL"),
        ("nosuch://abc", "there is no service nosuch://"),
        ("slack://", "is no complete slack:// address"),
        ("tgram://short", "is no complete tgram:// address"),
        ("syslog://", "would speak on the node's own machine"),
        ("dbus://", "would speak on the node's own machine"),
        ("WINDOWS://", "would speak on the node's own machine"),
    ],
)
async def test_an_address_that_can_not_be_one_is_refused(url: str, why: str) -> None:
    async with sender() as out:
        with pytest.raises(BadChannel, match=why):
            await out.check(url)
        assert why in (await out.send(url, WORDS) or "")


async def test_a_good_address_is_checked_without_calling_it(receiver: Receiver) -> None:
    async with sender() as out:
        await out.check(receiver.url)
        await out.check("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/")
        await out.check("mailto://user:password@example.com")
    assert receiver.notices == []


def test_a_watched_thread_opens_no_file_program_or_socket_of_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("x")
    guard = Guard(AllowList())
    with guarded(guard):
        with pytest.raises(PermissionError, match="file of this machine"):
            file.read_text()
        with pytest.raises(PermissionError, match="start a program"):
            subprocess.run([sys.executable, "-V"], check=True)
        with socket.socket(socket.AF_UNIX) as local, pytest.raises(PermissionError, match="socket of this machine"):
            local.connect("/dev/log")
        with socket.socket() as named, pytest.raises(PermissionError, match="connects to a name"):
            named.connect(("localhost", 1))
        with socket.socket(type=socket.SOCK_DGRAM) as udp:
            with pytest.raises(PermissionError, match=r"127\.0\.0\.1:9 leads to a loopback address"):
                udp.sendto(b"x", ("127.0.0.1", 9))
            with pytest.raises(PermissionError, match="loopback"):
                udp.sendmsg([b"x"], [], 0, ("127.0.0.1", 9))
        assert Path(asyncio.__file__).read_text()
    assert file.read_text() == "x"
    assert "loopback" in guard.refused


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of Apprise, on its way out
async def test_a_service_that_would_read_a_file_of_this_machine_fails() -> None:
    async with sender("127.0.0.0/8") as out:
        told = await out.send("fcm://project/device/?mode=oauth2&keyfile=/etc/passwd", WORDS)
    assert told == "it would read or write a file of this machine"


def test_no_part_of_an_address_is_left_in_what_was_said() -> None:
    url = "tgram://123456789:abcdefg_hijklmnop/chat%2Fname"
    said = "cannot reach https://api.telegram.org/bot123456789:abcdefg_hijklmnop/sendMessage of chat/name"
    shown = without_secrets(said, url)
    assert "123456789" not in shown
    assert "abcdefg" not in shown
    assert len(without_secrets("x" * 1000, url)) == 300


async def test_a_service_that_never_ends_its_answer_holds_no_thread(receiver: Receiver) -> None:
    """It is let go when its time is over: the same thread sends the next notice."""
    with socket.create_server(("127.0.0.1", 0)) as dripping:
        port = dripping.getsockname()[1]
        async with sender(f"localhost:{port},{receiver.allow}", seconds=0.5) as out:
            out._threads = ThreadPoolExecutor(1)
            sending = asyncio.create_task(out.send(f"json://localhost:{port}/?rto=1000", WORDS))
            line, _ = await asyncio.to_thread(dripping.accept)
            with line:
                line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx")
                assert await sending == "no answer within 0.5 s"
                await asyncio.get_running_loop().run_in_executor(out._threads, int)
                assert await out.send(receiver.url, WORDS) is None


def test_a_file_beside_a_programs_modules_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "admin.key"
    file.write_text("x")
    monkeypatch.syspath_prepend(str(tmp_path))
    with guarded(Guard(AllowList())), pytest.raises(PermissionError):
        file.read_text()


def test_a_node_does_not_load_apprise_before_there_is_something_to_send() -> None:
    look = "import sys, foliot.node.node, foliot.api; sys.exit('apprise' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], check=False).returncode == 0
