"""How a command finds its node and its key: command line, environment, file, this machine."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from foliot.cli import main
from foliot.cli.connection import find_connection
from foliot.sdk.tls import Trust


@pytest.fixture(autouse=True)
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("FOLIOT_URL", "FOLIOT_KEY", "FOLIOT_ADMIN_KEY", "FOLIOT_DATA_DIR", "FOLIOT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def write_key(directory: Path, key: str) -> None:
    directory.mkdir()
    (directory / "admin.key").write_text(key + "\n")
    (directory / "admin.key").chmod(0o600)


def test_the_key_of_a_node_on_this_machine_is_found(tmp_path: Path) -> None:
    write_key(tmp_path / "foliot-data", "the-local-key")
    found = find_connection(environ={})
    assert (found.url, found.key) == ("http://127.0.0.1:7070", "the-local-key")


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "foliot.toml").write_text('url = "http://from-file:1"\nadmin_key = "key-from-the-file"\n')
    environ = {"FOLIOT_URL": "http://from-environment:2", "FOLIOT_ADMIN_KEY": "admin-key-from-environment"}
    from_file = find_connection(environ={})
    from_environment = find_connection(environ=environ)
    given = find_connection("http://given:3", "given-key", environ={**environ, "FOLIOT_KEY": "key"})
    assert (from_file.url, from_file.key) == ("http://from-file:1", "key-from-the-file")
    assert (from_environment.url, from_environment.key) == ("http://from-environment:2", "admin-key-from-environment")
    assert (given.url, given.key) == ("http://given:3", "given-key")
    assert find_connection(environ={**environ, "FOLIOT_KEY": "key"}).key == "key"


def test_where_a_key_was_found_is_known_and_the_key_itself_is_not_shown(tmp_path: Path) -> None:
    write_key(tmp_path / "foliot-data", "the-local-key")
    assert find_connection(environ={}).origin == "foliot-data/admin.key"
    (tmp_path / "other.toml").write_text('admin_key = "key-from-the-file"\n')
    environ = {"FOLIOT_CONFIG": "other.toml"}
    assert find_connection(environ=environ).origin == "admin_key in other.toml"
    environ["FOLIOT_ADMIN_KEY"] = "admin-key-from-environment"
    assert find_connection(environ=environ).origin == "FOLIOT_ADMIN_KEY"
    environ["FOLIOT_KEY"] = "key"
    assert find_connection(environ=environ).origin == "FOLIOT_KEY"
    given = find_connection(key="a-given-key", environ=environ)
    assert given.origin == "--key"
    assert "a-given-key" not in repr(given)


def test_the_data_directory_is_taken_from_option_environment_or_file(tmp_path: Path) -> None:
    for name in ("given", "environment", "file"):
        write_key(tmp_path / name, f"key-of-{name}")
    (tmp_path / "foliot.toml").write_text('data_dir = "file"\n')
    assert find_connection(environ={}).key == "key-of-file"
    assert find_connection(environ={"FOLIOT_DATA_DIR": "environment"}).key == "key-of-environment"
    assert find_connection(data_dir="given", environ={"FOLIOT_DATA_DIR": "environment"}).key == "key-of-given"


def test_this_machines_key_is_not_shown_to_another_machine(tmp_path: Path) -> None:
    write_key(tmp_path / "foliot-data", "the-local-key")
    assert find_connection("http://other.example.org:7070", environ={}).key == ""
    assert find_connection(environ={"FOLIOT_URL": "http://other.example.org"}).key == ""
    assert find_connection("http://localhost:7071", environ={}).key == "the-local-key"
    named = find_connection("http://other.example.org", data_dir="foliot-data", environ={})
    assert named.key == "the-local-key"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_key_that_others_can_read_is_not_used(tmp_path: Path, mode: int) -> None:
    write_key(tmp_path / "foliot-data", "the-local-key")
    (tmp_path / "foliot-data" / "admin.key").chmod(mode)
    shown = CliRunner().invoke(main, ["jobs", "ls"])
    assert shown.exit_code == 5
    assert "chmod 600 foliot-data/admin.key" in shown.stderr
    assert len(shown.stderr.splitlines()) == 1


def test_whom_to_trust_comes_from_the_environment_and_the_file(tmp_path: Path) -> None:
    (tmp_path / "foliot.toml").write_text('ca_file = "a.pem"\nclient_cert = "b.pem"\nclient_key = "b.key"\n')
    assert find_connection(environ={}).trust == Trust(ca_file="a.pem", client_cert="b.pem", client_key="b.key")
    assert find_connection(environ={"FOLIOT_CA_FILE": "c.pem"}).trust.ca_file == "c.pem"


def test_certificates_that_can_not_be_used_are_told(tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["jobs", "ls", "--url", "https://localhost:1"], env={"FOLIOT_CA_FILE": "no.pem"})
    assert shown.exit_code == 1
    assert shown.stderr == "Error: no.pem can not be used: no such file or directory\n"


def test_a_node_that_is_not_there_is_named_with_how_to_start_one(free_port: int) -> None:
    shown = CliRunner().invoke(main, ["jobs", "ls", "--url", f"http://127.0.0.1:{free_port}"])
    assert shown.exit_code == 5
    assert f"http://127.0.0.1:{free_port}" in shown.stderr
    assert "foliot serve" in shown.stderr
    assert len(shown.stderr.splitlines()) == 1
    assert shown.stdout == ""
