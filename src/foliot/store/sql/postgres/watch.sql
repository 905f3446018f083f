-- What those who watch keep and ask. Rows are looked for apart where they are then changed: see forget_ledger. Why `id + 0`: see
-- 0008_watch.sql.

-- name: put_definition
-- Made; where it is there, replaced if $6 says so.
insert into definitions (kind, namespace, name, body, created, version) values ($1, $2, $3, $4, $5, 1)
on conflict (kind, namespace, name) do update set body = excluded.body, version = definitions.version + 1 where $6
returning kind, namespace, name, body, created, version;

-- name: change_definition
update definitions set body = $4, version = version + 1 where kind = $1 and namespace = $2 and name = $3 and version = $5
returning kind, namespace, name, body, created, version;

-- name: definitions
select kind, namespace, name, body, created, version from definitions
where ($1::text is null or kind = $1) and ($2::text is null or namespace = $2) order by kind, namespace, name;

-- name: remove_definition
delete from definitions where kind = $1 and namespace = $2 and name = $3 returning 1;

-- name: take_post
-- Of a node ($2) until $4; whoever has it keeps it until $3 is past its end.
insert into posts (name, node, until, position) values ($1, $2, $4, '')
on conflict (name) do update set node = excluded.node, until = excluded.until
where posts.node = excluded.node or posts.until <= $3
returning name, node, until, position;

-- name: leave_post
update posts set until = 0 where name = $1 and node = $2;

-- name: move_post
update posts set position = $4 where name = $1 and node = $2 and position = $3 returning 1;

-- name: add_deliveries
-- One whose id is there is the same one.
insert into deliveries (id, namespace, webhook, event_id, event_type, body, created, state, attempts, next_try, last_status,
    last_error, changed)
select * from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::int[],
    $10::bigint[], $11::int[], $12::text[], $13::bigint[])
on conflict do nothing;

-- name: add_incidents
-- Those of which no other is open; who adds the same at this moment is waited for.
insert into incidents (id, namespace, rule, subject, body, opened, resolved, notify_at, version)
select * from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
    $9::int[])
on conflict do nothing
returning 1;

-- name: change_incidents
-- Those that stand at the version before the one given. Locked in the order given.
with found as materialized (
    select i.spot, u.* from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
        $8::bigint[], $9::int[]) as u (id, namespace, rule, subject, body, opened, resolved, notify_at, version)
    cross join lateral (
        select ctid as spot from incidents
        where incidents.id = u.id and incidents.namespace = u.namespace and incidents.version = u.version - 1
        for update
    ) i
)
update incidents set rule = f.rule, subject = f.subject, body = f.body, opened = f.opened, resolved = f.resolved,
    notify_at = f.notify_at, version = f.version
from found f where incidents.ctid = f.spot
returning 1;

-- name: open_incidents
select id, namespace, rule, subject, body, opened, resolved, notify_at, version from incidents
where resolved is null and ($1::text is null or namespace = $1) order by opened, id;

-- name: incidents
select id, namespace, rule, subject, body, opened, resolved, notify_at, version from incidents
where namespace = $1 and id + 0 < $2 order by id + 0 desc limit $3;

-- name: incident
select id, namespace, rule, subject, body, opened, resolved, notify_at, version from incidents where namespace = $1 and id = $2;

-- name: take_notices
-- With when each was to go out.
with found as materialized (
    select ctid as spot, notify_at as asked from incidents where notify_at <= $1 order by notify_at limit $3
    for update skip locked
)
update incidents set notify_at = $2, version = version + 1 from found f where incidents.ctid = f.spot
returning id, namespace, rule, subject, body, opened, resolved, notify_at, version, f.asked;

-- name: take_deliveries
-- With when each was to be tried.
with found as materialized (
    select ctid as spot, next_try as asked from deliveries where next_try <= $1 order by next_try limit $3
    for update skip locked
)
update deliveries set next_try = $2 from found f where deliveries.ctid = f.spot
returning id, namespace, webhook, event_id, event_type, body, created, state, attempts, next_try, last_status, last_error, changed,
    f.asked;

-- name: finish_deliveries
-- Locked in the order given.
with found as materialized (
    select d.spot, u.* from unnest($1::bigint[], $2::text[], $3::int[], $4::bigint[], $5::int[], $6::text[], $7::bigint[])
        as u (id, state, attempts, next_try, last_status, last_error, changed)
    cross join lateral (select ctid as spot from deliveries where deliveries.id = u.id for update) d
)
update deliveries set state = f.state, attempts = f.attempts, next_try = f.next_try, last_status = f.last_status,
    last_error = f.last_error, changed = f.changed
from found f where deliveries.ctid = f.spot;

-- name: next_delivery
select next_try from deliveries where next_try is not null order by next_try limit 1;

