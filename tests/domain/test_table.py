"""The state table: every (state, event) pair is walked, and the code does what the table says, no less and no more."""

import pytest

from foliot.domain import events as e
from foliot.domain.changes import Change, End, Held, Mark, Refusal, Requeue
from foliot.domain.duration import MINUTE
from foliot.domain.ids import JobKey
from foliot.domain.job import AttemptStatus, Lease, Ready, Row, State
from foliot.domain.retry import Retry
from foliot.domain.states import RULES, claim, place_of, state_of, transition
from tests.domain.rows import KEY, NOW, WORKER, make_ended, make_job, make_lease, make_ready, make_waiting

PAST = NOW - MINUTE

# Rows that differ in what a rule may look at.
ROWS: dict[State, list[Row | Held]] = {
    State.BLOCKED: [
        make_waiting(parents=2),
        make_waiting(parents=1, due=PAST),
        make_waiting(parents=1, due=PAST, hold=True),
        make_waiting(parents=1, deadline=PAST),
        make_waiting(parents=1, due=PAST, limit_id=3),
    ],
    State.SCHEDULED: [
        make_waiting(),
        make_waiting(due=PAST),
        make_waiting(due=PAST, hold=True),
        make_waiting(deadline=PAST),
        make_waiting(attempt=1, counted=1, tries_left=2),
        make_waiting(due=PAST, limit_id=3),
    ],
    State.QUEUED: [
        make_ready(),
        make_ready(deadline=PAST),
        make_ready(attempt=1, tries_left=3),
        make_ready(due=NOW + 1),  # made ready by a node whose clock is ahead
        make_ready(limit_id=3),
        make_waiting(due=PAST, limit_id=3, for_key=True),
        make_waiting(due=NOW + 1, limit_id=3, for_key=True),
        make_waiting(due=PAST, limit_id=3, for_key=True, deadline=PAST),
    ],
    State.RUNNING: [
        make_lease(),
        make_lease(due=NOW + 1),
        make_lease(tries_left=0),
        make_lease(lost=2),
        make_lease(cancel_asked=NOW),
        make_lease(limit_id=3),
        make_lease(started=NOW, progress='{"value":0.5}'),
        Held(id=KEY, nonce=99),
    ],
    State.COMPLETED: [make_ended(State.COMPLETED)],
    State.FAILED: [make_ended(State.FAILED), make_ended(State.FAILED, attempt=0, counted=0, last=None)],
    State.CANCELLED: [make_ended(State.CANCELLED), make_ended(State.CANCELLED, attempt=0, counted=0, last=None)],
}

EVENTS: dict[type[e.Event], list[e.Event]] = {
    e.ParentsDone: [e.ParentsDone()],
    e.ParentEndedOtherwise: [e.ParentEndedOtherwise(reason="parent_failed")],
    e.Due: [e.Due()],
    e.TokenFree: [e.TokenFree()],
    e.Claim: [e.Claim(worker=WORKER, nonce=1, timeout=MINUTE)],
    e.Progress: [e.Progress(progress='{"value":0.5}')],
    e.Succeed: [e.Succeed(result="1")],
    e.FailRetriable: [e.FailRetriable(), e.FailRetriable(retry_after=0)],
    e.TimeOut: [e.TimeOut()],
    e.FailFatal: [e.FailFatal()],
    e.WorkerGone: [e.WorkerGone()],
    e.Overdue: [e.Overdue()],
    e.CancelGraceOver: [e.CancelGraceOver()],
    e.Release: [e.Release()],
    e.Cancel: [e.Cancel()],
    e.Stopped: [e.Stopped()],
    e.Expire: [e.Expire()],
    e.Pause: [e.Pause()],
    e.Resume: [e.Resume()],
    e.Reschedule: [
        e.Reschedule(job=make_job(), due=NOW),
        e.Reschedule(job=make_job(), due=NOW + MINUTE),
        e.Reschedule(job=make_job(limit_key="key"), due=NOW, limit_id=3),
    ],
    e.Redrive: [
        e.Redrive(job=make_job()),
        e.Redrive(job=make_job(due=NOW + MINUTE)),
        e.Redrive(job=make_job(deadline=PAST), rewrite=True),
        e.Redrive(job=make_job(limit_key="key"), limit_id=3),
        e.Redrive(job=make_job(), reopened=(JobKey(7),)),
    ],
}

