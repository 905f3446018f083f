"""Secret fields: a worker is given them, no read shows them, `***` keeps them, and no change lets them out."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw

from foliot.domain.access import ADMIN
from foliot.domain.errors import BadInput
from foliot.service.sealing import Sealer
from foliot.wire import FilterBody, RetryJobBody, RetryManyBody, UpdateBody
from tests.service.almanac import Almanac, open_almanac, run_id
from tests.service.conftest import World
from tests.service.meddling import Meddling

PAYLOAD = {"user": "ann", "db": {"host": "h", "password": "hunter2"}}
SHOWN = {"user": "ann", "db": {"host": "h", "password": "***"}}
FIELDS = ["db.password"]


@pytest.fixture(params=["plain", "sealed"])
def world(store: Meddling, request: pytest.FixtureRequest) -> World:
    return World(store, sealer=Sealer([("a", bytes(32))] if request.param == "sealed" else []))


async def submitted(world: World) -> str:
    return await world.submit(payload=PAYLOAD, secret_fields=FIELDS)


async def shown(world: World, job_id: str) -> Any:
    info = await world.services.query.job(job_id, ADMIN)
    assert isinstance(info.payload, Raw)
    return msgspec.json.decode(info.payload)


async def kept(world: World, job_id: str) -> Any:
    """What a worker would be given."""
    record = await world.record(job_id)
    sealer = Sealer([("a", bytes(32))])
    return msgspec.json.decode(sealer.payload_of(record.job))


async def put(world: World, job_id: str, **fields: object) -> None:
    body = msgspec.json.decode(msgspec.json.encode(fields), type=UpdateBody)
    await world.services.control.update(job_id, body, if_match=None, caller=ADMIN)


async def refused(world: World, job_id: str, **fields: object) -> str:
    before = await world.record(job_id)
    with pytest.raises(BadInput) as caught:
        await put(world, job_id, **fields)
    assert await world.record(job_id) == before
    return caught.value.errors[0].field


async def test_no_read_shows_them_and_the_worker_has_them(world: World) -> None:
    worker = await world.worker()
    job_id = await submitted(world)
    info = await world.services.query.job(job_id, ADMIN)
    assert await shown(world, job_id) == SHOWN
    assert info.secret_fields == FIELDS
    listed, _ = await world.services.query.jobs(FilterBody(), limit=9, cursor=None, caller=ADMIN)
    assert "hunter2" not in str(listed)
    assert listed[0].secret_fields == FIELDS
    job = await world.take_one(worker)
    assert msgspec.json.decode(job.payload) == PAYLOAD
    assert list(job.secret_fields or ()) == FIELDS


async def test_a_job_without_them_says_nothing_of_them_to_its_worker(world: World) -> None:
    worker = await world.worker()
    await world.submit(payload=PAYLOAD)
    job = await world.take_one(worker)
    assert job.secret_fields is UNSET
    assert b"secret_fields" not in msgspec.json.encode(job)


async def test_what_was_read_and_is_put_back_changes_nothing(world: World) -> None:
    job_id = await submitted(world)
    await put(world, job_id, payload=await shown(world, job_id), secret_fields=FIELDS)
    assert await kept(world, job_id) == PAYLOAD


async def test_a_put_may_change_what_is_beside_a_secret_or_the_secret_itself(world: World) -> None:
    job_id = await submitted(world)
    await put(world, job_id, payload={"user": "bob", "db": {"password": "***"}})
    assert await kept(world, job_id) == {"user": "bob", "db": {"password": "hunter2"}}
    await put(world, job_id, payload={"db": {"password": "new"}})
    assert await kept(world, job_id) == {"db": {"password": "new"}}
    await put(world, job_id, priority=9)
    assert await shown(world, job_id) == {"db": {"password": "***"}}


async def test_a_field_can_not_stop_being_secret_with_its_value(world: World) -> None:
    job_id = await submitted(world)
    assert await refused(world, job_id, secret_fields=None) == "secret_fields"
    assert await refused(world, job_id, secret_fields=["db.host"]) == "secret_fields"
    assert await refused(world, job_id, secret_fields=[], payload=SHOWN) == "payload.db.password"
    await put(world, job_id, secret_fields=["db"])  # wider
    assert await shown(world, job_id) == {"user": "ann", "db": "***"}
    await put(world, job_id, secret_fields=[], payload={"db": "public"})
    assert await shown(world, job_id) == {"db": "public"}


async def test_the_mask_is_no_value_of_a_new_job(world: World) -> None:
    with pytest.raises(BadInput) as caught:
        await world.submit(payload=SHOWN, secret_fields=FIELDS)
    assert caught.value.errors[0].field == "payload.db.password"
    await world.submit(payload=SHOWN)  # where nothing is secret it is just text


async def test_a_retry_with_another_payload_keeps_secrets_too(world: World) -> None:
    worker = await world.worker()
    job_id = await submitted(world)
    given = Raw(b'{"n": 1, "db": {"password": "***"}}')
    for number, call in enumerate(
        (
            lambda: world.services.control.retry(job_id, RetryJobBody(payload=given), if_match=None, caller=ADMIN),
            lambda: world.services.control.many("retry", RetryManyBody(filter=FilterBody(), payload=given), ADMIN),
        )
    ):
        await world.report(worker, await world.take_one(worker), "fatal_failure")
        await call()
        assert await kept(world, job_id) == {"n": 1, "db": {"password": "hunter2"}}, number


@pytest.mark.parametrize("fields", [["a"] * 33, ["a..b"], [".a"], [""], ["a."], ["a\nb"], ["x" * 201], "password"])
async def test_what_is_no_list_of_paths_is_refused(world: World, fields: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        await world.submit(payload=PAYLOAD, secret_fields=fields)


# schedules

JOB = {"job_type": "echo", "payload": PAYLOAD, "secret_fields": FIELDS}


@pytest.fixture
async def almanac() -> AsyncIterator[Almanac]:
    async with open_almanac() as almanac:
        yield almanac


async def test_a_schedule_shows_no_secret_and_its_runs_have_it(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(job=JOB, every=60)
    shown_job = msgspec.json.decode((await almanac.info()).job)
    assert shown_job == JOB | {"payload": SHOWN}
    listed, _ = await almanac.schedules.page(limit=9, cursor=None, caller=ADMIN)
    assert "hunter2" not in str([bytes(each.job) for each in listed])
    await almanac.move_to(60)
    job = await almanac.take_one(worker)
    assert (job.job_id, msgspec.json.decode(job.payload), list(job.secret_fields or ())) == (
        run_id(60),
        PAYLOAD,
        FIELDS,
    )
    assert await shown(almanac, run_id(60)) == SHOWN


async def test_a_changed_template_keeps_its_secret_for_itself_and_for_runs_that_wait(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(job=JOB, every=60, overlap="allow", max_concurrency=9)
    await almanac.move_to(60)
    await almanac.change(job=JOB | {"payload": {"user": "bob", "db": {"password": "***"}}})
    await almanac.move_to(120)
    new = {"user": "bob", "db": {"password": "hunter2"}}
    assert [msgspec.json.decode(job.payload) for job in await almanac.take(worker)] == [new, new]
    with pytest.raises(BadInput):
        await almanac.change(job={"job_type": "echo", "payload": SHOWN})  # secret no more


async def test_the_same_secrets_again_are_no_change_and_others_are(almanac: Almanac) -> None:
    await almanac.create(job=JOB, every=60)
    await almanac.change(job=JOB)
    await almanac.change(job=JOB | {"payload": SHOWN})
    assert (await almanac.info()).version == 1
    await almanac.change(job=JOB | {"payload": {"user": "ann", "db": {"host": "h", "password": "new"}}})
    assert (await almanac.info()).version == 2
    await almanac.change(job=JOB | {"payload": SHOWN}, paused=True)
    info = await almanac.info()
    assert (info.version, info.paused) == (3, True)
