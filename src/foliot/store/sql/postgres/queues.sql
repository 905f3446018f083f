-- Queues: their rules, how full they are, the order of their jobs. `offset 0`: see changes.sql.

-- name: queues
-- By name, after $2, up to $4; or those in $3, where it is given.
(select queue_id, namespace, name, version, ordered, paused, rules from queues
    where $3::text[] is null and namespace = $1 and name > $2 order by name limit $4)
union all
(select q.queue_id, q.namespace, q.name, q.version, q.ordered, q.paused, q.rules from unnest($3::text[]) as u (name)
    cross join lateral (select * from queues where namespace = $1 and queues.name = u.name offset 0) q
    order by q.name);

-- name: special_queues
select queue_id, namespace, name, version, ordered, paused, rules from queues where special;

-- name: all_held_types
select namespace, job_type from held_types;

-- name: held_types
select job_type from held_types where namespace = $1 order by job_type;

-- name: hold_type
insert into held_types (namespace, job_type) values ($1, $2) on conflict do nothing;

-- name: let_type_go
delete from held_types where namespace = $1 and job_type = $2;

-- name: fence_off_claims
-- Claims under way are waited for; later ones, which take their locks before they look at anything, see what this transaction
-- wrote. Ends wait as well, so that leases can be changed in any order.
lock table leases in share row exclusive mode;

-- name: join_claims
-- As a claim does by itself. Before the locks of queues, so that who fences claims off never waits for one that waits for him.
lock table leases in row exclusive mode;

-- name: lock_queue
select queue_id, namespace, name, version, ordered, paused, rules, next_beat from queues
where namespace = $1 and name = $2 for no key update;

-- name: lock_queue_of_lane
select q.queue_id, q.namespace, q.name, q.version, q.ordered, q.paused, q.rules, q.fair_time
from (select queue_id from lanes where lane_id = $1 offset 0) l
cross join lateral (select * from queues where queues.queue_id = l.queue_id for no key update) q;

-- name: lock_queues
-- In the order given. Who has them may count what runs, in a later statement.
select q.queue_id from unnest($1::int[]) as u (queue_id)
cross join lateral (select queue_id from queues where queues.queue_id = u.queue_id for no key update) q;

-- name: make_queue
insert into queues (namespace, name, paused, rules, special, limited, most) values ($1, $2, $3, $4, $5, $6, $7)
on conflict do nothing
returning queue_id, namespace, name, version, ordered, paused, rules;

-- name: change_queue
update queues
set version = $2, ordered = $3, paused = $4, rules = $5, special = $6, limited = $7, most = $8, next_beat = $9
where queue_id = $1;

-- name: forget_order
delete from shares where queue_id = $1;

-- name: count_leases
-- From now on the leases of a queue's lanes count. Rare, and no index leads to them: all leases are looked at.
update leases set queue_id = $1
where lane_id = any(array(select lane_id from lanes where lanes.queue_id = $1)) and queue_id is distinct from $1;

-- name: count_leases_no_more
update leases set queue_id = null where queue_id = $1;

-- name: crowds
-- What is ready in a queue's lanes, counted up to $2, and since when; what runs in them.
with running as materialized (select lane_id, count(*) as count from leases group by lane_id)
select u.queue_id, w.count, coalesce(r.count, 0)::bigint, w.oldest
from unnest($1::int[]) as u (queue_id)
cross join lateral (select array_agg(lane_id) as lanes from lanes where lanes.queue_id = u.queue_id) l
cross join lateral (
    select count(*) as count, min(due) as oldest
    from (select due from ready where lane_id = any(l.lanes) limit $2) some_ready
) w
cross join lateral (select sum(count) as count from running where lane_id = any(l.lanes)) r;

-- name: rooms
-- What the limits of queues look at, and the database's clock.
select q.queue_id, q.rules, case when q.most is not null then r.count end, q.next_beat,
    (extract(epoch from clock_timestamp()) * 1000000)::bigint
from unnest($1::int[]) as u (queue_id)
cross join lateral (select * from queues where queues.queue_id = u.queue_id offset 0) q
cross join lateral (select count(*) as count from leases where leases.queue_id = q.queue_id and q.most is not null) r;

-- name: charge_rate
update queues set next_beat = $2 where queue_id = $1;

-- name: move_fair_time
-- Only where the order is still that of the lane it was claimed from.
update queues set fair_time = $2 where queue_id = $1 and ordered = $3 and fair_time < $2;

-- name: take_ready
-- Ready jobs of a lane by rank, from a mark on ($2 rank, $3 id), to be put back in another lane; with their fair keys where $5
-- says so. What others hold is stepped over.
with found as materialized (
    select ctid as spot, * from ready
    where ready.lane_id = $1 and (ready.rank, ready.id) >= ($2, $3)
    order by ready.rank, ready.id limit $4
    for update skip locked
),
gone as (delete from ready where ctid = any(array(select spot from found)))
select f.id, f.due, f.rank, f.deadline, f.since, f.lane_id, f.attempt, f.counted, f.tries_left, f.lost, f.version, f.priority,
    f.limit_id, f.ties, coalesce(j.fair_key, j.owner, '')
from found f
left join lateral (select fair_key, owner from jobs where $5 and jobs.id = f.id offset 0) j on true
order by f.rank, f.id;

-- name: shares
select fair_key, "time" from shares where queue_id = $1 and fair_key = any($2::text[]);

-- name: put_shares
insert into shares (queue_id, fair_key, "time")
select $1, fair_key, "time" from unnest($2::text[], $3::bigint[]) as u (fair_key, "time")
on conflict (queue_id, fair_key) do update set "time" = excluded."time";

-- name: refund
update shares set "time" = "time" - $3 where queue_id = $1 and fair_key = $2;

-- name: forget_shares
-- Times that their queue's has passed, a piece at a time, from behind a key ($1, $2): how many were looked at, how many went, and
-- the last key. Looked for apart, and by queue, whose time is read once.
with looked as materialized (
    select queue_id, fair_key from shares where (queue_id, fair_key) > ($1, $2) order by queue_id, fair_key limit $3
),
passed as materialized (
    select s.spot from (
        select l.queue_id, array_agg(l.fair_key) as keys, max(q.fair_time) as fair_time
        from looked l cross join lateral (select fair_time from queues where queues.queue_id = l.queue_id offset 0) q
        group by l.queue_id
    ) q
    cross join lateral (
        select ctid as spot from shares
        where shares.queue_id = q.queue_id and shares.fair_key = any(q.keys) and shares."time" <= q.fair_time
        for update skip locked
    ) s
),
gone as (delete from shares where ctid = any(array(select spot from passed)) returning 1),
last as (select queue_id, fair_key from looked order by queue_id desc, fair_key desc limit 1)
select (select count(*) from looked), (select count(*) from gone), (select queue_id from last), (select fair_key from last);
