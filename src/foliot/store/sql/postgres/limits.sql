-- Concurrency keys. A row of `ready` or `leases` with a key holds one of its tokens; rows enter `ready` with a key only here, under
-- the lock of the key's row. `offset 0`: see changes.sql.

-- name: limits_by_name
select l.limit_id, l.namespace, l.key, l.most from unnest($1::text[], $2::text[]) as u (namespace, key)
cross join lateral (select * from limits where limits.namespace = u.namespace and limits.key = u.key offset 0) l;

-- name: insert_limits
-- A look first: an insert that conflicts uses up a number.
insert into limits (namespace, key, most)
select u.namespace, u.key, u.most from unnest($1::text[], $2::text[], $3::int[]) as u (namespace, key, most)
where not exists (select from limits l where l.namespace = u.namespace and l.key = u.key)
on conflict do nothing;

-- name: change_limit
update limits set most = $2 where limit_id = $1;

-- name: lock_limits
-- In the order given. Who has them may count their tokens, in a later statement.
select l.limit_id, l.most from unnest($1::int[]) as u (limit_id)
cross join lateral (select limit_id, most from limits where limits.limit_id = u.limit_id for no key update) l;

-- name: give_tokens
-- What is free of each key ($1, of which there are $2) for those that wait, by rank. Counted only as far as it matters.
with free as materialized (
    select u.limit_id,
        u.most - (select count(*) from (select from ready where ready.limit_id = u.limit_id limit u.most) r)
        - (select count(*) from (select from leases where leases.limit_id = u.limit_id limit u.most) l) as count
    from unnest($1::int[], $2::int[]) as u (limit_id, most)
),
found as materialized (
    select w.* from free f
    cross join lateral (
        select * from waiting where for_key and waiting.limit_id = f.limit_id
        order by waiting.rank, waiting.id limit greatest(f.count, 0)
        for update
    ) w
),
gone as (delete from waiting where id = any(array(select id from found))),
moved as (
    insert into ready (id, due, rank, deadline, since, lane_id, attempt, counted, tries_left, lost, version, priority, limit_id,
        ties)
    select id, due, rank, deadline, $3, lane_id, attempt, counted, tries_left, lost, version + 1, priority, limit_id, ties
    from found
)
select id, lane_id, rank from found;

-- name: limits
-- By name, after $2, up to $4; of those in $3 only, where it is given. Counts end at $5; up to $6 holders and waiters are named.
with chosen as materialized (
    (select * from limits where $3::text[] is null and namespace = $1 and key > $2 order by key limit $4)
    union all
    (select l.* from unnest($3::text[]) as u (key)
        cross join lateral (select * from limits where namespace = $1 and limits.key = u.key and limits.key > $2 offset 0) l
        order by l.key limit $4)
)
select c.limit_id, c.key, c.most,
    least($5, (select count(*) from (select from ready where limit_id = c.limit_id limit $5) r)
        + (select count(*) from (select from leases where limit_id = c.limit_id limit $5) l)) as held,
    (select count(*) from (select from waiting where for_key and limit_id = c.limit_id order by rank, id limit $5) w) as waiting,
    array(select id from (
        (select id from leases where limit_id = c.limit_id limit $6)
        union all (select id from ready where limit_id = c.limit_id limit $6)) h limit $6) as holders,
    array(select id from waiting where for_key and limit_id = c.limit_id order by rank, id limit $6) as waiters
from chosen c order by c.key;

-- name: crowded_limits
-- Those after $2. Steps from key to key through the index of what waits.
with recursive crowded as (
    (select limit_id from waiting where for_key and limit_id > $2 order by limit_id, rank, id limit 1)
    union all
    select (select w.limit_id from waiting w where w.for_key and w.limit_id > c.limit_id
        order by w.limit_id, w.rank, w.id limit 1)
    from crowded c where c.limit_id is not null
)
select limit_id from crowded where limit_id is not null limit $1;