POLICIES = [Retry(), Retry(delays=(0,)), Retry(on_lost="fail")]


def outcomes(state: State, kind: type[e.Event]) -> list[tuple[Row | Held, Change | Lease | Refusal]]:
    """What comes of the event in all rows of the state, under all policies."""
    found: list[tuple[Row | Held, Change | Lease | Refusal]] = []
    for row in ROWS[state]:
        for event in EVENTS[kind]:
            if isinstance(row, Ready) and isinstance(event, e.Claim):
                found.append((row, claim(row, event, NOW)))
            else:
                found.extend((row, transition(row, event, NOW, retry=policy)) for policy in POLICIES)
    return found


def state_after(outcome: Change | Lease) -> State:
    match outcome:
        case Requeue():
            return state_of(outcome.row)
        case End():
            return outcome.state
        case Mark() | Lease():
            return State.RUNNING


def test_the_rows_of_the_walk_are_in_the_states_they_stand_for() -> None:
    for state, rows in ROWS.items():
        assert {state_of(row) for row in rows} == {state}
    assert set(ROWS) == set(State)


def test_every_event_has_its_line_in_the_table() -> None:
    def kinds(base: type[e.Event]) -> set[type[e.Event]]:
        below = base.__subclasses__()
        return {base} if not below else set().union(*(kinds(kind) for kind in below))

    assert kinds(e.Event) == set(RULES) == set(EVENTS)


@pytest.mark.parametrize("state", State, ids=lambda state: state.name.lower())
@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.__name__)
def test_an_event_leads_where_the_table_says_and_nowhere_else(state: State, kind: type[e.Event]) -> None:
    reached = {state_after(outcome) for _, outcome in outcomes(state, kind) if not isinstance(outcome, Refusal)}
    assert reached == set(RULES[kind].moves.get(state, ()))


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.__name__)
def test_a_refusal_names_the_job_its_state_and_the_event(kind: type[e.Event]) -> None:
    refusals = [outcome for state in State for _, outcome in outcomes(state, kind) if isinstance(outcome, Refusal)]
    assert refusals
    for refusal in refusals:
        assert (refusal.id, refusal.event) == (KEY, kind.__name__)
    assert {refusal.state for refusal in refusals} >= set(State) - set(RULES[kind].sources)


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.__name__)
def test_a_change_names_the_row_that_it_replaces(kind: type[e.Event]) -> None:
    for state in State:
        for row, outcome in outcomes(state, kind):
            match outcome:
                case Requeue() | End():
                    assert outcome.id == row.id
                    assert outcome.source is place_of(row)
                    assert outcome.version == (None if isinstance(row, Held) else row.version)
                    assert outcome.nonce == (row.nonce if isinstance(row, Lease | Held) else None)
                case Mark():
                    assert isinstance(row, Lease | Held)
                    assert (outcome.id, outcome.nonce) == (row.id, row.nonce)


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.__name__)
def test_an_attempt_ends_with_the_status_of_the_table(kind: type[e.Event]) -> None:
    for row, outcome in outcomes(State.RUNNING, kind):
        match outcome:
            case Requeue():
                assert isinstance(row, Lease)
                assert outcome.attempt is not None
                assert outcome.attempt.status is RULES[kind].attempt
                assert (outcome.attempt.attempt, outcome.attempt.nonce) == (row.attempt, row.nonce)
            case End():
                assert outcome.attempt_status is RULES[kind].attempt


def test_what_never_ran_ends_without_an_attempt() -> None:
    for state in (State.BLOCKED, State.SCHEDULED, State.QUEUED):
        for kind in RULES:
            for _, outcome in outcomes(state, kind):
                assert not (isinstance(outcome, End) and outcome.attempt_status)


def test_sources_and_targets_of_a_line_are_those_of_its_moves() -> None:
    rule = RULES[e.Cancel]
    assert rule.sources == (State.BLOCKED, State.SCHEDULED, State.QUEUED, State.RUNNING)
    assert rule.targets == (State.RUNNING, State.CANCELLED)
    assert rule.attempt is None
    assert RULES[e.Claim].attempt is AttemptStatus.CLAIMED
