"""`foliot doctor`: what is wrong is said in words, with what to do next, and in the exit code."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from foliot.cli import main, node_checks
from foliot.cli.local_checks import check_certificate_files, check_disk, expiry
from foliot.cli.node_checks import check_clock
from foliot.settings import Settings
from tests.cli.conftest import ServedNode
from tests.main.certificates import Authority

Foliot = Callable[..., Result]
NOW = datetime(2027, 1, 31, 9, tzinfo=UTC)


def found(result: Result) -> dict[str, dict[str, Any]]:
    """The worst of each name."""
    worst: dict[str, dict[str, Any]] = {}
    for check in json.loads(result.stdout)["checks"]:
        known = worst.get(check["name"])
        if known is None or ("ok", "warn", "fail").index(check["status"]) > ("ok", "warn", "fail").index(
            known["status"]
        ):
            worst[check["name"]] = check
    return worst


def test_a_node_that_is_well_has_nothing_but_ok(node: ServedNode, tmp_path_factory: pytest.TempPathFactory) -> None:
    shown = node.run("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(shown.stdout)["checks"]}
    wanted = {"settings", "node", "clock here", "store", "schema", "clock", "key", "nodes", "workers", "queues"}
    assert wanted <= set(checks)
    failed = [check for check in checks.values() if check["status"] == "fail"]
    assert failed == []
    assert shown.returncode == 0
    assert checks["key"]["detail"].endswith("is taken: admin, admin of default")


def test_people_get_a_line_each_and_what_to_do_next(foliot: Foliot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_LOGLEVEL", "debug")
    shown = foliot("doctor")
    lines = shown.stdout.splitlines()
    (at,) = [number for number, line in enumerate(lines) if "FOLIOT_LOGLEVEL is set" in line]
    assert lines[at].startswith("warn  settings")
    assert lines[at + 1].strip() == "→ did you mean FOLIOT_LOG_LEVEL?"
    assert shown.exit_code == 0, "a warning is no failure"


def test_a_node_that_is_down_is_told_and_ends_with_5(tmp_path: Path, free_port: int) -> None:
    shown = CliRunner().invoke(main, ["doctor", "--json", "--url", f"http://127.0.0.1:{free_port}"])
    assert shown.exit_code == 5
    checks = found(shown)
    assert checks["node"]["status"] == "fail"
    assert "foliot serve" in checks["node"]["todo"]
    assert "key" not in checks, "nobody is there to show it to"


def test_a_wrong_key_is_told_and_ends_with_5(foliot: Foliot) -> None:
    shown = foliot("doctor", "--json", "--key", "fk_" + "0" * 64)
    assert shown.exit_code == 5
    checks = found(shown)
    assert (checks["key"]["status"], checks["store"]["status"]) == ("fail", "ok")
    assert "--key is not taken" in checks["key"]["detail"]
    assert "fk_0000" not in shown.stdout


def test_no_key_at_all_is_told(foliot: Foliot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    shown = foliot("doctor", "--json")
    assert shown.exit_code == 5
    assert found(shown)["key"]["detail"] == "none was found"


def test_a_setting_that_makes_no_sense_is_told(foliot: Foliot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_PORT", "many")
    shown = foliot("doctor", "--json")
    assert shown.exit_code == 1
    assert found(shown)["settings"]["detail"].startswith("FOLIOT_PORT is 'many'")


def test_jobs_that_nobody_can_run_are_told(foliot: Foliot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_checks, "FRESH", 0.0)
    assert foliot("submit", "nobody-runs-this", "--queue", "doctor-waits").exit_code == 0
    shown = foliot("doctor", "--json")
    assert shown.exit_code == 0
    details = [check["detail"] for check in json.loads(shown.stdout)["checks"] if check["name"] == "queues"]
    assert "doctor-waits: no worker can run what waits, of type nobody-runs-this" in details


def test_a_key_that_may_little_is_told_what_it_may_see(foliot: Foliot) -> None:
    made = foliot("keys", "create", "doctors", "--role", "viewer", "--queue", "mail", "--json")
    key = json.loads(made.stdout)["key"]
    shown = foliot("doctor", "--json", "--key", key)
    assert shown.exit_code == 0
    checks = found(shown)
    assert "viewer" in checks["key"]["detail"]
    assert "storage" not in checks, "the store is everybody's"


def test_a_certificate_that_ends_soon_is_told(node: ServedNode, tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ours")
    certificate, key = authority.node()
    settings = Settings(tls_cert=str(certificate), tls_key=str(key))
    (check,) = check_certificate_files(settings, datetime.now(UTC))
    assert check.status == "ok"
    (late,) = check_certificate_files(settings, datetime.now(UTC) + timedelta(days=365 * 2000))
    assert late.status == "fail"
    assert expiry("it", NOW + timedelta(days=29), NOW).status == "warn"
    assert expiry("it", NOW + timedelta(hours=5), NOW).detail == "it ends on 2027-01-31, in 5 hours"
    assert expiry("it", NOW + timedelta(days=31), NOW).status == "ok"
    assert expiry("it", NOW, NOW).status == "fail"


def test_a_certificate_that_is_none_is_told(tmp_path: Path) -> None:
    file = tmp_path / "not.pem"
    file.write_text("no certificate")
    for named in (file, tmp_path / "missing.pem"):
        (check,) = check_certificate_files(Settings(tls_cert=str(named), tls_key="k"), NOW)
        assert check.status == "fail"


@pytest.mark.parametrize(
    ("free", "status"), [(50 << 20, "fail"), (500 << 20, "warn"), (2 << 30, "warn"), (60 << 30, "ok")]
)
def test_a_disk_that_fills_up_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, status: str) -> None:
    usage = type("Usage", (), {"free": free, "total": 100 << 30})
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    (check,) = check_disk(Settings(data_dir=str(tmp_path)))
    assert check.status == status
    assert list(check_disk(Settings(data_dir=str(tmp_path / "none")))) == []


@pytest.mark.parametrize(
    ("there", "status", "word"),
    [
        ("Sun, 31 Jan 2027 09:00:00 GMT", "ok", "agrees"),
        ("Sun, 31 Jan 2027 09:00:05 GMT", "ok", "agrees"),
        ("Sun, 31 Jan 2027 09:01:00 GMT", "warn", "60 s behind"),
        ("Sun, 31 Jan 2027 08:59:00 GMT", "warn", "59 s ahead of"),
    ],
)
def test_a_clock_here_that_is_off_is_told(monkeypatch: pytest.MonkeyPatch, there: str, status: str, word: str) -> None:
    monkeypatch.setattr(node_checks, "read_clock", lambda: NOW)
    (check,) = check_clock(there, NOW)
    assert (check.status, word in check.detail) == (status, True)
    assert list(check_clock("", NOW)) == []
