"""Where a node listens: on this machine, and beyond it only with TLS or where it is told to."""

import socket

import pytest

from foliot.main.listener import bind, is_loopback, make_room
from foliot.settings import Settings, SettingsError
from tests.processes import Programs, eventually

HAS_IPV6 = socket.has_ipv6


@pytest.mark.parametrize("host", ["0.0.0.0", "", "::"])
def test_without_tls_a_node_does_not_listen_beyond_this_machine(host: str) -> None:
    with pytest.raises(SettingsError, match=r"--tls-cert and --tls-key.*--insecure \(FOLIOT_INSECURE=true\)"):
        bind(Settings(host=host, port=0))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "localhost", "::1"])
def test_on_this_machine_it_does(host: str) -> None:
    with bind(Settings(host=host, port=0)) as bound:
        socket.create_connection(bound.getsockname()[:2]).close()


@pytest.mark.parametrize("more", [{"insecure": True}, {"tls_cert": "node.pem", "tls_key": "node.key"}])
def test_beyond_it_it_does_where_it_may(more: dict[str, object]) -> None:
    with bind(Settings(host="0.0.0.0", port=0, **more)) as bound:  # type: ignore[arg-type]
        socket.create_connection(("127.0.0.1", bound.getsockname()[1])).close()


@pytest.mark.parametrize(
    ("address", "here"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:10.0.0.1", False),
        ("fe80::1%eth0", False),
        ("10.0.0.1", False),
    ],
)
def test_what_is_this_machine(address: str, here: bool) -> None:
    assert is_loopback(address) is here


def test_a_refusal_is_one_line_and_leaves_nothing_behind(programs: Programs) -> None:
    node = programs.start("node", "serve", "--port", "0", "--host", "0.0.0.0")
    eventually(lambda: node.process.poll() is not None, "it ends")
    assert node.process.returncode == 2
    assert len(node.said.splitlines()) == 1
    assert [path.name for path in programs.folder.iterdir()] == ["node.log"]


@pytest.mark.parametrize(("words", "environ"), [(["--insecure"], {}), ([], {"FOLIOT_INSECURE": "true"})])
def test_told_to_be_insecure_it_starts(programs: Programs, words: list[str], environ: dict[str, str]) -> None:
    programs.serve("node", "--no-worker", "--host", "0.0.0.0", *words, **environ)


def test_a_bad_certificate_is_told_before_anything_is_started(programs: Programs) -> None:
    node = programs.start("node", "serve", "--port", "0", "--tls-cert", "no.pem", "--tls-key", "no.key")
    eventually(lambda: node.process.poll() is not None, "it ends")
    assert node.process.returncode == 2
    (line,) = node.said.splitlines()
    assert "no.pem and no.key can not be used: no such file or directory" in line


def test_connections_that_the_system_has_no_files_for_are_not_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert make_room(10) == 10
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1024))
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    assert make_room(10_000) == 724
    assert make_room(724) == 724
    monkeypatch.undo()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (now, most)
