-- Jobs that depend on jobs. An edge is done once its parent's end was carried on to its child; until then it is counted in
-- the child's row. Tie 1 is domain.job's CHILDREN. For JSON see jobs.sql, for VALUES changes.sql.

-- name: standing_of
-- Those of these jobs that there are: (id, end state, null where it is live), as JSON.
SELECT group_concat(json_array(id, state)) FROM (
    SELECT id, NULL AS state FROM waiting WHERE id IN (SELECT value FROM json_each(?1))
    UNION ALL SELECT id, NULL FROM ready WHERE id IN (SELECT value FROM json_each(?1))
    UNION ALL SELECT id, NULL FROM leases WHERE id IN (SELECT value FROM json_each(?1))
    UNION ALL SELECT id, state FROM history WHERE id IN (SELECT value FROM json_each(?1))
);

-- name: tie_waiting
UPDATE waiting SET ties = ties | 1 WHERE id IN (SELECT value FROM json_each(?));

-- name: tie_ready
UPDATE ready SET ties = ties | 1 WHERE id IN (SELECT value FROM json_each(?));

-- name: tie_leases
UPDATE leases SET ties = ties | 1 WHERE id IN (SELECT value FROM json_each(?));

-- name: insert_edge
INSERT INTO edges (parent, child, on_end, done) VALUES (?, ?, ?, ?);

-- name: put_release
INSERT INTO releases (parent, state) VALUES (?, ?) ON CONFLICT DO NOTHING;

-- name: take_releases
DELETE FROM releases WHERE parent IN (SELECT value FROM json_each(?)) RETURNING parent;

-- name: reopen_edge
WITH again (parent, child) AS (
    VALUES (?, ?)
)
UPDATE edges SET done = 0 FROM again AS m WHERE edges.parent = m.parent AND edges.child = m.child;

-- name: open_edges
-- Edges from ended parents that are not done, so many at most: (parent, child, on, the parent's end state), as JSON.
SELECT group_concat(json_array(parent, child, on_end, state)) FROM (
    SELECT e.parent, e.child, e.on_end, r.state
    FROM releases AS r CROSS JOIN edges AS e ON e.parent = r.parent AND e.done = 0 ORDER BY r.parent LIMIT ?
);

-- name: finish_edge
WITH told (parent, child) AS (
    VALUES (?, ?)
)
UPDATE edges SET done = 1 FROM told AS m WHERE edges.parent = m.parent AND edges.child = m.child;

-- name: finish_edges_to
UPDATE edges SET done = 1 WHERE done = 0 AND child IN (SELECT value FROM json_each(?));

-- name: count_parents
-- So many edges of a child that still waits are not done.
WITH counts (child, parents) AS (
    VALUES (?, ?)
)
UPDATE waiting SET parents = m.parents, version = version + 1 FROM counts AS m WHERE waiting.id = m.child;

-- name: finish_releases
-- The first so many whose end has reached all children.
DELETE FROM releases WHERE parent IN (
    SELECT parent FROM releases AS r
    WHERE NOT EXISTS (SELECT 1 FROM edges AS e WHERE e.parent = r.parent AND e.done = 0) LIMIT ?
);

-- name: any_release
SELECT EXISTS (SELECT 1 FROM releases);

-- name: edges_of
-- To and from these jobs, so many at most: (parent, child, on, whether it is done), as JSON.
SELECT group_concat(json_array(parent, child, on_end, done)) FROM (
    SELECT parent, child, on_end, done FROM edges WHERE parent IN (SELECT value FROM json_each(?1))
    UNION
    SELECT parent, child, on_end, done FROM edges WHERE child IN (SELECT value FROM json_each(?1))
    LIMIT ?2
);

-- name: upstream_of
-- Row by row: a result may be large. One longer than ?2 is null, and the last column tells so.
SELECT e.child, h.id, j.name, h.state, iif(length(h.result) > ?2, NULL, h.result), ifnull(length(h.result) > ?2, 0)
FROM json_each(?1) AS k CROSS JOIN edges AS e ON e.child = k.value CROSS JOIN history AS h ON h.id = e.parent
CROSS JOIN jobs AS j ON j.id = h.id;

-- name: forget_edges
DELETE FROM edges WHERE child IN (SELECT value FROM json_each(?));
