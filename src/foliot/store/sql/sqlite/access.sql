-- Who is who: keys, sessions, namespaces, shared rates, the audit log.

-- name: add_key
INSERT INTO api_keys (key_id, namespace, name, role, queues, job_types, hash, old_hash, old_until, created, created_by,
    expires, last_used, revoked)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
RETURNING key_id;

-- name: api_keys
SELECT key_id, namespace, name, role, queues, job_types, hash, old_hash, old_until, created, created_by, expires,
    last_used, revoked
FROM api_keys WHERE key_id IN (SELECT value FROM json_each(?));

-- name: keys_of_all
SELECT key_id, namespace, name, role, queues, job_types, hash, old_hash, old_until, created, created_by, expires,
    last_used, revoked
FROM api_keys WHERE key_id > ?1 ORDER BY key_id LIMIT ?2;

-- name: keys_of_namespace
SELECT key_id, namespace, name, role, queues, job_types, hash, old_hash, old_until, created, created_by, expires,
    last_used, revoked
FROM api_keys WHERE namespace = ?3 AND key_id > ?1 ORDER BY key_id LIMIT ?2;

-- name: change_key
UPDATE api_keys SET hash = ?2, old_hash = ?3, old_until = ?4, expires = ?5, revoked = ?6
WHERE key_id = ?1 AND revoked IS NULL
RETURNING key_id;

-- name: touch_key
UPDATE api_keys SET last_used = ?2 WHERE key_id = ?1 AND (last_used IS NULL OR last_used < ?2);

-- name: add_session
INSERT INTO sessions (hash, until, once, key_id, caller, data) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: session
SELECT hash, until, once, caller, data FROM sessions WHERE hash = ? AND until > ?;

-- name: use_session
-- One that is good once is his who deletes it.
DELETE FROM sessions WHERE hash = ? AND once = 1 RETURNING hash;

-- name: end_session
DELETE FROM sessions WHERE hash = ?;

-- name: end_sessions_of
DELETE FROM sessions WHERE key_id = ?;

-- name: forget_sessions
DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE until <= ? ORDER BY until LIMIT ?);

-- name: put_namespace
REPLACE INTO namespaces (name, created, version, quotas) VALUES (?, ?, ?, ?);

-- name: namespaces
SELECT name, created, version, quotas FROM namespaces ORDER BY name;

-- name: namespaces_named
SELECT name, created, version, quotas FROM namespaces WHERE name IN (SELECT value FROM json_each(?)) ORDER BY name;

-- name: remove_namespace
DELETE FROM namespaces WHERE name = ?1
AND NOT EXISTS (SELECT 1 FROM lanes WHERE namespace = ?1)
AND NOT EXISTS (SELECT 1 FROM schedules WHERE namespace = ?1)
AND NOT EXISTS (SELECT 1 FROM api_keys WHERE namespace = ?1 AND revoked IS NULL)
AND NOT EXISTS (SELECT 1 FROM definitions WHERE namespace = ?1)
RETURNING name;

-- name: meter
SELECT next_beat FROM meters WHERE name = ?;

-- name: move_meter
REPLACE INTO meters (name, next_beat) VALUES (?, ?);

-- name: forget_meters
-- One whose beat is past is as good as new.
DELETE FROM meters WHERE name IN (SELECT name FROM meters WHERE next_beat < ? LIMIT ?);

-- name: live_jobs
-- Those under other statuses than these, as JSON.
SELECT coalesce(sum(c.jobs), 0) FROM lanes AS l CROSS JOIN counters AS c ON c.lane_id = l.id
WHERE l.namespace = ? AND c.status NOT IN (SELECT value FROM json_each(?));

-- name: last_audit
SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1;

-- name: append_audit
INSERT INTO audit (seq, time, namespace, actor, key_id, action, object, source, request_id, outcome, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: audit_newest
SELECT seq, time, namespace, actor, key_id, action, object, source, request_id, outcome, hash
FROM audit WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2;

-- name: audit_newest_of
SELECT seq, time, namespace, actor, key_id, action, object, source, request_id, outcome, hash
FROM audit WHERE namespace = ?3 AND seq < ?1 ORDER BY seq DESC LIMIT ?2;

-- name: audit_oldest
SELECT seq, time, namespace, actor, key_id, action, object, source, request_id, outcome, hash
FROM audit WHERE seq > ?1 ORDER BY seq LIMIT ?2;

-- name: audit_oldest_of
SELECT seq, time, namespace, actor, key_id, action, object, source, request_id, outcome, hash
FROM audit WHERE namespace = ?3 AND seq > ?1 ORDER BY seq LIMIT ?2;
