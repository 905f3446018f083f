"""What `foliot queues set` makes of its words, and what it refuses before asking a node."""

from typing import Any, get_args, get_type_hints

import pytest
from click.testing import CliRunner

from foliot import wire
from foliot.cli import job_options, main, queue_options
from foliot.cli.queue_options import idle_rules, limits_text, policy_text, set_fields, shares_text
from foliot.cli.queues import set_
from foliot.wire import QueueInfo, RateLimitInfo
from foliot.wire.queues import PolicyWord


def info(**fields: Any) -> QueueInfo:
    usual: dict[str, Any] = {"policy": "priority", "aging": None, "weight": 1, "weights": {}, "max_concurrency": None}
    usual |= {"rate_limit": None, "paused": False, "waiting": 0, "running": 0, "oldest_wait": None, "version": 7}
    return QueueInfo(queue="mail", **usual | fields)


def fields_of(*words: str, present: QueueInfo | None = None) -> tuple[dict[str, Any], int | None]:
    given = set_.make_context("set", ["mail", *words]).params
    return set_fields(given, lambda: present)


def unasked() -> QueueInfo:
    raise AssertionError("the queue was read")


def test_only_what_is_given_is_set_and_nothing_is_read_for_it() -> None:
    words = ["mail", "--policy", "fair", "--aging", "10m", "--weight", "2", "--max-concurrency", "10"]
    given = set_.make_context("set", [*words, "--rate", "100/1s", "--burst", "20", "--reset", "weights"]).params
    assert set_fields(given, unasked) == (
        {
            "policy": "fair",
            "aging": "10m",
            "weight": 2.0,
            "max_concurrency": 10,
            "rate_limit": (100, "1s", 20),
            "weights": None,
        },
        None,
    )


def test_a_share_leaves_those_of_the_other_keys() -> None:
    there = info(weights={"a": 3.0, "b": 2.0, "c": 5.0})
    given = fields_of("--share", "a=4", "--share", "x=y=0.5", "--share", "c=1", present=there)
    assert given == ({"weights": {"a": 4.0, "b": 2.0, "x=y": 0.5}}, 7)
    assert fields_of("--share", "a=4") == ({"weights": {"a": 4.0}}, None)


def test_a_rate_keeps_its_burst_and_a_burst_its_rate() -> None:
    there = info(rate_limit=RateLimitInfo(limit=100, per=1.0, burst=20))
    assert fields_of("--rate", "5/1m", present=there) == ({"rate_limit": (5, "1m", 20)}, 7)
    assert fields_of("--burst", "0", present=there) == ({"rate_limit": (100, 1.0, 0)}, 7)
    assert fields_of("--rate", "5/1m", present=info()) == ({"rate_limit": (5, "1m", 0)}, 7)


@pytest.mark.parametrize(
    ("text", "rate"), [("100/1s", (100, "1s")), ("5000/h", (5000, "1h")), ("1/90", (1, 90.0)), ("9/1.5s", (9, "1.5s"))]
)
def test_a_rate_is_so_many_in_a_time(text: str, rate: tuple[int, float | str]) -> None:
    assert fields_of("--rate", text)[0]["rate_limit"][:2] == rate


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["set", "mail"], "set what?"),
        (["set", "mail", "--policy", "lifo"], "Invalid value for '--policy'"),
        (["set", "mail", "--weight", "0"], "0.0 is not in the range"),
        (["set", "mail", "--max-concurrency", "0"], "0 is not in the range"),
        (["set", "mail", "--aging", "long"], "is no duration"),
        (["set", "mail", "--rate", "100"], "'100' is no rate; use 100/1s"),
        (["set", "mail", "--rate", "0/1s"], "'0/1s' is no rate"),
        (["set", "mail", "--rate", "2000000/1s"], "1 to 1,000,000 starts"),
        (["set", "mail", "--rate", "1/1year"], "is no duration"),
        (["set", "mail", "--share", "tenant-a"], "use tenant-a=3"),
        (["set", "mail", "--share", "a=0"], "0.001 to 1,000"),
        (["set", "mail", "--share", "a=nan"], "0.001 to 1,000"),
        (["set", "mail", "--share", "a=1", "--share", "a=2"], "--share a is given twice"),
        (["set", "mail", "--policy", "fair", "--reset", "policy"], "policy can not be given and reset at once"),
        (["set", "mail", "--burst", "1", "--reset", "rate_limit"], "rate_limit can not be given and reset at once"),
        (["set", "mail", "--share", "a=2", "--reset", "weights"], "weights can not be given and reset at once"),
        (["set", "mail", "--reset", "paused"], "Invalid value for '--reset'"),
        (["pause"], "Missing argument"),
    ],
)
def test_wrong_use_is_told_before_a_node_is_asked(words: list[str], told: str) -> None:
    shown = CliRunner().invoke(main, ["queues", *words])
    assert shown.exit_code == 2
    assert told in shown.stderr


def test_the_words_and_bounds_are_the_apis() -> None:
    assert get_args(PolicyWord) == queue_options.POLICIES
    assert set(wire.QueueBody.__struct_fields__) == set(queue_options.RESETTABLE)
    _, share = get_args(wire.queues.Weight)
    assert (share.ge, share.le) == (queue_options.LOWEST_WEIGHT, queue_options.HIGHEST_WEIGHT)
    _, limit = get_args(get_type_hints(wire.RateLimitBody, include_extras=True)["limit"])
    assert (limit.ge, limit.le) == (1, job_options.HIGHEST_LIMIT)


def test_rules_are_told_in_words() -> None:
    full = info(aging=600, max_concurrency=1000, rate_limit=RateLimitInfo(limit=100, per=1, burst=20), weights={"a": 3})
    assert policy_text(full) == "priority, aging 10m"
    assert limits_text(full) == "1,000 at once; 100 per 1s, burst 20"
    assert shares_text(full) == "a=3"
    assert (policy_text(info()), limits_text(info()), shares_text(info())) == ("priority", "", "")
    assert limits_text(info(rate_limit=RateLimitInfo(limit=1, per=0.25, burst=0))) == "1 per 250ms"


def test_what_does_nothing_under_the_policy_is_told() -> None:
    assert idle_rules(info(weights={"a": 3.0})) == "shares count under the policy fair; this queue's is priority"
    assert idle_rules(info(policy="fifo", aging=600)) == "aging counts under the policy priority; this queue's is fifo"
    assert idle_rules(info(policy="fair", weights={"a": 3.0})) is None
    assert idle_rules(info(aging=600)) is None
