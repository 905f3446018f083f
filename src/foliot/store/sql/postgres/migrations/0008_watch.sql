-- What those who watch keep: definitions of users, incidents, deliveries, who is on watch, how late jobs were. Only the engine
-- reads these tables; readers behind the fence of 0005_access.sql are granted none of them.

create table definitions (
    kind text collate "C" not null,
    namespace text collate "C" not null,
    name text collate "C" not null,
    body text not null, -- JSON
    created bigint not null,
    version integer not null,
    primary key (kind, namespace, name)
) with (fillfactor = 70);

-- `position` changes with every step of who is on watch, in its place: it is in no index.
create table posts (
    name text primary key,
    node integer not null,
    until bigint not null,
    position text not null
) with (
    fillfactor = 10, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);

create table incidents (
    id bigint not null,
    namespace text collate "C" not null,
    rule text not null,
    subject text not null,
    body text not null, -- JSON
    opened bigint not null,
    resolved bigint,
    notify_at bigint,
    version integer not null
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
create unique index incidents_open on incidents (namespace, rule, subject) where resolved is null;
create index incidents_notify on incidents (notify_at) where notify_at is not null;
create index incidents_resolved on incidents (resolved) where resolved is not null;
-- `id + 0`, so that the planner never takes the key for a way to the newest of a namespace, which may be far back.
create index incidents_of_namespace on incidents (namespace, (id + 0));
-- Keys come last, as 0002_schedules.sql has it.
alter table incidents add primary key (id);

create table deliveries (
    id bigint not null,
    namespace text collate "C" not null,
    webhook text collate "C" not null,
    event_id text not null,
    event_type text not null,
    body text not null, -- JSON
    created bigint not null,
    state text not null,
    attempts integer not null,
    next_try bigint,
    last_status integer,
    last_error text,
    changed bigint not null
) with (
    fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);
create index deliveries_next_try on deliveries (next_try) where next_try is not null;
create index deliveries_ended on deliveries (changed) where state <> 'pending';
create index deliveries_of_webhook on deliveries (namespace, webhook, state, (id + 0));
alter table deliveries add primary key (id);

-- `counts` is in no index, and there is room beside a row: a minute's is written anew until the minute is over.
create table lateness (
    minute bigint not null,
    node integer not null,
    namespace text collate "C" not null,
    queue text collate "C" not null,
    job_type text collate "C" not null,
    counts text not null -- JSON
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
create index lateness_minute on lateness (minute);
alter table lateness add primary key (namespace, minute, queue, job_type, node);

-- The lanes in which jobs of a lane may stand in order, and what of a lane waits for a token, by due time. All lanes are above 0:
-- saying so keeps the planner from taking the index for anything that does not.
create index lanes_base on lanes (base) where base is not null;
create index waiting_for_key_due on waiting (lane_id, due) where for_key and lane_id > 0;
