-- Jobs that depend on jobs. `ties & 1`: others depend on it. `child + 0`: by the index of children. `offset 0`: see changes.sql.

-- name: note_children
-- Note on live jobs that others depend on them, and lock them, so that none ends before this transaction is done and their end,
-- decided by their own row, knows. Those found, with the place in its lane where one is ready: it is replaced, because a
-- claim counts on a ready row to stay where it was found. One that moves meanwhile is not found here.
with noted as materialized (
    select w.id, null::int as lane_id, null::bigint as rank from unnest($1::bigint[]) as u (id)
    cross join lateral (select id from waiting where waiting.id = u.id and ties & 1 <> 0 for key share) w
    union all
    select r.id, r.lane_id, r.rank from unnest($1::bigint[]) as u (id)
    cross join lateral (select id, lane_id, rank from ready where ready.id = u.id and ties & 1 <> 0 for key share) r
    union all
    select l.id, null, null from unnest($1::bigint[]) as u (id)
    cross join lateral (select id from leases where leases.id = u.id and ties & 1 <> 0 for key share) l
),
waits as (update waiting set ties = ties | 1 where id = any($1) and ties & 1 = 0 returning id),
found as materialized (
    select r.spot from unnest($1::bigint[]) as u (id)
    cross join lateral (select ctid as spot from ready where ready.id = u.id and ties & 1 = 0 for update) r
),
taken as (delete from ready where ctid = any(array(select spot from found)) returning *),
put_back as (
    insert into ready (id, due, rank, deadline, since, lane_id, attempt, counted, tries_left, lost, version, priority, limit_id,
        ties)
    select id, due, rank, deadline, since, lane_id, attempt, counted, tries_left, lost, version, priority, limit_id, ties | 1
    from taken
),
runs as (update leases set ties = ties | 1 where id = any($1) and ties & 1 = 0 returning id)
select id, lane_id, rank from noted
union all select id, null, null from waits
union all select id, lane_id, rank from taken
union all select id, null, null from runs;

-- name: ended_states
-- Of each job that is there: how it ended, or null while it lives.
select u.id, r.state from unnest($1::bigint[]) as u (id)
cross join lateral (select state from job_rows where job_rows.id = u.id offset 0) r;

-- name: insert_edges
insert into edges (parent, child, "on")
select parent, child, "on" from unnest($1::bigint[], $2::bigint[], $3::smallint[]) as u (parent, child, "on")
on conflict do nothing;

-- name: insert_releases
-- An update where there is one: it waits for whoever carries that one on, who does not see our edges.
insert into releases (parent, state) select parent, state from unnest($1::bigint[], $2::smallint[]) as u (parent, state)
on conflict (parent) do update set state = excluded.state, reached = 0;

-- name: take_back_releases
-- Ends that count no more, since these jobs run once more. What somebody carries on just now is left to him.
with found as materialized (
    select r.parent from unnest($1::bigint[]) as u (parent)
    cross join lateral (select parent from releases where releases.parent = u.parent for update skip locked) r
)
delete from releases where parent = any(array(select parent from found)) returning parent;

-- name: close_edges
-- Children that run once more wait for none of their parents, but for those of `open_edges`.
with found as materialized (
    select e.spot from unnest($1::bigint[]) as u (child)
    cross join lateral (select ctid as spot from edges where edges.child + 0 = u.child and not done for update) e
)
update edges set done = true where ctid = any(array(select spot from found));

-- name: open_edges
with found as materialized (
    select e.spot from unnest($1::bigint[], $2::bigint[]) as u (parent, child)
    cross join lateral (
        select ctid as spot from edges where edges.parent = u.parent and edges.child = u.child and done for update
    ) e
)
update edges set done = false where ctid = any(array(select spot from found));

-- name: take_releases
-- Ends that nobody else carries on just now. The row of history is locked, so that the parent can not run once more meanwhile;
-- where it is not there, it does already.
with taken as materialized (
    select parent, reached, state from releases order by parent limit $1 for update skip locked
)
select t.parent, t.reached, t.state, h.id is not null as there, h.state as ended
from taken t
left join lateral (select id, state from history where history.id = t.parent for key share) h on true;

-- name: tell_children
-- The next edges of parents ($1, each from behind the child in $2), up to $3 of each, are done from now on: those that were marked,
-- then how many were found of each parent. Nobody else marks edges of a parent whose release we hold.
with found as materialized (
    select u.parent, e.child, e.spot from unnest($1::bigint[], $2::bigint[]) as u (parent, reached)
    cross join lateral (
        select child, ctid as spot from edges
        where edges.parent = u.parent and (edges.parent, edges.child) > (u.parent, u.reached) and not done
        order by edges.parent, edges.child limit $3
    ) e
),
marked as (
    update edges set done = true where ctid = any(array(select spot from found)) returning parent, child, "on"
)
select parent, child, "on", null::bigint as count from marked
union all
select parent, max(child), null, count(*) from found group by parent;

-- name: lock_blocked
-- Children that wait for parents, as the rows of `job_rows` have it.
select w.id, 'waiting', w.lane_id, w.priority, w.due, w.deadline, w.attempt, w.counted, w.tries_left, w.lost, w.version,
    w.since, w.limit_id, w.ties, w.hold, w.parents, w.for_key, w.rank, null, null, null, null, null, null, null, null, null,
    null, null, null, null, null
from unnest($1::bigint[]) as u (id)
cross join lateral (select * from waiting where waiting.id = u.id and parents > 0 for update) w;

-- name: still_blocked
select w.id from unnest($1::bigint[]) as u (id)
cross join lateral (select id from waiting where waiting.id = u.id and parents > 0 offset 0) w;

-- name: count_parents
-- One version on: whoever decided by the old count must look again.
update waiting set parents = parents - $2, version = version + 1 where id = any($1::bigint[]);

-- name: go_on_with_releases
update releases set reached = $2 where parent = $1;

-- name: finish_releases
delete from releases where parent = any($1::bigint[]);

-- name: edges
select parent, child, "on", done from (
    (select e.* from unnest($1::bigint[]) as u (id)
        cross join lateral (select * from edges where edges.parent = u.id order by edges.parent, edges.child limit $2) e
        limit $2)
    union
    (select e.* from unnest($1::bigint[]) as u (id)
        cross join lateral (select * from edges where edges.child + 0 = u.id offset 0) e limit $2)
) both_ways order by parent, child limit $2;

-- name: upstream
-- Parents that have ended; a result above $2 characters is left out. `"on" > 0` is always true, and keeps the planner from reading
-- the whole key because it has all that is asked for.
select u.id, j.id, j.name, h.state, case when length(h.result) <= $2 then h.result end,
    coalesce(length(h.result) > $2, false)
from unnest($1::bigint[]) as u (id)
cross join lateral (select parent from edges where edges.child + 0 = u.id and "on" > 0 offset 0) e
cross join lateral (select state, result from history where history.id = e.parent offset 0) h
cross join lateral (select id, name from jobs where jobs.id = e.parent offset 0) j
order by u.id, j.id;
