-- What those who watch keep and ask. For JSON see jobs.sql, for VALUES changes.sql.

-- name: definition
SELECT kind, namespace, name, body, created, version FROM definitions WHERE kind = ? AND namespace = ? AND name = ?;

-- name: put_definition
REPLACE INTO definitions (kind, namespace, name, body, created, version) VALUES (?, ?, ?, ?, ?, ?);

-- name: definitions
SELECT kind, namespace, name, body, created, version FROM definitions
WHERE (?1 IS NULL OR kind = ?1) AND (?2 IS NULL OR namespace = ?2) ORDER BY kind, namespace, name;

-- name: remove_definition
DELETE FROM definitions WHERE kind = ? AND namespace = ? AND name = ? RETURNING name;

-- name: take_post
-- Of a node (?2) until ?4; whoever has it keeps it until ?3 is past its end.
INSERT INTO posts (name, node, until, position) VALUES (?1, ?2, ?4, '')
ON CONFLICT (name) DO UPDATE SET node = excluded.node, until = excluded.until
WHERE posts.node = excluded.node OR posts.until <= ?3
RETURNING name, node, until, position;

-- name: leave_post
UPDATE posts SET until = 0 WHERE name = ? AND node = ?;

-- name: move_post
UPDATE posts SET position = ?4 WHERE name = ?1 AND node = ?2 AND position = ?3 RETURNING name;

-- name: add_delivery
-- One whose id is there is the same one.
INSERT INTO deliveries (id, namespace, webhook, event_id, event_type, body, created, state, attempts, next_try,
    last_status, last_error, changed)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5), ?) ON CONFLICT DO NOTHING;

-- name: add_incident
-- Where no other of its kind is open.
INSERT INTO incidents (id, namespace, rule, subject, body, opened, resolved, notify_at, version)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id;

-- name: change_incident
-- Where it stands at the version before the one given, and no other of its kind is open.
UPDATE OR IGNORE incidents
SET rule = ?3, subject = ?4, body = ?5, opened = ?6, resolved = ?7, notify_at = ?8, version = ?9
WHERE id = ?1 AND namespace = ?2 AND version = ?9 - 1 RETURNING id;

-- name: open_incidents
SELECT id, namespace, rule, subject, body, opened, resolved, notify_at, version FROM incidents
WHERE resolved IS NULL AND (?1 IS NULL OR namespace = ?1) ORDER BY opened, id;

-- name: incidents
SELECT id, namespace, rule, subject, body, opened, resolved, notify_at, version FROM incidents
WHERE namespace = ? AND id < ? ORDER BY id DESC LIMIT ?;

-- name: incident
SELECT id, namespace, rule, subject, body, opened, resolved, notify_at, version FROM incidents
WHERE namespace = ? AND id = ?;

-- name: incidents_to_notify
SELECT id, namespace, rule, subject, body, opened, resolved, notify_at, version FROM incidents
WHERE notify_at IS NOT NULL AND notify_at <= ? ORDER BY notify_at, id LIMIT ?;

-- name: hold_notices
UPDATE incidents SET notify_at = ?2, version = version + 1 WHERE id IN (SELECT value FROM json_each(?1));

-- name: deliveries_to_try
SELECT id, namespace, webhook, event_id, event_type, body, created, state, attempts, next_try, last_status, last_error,
    changed
FROM deliveries WHERE next_try IS NOT NULL AND next_try <= ? ORDER BY next_try, id LIMIT ?;

-- name: hold_deliveries
UPDATE deliveries SET next_try = ?2 WHERE id IN (SELECT value FROM json_each(?1));

-- name: finish_delivery
WITH tries (id, state, attempts, next_try, last_status, last_error, changed) AS (
    VALUES (?, ?, ?, nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5), ?)
)
UPDATE deliveries SET state = m.state, attempts = m.attempts, next_try = m.next_try, last_status = m.last_status,
    last_error = m.last_error, changed = m.changed
