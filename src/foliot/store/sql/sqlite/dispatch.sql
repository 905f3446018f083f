-- From waiting to a worker, and back where a worker or a deadline is missed.

-- name: due_until
-- The earliest jobs that only wait for their time, as JSON.
SELECT group_concat(line) FROM (
    SELECT json_array(due, id) AS line FROM waiting WHERE hold = 0 AND parents = 0 AND for_key = 0 AND due <= ?
    ORDER BY due, id LIMIT ?
);

-- name: next_due
SELECT due, id FROM waiting WHERE hold = 0 AND parents = 0 AND for_key = 0 ORDER BY due, id LIMIT 1;

-- name: admissible
-- Those of these whose time has come by now, as JSON.
SELECT group_concat(json_array(
    id, lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since,
    limit_id, ties, hold, parents, for_key))
FROM waiting WHERE id IN (SELECT value FROM json_each(?)) AND NOT hold AND NOT parents AND NOT for_key AND due <= ?;

-- name: occupied_lanes
-- One index look-up for each lane that has ready jobs, however many those are.
WITH RECURSIVE occupied (lane_id) AS (
    SELECT min(lane_id) FROM ready
    UNION ALL
    SELECT (SELECT min(lane_id) FROM ready WHERE lane_id > occupied.lane_id) FROM occupied WHERE lane_id IS NOT NULL
)
SELECT lane_id FROM occupied WHERE lane_id IS NOT NULL;

-- name: heads
-- The first ranks of each of these lanes: (lane, ranks), as JSON.
SELECT group_concat(json_array(k.value, json((
    SELECT json_group_array(rank) FROM (SELECT rank FROM ready WHERE lane_id = k.value ORDER BY rank, id LIMIT ?2)
))))
FROM json_each(?1) AS k;

-- name: workers_able
-- Those of these that may be given work: their lease runs, and they are not draining.
SELECT id FROM workers WHERE id IN (SELECT value FROM json_each(?)) AND until > ? AND NOT draining;

-- name: pop
-- The first of each of these lanes, so many of each at most: ready row and wide row one after the other, as JSON; a
-- payload longer than ?3 is null.
SELECT group_concat(popped) FROM (
    SELECT (
        SELECT group_concat(json_array(
            r.id, r.lane_id, r.priority, r.due, r.deadline, r.attempt, r.counted, r.tries_left, r.lost, r.version, r.since,
            r.limit_id, r.ties, r.rank,
            j.id, j.lane_id, j.name, j.priority, j.due, j.created, j.retry, j.timeout, j.deadline, j.tags, j.owner,
            j.schedule_id, j.limit_key, j.unique_key, j.fair_key, j.secret_fields, j.notify, j.trace,
            iif(length(j.payload) > ?3, NULL, j.payload)))
        FROM (SELECT * FROM ready WHERE lane_id = k.value ORDER BY rank, id LIMIT ?2) AS r
        CROSS JOIN jobs AS j ON j.id = r.id
    ) AS popped
    FROM json_each(?1) AS k
);

-- name: leases_of_worker
-- As JSON.
SELECT group_concat(json_array(
    id, lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since,
    limit_id, ties, worker, nonce, claimed, check_at, started, cancel_asked, progress))
FROM leases WHERE worker = ?;

-- name: leasing_workers
-- Each worker that holds something, one index look-up each, and whether its own lease still runs.
WITH RECURSIVE holder (worker) AS (
    SELECT min(worker) FROM leases
    UNION ALL
    SELECT (SELECT min(worker) FROM leases WHERE worker > holder.worker) FROM holder WHERE worker IS NOT NULL
)
SELECT worker, EXISTS (SELECT 1 FROM workers WHERE id = worker AND until > ?) FROM holder WHERE worker IS NOT NULL;

-- name: overdue_leases
-- A worker's leases up to a time at which a node must step in.
SELECT id FROM leases WHERE worker = ? AND check_at <= ? ORDER BY check_at LIMIT ?;

-- name: expired_waiting
SELECT deadline, id FROM waiting WHERE deadline IS NOT NULL AND deadline <= ? ORDER BY deadline LIMIT ?;

-- name: expired_ready
SELECT deadline, id FROM ready WHERE deadline IS NOT NULL AND deadline <= ? ORDER BY deadline LIMIT ?;

-- name: next_deadline
SELECT min(deadline) FROM (
    SELECT min(deadline) AS deadline FROM waiting WHERE deadline IS NOT NULL
    UNION ALL
    SELECT min(deadline) FROM ready WHERE deadline IS NOT NULL
);
