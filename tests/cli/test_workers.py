"""What `foliot workers` tells of a worker."""

from datetime import UTC, datetime

import pytest

from foliot.cli.workers import COLUMNS, load_text, offer_text
from foliot.wire import WorkerInfo

NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


def worker(resources: dict[str, float], labels: dict[str, str] | None = None) -> WorkerInfo:
    return WorkerInfo(
        worker_id="w_1",
        name="one",
        status="alive",
        queues=[],
        job_types=[],
        resources=resources,
        labels=labels or {},
        since=NOON,
        last_seen=NOON,
        lease_until=NOON,
        running=["j_1"],
    )


@pytest.mark.parametrize(
    ("resources", "labels", "told"),
    [
        ({"slot": 20}, {}, ""),
        ({"slot": 20, "cpu": 4, "gpu": 0}, {}, "cpu=4, gpu=0"),
        ({"cpu": 0.5, "memory": 8 * 2**30}, {"zone": "eu"}, "cpu=0.5, memory=8Gi, zone=eu"),
        ({"memory": 256 * 2**20, "tape": 123456789}, {"a": "b", "c": "d"}, "memory=256Mi, tape=123456789, a=b, c=d"),
    ],
)
def test_an_offer_is_told_as_it_is_given(resources: dict[str, float], labels: dict[str, str], told: str) -> None:
    assert offer_text(worker(resources, labels)) == told


def test_load_is_counted_in_slots() -> None:
    assert load_text(worker({"slot": 4, "cpu": 1})).endswith(" 1/4")


def test_no_column_is_shown_twice() -> None:
    assert len(set(COLUMNS)) == len(COLUMNS)
