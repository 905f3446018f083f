-- From waiting to ready to a worker. Why some look-ups end in `offset 0`: see changes.sql.

-- name: peek_due
-- The next moments; where none is near, the earliest of all.
with near as (
    select due, id from waiting where not hold and parents = 0 and not for_key and due <= $1 order by due, id limit $2
)
select due, id from near
union all
(select due, id from waiting where not hold and parents = 0 and not for_key and not exists (select from near)
    order by due, id limit 1);

-- name: admit
-- By the database's own clock, so that a node whose clock is wrong can only be late. What has a concurrency key waits on, for
-- a token of it: both are queued from then on. `parents + 0`, so that ids are not looked for through the index by due time.
-- $2 and $3 are the batch's writer and number, here and elsewhere: without a writer nothing is recorded. What is the same for all is
-- recorded once.
with clock as materialized (
    select (extract(epoch from clock_timestamp()) * 1000000)::bigint as now
),
moved as (
    delete from waiting
    where id = any($1::bigint[]) and not hold and parents + 0 = 0 and not for_key and due <= (select now from clock)
    returning *
),
now_ready as (
    insert into ready (id, due, rank, deadline, since, lane_id, attempt, counted, tries_left, lost, version, priority, ties)
    select id, due, rank, deadline, (select now from clock), lane_id, attempt, counted, tries_left, lost, version + 1,
        priority, ties
    from moved where limit_id is null
),
now_for_key as (
    insert into waiting (id, due, rank, deadline, since, lane_id, attempt, counted, tries_left, lost, version, priority,
        parents, hold, for_key, limit_id, ties)
    select id, due, rank, deadline, (select now from clock), lane_id, attempt, counted, tries_left, lost, version + 1,
        priority, 0, false, true, limit_id, ties
    from moved where limit_id is not null
),
recorded as (
    insert into events (writer, number, "time", mask, ids, lanes, statuses, versions, attempts, counts)
    select $2, $3, (select now from clock), 4, array_agg(id),
        case when min(lane_id) = max(lane_id) then array[min(lane_id)] else array_agg(lane_id) end, '{2}',
        case when min(version + 1) = max(version + 1) then array[min(version + 1)] else array_agg(version + 1) end,
        case when min(attempt) = max(attempt) then array[min(attempt)] else array_agg(attempt) end,
        case when min(counted) = max(counted) then array[min(counted)] else array_agg(counted) end
    from moved where $2::int is not null having count(*) > 0
),
tallied as (
    insert into tallies (lane_id, status, jobs)
    select lane_id, 2, count(*) from moved group by lane_id
    union all select lane_id, case when attempt > 0 then 4 else 0 end, -count(*) from moved group by 1, 2
)
select id, lane_id, rank, limit_id from moved;

-- name: occupied_lanes
-- Lanes with a ready job, looked for from a mark on ($1 lane, $2 rank, $3 id): all before it are known to be gone.
select l.lane_id, l.namespace, l.queue, l.job_type, l.needs, l.ordering, l.base, l.queue_id
from lanes l left join unnest($1::int[], $2::bigint[], $3::bigint[]) as m (lane_id, rank, id) on m.lane_id = l.lane_id
cross join lateral (
    select from ready where ready.lane_id = l.lane_id and (ready.rank, ready.id) >= (coalesce(m.rank, 0), coalesce(m.id, 0))
    order by ready.rank, ready.id limit 1
) r;

-- name: heads
-- The smallest ranks of each lane from a mark on, without locks.
select m.lane_id, r.rank, r.id from unnest($1::int[], $2::bigint[], $3::bigint[]) as m (lane_id, rank, id)
cross join lateral (
    select rank, id from ready
    where ready.lane_id = m.lane_id and (ready.rank, ready.id) >= (m.rank, m.id)
    order by ready.rank, ready.id limit $4
) r
order by m.lane_id, r.rank, r.id;

