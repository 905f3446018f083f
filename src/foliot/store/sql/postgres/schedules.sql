-- Schedules and the ledger of their due times. Arrays and `offset 0`: see jobs.sql and changes.sql.

-- name: change_schedules
-- Each schedule's next state, where it stands at the version before it; a new one (version 1) where its name is free. By the
-- database's own clock nothing happens before its time ($15). Locked in the order given. What is found is then written
-- by an upsert, which always goes by key, where an update would be a join that can be turned around.
with clock as materialized (
    select (extract(epoch from clock_timestamp()) * 1000000)::bigint as now
),
asked as materialized (
    select * from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[],
        $9::boolean[], $10::bigint[], $11::bigint[], $12::int[], $13::int[], $14::int[], $15::bigint[])
        as u (id, namespace, name, definition, plan, owner, created, changed, paused, next_due, runs, backfill_limit, version,
            edition, not_before)
    where u.not_before <= (select now from clock)
),
found as materialized (
    select a.* from asked a cross join lateral (
        select from schedules where schedules.id = a.id and schedules.version = a.version - 1 for no key update
    ) s
    where a.version > 1
),
changed as (
    insert into schedules (id, namespace, name, definition, plan, owner, created, changed, paused, next_due, runs,
        backfill_limit, version, edition)
    select id, namespace, name, definition, plan, owner, created, changed, paused, next_due, runs, backfill_limit, version,
        edition
    from found
    on conflict (id) do update set definition = excluded.definition, plan = excluded.plan, owner = excluded.owner,
        changed = excluded.changed, paused = excluded.paused, next_due = excluded.next_due, runs = excluded.runs,
        backfill_limit = excluded.backfill_limit, version = excluded.version, edition = excluded.edition
    returning id
),
made as (
    insert into schedules (id, namespace, name, definition, plan, owner, created, changed, paused, next_due, runs,
        backfill_limit, version, edition)
    select id, namespace, name, definition, plan, owner, created, changed, paused, next_due, runs, backfill_limit, version,
        edition
    from asked where version = 1
    on conflict do nothing
    returning id
)
select id from changed union all select id from made;

-- name: note_runs
-- Rows of the ledger. One that has its job (a verdict of $10) stays as it is, and so does one that waits if the new one
-- would wait as well.
insert into ledger as known (schedule, due, until, count, exact, verdict, promised, reason, decided)
select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::boolean[], $6::smallint[], $7::smallint[],
    $8::text[], $9::bigint[])
on conflict (schedule, due, until) do update set count = excluded.count, exact = excluded.exact, verdict = excluded.verdict,
    promised = excluded.promised, reason = excluded.reason, decided = excluded.decided
where case when known.verdict is null then excluded.verdict is not null else known.verdict <> all($10::smallint[]) end;

-- name: open_runs
-- Take the names of runs, in order; the ids of those that are to be written: a name that is taken has its job.
with named as (
    insert into job_keys (namespace, name, id, body_hash)
    select namespace, name, id, body_hash
    from unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[]) as u (namespace, name, id, body_hash)
    where name is not null
    on conflict do nothing
    returning id
)
insert into open_runs (id, schedule, backfill)
select id, schedule, backfill
from unnest($2::text[], $3::bigint[], $5::bigint[], $6::boolean[]) as u (name, id, schedule, backfill)
where name is null or (id in (select id from named)) is true
on conflict do nothing
returning id;

-- name: schedule
select id, namespace, name, definition, plan, owner, created, changed, paused, next_due, runs, backfill_limit, version, edition
from schedules where namespace = $1 and name = $2;

-- name: list_schedules
select id, namespace, name, definition, plan, owner, created, changed, paused, next_due, runs, backfill_limit, version, edition
from schedules where namespace = $1 and id < $2 order by id desc limit $3;

-- name: remove_schedule
-- With what waits and what is under way: jobs that go on are nobody's runs. The ledger's rows are left to `forget_ledger`.
with gone as (delete from schedules where id = $1 and version = $2 returning id),
waiting as (delete from ledger where schedule = any(array(select id from gone)) and verdict is null),
under_way as (delete from open_runs where schedule = any(array(select id from gone)))
select id from gone;

-- name: peek_schedules
-- The next due times; where none is near, the earliest of all. Each with its runs under way and what waits, up to $3.
with near as materialized (
    select * from schedules where not paused and next_due <= $1 order by next_due, id limit $2
),
chosen as materialized (
    select * from near
    union all
    (select * from schedules where not paused and next_due is not null and not exists (select from near)
        order by next_due, id limit 1)
)
select s.id, s.namespace, s.name, s.definition, s.plan, s.owner, s.created, s.changed, s.paused, s.next_due, s.runs,
    s.backfill_limit, s.version, s.edition,
    array(select id from open_runs where schedule = s.id and not backfill order by id + 0 limit $3) as under_way,
    (select count(*) from open_runs where schedule = s.id and backfill) as backfilling,
    w.*
from chosen s
cross join lateral (
    select array_agg(due), array_agg(until), array_agg(count), array_agg(exact), array_agg(promised), array_agg(reason),
        array_agg(decided)
    from (
        select * from ledger where schedule = s.id and verdict is null order by promised = 4, due limit $3
    ) in_order
) w
order by s.next_due, s.id;

-- name: standings
-- Schedules, their runs under way and what waits, up to $2.
select s.id, s.namespace, s.name, s.definition, s.plan, s.owner, s.created, s.changed, s.paused, s.next_due, s.runs,
    s.backfill_limit, s.version, s.edition,
    array(select id from open_runs where schedule = s.id and not backfill order by id + 0 limit $2) as under_way,
    (select count(*) from open_runs where schedule = s.id and backfill) as backfilling,
    w.*
from unnest($1::bigint[]) as u (id)
cross join lateral (select * from schedules where schedules.id = u.id offset 0) s
cross join lateral (
    select array_agg(due), array_agg(until), array_agg(count), array_agg(exact), array_agg(promised), array_agg(reason),
        array_agg(decided)
    from (
        select * from ledger where schedule = s.id and verdict is null order by promised = 4, due limit $2
    ) in_order
) w;

-- name: waiting_schedules
-- Those after $2. Steps from schedule to schedule through the index of what waits.
with recursive holders as (
    (select schedule from ledger where verdict is null and schedule > $2 order by schedule limit 1)
    union all
    select (select l.schedule from ledger l where l.verdict is null and l.schedule > h.schedule order by l.schedule limit 1)
    from holders h where h.schedule is not null
)
select h.schedule from holders h
cross join lateral (select from schedules where schedules.id = h.schedule and not paused offset 0) s
limit $1;

-- name: runs
select due, until, count, exact, verdict, promised, reason, decided
from ledger where schedule = $1 and due < $2 order by due desc, until desc limit $3;

-- name: settled_dues
select due from ledger
where schedule = $1 and due >= $2 and due <= $3 and (verdict is null or verdict = any($4::smallint[]));

-- name: due_by_minute
select due / 60000000 * 60000000 as minute, count(*)
from waiting
where not hold and parents = 0 and not for_key and due >= $2 and due < $3
and lane_id = any(array(select lane_id from lanes where namespace = $1))
group by 1;

-- name: forget_ledger
-- A piece of what was decided before $1, whether its schedule is there or not. Looked for apart: a subquery that is read again
-- steps over what it has locked, and finds more than its limit.
with past as materialized (
    select ctid from ledger where verdict is not null and decided < $1 order by decided limit $2 for update skip locked
)
delete from ledger where ctid = any(array(select ctid from past)) returning 1;
