"""How to receive webhooks: the page's receivers take what a node sends, and nothing else."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foliot.clock import wall
from foliot.domain.duration import SECOND
from foliot.domain.webhook import KINDS, WAITS, new_secret, sign
from tests.docs.pages import ROOT, blocks
from tests.docs.shell import Reader, make_programs
from tests.processes import eventually, serve

PAGE = "docs/how-to/receive-webhooks.md"


@pytest.fixture
def reader(tmp_path: Path, free_port: int) -> Iterator[Reader]:
    make_programs(tmp_path)
    node, url = serve(tmp_path, "node", "--http-allow", f"127.0.0.1:{free_port}", FOLIOT_ADMIN_KEY="")
    yield Reader(folder=tmp_path, node=node, url=url)
    node.stop()


def test_what_the_page_tells_to_type_brings_events_to_its_receiver(reader: Reader, free_port: int) -> None:
    add, _serve, tries, rotate = blocks(PAGE, "sh")
    receiver, _by_hand = blocks(PAGE, "python")
    at_node = f"export FOLIOT_URL={reader.url}\n"
    webhooks = reader.type(at_node + add.replace("9000", str(free_port)))
    found = re.search(r"wh_[0-9a-f]{16}", webhooks)
    assert found is not None
    (reader.folder / "receiver.py").write_text(receiver.replace("9000", str(free_port)))
    output = reader.folder / "receiver.log"
    with output.open("wb") as out:
        running = subprocess.Popen([sys.executable, "receiver.py"], cwd=reader.folder, stdout=out, stderr=out)
    try:
        reader.type(at_node + "foliot submit echo --id report-7 --queue mail\nfoliot submit echo --id other")
        eventually(lambda: "foliot.job.completed report-7" in output.read_text(), "the event of a job")
        at_node += f"export HOOK={found[0]}\n"
        assert "foliot.webhook.test" not in output.read_text()
        test, rest = tries.split("\n", 1)
        reader.type(at_node + test)
        eventually(lambda: f"foliot.webhook.test {found[0]}" in output.read_text(), "the event of a test")
        assert "foliot.webhook.test" in reader.type(at_node + rest)
        secret = (reader.folder / "webhook.secret").read_text()
        reader.type(at_node + rotate)
        assert (reader.folder / "webhook.secret").read_text() != secret
        reader.type(at_node + "foliot submit echo --id report-8 --queue mail")  # with two signatures
        eventually(lambda: "foliot.job.completed report-8" in output.read_text(), "an event after the rotation")
        assert " other" not in output.read_text()
    finally:
        running.kill()
        running.wait()


def test_the_pages_few_lines_take_what_is_signed_and_nothing_else() -> None:
    _, program = blocks(PAGE, "python")
    names: dict[str, Any] = {}
    exec(program, names)
    is_ours, secret, now = names["is_ours"], new_secret(), wall()
    headers = sign("wd_1", now, b"{}", [new_secret(), secret])
    assert is_ours(secret, headers, b"{}")
    assert not is_ours(secret, headers, b"{ }")
    assert not is_ours(new_secret(), headers, b"{}")
    assert not is_ours(secret, headers | {"webhook-id": "wd_2"}, b"{}")
    assert not is_ours(secret, sign("wd_1", now - 301 * SECOND, b"{}", [secret]), b"{}")


def test_the_page_tells_the_waits_and_the_kinds_of_events_as_they_are() -> None:
    text = " ".join((ROOT / PAGE).read_text().split())
    told = re.search(r"\*\*Tried again\*\* after (.+?), each", text)
    assert told is not None
    units = {"s": 1, "min": 60, "h": 3600}
    words = [each.split(" ") for each in re.split(r", | and ", told[1])]
    assert [int(number) * units[unit] * SECOND for number, unit in words] == list(WAITS)
    for family, kinds in KINDS.items():
        if family != "job":
            assert all(f"{family}.{kind}`" in text for kind in kinds)
