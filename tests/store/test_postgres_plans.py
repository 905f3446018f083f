"""What the hot statements look at: rows visited, not time, counted by the database itself.

Each statement is planned as the store's connections plan it, once with true statistics and once with those of a moment
at which every table was empty, which is what a queue's tables often have.
"""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import asyncpg
import pytest

from foliot.domain import events
from foliot.domain.changes import Held
from foliot.domain.duration import DAY, HOUR, SECOND
from foliot.domain.ids import JobKey, ScheduleKey
from foliot.domain.job import AttemptStatus, State
from foliot.domain.schedule import STANDING_LIMIT, WITH_JOB
from foliot.domain.states import TIMEOUT_GRACE, transition
from foliot.store.postgres import PostgresStore
from foliot.store.postgres.connections import connect
from foliot.store.postgres.days import Day
from foliot.store.postgres.part import SQL
from tests.postgres_server import Databases
from tests.store.builders import Scene

ROWS = 1500  # in each place
ASKED = 40
BOUND = 300  # rows that one step of a plan may see, for ASKED rows
HUGE = (1 << 63) - 1

Plan = dict[str, Any]


class Filled:
    """A store with rows in every place, and what the statements are asked about."""

    def __init__(self, scene: Scene, connection: asyncpg.Connection) -> None:
        self.scene = scene
        self.connection = connection
        self.lane = 0
        self.worker = 0
        self.waiting: list[JobKey] = []
        self.ready: list[JobKey] = []
        self.leased: list[JobKey] = []
        self.nonce = 0
        self.ended: list[JobKey] = []
        self.schedules: list[ScheduleKey] = []
        self.limits: list[int] = []
        self.limit_keys: list[str] = []
        self.crowded = 0
        self.unique: list[str] = []
        self.children: list[JobKey] = []
        self.parent = JobKey(0)
        self.queues: list[int] = []
        self.queue_names: list[str] = []
        self.lanes: list[int] = []
        self.fair_keys: list[str] = []
        self.stamp = (HUGE >> 32, 1)  # of a batch that is taken back

    async def fill(self) -> None:
        scene = self.scene
        worker = await scene.worker(until=scene.later(3600))
        jobs = await scene.jobs(3 * ROWS)
        await scene.submit(*jobs)
        claimed = await scene.claim(worker, jobs[0], 2 * ROWS)
        done, held = claimed[:ROWS], claimed[ROWS:]
        ends = [
            transition(
                Held(id=c.lease.id, nonce=c.lease.nonce),
                events.Succeed() if number % 20 else events.FailFatal(),
                scene.now,
                retry=c.job.retry,
            )
            for number, c in enumerate(done)
        ]
        await scene.save(ends)  # type: ignore[arg-type]
        later = [await scene.job(due=scene.now + n * SECOND, deadline=scene.now + HOUR + n) for n in range(1, ROWS)]
        due = await scene.jobs(ASKED)
        await scene.insert(scene.submission(*later), scene.submission(*due, parents=1))
        await self.connection.execute("update waiting set parents = 0")
        self.lane, self.worker, self.nonce = jobs[0].lane_id, worker.id, held[0].lease.nonce
        self.waiting = [job.id for job in due]
        self.ready = [job.id for job in jobs[2 * ROWS :]][:ASKED]
        self.leased = [c.lease.id for c in held][:ASKED]
        self.ended = [c.lease.id for c in done][:ASKED]
        await self._fill_schedules()
        await self._fill_limits()
        await self._fill_queues([c.lease.id for c in held])
        await self._fill_graph(done[0].lease.id, [c.lease.id for c in held])

    async def _fill_limits(self) -> None:
        """Keys each with a holder and two that wait, and one key on which thousands wait."""
        rows = await self.connection.fetch(
            "insert into limits (namespace, key, most) select 'default', $2 || n, 2 "
            "from generate_series(1, $1) as g (n) returning limit_id, key",
            ROWS,
            f"k{self.scene.new_id()}-",
        )
        numbers = [row[0] for row in rows]
        self.limits, self.crowded = numbers[ASKED : 2 * ASKED], numbers[-1]
        self.limit_keys = [row[1] for row in rows][:ASKED]
        await self.connection.execute(
            "update ready set limit_id = n.number "
            "from (select id, ($1::int[])[row_number() over (order by id)] as number from ready) n "
            "where n.id = ready.id and ready.id <> all($2::bigint[])",
            numbers,
            self.ready,
        )
        first = self.scene.new_id()
        self.scene._ids.take(3 * ROWS, self.scene.now)
        await self.connection.execute(
            "insert into waiting (id, due, rank, since, lane_id, attempt, counted, tries_left, lost, version, parents, "
            "priority, hold, for_key, limit_id) "
            "select $1::bigint + g.n, 0, g.n, 0, $2, 0, 0, 1, 0, 1, 0, 5, false, true, "
            "case when g.n < $3 then $4 else ($5::int[])[1 + g.n % $3] end "
            "from generate_series(0, 3 * $3 - 1) as g (n)",
            first,
            self.lane,
            ROWS,
            self.crowded,
            numbers,
        )
        self.unique = [f"u{self.scene.new_id()}-{n}" for n in range(ROWS)]
        await self.connection.execute(
            "insert into unique_keys (namespace, key, id) select 'default', key, id "
            "from unnest($1::text[], $2::bigint[]) as u (key, id)",
            self.unique,
            [first + n for n in range(ROWS)],
        )

    async def _fill_queues(self, leased: list[JobKey]) -> None:
        """Queues each with a lease that counts, some with a lane; one in ten is special. One has thousands of fair
        keys, half of which its time has passed."""
        prefix = f"q{self.scene.new_id()}-"
        rows = await self.connection.fetch(
            "insert into queues (namespace, name, most, limited, special, fair_time) "
            "select 'default', $2 || n, 9, true, n % 10 = 0, 1000 from generate_series(1, $1) as g (n) "
            "returning queue_id, name",
            ROWS,
            prefix,
        )
        numbers = [row[0] for row in rows]
        self.queues, self.queue_names = numbers[:ASKED], [row[1] for row in rows][:ASKED]
        lanes = await self.connection.fetch(
            "insert into lanes (namespace, queue, job_type) select 'default', $2 || n, 'echo' "
            "from generate_series(1, $1) as g (n) returning lane_id",
            ASKED,
            prefix,
        )
        self.lanes = [row[0] for row in lanes]
        await self.connection.execute(
            "insert into held_types (namespace, job_type) select 'default', 't' || n "
            "from generate_series(1, $1) as g (n) on conflict do nothing",
            ROWS,
        )
        await self.connection.execute(
            "update leases set queue_id = u.queue_id from unnest($1::bigint[], $2::int[]) as u (id, queue_id) "
            "where u.id = leases.id and leases.id <> all($3::bigint[])",
            leased,
            numbers,
            self.leased,
        )
        self.fair_keys = [f"k{number}" for number in range(ROWS)]
        await self.connection.execute(
            "insert into shares (queue_id, fair_key, time) "
            "select $1, 'k' || n, 500 + n from generate_series(0, $2 - 1) as g (n)",
            self.queues[0],
            ROWS,
        )

    async def _fill_graph(self, ended: JobKey, leased: list[JobKey]) -> None:
        """Thousands of blocked children of one ended parent; each also has a parent of its own that runs."""
        children = [await self.scene.job() for _ in range(ROWS)]
        await self.scene.insert(self.scene.submission(*children, parents=2))
        self.children, self.parent = [job.id for job in children], ended
        await self.connection.execute(
            'insert into edges (parent, child, "on") select $1, child, 3 from unnest($2::bigint[]) as u (child) '
            "union all select parent, child, 3 from unnest($2::bigint[], $3::bigint[]) as u (child, parent)",
            ended,
            self.children,
            leased,
        )
        await self.connection.execute(
            "insert into releases (parent, state) select id, 5 from unnest($1::bigint[]) as u (id)",
            [ended, *leased[1:]],
        )

    async def _fill_schedules(self) -> None:
        """Each with a past of three rows, one run under way and two due times that wait; what is leased are runs."""
        first = self.scene.new_id()
        self.schedules = [ScheduleKey(first + number) for number in range(ASKED)]
        await self.connection.execute(
            "insert into schedules (id, namespace, name, definition, plan, owner, created, changed, paused, next_due, "
            "runs, backfill_limit, version, edition) "
            "select id, 'default', 's' || id, '{}', '{}', '', 0, 0, false, $2 + id - $1, 0, 0, 1, 1 "
            "from generate_series($1::bigint, $1 + $3 - 1) as g (id)",
            first,
            self.scene.now,
            ROWS,
        )
        await self.connection.execute(
            "insert into ledger (schedule, due, until, count, exact, verdict, promised, decided) "
            "select id, due, due, 1, true, case when due < 3 then 1 end, 1, due "
            "from generate_series($1::bigint, $1 + $2 - 1) as g (id), generate_series(0, 4) as d (due)",
            first,
            ROWS,
        )
        await self.connection.execute(
            "insert into open_runs (id, schedule, backfill) "
            "select id, id, false from generate_series($1::bigint, $1 + $2 - 1) as g (id)",
            first,
            ROWS,
        )
        await self.connection.execute(
            "insert into open_runs (id, schedule, backfill) select id, $1, true from unnest($2::bigint[]) as l (id)",
            first + ROWS,
            self.leased,
        )

    async def explain(self, query: str, *arguments: object) -> Plan:
        """Run it for its plan and take it back."""
        types = [p.name for p in (await self.connection.prepare(SQL[query])).get_parameters()]
        names = [f"{name[:-2].lstrip('_')}[]" if name.endswith("[]") else name for name in types]
        head = f"prepare explained ({', '.join(names)})" if names else "prepare explained"
        values = f"({', '.join(literal(argument) for argument in arguments)})" if arguments else ""
        transaction = self.connection.transaction()
        await transaction.start()
        try:
            await self.connection.execute(f"{head} as {SQL[query]}")
            text = await self.connection.fetchval(
                f"explain (analyze, buffers, timing off, format json) execute explained {values}"
            )
            plan: Plan = json.loads(text)[0]["Plan"]
            return plan
        finally:
            await transaction.rollback()
            await self.connection.execute("deallocate all")
            await self.connection.reload_schema_state()


