-- Jobs that depend on jobs, concurrency keys, unique keys, and what a lane's jobs need of a worker. The numbers of `on` and
-- of ends are those of foliot.domain.graph and foliot.domain.job.

alter table lanes add column needs text not null default '';
alter table lanes drop constraint lanes_namespace_queue_job_type_key, add unique (namespace, queue, job_type, needs);

alter table jobs add column limit_key text, add column unique_key text, add column fair_key text;

-- A live row's concurrency key, and what hangs on it (foliot.domain.job.Ties). A row that is ready or leased holds one of
-- its key's tokens: there is no counter that could be wrong. `for_key`: it is due, and waits only for a token.
alter table waiting add column limit_id integer, add column ties smallint not null default 0,
    add column for_key boolean not null default false;
alter table ready add column limit_id integer, add column ties smallint not null default 0;
alter table leases add column limit_id integer, add column ties smallint not null default 0;

create index ready_limit on ready (limit_id) where limit_id is not null;
create index leases_limit on leases (limit_id) where limit_id is not null;
create index waiting_for_key_id on waiting ((id + 0)) where for_key;
create index waiting_for_key on waiting (limit_id, rank, id) where for_key;
drop index waiting_due;
create index waiting_due on waiting (due, id) where not hold and parents = 0 and not for_key;
-- The youngest, as 0002_schedules.sql has it.
alter table waiting drop constraint waiting_pkey, add primary key (id);

drop view job_rows;
create view job_rows as
select id, 'waiting' as place, lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since,
    limit_id, ties, hold, parents, for_key, rank, null::bigint as worker, null::bigint as nonce, null::bigint as claimed,
    null::bigint as check_at, null::bigint as started, null::bigint as cancel_asked, null::text as progress,
    null::smallint as state, null::bigint as ended, null::smallint as status, null::integer as exit_code,
    null::text as reason, null::text as error, null::text as result
from waiting
union all
select id, 'ready', lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since, limit_id, ties,
    null, null, null, rank, null, null, null, null, null, null, null, null, null, null, null, null, null, null
from ready
union all
select id, 'leases', lane_id, priority, due, null, attempt, counted, tries_left, lost, version, since, limit_id, ties,
    null, null, null, null, worker, nonce, claimed, check_at, started, cancel_asked, progress, null, null, null, null, null,
    null, null
from leases
union all
select id, 'history', lane_id, null, due, null, attempt, counted, null, lost, version, null, null, null, null, null, null,
    null, worker, nonce, claimed, null, started, null, null, state, ended, status, exit_code, reason, error, result
from history;

-- Concurrency keys. They stay once they were made: their numbers are in rows that may come back at any time.
create table limits (
    limit_id integer generated always as identity primary key,
    most integer not null,
    namespace text not null,
    key text collate "C" not null,
    unique (namespace, key)
) with (fillfactor = 85);

-- Which job waits, or waited last, under a unique key.
create table unique_keys (
    namespace text not null,
    key text not null,
    id bigint not null,
    primary key (namespace, key)
) with (fillfactor = 85);
create index unique_keys_id on unique_keys (id);

-- A child's `waiting.parents` counts its edges that are not done. `done` is in no index, and there is room beside a row, so
-- that it changes in its place.
create table edges (
    parent bigint not null,
    child bigint not null,
    "on" smallint not null,
    done boolean not null default false,
    primary key (parent, child)
) with (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
-- `child + 0`, so that the planner takes neither index for the other's work: the key has the child in second place.
create index edges_child on edges ((child + 0));

-- Ends of parents that are to be carried on to their children; those up to `reached` have been told.
create table releases (
    parent bigint primary key,
    reached bigint not null default 0,
    state smallint not null
) with (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0.05,
    autovacuum_analyze_threshold = 1000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);

-- As before, and what belongs to the day's jobs by id alone goes as well: names, unique keys, edges to them.
create or replace function foliot_drop_day(suffix text, low bigint, high bigint, before bigint, most bigint) returns bigint
language plpgsql as $$
declare
    parent text;
    keep bigint[];
    gone bigint;
begin
    perform pg_advisory_xact_lock(hashtext('foliot days'));
    if to_regclass(format('%I', 'jobs_' || suffix)) is null then
        return 0;
    end if;
    lock table only jobs, only history, only attempts, only job_logs in access exclusive mode;
    select array_agg(id) into keep from (
        (select id from waiting where id >= low and id < high limit most + 1)
        union (select id from ready where id >= low and id < high limit most + 1)
        union (select id from leases where id >= low and id < high limit most + 1)
        union (select id from history where id >= low and id < high and ended >= before limit most + 1)) as kept;
    if cardinality(keep) > most then
        return -1;
    end if;
    select greatest(n_live_tup, 1) into gone from pg_stat_user_tables
        where relid = to_regclass(format('%I', 'history_' || suffix));
    foreach parent in array array['jobs', 'history', 'attempts', 'job_logs'] loop
        execute format('alter table %I detach partition %I', parent, parent || '_' || suffix);
        execute format('insert into %I select * from %I where id = any($1)', parent, parent || '_' || suffix) using keep;
        execute format('drop table %I', parent || '_' || suffix);
    end loop;
    delete from job_keys where id >= low and id < high and not exists (select from jobs where jobs.id = job_keys.id);
    delete from unique_keys where id >= low and id < high and not exists (select from jobs where jobs.id = unique_keys.id);
    delete from edges where child + 0 >= low and child + 0 < high and not exists (select from jobs where jobs.id = edges.child);
    return gone;
end $$;
