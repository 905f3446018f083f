"""What only the SQLite store does: its file, its lock, its threads, its query plans."""

import asyncio
import contextlib
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from foliot.clock import Clock
from foliot.domain import events
from foliot.domain.changes import End, Held, Mark
from foliot.domain.duration import DAY, SECOND
from foliot.domain.errors import SchemaMismatch, StoreFull, Unavailable, Unstorable
from foliot.domain.graph import On
from foliot.domain.ids import JobKey
from foliot.domain.job import Ended, Ready, Record, State
from foliot.domain.placement import Order
from foliot.domain.retry import Retry
from foliot.domain.states import transition
from foliot.store.base import Due, Filter, Parent, Step
from foliot.store.migrate import migrations
from foliot.store.sqlite import SqliteStore
from foliot.store.sqlite.batch import SIZES, _nullable
from foliot.store.sqlite.connection import SQL, connect, migrate
from foliot.store.sqlite.listing import SCAN
from foliot.store.sqlite.records import INLINE
from tests.store.builders import Scene


@pytest.fixture
def path(folder: Path) -> str:
    return str(folder / "foliot.db")


@contextlib.asynccontextmanager
async def opened(path: str, clock: Clock | None = None) -> AsyncIterator[Scene]:
    store = SqliteStore(path, clock=clock)
    await store.open()
    try:
        yield Scene(store, await store.now())
    finally:
        await store.close()


async def test_a_store_in_memory_runs_a_life() -> None:
    async with opened(":memory:") as scene:
        record = await scene.ended()
        assert isinstance(record.row, Ended)
        assert len((await scene.store.list_jobs(Filter(namespace="default"), limit=5, before=None)).records) == 1


async def test_a_second_store_on_the_same_file_is_refused_until_the_first_is_closed(path: str) -> None:
    async with opened(path):
        with pytest.raises(Unavailable, match="in use by another Foliot process"):
            await SqliteStore(path).open()
    async with opened(path) as scene:
        await scene.submitted()


