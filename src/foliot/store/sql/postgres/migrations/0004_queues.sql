-- Queues with rules of their own, the lanes in which their jobs stand in order, and job types that are held.

-- A queue is there from its first lane on. `next_beat` (nanoseconds) and `fair_time` change with claims: they are in no index, and
-- there is room beside a row. What a claim looks at is apart from the rules it comes from: `limited`, `most` (at once).
create table queues (
    queue_id integer generated always as identity,
    next_beat bigint not null default 0,
    fair_time bigint not null default 0,
    version integer not null default 1,
    ordered integer not null default 1,
    most integer,
    paused boolean not null default false,
    limited boolean not null default false,
    special boolean not null default false, -- paused, or with other rules than the default ones
    namespace text not null,
    name text collate "C" not null,
    rules text not null default '' -- JSON; empty: the default ones
) with (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
create index queues_special on queues (namespace, name) where special;
alter table queues add primary key (queue_id), add unique (namespace, name);

-- Where the time of a fair key stands in its queue; without a row, or behind the queue's time, it is the queue's.
create table shares (
    "time" bigint not null,
    queue_id integer not null,
    fair_key text not null,
    primary key (queue_id, fair_key)
) with (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);

create table held_types (
    namespace text not null,
    job_type text collate "C" not null,
    primary key (namespace, job_type)
);

-- A lane with an ordering is for jobs of its `base`, the job's own lane, that are ready and stand in that order.
alter table lanes add column ordering text not null default '', add column queue_id integer, add column base integer;
insert into queues (namespace, name) select distinct namespace, queue from lanes order by 1, 2;
update lanes set queue_id = q.queue_id from queues q where q.namespace = lanes.namespace and q.name = lanes.queue;
alter table lanes alter column queue_id set not null, add check ((ordering = '') = (base is null)),
    drop constraint lanes_namespace_queue_job_type_needs_key,
    add unique (namespace, queue, job_type, needs, ordering);
create index lanes_queue on lanes (queue_id);
-- The youngest, as 0002_schedules.sql has it.
alter table lanes drop constraint lanes_pkey, add primary key (lane_id);

-- Whoever makes a lane makes its queue, also a node of an earlier version.
create function foliot_place_lane() returns trigger language plpgsql as $$
begin
    insert into queues (namespace, name) select new.namespace, new.queue
    where not exists (select from queues where namespace = new.namespace and name = new.queue)
    on conflict do nothing;
    select queue_id into new.queue_id from queues where namespace = new.namespace and name = new.queue;
    if new.ordering <> '' then
        select lane_id into new.base from lanes
        where (namespace, queue, job_type, needs, ordering) = (new.namespace, new.queue, new.job_type, new.needs, '');
    end if;
    return new;
end $$;
create trigger lanes_place before insert on lanes for each row execute function foliot_place_lane();

-- Null, unless it counts against its queue's `most`: the running jobs of such a queue are those of the index.
alter table leases add column queue_id integer;
create index leases_queue on leases (queue_id) where queue_id is not null;
