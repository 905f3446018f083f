-- Clock, nodes, days, hints, what is past.

-- name: create_schema_version
create table if not exists schema_version (number integer primary key, name text not null, applied bigint not null);

-- name: schema_version
select number from schema_version;

-- name: has_schema_version
select to_regclass('schema_version') is not null;

-- name: note_migration
insert into schema_version (number, name, applied) values ($1, $2, (extract(epoch from clock_timestamp()) * 1000000)::bigint);

-- name: lock_schema
-- Only for the transaction: a session's lock can be lost or doubled behind a pooler.
select pg_advisory_xact_lock(hashtext('foliot schema'));

-- name: now
select (extract(epoch from clock_timestamp()) * 1000000)::bigint;

-- name: acquire_node
-- A number that nobody has: never used before where there is one, else the one that ended longest ago.
insert into nodes (number, name, version, since, seen, until, last_id)
select n.number, $1, $2, $3, $3, $4, 0
from generate_series(0, $5 - 1) as n (number) left join nodes k on k.number = n.number
where k.number is null or k.until <= $3
order by k.until nulls first, n.number limit 1
on conflict (number) do update
set name = excluded.name, version = excluded.version, since = excluded.since, seen = excluded.seen, until = excluded.until,
    lost = false
where nodes.until <= excluded.since
returning number, last_id;

-- name: beat_node
-- `since` ($5) tells the holder from a later one of the same number.
update nodes set seen = $2, until = $3, lost = false, last_id = greatest(last_id, $4)
where number = $1 and ($5::bigint is null or since = $5)
returning number;

-- name: release_node
update nodes set until = 0, last_id = greatest(last_id, $2)
where number = $1 and ($3::bigint is null or since = $3);

-- name: nodes
select number, name, version, since, seen, until from nodes where until > 0 order by number;

-- name: days
-- The suffixes of the days that have partitions.
select substr(c.relname, 6) from pg_inherits i join pg_class c on c.oid = i.inhrelid
where i.inhparent = 'jobs'::regclass and c.relname ~ '^jobs_d[0-9]{8}$' order by 1;

-- name: short_locks
-- For changes of the schema: rather give up soon than hold up everybody who queues behind.
select set_config('lock_timeout', $1, true);

-- name: add_day
select foliot_add_day($1, $2, $3);

-- name: drop_day
select foliot_drop_day($1, $2, $3, $4, $5);

-- name: forget_request_keys
-- Why it looks for them apart: see forget_ledger.
with past as materialized (
    select ctid from request_keys
    where made < (extract(epoch from now()) * 1000000)::bigint - $1 order by made limit $2
    for update skip locked
)
delete from request_keys where ctid = any(array(select ctid from past)) returning 1;

-- name: forget_job_keys
-- Names of jobs of past days that do not live, a piece at a time ($1 up to below $2); the last id looked at, and how many went.
with looked as materialized (
    select id from job_keys where id >= $1 and id < $2 order by id limit $3
),
gone as (
    delete from job_keys using looked
    where job_keys.id = looked.id
    and not exists (select from waiting w where w.id = looked.id)
    and not exists (select from ready r where r.id = looked.id)
    and not exists (select from leases l where l.id = looked.id)
    and not exists (select from history h where h.id = looked.id and h.ended >= $4)
    returning 1
)
select (select max(id) from looked) as last, (select count(*) from gone) as gone;

-- name: forget_unique_keys
-- As forget_job_keys.
with looked as materialized (
    select id, ctid as spot from unique_keys where id >= $1 and id < $2 order by id limit $3
),
past as materialized (
    select l.spot from looked l
    left join lateral (select place, ended from job_rows where job_rows.id = l.id offset 0) r on true
    where r.place is null or r.ended < $4
),
gone as (delete from unique_keys where ctid = any(array(select spot from past)) returning 1)
select (select max(id) from looked) as last, (select count(*) from gone) as gone;

-- name: forget_edges
-- As forget_job_keys, by the child.
with looked as materialized (
    select child as id, ctid as spot from edges where child + 0 >= $1 and child + 0 < $2 order by child + 0 limit $3
),
past as materialized (
    select l.spot from looked l
    left join lateral (select place, ended from job_rows where job_rows.id = l.id offset 0) r on true
    where r.place is null or r.ended < $4
),
gone as (delete from edges where ctid = any(array(select spot from past)) returning 1)
select (select max(id) from looked) as last, (select count(*) from gone) as gone;

-- name: forget_kept
-- Ended jobs that outlived their day, or never had one.
with past as materialized (
    select id from history_kept where ended < $1 and id < $2 limit $3 for update skip locked
),
wide as (delete from jobs using past where jobs.id = past.id),
tried as (delete from attempts using past where attempts.id = past.id),
told as (delete from job_logs using past where job_logs.id = past.id),
named as (delete from job_keys using past where job_keys.id = past.id),
once as (
    delete from unique_keys where ctid = any(array(
        select k.spot from past
        cross join lateral (select ctid as spot from unique_keys where unique_keys.id = past.id offset 0) k))
),
tied as (
    delete from edges where ctid = any(array(
        select e.spot from past cross join lateral (select ctid as spot from edges where edges.child + 0 = past.id offset 0) e))
)
delete from history using past where history.id = past.id returning 1;

-- name: notify
select pg_notify('foliot', $1);
