"""The admin key: made once, shown once, kept where only its owner can read it."""

import os
import re
import stat
from pathlib import Path

import pytest

from foliot.main.admin_key import ensure_admin_key
from foliot.settings import Settings, SettingsError
from tests.processes import Programs, eventually

SHOWN = re.compile(r"The admin key, shown this once and kept in foliot-data/admin\.key: (fk_[0-9a-f]{64})\n")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def usual_mask() -> None:
    os.umask(0o022)


def test_the_key_is_shown_by_the_first_start_only(programs: Programs) -> None:
    folder = programs.folder / "foliot-data"
    first, _ = programs.serve("first", "--no-worker", FOLIOT_ADMIN_KEY="")
    key = (folder / "admin.key").read_text().strip()
    assert SHOWN.findall(first.said) == [key]
    assert (mode_of(folder), mode_of(folder / "admin.key")) == (0o700, 0o600)
    assert [path.name for path in folder.glob("admin*")] == ["admin.key"]
    first.stop()
    second, _ = programs.serve("second", "--no-worker", FOLIOT_ADMIN_KEY="")
    assert key not in second.said
    assert (folder / "admin.key").read_text().strip() == key


def test_several_processes_have_one_key_and_show_it_once(programs: Programs, database_url: str) -> None:
    words = ("--no-worker", "--processes", "2", "--database", database_url)
    node, _ = programs.serve("node", *words, FOLIOT_ADMIN_KEY="")
    assert SHOWN.findall(node.said) == [(programs.folder / "foliot-data" / "admin.key").read_text().strip()]


def test_a_key_that_was_given_is_neither_shown_nor_kept(programs: Programs) -> None:
    node, _ = programs.serve("node", "--no-worker", FOLIOT_ADMIN_KEY="a-key-that-was-given")
    assert "a-key-that-was-given" not in node.said
    assert not (programs.folder / "foliot-data" / "admin.key").exists()
    assert mode_of(programs.folder / "foliot-data") == 0o700


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_node_does_not_use_a_key_that_others_can_read(programs: Programs, mode: int) -> None:
    folder = programs.folder / "foliot-data"
    folder.mkdir(mode=0o700)
    (folder / "admin.key").write_text("fk_" + "0" * 64)
    (folder / "admin.key").chmod(mode)
    node = programs.start("node", "serve", "--port", "0", FOLIOT_ADMIN_KEY="")
    eventually(lambda: node.process.poll() is not None, "it ends")
    assert node.process.returncode == 2
    (line,) = node.said.splitlines()
    assert "foliot-data/admin.key can be read by others" in line
    assert "chmod 600 foliot-data/admin.key" in line
    assert "000000" not in line


def test_where_nothing_is_to_be_kept_no_directory_is_made(tmp_path: Path) -> None:
    settings = Settings(data_dir=str(tmp_path / "data"), database="postgresql:///foliot", admin_key="k" * 16)
    assert ensure_admin_key(settings) == ("k" * 16, False)
    assert list(tmp_path.iterdir()) == []


def test_a_file_without_a_key_is_told(tmp_path: Path) -> None:
    (tmp_path / "admin.key").touch(0o600)
    with pytest.raises(SettingsError, match="holds no usable key"):
        ensure_admin_key(Settings(data_dir=str(tmp_path)))


def test_a_directory_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    key, made_now = ensure_admin_key(Settings(data_dir=str(tmp_path)))
    assert (mode_of(tmp_path), mode_of(tmp_path / "admin.key")) == (0o755, 0o600)
    assert made_now
    assert ensure_admin_key(Settings(data_dir=str(tmp_path))) == (key, False)
