"""What stands between a lane and a claim, where what a node knows of the rules is old, or others are faster."""

from collections.abc import AsyncIterator

import pytest

from foliot.domain.access import ADMIN, Caller
from foliot.domain.errors import BadInput, Conflict, Forbidden, NotFound
from foliot.service import gate as gate_module
from foliot.service.gate import AGAIN
from foliot.wire import QueueBody, RateLimitBody
from tests.service.almanac import Almanac, open_almanac
from tests.service.conftest import World


@pytest.fixture
async def almanac() -> AsyncIterator[Almanac]:
    async with open_almanac() as almanac:
        yield almanac


@pytest.fixture
def elsewhere(almanac: Almanac) -> World:
    """Another node over the same store."""
    return World(almanac.store, clock=almanac.clock)


async def set_queue(node: World, **rules: object) -> None:
    await node.services.queues.set("default", QueueBody(**rules), if_match=None, caller=ADMIN)  # type: ignore[arg-type]


async def test_who_listens_learns_of_disorder_and_of_moments(almanac: Almanac) -> None:
    heard: list[str] = []
    almanac.services.gate.on_disorder.append(lambda: heard.append("disorder"))
    almanac.services.gate.on_moment.append(lambda: heard.append("moment"))
    worker = await almanac.worker()
    await set_queue(almanac, policy="fifo")
    await almanac.submit()
    assert heard == ["disorder"]
    await almanac.services.gate.put_in_order()
    assert len(await almanac.take(worker)) == 1
    await set_queue(almanac, policy=None, rate_limit=RateLimitBody(limit=1, per="1h"))
    await almanac.submit()
    assert len(await almanac.take(worker)) == 1
    await almanac.submit()
    assert await almanac.take(worker) == []
    assert heard == ["disorder", "moment"]


async def test_many_are_put_in_order_a_part_at_a_time(almanac: Almanac, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "IN_ORDER_CHUNK", 2)
    worker = await almanac.worker()
    await set_queue(almanac, policy="fifo")
    jobs = [await almanac.submit(priority=9 - number) for number in range(5)]
    assert await almanac.services.gate.put_in_order() == 5
    assert [job.job_id for job in await almanac.take(worker)] == jobs


async def test_a_lane_that_is_in_order_by_rules_not_known_yet_is_claimed_from(
    almanac: Almanac, elsewhere: World
) -> None:
    await set_queue(almanac, policy="fifo")
    await elsewhere.services.gate.refresh()
    await set_queue(almanac, policy="priority")
    worker = await elsewhere.worker()
    job_id = await elsewhere.submit()
    assert await elsewhere.take(worker) == []
    assert await elsewhere.services.gate.put_in_order() == 0
    assert [job.job_id for job in await elsewhere.take(worker)] == [job_id]


async def test_a_lane_that_another_node_has_put_in_order_is_left_alone(almanac: Almanac, elsewhere: World) -> None:
    await set_queue(almanac, policy="fifo")
    await elsewhere.services.gate.refresh()
    job_id = await elsewhere.submit()
    await almanac.services.dispatch.look()
    assert await almanac.services.gate.put_in_order() == 1
    assert await elsewhere.services.gate.put_in_order() == 0
    worker = await almanac.worker()
    assert [job.job_id for job in await almanac.take(worker)] == [job_id]


async def test_limits_that_were_taken_away_elsewhere_hold_nobody_up(almanac: Almanac, elsewhere: World) -> None:
    await set_queue(almanac, max_concurrency=1)
    await elsewhere.services.gate.refresh()
    await set_queue(almanac, max_concurrency=None)
    worker = await elsewhere.worker()
    for _ in range(3):
        await elsewhere.submit()
    assert len(await elsewhere.take(worker)) == 3


async def test_limits_that_were_set_elsewhere_hold_before_they_are_known_here(
    almanac: Almanac, elsewhere: World
) -> None:
    await set_queue(almanac, max_concurrency=1)
    worker = await elsewhere.worker()
    for _ in range(3):
        await elsewhere.submit()
    assert await elsewhere.take(worker) == []
    await elsewhere.services.gate.refresh()
    await elsewhere.services.dispatch.look()
    assert len(await elsewhere.take(worker)) == 1


