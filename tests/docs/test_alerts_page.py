"""How to get alerted: every line of the page is typed, and does what it says."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.alerts.receiver import Receiver
from tests.docs.pages import blocks
from tests.docs.shell import Reader, make_programs
from tests.processes import eventually, serve

PAGE = "docs/how-to/get-alerted.md"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def reader(tmp_path: Path, receiver: Receiver) -> Iterator[Reader]:
    make_programs(tmp_path)
    node, url = serve(tmp_path, "node", FOLIOT_ADMIN_KEY="", FOLIOT_HTTP_ALLOW=receiver.allow)
    yield Reader(folder=tmp_path, node=node, url=url)
    node.stop()


def typed(reader: Reader, receiver: Receiver, text: str) -> str:
    here = text.replace("localhost:9000", receiver.allow)
    return reader.type(f"export FOLIOT_URL={reader.url}\n{here}")


def test_people_are_told_as_the_page_says(reader: Reader, receiver: Receiver) -> None:
    _, channel, rules, late, look_after, *_ = blocks(PAGE, "sh")
    (example,) = blocks(PAGE, "text")
    assert "ops" in typed(reader, receiver, channel)
    assert receiver.titles == ["A test from Foliot"]
    assert "mail-fails" in typed(reader, receiver, rules)
    typed(reader, receiver, late)
    notice = receiver.wait(2)[1]
    told = f"{notice['title']}\n\n{notice['message']}\n"
    shape = re.sub(r"[0-9a-f]{16}", "0123456789abcdef", told)
    shape = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "2027-01-15 08:00:00", shape)
    assert re.sub(r"due \ds ago", "due 1s ago", shape) == example
    typed(reader, receiver, look_after)
    receiver.wait(3)
    assert receiver.titles[2] == "Jobs of reports/echo are late"  # it is not over, so another one was opened
    with reader.client() as client:
        newer, resolved = client.all_incidents()
        assert (newer.status, resolved.status) == ("open", "resolved")
        assert resolved.acknowledged_by == "admin"
        assert resolved.silenced_until is not None


def test_queues_and_jobs_say_whom_to_tell_as_the_page_says(reader: Reader, receiver: Receiver) -> None:
    _, channel, _, _, _, own, objective = blocks(PAGE, "sh")
    typed(reader, receiver, channel)
    typed(reader, receiver, own)
    with reader.client() as client:
        notify = client.queue("mail").notify
        assert notify is not None
        assert (notify.on, notify.late_after, notify.channels) == (["failed", "late"], 30, ["ops"])
        assert [job.notify is not None for job in client.list()] == [True]
        typed(reader, receiver, objective)
        goal = client.queue("mail").objective
        assert goal is not None
        assert (goal.target, goal.within, goal.over) == (0.99, 1, 7 * 24 * 3600)
        eventually(lambda: all(job.status == "completed" for job in client.list()), "the job to run")
