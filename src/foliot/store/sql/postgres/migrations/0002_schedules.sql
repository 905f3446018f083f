-- Schedules, the ledger of their due times, and which of their runs are under way. Verdict numbers are those of
-- foliot.domain.schedule.

-- A row changes with every firing: room beside it, and vacuumed early and at full speed.
create table schedules (
    id bigint not null,
    created bigint not null,
    changed bigint not null,
    next_due bigint,
    runs bigint not null,
    version integer not null,
    edition integer not null,
    backfill_limit integer not null,
    paused boolean not null,
    namespace text not null,
    name text not null,
    owner text not null,
    plan text not null,       -- JSON
    definition text not null  -- JSON
) with (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);
create index schedules_due on schedules (next_due, id) where not paused and next_due is not null;
create index schedules_made on schedules (namespace, id);
-- The keys come last: while statistics say that a table is empty all indexes with a column that is asked for seem to cost
-- the same, and the planner takes the youngest.
alter table schedules add primary key (id), add unique (namespace, name);

-- A due time, or `count` of them from `due` to `until` that share a verdict. Without a verdict it waits.
create table ledger (
    schedule bigint not null,
    due bigint not null,
    until bigint not null,
    decided bigint not null,
    count bigint not null,
    verdict smallint,
    promised smallint not null,
    exact boolean not null,
    reason text,
    primary key (schedule, due, until)
) with (
    fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
-- What is backfilled (4) waits behind the rest.
create index ledger_waiting on ledger (schedule, (promised = 4), due) where verdict is null;
create index ledger_decided on ledger (decided) where verdict is not null;

-- Runs that have not ended: a row comes with its job, and goes with the job's end.
create table open_runs (
    id bigint primary key, -- the job's
    schedule bigint not null,
    backfill boolean not null
) with (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0.05,
    autovacuum_analyze_threshold = 1000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
-- `id + 0`, so that the planner never takes it for a way to find runs by id.
create index open_runs_schedule on open_runs (schedule, backfill, (id + 0));

-- The same holds for narrow tables that are there: a look-up by id must not walk an index that has it in another place.
alter table waiting drop constraint waiting_pkey, add primary key (id);
alter table ready drop constraint ready_pkey, add primary key (id);
