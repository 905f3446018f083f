-- Keys, sessions, namespaces, shared rates, the audit log; and the fence behind which callers' reads run.

create table api_keys (
    key_id text collate "C" primary key,
    namespace text not null,
    name text not null,
    role text not null,
    queues text[] not null,
    job_types text[] not null,
    hash bytea not null,
    old_hash bytea,
    old_until bigint not null,
    created bigint not null,
    created_by text not null,
    expires bigint,
    last_used bigint,
    revoked bigint
) with (fillfactor = 70);
create index api_keys_of_namespace on api_keys (namespace, key_id);
create unique index api_keys_name on api_keys (namespace, name) where revoked is null;

create table sessions (
    hash bytea primary key,
    until bigint not null,
    once boolean not null,
    key_id text,
    caller text not null, -- JSON
    data text not null
);
create index sessions_until on sessions (until);
create index sessions_of_key on sessions (key_id) where key_id is not null;

create table namespaces (
    name text collate "C" primary key,
    created bigint not null,
    version integer not null default 1,
    quotas text not null default '{}' -- JSON
);
insert into namespaces (name, created)
select name, (extract(epoch from clock_timestamp()) * 1000000)::bigint
from (select 'default' as name union select namespace from lanes union select namespace from schedules) known;

-- Rates that all nodes share. `next_beat` is in nanoseconds, and in no index: it changes in its place.
create table meters (
    name text primary key,
    next_beat bigint not null
) with (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);

create table audit (
    seq bigint primary key,
    "time" bigint not null,
    namespace text not null,
    actor text not null,
    key_id text,
    action text not null,
    object text not null,
    source text not null,
    request_id text not null,
    outcome text not null,
    hash bytea not null
);
create index audit_of_namespace on audit (namespace, seq);

-- The last entry's number and hash: one row, locked by who appends.
create table audit_head (
    one boolean primary key default true check (one),
    seq bigint not null,
    hash bytea not null
) with (fillfactor = 10);
insert into audit_head (seq, hash) values (0, decode(repeat('00', 32), 'hex'));

create function foliot_keep_audit() returns trigger language plpgsql as $$
begin
    raise exception 'entries of the audit log are only added, never changed or taken away';
end $$;
create trigger audit_stays before update or delete or truncate on audit
for each statement execute function foliot_keep_audit();

-- The fence. Who does not own the tables sees the rows of the namespace that the setting foliot.namespace names, and those that
-- belong to them. A scalar subquery, since the planner may turn `in` and `exists` into reading the whole of the other table. The
-- policies are for everybody, so that they stand also where the role of foliot_fence() can not be made.
create policy fence on lanes for select using (namespace = (select current_setting('foliot.namespace', true)));
create policy fence on job_keys for select using (namespace = (select current_setting('foliot.namespace', true)));
create policy fence on limits for select using (namespace = (select current_setting('foliot.namespace', true)));
create policy fence on queues for select using (namespace = (select current_setting('foliot.namespace', true)));
create policy fence on held_types for select using (namespace = (select current_setting('foliot.namespace', true)));
create policy fence on schedules for select using (namespace = (select current_setting('foliot.namespace', true)));
create policy fence on workers for select using (namespace = (select current_setting('foliot.namespace', true)));
create policy fence on jobs for select using ((select true from lanes l where l.lane_id = jobs.lane_id));
create policy fence on waiting for select using ((select true from lanes l where l.lane_id = waiting.lane_id));
create policy fence on ready for select using ((select true from lanes l where l.lane_id = ready.lane_id));
create policy fence on leases for select using ((select true from lanes l where l.lane_id = leases.lane_id));
create policy fence on history for select using ((select true from lanes l where l.lane_id = history.lane_id));
create policy fence on attempts for select using ((select true from jobs j where j.id = attempts.id));
create policy fence on job_logs for select using ((select true from jobs j where j.id = job_logs.id));
create policy fence on edges for select using (
    (select true from jobs j where j.id = edges.parent) and (select true from jobs j where j.id = edges.child));
create policy fence on ledger for select using ((select true from schedules s where s.id = ledger.schedule));

alter table lanes enable row level security;
alter table job_keys enable row level security;
alter table limits enable row level security;
alter table queues enable row level security;
alter table held_types enable row level security;
alter table schedules enable row level security;
alter table workers enable row level security;
alter table jobs enable row level security;
alter table waiting enable row level security;
alter table ready enable row level security;
alter table leases enable row level security;
alter table history enable row level security;
alter table attempts enable row level security;
alter table job_logs enable row level security;
alter table edges enable row level security;
alter table ledger enable row level security;

-- Let this user read as `foliot_reader`, a role that owns nothing (one for all databases of a server); null, or why that can not
-- be. Repeated it changes nothing. Partitions are not granted: they are reached through their parents, which have the policies.
create function foliot_fence() returns text language plpgsql as $$
declare
    relation text;
begin
    if current_setting('server_version_num')::integer < 150000 then
        return 'views that are read with the rights of the reader need PostgreSQL 15 or later';
    end if;
    if not exists (select from pg_roles where rolname = 'foliot_reader') then
        begin
            create role foliot_reader nologin;
        exception when duplicate_object or unique_violation then
            null; -- somebody made it at the same time
        end;
    end if;
    begin
        set local role foliot_reader;
        reset role;
    exception when insufficient_privilege then
        grant foliot_reader to session_user;
        set local role foliot_reader;
        reset role;
    end;
    if not has_schema_privilege('foliot_reader', current_schema(), 'usage') then
        execute format('grant usage on schema %I to foliot_reader', current_schema());
    end if;
    foreach relation in array array['lanes', 'job_keys', 'limits', 'queues', 'held_types', 'schedules', 'workers', 'jobs', 'waiting',
        'ready', 'leases', 'history', 'attempts', 'job_logs', 'edges', 'ledger', 'job_rows']
    loop
        if not has_table_privilege('foliot_reader', relation, 'select') then
            execute format('grant select on %I to foliot_reader', relation);
        end if;
    end loop;
    if not exists (select from pg_class where oid = 'job_rows'::regclass and 'security_invoker=true' = any(reloptions)) then
        execute 'alter view job_rows set (security_invoker = true)';
    end if;
    return null;
exception when insufficient_privilege then
    return sqlerrm;
end $$;
select foliot_fence();
