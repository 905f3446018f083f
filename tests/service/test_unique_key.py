"""A unique key: while a job with it waits, submitting again answers that job."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from foliot.domain.access import ADMIN, Caller
from foliot.domain.errors import BadInput, Conflict, Unavailable
from foliot.wire import BatchSubmitted, ScheduleBody, ScheduleUpdateBody, Submitted
from tests.service.meddling import failing
from tests.service.network import Network, open_network

LOST = Unavailable("the answer was lost", fate_unknown=True)


@pytest.fixture
async def network() -> AsyncIterator[Network]:
    async with open_network() as network:
        yield network


@pytest.mark.parametrize("fields", [{}, {"delay": "1h"}, {"depends_on": ["parent"]}])
async def test_while_a_job_waits_its_key_answers_that_job(network: Network, fields: dict[str, Any]) -> None:
    await network.submit(job_id="parent", delay="1h")
    first = await network.submitted(unique_key="rebuild", **fields)
    assert first == Submitted(job_id=first.job_id)
    again = await network.submitted("other", unique_key="rebuild", payload={"n": 2})
    assert again == Submitted(job_id=first.job_id, duplicate=True)
    assert await network.known() == 2
    assert (await network.info(first.job_id)).unique_key == "rebuild"


async def test_a_held_job_and_one_that_is_to_be_tried_again_wait_too(network: Network) -> None:
    worker = await network.worker()
    job_id = await network.submit(unique_key="u")
    await network.pause(job_id)
    assert (await network.submitted(unique_key="u")).duplicate
    await network.resume(job_id)
    assert await network.run(worker, "retriable_failure") == [job_id]
    assert await network.status(job_id) == "retrying"
    assert await network.submitted(unique_key="u") == Submitted(job_id=job_id, duplicate=True)


@pytest.mark.parametrize("stage", ["running", "completed", "cancelled"])
async def test_once_it_runs_or_has_ended_the_next_job_takes_the_key(network: Network, stage: str) -> None:
    worker = await network.worker()
    first = await network.submit(unique_key="u")
    match stage:
        case "running":
            await network.take_one(worker)
        case "completed":
            await network.run(worker)
        case _:
            await network.cancel(first)
    second = await network.submitted(unique_key="u")
    assert (second.duplicate, second.job_id == first) == (False, False)
    assert await network.submitted(unique_key="u") == Submitted(job_id=second.job_id, duplicate=True)


async def test_the_clients_own_id_of_the_other_job_is_answered(network: Network) -> None:
    await network.submit(job_id="mine", unique_key="u")
    assert await network.submitted(job_id="yours", unique_key="u") == Submitted(job_id="mine", duplicate=True)


async def test_the_same_job_again_is_itself_and_no_duplicate(network: Network) -> None:
    body: dict[str, Any] = {"job_id": "mine", "unique_key": "u"}
    assert await network.submitted(**body) == await network.submitted(**body) == Submitted(job_id="mine")


async def test_a_job_id_with_another_body_is_refused_whatever_its_key(network: Network) -> None:
    await network.submit(job_id="mine", unique_key="u")
    with pytest.raises(Conflict, match="'mine' is taken"):
        await network.submit(job_id="mine", unique_key="u", payload=5)


async def test_in_a_batch_duplicates_are_told_by_their_places(network: Network) -> None:
    waiting = await network.submit(unique_key="old")
    answer = await network.batch(
        {"job_id": "a", "unique_key": "x"},
        {"unique_key": "old"},
        {"job_id": "b"},
        {"job_id": "c", "unique_key": "x"},
    )
    assert answer == BatchSubmitted(job_ids=["a", waiting, "b", "a"], duplicates=(1, 3))
    assert await network.known() == 3


async def test_a_child_of_a_duplicate_depends_on_the_job_that_is_there(network: Network) -> None:
    worker = await network.worker()
    waiting = await network.submit(unique_key="u")
    await network.batch({"job_id": "again", "unique_key": "u"}, {"job_id": "child", "depends_on": ["again"]})
    assert [await network.run(worker), await network.run(worker)] == [[waiting], ["child"]]


async def test_the_same_key_in_another_namespace_is_another_key(network: Network) -> None:
    await network.submit(unique_key="u")
    assert not (await network.submitted(caller=Caller(name="x", namespace="elsewhere"), unique_key="u")).duplicate


async def test_a_batch_whose_answer_was_lost_has_no_duplicates(network: Network) -> None:
    network.store.after("insert_jobs", failing(LOST))
    answer = await network.batch({"unique_key": "x"}, {"unique_key": "y"})
    assert (answer.duplicates, await network.known()) == ((), 2)


async def test_a_request_sent_again_under_its_key_is_answered_with_the_same_jobs(network: Network) -> None:
    await network.submit(job_id="old", unique_key="x")
    jobs: list[dict[str, object]] = [{"unique_key": "x"}, {"unique_key": "y"}]
    first = await network.batch(*jobs, request_key="once")
    again = await network.batch(*jobs, request_key="once")
    assert list(again.job_ids) == list(first.job_ids)
    assert await network.known() == 2


async def test_a_unique_key_can_not_be_changed(network: Network) -> None:
    job_id = await network.submit(unique_key="u")
    for other in ("v", None):
        with pytest.raises(BadInput) as caught:
            await network.change(job_id, unique_key=other)
        assert [error.field for error in caught.value.errors] == ["unique_key"]
    assert await network.change(job_id, unique_key="u", priority="high") == "updated"
    plain = await network.submit()
    assert await network.change(plain, unique_key=None) == "updated"
    with pytest.raises(BadInput):
        await network.change(plain, unique_key="u")


async def test_a_job_that_runs_again_waits_under_its_key_again(network: Network) -> None:
    worker = await network.worker()
    first = await network.submit(unique_key="u")
    await network.run(worker, "fatal_failure")
    await network.retry(first)
    assert await network.submitted(unique_key="u") == Submitted(job_id=first, duplicate=True)


async def test_a_schedule_may_be_changed_while_runs_with_a_unique_key_wait(network: Network) -> None:
    body = {"schedule_id": "beat", "every": "1h", "job": {"job_type": "echo", "unique_key": "u"}}
    await network.services.schedules.create(msgspec.convert(body, ScheduleBody), ADMIN)
    run = (await network.services.schedules.trigger("beat", ADMIN)).job_id
    change = msgspec.convert({"job": {"job_type": "echo", "queue": "slow", "unique_key": "other"}}, ScheduleUpdateBody)
    await network.services.schedules.update("beat", change, if_match=None, caller=ADMIN)
    info = await network.info(run)
    assert (info.queue, info.unique_key) == ("slow", "u"), "what it has it keeps"


async def test_a_unique_key_bars_no_run_of_a_schedule(network: Network) -> None:
    await network.submit(job_id="waits", unique_key="u")
    body = {"schedule_id": "beat", "every": "1h", "job": {"job_type": "echo", "unique_key": "u"}}
    await network.services.schedules.create(msgspec.convert(body, ScheduleBody), ADMIN)
    runs = [(await network.services.schedules.trigger("beat", ADMIN)).job_id for _ in range(2)]
    assert len(set(runs)) == 2
    assert [(await network.info(run)).unique_key for run in runs] == ["u", "u"]
    assert await network.submitted(unique_key="u") == Submitted(job_id="waits", duplicate=True)
