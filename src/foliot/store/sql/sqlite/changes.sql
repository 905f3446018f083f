-- Moves of narrow rows. The one writer has checked the row in the same transaction, so that an id is enough. What has a
-- VALUES list is written for many rows in one step: the list stands for as many rows as there are, and a null comes as
-- 0.5, because Python's sqlite3 takes fifteen times as long to hand over None as a number.

-- name: insert_waiting
INSERT INTO waiting (id, lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since,
    limit_id, ties, hold, parents, for_key)
VALUES (?, ?, ?, ?, nullif(?, 0.5), ?, ?, ?, ?, ?, ?, nullif(?, 0.5), ?, ?, ?, ?);

-- name: insert_ready
INSERT INTO ready (id, lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since,
    limit_id, ties, rank)
VALUES (?, ?, ?, ?, nullif(?, 0.5), ?, ?, ?, ?, ?, ?, nullif(?, 0.5), ?, ?);

-- name: insert_lease
INSERT INTO leases (id, lane_id, priority, due, deadline, attempt, counted, tries_left, lost, version, since,
    limit_id, ties, worker, nonce, claimed, check_at, started, cancel_asked, progress)
VALUES (?, ?, ?, ?, nullif(?, 0.5), ?, ?, ?, ?, ?, ?, nullif(?, 0.5), ?, ?, ?, ?, ?, nullif(?, 0.5), nullif(?, 0.5),
    nullif(?, 0.5));

-- name: insert_history
-- The end of a job that had no attempt under way.
INSERT INTO history (id, lane_id, state, reason, attempt, counted, lost, version, due, ended, exit_code, error, result)
VALUES (?, ?, ?, nullif(?, 0.5), ?, ?, ?, ?, ?, ?, nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5));

-- name: insert_attempt
INSERT INTO attempts (id, attempt, status, worker, nonce, due, claimed, started, ended, error, exit_code)
VALUES (?, ?, ?, ?, ?, ?, ?, nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5));

-- name: delete_waiting
DELETE FROM waiting WHERE id IN (SELECT value FROM json_each(?));

-- name: delete_ready
DELETE FROM ready WHERE id IN (SELECT value FROM json_each(?));

-- name: delete_leases
DELETE FROM leases WHERE id IN (SELECT value FROM json_each(?));

-- name: delete_history
DELETE FROM history WHERE id IN (SELECT value FROM json_each(?));

-- name: end_leases
-- The rows of history of ends whose lease is as they say: a version or nonce that is null may be any.
WITH ends (id, version, nonce, state, reason, ended, attempt_status, started, exit_code, error, result) AS (
    VALUES (?, nullif(?, 0.5), nullif(?, 0.5), ?, nullif(?, 0.5), ?, nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5),
        nullif(?, 0.5), nullif(?, 0.5))
)
INSERT INTO history (id, lane_id, state, reason, attempt, counted, lost, version, due, ended,
    attempt_status, worker, nonce, claimed, started, exit_code, error, result)
SELECT l.id, l.lane_id, e.state, e.reason, l.attempt, l.counted, l.lost, l.version + 1, l.due, e.ended,
    e.attempt_status, l.worker, l.nonce, l.claimed, coalesce(e.started, l.started), e.exit_code, e.error, e.result
FROM ends AS e CROSS JOIN leases AS l ON l.id = e.id
WHERE l.version = coalesce(e.version, l.version) AND l.nonce = coalesce(e.nonce, l.nonce);

-- name: ended_leases
-- Of these jobs those that have a row of history and still a lease, which is to go, as JSON: (lane, state, ids, their
-- schedules, their concurrency keys, those that have children, the queues for whose max_concurrency they counted).
SELECT group_concat(json_array(lane_id, state, json(ids), json(schedules), json(limits), json(parents), json(queues)))
FROM (
    SELECT h.lane_id, h.state, json_group_array(h.id) AS ids,
        json_group_array(r.schedule) FILTER (WHERE r.schedule IS NOT NULL) AS schedules,
        json_group_array(DISTINCT l.limit_id) FILTER (WHERE l.limit_id IS NOT NULL) AS limits,
        json_group_array(h.id) FILTER (WHERE l.ties & 1) AS parents,
        json_group_array(DISTINCT l.queue_id) FILTER (WHERE l.queue_id IS NOT NULL) AS queues
    FROM json_each(?) AS k CROSS JOIN leases AS l ON l.id = k.value CROSS JOIN history AS h ON h.id = l.id
    LEFT JOIN open_runs AS r ON r.id = h.id
    GROUP BY h.lane_id, h.state
);

-- name: schedules_of_runs
-- The schedules of those of these jobs that are runs under way, as JSON.
SELECT group_concat(DISTINCT json_array(schedule)) FROM open_runs WHERE id IN (SELECT value FROM json_each(?));

-- name: close_runs
DELETE FROM open_runs WHERE id IN (SELECT value FROM json_each(?));

-- name: reopen_runs
-- Those of these jobs whose schedule still is there are under way again. A run's due time is in its name, behind its
-- schedule's: `name@2026-01-31T09:00:00.000000Z`, the fraction only where there is one. Verdict 4 is backfilled.
INSERT INTO open_runs (id, schedule, backfill)
SELECT id, schedule, EXISTS (
    SELECT 1 FROM ledger AS g WHERE g.schedule = run.schedule AND g.verdict = 4 AND g.until = g.due
    AND g.due = 1000000 * strftime('%s', substr(run.time, 1, 19)) + CAST(substr(run.time, 21, 6) AS INTEGER)
)
FROM (
    SELECT j.id, s.id AS schedule, substr(j.name, length(s.name) + 2) AS time
    FROM json_each(?) AS k CROSS JOIN jobs AS j ON j.id = k.value CROSS JOIN lanes AS l ON l.id = j.lane_id
    CROSS JOIN schedules AS s ON s.namespace = l.namespace AND s.name = j.schedule_id
) AS run
WHERE true ON CONFLICT DO NOTHING;

-- name: mark_leases
-- Note something on leases that stay; null leaves a column as it is.
WITH marks (id, nonce, started, progress, cancel_asked, check_at) AS (
    VALUES (?, ?, nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5))
)
UPDATE leases SET
    started = coalesce(m.started, leases.started),
    progress = coalesce(m.progress, leases.progress),
    cancel_asked = coalesce(m.cancel_asked, leases.cancel_asked),
    check_at = coalesce(m.check_at, leases.check_at),
    version = leases.version + (m.cancel_asked IS NOT NULL)
FROM marks AS m WHERE leases.id = m.id AND leases.nonce = m.nonce;

-- name: count
-- So many more (or fewer) jobs of a lane under a status.
INSERT INTO counters (lane_id, status, jobs) VALUES (?, ?, ?)
ON CONFLICT (lane_id, status) DO UPDATE SET jobs = jobs + excluded.jobs;
