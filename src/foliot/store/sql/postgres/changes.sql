-- Moves: each deletes the row it replaces, and only where that succeeded writes what comes instead. Arrays come sorted by id,
-- so that rows are locked in one order.
--
-- A look-up is a lateral subquery with a lock or `offset 0`, which the planner can not turn around: it goes from our array to the
-- table, by its key. Written as a join it would, for a table that was empty when statistics were last taken, start at
-- the table and compare each of its rows with each of ours.
--
-- Ready rows are deleted where they were found: they never change in place, and while statistics are those of an empty table
-- their ids would be looked for all through the index by rank. Other rows are found by id, since a lock may have waited for
-- a newer version than the one that the statement sees.
--
-- A batch of the record is written along with an end: its time, writer and number are the last arguments. An end answers with the
-- ids of the jobs, the concurrency keys of which they held a token, whether others depend on them, and the
-- queues whose limit they counted against; then, without an id, with the schedules of which a run ended. Whether others
-- depend on a job is told by its own row, which is locked and so up to date; the edges, read in the same statement, would be
-- those of an older snapshot.

-- name: end_leases
-- By token (nonce), by version, or both: what is null is not asked for. The lease's own columns are copied. What is the same for all
-- is recorded once.
with found as materialized (
    select l.id, l.lane_id, l.attempt, l.counted, l.lost, l.version, l.due, l.limit_id, l.ties, l.queue_id, l.worker, l.nonce,
        l.since, l.claimed, coalesce(u.started, l.started) as started, u.state, u.reason, u.ended, u.status, u.error, u.exit_code, u.result
    from unnest($1::bigint[], $2::int[], $3::bigint[], $4::smallint[], $5::text[], $6::bigint[], $7::smallint[],
        $8::bigint[], $9::text[], $10::int[], $11::text[])
        as u (id, version, nonce, state, reason, ended, status, started, error, exit_code, result)
    cross join lateral (
        select * from leases
        where leases.id = u.id and (u.nonce is null or leases.nonce = u.nonce)
        and (u.version is null or leases.version = u.version)
        for update
    ) l
),
gone as (delete from leases where id = any(array(select id from found))),
freed as (delete from open_runs where id = any(array(select id from found)) returning schedule),
told as (
    insert into releases (parent, state) select id, state from found where ties & 1 <> 0
    on conflict (parent) do update set state = excluded.state, reached = 0
),
ended as (
    insert into history (id, lane_id, state, attempt, counted, lost, version, due, ended, status, exit_code, worker, nonce,
        claimed, started, reason, error, result, admitted)
    select id, lane_id, state, attempt, counted, lost, version + 1, due, ended, status, exit_code, worker, nonce,
        claimed, started, reason, error, result, since
    from found
),
recorded as (
    insert into events (writer, number, "time", mask, ids, lanes, statuses, versions, attempts, counts, workers, startings,
        reasons)
    select $13, $14, $12, bit_or(1 << state + 1), array_agg(id),
        case when min(lane_id) = max(lane_id) then array[min(lane_id)] else array_agg(lane_id) end,
        case when min(state + 1) = max(state + 1) then array[min(state + 1)] else array_agg(state + 1) end,
        case when min(version + 1) = max(version + 1) then array[min(version + 1)] else array_agg(version + 1) end,
        case when min(attempt) = max(attempt) then array[min(attempt)] else array_agg(attempt) end,
        case when min(counted) = max(counted) then array[min(counted)] else array_agg(counted) end,
        case when min(worker) = max(worker) then array[min(worker)] else array_agg(worker) end,
        array_agg(coalesce(started, claimed)), array_agg(reason)
    from found where $13::int is not null having count(*) > 0
),
tallied as (
    insert into tallies (lane_id, status, jobs)
    select f.lane_id, s.status, s.jobs
    from (select lane_id, state, count(*) as jobs from found group by lane_id, state) f
    cross join lateral (values (f.state + 1, f.jobs), (3, -f.jobs)) as s (status, jobs)
)
select id, null::bigint as schedule, limit_id, ties & 1 <> 0 as has_children, queue_id, lane_id, state, due, since, claimed,
    started, ended
from found
union all select null, schedule, null, false, null, null, null, null, null, null, null, null from freed;

