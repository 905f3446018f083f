"""TLS as a node speaks it, on a real socket."""

import logging
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from foliot.main.tls import SUBJECT, server_tls
from foliot.sdk.tls import Reloaded
from foliot.settings import Settings, SettingsError
from tests.main.certificates import Authority, serial_in, serial_of
from tests.main.served import Client, Served


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "ours")


def speaking(pair: tuple[Path, Path], client_ca: Path | str = "") -> Callable[[], Reloaded[ssl.SSLContext] | None]:
    settings = Settings(tls_cert=str(pair[0]), tls_key=str(pair[1]), tls_client_ca=str(client_ca))
    return lambda: server_tls(settings)


def serial(client: Client) -> int:
    assert isinstance(client.socket, ssl.SSLSocket)
    return serial_of(client.socket)


def test_a_request_comes_in_over_tls(authority: Authority) -> None:
    with Served(tls=speaking(authority.node())) as served, served.dial(authority.trusting()) as client:
        assert client.ask("/now").status == 200
        assert served.app.scopes[-1]["scheme"] == "https"
        assert SUBJECT not in served.app.scopes[-1]
        assert isinstance(client.socket, ssl.SSLSocket)
        assert client.socket.version() == "TLSv1.3"


@pytest.mark.parametrize("ciphers", ["ECDHE+AESGCM", "ECDHE+CHACHA20"])
def test_tls_1_2_is_spoken_with_forward_secret_ciphers(authority: Authority, ciphers: str) -> None:
    older = authority.trusting()
    older.maximum_version = ssl.TLSVersion.TLSv1_2
    older.set_ciphers(ciphers)
    with Served(tls=speaking(authority.node())) as served, served.dial(older) as client:
        assert client.ask("/now").status == 200


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
@pytest.mark.parametrize(
    ("version", "ciphers"),
    [
        (ssl.TLSVersion.TLSv1_1, "ALL:@SECLEVEL=0"),
        (ssl.TLSVersion.TLSv1_2, "AES128-GCM-SHA256"),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-SHA"),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-RSA-AES256-SHA384"),
    ],
)
def test_what_is_older_or_weaker_is_not_spoken(authority: Authority, version: ssl.TLSVersion, ciphers: str) -> None:
    weak = authority.trusting()
    weak.set_ciphers(ciphers)
    weak.minimum_version = weak.maximum_version = version
    with Served(tls=speaking(authority.node())) as served, pytest.raises(ssl.SSLError):
        served.dial(weak)


def test_whoever_does_not_speak_tls_is_dropped(authority: Authority) -> None:
    with Served(tls=speaking(authority.node())) as served, served.dial() as client:
        client.send("GET /now HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"HTTP/" not in client.rest()
        assert served.app.scopes == []


def test_a_handshake_that_does_not_go_on_is_dropped(authority: Authority) -> None:
    with Served(tls=speaking(authority.node()), seconds=0.2) as served, served.dial() as client:
        client.send(b"\x16\x03\x01\x02\x00\x01")
        assert client.rest() == b""


def test_a_new_certificate_is_shown_from_the_next_connection_on(authority: Authority) -> None:
    pair = authority.node()
    first = serial_in(pair[0])
    with Served(tls=speaking(pair)) as served, served.dial(authority.trusting()) as before:
        assert serial(before) == first
        authority.node()
        with served.dial(authority.trusting()) as after:
            assert serial(after) == serial_in(pair[0]) != first
            assert after.ask("/now").status == before.ask("/now").status == 200


def test_a_bad_new_pair_is_told_once_and_the_old_one_stays(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    certificate, key = authority.node()
    first = serial_in(certificate)
    with caplog.at_level(logging.ERROR, "foliot.tls"), Served(tls=speaking((certificate, key))) as served:
        other_key = Authority(certificate.parent, "theirs").worker("other")[1]
        for spoil in (
            lambda: key.write_bytes(other_key.read_bytes()),
            lambda: key.write_text("nothing"),
            key.unlink,
        ):
            caplog.clear()
            spoil()
            for _ in range(3):
                with served.dial(authority.trusting()) as client:
                    assert serial(client) == first
            (told,) = caplog.messages
            assert str(key) in told
            assert "stays in use" in told
        authority.node()
        with served.dial(authority.trusting()) as client:
            assert serial(client) == serial_in(certificate) != first


@pytest.mark.parametrize("spoiled", [0, 1])
def test_a_node_does_not_start_with_a_pair_that_is_no_good(authority: Authority, spoiled: int) -> None:
    pair = authority.node()
    pair[spoiled].write_text("nothing")
    with pytest.raises(SettingsError, match=r"node\.pem and .*node\.key can not be used: one of them is not PEM"):
        speaking(pair)()


def test_an_encrypted_key_is_refused_without_a_question(authority: Authority) -> None:
    from cryptography.hazmat.primitives import serialization as form

    certificate, key = authority.node()
    loaded = form.load_pem_private_key(key.read_bytes(), None)
    kind = (form.Encoding.PEM, form.PrivateFormat.PKCS8, form.BestAvailableEncryption(b"a password"))
    key.write_bytes(loaded.private_bytes(*kind))
    with pytest.raises(SettingsError, match="the key is encrypted"):
        speaking((certificate, key))()


# certificates of clients


def test_the_application_is_told_whose_certificate_was_shown(authority: Authority, tmp_path: Path) -> None:
    workers = Authority(tmp_path, "workers")
    with Served(tls=speaking(authority.node(), workers.file)) as served:
        with served.dial(authority.trusting(workers.worker("worker-1"))) as client:
            assert client.ask("/now").status == client.ask("/now").status == 200
        subjects = {scope[SUBJECT] for scope in served.app.scopes}
        assert len(served.app.scopes) == 2
        assert [subject.split(",")[0] for subject in subjects] == ["CN=worker-1"]


def test_who_shows_none_is_let_in_and_known_as_nobody(authority: Authority, tmp_path: Path) -> None:
    workers = Authority(tmp_path, "workers")
    with Served(tls=speaking(authority.node(), workers.file)) as served:
        with served.dial(authority.trusting()) as client:
            assert client.ask("/now").status == 200
        assert served.app.scopes[-1][SUBJECT] is None


def test_a_certificate_that_nobody_vouches_for_is_refused(authority: Authority, tmp_path: Path) -> None:
    strangers, workers = Authority(tmp_path, "strangers"), Authority(tmp_path, "workers")
    with Served(tls=speaking(authority.node(), workers.file)) as served:
        with pytest.raises(OSError), served.dial(authority.trusting(strangers.worker("worker-1"))) as client:  # noqa: PT011
            client.ask("/now")
        assert served.app.scopes == []


def test_another_authority_for_workers_holds_from_the_next_connection_on(authority: Authority, tmp_path: Path) -> None:
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    asked = tmp_path / "workers.pem"
    asked.write_bytes(old.file.read_bytes())
    with Served(tls=speaking(authority.node(), asked)) as served:
        before, after = authority.trusting(old.worker("one")), authority.trusting(new.worker("two"))
        with served.dial(before) as client:
            assert client.ask("/now").status == 200
        asked.write_bytes(new.file.read_bytes())
        with pytest.raises(OSError), served.dial(before) as client:  # noqa: PT011
            client.ask("/now")
        with served.dial(after) as client:
            assert client.ask("/now").status == 200
