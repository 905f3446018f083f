"""Payloads, results, errors and templates are kept sealed where there are keys: only with them can they be read, each
only in its own row; and what was kept before is read as it is."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from foliot.domain.access import ADMIN
from foliot.domain.errors import Conflict, Unreadable
from foliot.domain.ids import JobKey
from foliot.domain.job import Job, Lane
from foliot.service.graphs import UPSTREAM_LIMIT
from foliot.service.sealing import MARK, Sealer
from foliot.wire import BatchBody, FilterBody, RetryJobBody, SubmitBody, UpdateBody, encode, to_micros
from tests.service.almanac import BEGIN, Almanac, run_id
from tests.service.conftest import ManualClock, World, job_key
from tests.service.meddling import Meddling

OLD, NEW = ("2026a", bytes(range(32))), ("2026b", bytes(range(32, 64)))
SECRET = "a very private thing"


@pytest.fixture
def sealed(store: Meddling) -> World:
    return World(store, sealer=Sealer([OLD]))


def same_store(world: World, *keys: tuple[str, bytes]) -> World:
    """Another node over the same store, with these keys."""
    return World(world.store, clock=world.clock, sealer=Sealer(keys), ids=world.ids)


async def kept_text(store: Meddling, *tables: str) -> str:
    """All that these tables hold."""

    def read(connection: Any) -> str:
        return "\n".join(str(row) for table in tables for row in connection.execute(f"SELECT * FROM {table}"))

    return await store._read(read)


async def payload(world: World, job_id: str) -> Any:
    info = await world.services.query.job(job_id, ADMIN)
    assert isinstance(info.payload, Raw)
    return msgspec.json.decode(info.payload)


# the sealer itself


def test_what_was_sealed_opens_and_does_not_show() -> None:
    sealer = Sealer([OLD])
    for text in ("{}", f'"{SECRET}"', "é€😀" * 1000, ""):
        kept = sealer.seal(text, 7, "payload")
        assert kept.startswith(f"{MARK}2026a:")
        assert len(kept) <= sealer.room(len(text))
        assert SECRET not in kept
        assert sealer.open(kept, 7, "payload") == text


def test_the_same_text_is_sealed_differently_each_time() -> None:
    sealer = Sealer([OLD])
    assert len({sealer.seal("{}", 7, "payload") for _ in range(100)}) == 100


def test_sealed_text_opens_only_for_its_owner_and_kind() -> None:
    sealer = Sealer([OLD])
    kept = sealer.seal("{}", 7, "payload")
    for owner, kind in ((8, "payload"), (7, "result"), (7, "template")):
        with pytest.raises(Unreadable, match="belongs to another row"):
            sealer.open(kept, owner, kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("harm", [lambda text: text[:-6], lambda text: text[:-3] + "???", lambda text: f"{text}AAAA"])
def test_text_that_was_changed_does_not_open(harm: Any) -> None:
    sealer = Sealer([OLD])
    with pytest.raises(Unreadable, match="2026a"):
        sealer.open(harm(sealer.seal("{}", 7, "payload")), 7, "payload")


def test_every_byte_counts() -> None:
    sealer = Sealer([OLD])
    kept = sealer.seal("[1,2]", 7, "payload")  # so long that base64 has no unused bits
    for place in range(len(f"{MARK}2026a:"), len(kept)):
        other = "A" if kept[place] != "A" else "B"
        with pytest.raises(Unreadable):
            sealer.open(kept[:place] + other + kept[place + 1 :], 7, "payload")


def test_the_first_key_seals_and_all_open() -> None:
    old, both = Sealer([OLD]), Sealer([NEW, OLD])
    assert both.open(old.seal("{}", 7, "payload"), 7, "payload") == "{}"
    assert both.seal("{}", 7, "payload").startswith(f"{MARK}2026b:")
    with pytest.raises(Unreadable, match="'2026b', which this node does not have"):
        old.open(both.seal("{}", 7, "payload"), 7, "payload")


def test_a_key_under_the_id_of_another_one_opens_nothing() -> None:
    with pytest.raises(Unreadable, match="is not the one that sealed it"):
        Sealer([("2026a", NEW[1])]).open(Sealer([OLD]).seal("{}", 7, "payload"), 7, "payload")


def test_without_keys_nothing_is_touched() -> None:
    job = Job(id=JobKey(1), name=None, lane=Lane("n", "q", "t"), lane_id=1, due=0, created=0)
    sealer = Sealer()
    text = "x" * 100
    assert sealer.seal(text, 7, "payload") is text
    assert sealer.open(text, 7, "payload") is text
    assert sealer.seal_job(job) is job
    assert sealer.room(99) == 99
    assert sealer.older_hashes(b"") == ()


def test_hashes_are_keyed_and_those_of_earlier_keys_are_known() -> None:
    hashes = [Sealer(keys).hash(b"body") for keys in ([], [OLD], [NEW])]
    assert len(set(hashes)) == 3
    assert list(Sealer([NEW, OLD]).older_hashes(b"body")) == [hashes[1], hashes[0]]


# jobs


async def test_nothing_private_is_in_the_store(sealed: World) -> None:
    worker = await sealed.worker()
    for status, said in (("success", {"result": SECRET}), ("fatal_failure", {"error": SECRET})):
        await sealed.submit(payload={"key": SECRET})
        job = await sealed.take_one(worker)
        assert msgspec.json.decode(job.payload) == {"key": SECRET}
        await sealed.report(worker, job, "processing", progress={"value": 0.5, "note": SECRET})
        held = await kept_text(sealed.store, "leases")
        assert MARK in held
        assert SECRET not in held
        await sealed.report(worker, job, status, **said)
    await sealed.submit(payload={"key": SECRET}, retry={"max_attempts": 2})
    job = await sealed.take_one(worker)
    await sealed.report(worker, job, "retriable_failure", error=SECRET)
    held = await kept_text(sealed.store, "jobs", "history", "attempts")
    assert held.count(MARK) == 3 + 2 + 1
    assert SECRET not in held


async def test_what_is_sealed_is_read_as_it_was_written(sealed: World) -> None:
    worker = await sealed.worker()
    job_id = await sealed.submit(payload={"key": SECRET}, retry={"max_attempts": 2, "delays": [0]})
    assert await payload(sealed, job_id) == {"key": SECRET}
    job = await sealed.take_one(worker)
    await sealed.report(worker, job, "processing", progress={"value": 0.5, "note": SECRET})
    progress = (await sealed.services.query.job(job_id, ADMIN)).progress
    assert progress is not None
    assert progress.note == SECRET
    await sealed.report(worker, job, "retriable_failure", error=SECRET)
    assert (await sealed.services.query.job(job_id, ADMIN)).last_error == SECRET
    assert [one.error for one in await sealed.services.query.executions(job_id, ADMIN)] == [SECRET]
    await sealed.store.admit([job_key(job_id)])
    await sealed.services.dispatch.look()
    await sealed.report(worker, await sealed.take_one(worker), "success", result={"made": SECRET})
    assert msgspec.json.decode(await sealed.services.query.result(job_id, ADMIN)) == {"made": SECRET}


async def test_why_tells_a_sealed_error(sealed: World) -> None:
    worker = await sealed.worker()
    job_id = await sealed.submit()
    await sealed.report(worker, await sealed.take_one(worker), "fatal_failure", error=SECRET)
    assert SECRET in (await sealed.services.explain.why(job_id, ADMIN)).summary


async def test_sealing_is_turned_on_over_what_is_there(world: World) -> None:
    worker = await world.worker()
    before = await world.submit(payload={"n": 1})
    await world.report(worker, await world.take_one(worker), "success", result={"n": 1})
    waits = await world.submit(payload={"n": 2})
    sealed = same_store(world, OLD)
    await sealed.services.dispatch.look()
    assert await payload(sealed, before) == {"n": 1}
    assert await sealed.services.query.result(before, ADMIN) == b'{"n":1}'
    assert (await sealed.take_one(worker)).job_id == waits


async def test_a_payload_that_looks_sealed_is_only_text(world: World) -> None:
    text = Sealer([OLD]).seal("{}", 7, "payload")
    for each in (world, same_store(world, OLD)):
        assert await payload(each, await each.submit(payload=text)) == text


async def test_a_new_payload_is_sealed_for_each_job_that_gets_it(sealed: World) -> None:
    worker, control = await sealed.worker(), sealed.services.control
    job_id = await sealed.submit(payload={"n": 1})
    await control.update(job_id, UpdateBody(payload=Raw(b'{"n":2}')), if_match=None, caller=ADMIN)
    assert await payload(sealed, job_id) == {"n": 2}
    await control.update(job_id, UpdateBody(priority=9), if_match=None, caller=ADMIN)
    assert await payload(sealed, job_id) == {"n": 2}
    await sealed.report(worker, await sealed.take_one(worker), "fatal_failure")
    await control.retry(job_id, RetryJobBody(payload=Raw(b'{"n":3}')), if_match=None, caller=ADMIN)
    assert await payload(sealed, job_id) == {"n": 3}
    assert (await sealed.record(job_id)).job.payload.startswith(MARK)


# a key that is not there


async def test_a_job_that_does_not_open_is_failed_with_the_reason_and_not_handed_out(sealed: World) -> None:
    lost = await sealed.submit(payload={"n": 1})
    other = same_store(sealed, NEW)
    fine = await other.submit(payload={"n": 2})
    await other.services.dispatch.look()
    worker = await other.worker()
    assert [job.job_id for job in await other.take(worker)] == [fine]
    listed, _ = await other.services.query.jobs(FilterBody(status="failed"), limit=9, cursor=None, caller=ADMIN)
    assert [(job.job_id, job.reason) for job in listed] == [(lost, "unreadable")]
    [attempt] = await other.services.query.executions(lost, ADMIN)
    assert attempt.error is not None
    assert "'2026a', which this node does not have" in attempt.error.message  # type: ignore[union-attr]
    assert "2026a" in (await other.services.explain.why(lost, ADMIN)).summary


async def test_a_read_of_what_does_not_open_names_the_key(sealed: World) -> None:
    worker = await sealed.worker()
    job_id = await sealed.submit(payload={"n": 1})
    await sealed.report(worker, await sealed.take_one(worker), "success", result=1)
    for keys in ((), (NEW,)):
        other = same_store(sealed, *keys)
        with pytest.raises(Unreadable, match=r"payload.*'2026a'") as caught:
            await other.services.query.job(job_id, ADMIN)
        assert caught.value.status == 500
        with pytest.raises(Unreadable, match=r"result.*'2026a'"):
            await other.services.query.result(job_id, ADMIN)


async def test_lists_and_control_need_no_key(sealed: World) -> None:
    worker = await sealed.worker()
    job_id = await sealed.submit(payload={"n": 1})
    job = await sealed.take_one(worker)
    await sealed.report(worker, job, "processing", progress={"note": SECRET})
    other = same_store(sealed, NEW)
    listed, _ = await other.services.query.jobs(FilterBody(), limit=9, cursor=None, caller=ADMIN)
    assert listed[0].progress is not None
    assert "'2026a'" in str(listed[0].progress.note)
    assert await other.cancel(job_id) == "cancelling"
    await sealed.report(worker, job, "cancelled")
    await other.services.control.retry(job_id, RetryJobBody(), if_match=None, caller=ADMIN)
    assert (await other.record(job_id)).job.payload.startswith(f"{MARK}2026a:")


async def test_an_error_that_does_not_open_says_so_in_its_place(sealed: World) -> None:
    worker = await sealed.worker()
    job_id = await sealed.submit()
    await sealed.report(worker, await sealed.take_one(worker), "fatal_failure", error=SECRET)
    [attempt] = await same_store(sealed, NEW).services.query.executions(job_id, ADMIN)
    assert attempt.error.code == "unreadable"  # type: ignore[union-attr]


# duplicates


async def test_the_same_body_is_a_duplicate_under_every_key_and_another_is_not(world: World) -> None:
    nodes = [world, same_store(world, OLD), same_store(world, NEW, OLD)]
    for number, first in enumerate(nodes):
        name = f"n{number}"
        await first.submit(job_id=name, payload={"pin": 1234})
        for later in nodes[number:]:
            assert await later.submit(job_id=name, payload={"pin": 1234}) == name
            with pytest.raises(Conflict):
                await later.submit(job_id=name, payload={"pin": 1235})


async def test_a_request_key_is_known_under_every_key(world: World) -> None:
    body = SubmitBody(job_type="echo")
    nodes = [world, same_store(world, OLD), same_store(world, NEW, OLD)]
    for number, first in enumerate(nodes):
        answer = await first.services.submit.one(body, b"raw", ADMIN, f"key-{number}")
        for later in nodes[number:]:
            assert (await later.services.submit.one(body, b"raw", ADMIN, f"key-{number}")).job_id == answer.job_id
            with pytest.raises(Conflict):
                await later.services.submit.one(body, b"other", ADMIN, f"key-{number}")


async def test_only_without_keys_is_the_kept_hash_one_that_can_be_guessed(world: World) -> None:
    sealed = same_store(world, OLD)
    await world.submit(job_id="plain", payload={"pin": 1234})
    await sealed.submit(job_id="sealed", payload={"pin": 1234})
    held = await kept_text(world.store, "job_keys")

    def guess(name: str) -> str:
        return str(Sealer().hash(encode(SubmitBody(job_type="echo", job_id=name, payload=Raw(b'{"pin":1234}')))))

    assert guess("plain") in held
    assert guess("sealed") not in held


# parents


async def test_a_child_is_told_the_opened_results_of_its_parents(sealed: World) -> None:
    worker = await sealed.worker()
    body = BatchBody(
        jobs=[
            *(SubmitBody(job_type="echo", job_id=name) for name in ("short", "edge", "long")),
            SubmitBody(job_type="echo", job_id="child", depends_on=["short", "edge", "long"]),
        ]
    )
    await sealed.services.submit.batch(body, b"", ADMIN)
    results = {"short": SECRET, "edge": "é" * (UPSTREAM_LIMIT - 2), "long": "x" * UPSTREAM_LIMIT}
    for job in await sealed.take(worker):
        await sealed.report(worker, job, "success", result=results[job.job_id])
    await sealed.store.release(100, sealed.clock.now())
    await sealed.services.dispatch.look()
    told = (await sealed.take_one(worker)).upstream
    assert msgspec.json.decode(told["short"]["result"]) == SECRET
    assert msgspec.json.decode(told["edge"]["result"]) == results["edge"]
    assert told["long"]["result"] is None
    assert "too long" in told["long"]["note"]


async def test_a_result_that_does_not_open_is_told_as_missing(sealed: World) -> None:
    worker = await sealed.worker()
    parent = await sealed.submit()
    await sealed.report(worker, await sealed.take_one(worker), "success", result=1)
    other = same_store(sealed, NEW)
    await other.submit(depends_on=[parent])
    await other.store.release(100, other.clock.now())
    await other.services.dispatch.look()
    told = (await other.take_one(worker)).upstream[parent]
    assert told["result"] is None
    assert "2026a" in told["note"]


# schedules


@pytest.fixture
async def almanac() -> AsyncIterator[Almanac]:
    clock = ManualClock(to_micros(BEGIN))
    store = Meddling(":memory:", clock=clock)
    await store.open()
    yield Almanac(store, clock, Sealer([OLD]))
    await store.close()


def beside(almanac: Almanac, *keys: tuple[str, bytes]) -> Almanac:
    return Almanac(almanac.store, almanac.clock, Sealer(keys), almanac.ids)


JOB = {"job_type": "echo", "payload": {"key": SECRET}}


async def test_a_template_is_kept_sealed_and_read_as_it_was(almanac: Almanac) -> None:
    await almanac.create(job=JOB, every=60)
    assert SECRET not in await kept_text(almanac.store, "schedules")
    assert msgspec.json.decode((await almanac.info()).job) == JOB
    await almanac.create(job=JOB, every=60)  # the same again
    with pytest.raises(Conflict):
        await almanac.create(job={"job_type": "echo", "payload": {"key": "another"}}, every=60)


async def test_runs_get_the_payload_sealed_for_each_of_them(almanac: Almanac) -> None:
    worker = await almanac.worker()
    await almanac.create(job=JOB, every=60, overlap="allow", max_concurrency=9)
    await almanac.move_to(120)
    runs = await almanac.take(worker)
    assert [(run.job_id, msgspec.json.decode(run.payload)) for run in runs] == [
        (run_id(60), {"key": SECRET}),
        (run_id(120), {"key": SECRET}),
    ]
    assert SECRET not in await kept_text(almanac.store, "jobs", "schedules")


async def test_a_change_of_something_else_keeps_the_sealed_payload(almanac: Almanac) -> None:
    await almanac.create(job=JOB, every=60)
    await beside(almanac, NEW).change(every=90)  # has no key to open it
    assert msgspec.json.decode((await almanac.info()).job) == JOB
    await almanac.change(job={"job_type": "echo", "payload": {"key": "another"}})
    assert msgspec.json.decode((await almanac.info()).job)["payload"] == {"key": "another"}


async def test_a_schedule_is_sealed_anew_when_it_fires_under_a_newer_key(almanac: Almanac) -> None:
    await almanac.create(job=JOB, every=60)
    newer = beside(almanac, NEW, OLD)
    await newer.move_to(60)
    assert (await almanac.kept()).definition.startswith(f"{MARK}2026b:")
    assert msgspec.json.decode((await beside(almanac, NEW).info()).job) == JOB


async def test_a_plain_schedule_is_sealed_when_it_fires(almanac: Almanac) -> None:
    await beside(almanac).create(job=JOB, every=60)
    assert SECRET in await kept_text(almanac.store, "schedules")
    await almanac.move_to(60)
    assert SECRET not in await kept_text(almanac.store, "schedules", "jobs")


async def test_without_its_key_a_schedule_still_fires_and_its_runs_end_with_the_reason(almanac: Almanac) -> None:
    await almanac.create(job=JOB, every=60)
    other = beside(almanac, NEW)
    worker = await other.worker()
    await other.create("fine", job=JOB, every=60)
    with pytest.raises(Unreadable, match="2026a"):
        await other.info()
    shown, _ = await other.schedules.page(limit=9, cursor=None, caller=ADMIN)
    assert [each.schedule_id for each in shown] == ["fine", "beat"]
    await other.move_to(60)
    assert [run.job_id for run in await other.take(worker)] == [run_id(60, "fine")]
    assert await other.ledger() == [(60, "ran", None)]
    [attempt] = await other.services.query.executions(run_id(60), ADMIN)
    assert "2026a" in attempt.error.message  # type: ignore[union-attr]
