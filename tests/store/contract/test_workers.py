"""Workers: their leases, what they hold, and their going."""

import msgspec

from foliot.domain import events
from foliot.domain.duration import MINUTE, SECOND
from foliot.domain.ids import WorkerKey
from foliot.domain.job import Lease
from tests.store.builders import Scene


async def test_a_worker_is_told_as_it_was_added(scene: Scene) -> None:
    worker = await scene.worker(
        name="ann",
        queues=("a", "b"),
        job_types=("t",),
        resources={"slot": 4.0, "memory": 1.5},
        labels={"zone": "eu"},
    )
    assert await scene.store.workers() == [(worker, [])]
    assert await scene.store.workers("default") == [(worker, [])]
    assert await scene.store.workers("other") == []


async def test_a_worker_added_again_is_one(scene: Scene) -> None:
    worker = await scene.worker()
    await scene.store.add_worker(worker)
    assert [found for found, _ in await scene.store.workers()] == [worker]


async def test_workers_are_told_with_what_they_hold_alive_or_not(scene: Scene) -> None:
    busy, idle = await scene.worker(), await scene.worker(namespace="other", until=scene.now - 1)
    leases = [await scene.running(busy) for _ in range(2)]
    found = {worker.id: sorted(held, key=lambda lease: lease.id) for worker, held in await scene.store.workers()}
    assert found == {busy.id: leases, idle.id: []}


async def test_a_beat_prolongs_and_brings_back_the_worker(scene: Scene) -> None:
    worker = await scene.worker(until=scene.later(30), labels={"a": "b"})
    scene.now += 20 * SECOND
    beat = await scene.store.beat(worker.id, scene.now, scene.later(30))
    assert beat is not None
    assert beat.worker == msgspec.structs.replace(worker, seen=scene.now, until=scene.later(30))
    assert list(beat.stop) == []
    assert await scene.store.workers() == [(beat.worker, [])]


async def test_beats_that_overtake_each_other_shorten_nothing(scene: Scene) -> None:
    worker = await scene.worker(until=scene.later(30))
    await scene.store.beat(worker.id, scene.later(20), scene.later(50))
    beat = await scene.store.beat(worker.id, scene.later(10), scene.later(40))
    assert beat is not None
    assert beat.worker.until == scene.later(50)


async def test_a_beat_after_the_end_prolongs_nothing(scene: Scene) -> None:
    worker = await scene.worker(until=scene.later(30))
    assert await scene.store.beat(worker.id, worker.until, scene.later(90)) is None
    assert await scene.store.workers() == [(worker, [])]
    assert await scene.store.beat(WorkerKey(12345), scene.now, scene.later(30)) is None
    assert await scene.store.beat(worker.id, scene.now, scene.later(99), namespace="other") is None
    assert [found.until for found, _ in await scene.store.workers()] == [worker.until]
    assert await scene.store.beat(worker.id, scene.now, scene.later(30), namespace=worker.namespace) is not None
    await scene.store.remove_worker(worker.id)
    assert await scene.store.beat(worker.id, scene.now, scene.later(30)) is None


async def test_a_beat_names_the_attempts_that_are_to_stop(scene: Scene) -> None:
    worker, other = await scene.worker(), await scene.worker()
    stopping, running, elsewhere = [await scene.running(who) for who in (worker, worker, other)]
    await scene.happen(stopping.id, events.Cancel())
    await scene.happen(elsewhere.id, events.Cancel())
    await scene.happen(running.id, events.Progress(progress="{}"))
    beat = await scene.store.beat(worker.id, scene.now, scene.later(30))
    assert beat is not None
    (stop,) = beat.stop
    assert isinstance(stop, Lease)
    assert stop == await scene.row(stopping.id)


async def test_a_draining_worker_beats_on(scene: Scene) -> None:
    worker = await scene.worker()
    assert await scene.store.drain_worker(worker.id)
    beat = await scene.store.beat(worker.id, scene.now, scene.later(90))
    assert beat is not None
    assert beat.worker.draining
    assert not await scene.store.drain_worker(WorkerKey(12345))


async def test_a_removed_worker_leaves_its_leases_to_be_missed(scene: Scene) -> None:
    worker = await scene.worker()
    lease = await scene.running(worker)
    assert await scene.store.remove_worker(worker.id)
    assert not await scene.store.remove_worker(worker.id)
    assert await scene.store.workers() == []
    (missed,) = await scene.store.missed(scene.now, 10)
    assert (missed.record.row, missed.alive) == (lease, False)


async def test_long_dead_workers_are_forgotten_unless_they_hold_something(scene: Scene) -> None:
    dead, holding = await scene.worker(until=scene.later(10)), await scene.worker(until=scene.later(10))
    alive = await scene.worker(until=scene.later(120))
    await scene.running(holding)
    assert await scene.store.forget_workers(scene.later(10)) == 0
    assert await scene.store.forget_workers(scene.now + MINUTE) == 1
    assert {worker.id for worker, _ in await scene.store.workers()} == {holding.id, alive.id}
    assert dead.id not in {worker.id for worker, _ in await scene.store.workers()}
