"""Which fields of its payload are secret goes with a job wherever it is read, and a body is known by older hashes."""

import msgspec

from foliot.domain import events
from foliot.domain.job import NAMESPACE
from foliot.store.base import Accepted, Clash, Filter
from tests.store.builders import Scene

FIELDS = ("password", 'db."quoted", {braced}', "ż\\backslash")
MANY = 100  # enough to be kept in the way of many


async def test_it_is_loaded_listed_and_claimed_as_it_was_given(scene: Scene) -> None:
    for name in (None, "named"):
        job = await scene.job(name=name, job_type=f"type-{name}", secret_fields=FIELDS)
        plain = await scene.job(name=name and "plain", job_type="plain")
        await scene.submit(job, plain)
        assert (await scene.record(job.id)).job == job
        assert (await scene.record(plain.id)).job.secret_fields == ()
        page = await scene.store.list_jobs(Filter(namespace=NAMESPACE), limit=10, before=None)
        found = {record.job.id: record.job.secret_fields for record in page.records}
        assert (found[job.id], found[plain.id]) == (FIELDS, ())
        waiting = await scene.store.list_jobs(Filter(namespace=NAMESPACE, statuses=("queued",)), limit=10, before=None)
        assert {record.job.id: record.job.secret_fields for record in waiting.records}[job.id] == FIELDS
        worker = await scene.worker()
        (claimed,) = await scene.claim(worker, job)
        assert claimed.job == job
        assert [one.job for one in await scene.store.leases_of(worker.id)] == [job]


async def test_it_is_kept_of_many_jobs_at_once(scene: Scene) -> None:
    jobs = [await scene.job(secret_fields=FIELDS[: number % 4]) for number in range(MANY)]
    await scene.submit(*jobs)
    records = await scene.store.load([job.id for job in jobs])
    assert [records[job.id].job for job in jobs] == jobs


async def test_a_change_sets_and_takes_it(scene: Scene) -> None:
    job = await scene.submitted()
    for fields in (FIELDS, ()):
        changed = msgspec.structs.replace(job, secret_fields=fields)
        record = await scene.happen(job.id, events.Reschedule(job=changed, due=scene.now))
        assert record.job == changed


async def test_a_body_that_was_kept_under_another_hash_is_known_by_it(scene: Scene) -> None:
    first = await scene.job(name="mine")
    await scene.insert(scene.submission(first, body=b"old", request_key="key", request_hash=b"old request"))
    again = scene.new(await scene.job(name="mine"), body=b"new")
    (clash,) = await scene.insert(scene.request(again))
    assert clash == Clash("mine")
    known = msgspec.structs.replace(again, older_hashes=(b"older", b"old"))
    (answer,) = await scene.insert(scene.request(known))
    assert isinstance(answer, Accepted)
    assert (list(answer.ids), list(answer.new)) == (["mine"], [])
    assert (await scene.store.find(NAMESPACE, ["mine"])) == {"mine": first.id}


async def test_a_request_that_was_kept_under_another_hash_is_known_by_it(scene: Scene) -> None:
    first = await scene.job()
    (answer,) = await scene.insert(scene.submission(first, request_key="key", request_hash=b"old"))
    other = scene.submission(await scene.job(), request_key="key", request_hash=b"new")
    assert await scene.insert(other) == [Clash(None)]
    (again,) = await scene.insert(msgspec.structs.replace(other, older_hashes=(b"old",)))
    assert isinstance(answer, Accepted)
    assert isinstance(again, Accepted)
    assert (list(again.ids), list(again.new)) == (list(answer.ids), [])
