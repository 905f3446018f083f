"""A real node with a certificate, and those who speak to it: the command line, the SDK, workers."""

import asyncio
import re
import ssl
import time
from pathlib import Path

import pytest

from foliot import Foliot
from foliot.sdk.async_client import AsyncClient
from foliot.sdk.context import JobContext
from foliot.sdk.failures import Unreachable
from foliot.sdk.handler import Handler
from foliot.sdk.tls import Trust, UnusableFiles
from foliot.sdk.transport import HttpTransport
from foliot.wire import SubmitBody
from foliot.worker import Worker
from tests.main.certificates import Authority, serial_in
from tests.processes import KEY, REGISTERED, Programs, eventually


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "ours")


@pytest.fixture
def workers(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "workers")


def tls_of(pair: tuple[Path, Path]) -> tuple[str, ...]:
    return ("--tls-cert", str(pair[0]), "--tls-key", str(pair[1]))


@pytest.fixture
def url(programs: Programs, authority: Authority) -> str:
    """Of a node with its own worker."""
    return programs.serve("node", *tls_of(authority.node()))[1]


def test_a_job_is_handed_in_and_run_by_the_nodes_own_worker(programs: Programs, authority: Authority, url: str) -> None:
    assert url.startswith("https://127.0.0.1:")
    words = ("submit", "echo", '{"message": "hello"}', "--wait", "--url", url)
    submit = programs.start("submit", *words, FOLIOT_CA_FILE=str(authority.file))
    eventually(lambda: submit.process.poll() is not None, "it ends")
    assert submit.process.returncode == 0, submit.said
    assert "hello" in submit.said


def test_who_does_not_trust_the_authority_is_told_what_to_do(programs: Programs, url: str) -> None:
    listing = programs.start("list", "jobs", "ls", "--url", url)
    eventually(lambda: listing.process.poll() is not None, "it ends")
    assert listing.process.returncode == 5
    (line,) = listing.said.splitlines()
    assert f"{url} is not trusted: " in line
    assert "FOLIOT_CA_FILE" in line


async def test_a_node_that_shows_another_name_is_not_trusted(programs: Programs, authority: Authority) -> None:
    _, url = programs.serve("node", "--no-worker", *tls_of(authority.node("elsewhere.example")))
    transport = HttpTransport(url, Trust(ca_file=str(authority.file)))
    with pytest.raises(Unreachable, match=r"is not trusted: IP address mismatch"):
        await transport.call("GET", "/healthz", None, {})
    await transport.close()


def test_an_app_trusts_as_its_environment_has_it(
    authority: Authority, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLIOT_CA_FILE", str(authority.file))
    with Foliot(url, KEY) as app:
        assert app.submit("echo", {"message": "hello"}).result(timeout=15) == "hello"


def test_files_that_can_not_be_used_are_told(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FOLIOT_CA_FILE", str(tmp_path / "no.pem"))
    with pytest.raises(UnusableFiles, match=r"no\.pem can not be used: no such file"):
        HttpTransport(url)


@pytest.fixture
def mutual(programs: Programs, authority: Authority, workers: Authority) -> str:
    """The address of a node that wants to see the certificates of workers, and loses patience with them soon."""
    words = ("--no-worker", *tls_of(authority.node()), "--tls-client-ca", str(workers.file))
    return programs.serve("node", *words, FOLIOT_LEASE_SECONDS="2", FOLIOT_HEARTBEAT_SECONDS="0.5")[1]


def test_a_worker_runs_jobs_over_mutual_tls(
    programs: Programs, authority: Authority, workers: Authority, mutual: str
) -> None:
    certificate, key = workers.worker("worker-1")
    (programs.folder / "foliot.toml").write_text(
        f'ca_file = "{authority.file}"\nclient_cert = "{certificate}"\nclient_key = "{key}"\n'
    )
    programs.start("worker", "worker", "--builtin", "--url", mutual).wait_for(REGISTERED)
    submit = programs.start("submit", "submit", "echo", '{"message": "hello"}', "--wait", "--url", mutual)
    eventually(lambda: submit.process.poll() is not None, "it ends")
    assert submit.process.returncode == 0, submit.said


def test_a_worker_without_a_certificate_is_refused(programs: Programs, authority: Authority, mutual: str) -> None:
    worker = programs.start("worker", "worker", "--builtin", "--url", mutual, FOLIOT_CA_FILE=str(authority.file))
    eventually(lambda: worker.process.poll() is not None, "it ends")
    assert worker.process.returncode == 5
    assert "certificate" in worker.said


def test_a_client_needs_no_certificate(programs: Programs, authority: Authority, mutual: str) -> None:
    listing = programs.start("list", "jobs", "ls", "--url", mutual, FOLIOT_CA_FILE=str(authority.file))
    eventually(lambda: listing.process.poll() is not None, "it ends")
    assert listing.process.returncode == 0, listing.said


async def block(_payload: bytes, _context: JobContext) -> None:
    time.sleep(2.5)  # noqa: ASYNC251 (what a bad handler does)


async def test_a_blocked_worker_keeps_its_lease_over_mutual_tls(
    authority: Authority, workers: Authority, mutual: str
) -> None:
    """Its loop makes no call for longer than the lease: the thread's own connection must show the certificate too."""
    certificate, key = map(str, workers.worker("worker-1"))
    trust = Trust(ca_file=str(authority.file), client_cert=certificate, client_key=key)
    worker = Worker(mutual, KEY, {"block": Handler(name="block", function=block, isolation="async")}, trust=trust)
    await worker.start()
    async with AsyncClient(mutual, KEY, transport=HttpTransport(mutual, trust)) as client:
        job_id = await client.submit(SubmitBody(job_type="block"))
        ended = await client.wait(job_id, timeout=15)
    await worker.stop(0)
    assert (ended.status, ended.attempt) == ("completed", 1)


async def test_a_worker_shows_a_renewed_certificate(authority: Authority, workers: Authority, mutual: str) -> None:
    """The next connection of a transport that is there already is made with what is in the files by then."""
    old = tuple(map(str, workers.worker("worker-1")))
    trust = Trust(ca_file=str(authority.file), client_cert=old[0], client_key=old[1])
    transport = HttpTransport(mutual, trust)
    before = transport._ssl
    assert transport._ssl is before
    workers.worker("worker-1")
    assert transport._ssl is not before
    status, _, _ = await transport.call("GET", "/healthz", None, {})
    assert status == 200
    await transport.close()


@pytest.mark.timeout(40)
async def test_every_process_shows_a_renewed_certificate(
    programs: Programs, authority: Authority, database_url: str
) -> None:
    pair = authority.node()
    node, url = programs.serve("node", "--processes", "2", "--no-worker", "--database", database_url, *tls_of(pair))
    port = int(url.rpartition(":")[2])
    first = serial_in(pair[0])
    await _both_show(port, authority, first)
    authority.node()
    await _both_show(port, authority, serial_in(pair[0]))
    assert node.stop() == 0
    assert "Traceback" not in node.said


async def _both_show(port: int, authority: Authority, serial: int) -> None:
    """Every process numbers the requests of its own under a name of its own."""
    from cryptography import x509

    names: set[bytes] = set()
    while len(names) < 2:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=authority.trusting())
        connection: ssl.SSLObject = writer.get_extra_info("ssl_object")
        shown = connection.getpeercert(binary_form=True)
        assert shown is not None
        assert x509.load_der_x509_certificate(shown).serial_number == serial
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        found = re.search(rb"x-request-id: (\w+)-", await reader.read())
        assert found is not None
        names.add(found[1])
        writer.close()
        await writer.wait_closed()
