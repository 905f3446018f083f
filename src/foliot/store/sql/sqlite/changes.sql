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
INSERT INTO attempts (id, attempt, status, worker, nonce, due, claimed, started, ended, error, exit_code, admitted)
VALUES (?, ?, ?, ?, ?, ?, ?, nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5));

-- name: delete_waiting
DELETE FROM waiting WHERE id IN (SELECT value FROM json_each(?));

-- name: delete_ready
DELETE FROM ready WHERE id IN (SELECT value FROM json_each(?));

-- name: delete_leases
DELETE FROM leases WHERE id IN (SELECT value FROM json_each(?));

-- name: delete_history
DELETE FROM history WHERE id IN (SELECT value FROM json_each(?));

-- name: leases_to_end
-- What these leases bring to the ends of their jobs: (id, version, nonce, what the attempt's times and the record are
-- made from, the job's schedule, its concurrency key, its ties, the queue for whose max_concurrency it counts), as JSON.
SELECT group_concat(json_array(
    l.id, l.version, l.nonce, l.lane_id, l.attempt, l.counted, l.worker, l.due, l.since, l.claimed, l.started, r.schedule,
    l.limit_id, l.ties, l.queue_id))
FROM json_each(?) AS k CROSS JOIN leases AS l ON l.id = k.value LEFT JOIN open_runs AS r ON r.id = l.id;

-- name: end_leases
-- The rows of history of jobs that end out of their leases.
WITH ends (id, state, reason, ended, attempt_status, started, exit_code, error, result) AS (
    VALUES (?, ?, nullif(?, 0.5), ?, nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5), nullif(?, 0.5))
)
INSERT INTO history (id, lane_id, state, reason, attempt, counted, lost, version, due, ended,
    attempt_status, worker, nonce, admitted, claimed, started, exit_code, error, result)
SELECT l.id, l.lane_id, e.state, e.reason, l.attempt, l.counted, l.lost, l.version + 1, l.due, e.ended,
    e.attempt_status, l.worker, l.nonce, l.since, l.claimed, coalesce(e.started, l.started), e.exit_code, e.error,
    e.result
FROM ends AS e CROSS JOIN leases AS l ON l.id = e.id;

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

-- name: count_forgotten
-- So many jobs of a lane that ended with a status are gone.
INSERT INTO counters (lane_id, status, jobs, forgotten) VALUES (?, ?, ?, ?)
ON CONFLICT (lane_id, status) DO UPDATE SET jobs = jobs + excluded.jobs, forgotten = forgotten + excluded.forgotten;