-- name: deliveries
-- Of each of these states ($5) the newest: one index serves lists of all states and of one.
select d.* from unnest($5::text[]) as u (state)
cross join lateral (
    select id, namespace, webhook, event_id, event_type, body, created, state, attempts, next_try, last_status, last_error, changed
    from deliveries
    where deliveries.namespace = $1 and deliveries.webhook = $2 and deliveries.state = u.state and deliveries.id + 0 < $3
    order by deliveries.id + 0 desc limit $4
) d
order by d.id desc limit $4;

-- name: delivery
select id, namespace, webhook, event_id, event_type, body, created, state, attempts, next_try, last_status, last_error, changed
from deliveries where id = $3 and namespace = $1 and webhook = $2;

-- name: add_lateness
insert into lateness (minute, node, namespace, queue, job_type, counts)
select * from unnest($1::bigint[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[])
on conflict (namespace, minute, queue, job_type, node) do update set counts = excluded.counts;

-- name: lateness
select minute, node, namespace, queue, job_type, counts from lateness
where minute >= $1 and minute < $2 order by minute, namespace, queue, job_type, node;

-- name: lateness_of
select minute, node, namespace, queue, job_type, counts from lateness
where namespace = $3 and minute >= $1 and minute < $2 order by minute, namespace, queue, job_type, node;

-- name: lanes_in_order
-- The lanes in which jobs of these may stand.
select base, lane_id from lanes where base = any($1::int[]);

-- name: waiters
-- Of each stretch ($1 the jobs' own lane, $2 lane, from $3 rank and $4 id on, up to below rank $5) the first $6; and of each own
-- lane ($7) those that wait for a token and were due before $8, the first $9. `lane_id > 0`: see 0008_watch.sql.
select u.own, r.id, r.due
from unnest($1::int[], $2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::int[]) as u (own, lane_id, rank, id, until, count)
cross join lateral (
    select id, due from ready
    where ready.lane_id = u.lane_id and (ready.rank, ready.id) >= (u.rank, u.id) and ready.rank < u.until
    order by ready.rank, ready.id limit u.count
) r
union all
select o.lane_id, w.id, w.due from unnest($7::int[]) as o (lane_id)
cross join lateral (
    select id, due from waiting where for_key and waiting.lane_id > 0 and waiting.lane_id = o.lane_id and waiting.due < $8
    order by waiting.due limit $9
) w;

-- name: overruns
-- One look at the leases: there are as many as jobs run.
select id, lane_id, coalesce(started, claimed) from leases where coalesce(started, claimed) < $1
order by coalesce(started, claimed), id limit $2;

-- name: dead_rows
-- Of these tables: live and dead rows, and how many seconds ago the last vacuum was.
select relname, n_live_tup, n_dead_tup,
    extract(epoch from clock_timestamp() - coalesce(greatest(last_vacuum, last_autovacuum), pg_postmaster_start_time()))::float8
from pg_stat_user_tables where schemaname = current_schema() and relname = any($1::text[]) order by relname;

-- name: server_health
-- Seconds of the oldest transaction that keeps dead rows alive (a vacuum does not; prepared ones do), the share of the connections
-- that is taken, seconds that the slowest standby is behind (null: there is none). What other roles' sessions do is shown to
-- members of pg_read_all_stats alone: to others those do not count. How many connections there are is shown to everybody.
select
    (select extract(epoch from clock_timestamp() - min(since))::float8 from (
        select xact_start as since from pg_stat_activity a
        where a.datname = current_database() and a.pid <> pg_backend_pid()
        and (a.backend_xmin is not null or a.backend_xid is not null)
        and not exists (select from pg_stat_progress_vacuum v where v.pid = a.pid)
        union all
        select prepared from pg_prepared_xacts p where p.database = current_database()
    ) held) as oldest_snapshot,
    (select sum(numbackends)::float8 from pg_stat_database) / greatest(1, current_setting('max_connections')::integer
        - current_setting('superuser_reserved_connections')::integer) as connections,
    (select max(coalesce(extract(epoch from coalesce(replay_lag, flush_lag, write_lag)), 0))::float8 from pg_stat_replication
        where state in ('streaming', 'catchup')) as lag;

-- name: forget_incidents
with past as materialized (
    select ctid from incidents where resolved < $1 order by resolved limit $2 for update skip locked
)
delete from incidents where ctid = any(array(select ctid from past)) returning 1;

-- name: forget_deliveries
with past as materialized (
    select ctid from deliveries where state <> 'pending' and changed < $1 order by changed limit $2 for update skip locked
)
delete from deliveries where ctid = any(array(select ctid from past)) returning 1;

-- name: forget_lateness
with past as materialized (
    select ctid from lateness where minute < $1 order by minute limit $2 for update skip locked
)
delete from lateness where ctid = any(array(select ctid from past)) returning 1;
