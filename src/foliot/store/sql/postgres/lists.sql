-- Lists, newest first. A call looks at $4 rows at most and tells the last id it looked at, and how many it looked at.
-- $1 namespace, $2 queue, $3 job type, $4 rows to look at, $5 below this id, $6 owner, $7 tags, $8 schedule, $9 and $10 due from
-- and up to, $11 rows to give, $16 queues and $17 job types that are reached at all.

-- name: list_by_id
-- Through the wide rows, for any statuses: $12 kinds of waiting rows (null: any standing will do), $13 ready, $14 running,
-- $15 states of history.
with scanned as materialized (
    select id, lane_id, priority, name, due, created, retry, timeout, deadline, tags, owner, schedule_id,
        limit_key, unique_key, fair_key, secret_fields, notify, trace
    from jobs where id < $5 order by id desc limit $4
),
found as (
    select j.id, j.lane_id as job_lane_id, j.priority as job_priority, j.name, j.due as job_due, j.created, '' as payload,
        j.retry, j.timeout, j.deadline as job_deadline, j.tags, j.owner, j.schedule_id,
        j.limit_key, j.unique_key, j.fair_key, j.secret_fields, j.notify, j.trace,
        r.place, j.lane_id, r.priority, r.due, r.deadline, r.attempt, r.counted, r.tries_left, r.lost, r.version, r.since,
        r.limit_id, r.ties, r.hold, r.parents, r.for_key, r.rank, r.worker, r.nonce, r.claimed, r.check_at, r.started, r.cancel_asked, r.progress, r.state,
        r.ended, r.status, r.exit_code, r.reason, r.error, null::text as result, r.admitted
    from scanned j cross join lateral (select * from job_rows where job_rows.id = j.id offset 0) r
    where j.lane_id = any(array(select lane_id from lanes
        where namespace = $1 and ($2::text is null or queue = $2) and ($3::text is null or job_type = $3)
        and ($16::text[] is null or queue = any($16)) and ($17::text[] is null or job_type = any($17))))
    and ($6::text is null or j.owner = $6) and ($7::text[] is null or j.tags @> $7) and ($8::text is null or j.schedule_id = $8)
    and ($9::bigint is null or j.due >= $9) and ($10::bigint is null or j.due < $10)
    and ($12::int[] is null
        or r.place = 'waiting' and (r.for_key::int * 8 + r.hold::int * 4 + (r.parents > 0)::int * 2
            + (r.attempt > 0)::int) = any($12)
        or r.place = 'ready' and $13 or r.place = 'leases' and $14 or r.state = any($15::smallint[]))
    order by j.id desc limit $11
)
select s.last, s.looked, f.*, a.attempt, a.status, a.worker, a.nonce, a.due, a.claimed, a.started, a.ended, a.error, a.exit_code,
    a.admitted
from (select min(id) as last, count(*) as looked from scanned) s
left join found f on true
left join lateral (
    select * from attempts a where a.id = f.id and f.status is null and f.attempt > 0 order by a.attempt desc limit 1
) a on true
order by f.id desc;

-- name: list_by_row
-- Through the narrow tables and what did not complete, for statuses that leave `completed` out: $12 to $15 as above.
with scanned as materialized (
    select id from (
        (select id from waiting where 8 > any($12::int[]) and id < $5 order by id desc limit $4)
        -- Those that wait for a token have an index of their own: `queued` must not go through all that wait for their time.
        union all (select id from waiting
            where for_key and not 8 > any($12::int[]) and 8 <= any($12::int[]) and id + 0 < $5 order by id + 0 desc limit $4)
        union all (select id from ready where $13 and id < $5 order by id desc limit $4)
        union all (select id from leases where $14 and id < $5 order by id desc limit $4)
        union all (select h.id from unnest($15::smallint[]) as u (state) cross join lateral (
            select id from history where history.state = u.state and history.state <> 5 and id < $5 order by id desc limit $4) h)
    ) any_place order by id desc limit $4
),
found as (
    select j.id, j.lane_id as job_lane_id, j.priority as job_priority, j.name, j.due as job_due, j.created, '' as payload,
        j.retry, j.timeout, j.deadline as job_deadline, j.tags, j.owner, j.schedule_id,
        j.limit_key, j.unique_key, j.fair_key, j.secret_fields, j.notify, j.trace,
        r.place, j.lane_id, r.priority, r.due, r.deadline, r.attempt, r.counted, r.tries_left, r.lost, r.version, r.since,
        r.limit_id, r.ties, r.hold, r.parents, r.for_key, r.rank, r.worker, r.nonce, r.claimed, r.check_at, r.started, r.cancel_asked, r.progress, r.state,
        r.ended, r.status, r.exit_code, r.reason, r.error, null::text as result, r.admitted
    from scanned s
    cross join lateral (select * from job_rows where job_rows.id = s.id offset 0) r
    cross join lateral (select * from jobs where jobs.id = s.id offset 0) j
    where r.lane_id = any(array(select lane_id from lanes
        where namespace = $1 and ($2::text is null or queue = $2) and ($3::text is null or job_type = $3)
        and ($16::text[] is null or queue = any($16)) and ($17::text[] is null or job_type = any($17))))
    and ($6::text is null or j.owner = $6) and ($7::text[] is null or j.tags @> $7) and ($8::text is null or j.schedule_id = $8)
    and ($9::bigint is null or j.due >= $9) and ($10::bigint is null or j.due < $10)
    and (r.place = 'waiting' and (r.for_key::int * 8 + r.hold::int * 4 + (r.parents > 0)::int * 2
            + (r.attempt > 0)::int) = any($12)
        or r.place = 'ready' and $13 or r.place = 'leases' and $14 or r.state = any($15::smallint[]))
    order by s.id desc limit $11
)
select s.last, s.looked, f.*, a.attempt, a.status, a.worker, a.nonce, a.due, a.claimed, a.started, a.ended, a.error, a.exit_code,
    a.admitted
from (select min(id) as last, count(*) as looked from scanned) s
left join found f on true
left join lateral (
    select * from attempts a where a.id = f.id and f.status is null and f.attempt > 0 order by a.attempt desc limit 1
) a on true
order by f.id desc;
