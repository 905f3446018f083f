-- Workers and their leases in time.

-- name: add_worker
insert into workers (id, namespace, name, queues, job_types, resources, labels, since, seen, until, draining)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
on conflict do nothing;

-- name: beat
-- Prolong a living worker's lease; with it come its attempts that are to stop.
with beaten as (
    update workers set seen = $2, until = greatest(until, $3)
    where id = $1 and until > $2 and ($4::text is null or namespace = $4) returning *
)
select b.id, b.namespace, b.name, b.queues, b.job_types, b.resources, b.labels, b.since, b.seen, b.until, b.draining,
    l.id, l.lane_id, l.priority, l.due, l.attempt, l.counted, l.tries_left, l.lost, l.version, l.since, l.limit_id, l.ties, l.worker,
    l.nonce,
    l.claimed, l.check_at, l.started, l.cancel_asked, l.progress
from beaten b left join lateral (
    select * from leases where leases.worker = b.id and leases.cancel_asked is not null offset 0
) l on true;

-- name: drain_worker
update workers set draining = true where id = $1 returning id;

-- name: remove_worker
delete from workers where id = $1 returning id;

-- name: workers
select b.id, b.namespace, b.name, b.queues, b.job_types, b.resources, b.labels, b.since, b.seen, b.until, b.draining,
    l.id, l.lane_id, l.priority, l.due, l.attempt, l.counted, l.tries_left, l.lost, l.version, l.since, l.limit_id, l.ties, l.worker,
    l.nonce,
    l.claimed, l.check_at, l.started, l.cancel_asked, l.progress
from workers b left join leases l on l.worker = b.id
where $1::text is null or b.namespace = $1
order by b.id, l.id;

-- name: enrolled
select id, namespace, name, queues, job_types, resources, labels, since, seen, until, draining
from workers where $1::text is null or namespace = $1 order by id;

-- name: forget_workers
delete from workers w where until < $1 and not exists (select from leases l where l.worker = w.id) returning id;
