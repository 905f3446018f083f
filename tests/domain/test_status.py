"""The words under which a job's standing is shown."""

import pytest

from foliot.domain import events as e
from foliot.domain.changes import Requeue
from foliot.domain.duration import HOUR
from foliot.domain.job import AttemptStatus, Row, State
from foliot.domain.retry import Retry
from foliot.domain.states import transition
from foliot.domain.status import STATUSES, WAITING_STATUSES, execution_status, is_ended, status_of
from tests.domain.rows import NOW, make_ended, make_job, make_lease, make_ready, make_waiting

SHOWN: list[tuple[Row, str]] = [
    (make_waiting(), "scheduled"),
    (make_waiting(parents=1), "blocked"),
    (make_waiting(parents=1, attempt=1), "blocked"),
    (make_waiting(hold=True), "paused"),
    (make_waiting(hold=True, parents=1), "paused"),
    (make_waiting(hold=True, attempt=1), "paused"),
    (make_waiting(attempt=1), "retrying"),
    (make_waiting(limit_id=1, for_key=True), "queued"),
    (make_waiting(limit_id=1, for_key=True, attempt=1), "queued"),
    (make_ready(), "queued"),
    (make_ready(attempt=1), "queued"),
    (make_lease(), "running"),
    (make_lease(cancel_asked=NOW), "running"),
    (make_ended(State.COMPLETED), "completed"),
    (make_ended(State.FAILED), "failed"),
    (make_ended(State.CANCELLED), "cancelled"),
]


@pytest.mark.parametrize(("row", "status"), SHOWN, ids=[f"{number}-{shown}" for number, (_, shown) in enumerate(SHOWN)])
def test_a_row_is_shown_by_its_word(row: Row, status: str) -> None:
    assert status_of(row) == status


def test_every_word_is_shown_by_some_row_and_no_other() -> None:
    assert {status for _, status in SHOWN} == set(STATUSES)
    assert len(STATUSES) == 9


def test_a_released_job_is_queued_not_retrying() -> None:
    change = transition(make_lease(), e.Release(), NOW, retry=Retry())
    assert isinstance(change, Requeue)
    assert status_of(change.row) == "queued"


def test_a_released_job_that_is_paused_and_resumed_is_queued_again() -> None:
    row: Row = make_lease()
    for event, status in ((e.Release(), "queued"), (e.Pause(), "paused"), (e.Resume(), "queued")):
        change = transition(row, event, NOW, retry=Retry())
        assert isinstance(change, Requeue)
        row = change.row
        assert status_of(row) == status


def test_a_failed_attempt_leaves_a_job_retrying_until_its_next_try_is_due() -> None:
    failed = transition(make_lease(), e.FailRetriable(retry_after=HOUR), NOW, retry=Retry())
    assert isinstance(failed, Requeue)
    assert status_of(failed.row) == "retrying"
    due = transition(failed.row, e.Due(), NOW + HOUR, retry=Retry())
    assert isinstance(due, Requeue)
    assert status_of(due.row) == "queued"


def test_a_redriven_job_is_queued() -> None:
    change = transition(make_ended(State.FAILED), e.Redrive(job=make_job()), NOW, retry=Retry())
    assert isinstance(change, Requeue)
    assert status_of(change.row) == "queued"


def test_waiting_means_every_status_before_running() -> None:
    assert {status for status in STATUSES if not is_ended(status)} - {"running"} == set(WAITING_STATUSES)


def test_three_statuses_are_ends() -> None:
    assert [status for status in STATUSES if is_ended(status)] == ["completed", "failed", "cancelled"]


def test_an_attempt_is_claimed_until_its_worker_tells_that_it_started() -> None:
    assert execution_status(make_lease()) is AttemptStatus.CLAIMED
    assert execution_status(make_lease(started=NOW)) is AttemptStatus.PROCESSING
