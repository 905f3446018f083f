"""A queue's rules, and what a node makes of them."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.duration import HOUR, MINUTE
from foliot.domain.job import Lane
from foliot.domain.queue import DEFAULT_RULES, Queue, QueueBook, QueueRules, Room, changes_order
from foliot.domain.rank import rank
from foliot.domain.rate import RateLimit, after_starts, may_start

NOW = 1_750_000_000_000_000
RATE = RateLimit(limit=10, per=HOUR, burst=2)

RULES = st.builds(
    QueueRules,
    policy=st.sampled_from(["fifo", "priority", "fair"]),
    aging=st.sampled_from([None, MINUTE, HOUR]),
    weight=st.sampled_from([1.0, 2.0]),
    weights=st.sampled_from([{}, {"a": 2.0}, {"b": 2.0}]),
    max_concurrency=st.sampled_from([None, 1, 3]),
    rate_limit=st.sampled_from([None, RATE, RateLimit(limit=1, per=MINUTE)]),
)


def queue(name: str = "mail", **fields: Any) -> Queue:
    defaults: dict[str, Any] = {"queue_id": 1, "namespace": "default", "name": name}
    return Queue(**(defaults | fields))


@pytest.mark.parametrize(
    ("rules", "ordering"),
    [
        (DEFAULT_RULES, ""),
        (QueueRules(weights={"a": 2.0}), ""),
        (QueueRules(aging=MINUTE), "aging:60000000"),
        (QueueRules(policy="fifo", aging=MINUTE), "fifo"),
        (QueueRules(policy="fair", aging=MINUTE), "fair:7"),
    ],
)
def test_an_ordering_is_of_its_policy_and_fair_ones_of_their_version(rules: QueueRules, ordering: str) -> None:
    assert queue(version=9, ordered=7, rules=rules).ordering == ordering


@given(before=RULES, after=RULES)
def test_where_the_order_of_jobs_changes_so_does_the_ordering_and_nowhere_else(
    before: QueueRules, after: QueueRules
) -> None:
    old = queue(version=4, ordered=4, rules=before)
    reordered = changes_order(before, after)
    new = msgspec.structs.replace(old, version=5, ordered=5 if reordered else 4, rules=after)
    if before.policy == "fair" == after.policy:
        assert reordered is (before.weights != after.weights)
        assert (old.ordering != new.ordering) is reordered
    elif old.ordering != new.ordering:
        assert reordered
    if not reordered:
        assert old.ordering == new.ordering
        assert rank(3, NOW, "" if after.policy == "fair" else new.ordering) == rank(
            3, NOW, "" if before.policy == "fair" else old.ordering
        )


@given(rules=RULES)
def test_rules_read_back_as_they_were_written(rules: QueueRules) -> None:
    assert msgspec.json.decode(msgspec.json.encode(rules), type=QueueRules) == rules
    assert changes_order(rules, rules) is False


@pytest.mark.parametrize(
    ("rules", "limited"),
    [
        (DEFAULT_RULES, False),
        (QueueRules(policy="fair", weight=2.0), False),
        (QueueRules(max_concurrency=1), True),
        (QueueRules(rate_limit=RATE), True),
    ],
)
def test_limits_are_how_many_at_once_and_how_many_in_a_time(rules: QueueRules, limited: bool) -> None:
    assert rules.limited is limited
    assert (Room(rules=rules).starts(NOW) is not None) is limited


@given(
    rules=RULES,
    running=st.one_of(st.none(), st.integers(0, 5)),
    started=st.integers(0, 5),
    later=st.integers(0, 2 * HOUR),
)
def test_a_room_lets_as_many_start_as_its_closer_limit(
    rules: QueueRules, running: int | None, started: int, later: int
) -> None:
    rate = rules.rate_limit
    next_beat = 0 if rate is None else after_starts(rate, 0, NOW, started)
    room, now = Room(rules=rules, running=running, next_beat=next_beat), NOW + later
    starts = room.starts(now)
    places = None if rules.max_concurrency is None else max(0, rules.max_concurrency - (running or 0))
    beats = None if rate is None else may_start(rate, next_beat, now)
    assert starts == min((count for count in (places, beats) if count is not None), default=None)
    assert room.full() is (places == 0 and running is not None)
    until = room.wait_until(now)
    if beats == 0:
        assert until is not None
        assert until > now
        assert room.wait_until(until) is None
        assert room.wait_until(until - 1) == until
    else:
        assert until is None


def test_a_book_knows_queues_by_namespace_and_name_and_leaves_the_others_to_the_defaults() -> None:
    fair = queue(rules=QueueRules(policy="fair", weight=3.0))
    book = QueueBook([fair, queue("held", paused=True, queue_id=2)], [("default", "sleepy"), ("other", "echo")])
    mail = Lane("default", "mail", "echo")
    assert book.queue(mail) == fair
    assert book.queue(Lane("other", "mail", "echo")) is None
    assert (book.weight(("default", "mail")), book.weight(("other", "mail"))) == (3.0, 1.0)


def test_nothing_of_a_paused_queue_or_job_type_may_start() -> None:
    book = QueueBook([queue("held", paused=True), queue("open")], [("default", "sleepy")])
    held = [
        book.held(Lane("default", "held", "echo")),
        book.held(Lane("default", "open", "sleepy")),
        book.held(Lane("default", "unknown", "sleepy")),
        book.held(Lane("default", "open", "echo")),
        book.held(Lane("other", "held", "sleepy")),
    ]
    assert held == [True, True, True, False, False]


def test_jobs_are_in_order_where_their_lane_has_the_queues_ordering() -> None:
    book = QueueBook([queue(ordered=3, rules=QueueRules(policy="fair"))])
    plain, ordered = Lane("default", "mail", "echo"), Lane("default", "mail", "echo", "", "fair:3")
    assert [book.in_order(lane) for lane in (plain, ordered)] == [False, True]
    assert [QueueBook().in_order(lane) for lane in (plain, ordered)] == [True, False]
    assert not book.in_order(msgspec.structs.replace(plain, ordering="fair:2"))
