-- Jobs: keeping, finding, reading them. Arrays are columns: the n-th entries belong together.
-- `offset 0` keeps the planner from turning a look-up around: see changes.sql.

-- name: insert_lanes
-- Make the lanes that are new, with their queues (a trigger does); a lane with an ordering comes after its base. A look first:
-- an insert that conflicts uses up a number.
insert into lanes (namespace, queue, job_type, needs, ordering)
select namespace, queue, job_type, needs, ordering
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as u (namespace, queue, job_type, needs, ordering)
where not exists (
    select from lanes l where (l.namespace, l.queue, l.job_type, l.needs, l.ordering)
        = (u.namespace, u.queue, u.job_type, u.needs, u.ordering))
on conflict do nothing;

-- name: lanes_by_name
select lane_id, namespace, queue, job_type, needs, ordering, base, queue_id from lanes
join unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as u (namespace, queue, job_type, needs, ordering)
using (namespace, queue, job_type, needs, ordering);

-- name: lanes_by_id
select lane_id, namespace, queue, job_type, needs, ordering, base, queue_id from lanes where lane_id = any($1::int[]);

-- name: insert_jobs
-- Keep wide rows and their first narrow rows (with a rank: ready; else waiting, with the rank it will have). A wide row that
-- is there already was written by an earlier call, along with its narrow row: neither is written again. `(…) is true` keeps
-- the look into `kept` a look into a hash table, where a join would compare each with each. $30 is the batch's time, $31 and $32 its
-- writer and number.
with kept as (
    insert into jobs (id, lane_id, priority, name, due, created, payload, retry, timeout, deadline, tags, owner, schedule_id,
        limit_key, unique_key, fair_key, secret_fields, notify, trace)
    select id, lane_id, priority, name, due, created, payload, retry, timeout, deadline, tags::text[], owner, schedule_id,
        limit_key, unique_key, fair_key, secret_fields::text[], notify, trace
    from unnest($1::bigint[], $2::int[], $3::smallint[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::text[],
        $9::bigint[], $10::bigint[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $27::text[],
        $28::text[], $29::text[])
        as u (id, lane_id, priority, name, due, created, payload, retry, timeout, deadline, tags, owner, schedule_id,
            limit_key, unique_key, fair_key, secret_fields, notify, trace)
    on conflict do nothing
    returning id
),
now_ready as (
    insert into ready (id, due, rank, deadline, since, lane_id, attempt, counted, tries_left, lost, version, priority,
        limit_id, ties)
    select id, due, rank, deadline, since, lane_id, 0, 0, tries_left, 0, version, priority, limit_id, ties
    from unnest($1::bigint[], $2::int[], $3::smallint[], $10::bigint[], $17::bigint[], $18::bigint[], $19::int[],
        $20::int[], $21::bigint[], $22::int[], $23::smallint[], $24::int[])
        as u (id, lane_id, priority, deadline, due, since, tries_left, version, rank, limit_id, ties, parents)
    where parents is null and (id in (select id from kept)) is true
),
now_waiting as (
    insert into waiting (id, due, rank, deadline, since, lane_id, attempt, counted, tries_left, lost, version, parents,
        priority, hold, for_key, limit_id, ties)
    select id, due, rank, deadline, since, lane_id, 0, 0, tries_left, 0, version, parents, priority, hold, for_key, limit_id,
        ties
    from unnest($1::bigint[], $2::int[], $3::smallint[], $10::bigint[], $17::bigint[], $18::bigint[], $19::int[],
        $20::int[], $21::bigint[], $22::int[], $23::smallint[], $24::int[], $25::boolean[], $26::boolean[])
        as u (id, lane_id, priority, deadline, due, since, tries_left, version, rank, limit_id, ties, parents, hold, for_key)
    where parents is not null and (id in (select id from kept)) is true
),
entered as materialized (
    select id, lane_id, version, case when parents is null then 2 when hold then 5 when parents > 0 then 1 when for_key then 2
        else 0 end as status
    from unnest($1::bigint[], $2::int[], $20::int[], $24::int[], $25::boolean[], $26::boolean[])
        as u (id, lane_id, version, parents, hold, for_key)
    where (id in (select id from kept)) is true
),
recorded as (
    insert into events (writer, number, "time", mask, ids, lanes, statuses, versions, attempts, counts)
    select $31, $32, $30, bit_or(1 << status), array_agg(id), array_agg(lane_id), array_agg(status), array_agg(version), '{0}',
        '{0}'
    from entered where $31::int is not null having count(*) > 0
),
tallied as (
    insert into tallies (lane_id, status, jobs) select lane_id, status, count(*) from entered group by lane_id, status
)
select id from kept;

-- name: lock_job_keys
-- Take names, in order, so that two calls with the same names wait for each other and do not lock each other out.
insert into job_keys (namespace, name, id, body_hash)
select namespace, name, id, body_hash
from unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[]) as u (namespace, name, id, body_hash)
on conflict do nothing
returning id;

-- name: job_keys
-- Who has these names, seen by a later statement than the one that took them.
select namespace, name, id, body_hash from job_keys
join unnest($1::text[], $2::text[]) as u (namespace, name) using (namespace, name);

-- name: give_back_job_keys
-- A submission that clashed keeps none of its names.
delete from job_keys where id = any($1::bigint[]);

-- name: insert_request_keys
-- Note requests; one whose note is older than $6 is noted anew.
insert into request_keys as known (namespace, key, made, request_hash, ids)
select namespace, key, $5, request_hash, ids::text[]
from unnest($1::text[], $2::text[], $3::bytea[], $4::text[]) as u (namespace, key, request_hash, ids)
on conflict (namespace, key) do update set made = excluded.made, request_hash = excluded.request_hash, ids = excluded.ids
where known.made < $6
returning namespace, key;

-- name: request_keys
select namespace, key, request_hash, ids from request_keys
join unnest($1::text[], $2::text[]) as u (namespace, key) using (namespace, key);

-- name: give_back_request_keys
delete from request_keys using unnest($1::text[], $2::text[]) as u (namespace, key)
where request_keys.namespace = u.namespace and request_keys.key = u.key;

-- name: lock_unique_keys
-- Take or lock unique keys, in order, so that who comes with the same ones waits.
insert into unique_keys as known (namespace, key, id)
select namespace, key, id from unnest($1::text[], $2::text[], $3::bigint[]) as u (namespace, key, id)
on conflict (namespace, key) do update set id = known.id;

-- name: unique_keys
-- The jobs that wait or are ready, and still have these keys; seen by a later statement than the one that locked them.
select u.namespace, u.key, j.id, j.name from unnest($1::text[], $2::text[]) as u (namespace, key)
cross join lateral (select id from unique_keys k where k.namespace = u.namespace and k.key = u.key offset 0) k
cross join lateral (select id, name from jobs where jobs.id = k.id and jobs.unique_key = u.key offset 0) j
cross join lateral (
    (select from waiting where waiting.id = k.id) union all (select from ready where ready.id = k.id) offset 0
) waits;

-- name: put_unique_keys
-- They are these jobs', unless another one that waits or is ready has one.
insert into unique_keys as known (namespace, key, id)
select namespace, key, id from unnest($1::text[], $2::text[], $3::bigint[]) as u (namespace, key, id)
on conflict (namespace, key) do update set id = excluded.id
where not exists (select from jobs j where j.id = known.id and j.unique_key = known.key)
or not exists (select from waiting w where w.id = known.id) and not exists (select from ready r where r.id = known.id);

-- name: kept_jobs
select j.id from unnest($1::bigint[]) as u (id) cross join lateral (select id from jobs where jobs.id = u.id offset 0) j;

-- name: load
-- Jobs, where they stand, and the latest attempt that has ended (an ended job's is in its row). A row is told as one of the job's
-- own lane, whatever lane it stands in.
select j.id, j.lane_id, j.priority, j.name, j.due, j.created, j.payload, j.retry, j.timeout, j.deadline, j.tags, j.owner,
    j.schedule_id, j.limit_key, j.unique_key, j.fair_key, j.secret_fields, j.notify, j.trace,
    r.place, j.lane_id, r.priority, r.due, r.deadline, r.attempt, r.counted, r.tries_left, r.lost, r.version, r.since,
    r.limit_id, r.ties, r.hold, r.parents, r.for_key, r.rank, r.worker, r.nonce, r.claimed, r.check_at, r.started, r.cancel_asked, r.progress, r.state, r.ended,
    r.status, r.exit_code, r.reason, r.error, r.result, r.admitted,
    a.attempt, a.status, a.worker, a.nonce, a.due, a.claimed, a.started, a.ended, a.error, a.exit_code, a.admitted
from unnest($1::bigint[]) as u (id)
cross join lateral (select * from jobs where jobs.id = u.id offset 0) j
cross join lateral (select * from job_rows where job_rows.id = u.id offset 0) r
left join lateral (
    select * from attempts where attempts.id = u.id and r.status is null and r.attempt > 0 order by attempts.attempt desc limit 1
) a on true;

-- name: find
select name, id from job_keys where namespace = $1 and name = any($2::text[]);

-- name: outcomes
-- How attempts ended, by the nonce under which they ran.
select u.id, u.nonce, t.status from unnest($1::bigint[], $2::bigint[]) as u (id, nonce)
cross join lateral (
    select status from history where history.id = u.id and history.nonce = u.nonce and history.status is not null
    union all
    select status from attempts where attempts.id = u.id and attempts.nonce = u.nonce
    offset 0
) t;

-- name: executions
-- Ended attempts, the last one of an ended job, and the one that runs (no status: it is told by `started`).
select attempt, status, worker, nonce, due, claimed, started, ended, error, exit_code, admitted from attempts where id = $1
union all
select attempt, status, worker, nonce, due, claimed, started, ended, error, exit_code, admitted from history
where id = $1 and status is not null
union all
select attempt, null, worker, nonce, due, claimed, started, null, null, null, since from leases where id = $1
order by attempt;

-- name: result
select result from history where id = $1;

-- name: append_logs
-- Keep the lines whose attempt is leased; the lease is locked, so that it can not end in between. The ids of those kept,
-- now or before.
with held as (
    select u.* from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::int[], $5::bigint[], $6::smallint[], $7::text[])
        as u (log_id, id, nonce, attempt, "time", level, message)
    cross join lateral (select from leases where leases.id = u.id and leases.nonce = u.nonce for key share) l
),
kept as (
    insert into job_logs (id, log_id, attempt, "time", level, message)
    select id, log_id, attempt, "time", level, message from held
    on conflict do nothing
)
select log_id from held;

-- name: logs
select log_id, id, attempt, "time", level, message from job_logs
where id = $1 and log_id > $2 and level >= $3
order by log_id limit $4;