FROM tries AS m WHERE deliveries.id = m.id;

-- name: next_delivery
SELECT min(next_try) FROM deliveries WHERE next_try IS NOT NULL;

-- name: deliveries_in_state
SELECT id, namespace, webhook, event_id, event_type, body, created, state, attempts, next_try, last_status, last_error,
    changed
FROM deliveries WHERE namespace = ? AND webhook = ? AND state = ? AND id < ? ORDER BY id DESC LIMIT ?;

-- name: delivery
SELECT id, namespace, webhook, event_id, event_type, body, created, state, attempts, next_try, last_status, last_error,
    changed
FROM deliveries WHERE namespace = ?1 AND webhook = ?2 AND id = ?3;

-- name: put_lateness
REPLACE INTO lateness (minute, node, namespace, queue, job_type, counts) VALUES (?, ?, ?, ?, ?, ?);

-- name: lateness
SELECT minute, node, namespace, queue, job_type, counts FROM lateness
WHERE minute >= ?1 AND minute < ?2 ORDER BY minute, namespace, queue, job_type, node;

-- name: lateness_of
SELECT minute, node, namespace, queue, job_type, counts FROM lateness
WHERE namespace = ?3 AND minute >= ?1 AND minute < ?2 ORDER BY minute, queue, job_type, node;

-- name: lanes_in_order
-- The lanes in which jobs of these may stand: (own lane, lane), as JSON.
SELECT group_concat(json_array(base, id)) FROM lanes
WHERE base IS NOT NULL AND base IN (SELECT value FROM json_each(?));

-- name: first_ready
-- Of each stretch (own lane, lane, from a rank on, up to below another) the first ?2: (own lane, id, due), as JSON.
SELECT group_concat(found) FROM (
    SELECT (
        SELECT group_concat(json_array(json_extract(k.value, '$[0]'), id, due)) FROM (
            SELECT id, due FROM ready
            WHERE lane_id = json_extract(k.value, '$[1]')
                AND rank >= json_extract(k.value, '$[2]') AND rank < json_extract(k.value, '$[3]')
            ORDER BY rank, id LIMIT ?2
        )
    ) AS found
    FROM json_each(?1) AS k
);

-- name: first_for_key
-- Of each of these lanes the first ?2 that wait for a token and were due before ?3: (lane, id, due), as JSON.
SELECT group_concat(found) FROM (
    SELECT (
        SELECT group_concat(json_array(lane_id, id, due)) FROM (
            SELECT lane_id, id, due FROM waiting WHERE for_key = 1 AND lane_id = k.value AND due < ?3
            ORDER BY due, id LIMIT ?2
        )
    ) AS found
    FROM json_each(?1) AS k
);

-- name: overruns
-- One look at the leases: there are as many as jobs run.
SELECT id, lane_id, coalesce(started, claimed) AS begun FROM leases WHERE begun < ? ORDER BY begun, id LIMIT ?;

-- name: database_file
-- Its path; empty for one in memory.
SELECT file FROM pragma_database_list WHERE name = 'main';

-- name: pages
-- All, and those that nothing is in.
SELECT page_count, freelist_count FROM pragma_page_count, pragma_freelist_count;

-- name: forget_incidents
DELETE FROM incidents WHERE id IN (
    SELECT id FROM incidents WHERE resolved IS NOT NULL AND resolved < ? ORDER BY resolved LIMIT ?
);

-- name: forget_deliveries
DELETE FROM deliveries WHERE id IN (
    SELECT id FROM deliveries WHERE state <> 'pending' AND changed < ? ORDER BY changed LIMIT ?
);

-- name: forget_lateness
DELETE FROM lateness WHERE (namespace, minute, queue, job_type, node) IN (
    SELECT namespace, minute, queue, job_type, node FROM lateness WHERE minute < ? ORDER BY minute LIMIT ?
);
