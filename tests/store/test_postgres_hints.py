"""Hints between nodes on PostgreSQL, and the marks that they lower."""

import asyncpg
import pytest

from foliot.domain.ids import JobKey
from foliot.domain.placement import Order
from foliot.domain.rank import Turn
from foliot.store.postgres import PostgresStore
from foliot.store.postgres.listener import CHANNEL
from foliot.store.postgres.marks import BOTTOM, TOP, Marks
from tests.fault_proxy import FaultProxy
from tests.store.builders import Scene


async def test_a_hint_reaches_other_stores_and_not_the_one_that_gave_it(database_url: str) -> None:
    one, two = PostgresStore(database_url), PostgresStore(database_url)
    await one.open()
    await two.open()
    heard_by_one, heard_by_two = one.hints(), two.hints()
    await one.notify("ready 1")
    assert await anext(heard_by_two) == "ready 1"
    await two.notify("ready 2")
    assert await anext(heard_by_one) == "ready 2"
    await one.close()
    await two.close()


async def test_an_empty_hint_follows_a_reconnect(database_url: str) -> None:
    async with FaultProxy.before(database_url) as proxy:
        near, far = PostgresStore(database_url), PostgresStore(proxy.url)
        await near.open()
        await far.open()
        hints = far.hints()
        proxy.cut()
        assert await anext(hints) == ""
        await near.notify("again")
        assert await anext(hints) == "again"
        await near.close()
        await far.close()


async def test_a_message_in_other_words_counts_as_a_gap(database_url: str) -> None:
    store = PostgresStore(database_url)
    await store.open()
    hints = store.hints()
    stranger = await asyncpg.connect(database_url)
    await stranger.execute("select pg_notify($1, 'not one of ours')", CHANNEL)
    assert await anext(hints) == ""
    await stranger.close()
    await store.close()


@pytest.mark.parametrize("lanes", [1, 600])
async def test_a_job_of_higher_rank_from_another_node_is_seen_with_its_hint(database_url: str, lanes: int) -> None:
    one, two = PostgresStore(database_url), PostgresStore(database_url)
    await one.open()
    await two.open()
    scene, other = Scene(one, await one.now()), Scene(two, await two.now())
    other._ids = scene._ids
    low = await scene.submitted(priority=1)
    assert await two.heads([low.lane_id], 5) == await one.heads([low.lane_id], 5)
    await other.worker()
    hints = one.hints()
    high = await other.submitted(priority=9)
    for number in range(1, lanes):
        await other.submitted(queue=f"q{number}")
    await two.notify("look")
    assert await anext(hints) == "look"
    ranks = (await one.heads([low.lane_id], 5))[low.lane_id]
    assert len(ranks) == 2
    worker = await scene.worker()
    (first,) = await one.claim([Order(low.lane_id, worker.id, 1)], 1, scene.now)
    assert first.job.id == high.id
    await one.close()
    await two.close()


def test_a_mark_is_not_raised_over_what_was_written_while_the_query_ran() -> None:
    marks = Marks()
    look = marks.look([1])
    marks.lower([(1, at(50))])
    look.found(1, TOP)
    assert marks.look([1]).begin == {1: BOTTOM}
    marks.look([1]).found(1, at(90))
    assert marks.look([1]).begin == {1: at(90)}
    marks.lower([(1, at(70))])
    assert marks.look([1]).begin == {1: at(70)}
    look = marks.look([1])
    marks.reset()
    look.found(1, at(200))
    assert marks.look([1]).begin == {1: BOTTOM}


def at(rank: int) -> Turn:
    return (rank, JobKey(1))