async def test_where_another_node_was_faster_it_is_tried_again_a_moment_later(
    almanac: Almanac, elsewhere: World
) -> None:
    await set_queue(almanac, max_concurrency=1)
    await elsewhere.services.gate.refresh()
    mine, theirs = await almanac.worker(), await elsewhere.worker()
    for _ in range(2):
        await almanac.submit()
    await elsewhere.services.dispatch.look()
    taken: list[str] = []

    async def be_faster() -> None:
        taken.extend(job.job_id for job in await elsewhere.take(theirs, 1))

    almanac.store.before("claim", be_faster)
    assert await almanac.take(mine, 1) == []
    assert len(taken) == 1
    assert almanac.services.gate.next_moment == almanac.clock.now() + AGAIN
    almanac.clock.pass_seconds(AGAIN / 1e6)
    assert almanac.services.gate.let_in()
    assert not almanac.services.gate.let_in()


async def test_a_place_that_becomes_free_during_the_look_is_not_overlooked(almanac: Almanac) -> None:
    await set_queue(almanac, max_concurrency=1)
    worker = await almanac.worker()
    _, second = [await almanac.submit() for _ in range(2)]
    (running,) = await almanac.take(worker)

    async def end_it() -> None:
        await almanac.report(worker, running, "success")

    almanac.store.after("rooms", end_it)
    answer = await almanac.exchange(worker, free={"slot": 1}, wait=10)
    assert [job.job_id for job in answer.jobs] == [second]


async def test_a_place_in_a_queue_that_was_never_looked_at_is_nobodys_news(almanac: Almanac) -> None:
    almanac.wake.place([12345])
    assert almanac.services.gate.next_moment is None


async def test_what_did_not_stand_in_order_yet_is_not_refunded(almanac: Almanac) -> None:
    await set_queue(almanac, policy="fair")
    await almanac.cancel(await almanac.submit(fair_key="a"))
    assert almanac.store.calls["refund"] == 0
    job_id = await almanac.submit(fair_key="a")
    await almanac.services.gate.put_in_order()
    await almanac.cancel(job_id)
    assert almanac.store.calls["refund"] == 1


async def test_a_lane_that_is_not_in_order_is_not_claimed_from_beside_one_that_is(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await set_queue(almanac, policy="fifo")
    first = await almanac.submit("a")
    other = await almanac.submit("b", queue="other")
    assert [job.job_id for job in await almanac.take(worker)] == [other]
    await almanac.services.gate.put_in_order()
    plain = await almanac.submit("c", queue="other")
    assert {job.job_id for job in await almanac.take(worker)} == {first, plain}


async def test_who_reaches_only_a_part_sees_and_sets_only_that(almanac: Almanac) -> None:
    queues = almanac.services.queues
    for queue in ("a", "b", "c", "d"):
        await almanac.submit(queue=queue)
    by_queue = Caller(name="q", queues=("d", "b", "c"))
    first, cursor = await queues.page(limit=2, cursor=None, caller=by_queue)
    second, end = await queues.page(limit=2, cursor=cursor, caller=by_queue)
    assert [each.queue for each in (*first, *second)] == ["b", "c", "d"]
    assert end is None
    with pytest.raises(NotFound):
        await queues.read("a", by_queue)
    assert (await queues.pause("b", if_match=None, caller=by_queue)).paused
    by_type = Caller(name="t", job_types=("echo",))
    for caller, name in ((by_queue, "a"), (by_type, "b")):
        with pytest.raises(Forbidden):
            await queues.pause(name, if_match=None, caller=caller)
    await queues.hold_type("echo", held=True, caller=by_type)
    for caller, name in ((by_queue, "echo"), (by_type, "http")):
        with pytest.raises(Forbidden):
            await queues.hold_type(name, held=True, caller=caller)


async def test_a_queue_that_is_not_there_can_not_be_resumed_and_a_burst_has_its_bounds(almanac: Almanac) -> None:
    queues = almanac.services.queues
    with pytest.raises(NotFound):
        await queues.resume("nowhere", if_match=None, caller=ADMIN)
    with pytest.raises(BadInput, match="burst"):
        await set_queue(almanac, rate_limit=RateLimitBody(limit=1, per="31d", burst=1000))


async def test_a_queue_that_changes_without_end_is_told(almanac: Almanac) -> None:
    await almanac.submit()

    async def change() -> None:
        current = await almanac.services.queues.read("default", ADMIN)
        await set_queue(almanac, weight=current.weight % 100 + 1)

    almanac.store.before("put_queue", *[change] * 20)
    with pytest.raises(Conflict, match="faster"):
        await set_queue(almanac, policy="fifo")
