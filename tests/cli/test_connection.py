"""How a command finds its node and its key: command line, environment, file, this machine."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from foliot.cli import main
from foliot.cli.connection import find_connection


@pytest.fixture(autouse=True)
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("FOLIOT_URL", "FOLIOT_KEY", "FOLIOT_ADMIN_KEY", "FOLIOT_DATA_DIR", "FOLIOT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def write_key(directory: Path, key: str) -> None:
    directory.mkdir()
    (directory / "admin.key").write_text(key + "\n")


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


def test_a_node_that_is_not_there_is_named_with_how_to_start_one(free_port: int) -> None:
    shown = CliRunner().invoke(main, ["jobs", "ls", "--url", f"http://127.0.0.1:{free_port}"])
    assert shown.exit_code == 5
    assert f"http://127.0.0.1:{free_port}" in shown.stderr
    assert "foliot serve" in shown.stderr
    assert len(shown.stderr.splitlines()) == 1
    assert shown.stdout == ""
