-- Who is who: keys, sessions, namespaces, shared rates, the audit log, and reading behind the fence of 0005_access.sql.

-- name: add_key
insert into api_keys (key_id, namespace, name, role, queues, job_types, hash, old_hash, old_until, created, created_by, expires,
    last_used, revoked)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
on conflict do nothing
returning key_id;

-- name: api_keys
select key_id, namespace, name, role, queues, job_types, hash, old_hash, old_until, created, created_by, expires, last_used, revoked
from api_keys where key_id = any($1::text[]);

-- name: keys_of_all
select key_id, namespace, name, role, queues, job_types, hash, old_hash, old_until, created, created_by, expires, last_used, revoked
from api_keys where key_id > $1 order by key_id limit $2;

-- name: keys_of_namespace
select key_id, namespace, name, role, queues, job_types, hash, old_hash, old_until, created, created_by, expires, last_used, revoked
from api_keys where key_id > $1 and namespace = $3 order by key_id limit $2;

-- name: change_key
update api_keys set hash = $2, old_hash = $3, old_until = $4, expires = $5, revoked = $6
where key_id = $1 and revoked is null
returning key_id;

-- name: touch_keys
-- Locked in the order given.
with found as materialized (
    select k.spot, u.used from unnest($1::text[], $2::bigint[]) as u (key_id, used)
    cross join lateral (select ctid as spot from api_keys where api_keys.key_id = u.key_id for no key update) k
)
update api_keys set last_used = greatest(last_used, found.used) from found where api_keys.ctid = found.spot;

-- name: add_session
insert into sessions (hash, until, once, key_id, caller, data) values ($1, $2, $3, $4, $5, $6) on conflict do nothing;

-- name: session
select hash, until, once, caller, data from sessions where hash = $1 and until > $2;

-- name: use_session
-- One that is good once is his who deletes it.
delete from sessions where hash = $1 and once returning 1;

-- name: end_session
delete from sessions where hash = $1;

-- name: end_sessions_of
delete from sessions where key_id = $1;

-- name: forget_sessions
with over as materialized (
    select ctid from sessions where until <= $1 order by until limit $2 for update skip locked
)
delete from sessions where ctid = any(array(select ctid from over)) returning 1;

-- name: make_namespace
insert into namespaces (name, created, quotas) values ($1, $2, $3) on conflict do nothing
returning name, created, version, quotas;

-- name: lock_namespace
select name, created, version, quotas from namespaces where name = $1 for update;

-- name: change_namespace
update namespaces set version = $2, quotas = $3 where name = $1;

-- name: namespaces
select name, created, version, quotas from namespaces order by name;

-- name: namespaces_named
select name, created, version, quotas from namespaces where name = any($1::text[]) order by name;

-- name: remove_namespace
delete from namespaces n where n.name = $1
and not exists (select from lanes where lanes.namespace = n.name)
and not exists (select from schedules where schedules.namespace = n.name)
and not exists (select from api_keys where api_keys.namespace = n.name and revoked is null)
and not exists (select from definitions where definitions.namespace = n.name)
returning name;

-- name: add_meter
insert into meters (name, next_beat) values ($1, 0) on conflict do nothing;

-- name: lock_meter
-- With the clock. What is spent may be lost with the machine: nobody waits for the disk.
select next_beat, (extract(epoch from clock_timestamp()) * 1000000)::bigint, set_config('synchronous_commit', 'off', true)
from meters where name = $1 for no key update;

-- name: move_meter
update meters set next_beat = $2 where name = $1;

-- name: forget_meters
-- One whose beat is past is as good as new.
with over as materialized (
    select ctid from meters where next_beat < $1 limit $2 for update skip locked
)
delete from meters where ctid = any(array(select ctid from over)) returning 1;

-- name: live_jobs
-- Counted up to $2. No index leads to waiting and running jobs by lane: one more on a table that every job passes through would
-- cost all of them, and this is asked every few seconds, for namespaces with such a quota alone.
select count(*) from (
    (select from lanes l cross join lateral (select from ready where ready.lane_id = l.lane_id offset 0) r where l.namespace = $1)
    union all
    (select from leases where lane_id = any(array(select lane_id from lanes where namespace = $1)))
    union all
    (select from waiting where lane_id = any(array(select lane_id from lanes where namespace = $1)))
    limit $2
) live;

-- name: lock_audit
-- Whoever appends waits here for who is before him, so that each entry follows the one that was kept last.
select seq, hash from audit_head for update;

-- name: append_audit
insert into audit (seq, "time", namespace, actor, key_id, action, object, source, request_id, outcome, hash)
select * from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::text[], $11::bytea[]);

-- name: move_audit
update audit_head set seq = $1, hash = $2;

-- name: audit_newest
select seq, "time", namespace, actor, key_id, action, object, source, request_id, outcome, hash from audit
where seq < $1 order by seq desc limit $2;

-- name: audit_newest_of
select seq, "time", namespace, actor, key_id, action, object, source, request_id, outcome, hash from audit
where seq < $1 and namespace = $3 order by seq desc limit $2;

-- name: audit_oldest
select seq, "time", namespace, actor, key_id, action, object, source, request_id, outcome, hash from audit
where seq > $1 order by seq limit $2;

-- name: audit_oldest_of
select seq, "time", namespace, actor, key_id, action, object, source, request_id, outcome, hash from audit
where seq > $1 and namespace = $3 order by seq limit $2;

-- name: fence
-- Null where callers' reads can run behind it.
select foliot_fence();

-- name: go_behind_fence
-- From now on this connection sees what belongs to a namespace.
select set_config('role', 'foliot_reader', false), set_config('foliot.namespace', $1, false);

-- name: list_among
-- Jobs, as `load` gives them, without payloads and results.
select j.id, j.lane_id, j.priority, j.name, j.due, j.created, '', j.retry, j.timeout, j.deadline, j.tags, j.owner,
    j.schedule_id, j.limit_key, j.unique_key, j.fair_key, j.secret_fields, j.notify, j.trace,
    r.place, j.lane_id, r.priority, r.due, r.deadline, r.attempt, r.counted, r.tries_left, r.lost, r.version, r.since,
    r.limit_id, r.ties, r.hold, r.parents, r.for_key, r.rank, r.worker, r.nonce, r.claimed, r.check_at, r.started, r.cancel_asked,
    r.progress, r.state, r.ended, r.status, r.exit_code, r.reason, r.error, null::text, r.admitted,
    a.attempt, a.status, a.worker, a.nonce, a.due, a.claimed, a.started, a.ended, a.error, a.exit_code, a.admitted
from unnest($1::bigint[]) as u (id)
cross join lateral (select * from jobs where jobs.id = u.id offset 0) j
cross join lateral (select * from job_rows where job_rows.id = u.id offset 0) r
left join lateral (
    select * from attempts where attempts.id = u.id and r.status is null and r.attempt > 0 order by attempts.attempt desc limit 1
) a on true;

-- name: edges_among
-- These edges, by parent and child.
select e.parent, e.child, e."on", e.done from unnest($1::bigint[], $2::bigint[]) as u (parent, child)
cross join lateral (select * from edges where edges.parent = u.parent and edges.child = u.child offset 0) e
order by e.parent, e.child;

-- name: queues_among
select queue_id from queues where queue_id = any($1::int[]);