-- name: claim
-- Orders ($1 lane, $2 worker, $3 count, $10 limited) of living workers, of queues and job types that are not held; each lane's total
-- popped once, by rank from a mark on ($4 lane, $5 rank, $6 id), what others hold stepped over, and handed out in that
-- order. One statement: a ready row and its wide row are only ever written together, so that whoever sees the one in a
-- snapshot sees the right other one. Workers are not locked: one that goes away in this moment leaves leases without a
-- living worker, which `missed` finds. Nor are queues: who sets limits waits for this statement (see fence_off_claims), and
-- an order for a queue with limits comes with that queue locked.
with orders as materialized (
    select o.lane_id, o.worker, q.queue_id, sum(o.count) over w - o.count as first, sum(o.count) over w as last
    from unnest($1::int[], $2::bigint[], $3::int[], $10::boolean[])
        with ordinality as o (lane_id, worker, count, limited, place)
    join workers k on k.id = o.worker and k.until > $8 and not k.draining
    cross join lateral (select namespace, job_type, queue_id from lanes where lanes.lane_id = o.lane_id offset 0) l
    cross join lateral (
        select case when most is not null then queue_id end as queue_id from queues
        where queues.queue_id = l.queue_id and not paused and (o.limited or not limited)
        and (select true from held_types h where h.namespace = l.namespace and h.job_type = l.job_type) is null
        offset 0
    ) q
    window w as (partition by o.lane_id order by o.place)
),
popped as materialized (
    select r.*
    from unnest($4::int[], $5::bigint[], $6::bigint[]) as m (lane_id, rank, id)
    cross join lateral (
        select p.*, row_number() over (order by p.rank, p.id) as place
        from (
            select ctid as spot, * from ready
            where ready.lane_id = m.lane_id and (ready.rank, ready.id) >= (m.rank, m.id)
            order by ready.rank, ready.id
            limit (select coalesce(max(last), 0) from orders where orders.lane_id = m.lane_id)
            for update skip locked
        ) p
    ) r
),
-- Locked by us and never changed in place (who notes children on it replaces it): a row is where it was found.
taken as (delete from ready where ctid = any(array(select spot from popped))),
leased as materialized (
    select p.id, p.lane_id, p.priority, p.due, p.attempt + 1 as attempt, p.counted + 1 as counted,
        p.tries_left - 1 as tries_left, p.lost, p.version + 1 as version, p.since, p.limit_id, p.ties, p.rank, o.worker,
        o.queue_id,
        $8 + j.timeout + $9 as check_at,
        j.lane_id as job_lane_id, j.priority as job_priority, j.name, j.due as job_due, j.created, j.payload, j.retry,
        j.timeout, j.deadline, j.tags, j.owner, j.schedule_id, j.limit_key, j.unique_key, j.fair_key,
        j.secret_fields, j.notify, j.trace
    from popped p
    join orders o on o.lane_id = p.lane_id and p.place > o.first and p.place <= o.last
    cross join lateral (select * from jobs where jobs.id = p.id offset 0) j
),
written as (
    insert into leases (id, worker, nonce, due, since, claimed, check_at, lane_id, attempt, counted, tries_left, lost, version,
        priority, limit_id, ties, queue_id)
    select id, worker, $7, due, since, $8, check_at, job_lane_id, attempt, counted, tries_left, lost, version, priority, limit_id,
        ties, queue_id
    from leased
),
recorded as (
    insert into events (writer, number, "time", mask, ids, lanes, statuses, versions, attempts, counts, workers, startings)
    select $11, $12, $8, 8, array_agg(id),
        case when min(job_lane_id) = max(job_lane_id) then array[min(job_lane_id)] else array_agg(job_lane_id) end, '{3}',
        case when min(version) = max(version) then array[min(version)] else array_agg(version) end,
        case when min(attempt) = max(attempt) then array[min(attempt)] else array_agg(attempt) end,
        case when min(counted) = max(counted) then array[min(counted)] else array_agg(counted) end,
        case when min(worker) = max(worker) then array[min(worker)] else array_agg(worker) end, array[$8]
    from leased where $11::int is not null having count(*) > 0
),
tallied as (
    insert into tallies (lane_id, status, jobs)
    select l.lane_id, s.status, l.count * s.sign
    from (select job_lane_id as lane_id, count(*) as count from leased group by 1) l
    cross join (values (2, -1), (3, 1)) as s (status, sign)
)
select id, job_lane_id, job_priority, name, job_due, created, payload, retry, timeout, deadline, tags, owner, schedule_id,
    limit_key, unique_key, fair_key, secret_fields, notify, trace,
    lane_id, priority, due, attempt, counted, tries_left, lost, version, since, limit_id, ties, worker, check_at, rank
from leased
order by rank, id;

-- name: leases_of
-- What workers hold; of one nonce only, where it is given.
select j.id, j.lane_id, j.priority, j.name, j.due, j.created, j.payload, j.retry, j.timeout, j.deadline, j.tags, j.owner,
    j.schedule_id, j.limit_key, j.unique_key, j.fair_key, j.secret_fields, j.notify, j.trace,
    l.id, l.lane_id, l.priority, l.due, l.attempt, l.counted, l.tries_left, l.lost, l.version, l.since, l.limit_id, l.ties, l.worker,
    l.nonce, l.claimed, l.check_at, l.started, l.cancel_asked, l.progress
from unnest($1::bigint[]) as u (worker)
cross join lateral (
    select * from leases where leases.worker = u.worker and ($2::bigint is null or leases.nonce = $2) offset 0
) l
cross join lateral (select * from jobs where jobs.id = l.id offset 0) j
order by l.id;

-- name: missed
-- Steps from worker to worker through the index: all of a worker that is not alive, of the others what is past its time.
with recursive holders as (
    (select worker from leases order by worker limit 1)
    union all
    select (select l.worker from leases l where l.worker > h.worker order by l.worker limit 1)
    from holders h where h.worker is not null
)
select l.id, l.nonce, k.id is not null as alive
from holders h
left join workers k on k.id = h.worker and k.until > $1
cross join lateral (
    select id, nonce from leases
    where leases.worker = h.worker and leases.check_at <= case when k.id is null then 9223372036854775807 else $1 end
    order by leases.check_at limit $2
) l
limit $2;

-- name: expired
(select id from waiting where deadline <= $1 order by deadline limit $2)
union all
(select id from ready where deadline <= $1 order by deadline limit $2)
limit $2;

-- name: next_deadline
select least(
    (select deadline from waiting where deadline is not null order by deadline limit 1),
    (select deadline from ready where deadline is not null order by deadline limit 1));
