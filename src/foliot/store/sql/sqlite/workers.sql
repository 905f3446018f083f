-- Workers.

-- name: insert_worker
INSERT INTO workers (id, namespace, name, queues, job_types, resources, labels, since, seen, until, draining)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: beat_worker
-- Prolong a lease that still runs; calls may overlap, so it is never shortened.
UPDATE workers SET seen = max(seen, ?2), until = max(until, ?3)
WHERE id = ?1 AND until > ?2 AND (?4 IS NULL OR namespace = ?4)
RETURNING id, namespace, name, queues, job_types, resources, labels, since, seen, until, draining;

-- name: leases_to_stop
SELECT id, lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since,
    limit_id, ties, worker, nonce, claimed, check_at, started, cancel_asked, progress
FROM leases WHERE worker = ? AND cancel_asked IS NOT NULL;

-- name: drain_worker
UPDATE workers SET draining = 1 WHERE id = ? RETURNING id;

-- name: remove_worker
DELETE FROM workers WHERE id = ? RETURNING id;

-- name: all_workers
SELECT id, namespace, name, queues, job_types, resources, labels, since, seen, until, draining
FROM workers WHERE ?1 IS NULL OR namespace = ?1 ORDER BY id;

-- name: forget_workers
DELETE FROM workers WHERE until < ? AND NOT EXISTS (SELECT 1 FROM leases WHERE worker = workers.id);
