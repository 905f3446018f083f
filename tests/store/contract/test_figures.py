"""What a scrape asks of a store: who is there, which lanes have jobs, without a look at the jobs themselves."""

from foliot.store.postgres import PostgresStore
from foliot.store.postgres.part import SQL
from tests.store.builders import Scene
from tests.store.conftest import MakeStore

JOB_TABLES = {"jobs", "waiting", "ready", "leases", "history", "attempts"}


async def test_workers_are_listed_without_what_they_hold(scene: Scene) -> None:
    worker, other = await scene.worker(), await scene.worker(namespace="other")
    await scene.running(worker)
    assert await scene.store.enrolled() == [each for each, _ in await scene.store.workers()] == [worker, other]
    assert await scene.store.enrolled("other") == [other]
    assert await scene.store.enrolled("none") == []


async def test_whoever_asks_how_full_lanes_are_knows_them_then(make_store: MakeStore) -> None:
    first, stranger = make_store(), make_store()
    await first.open()
    scene = Scene(first, await first.now())
    await first.prepare_days(scene.now)
    job = await scene.submitted()
    await first.close()
    await stranger.open()
    try:
        assert [lane_id for lane_id, _, _ in await stranger.depths()] == [job.lane_id]
        assert stranger.lane(job.lane_id) == job.lane
    finally:
        await stranger.close()


async def test_no_statement_of_a_scrape_but_that_for_the_first_that_wait_looks_at_jobs(scene: Scene) -> None:
    if not isinstance(scene.store, PostgresStore):
        return  # there the service's own test counts the steps that the database takes
    for name, values in (("depths", ()), ("enrolled", (None,)), ("nodes", ())):
        plan = await scene.store._connections.read(f"explain {SQL[name]}", *values)
        text = "\n".join(row[0] for row in plan)
        assert "Scan" in text
        assert not {table for table in JOB_TABLES if f" on {table}" in text}, text