HOLDER = """
import asyncio, sys
from foliot.store.sqlite import SqliteStore
from tests.store.builders import Scene

async def main():
    store = SqliteStore(sys.argv[1])
    await store.open()
    scene = Scene(store, await store.now())
    for _ in range(20):
        print((await scene.submitted()).id, flush=True)
    print("done", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_what_was_acknowledged_survives_the_death_of_its_process_and_the_file_is_free_again(path: str) -> None:
    holder = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLDER, path, stdout=asyncio.subprocess.PIPE)
    assert holder.stdout is not None
    keys = []
    try:
        while (line := await holder.stdout.readline()) != b"done\n":
            keys.append(JobKey(int(line)))
        with pytest.raises(Unavailable, match="in use by another Foliot process"):
            await SqliteStore(path).open()
    finally:
        holder.kill()
        await holder.communicate()
    assert len(keys) == 20
    async with opened(path) as scene:
        assert set(await scene.store.load(keys)) == set(keys)


async def test_a_folder_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(Unavailable, match="folder"):
        await SqliteStore(str(folder / "nowhere" / "foliot.db")).open()


async def test_a_file_that_is_no_database_is_refused_and_left_alone(path: str) -> None:
    text = "not a database, " * 100
    await asyncio.to_thread(Path(path).write_text, text)
    with pytest.raises(Unavailable, match="not an SQLite database"):
        await SqliteStore(path).open()
    assert await asyncio.to_thread(Path(path).read_text) == text


async def test_a_newer_schema_is_refused_and_can_be_opened_by_nobody_else_meanwhile(path: str) -> None:
    async with opened(path):
        pass
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(SQL["note_migration"], (999, "future", 0))
    with pytest.raises(SchemaMismatch, match="999"):
        await SqliteStore(path).open()
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM schema_version WHERE number = 999")
    async with opened(path):
        pass


async def test_an_old_sqlite_library_is_refused(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(Unavailable, match=r"needs 3\.35"):
        await SqliteStore(path).open()


async def test_a_full_disk_refuses_what_does_not_fit_and_keeps_the_rest(path: str) -> None:
    async with opened(path) as scene:
        assert isinstance(scene.store, SqliteStore)
        kept = await scene.submitted()
        pages = await scene.store._write(lambda connection: connection.execute("PRAGMA page_count").fetchone()[0])
        await scene.store._write(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchall())
        big = await scene.job(payload='"' + "x" * 100_000 + '"')
        with pytest.raises(StoreFull, match="Make room"):
            await scene.submit(big)
        assert set(await scene.store.load([kept.id, big.id])) == {kept.id}
        await scene.store._write(lambda connection: connection.execute("PRAGMA max_page_count = 1000000").fetchall())
        await scene.submit(big)
        assert (await scene.record(big.id)).job == big


async def test_a_program_that_holds_the_file_makes_it_unavailable_for_a_while(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.store.sqlite.connection._BUSY_MS", 1)
    async with opened(path) as scene:
        job = await scene.job()
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable, match="Another program"):
                await scene.submit(job)
            other.execute("ROLLBACK")
        await scene.submit(job)


async def test_calls_that_wait_together_are_committed_together(path: str) -> None:
    async with opened(path) as scene:
        assert isinstance(scene.store, SqliteStore)
        commits = 0

        def count(statement: str) -> None:
            nonlocal commits
            commits += statement == "COMMIT"

        await scene.store._write(lambda connection: connection.set_trace_callback(count))
        jobs = await scene.jobs(50)
        await asyncio.gather(*(scene.submit(job) for job in jobs))
        assert commits < 25
        assert len(await scene.store.load([job.id for job in jobs])) == 50


async def test_a_failing_call_harms_none_of_those_committed_with_it(path: str) -> None:
    async with opened(path) as scene:
        good = await scene.jobs(20)
        bad = await scene.jobs(20, owner="\ud800")
        pairs = [job for pair in zip(good, bad, strict=True) for job in pair]
        answers = await asyncio.gather(*(scene.submit(job) for job in pairs), return_exceptions=True)
        assert [isinstance(answer, Unstorable) for answer in answers] == [False, True] * 20
        assert set(await scene.store.load([job.id for job in pairs])) == {job.id for job in good}


async def test_a_read_sees_every_acknowledged_write(path: str) -> None:
    async with opened(path) as scene:
        for _ in range(200):
            job = await scene.submitted()
            assert job.id in await scene.store.load([job.id])


async def test_a_caller_that_gives_up_leaves_the_store_in_order(path: str) -> None:
    async with opened(path) as scene:
        jobs = await scene.jobs(20)
        calls = [asyncio.create_task(scene.submit(job)) for job in jobs]
        await asyncio.sleep(0)
        for call in calls[::2]:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        assert {job.id for job in jobs[1::2]} <= set(await scene.store.load([job.id for job in jobs]))


async def test_counts_are_exact(path: str) -> None:
    async with opened(path) as scene:
        scene.now -= 40 * DAY
        await scene.submitted(due=scene.later(60))
        paused = await scene.submitted(job_type="paused")
        await scene.happen(paused.id, events.Pause())
        await scene.running(job_type="running")
        await scene.ended(job_type="completed")
        failed = await scene.ended(State.FAILED, job_type="failed")
        await scene.submitted(namespace="other")
        counts = {status: count for status, count in (await scene.store.counts("default")).items() if count}
        assert counts == {"scheduled": 1, "paused": 1, "running": 1, "completed": 1, "failed": 1}
        await scene.happen(failed.job.id, events.Redrive(job=failed.job))
        while await scene.store.forget(await scene.store.now() - 30 * DAY, 100):
            pass
        counts = {status: count for status, count in (await scene.store.counts("default")).items() if count}
        assert counts == {"scheduled": 1, "paused": 1, "running": 1, "queued": 1}


async def test_a_page_looks_at_a_bounded_number_of_rows(path: str) -> None:
    async with opened(path) as scene:
        rare = await scene.submitted(owner="ann")
        await scene.submit(*await scene.jobs(SCAN))
        asked = Filter(namespace="default", owner="ann")
        page = await scene.store.list_jobs(asked, limit=10, before=None)
        assert list(page.records) == []
        assert page.next is not None
        page = await scene.store.list_jobs(asked, limit=10, before=page.next)
        assert [record.job.id for record in page.records] == [rare.id]


@pytest.mark.parametrize("count", [1, 2, SIZES[1], SIZES[1] + 1, SIZES[-1] + 1])
async def test_a_batch_of_any_size_lives_its_life_whole(path: str, count: int) -> None:
    async with opened(path) as scene:
        jobs = [
            await scene.job(
                owner=f"owner {index}", name=f"name {index}" if index % 2 else None, tags=("a",) * (index % 3)
            )
            for index in range(count)
        ]
        await scene.submit(*jobs)
        claimed = await scene.claim(await scene.worker(), jobs[0], count)
        assert [one.job for one in claimed] == jobs
        ends = [scene.decide(await scene.record(one.job.id), events.Succeed(result=one.job.owner)) for one in claimed]
        assert await scene.save(ends) == {job.id for job in jobs}
        records = await scene.store.load([job.id for job in jobs])
        assert [record.job for record in records.values()] == jobs
        assert [record.row.result for record in records.values() if isinstance(record.row, Ended)] == [
            job.owner for job in jobs
        ]


async def test_of_many_ends_those_with_an_old_token_lose_and_are_not_counted(path: str) -> None:
    async with opened(path) as scene:
        jobs = await scene.jobs(100)
        await scene.submit(*jobs)
        claimed = await scene.claim(await scene.worker(), jobs[0], 100)
        held = [Held(id=one.lease.id, nonce=one.lease.nonce + index % 2) for index, one in enumerate(claimed)]
        ends = [transition(one, events.Succeed(), scene.now, retry=Retry()) for one in held]
        won = {job.id for job in jobs[::2]}
        assert await scene.save([end for end in ends if isinstance(end, End)]) == won
        counts = await scene.store.counts("default")
        assert (counts["completed"], counts["running"], counts["queued"]) == (50, 50, 0)


async def test_many_jobs_take_as_few_statements_as_few_do(path: str) -> None:
    async with opened(path) as scene:
        assert isinstance(scene.store, SqliteStore)
        worker, statements = await scene.worker(), 0

        def count(_: str) -> None:
            nonlocal statements
            statements += 1

        async def life(jobs: int) -> int:
            nonlocal statements
            made = await scene.jobs(jobs)
            statements = 0
            await scene.submit(*made)
            claimed = await scene.claim(worker, made[0], jobs)
            held = [Held(id=one.lease.id, nonce=one.lease.nonce) for one in claimed]
            marks = [Mark(id=one.id, nonce=one.nonce, progress="{}") for one in held]
            await scene.save(marks)
            records = await scene.store.load([job.id for job in made])
            ends = [scene.decide(record, events.Succeed()) for record in records.values()]
            assert len(await scene.save(ends)) == jobs
            return statements

        await scene.store._write(lambda connection: connection.set_trace_callback(count))
        assert await life(500) == await life(2) < 40


async def test_many_schedules_fire_and_end_in_as_few_statements_as_few_do(path: str) -> None:
    async with opened(path) as scene:
        assert isinstance(scene.store, SqliteStore)
        worker, statements = await scene.worker(), 0

        def count(_: str) -> None:
            nonlocal statements
            statements += 1

        async def life(number: int, turn: str) -> int:
            nonlocal statements
            schedules = [await scene.scheduled(f"{turn} {n}") for n in range(number)]
            new = [await scene.run_job(schedule, scene.now) for schedule in schedules]
            steps = [
                Step(
                    schedule=msgspec.structs.replace(schedule, version=2),
                    runs=[scene.run(scene.now), scene.run(scene.later(1), None)],
                    jobs=[job],
                )
                for schedule, job in zip(schedules, new, strict=True)
            ]
            statements = 0
            assert len(await scene.store.save_schedules(steps)) == number
            claimed = await scene.claim(worker, new[0].job, number)
            held = [Held(id=one.lease.id, nonce=one.lease.nonce) for one in claimed]
            ends = [transition(one, events.Succeed(), scene.now, retry=Retry()) for one in held]
            saved = await scene.store.save([end for end in ends if isinstance(end, End)], scene.now)
            assert saved.freed == {schedule.id for schedule in schedules}
            return statements

        await scene.store._write(lambda connection: connection.set_trace_callback(count))
        assert await life(250, "many") == await life(2, "few") < 40


async def test_a_wide_graph_with_keys_takes_as_few_statements_as_a_small_one(path: str) -> None:
    async with opened(path) as scene:
        assert isinstance(scene.store, SqliteStore)
        number, statements = await scene.limit("door", 1000), 0

        def count(_: str) -> None:
            nonlocal statements
            statements += 1

        async def life(width: int) -> int:
            nonlocal statements
            lease = await scene.running(job_type="parent")
            children = await scene.jobs(width, limit_key="door")
            last = await scene.job()
            new = [scene.new(child, Parent(lease.id, On.SUCCESS)) for child in children]
            new.append(scene.new(last, *(Parent(child.id, On.ANY) for child in children)))
            statements = 0
            await scene.insert(scene.request(*new))
            await scene.happen(lease.id, events.Succeed())
            released = await scene.store.release(1000, scene.now)
            assert (released.limits, released.more) == ({number}, False)
            assert len(await scene.store.give_tokens([number], scene.now)) == width
            rows = await scene.store.load([child.id for child in children])
            await scene.save([scene.decide(record, events.Cancel()) for record in rows.values()])
            assert (await scene.store.release(1000, scene.now)).lanes == {last.lane_id}
            await scene.happen(last.id, events.Cancel())
            return statements

        await scene.store._write(lambda connection: connection.set_trace_callback(count))
        assert await life(250) == await life(2) < 90


class SetClock:
    """Goes on only when told to."""

    def __init__(self, time: int) -> None:
        self.time = time

    def now(self) -> int:
        return self.time


async def test_the_stores_clock_is_the_one_it_was_given(path: str) -> None:
    clock = SetClock(1_600_000_000 * SECOND)
    async with opened(path, clock) as scene:
        assert scene.now == clock.time
        job = await scene.submitted(due=scene.later(60))
        schedule = await scene.scheduled()
        step = Step(schedule=msgspec.structs.replace(schedule, version=2), not_before=scene.later(60))
        assert (await scene.store.admit([job.id])).ready == []
        assert await scene.store.save_schedules([step]) == set()
        clock.time = scene.later(60)
        assert await scene.store.now() == clock.time
        assert (await scene.store.admit([job.id])).ready == [(job.id, job.lane_id)]
        assert await scene.store.save_schedules([step]) == {schedule.id}


@pytest.mark.parametrize("version", [1, 2, 3, 6])
async def test_a_database_of_an_older_schema_with_jobs_in_it_is_brought_up_to_date(folder: Path, version: int) -> None:
    new, old = str(folder / "new.db"), str(folder / "old.db")
    async with opened(new) as scene:
        queued = await scene.submitted(name="mine", schedule_id="nightly")
        waiting = await scene.submitted(due=scene.later(60), deadline=scene.later(90))
        lease = await scene.running(job_type="running", tags=("a",))
        ended = await scene.ended(State.FAILED, job_type="other", queue="mail", schedule_id="nightly")
        keys = [queued.id, waiting.id, lease.id, ended.job.id]
        before = await scene.store.load(keys)
        before[ended.job.id] = _before_admitted_was_noted(ended)
    _copy_to_older(new, old, version)
    async with opened(old) as scene:
        assert await scene.store.load(keys) == before
        assert await scene.store.peek_due(scene.later(60), 5) == [Due(waiting.due, waiting.id)]
        same, other = await scene.job(), await scene.job(needs='{"amounts":[["gpu",1000]]}')
        assert same.lane_id == queued.lane_id != other.lane_id
        names = [(queue.name, queue.version) for queue in await scene.store.queues("default")]
        assert names == [("default", 1), ("mail", 1)]
        schedule, (job,) = await scene.fire(await scene.scheduled(), scene.now, job_type="run")
        await scene.happen(ended.job.id, events.Redrive(job=ended.job))
        assert (await scene.standing(schedule)).under_way == (ended.job.id, job.id)
        child = await scene.child(lease.id)
        await scene.happen(lease.id, events.Succeed())
        await scene.release()
        assert isinstance(await scene.row(child.id), Ready)
    with contextlib.closing(sqlite3.connect(old)) as migrated, contextlib.closing(sqlite3.connect(new)) as made:
        assert _schema(migrated) == _schema(made)


def _before_admitted_was_noted(record: Record) -> Record:
    assert isinstance(record.row, Ended)
    assert record.row.last is not None
    last = msgspec.structs.replace(record.row.last, admitted=None)
    return msgspec.structs.replace(record, row=msgspec.structs.replace(record.row, last=last), last=last)


def _copy_to_older(new: str, old: str, version: int) -> None:
    """The same rows in the tables and columns that there were at that version."""
    with contextlib.closing(sqlite3.connect(old)) as connection, connection:
        connection.execute(SQL["make_schema_version"])
        for migration in migrations("sqlite")[:version]:
            connection.executescript(migration.sql)
            connection.execute(SQL["note_migration"], (migration.number, migration.name, 0))
        connection.commit()
        connection.execute("ATTACH ? AS new", (new,))
        tables = connection.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'").fetchall()
        for (table,) in tables:
            if table != "schema_version":
                columns = ", ".join(column[1] for column in connection.execute(f"PRAGMA main.table_info({table})"))
                connection.execute(f"INSERT OR REPLACE INTO main.{table} ({columns}) SELECT {columns} FROM new.{table}")


def _schema(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    return connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()


async def test_long_payloads_are_claimed_and_loaded_whole_beside_short_ones(path: str) -> None:
    async with opened(path) as scene:
        payloads = ['"short"', '"' + "ü" * INLINE + '"', "{}", '"' + '\\"' * INLINE + '"']
        jobs = [await scene.job(payload=payload) for payload in payloads]
        await scene.submit(*jobs)
        assert [one.job for one in await scene.claim(await scene.worker(), jobs[0], 4)] == jobs
        assert [record.job for record in (await scene.store.load([job.id for job in jobs])).values()] == jobs


async def test_a_claim_of_several_lanes_takes_of_each_what_was_ordered(path: str) -> None:
    async with opened(path) as scene:
        worker = await scene.worker()
        orders = []
        for number, wanted in enumerate([2, 1, 2, 3]):
            jobs = await scene.jobs(3, job_type=f"type {number}")
            await scene.submit(*jobs)
            orders.append(Order(jobs[0].lane_id, worker.id, wanted))
        claimed = await scene.store.claim(orders, scene.new_nonce(), scene.now)
        taken = Counter(one.job.lane.job_type for one in claimed)
        assert taken == {"type 0": 2, "type 1": 1, "type 2": 2, "type 3": 3}


BATCHED = sorted(name for name, text in SQL.items() if "INTO" in text and "nullif" in text and name != "end_leases")


@pytest.mark.parametrize("name", BATCHED)
def test_a_query_for_many_rows_takes_null_where_the_table_does_and_only_there(name: str) -> None:
    found = re.search(r"INTO (\w+) \(([^)]*)\)", SQL[name])
    assert found is not None
    with contextlib.closing(connect(":memory:", writes=True)) as connection:
        migrate(connection, 0)
        table = connection.execute(f"PRAGMA table_info({found[1]})").fetchall()
    optional = {column for _, column, _, required, _, key in table if not required and not key}
    columns = [column.strip() for column in found[2].split(",")]
    assert {columns[index] for index in _nullable(name)} == optional & set(columns)


HOT = {
    "job_keys": ("default", "[]"),
    "known_jobs": ("[]",),
    "request_key": ("default", "k", 0),
    "jobs_of": ("[]", 1),
    "payloads_of": ("[]",),
    "waiting_of": ("[]",),
    "ready_of": ("[]",),
    "leases_of": ("[]",),
    "history_of": ("[]",),
    "latest_attempt": (1,),
    "past_outcomes": ("[]",),
    "final_outcomes": ("[]",),
    "held": ("[]",),
    "logs_of": (1, 1, 1, 1),
    "due_until": (1, 1),
    "next_due": (),
    "admissible": ("[]", 1),
    "heads": ("[]", 1),
    "workers_able": ("[]", 1),
    "leases_of_worker": (1,),
    "overdue_leases": (1, 1, 1),
    "expired_waiting": (1, 1),
    "expired_ready": (1, 1),
    "leases_to_stop": (1,),
    "list_of_schedule": (1, 1, "s"),
    "list_not_completed": (1, 1, 6),
    "schedule_versions": ("[]",),
    "schedule_named": ("default", "n"),
    "schedules_of": ("[]", 1),
    "list_schedules": ("default", 1, 1),
    "schedules_due": (1, 1),
    "next_schedule": (),
    "standings_of": ("[]", 1),
    "runs_of": (1, 1, 1),
    "settled_dues": (1, 1, 1),
    "due_by_minute": ("default", 1, 1),
    "remove_waiting": (1,),
    "remove_open_runs": (1,),
    "schedules_of_runs": ("[]",),
    "close_runs": ("[]",),
    "reopen_runs": ("[]",),
    "forget_ledger": (1, 1),
    "delete_ready": ("[]",),
    "leases_to_end": ("[]",),
    "end_leases": (1,) * 9,
    "events_after": (1, 1, 1),
    "mark_leases": (1,) * 6,
    "forget_attempts": ("[]",),
    "list_for_key": (1, 1),
    "standing_of": ("[]",),
    "tie_waiting": ("[]",),
    "tie_ready": ("[]",),
    "tie_leases": ("[]",),
    "take_releases": ("[]",),
    "reopen_edge": (1, 1),
    "finish_edge": (1, 1),
    "finish_edges_to": ("[]",),
    "count_parents": (1, 1),
    "edges_of": ("[]", 1),
    "upstream_of": ("[]", 1),
    "forget_edges": ("[]",),
    "limits_named": ("default", "[]"),
    "free_tokens": ("[]",),
    "first_waiters": ("[]", 1),
    "limits_after": ("default", "", 1),
    "limits_among": ("default", "", 1, "[]"),
    "crowd_of": ("[]", 1, 1),
    "unique_keys_held": ("default", "[]"),
    "queues_after": ("default", "", 1),
    "queues_among": ("default", "[]"),
    "special_queues": (),
    "queue_named": ("default", "n"),
    "queue_of_lane": (1,),
    "count_leases": ("[]",),
    "queues_of_leases": ("[]",),
    "special_lanes": ("[]",),
    "rooms_of": ("[]",),
    "charge_queue": (1, 1, 1),
    "queue_crowds": ("[]", 1),
    "first_of_lane": (1, 1),
    "rank_ready": (1, 1, 1),
    "shares_of": (1, "[]"),
    "refund_share": (1, "k", 1),
    "forget_all_shares": (1,),
    "forget_shares": (1,),
    "held_types": ("default",),
    "forget_request_keys": (1, 1),
}


@pytest.mark.parametrize("name", sorted(HOT))
def test_a_hot_query_goes_by_an_index_and_sorts_nothing(name: str) -> None:
    with contextlib.closing(connect(":memory:", writes=True)) as connection:
        migrate(connection, 0)
        plan = [step for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", HOT[name])]
    given = ("SCAN json_each", "SCAN k", "SCAN CONSTANT", "SCAN 1 CONSTANT", "SCAN (subquery", "SCAN e", "SCAN m")
    scans = [step for step in plan if step.startswith("SCAN") and not step.startswith(given)]
    assert all("USING" in step and "INDEX" in step for step in scans), plan
    assert not [step for step in plan if "TEMP B-TREE FOR ORDER" in step], plan


def test_a_claim_reads_the_head_of_its_lane_by_the_index() -> None:
    with contextlib.closing(connect(":memory:", writes=True)) as connection:
        migrate(connection, 0)
        plan = [step for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {SQL['pop']}", ("[1]", 1, 1))]
    assert any("SEARCH ready USING INDEX ready_order (lane_id=?)" in step for step in plan), plan
    assert any("SEARCH j USING INTEGER PRIMARY KEY" in step for step in plan), plan
