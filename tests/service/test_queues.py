"""Queues with rules of their own: policies, holds, limits and rates, as workers see them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from msgspec import UNSET

from foliot.domain.access import ADMIN
from foliot.domain.errors import BadInput, NotFound, Stale
from foliot.wire import QueueBody, QueueInfo, RateLimitBody
from tests.service.almanac import Almanac, open_almanac


@pytest.fixture
async def almanac() -> AsyncIterator[Almanac]:
    async with open_almanac() as almanac:
        yield almanac


async def set_queue(almanac: Almanac, name: str = "default", **rules: object) -> QueueInfo:
    return await almanac.services.queues.set(name, QueueBody(**rules), if_match=None, caller=ADMIN)  # type: ignore[arg-type]


async def settle(almanac: Almanac) -> None:
    """What the duties of a node do."""
    await almanac.services.dispatch.look()
    await almanac.services.gate.put_in_order()
    almanac.services.gate.let_in()


async def take_ids(almanac: Almanac, worker: str, count: int) -> list[str]:
    await settle(almanac)
    return [job.job_id for job in await almanac.take(worker, count)]


async def test_fifo_goes_by_time_and_priority_by_priority(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await set_queue(almanac, policy="fifo")
    low, high = await almanac.submit(priority="low"), await almanac.submit(priority="high")
    assert await take_ids(almanac, worker, 1) == [low]
    again = await almanac.submit(priority="high")
    await settle(almanac)
    await set_queue(almanac, policy="priority")
    medium = await almanac.submit()
    assert await take_ids(almanac, worker, 9) == [high, again, medium]


async def test_aging_lets_an_old_job_of_low_priority_go_before_a_new_one_of_high(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await set_queue(almanac, aging="10s")
    low = await almanac.submit(priority=0)
    almanac.clock.pass_seconds(91)
    high = await almanac.submit(priority=9)
    almanac.clock.pass_seconds(1)
    young = await almanac.submit(priority=0)
    assert await take_ids(almanac, worker, 9) == [low, high, young]


async def test_with_a_hundred_waiting_of_one_and_ten_of_another_the_ten_are_through_after_twenty(
    almanac: Almanac,
) -> None:
    worker = await almanac.worker(resources={})
    await set_queue(almanac, policy="fair")
    for _ in range(100):
        await almanac.submit(fair_key="a")
    await settle(almanac)
    few = [await almanac.submit(fair_key="b") for _ in range(10)]
    assert set(few) <= set(await take_ids(almanac, worker, 21))


async def test_the_owner_counts_where_no_fair_key_is_given_and_weights_are_shares(almanac: Almanac) -> None:
    worker = await almanac.worker(resources={})
    await set_queue(almanac, policy="fair", weights={"a": 3})
    owners = {await almanac.submit(owner=owner): owner for _ in range(30) for owner in "ab"}
    assert Counter(owners[job] for job in await take_ids(almanac, worker, 20)) == {"a": 15, "b": 5}


async def test_new_weights_apply_to_what_waits(almanac: Almanac) -> None:
    worker = await almanac.worker(resources={})
    await set_queue(almanac, policy="fair")
    owners = {await almanac.submit(owner=owner): owner for _ in range(30) for owner in "ab"}
    await settle(almanac)
    await set_queue(almanac, weights={"b": 4})
    assert Counter(owners[job] for job in await take_ids(almanac, worker, 20)) == {"a": 4, "b": 16}


async def test_a_key_gets_back_what_its_cancelled_jobs_would_have_cost(almanac: Almanac) -> None:
    worker = await almanac.worker(resources={})
    await set_queue(almanac, policy="fair")
    gone = [await almanac.submit(fair_key="a") for _ in range(50)]
    other = [await almanac.submit(fair_key="b") for _ in range(20)]
    await settle(almanac)
    for job_id in gone:
        await almanac.cancel(job_id)
    late = [await almanac.submit(fair_key="a") for _ in range(5)]
    assert set(late) <= set(await take_ids(almanac, worker, 11))
    assert set(other) > set(await take_ids(almanac, worker, 3))


async def test_between_queues_weights_hold_also_where_there_is_room_for_one_at_a_time(almanac: Almanac) -> None:
    worker = await almanac.worker(resources={})
    await set_queue(almanac, "fast", weight=3)
    queues = {await almanac.submit(queue=queue): queue for _ in range(40) for queue in ("slow", "fast")}
    taken = [queues[job] for _ in range(20) for job in await take_ids(almanac, worker, 1)]
    assert Counter(taken) == {"fast": 15, "slow": 5}


async def test_nothing_of_a_paused_queue_starts_until_it_is_resumed(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.services.queues.pause("mail", if_match=None, caller=ADMIN)
    held, other = await almanac.submit(queue="mail"), await almanac.submit()
    assert await take_ids(almanac, worker, 9) == [other]
    assert (await almanac.services.queues.read("mail", ADMIN)).paused
    assert await almanac.status(held) == "queued"
    await almanac.services.queues.resume("mail", if_match=None, caller=ADMIN)
    assert await take_ids(almanac, worker, 9) == [held]


async def test_nothing_of_a_paused_job_type_starts_until_it_is_resumed(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.services.queues.hold_type("mail", held=True, caller=ADMIN)
    held, other = await almanac.submit("mail", queue="x"), await almanac.submit("echo", queue="x")
    assert await take_ids(almanac, worker, 9) == [other]
    assert [each.job_type for each in await almanac.services.queues.held_types(ADMIN)] == ["mail"]
    await almanac.services.queues.hold_type("mail", held=False, caller=ADMIN)
    assert await take_ids(almanac, worker, 9) == [held]
    assert await almanac.services.queues.held_types(ADMIN) == []


async def test_a_worker_that_waits_is_given_a_job_when_a_place_in_a_full_queue_becomes_free(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await set_queue(almanac, max_concurrency=1)
    _, second = [await almanac.submit() for _ in range(2)]
    running = (await almanac.take(worker))[0]
    assert await almanac.take(worker) == []
    call = asyncio.create_task(almanac.exchange(worker, free={"slot": 1}, wait=10))
    await almanac.report(worker, running, "success")
    assert [job.job_id for job in (await call).jobs] == [second]


async def test_a_retried_or_released_attempt_leaves_its_place(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await set_queue(almanac, max_concurrency=1)
    first, second = [await almanac.submit(retry={"delays": ["1h"]}) for _ in range(2)]
    await almanac.report(worker, (await almanac.take(worker))[0], "retriable_failure")
    (job,) = await almanac.take(worker)
    assert job.job_id == second
    await almanac.report(worker, job, "released")
    assert [job.job_id for job in await almanac.take(worker)] == [second]
    assert await almanac.status(first) == "retrying"


async def test_what_ran_when_a_limit_was_set_counts(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.submit()
    (running,) = await almanac.take(worker)
    await set_queue(almanac, max_concurrency=1)
    await almanac.submit()
    assert await almanac.take(worker) == []
    await almanac.report(worker, running, "success")
    assert len(await almanac.take(worker)) == 1


async def test_a_rate_lets_the_next_start_at_its_moment(almanac: Almanac) -> None:
    worker = await almanac.worker(resources={})
    await set_queue(almanac, rate_limit=RateLimitBody(limit=2, per="1s", burst=1))
    for _ in range(10):
        await almanac.submit()
    assert len(await take_ids(almanac, worker, 9)) == 2
    assert await take_ids(almanac, worker, 9) == []
    moment = almanac.services.gate.next_moment
    assert moment is not None
    assert 0.49 < (moment - almanac.clock.now()) / 1e6 < 0.51
    assert await take_ids(almanac, worker, 9) == []
    almanac.clock.time = moment
    assert len(await take_ids(almanac, worker, 9)) == 1


async def test_after_a_minute_away_a_backlog_does_not_break_the_rate(almanac: Almanac) -> None:
    worker = await almanac.worker(resources={})
    await set_queue(almanac, rate_limit=RateLimitBody(limit=5, per="1s", burst=2))
    for _ in range(50):
        await almanac.submit()
    almanac.clock.pass_seconds(60)
    started = []
    for _ in range(100):
        started += [almanac.clock.now() / 1e6] * len(await take_ids(almanac, worker, 50))
        almanac.clock.pass_seconds(0.05)
    assert max(sum(0 <= other - one <= 1 for other in started) for one in started) == 7
    assert len(started) >= 25


async def test_rules_that_are_not_given_stay_and_null_sets_one_back(almanac: Almanac) -> None:
    first = await set_queue(almanac, "mail", policy="fair", weight=2.0, weights={"a": 2.0}, max_concurrency=3)
    second = await set_queue(almanac, "mail", aging="1m", rate_limit=RateLimitBody(limit=1, per="2s", burst=3))
    assert (second.policy, second.weight, second.max_concurrency, second.aging) == ("fair", 2.0, 3, 60.0)
    assert (first.version, second.version) == (1, 2)
    nothing = dict.fromkeys(("policy", "aging", "weight", "weights", "max_concurrency", "rate_limit"))
    third = await set_queue(almanac, "mail", **nothing)
    assert (third.policy, third.weight, third.weights, third.max_concurrency, third.rate_limit, third.aging) == (
        "priority",
        1.0,
        {},
        None,
        None,
        None,
    )


async def test_a_change_from_an_old_view_is_refused(almanac: Almanac) -> None:
    queues = almanac.services.queues
    await queues.set("mail", QueueBody(weight=2.0), if_match=None, caller=ADMIN)
    await queues.pause("mail", if_match=1, caller=ADMIN)
    with pytest.raises(Stale, match="is at version 2, not 1"):
        await queues.set("mail", QueueBody(weight=3.0), if_match=1, caller=ADMIN)
    with pytest.raises(Stale, match="is at version 0, not 1"):
        await queues.pause("other", if_match=1, caller=ADMIN)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (QueueBody(aging="0s"), "aging"),
        (QueueBody(aging="500d"), "aging"),
        (QueueBody(aging="soon"), "aging"),
        (QueueBody(rate_limit=RateLimitBody(limit=1, per="0s")), "rate_limit.per"),
        (QueueBody(rate_limit=RateLimitBody(limit=1, per="60d")), "rate_limit.per"),
    ],
)
async def test_rules_that_can_not_be_are_refused_by_name(almanac: Almanac, body: QueueBody, field: str) -> None:
    with pytest.raises(BadInput) as caught:
        await almanac.services.queues.set("mail", body, if_match=None, caller=ADMIN)
    assert [error.field for error in caught.value.errors] == [field]
    with pytest.raises(NotFound):
        await almanac.services.queues.read("mail", ADMIN)
    assert body.policy is UNSET


async def test_queues_are_listed_by_name_with_how_full_they_are(almanac: Almanac) -> None:
    worker = await almanac.worker()
    for queue in ("b", "a", "a", "c"):
        await almanac.submit(queue=queue)
    almanac.clock.pass_seconds(5)
    await almanac.take(worker, 1)
    first, cursor = await almanac.services.queues.page(limit=2, cursor=None, caller=ADMIN)
    second, end = await almanac.services.queues.page(limit=2, cursor=cursor, caller=ADMIN)
    assert [each.queue for each in (*first, *second)] == ["a", "b", "c"]
    assert end is None
    assert sum(each.running for each in (*first, *second)) == 1
    assert sum(each.waiting for each in (*first, *second)) == 3
    assert {each.oldest_wait for each in (*first, *second) if each.waiting} == {5.0}