-- name: end_waiting
with found as materialized (
    select w.id, w.lane_id, w.attempt, w.counted, w.lost, w.version, w.due, w.ties, u.state, u.reason, u.ended, u.error,
        u.result, case when w.hold then 5 when w.parents > 0 then 1 when w.for_key then 2 when w.attempt > 0 then 4 else 0 end as was
    from unnest($1::bigint[], $2::int[], $3::smallint[], $4::text[], $5::bigint[], $6::text[], $7::text[])
        as u (id, version, state, reason, ended, error, result)
    cross join lateral (
        select * from waiting where waiting.id = u.id and waiting.version = u.version for update
    ) w
),
gone as (delete from waiting where id = any(array(select id from found))),
freed as (delete from open_runs where id = any(array(select id from found)) returning schedule),
told as (
    insert into releases (parent, state) select id, state from found where ties & 1 <> 0
    on conflict (parent) do update set state = excluded.state, reached = 0
),
ended as (
    insert into history (id, lane_id, state, attempt, counted, lost, version, due, ended, reason, error, result)
    select id, lane_id, state, attempt, counted, lost, version + 1, due, ended, reason, error, result from found
),
recorded as (
    insert into events (writer, number, "time", mask, ids, lanes, statuses, versions, attempts, counts, reasons)
    select $9, $10, $8, bit_or(1 << state + 1), array_agg(id), array_agg(lane_id), array_agg(state + 1), array_agg(version + 1),
        array_agg(attempt), array_agg(counted), array_agg(reason)
    from found where $9::int is not null having count(*) > 0
),
tallied as (
    insert into tallies (lane_id, status, jobs)
    select lane_id, state + 1, count(*) from found group by 1, 2
    union all select lane_id, was, -count(*) from found group by 1, 2
)
select id, null::bigint as schedule, null::int as limit_id, ties & 1 <> 0 as has_children, null::int as queue_id from found
union all select null, schedule, null, false, null from freed;

-- name: end_ready
-- History has the job's own lane, whatever lane it stood in.
with found as materialized (
    select r.spot, r.id, coalesce(l.base, r.lane_id) as lane_id, r.attempt, r.counted, r.lost, r.version, r.due, r.limit_id,
        r.ties, u.state, u.reason, u.ended, u.error, u.result
    from unnest($1::bigint[], $2::int[], $3::smallint[], $4::text[], $5::bigint[], $6::text[], $7::text[])
        as u (id, version, state, reason, ended, error, result)
    cross join lateral (
        select ctid as spot, * from ready where ready.id = u.id and ready.version = u.version for update
    ) r
    cross join lateral (select base from lanes where lanes.lane_id = r.lane_id offset 0) l
),
gone as (delete from ready where ctid = any(array(select spot from found))),
freed as (delete from open_runs where id = any(array(select id from found)) returning schedule),
told as (
    insert into releases (parent, state) select id, state from found where ties & 1 <> 0
    on conflict (parent) do update set state = excluded.state, reached = 0
),
ended as (
    insert into history (id, lane_id, state, attempt, counted, lost, version, due, ended, reason, error, result)
    select id, lane_id, state, attempt, counted, lost, version + 1, due, ended, reason, error, result from found
),
recorded as (
    insert into events (writer, number, "time", mask, ids, lanes, statuses, versions, attempts, counts, reasons)
    select $9, $10, $8, bit_or(1 << state + 1), array_agg(id), array_agg(lane_id), array_agg(state + 1), array_agg(version + 1),
        array_agg(attempt), array_agg(counted), array_agg(reason)
    from found where $9::int is not null having count(*) > 0
),
tallied as (
    insert into tallies (lane_id, status, jobs)
    select lane_id, state + 1, count(*) from found group by 1, 2
    union all select lane_id, 2, -count(*) from found group by 1, 2
)
select id, null::bigint as schedule, limit_id, ties & 1 <> 0 as has_children, null::int as queue_id from found
union all select null, schedule, null, false, null from freed;

-- name: leave_waiting
-- What is left is told with its concurrency key, where it held a token, what hangs on it, the queue that it counted against, its own
-- lane, and the status that it had.
with found as materialized (
    select w.id from unnest($1::bigint[], $2::int[], $3::bigint[]) as u (id, version, nonce)
    cross join lateral (select id from waiting where waiting.id = u.id and waiting.version = u.version for update) w
)
delete from waiting where id = any(array(select id from found))
returning id, null::int as limit_id, ties, null::int as queue_id, lane_id,
    case when hold then 5 when parents > 0 then 1 when for_key then 2 when attempt > 0 then 4 else 0 end as was;

-- name: leave_ready
with found as materialized (
    select r.spot from unnest($1::bigint[], $2::int[], $3::bigint[]) as u (id, version, nonce)
    cross join lateral (
        select ctid as spot from ready where ready.id = u.id and ready.version = u.version for update
    ) r
)
delete from ready where ctid = any(array(select spot from found))
returning id, limit_id, ties, null::int as queue_id,
    (select coalesce(base, lanes.lane_id) from lanes where lanes.lane_id = ready.lane_id) as lane_id, 2 as was;

