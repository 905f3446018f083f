"""`foliot serve` refuses settings that can not work, in one line, before it starts anything."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from foliot.cli import main


@pytest.mark.parametrize(
    ("words", "environment", "told"),
    [
        (["--processes", "2"], {}, "more than one process needs PostgreSQL"),
        (["--processes", "0"], {}, "it must be 1 or more"),
        (["--port", "70000"], {}, "0 to 65535"),
        (["--port", "http"], {}, "not a valid integer"),
        (["--database", "mysql://host/name"], {}, "use postgresql://user@host/name or sqlite:///path"),
        (["--config", "no-such.toml"], {}, "no-such.toml is not there"),
        ([], {"FOLIOT_CONFIG": "no-such.toml"}, "no-such.toml is not there"),
        ([], {"FOLIOT_PORT": "http"}, "FOLIOT_PORT is 'http'; it must be of type int"),
        ([], {"FOLIOT_RESOURCES": "cpu=lots"}, "resources.cpu: is a number"),
        ([], {"FOLIOT_LABELS": "eu"}, "labels is 'eu'; it must be names with values"),
        ([], {"FOLIOT_PROCESSES": "2"}, "more than one process needs PostgreSQL"),
    ],
)
def test_a_setting_that_can_not_work_is_refused(
    words: list[str], environment: dict[str, str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(main, ["serve", *words], env=environment)
    assert shown.exit_code == 2
    assert told in shown.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_is_stronger_than_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen by which of two wrong values is complained about."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "foliot.toml").write_text("port = 70001\n")
    for words, environment, port in (
        ([], {}, "70001"),
        ([], {"FOLIOT_PORT": "70002"}, "70002"),
        (["--port", "70003"], {"FOLIOT_PORT": "70002"}, "70003"),
    ):
        assert f"port is {port};" in CliRunner().invoke(main, ["serve", *words], env=environment).stderr