def literal(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool() | int():
            return str(value)
        case list():
            return "'{" + ",".join("null" if item is None else str(item) for item in value) + "}'"
        case _:
            return f"'{value}'"


def steps(plan: Plan) -> Iterator[Plan]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from steps(child)


def visited(step: Plan) -> float:
    """The rows that a step gave and those that it looked at in vain."""
    removed = sum(count for name, count in step.items() if name.startswith("Rows Removed"))
    return float((step["Actual Rows"] + removed) * step["Actual Loops"])


def ways(plan: Plan, table: str) -> set[str]:
    """The indexes by which a table was looked into."""
    found = (step for step in steps(plan) if step.get("Relation Name") == table)
    return {each["Index Name"] for step in found for each in (step, *step.get("Plans", ())) if "Index Name" in each}


def check(plan: Plan, *, bound: int = BOUND, day: str | None = None) -> None:
    for step in steps(plan):
        table = step.get("Relation Name", "")
        if table not in {"lanes", "workers"}:
            assert step["Node Type"] != "Seq Scan" or not table, table
        assert visited(step) <= bound, (step["Node Type"], table, visited(step))
        if day is not None and step["Actual Loops"] and "Scan" in step["Node Type"]:
            assert not table.startswith(("jobs_", "history_", "attempts_")) or table.endswith((day, "kept")), table


@pytest.fixture(scope="session")
def models(postgres: Databases) -> Iterator[dict[str, tuple[str, dict[str, Any]]]]:
    """Databases that were filled once, with what is asked about them; each test has a copy."""
    made: dict[str, tuple[str, dict[str, Any]]] = {}
    yield made
    for url, _ in made.values():
        postgres.drop_database(url)


@pytest.fixture(params=["true statistics", "statistics of empty tables"])
async def filled(
    request: pytest.FixtureRequest, postgres: Databases, models: dict[str, tuple[str, dict[str, Any]]]
) -> AsyncIterator[Filled]:
    if request.param not in models:
        url = postgres.create_database()
        models[request.param] = url, await _fill(url, emptied=request.param == "statistics of empty tables")
    model, known = models[request.param]
    url = postgres.create_database(model)
    store = PostgresStore(url)
    await store.open()
    connection = await connect(url)
    filled = Filled(Scene(store, await store.now()), connection)
    vars(filled).update(known)
    yield filled
    await connection.close()
    await store.close()
    postgres.drop_database(url)


async def _fill(url: str, *, emptied: bool) -> dict[str, Any]:
    """What is asked about a database that this fills."""
    store = PostgresStore(url)
    await store.open()
    connection = await connect(url)
    for table in (*NARROW, "queues"):
        await connection.execute(f"alter table {table} set (autovacuum_enabled = off)")
    filled = Filled(Scene(store, await store.now()), connection)
    if emptied:
        # Tables that had rows and have none now: their pages are there, their rows are not.
        await filled.fill()
        for table in (*NARROW, "history", "jobs"):
            await connection.execute(f"delete from {table}")
        await connection.execute("delete from lanes where queue <> 'default'")
        await connection.execute("delete from queues where name <> 'default'")
        await connection.execute("vacuum analyze")
        await filled.fill()
    else:
        await filled.fill()
        await connection.execute("vacuum analyze")
    await connection.close()
    await store.close()
    return {name: value for name, value in vars(filled).items() if name not in ("scene", "connection")}


NARROW = (
    "waiting", "ready", "leases", "schedules", "ledger", "open_runs", "edges", "releases", "limits", "unique_keys",
    "shares", "held_types",
)  # fmt: skip
NOTHING = [None] * ASKED


async def test_dispatch_looks_at_little_more_than_it_gives(filled: Filled) -> None:
    now, lane, day = filled.scene.now, [filled.lane], Day.at(filled.scene.now).suffix
    marks = (lane, [0], [0])
    claim = await filled.explain(
        "claim", lane, [filled.worker], [ASKED], *marks, 5, now, TIMEOUT_GRACE, [False], *filled.stamp
    )
    assert claim["Actual Rows"] == ASKED
    check(claim, day=day)
    check(await filled.explain("heads", *marks, ASKED))
    check(await filled.explain("occupied_lanes", *marks))
    admit = await filled.explain("admit", filled.waiting, *filled.stamp)
    assert admit["Actual Rows"] == ASKED
    check(admit)
    check(await filled.explain("peek_due", now + HOUR, ASKED))
    check(await filled.explain("peek_due", now - HOUR, ASKED))


async def test_duties_look_at_little_more_than_they_find(filled: Filled) -> None:
    now = filled.scene.now
    nothing_missed = await filled.explain("missed", now, ASKED)
    assert nothing_missed["Actual Rows"] == 0
    check(nothing_missed)
    missed = await filled.explain("missed", now + DAY, ASKED)
    assert missed["Actual Rows"] == ASKED
    check(missed)
    check(await filled.explain("expired", now, ASKED))
    check(await filled.explain("expired", now + DAY, ASKED))
    check(await filled.explain("next_deadline"))


async def test_changes_look_only_at_the_rows_they_name(filled: Filled) -> None:
    now, day = filled.scene.now, Day.at(filled.scene.now).suffix
    states, times = [int(State.COMPLETED)] * ASKED, [now] * ASKED
    statuses = [int(AttemptStatus.SUCCESS)] * ASKED
    nonces = [filled.nonce] * ASKED
    ends = (NOTHING, nonces, states, NOTHING, times, statuses, NOTHING, NOTHING, NOTHING, NOTHING, now, *filled.stamp)
    end = await filled.explain("end_leases", filled.leased, *ends)
    assert end["Actual Rows"] == 2 * ASKED  # the jobs, and the schedules of which they were runs
    assert ways(end, "open_runs") == {"open_runs_pkey"}
    check(end, day=day)
    versions = [1] * ASKED
    for query, keys in (("end_waiting", filled.waiting), ("end_ready", filled.ready)):
        plan = await filled.explain(query, keys, versions, states, NOTHING, times, NOTHING, NOTHING, now, *filled.stamp)
        assert plan["Actual Rows"] == ASKED
        assert ways(plan, query.removeprefix("end_")) == {f"{query.removeprefix('end_')}_pkey"}
        check(plan, day=day)
    for query, keys, version in (
        ("leave_waiting", filled.waiting, 1),
        ("leave_ready", filled.ready, 1),
        ("leave_leases", filled.leased, 2),
        ("leave_history", filled.ended, 3),
    ):
        plan = await filled.explain(query, keys, [version] * ASKED, NOTHING)
        assert plan["Actual Rows"] == ASKED
        assert all(way.endswith("_pkey") for way in ways(plan, query.removeprefix("leave_")))
        check(plan, day=day)


async def test_schedules_are_found_by_their_next_moment_and_by_key(filled: Filled) -> None:
    now, keys = filled.scene.now, filled.schedules
    for query, arguments, found in (
        ("peek_schedules", (now + HOUR, ASKED, STANDING_LIMIT), ASKED),
        ("peek_schedules", (now - HOUR, ASKED, STANDING_LIMIT), 1),
        ("standings", (keys, STANDING_LIMIT), ASKED),
        ("waiting_schedules", (ASKED, 0), ASKED),
        ("list_schedules", ("default", HUGE, ASKED), ASKED),
        ("schedule", ("default", f"s{keys[0]}"), 1),
        ("runs", (keys[0], HUGE, ASKED), 5),
        ("settled_dues", (keys[0], 0, now, list(WITH_JOB)), 5),
        ("remove_schedule", (keys[0], 1), 1),
        ("forget_ledger", (3, ASKED), ASKED),
    ):
        plan = await filled.explain(query, *arguments)
        assert plan["Actual Rows"] == found, query
        check(plan)
        if query in {"standings", "waiting_schedules"}:
            assert ways(plan, "schedules") == {"schedules_pkey"}


async def test_a_firing_looks_only_at_the_rows_it_names(filled: Filled) -> None:
    keys, zeros, words = filled.schedules, [0] * ASKED, ["w"] * ASKED
    named = (keys, words, [f"s{key}" for key in keys], words, words, words)
    state = (zeros, zeros, [False] * ASKED, NOTHING, zeros, zeros)
    changed = await filled.explain("change_schedules", *named, *state, [2] * ASKED, zeros, zeros)
    assert changed["Actual Rows"] == ASKED
    assert ways(changed, "schedules") == {"schedules_pkey"}
    check(changed)
    new_names = [f"new{key}" for key in keys]
    new_keys = [key + ROWS for key in keys]
    made = await filled.explain(
        "change_schedules", new_keys, words, new_names, words, words, words, *state, [1] * ASKED, zeros, zeros
    )
    assert made["Actual Rows"] == ASKED
    check(made)
    ones, true = [1] * ASKED, [True] * ASKED
    runs = (keys, [3] * ASKED, [3] * ASKED, ones, true, ones, ones, NOTHING, zeros)
    check(await filled.explain("note_runs", *runs, list(WITH_JOB)))
    opened = await filled.explain("open_runs", words, new_names, new_keys, words, keys, true)
    assert opened["Actual Rows"] == ASKED
    check(opened)
    check(await filled.explain("reopen_runs", filled.ended), day=Day.at(filled.scene.now).suffix)


async def test_tokens_are_counted_and_given_through_the_keys_of_each(filled: Filled) -> None:
    keys, names = filled.limits, ["default"] * ASKED
    for query, arguments, found in (
        ("lock_limits", (keys,), ASKED),
        ("give_tokens", (keys, [2] * ASKED, filled.scene.now), ASKED),
        ("give_tokens", ([filled.crowded], [ASKED], filled.scene.now), ASKED - 1),
        ("crowded_limits", (ASKED, 0), ASKED),
        ("crowded_limits", (ASKED, filled.crowded), 0),
        ("limits_by_name", (names, filled.limit_keys), ASKED),
        ("insert_limits", (names, filled.limit_keys, [2] * ASKED), 0),
        ("limits", ("default", "", None, ASKED, 10, 2), ASKED),
        ("limits", ("default", "", filled.limit_keys, ASKED, 10, 2), ASKED),
    ):
        plan = await filled.explain(query, *arguments)
        assert plan["Actual Rows"] == found, query
        check(plan)


async def test_queues_are_found_by_number_and_by_name(filled: Filled) -> None:
    numbers, names, lane = filled.queues, filled.queue_names, filled.lane
    for query, arguments, found in (
        ("queues", ("default", "", None, ASKED), ASKED),
        ("queues", ("default", "", names, ASKED), ASKED),
        ("held_types", ("default",), ROWS),
        ("hold_type", ("default", "t1"), 0),
        ("let_type_go", ("default", "t1"), 0),
        ("lock_queue", ("default", names[0]), 1),
        ("lock_queue_of_lane", (lane,), 1),
        ("lock_queues", (numbers,), ASKED),
        ("rooms", (numbers,), ASKED),
        ("charge_rate", (numbers[0], 5), 0),
        ("move_fair_time", (numbers[0], 5000, 1), 0),
        ("change_queue", (numbers[0], 2, 2, False, "", False, False, None, 0), 0),
        ("count_leases_no_more", (numbers[-1],), 0),
        ("shares", (numbers[0], filled.fair_keys[:ASKED]), ASKED),
        ("put_shares", (numbers[0], filled.fair_keys[:ASKED], list(range(ASKED))), 0),
        ("refund", (numbers[0], "k1", 5), 0),
        ("forget_shares", (numbers[0], "k5", ASKED), 1),
        ("still_ready", (filled.ready, [1] * ASKED), ASKED),
    ):
        plan = await filled.explain(query, *arguments)
        assert plan["Actual Rows"] == found, query
        check(plan, bound=ROWS if query == "held_types" else BOUND)


async def test_special_queues_are_found_without_a_look_at_the_others(filled: Filled) -> None:
    plan = await filled.explain("special_queues")
    assert plan["Actual Rows"] == ROWS // 10
    assert ways(plan, "queues") == {"queues_special"}
    check(plan)


@pytest.mark.parametrize("fair", [False, True])
async def test_jobs_are_taken_out_of_their_lane_by_rank(filled: Filled, fair: bool) -> None:
    plan = await filled.explain("take_ready", filled.lane, 0, 0, ASKED, fair)
    assert plan["Actual Rows"] == ASKED
    assert ways(plan, "ready") == {"ready_rank"}
    check(plan, day=Day.at(filled.scene.now).suffix)


async def test_a_claim_from_many_lanes_looks_at_the_queue_of_each(filled: Filled) -> None:
    lanes, zeros = filled.lanes, [0] * ASKED
    workers, ones, limited = [filled.worker] * ASKED, [1] * ASKED, [True] * ASKED
    claim = (lanes, workers, ones, lanes, zeros, zeros, 5, filled.scene.now, TIMEOUT_GRACE, limited, *filled.stamp)
    plan = await filled.explain("claim", *claim)
    assert ways(plan, "queues") == {"queues_pkey"}
    assert ways(plan, "lanes") == {"lanes_pkey"}
    assert ways(plan, "held_types") == {"held_types_pkey"}
    for step in steps(plan):
        assert not step.get("Relation Name") or visited(step) <= BOUND, step


async def test_how_full_queues_are_takes_one_look_at_the_leases(filled: Filled) -> None:
    plan = await filled.explain("crowds", filled.queues, 100)
    assert plan["Actual Rows"] == ASKED
    assert max(map(visited, steps(plan))) <= ROWS
    assert ways(plan, "ready") == {"ready_rank"}


async def test_a_move_with_a_key_goes_by_the_same_ways(filled: Filled) -> None:
    await filled.connection.execute(
        "update waiting set limit_id = $1 where id = any($2::bigint[])", filled.crowded, filled.waiting
    )
    admit = await filled.explain("admit", filled.waiting, *filled.stamp)
    assert admit["Actual Rows"] == ASKED
    assert ways(admit, "waiting") == {"waiting_pkey"}
    check(admit)


async def test_ends_are_carried_on_through_the_edges_of_each_parent(filled: Filled) -> None:
    day = Day.at(filled.scene.now).suffix
    parent, children, running = filled.parent, filled.children[:ASKED], filled.leased
    later = filled.children[ASKED]
    for query, arguments, table, way in (
        ("take_releases", (ASKED,), "releases", "releases_pkey"),
        ("tell_children", ([parent], [0], ASKED), "edges", "edges_pkey"),
        ("tell_children", (running, [0] * ASKED, 1), "edges", "edges_pkey"),
        ("lock_blocked", (children,), "waiting", "waiting_pkey"),
        ("still_blocked", (children,), "waiting", "waiting_pkey"),
        ("count_parents", (children, 1), "waiting", "waiting_pkey"),
        ("finish_releases", (running,), "releases", "releases_pkey"),
        ("go_on_with_releases", (parent, later), "releases", "releases_pkey"),
        ("insert_releases", (children, [5] * ASKED), "releases", None),
        ("insert_edges", (children, children, [3] * ASKED), "edges", None),
        ("take_back_releases", (running,), "releases", "releases_pkey"),
        ("close_edges", (children,), "edges", "edges_child"),
        ("open_edges", (running, children), "edges", "edges_pkey"),
        ("edges", (running, ASKED), "edges", "both"),
        ("edges", (children, ASKED), "edges", "both"),
        ("upstream", (children, 1000), "edges", "edges_child"),
    ):
        plan = await filled.explain(query, *arguments)
        check(plan, day=day)
        if way is not None:
            assert ways(plan, table) == ({"edges_pkey", "edges_child"} if way == "both" else {way}), query


async def test_a_chunk_of_a_fan_out_begins_where_the_last_one_ended(filled: Filled) -> None:
    reached = filled.children[ROWS // 2]
    await filled.connection.execute(
        "update edges set done = true where parent = $1 and child <= $2", filled.parent, reached
    )
    plan = await filled.explain("tell_children", [filled.parent], [reached], ASKED)
    assert plan["Actual Rows"] == ASKED + 1
    check(plan)


async def test_parents_are_noted_by_key_wherever_they_are(filled: Filled) -> None:
    day = Day.at(filled.scene.now).suffix
    for table, keys in (("waiting", filled.waiting), ("ready", filled.ready), ("leases", filled.leased)):
        noted = await filled.explain("note_children", keys)
        assert noted["Actual Rows"] == ASKED
        for each in ("waiting", "ready", "leases"):
            assert ways(noted, each) == {f"{each}_pkey"}
        check(noted)
        await filled.connection.execute(f"update {table} set ties = 1 where id = any($1::bigint[])", keys)
        again = await filled.explain("note_children", keys)
        assert again["Actual Rows"] == ASKED
        check(again)
    for keys in (filled.ended, filled.waiting):
        plan = await filled.explain("ended_states", keys)
        assert plan["Actual Rows"] == ASKED
        check(plan, day=day)


async def test_unique_keys_are_found_by_key(filled: Filled) -> None:
    names, keys = ["default"] * ASKED, filled.unique[:ASKED]
    day = Day.at(filled.scene.now).suffix
    for query, arguments in (
        ("lock_unique_keys", (names, keys, filled.ready)),
        ("unique_keys", (names, keys)),
        ("put_unique_keys", (names, keys, filled.ready)),
        ("kept_jobs", (filled.ready,)),
        ("forget_unique_keys", (0, HUGE, ASKED, 0)),
        ("forget_edges", (filled.children[0], filled.children[-1], ASKED, 0)),
    ):
        check(await filled.explain(query, *arguments), day=day)


async def test_look_ups_go_by_key_and_only_into_their_day(filled: Filled) -> None:
    day = Day.at(filled.scene.now).suffix
    for keys in (filled.waiting, filled.ready, filled.leased, filled.ended):
        load = await filled.explain("load", keys)
        assert load["Actual Rows"] == ASKED
        check(load, day=day)
    check(await filled.explain("outcomes", filled.ended, [filled.nonce] * ASKED), day=day)
    check(await filled.explain("executions", filled.ended[0]), day=day)
    check(await filled.explain("leases_of", [filled.worker + 1], None), day=day)
    lines = (list(range(ASKED)), filled.leased, [filled.nonce] * ASKED, [1] * ASKED, [0] * ASKED, [20] * ASKED)
    check(await filled.explain("append_logs", *lines, ["x"] * ASKED), day=day)


async def test_the_record_is_read_from_where_each_writer_is(filled: Filled) -> None:
    """Thousands of batches in two days, of writers most of which have ended."""
    now, sql = filled.scene.now, filled.connection
    await sql.execute("insert into event_writers overriding system value select 1000 + n from generate_series(1, 20) n")
    for begin in (now, now + DAY):
        await sql.execute(
            "insert into events (writer, number, time, mask, ids) "
            "select 1001 + n % 20, $1::bigint + n, $1, 4, array[n] from generate_series(1, $2::int) n",
            begin,
            10 * ROWS,
        )
    writers = [1000 + number for number in range(1, 21)]
    last = [now + DAY + 10 * ROWS - 10 * ASKED] * 20
    for arguments, found in (
        ((2000, writers, last, ASKED, 4), ASKED + 20),
        ((2000, writers, [HUGE] * 20, ASKED, 4), 20),
        ((2000, [], [], ASKED, 4), 0),
    ):
        plan = await filled.explain("read_feed", *arguments)
        assert plan["Actual Rows"] == found
        check(plan, bound=20 * ASKED)
        assert all(way.endswith("_pkey") for day in (now, now + DAY) for way in ways(plan, _feed_day(day)))
    end = await filled.explain("feed_end")
    assert max(visited(step) for step in steps(end) if step.get("Relation Name", "").startswith("events_")) <= 50
    gone = await filled.explain("forget_writers", writers)
    assert max(visited(step) for step in steps(gone) if step.get("Relation Name", "").startswith("events_")) <= 50


def _feed_day(time: int) -> str:
    return f"events_{Day.at(time).suffix}"


@pytest.mark.parametrize(
    ("query", "statuses"),
    [
        ("list_by_id", (None, False, False, [])),
        ("list_by_id", ([], False, False, [5])),
        ("list_by_row", ([0], False, False, [])),
        ("list_by_row", ([8, 9], True, True, [])),
        ("list_by_row", ([], False, False, [6, 7])),
    ],
    ids=["all", "completed", "scheduled", "queued or running", "failed or cancelled"],
)
async def test_lists_look_at_a_bounded_number_of_rows(filled: Filled, query: str, statuses: Sequence[object]) -> None:
    scanned = 200
    filters = (None, None, scanned, HUGE, None, None, None, None, None, ASKED)
    check(await filled.explain(query, "default", *filters, *statuses, None, None), bound=2 * scanned)


async def test_a_snapshot_held_open_elsewhere_does_not_make_claims_crawl(database_url: str) -> None:
    store = PostgresStore(database_url)
    await store.open()
    scene = Scene(store, await store.now())
    watcher = await asyncpg.connect(database_url)
    old = watcher.transaction(isolation="repeatable_read")
    await old.start()
    await watcher.fetchval("select count(*) from ready")
    worker = await scene.worker(until=scene.later(3600))
    jobs = await scene.jobs(4 * ROWS)
    await scene.submit(*jobs)
    await scene.claim(worker, jobs[0], len(jobs))
    connection = await connect(database_url)
    filled = Filled(scene, connection)
    last = await scene.submitted()
    lane = [last.lane_id]
    store._marks._looked[last.lane_id] += HOUR  # so that a slow machine does not bring the time of the full look
    begin = store._marks.look(lane).columns()
    assert begin[2][0] in {job.id for job in jobs}
    claim = (lane, [worker.id], [1])
    full = await filled.explain("claim", *claim, lane, [0], [0], 9, scene.now, TIMEOUT_GRACE, [False], *filled.stamp)
    marked = await filled.explain("claim", *claim, *begin, 9, scene.now, TIMEOUT_GRACE, [False], *filled.stamp)
    assert full["Actual Rows"] == marked["Actual Rows"] == 1
    assert marked["Shared Hit Blocks"] * 5 < full["Shared Hit Blocks"]
    (claimed,) = await scene.claim(worker, last, 5)
    assert claimed.job.id == last.id
    await old.rollback()
    await watcher.close()
    await connection.close()
    await store.close()