-- name: still_ready
-- Those that are ready, at this version: who notes children on a ready row, or puts jobs in order, replaces it as it was, and the new
-- one is seen by a later statement only.
select r.id from unnest($1::bigint[], $2::int[]) as u (id, version)
cross join lateral (select id from ready where ready.id = u.id and ready.version = u.version offset 0) r;

-- name: leave_leases
with found as materialized (
    select l.id from unnest($1::bigint[], $2::int[], $3::bigint[]) as u (id, version, nonce)
    cross join lateral (
        select id from leases
        where leases.id = u.id and leases.version = u.version and (u.nonce is null or leases.nonce = u.nonce)
        for update
    ) l
)
delete from leases where id = any(array(select id from found))
returning id, limit_id, ties, queue_id, lane_id, 3 as was;

-- name: leave_history
-- Days are left out by the bounds, not by the array.
with found as materialized (
    select h.id from unnest($1::bigint[], $2::int[], $3::bigint[]) as u (id, version, nonce)
    cross join lateral (select id from history where history.id = u.id and history.version = u.version for update) h
)
delete from history
where id = any(array(select id from found)) and id >= (select min(id) from found) and id <= (select max(id) from found)
returning id, null::int as limit_id, 0 as ties, null::int as queue_id, lane_id, state + 1 as was;

-- name: reopen_runs
-- Jobs that left history: those of a schedule that is still there are its runs under way again. A run's due time stands
-- in its name behind the schedule's, and the ledger tells whether it was backfilled (4).
insert into open_runs (id, schedule, backfill)
select j.id, s.id, exists (
    select from ledger g where g.schedule = s.id and g.due = g.until and g.verdict = 4
    and g.due = case when n.due ~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z$'
        then (extract(epoch from n.due::timestamptz) * 1000000)::bigint end)
from unnest($1::bigint[]) as u (id)
cross join lateral (select * from jobs where jobs.id = u.id and jobs.schedule_id is not null offset 0) j
cross join lateral (select substr(j.name, length(j.schedule_id) + 2) as due) n
cross join lateral (select namespace from lanes where lanes.lane_id = j.lane_id offset 0) l
cross join lateral (
    select id from schedules where schedules.namespace = l.namespace and schedules.name = j.schedule_id offset 0
) s
on conflict do nothing;

-- name: enter_waiting
insert into waiting (id, due, rank, deadline, since, lane_id, attempt, counted, tries_left, lost, version, priority, limit_id,
    ties, parents, hold, for_key)
select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::int[], $7::int[], $8::int[],
    $9::int[], $10::int[], $11::int[], $12::smallint[], $13::int[], $14::smallint[], $15::int[], $16::boolean[],
    $17::boolean[]);

-- name: enter_ready
insert into ready (id, due, rank, deadline, since, lane_id, attempt, counted, tries_left, lost, version, priority, limit_id, ties)
select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::int[], $7::int[], $8::int[],
    $9::int[], $10::int[], $11::int[], $12::smallint[], $13::int[], $14::smallint[]);

-- name: insert_attempts
insert into attempts (id, attempt, status, exit_code, worker, nonce, due, claimed, started, ended, error, admitted)
select * from unnest($1::bigint[], $2::int[], $3::smallint[], $4::int[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], $12::bigint[]);

-- name: change_jobs
-- A user's PUT: the only change of a wide row.
update jobs j
set lane_id = u.lane_id, priority = u.priority, due = u.due, payload = u.payload, retry = u.retry, timeout = u.timeout,
    deadline = u.deadline, tags = u.tags::text[], owner = u.owner, schedule_id = u.schedule_id, limit_key = u.limit_key,
    unique_key = u.unique_key, fair_key = u.fair_key, secret_fields = u.secret_fields::text[],
    notify = u.notify
from unnest($1::bigint[], $2::int[], $3::smallint[], $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::bigint[],
    $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[],
    $16::text[])
    as u (id, lane_id, priority, due, payload, retry, timeout, deadline, tags, owner, schedule_id, limit_key, unique_key,
        fair_key, secret_fields, notify)
where j.id = u.id and j.id = any($1);

-- name: mark_leases
-- What is null stays as it is; a cancel is a change of its own and counts. A join that can be turned around, so a few at a time.
update leases l
set started = coalesce(u.started, l.started), progress = coalesce(u.progress, l.progress),
    cancel_asked = coalesce(u.cancel_asked, l.cancel_asked), check_at = coalesce(u.check_at, l.check_at),
    version = l.version + (u.cancel_asked is not null)::int
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[])
    as u (id, nonce, started, progress, cancel_asked, check_at)
where l.id = u.id and l.nonce = u.nonce and l.id = any($1)
returning l.id;
