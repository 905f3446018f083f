-- The record of what happened, how many jobs stand where, when attempts became ready, whom a job tells and in which trace it is,
-- and which workers and nodes are known to be lost.
set local statement_timeout = 0; -- all that has ended is counted once

-- A batch: what one transaction did to jobs, the n-th entries of the arrays belonging together; an array with a single entry, where
-- `ids` has more, has the same for all, and one that is null has none. `mask` has a bit for each status in it; `happenings` is JSON.
-- `number` is the time at which its writer gave it, in microseconds, and higher than all that this writer gave before. Partitioned by
-- it, one day each, so that a day can go at once; what is of no known day lies in events_other. Ids do not compress: not tried.
create table events (
    writer integer not null,
    mask integer not null,
    number bigint not null,
    "time" bigint not null,
    ids bigint[],
    lanes integer[],
    statuses smallint[],
    versions integer[],
    attempts integer[],
    counts integer[],
    workers bigint[],
    startings bigint[],
    reasons text[],
    happenings text,
    primary key (writer, number)
) partition by range (number);
alter table events
    alter column ids set storage external, alter column lanes set storage external, alter column statuses set storage external,
    alter column versions set storage external, alter column attempts set storage external,
    alter column counts set storage external, alter column workers set storage external,
    alter column startings set storage external;
create table events_other partition of events default;

-- Who writes batches: a connection, until its session ends. A session has its number's lock as long as it lives, and nothing else
-- gives it up: once the lock is free all that it ever committed is there to be seen.
create table event_writers (writer integer generated always as identity primary key);

create function foliot_writer_lock(writer integer) returns bigint language sql stable as $$
    select ('event_writers'::regclass::oid::bigint << 32) | writer
$$;

-- Let this session be a writer: its number. One at a time, so that numbers are seen in their order: who sees one has seen all below it
-- that there will ever be.
create function foliot_add_writer() returns integer language plpgsql as $$
declare
    added integer;
begin
    perform pg_advisory_xact_lock(hashtext('foliot writers'));
    insert into event_writers default values returning writer into added;
    perform pg_advisory_lock(foliot_writer_lock(added));
    perform set_config('foliot.writer', added::text, false);
    return added;
end $$;

-- Whether a writer's session has ended. A session can take its own lock once more, so its own number is known.
create function foliot_writer_ended(writer integer) returns boolean language sql volatile as $$
    select case when writer::text = current_setting('foliot.writer', true) then false
        else pg_try_advisory_xact_lock_shared(foliot_writer_lock(writer)) end
$$;

-- Make the partition of one day (`suffix`, numbers from `low` up to below `high`); false where it is there.
create function foliot_add_feed_day(suffix text, low bigint, high bigint) returns boolean language plpgsql as $$
begin
    perform pg_advisory_xact_lock(hashtext('foliot days'));
    if to_regclass(format('%I', 'events_' || suffix)) is not null then
        return false;
    end if;
    execute format('create table %I (like events including all)', 'events_' || suffix);
    lock table events_other in access exclusive mode;
    execute format(
        'with early as (delete from events_other where number >= %s and number < %s returning *) insert into %I select * from early',
        low, high, 'events_' || suffix);
    execute format(
        'alter table events attach partition %I for values from (%s) to (%s)', 'events_' || suffix, low, high);
    return true;
end $$;

-- Drop the partition of one day; how many batches went, about.
create function foliot_drop_feed_day(suffix text) returns bigint language plpgsql as $$
declare
    gone bigint;
begin
    perform pg_advisory_xact_lock(hashtext('foliot days'));
    if to_regclass(format('%I', 'events_' || suffix)) is null then
        return 0;
    end if;
    lock table only events in access exclusive mode;
    select greatest(n_live_tup, 1) into gone from pg_stat_user_tables
        where relid = to_regclass(format('%I', 'events_' || suffix));
    execute format('drop table %I', 'events_' || suffix);
    return gone;
end $$;

alter table jobs add column notify text, add column trace text;

-- When only a worker was missing; null of attempts from before it was noted.
alter table history add column admitted bigint;
alter table attempts add column admitted bigint;

create or replace view job_rows as
select id, 'waiting' as place, lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since,
    limit_id, ties, hold, parents, for_key, rank, null::bigint as worker, null::bigint as nonce, null::bigint as claimed,
    null::bigint as check_at, null::bigint as started, null::bigint as cancel_asked, null::text as progress,
    null::smallint as state, null::bigint as ended, null::smallint as status, null::integer as exit_code,
    null::text as reason, null::text as error, null::text as result, null::bigint as admitted
from waiting
union all
select id, 'ready', lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since, limit_id, ties,
    null, null, null, rank, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null
from ready
union all
select id, 'leases', lane_id, priority, due, null, attempt, counted, tries_left, lost, version, since, limit_id, ties,
    null, null, null, null, worker, nonce, claimed, check_at, started, cancel_asked, progress, null, null, null, null, null,
    null, null, null
from leases
union all
select id, 'history', lane_id, null, due, null, attempt, counted, null, lost, version, null, null, null, null, null, null,
    null, worker, nonce, claimed, null, started, null, null, state, ended, status, exit_code, reason, error, result, admitted
from history;

alter table workers add column lost boolean not null default false;
alter table nodes add column lost boolean not null default false;

-- How many jobs came to a status in a lane (the jobs' own), or left it: the sum is how many there are, or, of those that ended, ever
-- ended. Only ever added to, so that nobody waits for anybody; few rows are made of many now and then.
create table tallies (
    jobs bigint not null,
    lane_id integer not null,
    status smallint not null
) with (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);
lock table waiting, ready, leases, history in share row exclusive mode;
insert into tallies (lane_id, status, jobs)
select lane_id, status, count(*) from (
    select lane_id, case when hold then 5 when parents > 0 then 1 when for_key then 2 when attempt > 0 then 4 else 0 end as status
    from waiting
    union all select coalesce(l.base, r.lane_id), 2 from ready r join lanes l on l.lane_id = r.lane_id
    union all select lane_id, 3 from leases
    union all select lane_id, state + 1 from history
) standing group by 1, 2;

select foliot_fence();
