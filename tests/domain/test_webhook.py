"""Which events a webhook takes, how its messages are signed, and when they are tried again."""

import base64
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook as Receiver

from foliot.domain.duration import DAY, HOUR, MINUTE, SECOND
from foliot.domain.feed import ALL_STATUSES, mask_of
from foliot.domain.status import STATUSES
from foliot.domain.webhook import (
    KINDS,
    LONGEST_RETRY_AFTER,
    WAITS,
    Match,
    Outcome,
    Verdict,
    Webhook,
    judge,
    new_secret,
    read_word,
    sign,
    wait_before,
)

NOW = 1_900_000_000 * SECOND
MIDDLE = 0.5  # of chance: no jitter


def webhook(*events: str, **fields: object) -> Webhook:
    return Webhook(url="https://example.org/", events=events or ("*",), secret="whsec_", **fields)  # type: ignore[arg-type]


# events


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("*", "*"),
        ("foliot.*", "*"),
        ("job.*", "job.*"),
        ("job.failed", "job.failed"),
        ("foliot.job.failed", "job.failed"),
        ("worker.lost", "worker.lost"),
        ("schedule.*", "schedule.*"),
    ],
)
def test_a_word_for_events_has_one_form(text: str, word: str) -> None:
    assert read_word(text) == word


@pytest.mark.parametrize("text", ["", "job", "job.", "job.fail", "jobs.failed", "*.failed", "foliot.", "worker.found"])
def test_what_can_mean_no_event_is_no_word(text: str) -> None:
    assert read_word(text) is None


def test_every_kind_of_event_has_a_word() -> None:
    for family, kinds in KINDS.items():
        assert all(read_word(f"foliot.{family}.{kind}") == f"{family}.{kind}" for kind in kinds)


def test_a_webhook_listens_to_what_it_names() -> None:
    assert webhook("job.failed").listens("job.failed")
    assert not webhook("job.failed").listens("job.completed")
    assert webhook("worker.lost", "job.*").listens("job.completed")
    assert not webhook("job.*").listens("worker.lost")
    assert webhook("*").listens("worker.lost")


def test_only_the_statuses_that_a_webhook_names_are_read_for_it() -> None:
    assert webhook("job.failed", "job.cancelled", "worker.lost").mask == mask_of(["failed", "cancelled"])
    assert webhook("worker.*").mask == 0
    assert webhook("job.*").mask == webhook("*").mask == ALL_STATUSES == mask_of(STATUSES)


def test_all_that_is_given_must_match() -> None:
    job = {"queue": "line", "job_type": "kind", "schedule_id": "plan", "tags": ("a", "b")}
    for match in (
        Match(),
        Match(queue="line"),
        Match(job_type="kind", tag="b"),
        Match(queue="line", job_type="kind", schedule_id="plan", tag="a"),
    ):
        assert match.takes(**job)  # type: ignore[arg-type]
    for match in (Match(queue="x"), Match(queue="line", job_type="x"), Match(schedule_id="x"), Match(tag="c")):
        assert not match.takes(**job)  # type: ignore[arg-type]
    assert not Match(queue="line").takes()
    assert not Match(tag="a").takes()


# signatures


def test_an_outside_client_takes_what_was_signed() -> None:
    secret, body = new_secret(), '{"é":1}'.encode()
    now = round(datetime.now(UTC).timestamp() * SECOND)
    headers = sign("wd_1", now, body, [secret])
    assert Receiver(secret).verify(body, headers) == {"é": 1}
    assert headers["webhook-id"] == "wd_1"
    assert headers["webhook-timestamp"] == str(now // SECOND)


def test_a_message_signed_with_two_secrets_is_taken_with_either() -> None:
    old, new = new_secret(), new_secret()
    headers = sign("wd_1", round(datetime.now(UTC).timestamp() * SECOND), b"{}", [new, old])
    assert len(headers["webhook-signature"].split(" ")) == 2
    for secret in (old, new):
        assert Receiver(secret).verify(b"{}", headers) == {}


def test_secrets_are_long_and_never_the_same() -> None:
    made = {new_secret() for _ in range(20)}
    assert len(made) == 20
    assert all(each.startswith("whsec_") for each in made)
    assert all(len(base64.b64decode(each.removeprefix("whsec_"))) == 32 for each in made)


# tries


def test_waits_grow_and_chance_spreads_them() -> None:
    assert [wait_before(number, MIDDLE) for number in range(1, len(WAITS) + 1)] == list(WAITS)
    assert wait_before(len(WAITS) + 1, MIDDLE) is None
    assert wait_before(1, 0.0) == 4.5 * SECOND
    assert wait_before(1, 1.0) == 5.5 * SECOND


def decide(hook: Webhook, outcome: Outcome, attempts: int = 1) -> Verdict:
    return judge(hook, outcome, attempts=attempts, now=NOW, chance=MIDDLE)


@pytest.mark.parametrize("status", [200, 202, 204, 299])
def test_what_was_taken_is_delivered(status: int) -> None:
    assert decide(webhook(failing_since=NOW - 10 * DAY), Outcome(status=status)) == Verdict(state="delivered")


@pytest.mark.parametrize("outcome", [Outcome(error="no answer"), *(Outcome(status=s) for s in (199, 301, 400, 500))])
def test_what_was_not_taken_is_tried_again(outcome: Outcome) -> None:
    assert decide(webhook(), outcome, 2) == Verdict(state="pending", next_try=NOW + 5 * MINUTE, failing_since=NOW)


def test_a_receiver_that_is_gone_switches_the_webhook_off() -> None:
    assert decide(webhook(), Outcome(status=410)) == Verdict(state="failed", failing_since=NOW, off="gone")


def test_a_webhook_is_switched_off_when_it_has_failed_for_long_enough() -> None:
    since = NOW - 2 * HOUR
    failing = webhook(failing_since=since, give_up_after=2 * HOUR)
    assert decide(failing, Outcome(status=500)) == Verdict(state="failed", failing_since=since, off="failing")


def test_the_last_try_is_when_the_time_is_over() -> None:
    since = NOW - HOUR
    verdict = decide(webhook(failing_since=since, give_up_after=90 * MINUTE), Outcome(status=500), 4)
    assert verdict == Verdict(state="pending", next_try=since + 90 * MINUTE, failing_since=since)


def test_a_message_that_is_never_taken_is_given_up_though_others_are_taken() -> None:
    assert decide(webhook(), Outcome(status=400), len(WAITS) + 1) == Verdict(state="failed", failing_since=NOW)


def test_a_receiver_may_ask_for_more_time_but_not_for_any() -> None:
    asked = Outcome(status=429, retry_after=60 * SECOND)
    assert decide(webhook(), asked).next_try == NOW + 60 * SECOND
    assert decide(webhook(), asked, 2).next_try == NOW + 5 * MINUTE
    endless = Outcome(status=503, retry_after=1000 * DAY)
    assert decide(webhook(), endless).next_try == NOW + LONGEST_RETRY_AFTER
