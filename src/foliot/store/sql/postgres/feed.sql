-- The record of what happened, and how many jobs stand where. Numbers of statuses are places in foliot.domain.status.STATUSES.

-- name: add_writer
-- This session's number in the record, and the database's clock.
select foliot_add_writer(), (extract(epoch from clock_timestamp()) * 1000000)::bigint;

-- name: record
-- A batch that is given as it is, where it has a writer ($15) and is not empty; and what the tallies are to get, whether or not.
with recorded as (
    insert into events (writer, number, "time", mask, ids, lanes, statuses, versions, attempts, counts, workers, startings, reasons,
        happenings)
    select $15, $16, $1, $2, $3::bigint[], $4::int[], $5::smallint[], $6::int[], $7::int[], $8::int[], $9::bigint[],
        $10::bigint[], $11::text[], $17
    where $15::int is not null and ($3::bigint[] is not null or $17::text is not null)
)
insert into tallies (lane_id, status, jobs) select * from unnest($12::int[], $13::smallint[], $14::bigint[]);

-- name: read_feed
-- The writers from $1 on and those in $2, and whether they have ended; then their batches in the order of their numbers, up to $4:
-- all of those from $1 on, of those in $2 those above their number in $3. Without entries where none has a status of the mask $5.
-- That a writer has ended tells nothing of what this statement sees of it: that is older.
with known as materialized (
    select u.writer, u.number from unnest($2::int[], $3::bigint[]) as u (writer, number)
    cross join lateral (select from event_writers where event_writers.writer = u.writer offset 0) w
    union all
    select writer, 0 from event_writers where writer >= $1::bigint and writer <> all($2)
)
select writer, null::bigint as number, foliot_writer_ended(writer) as ended, null::bigint as "time", null::bigint[] as ids,
    null::int[] as lanes, null::smallint[] as statuses, null::int[] as versions, null::int[] as attempts, null::int[] as counts,
    null::bigint[] as workers, null::bigint[] as startings, null::text[] as reasons, null::text as happenings
from known
union all (
    select e.writer, e.number, null, e."time", case when e.wanted then e.ids end, case when e.wanted then e.lanes end,
        case when e.wanted then e.statuses end, case when e.wanted then e.versions end, case when e.wanted then e.attempts end,
        case when e.wanted then e.counts end, case when e.wanted then e.workers end, case when e.wanted then e.startings end,
        case when e.wanted then e.reasons end, e.happenings
    from known k
    cross join lateral (
        select events.*, mask & $5 <> 0 as wanted from events
        where events.writer = k.writer and events.number > k.number order by events.number limit $4
    ) e
    order by e.number limit $4
);

-- name: feed_end
-- All writers, whether they have ended, and the number and time of their last batch that is committed.
select w.writer, foliot_writer_ended(w.writer), coalesce(e.number, 0), coalesce(e."time", 0) from event_writers w
left join lateral (
    select number, "time" from events where events.writer = w.writer order by events.number desc limit 1
) e on true;

-- name: feed_days
-- The suffixes of the days that have a partition of the record.
select substr(c.relname, 8) from pg_inherits i join pg_class c on c.oid = i.inhrelid
where i.inhparent = 'events'::regclass and c.relname ~ '^events_d[0-9]{8}$' order by 1;

-- name: add_feed_day
select foliot_add_feed_day($1, $2, $3);

-- name: drop_feed_day
select foliot_drop_feed_day($1);

-- name: forget_other_events
-- What is of no known day.
with past as materialized (
    select ctid from events_other where number < $1 limit $2 for update skip locked
)
delete from events_other where ctid = any(array(select ctid from past)) returning 1;

-- name: ended_writers
select writer from event_writers where foliot_writer_ended(writer);

-- name: forget_writers
-- Of those that had ended before this statement, whose batches are all gone.
delete from event_writers w
where writer = any($1::int[]) and not exists (select from events where events.writer = w.writer);

-- name: lose_workers
update workers set lost = true where until <= $1 and not lost
returning id, namespace, name, seen, (select count(*) from leases where leases.worker = workers.id);

-- name: lose_nodes
-- A number that was given back has 0 as its end.
update nodes set lost = true where until <= $1 and until > 0 and not lost returning number, name, seen;

-- name: depths
-- All rows of the tallies are read: they are few.
select lane_id, status, sum(jobs)::bigint, count(*) from tallies group by lane_id, status;

-- name: counts
select t.status, sum(t.jobs)::bigint from tallies t
where t.lane_id = any(array(select lane_id from lanes where namespace = $1)) group by t.status;

-- name: fold_tallies
-- Up to $1 rows become one for each lane and status; how many they were, and are. Those that somebody else folds are stepped over.
with found as materialized (select ctid as spot from tallies limit $1 for update skip locked),
gone as (delete from tallies where ctid = any(array(select spot from found)) returning lane_id, status, jobs),
folded as (
    insert into tallies (lane_id, status, jobs)
    select lane_id, status, sum(jobs) from gone group by lane_id, status having sum(jobs) <> 0
    returning 1
)
select (select count(*) from found), (select count(*) from folded);
