-- Schema, nodes, counts, and taking away what is past.

-- name: make_schema_version
CREATE TABLE IF NOT EXISTS schema_version (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied INTEGER NOT NULL);

-- name: applied_migrations
SELECT number FROM schema_version;

-- name: note_migration
INSERT INTO schema_version (number, name, applied) VALUES (?, ?, ?);

-- name: all_nodes
SELECT number, name, version, since, seen, until, floor FROM nodes ORDER BY number;

-- name: put_node
REPLACE INTO nodes (number, name, version, since, seen, until, floor) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: beat_node
-- Prolong a number that is still this holder's.
UPDATE nodes SET seen = ?3, until = max(until, ?4), floor = max(floor, ?5), lost = 0 WHERE number = ?1 AND since = ?2
RETURNING number;

-- name: release_node
UPDATE nodes SET until = 0, floor = max(floor, ?3) WHERE number = ?1 AND since = ?2;

-- name: past_jobs
-- Ended jobs made before an id and ended before a time, with what names them: (id, namespace, name, unique key, lane,
-- state), as JSON.
SELECT group_concat(line) FROM (
    SELECT json_array(h.id, l.namespace, j.name, j.unique_key, h.lane_id, h.state) AS line
    FROM history AS h CROSS JOIN jobs AS j ON j.id = h.id CROSS JOIN lanes AS l ON l.id = j.lane_id
    WHERE h.id < ? AND h.ended < ? ORDER BY h.id LIMIT ?
);

-- name: forget_logs
-- The oldest lines of these jobs, so many at most.
DELETE FROM job_logs WHERE (id, log_id) IN (
    SELECT g.id, g.log_id FROM json_each(?) AS k CROSS JOIN job_logs AS g ON g.id = k.value LIMIT ?
);

-- name: forget_attempts
DELETE FROM attempts WHERE id IN (SELECT value FROM json_each(?));

-- name: forget_job_keys
WITH gone (namespace, name, id) AS (
    VALUES (?, ?, ?)
)
DELETE FROM job_keys WHERE (namespace, name, id) IN (SELECT namespace, name, id FROM gone);

-- name: forget_job
DELETE FROM jobs WHERE id IN (SELECT value FROM json_each(?));

-- name: forget_request_keys
DELETE FROM request_keys WHERE (namespace, key) IN (
    SELECT namespace, key FROM request_keys WHERE created <= ? ORDER BY created LIMIT ?
);

-- name: forget_ledger
DELETE FROM ledger WHERE (schedule, due, until) IN (
    SELECT schedule, due, until FROM ledger WHERE verdict IS NOT NULL AND decided < ? ORDER BY decided LIMIT ?
);

-- name: counts
SELECT c.status, sum(c.jobs) FROM counters AS c JOIN lanes AS l ON l.id = c.lane_id WHERE l.namespace = ? GROUP BY c.status;
