-- Times are microseconds since 1970. State and status numbers are those of foliot.domain.job.
-- A live job has exactly one row in waiting, ready or leases; its end is a row in history.

create table lanes (
    lane_id integer generated always as identity primary key,
    namespace text not null,
    queue text not null,
    job_type text not null,
    unique (namespace, queue, job_type)
);

-- Wide rows, written once. Partitioned by id, one day each: ids carry time, so that look-ups by id prune and a day can go
-- at once. What outlives its day is moved to the partition jobs_kept, which also takes ids of no known day.
create table jobs (
    id bigint primary key,
    lane_id integer not null,
    priority smallint not null,
    name text,
    due bigint not null,
    created bigint not null,
    payload text not null,
    retry text,          -- null: the default policy
    timeout bigint not null,
    deadline bigint,
    tags text[],
    owner text not null,
    schedule_id text
) partition by range (id);
create table jobs_kept partition of jobs default;

create table history (
    id bigint primary key,
    lane_id integer not null,
    state smallint not null,
    attempt integer not null,
    counted integer not null,
    lost integer not null,
    version integer not null,
    due bigint not null,
    ended bigint not null,
    -- The attempt with which it ended; null where it ended without one.
    status smallint,
    exit_code integer,
    worker bigint,
    nonce bigint,
    claimed bigint,
    started bigint,
    reason text,
    error text,
    result text
) partition by range (id);
-- What did not complete (5) is what people look for, and it is rare.
create index history_not_completed on history (state, id) where state <> 5;
-- Rows are written in the order of `ended`, so that a summary per block finds the late ones of a day.
create index history_ended on history using brin (ended) with (autosummarize = on);
create table history_kept partition of history default;

create table attempts (
    id bigint not null,
    attempt integer not null,
    status smallint not null,
    exit_code integer,
    worker bigint not null,
    nonce bigint not null,
    due bigint not null,
    claimed bigint not null,
    started bigint,
    ended bigint,
    error text,
    primary key (id, attempt)
) partition by range (id);
create table attempts_kept partition of attempts default;

create table job_logs (
    id bigint not null,
    log_id bigint not null,
    attempt integer not null,
    "time" bigint not null,
    level smallint not null,
    message text not null,
    primary key (id, log_id)
) partition by range (id);
create table job_logs_kept partition of job_logs default;

-- Clients' own names; generated ids have no row here.
create table job_keys (
    namespace text not null,
    name text not null,
    id bigint not null,
    body_hash bytea not null,
    primary key (namespace, name)
);
create index job_keys_id on job_keys (id);

create table request_keys (
    namespace text not null,
    key text not null,
    made bigint not null,
    request_hash bytea not null,
    ids text[] not null,
    primary key (namespace, key)
);
create index request_keys_made on request_keys (made);

-- The narrow tables come and go with every job: vacuumed early and at full speed, and never truncated, since that takes an
-- exclusive lock.
create table waiting (
    id bigint primary key,
    due bigint not null,
    rank bigint not null, -- what it will have in ready
    deadline bigint,
    since bigint not null,
    lane_id integer not null,
    attempt integer not null,
    counted integer not null,
    tries_left integer not null,
    lost integer not null,
    version integer not null,
    parents integer not null,
    priority smallint not null,
    hold boolean not null
) with (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0.05,
    autovacuum_analyze_threshold = 1000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
create index waiting_due on waiting (due, id) where not hold and parents = 0;
create index waiting_deadline on waiting (deadline) where deadline is not null;

create table ready (
    id bigint primary key,
    due bigint not null,
    rank bigint not null,
    deadline bigint,
    since bigint not null,
    lane_id integer not null,
    attempt integer not null,
    counted integer not null,
    tries_left integer not null,
    lost integer not null,
    version integer not null,
    priority smallint not null
) with (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0.05,
    autovacuum_analyze_threshold = 1000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
create index ready_rank on ready (lane_id, rank, id);
create index ready_deadline on ready (deadline) where deadline is not null;

create table leases (
    id bigint primary key,
    worker bigint not null,
    nonce bigint not null,
    due bigint not null,
    since bigint not null,
    claimed bigint not null,
    check_at bigint not null,
    started bigint,
    cancel_asked bigint,
    lane_id integer not null,
    attempt integer not null,
    counted integer not null,
    tries_left integer not null,
    lost integer not null,
    version integer not null,
    priority smallint not null,
    progress text
) with (
    fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);
create index leases_worker on leases (worker, check_at);

-- Where each job stands, one row a job, whatever its place.
create view job_rows as
select id, 'waiting' as place, lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since, hold,
    parents, rank, null::bigint as worker, null::bigint as nonce, null::bigint as claimed, null::bigint as check_at,
    null::bigint as started, null::bigint as cancel_asked, null::text as progress, null::smallint as state,
    null::bigint as ended, null::smallint as status, null::integer as exit_code, null::text as reason,
    null::text as error, null::text as result
from waiting
union all
select id, 'ready', lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since, null, null, rank,
    null, null, null, null, null, null, null, null, null, null, null, null, null, null
from ready
union all
select id, 'leases', lane_id, priority, due, null, attempt, counted, tries_left, lost, version, since, null, null, null,
    worker, nonce, claimed, check_at, started, cancel_asked, progress, null, null, null, null, null, null, null
from leases
union all
select id, 'history', lane_id, null, due, null, attempt, counted, null, lost, version, null, null, null, null, worker,
    nonce, claimed, null, started, null, null, state, ended, status, exit_code, reason, error, result
from history;

create table workers (
    id bigint primary key,
    namespace text not null,
    name text not null,
    queues text[] not null,
    job_types text[] not null,
    resources text not null,
    labels text not null,
    since bigint not null,
    seen bigint not null,
    until bigint not null,
    draining boolean not null
) with (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);

create table nodes (
    number smallint primary key,
    name text not null,
    version text not null,
    since bigint not null,
    seen bigint not null,
    until bigint not null,
    last_id bigint not null
) with (fillfactor = 50);

-- Make the partitions of one day (`suffix`, ids from `low` up to below `high`); false where they are there. A row of that
-- day that came early lies in the kept partition and is moved. Attaching locks only the kept partitions exclusively.
create function foliot_add_day(suffix text, low bigint, high bigint) returns boolean language plpgsql as $$
declare
    parent text;
begin
    perform pg_advisory_xact_lock(hashtext('foliot days'));
    if to_regclass(format('%I', 'job_logs_' || suffix)) is not null then
        return false;
    end if;
    foreach parent in array array['jobs', 'history', 'attempts', 'job_logs'] loop
        execute format('create table %I (like %I including all)', parent || '_' || suffix, parent);
        execute format('lock table %I in access exclusive mode', parent || '_kept');
        execute format(
            'with early as (delete from %I where id >= %s and id < %s returning *) insert into %I select * from early',
            parent || '_kept', low, high, parent || '_' || suffix);
        execute format(
            'alter table %I attach partition %I for values from (%s) to (%s)', parent, parent || '_' || suffix, low, high);
    end loop;
    return true;
end $$;

-- Drop one day's partitions, after what lives or ended at or after `before` was copied to the kept ones. About how many
-- jobs went; -1 where more than `most` would have to be copied (then nothing is done). The parents are locked
-- exclusively, so nothing else moves meanwhile.
create function foliot_drop_day(suffix text, low bigint, high bigint, before bigint, most bigint) returns bigint
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
    return gone;
end $$;
