-- Concurrency keys and unique keys. A token is being ready or leased. The order of those that wait for one is that of
-- domain.rank: the higher priority, then the earlier due time. For JSON see jobs.sql, for VALUES changes.sql.

-- name: limits_named
-- (key, number, limit) of those of these keys that are known.
SELECT key, id, most FROM limits WHERE namespace = ? AND key IN (SELECT value FROM json_each(?));

-- name: put_limit
INSERT INTO limits (namespace, key, most) VALUES (?, ?, ?)
ON CONFLICT (namespace, key) DO UPDATE SET most = excluded.most WHERE most <> excluded.most;

-- name: free_tokens
-- Of these concurrency keys those that have waiters: (number, how many more may be ready or leased), as JSON.
SELECT group_concat(json_array(
    m.id,
    m.most - (SELECT count(*) FROM ready WHERE limit_id = m.id) - (SELECT count(*) FROM leases WHERE limit_id = m.id)))
FROM json_each(?) AS k CROSS JOIN limits AS m ON m.id = k.value
WHERE EXISTS (SELECT 1 FROM waiting WHERE limit_id = m.id AND for_key = 1);

-- name: first_waiters
-- The first of those that wait for a token of each of these keys, so many of each at most, as JSON.
SELECT group_concat(found) FROM (
    SELECT (
        SELECT group_concat(json_array(
            id, lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since,
            limit_id, ties, hold, parents, for_key))
        FROM (
            SELECT * FROM waiting WHERE limit_id = k.value AND for_key = 1 ORDER BY priority DESC, due, id LIMIT ?2
        )
    ) AS found
    FROM json_each(?1) AS k
);

-- name: crowded_limits
-- Those after ?2. One index look-up for each key that has waiters, however many those are; as JSON.
WITH RECURSIVE crowded (id) AS (
    SELECT min(limit_id) FROM waiting WHERE for_key = 1 AND limit_id > ?2
    UNION ALL
    SELECT (SELECT min(limit_id) FROM waiting WHERE for_key = 1 AND limit_id > crowded.id)
    FROM crowded WHERE id IS NOT NULL
)
SELECT group_concat(json_array(id)) FROM (SELECT id FROM crowded WHERE id IS NOT NULL LIMIT ?1);

-- name: limits_after
-- By name, those after ?2, so many at most: (number, key, limit), as JSON.
SELECT group_concat(line) FROM (
    SELECT json_array(id, key, most) AS line FROM limits WHERE namespace = ?1 AND key > ?2 ORDER BY key LIMIT ?3
);

-- name: limits_among
-- By name, those of these keys: (number, key, limit), as JSON.
SELECT group_concat(line) FROM (
    SELECT json_array(id, key, most) AS line FROM limits
    WHERE namespace = ?1 AND key > ?2 AND key IN (SELECT value FROM json_each(?4)) ORDER BY key LIMIT ?3
);

-- name: crowd_of
-- Of each of these keys: (number, how many hold a token, how many wait for one, both ending at ?2, the first ?3 that hold
-- and that wait), as JSON.
SELECT group_concat(json_array(
    k.value,
    (SELECT count(*) FROM (
        SELECT 1 FROM leases WHERE limit_id = k.value UNION ALL SELECT 1 FROM ready WHERE limit_id = k.value LIMIT ?2
    )),
    (SELECT count(*) FROM (SELECT 1 FROM waiting WHERE limit_id = k.value AND for_key = 1 LIMIT ?2)),
    json((SELECT json_group_array(id) FROM (
        SELECT id FROM leases WHERE limit_id = k.value UNION ALL SELECT id FROM ready WHERE limit_id = k.value LIMIT ?3
    ))),
    json((SELECT json_group_array(id) FROM (
        SELECT id FROM waiting WHERE limit_id = k.value AND for_key = 1 ORDER BY priority DESC, due, id LIMIT ?3
    )))
))
FROM json_each(?1) AS k;

-- name: unique_keys_held
-- Those of these keys whose job waits or is ready, and still has it: (key, id, the client's name for it).
SELECT u.key, u.id, j.name
FROM unique_keys AS u CROSS JOIN jobs AS j ON j.id = u.id AND j.unique_key = u.key
WHERE u.namespace = ? AND u.key IN (SELECT value FROM json_each(?))
    AND (EXISTS (SELECT 1 FROM waiting WHERE id = u.id) OR EXISTS (SELECT 1 FROM ready WHERE id = u.id));

-- name: put_unique_key
-- A job's, unless another one that waits or is ready has it.
INSERT INTO unique_keys (namespace, key, id) VALUES (?, ?, ?)
ON CONFLICT (namespace, key) DO UPDATE SET id = excluded.id
WHERE NOT EXISTS (
    SELECT 1 FROM jobs AS j WHERE j.id = unique_keys.id AND j.unique_key = unique_keys.key
    AND (EXISTS (SELECT 1 FROM waiting WHERE id = j.id) OR EXISTS (SELECT 1 FROM ready WHERE id = j.id))
);

-- name: forget_unique_keys
WITH gone (namespace, key, id) AS (
    VALUES (?, ?, ?)
)
DELETE FROM unique_keys WHERE (namespace, key, id) IN (SELECT namespace, key, id FROM gone);
